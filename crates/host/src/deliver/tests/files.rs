use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use futures_util::FutureExt as _;
use holdfast_core::chat::inbox::Missed;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Draft, SendError};
use holdfast_core::limits;
use holdfast_core::seat::Failed;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use super::*;
use crate::channel::{Bot, Event, Examined};

/// A file, or why not.
type Given = Result<Vec<u8>, String>;

/// A service that has files, and counts how often each was asked for.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// What a file's id gives, the last for ever.
    pub files: Mutex<BTreeMap<String, Vec<Given>>>,
    pub asked: Mutex<Vec<String>>,
}

impl Shelf {
    pub(super) fn with(self, id: &str, gives: &[Result<&str, &str>]) -> Shelf {
        let gives = gives.iter().map(|g| g.map(|bytes| bytes.as_bytes().to_vec()).map_err(str::to_owned)).collect();
        self.files.lock().insert(id.into(), gives);
        self
    }
}

impl ChannelBackend for Shelf {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        std::future::ready(Ok(Bot { id: "1".into(), name: "bot".into() })).boxed()
    }
    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        std::future::ready(Ok(())).boxed()
    }
    fn listen(&self, _: mpsc::Sender<Event>) -> BoxFuture<'_, Failed> {
        std::future::pending().boxed()
    }
    fn chunk(&self) -> usize {
        2000
    }
    fn send<'a>(&'a self, _: &'a Draft) -> BoxFuture<'a, Result<MessageId, SendError>> {
        std::future::pending().boxed()
    }
    fn edit<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId, _: &'a str) -> BoxFuture<'a, Result<(), SendError>> {
        std::future::ready(Ok(())).boxed()
    }
    fn typing<'a>(&'a self, _: &'a ChannelId) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }
    fn react<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId, _: &'a str, _: bool) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }
    fn answer<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }
    fn fetch_after<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId) -> BoxFuture<'a, Result<Missed, SendError>> {
        std::future::pending().boxed()
    }
    fn moment(&self) -> Option<MessageId> {
        None
    }
    fn posted<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<&'a MessageId>,
        _: Duration,
    ) -> BoxFuture<'a, Result<Option<Vec<Posted>>, SendError>> {
        std::future::ready(Ok(None)).boxed()
    }
    fn download<'a>(
        &'a self,
        _: &'a Incoming,
        file: &'a Attachment,
        into: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>> {
        async move {
            self.asked.lock().push(file.id.clone());
            let given = {
                let mut files = self.files.lock();
                let all = files.get_mut(&file.id).ok_or("it is gone")?;
                if all.len() > 1 { all.remove(0) } else { all[0].clone() }
            };
            let bytes = given?;
            into.write_all(&bytes).await.map_err(|e| e.to_string())?;
            into.flush().await.map_err(|e| e.to_string())?;
            Ok(bytes.len() as u64)
        }
        .boxed()
    }
    fn reset(&self) {}
    fn hears(&self) -> BoxFuture<'_, Result<(), Failed>> {
        std::future::ready(Ok(())).boxed()
    }
    fn examine<'a>(&'a self, channel: &'a ChannelId) -> BoxFuture<'a, Result<Examined, SendError>> {
        std::future::ready(Ok(Examined { name: channel.to_string(), lacks: Vec::new() })).boxed()
    }
}

fn names(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path("files")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_of_known_kinds_are_fetched_under_names_of_ours_and_the_others_are_noted() {
    let bench = Bench::new();
    let shelf = Shelf::default().with("0", &[Ok("png")]).with("1", &[Ok("pdf")]).with("4", &[Ok("log")]);
    let message = with(
        1,
        "look",
        &[
            ("../../etc/passwd.png", "image/png", 3),
            ("b", "application/pdf", 3),
            ("setup.exe", "application/x-msdownload", 3),
            ("film.png", "image/png", limits::ATTACHMENT_MAX + 1),
            ("a;[b]\nc.log", "", 3),
        ],
    );
    let prepared = bench.courier.prepare(&shelf, &[], &message).await;
    assert_eq!(
        names(&bench),
        ["1796097600000-100-m1-0.png", "1796097600000-100-m1-1.pdf", "1796097600000-100-m1-4.log"]
    );
    let paths: Vec<String> = names(&bench).iter().map(|n| bench.path("files").join(n).display().to_string()).collect();
    assert_eq!(prepared.files.iter().map(|path| path.to_string()).collect::<Vec<_>>(), paths);
    assert_eq!(
        prepared.note,
        "[attachment not fetched: setup.exe is of kind application/x-msdownload]\n\
         [attachment not fetched: film.png is too large]"
    );
    assert_eq!(std::fs::metadata(&paths[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(*shelf.asked.lock(), ["0", "1", "4"]);
    // A holder that begins anew has them already.
    bench.courier.prepare(&shelf, &[], &message).await;
    assert_eq!(shelf.asked.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_network_is_given_three_tries_and_a_half_of_a_file_is_none() {
    let bench = Bench::new();
    let shelf = Shelf::default()
        .with("0", &[Err("connection reset"), Err("timed out"), Ok("x")])
        .with("1", &[Err("connection reset")])
        .with("2", &[Err("it is empty")]);
    let message =
        with(1, "", &[("a.txt", "text/plain", 1), ("b.txt", "text/plain", 1), ("c;[d].txt", "text/plain", 1)]);
    let prepared = bench.courier.prepare(&shelf, &[], &message).await;
    assert_eq!(names(&bench), ["1796097600000-100-m1-0.txt"]);
    assert_eq!(
        prepared.note,
        "[attachment not fetched: b.txt: connection reset]\n[attachment not fetched: c__d_.txt: it is empty]"
    );
    assert_eq!(*shelf.asked.lock(), ["0", "0", "0", "1", "1", "1", "2"]);
}

#[tokio::test]
async fn files_that_had_their_time_go() {
    let bench = Bench::new();
    let (old, young) = (bench.path("files/old.txt"), bench.path("files/young.txt"));
    for (path, age) in [(&old, limits::FILES_KEPT + Duration::from_secs(60)), (&young, Duration::from_secs(60))] {
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    bench.courier.prepare(&Shelf::default(), &[], &said(1, "x")).await;
    until(|| !old.exists()).await;
    assert!(young.exists());
}

#[test]
fn no_message_waits_until_old_files_are_removed() {
    let bench = Bench::new();
    let old = bench.path("files/old.txt");
    let file = std::fs::File::create(&old).unwrap();
    file.set_modified(std::time::SystemTime::now() - limits::FILES_KEPT - Duration::from_secs(60)).unwrap();
    // Its one thread for files has something else to do.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let busy = tokio::task::spawn_blocking(move || waits.recv());
        let prepared = bench.courier.prepare(&Shelf::default(), &[], &said(1, "x")).await;
        assert_eq!((prepared, old.exists()), (Prepared::default(), true));
        go_on.send(()).unwrap();
        busy.await.unwrap().unwrap();
        until(|| !old.exists()).await;
    });
}

#[test]
fn the_oldest_files_make_room() {
    let bench = Bench::new();
    let now = std::time::SystemTime::now();
    for age in 1..=4 {
        let file = std::fs::File::create(bench.path(&format!("files/{age}"))).unwrap();
        file.set_len(10).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    }
    crate::deliver::files::remove_old(&bench.path("files"), now, Duration::from_secs(60), 20);
    assert_eq!(names(&bench), ["1", "2"]);
}

#[tokio::test]
async fn what_had_its_time_goes_with_the_next_holder() {
    let bench = Bench::new();
    let (old, new) = (bench.path("files/old.png"), bench.path("files/new.png"));
    let long_ago = std::time::SystemTime::now() - limits::FILES_KEPT - Duration::from_secs(60);
    std::fs::File::create(&old).unwrap().set_modified(long_ago).unwrap();
    std::fs::File::create(&new).unwrap();
    Courier::open(bench.folder.path(), Offers::default()).unwrap();
    assert_eq!((old.exists(), new.exists()), (false, true));
}
