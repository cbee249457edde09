//! One seat on a disk that fails.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::inbox::Missed;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::chat::{Attachment, ChannelId, Draft, Incoming, MessageId, SendError};
use holdfast_core::code::Code;
use holdfast_core::seat::Failed;
use holdfast_core::status::{AppStatus, ChannelNotice, WarningCode};

use super::*;
use crate::channel::{Bot, Event as Heard, Examined};
use crate::config::ChannelConfig;
use crate::files::fault::{Fault, Faulty};
use crate::forwarder::Desk;
use crate::transcript::Homes;

const PATIENCE: Duration = Duration::from_secs(60);

/// Counts who logs in.
#[derive(Debug, Default)]
struct Service {
    logins: AtomicUsize,
    /// Connections that stand.
    listening: AtomicUsize,
    /// The next connection fails in a way that nobody thought of.
    fails: AtomicBool,
    /// What is begun once it is connected fails.
    breaks: AtomicBool,
}

/// One of them.
struct Stands<'a>(&'a Service);

impl Drop for Stands<'_> {
    fn drop(&mut self) {
        self.0.listening.fetch_sub(1, Ordering::SeqCst);
    }
}

fn refused<T>() -> BoxFuture<'static, Result<T, SendError>> {
    async { Err(SendError::Later("nobody sends here".into())) }.boxed()
}

impl ChannelBackend for Service {
    fn prove(&self) -> BoxFuture<'_, Result<Bot, Failed>> {
        async { Ok(Bot { id: "1".into(), name: "bot".into() }) }.boxed()
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), Failed>> {
        self.logins.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }.boxed()
    }

    fn listen(&self, _: mpsc::Sender<Heard>) -> BoxFuture<'_, Failed> {
        self.listening.fetch_add(1, Ordering::SeqCst);
        let stands = Stands(self);
        async move {
            let _stands = stands;
            assert!(!self.fails.swap(false, Ordering::SeqCst), "nobody thought of this");
            std::future::pending::<Failed>().await
        }
        .boxed()
    }

    fn chunk(&self) -> usize {
        assert!(!self.breaks.load(Ordering::SeqCst), "the step after the connection fails");
        200
    }

    fn send<'a>(&'a self, _: &'a Draft) -> BoxFuture<'a, Result<MessageId, SendError>> {
        refused()
    }

    fn edit<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId, _: &'a str) -> BoxFuture<'a, Result<(), SendError>> {
        refused()
    }

    fn typing<'a>(&'a self, _: &'a ChannelId) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn react<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId, _: &'a str, _: bool) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn answer<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn fetch_after<'a>(&'a self, _: &'a ChannelId, _: &'a MessageId) -> BoxFuture<'a, Result<Missed, SendError>> {
        refused()
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
        refused()
    }

    fn download<'a>(
        &'a self,
        _: &'a Incoming,
        _: &'a Attachment,
        _: &'a mut tokio::fs::File,
    ) -> BoxFuture<'a, Result<u64, String>> {
        async { Err("nobody sends files here".into()) }.boxed()
    }

    fn hears(&self) -> BoxFuture<'_, Result<(), Failed>> {
        async { Ok(()) }.boxed()
    }

    fn reset(&self) {}

    fn examine<'a>(&'a self, _: &'a ChannelId) -> BoxFuture<'a, Result<Examined, SendError>> {
        refused()
    }
}

struct Stage {
    state: Arc<tempfile::TempDir>,
    service: Arc<Service>,
    hub: Arc<StatusHub>,
    seat: SeatHandle,
    _config: watch::Sender<Arc<ChannelConfig>>,
}

impl Stage {
    fn new() -> Stage {
        Stage::at(Arc::new(tempfile::tempdir().unwrap()))
    }

    /// Another process that may want the same seat.
    fn beside(&self) -> Stage {
        Stage::at(Arc::clone(&self.state))
    }

    fn at(state: Arc<tempfile::TempDir>) -> Stage {
        let (service, hub) = (Arc::<Service>::default(), StatusHub::new(AppStatus::default()));
        let (config, edited) = watch::channel(Arc::new(ChannelConfig::default()));
        let options = SeatOptions {
            state: state.path().into(),
            service: "discord".into(),
            bot: "1".into(),
            backend: Arc::clone(&service) as Arc<dyn ChannelBackend>,
            means: Means { desk: Desk::default(), config: edited, homes: Homes::default() },
        };
        let seat = spawn(options, Arc::clone(&hub));
        Stage { state, service, hub, seat, _config: config }
    }

    fn folder(&self) -> PathBuf {
        folder::place(self.state.path(), "discord", "1")
    }

    fn logins(&self) -> usize {
        self.service.logins.load(Ordering::SeqCst)
    }

    fn text(&self, code: WarningCode) -> Option<String> {
        self.hub.snapshot().health.iter().find(|warning| warning.code == code).map(|warning| warning.text.clone())
    }

    /// What the timeline says of the channel.
    fn noticed(&self) -> Vec<ChannelNotice> {
        self.hub.steps(0).0.iter().filter_map(|entry| entry.notice).collect()
    }

    async fn until(&self, what: &str, found: impl Fn(&SeatStatus) -> bool) -> Arc<SeatStatus> {
        let mut status = self.seat.status();
        let waited = tokio::time::timeout(PATIENCE, status.wait_for(|s| found(s))).await;
        match waited {
            Ok(found) => found.unwrap().clone(),
            Err(_) => panic!("no {what}: {:?}", self.seat.status().borrow()),
        }
    }

    async fn serves(&self) -> Arc<SeatStatus> {
        self.until("serving", |s| s.state == SeatState::Serving).await
    }
}

#[tokio::test]
async fn a_seat_on_a_full_disk_says_so_waits_and_is_taken_by_itself_once_there_is_room() {
    let stage = Stage::new();
    let full = Faulty::at(stage.state.path(), Fault::Full);
    stage.seat.want(Want::IfVacant).await;
    let status = stage.seat.status().borrow().clone();
    assert_eq!((status.state, status.code), (SeatState::Claiming, Some(Code::StorageFull)));
    assert!(status.next_try_at.is_some_and(|at| at > status.since), "{status:?}");
    let text = stage.text(WarningCode::ChannelStuck).unwrap();
    assert!(text.contains("is full (storage_full); it is tried again by itself"), "{text}");
    assert_eq!((stage.logins(), stage.text(WarningCode::SeatFailed)), (0, None));
    drop(full);
    let status = stage.serves().await;
    assert_eq!((status.code, status.next_try_at, status.generation), (None, None, 1));
    assert_eq!((stage.logins(), stage.text(WarningCode::ChannelStuck)), (1, None));
}

#[tokio::test]
async fn with_a_store_that_cannot_be_opened_nobody_logs_in_until_it_can() {
    let stage = Stage::new();
    // A folder stands where the store should be.
    let store = stage.folder().join("channel.sqlite");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::set_permissions(stage.folder(), std::fs::Permissions::from_mode(0o700)).unwrap();
    stage.seat.want(Want::IfVacant).await;
    let tries = |tries: usize| {
        let seen = AtomicUsize::new(0);
        move |s: &SeatStatus| {
            s.state == SeatState::Connecting && s.code.is_some() && seen.fetch_add(1, Ordering::SeqCst) + 1 >= tries
        }
    };
    let status = stage.until("a second try", tries(2)).await;
    assert_eq!((status.code, stage.logins()), (Some(Code::Unavailable), 0));
    assert!(status.reason.as_deref().unwrap().starts_with("the seat's store cannot be used: "), "{status:?}");
    assert_eq!(status.generation, 1, "the seat is held meanwhile, and asked for by its holder's name");
    std::fs::remove_dir(&store).unwrap();
    stage.serves().await;
    assert_eq!(stage.logins(), 1);
}

#[tokio::test]
async fn a_damaged_store_is_set_aside_before_anybody_logs_in_and_what_is_lost_is_said() {
    let stage = Stage::new();
    stage.seat.want(Want::IfVacant).await;
    stage.serves().await;
    stage.seat.release().await;
    stage.until("its end", |s| s.state == SeatState::Off).await;
    std::fs::write(stage.folder().join("channel.sqlite"), [0xa5; 8192]).unwrap();
    stage.seat.want(Want::IfVacant).await;
    stage.serves().await;
    let text = stage.text(WarningCode::ChannelSetAside).unwrap();
    assert!(text.contains("channel.sqlite.damaged-"), "{text}");
    assert!(text.contains("how many messages waited cannot be told"), "{text}");
}

#[tokio::test]
async fn a_disk_that_does_not_answer_freezes_neither_the_runtime_nor_the_seats_commands() {
    let stage = Stage::new();
    let silent = Faulty::at(stage.state.path(), Fault::Silent);
    let ticks = Arc::new(AtomicUsize::new(0));
    let ticking = tokio::spawn({
        let ticks = Arc::clone(&ticks);
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                ticks.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    // The runtime has one thread.
    stage.seat.want(Want::IfVacant).await;
    let status = stage.seat.status().borrow().clone();
    assert_eq!((status.state, status.code), (SeatState::Claiming, Some(Code::Unavailable)));
    assert!(status.reason.as_deref().unwrap().ends_with(": the disk does not answer"), "{status:?}");
    assert!(ticks.load(Ordering::SeqCst) > 10, "others go on meanwhile");
    stage.seat.release().await;
    assert_eq!(stage.seat.status().borrow().state, SeatState::Off);
    drop(silent);
    // What was begun then has no effect any more: the lock is free for everybody.
    stage.seat.want(Want::IfVacant).await;
    assert_eq!(stage.serves().await.generation, 1);
    ticking.abort();
}

#[tokio::test]
async fn a_holder_whose_disk_does_not_answer_keeps_its_seat_and_confirms_no_new_connection() {
    let stage = Stage::new();
    stage.seat.want(Want::IfVacant).await;
    stage.serves().await;
    let silent = Faulty::at(stage.state.path(), Fault::Silent);
    let looks = limits::SEAT_LOOK + limits::SEAT_DISK + limits::SEAT_LOOK;
    let mut status = stage.seat.status();
    let lost = status.wait_for(|s| s.state != SeatState::Serving);
    assert!(tokio::time::timeout(looks, lost).await.is_err());
    drop(silent);
    stage.seat.release().await;
    stage.until("its end", |s| s.state == SeatState::Off).await;
}

#[tokio::test]
async fn the_timeline_has_what_happened_to_the_seat_once_each() {
    let stage = Stage::new();
    let full = Faulty::at(stage.state.path(), Fault::Full);
    stage.seat.want(Want::IfVacant).await;
    assert_eq!(stage.noticed(), [], "who waits has not given up");
    drop(full);
    stage.serves().await;
    assert_eq!(stage.noticed(), [ChannelNotice::Acquired]);
    assert_eq!(stage.service.listening.load(Ordering::SeqCst), 1);
    let lock = stage.folder().join("lock");
    std::fs::remove_file(&lock).unwrap();
    stage.until("its end", |s| s.state == SeatState::Off).await;
    assert_eq!(stage.noticed(), [ChannelNotice::Acquired, ChannelNotice::Superseded]);
    let gone = async {
        while stage.service.listening.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("no connection outlives its seat");
    std::os::unix::fs::symlink("/dev/null", &lock).unwrap();
    stage.seat.want(Want::IfVacant).await;
    assert_eq!(stage.seat.status().borrow().code, Some(Code::PermissionDenied));
    let all = [ChannelNotice::Acquired, ChannelNotice::Superseded, ChannelNotice::Failed];
    assert_eq!(stage.noticed(), all);
    let (entries, _) = stage.hub.steps(0);
    assert!(entries[2].summary.as_deref().unwrap().ends_with("it is a symbolic link"), "{entries:?}");
    assert_eq!((entries[2].call.as_ref(), &*entries[2].tool), (None, "channel"));
}

#[tokio::test]
async fn a_connection_that_fails_unexpectedly_is_made_anew() {
    let stage = Stage::new();
    stage.service.fails.store(true, Ordering::SeqCst);
    stage.seat.want(Want::IfVacant).await;
    let status = stage.until("why it is lost", |s| s.reason.is_some()).await;
    assert_eq!(status.reason.as_deref(), Some("the connection failed unexpectedly"));
    stage.serves().await;
    assert_eq!((stage.logins(), stage.service.listening.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn a_seat_whose_task_fails_unexpectedly_lets_go_and_takes_it_anew() {
    let stage = Stage::new();
    stage.seat.want(Want::IfVacant).await;
    assert_eq!(stage.serves().await.generation, 1);
    stage.seat.events.send(Event::Defect).unwrap();
    let status = stage.until("another life", |s| s.state == SeatState::Serving && s.generation == 2).await;
    assert_eq!(status.reason, None);
    assert_eq!(stage.noticed(), [ChannelNotice::Acquired, ChannelNotice::Failed, ChannelNotice::Acquired]);
    stage.seat.release().await;
    stage.until("its end", |s| s.state == SeatState::Off).await;
}

#[tokio::test]
async fn a_seat_that_stands_by_and_whose_task_fails_waits_afterwards_only_if_it_waited() {
    let holder = Stage::new();
    holder.seat.want(Want::IfVacant).await;
    holder.serves().await;
    for (want, after) in [(Want::IfVacant, SeatState::Off), (Want::Wait, SeatState::Standby)] {
        let other = holder.beside();
        other.seat.want(want).await;
        other.until("standing by", |s| s.state == SeatState::Standby).await;
        other.seat.events.send(Event::Defect).unwrap();
        let other = &other;
        other.until("another life", |s| s.state == after && other.noticed() == [ChannelNotice::Failed]).await;
        assert_eq!(other.seat.status().borrow().waits, after == SeatState::Standby);
    }
}

#[tokio::test]
async fn a_step_after_the_connection_that_fails_ends_the_connection_and_is_tried_again() {
    let stage = Stage::new();
    stage.service.breaks.store(true, Ordering::SeqCst);
    stage.seat.want(Want::IfVacant).await;
    stage.until("why", |s| s.reason.as_deref() == Some("it failed unexpectedly")).await;
    let listening = async |expected: usize| {
        let changed = async {
            while stage.service.listening.load(Ordering::SeqCst) != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, changed).await.expect("in time");
    };
    listening(0).await;
    stage.service.breaks.store(false, Ordering::SeqCst);
    stage.serves().await;
    listening(1).await;
}
