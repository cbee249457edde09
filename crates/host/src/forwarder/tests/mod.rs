//! A forwarder with its store, transcripts on disk, and a chat service in memory.

mod fake;
mod gaps;
mod inbound;
mod kills;
#[cfg(unix)]
mod mirrored;
mod notices;
mod outbound;
mod places;
mod replies;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_core::chat::{ChannelId, Incoming, MessageId};
use holdfast_core::limits;
use holdfast_core::status::ForwarderStatus;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::{BindingConfig, Delivery};
use fake::Service;

const PATIENCE: Duration = Duration::from_secs(120);

/// One seat, whose holders come and go.
struct Seat {
    folder: TempDir,
    service: Arc<Service>,
    /// What is served instead of that.
    backend: Option<Arc<dyn ChannelBackend>>,
    desk: Desk,
    config: watch::Sender<Arc<ChannelConfig>>,
    generation: u64,
    holds: Arc<AtomicBool>,
    holder: Option<Holder>,
    /// What the timeline gets.
    noticed: Arc<parking_lot::Mutex<Vec<(ChannelNotice, String)>>>,
    homes: Homes,
}

struct Holder {
    forwarder: Forwarder,
    news: mpsc::UnboundedReceiver<News>,
    events: mpsc::Sender<Event>,
}

impl Seat {
    /// With one binding, `agent`, of channel `c1`, in which `ann` may speak; its transcript is `agent.jsonl`.
    fn new() -> Seat {
        let folder = tempfile::tempdir().unwrap();
        let binding = BindingConfig {
            name: "agent".into(),
            channel: "c1".into(),
            transcript: Some(folder.path().join("agent.jsonl").to_str().unwrap().into()),
            deliver: Some(Delivery::Inbox),
            ..BindingConfig::default()
        };
        let config = ChannelConfig { people: vec!["ann".into()], bindings: vec![binding], ..ChannelConfig::default() };
        Seat {
            folder,
            service: Arc::default(),
            backend: None,
            desk: Desk::default(),
            config: watch::Sender::new(Arc::new(config)),
            generation: 0,
            holds: Arc::new(AtomicBool::new(true)),
            holder: None,
            noticed: Arc::default(),
            homes: Homes::default(),
        }
    }

    fn edit(&self, edit: impl FnOnce(&mut ChannelConfig)) {
        let mut config = ChannelConfig::clone(&self.config.borrow());
        edit(&mut config);
        self.config.send_replace(Arc::new(config));
    }

    /// The next holder begins to serve.
    fn serve(&mut self) {
        let heard = self.open();
        self.holder.as_ref().unwrap().forwarder.connected(heard);
    }

    /// The next holder opens what the seat keeps, and has no connection yet.
    fn open(&mut self) -> mpsc::Receiver<Event> {
        let (post, means, news) = self.begins();
        let (events, heard) = mpsc::channel(limits::FORWARDER_EVENTS);
        let forwarder = Forwarder::open(post, means);
        self.holder = Some(Holder { forwarder, news, events });
        heard
    }

    /// What the next holder works with, without its task.
    async fn shell(&mut self) -> run::Shell {
        let (post, means, _) = self.begins();
        let (opened, courier, _) = begin::open(&post, &means, &CancellationToken::new()).await.unwrap();
        run::Shell::new(post, means, opened, courier, mpsc::unbounded_channel().0)
    }

    fn begins(&mut self) -> (Post, Means, mpsc::UnboundedReceiver<News>) {
        self.generation += 1;
        self.desk.show(idle(&self.config.borrow()));
        let (told, news) = mpsc::unbounded_channel();
        let (holds, kept) = (Arc::clone(&self.holds), Arc::clone(&self.noticed));
        let service = Arc::clone(&self.service) as Arc<dyn ChannelBackend>;
        let post = Post {
            backend: self.backend.clone().unwrap_or(service),
            folder: self.folder.path().join("seat"),
            generation: self.generation,
            holds: Arc::new(move || holds.load(Ordering::Relaxed)),
            told: Arc::new(move |news| match news {
                News::Opened => {}
                News::Noticed(notice, text) => kept.lock().push((notice, text)),
                news => drop(told.send(news)),
            }),
        };
        let means = Means { desk: self.desk.clone(), config: self.config.subscribe(), homes: self.homes.clone() };
        (post, means, news)
    }

    /// The same, and its transcript is followed.
    async fn serve_and_follow(&mut self) {
        self.serve();
        self.hear(Event::Ready).await;
        self.until("a cursor", |status| status.bindings[0].transcript.is_some()).await;
    }

    async fn hear(&self, event: Event) {
        self.holder.as_ref().unwrap().events.send(event).await.unwrap();
    }

    /// The holder's process dies.
    async fn die(&mut self) {
        self.holder.take().unwrap().forwarder.cut().await;
    }

    /// The holder lets go.
    async fn leave(&mut self) {
        let mut holder = self.holder.take().unwrap();
        holder.forwarder.leave();
        assert_eq!(soon("its end", holder.news.recv()).await, Some(News::Drained));
    }

    async fn news(&mut self) -> News {
        soon("news", self.holder.as_mut().unwrap().news.recv()).await.unwrap()
    }

    fn transcript(&self) -> PathBuf {
        self.folder.path().join("agent.jsonl")
    }

    /// The agent says these, one after another.
    fn write(&self, texts: &[&str]) {
        append(&self.transcript(), texts);
    }

    async fn until(&self, what: &str, found: impl Fn(&ForwarderStatus) -> bool) -> Arc<ForwarderStatus> {
        let mut view = self.desk.view();
        let waited = soon(what, view.wait_for(|status| found(status))).await;
        waited.unwrap().clone()
    }
}

/// As an agent does it: a file that is written anew is another text for whoever looks in between.
fn append(transcript: &Path, texts: &[&str]) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(transcript).unwrap();
    let lines: String = texts.iter().map(|text| said(text)).collect();
    file.write_all(lines.as_bytes()).unwrap();
}

/// A line of a transcript.
fn said(text: &str) -> String {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    let line = json!({"type": "assistant", "sessionId": "s1", "isSidechain": false, "message": message});
    format!("{line}\n")
}

async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, wait).await {
        Ok(came) => came,
        Err(_) => panic!("no {what} within {PATIENCE:?}"),
    }
}

fn channel(name: &str) -> ChannelId {
    ChannelId::parse(name).unwrap()
}

fn id(n: u64) -> MessageId {
    MessageId::parse(&format!("{n:09}")).unwrap()
}

/// What ann writes in `c1`.
fn message(n: u64, text: &str) -> Incoming {
    Incoming {
        id: id(n),
        channel: channel("c1"),
        parent: None,
        direct: false,
        author: holdfast_core::chat::UserId::parse("ann").unwrap(),
        author_name: "Ann".into(),
        bot: false,
        text: text.into(),
        mentions_us: false,
        attachments: Vec::new(),
        at: crate::status_hub::unix_ms(),
        age: Duration::ZERO,
    }
}
