//! The one writer of status: folds what the engines say into snapshots, and keeps the timeline.
//!
//! A reader that asks gets a fresh snapshot; a reader that waits is told of a change at most every
//! [`limits::STATUS_EVERY`]. Nothing is derived from the timeline.

mod health;
mod outage_file;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_core::command::Engine;
use holdfast_core::daemon::{CallStep, Told};
use holdfast_core::desktop::NoticeSwitches;
use holdfast_core::limits;
use holdfast_core::status::{
    AppStatus, CallCounts, ChannelNotice, Consent, EngineState, ForwarderStatus, LinkState, OutageLog, Question,
    RelayStatus, SeatStatus, StatusSnapshot, Step, Tally, Timeline, TimelineEntry, UnixMs, WarningCode, WorkerStatus,
};
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::files;
use crate::link::{LinkObserver, LinkSnapshot};
use health::Health;

/// See the module.
#[derive(Debug)]
pub struct StatusHub {
    facts: Mutex<Facts>,
    published: watch::Sender<Arc<StatusSnapshot>>,
    steps: broadcast::Sender<TimelineEntry>,
    timeline: Mutex<Timeline>,
    changed: tokio::sync::Notify,
    /// What the configuration in force says of notices: for the shell that shows them, beside the status they are about.
    notices: watch::Sender<NoticeSwitches>,
}

#[derive(Debug)]
struct Facts {
    app: AppStatus,
    link: Option<watch::Receiver<Arc<LinkSnapshot>>>,
    /// What the relay's state is while there is no link.
    without_link: RelayStatus,
    health: Health,
    worker: Option<WorkerStatus>,
    seat: Option<SeatStatus>,
    channels: Option<Arc<ForwarderStatus>>,
    consents: Vec<Consent>,
    questions: Vec<Question>,
    outages: OutageLog,
    outages_changed: bool,
    /// Where outages are kept; `None` until the data folder is this process's.
    outage_file: Option<PathBuf>,
}

/// Wall-clock time, for people.
pub fn unix_ms() -> UnixMs {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

impl StatusHub {
    /// A hub for this process.
    pub fn new(app: AppStatus) -> Arc<StatusHub> {
        let now = unix_ms();
        let facts = Facts {
            app: app.clone(),
            link: None,
            without_link: RelayStatus::stopped(now),
            health: Health::default(),
            worker: None,
            seat: None,
            channels: None,
            consents: Vec::new(),
            questions: Vec::new(),
            outages: OutageLog::default(),
            outages_changed: false,
            outage_file: None,
        };
        Arc::new(StatusHub {
            facts: Mutex::new(facts),
            published: watch::Sender::new(Arc::new(StatusSnapshot::stopped(now, app))),
            steps: broadcast::Sender::new(limits::STEPS_QUEUE),
            timeline: Mutex::new(Timeline::default()),
            changed: tokio::sync::Notify::new(),
            notices: watch::Sender::new(NoticeSwitches::default()),
        })
    }

    /// The state at this moment.
    pub fn snapshot(&self) -> Arc<StatusSnapshot> {
        let mut facts = self.facts.lock();
        let now = unix_ms();
        let (relay, calls) = facts.look_at_link(now);
        let before = self.published.borrow().clone();
        let mut snapshot = StatusSnapshot {
            seq: before.seq,
            taken_at: now,
            app: facts.app.clone(),
            relay,
            calls,
            worker: facts.worker.clone(),
            seat: facts.seat.clone(),
            channels: facts.channels.clone(),
            consents: facts.consents.clone(),
            questions: facts.questions.clone(),
            outages: facts.outages.list(now),
            health: facts.health.list(),
        };
        if !same(&snapshot, &before) {
            snapshot.seq += 1;
            self.published.send_replace(Arc::new(snapshot.clone()));
        }
        Arc::new(snapshot)
    }

    /// Snapshots as they change.
    pub fn watch(&self) -> watch::Receiver<Arc<StatusSnapshot>> {
        self.published.subscribe()
    }

    /// Which notices are wanted, as it changes.
    pub fn notices(&self) -> watch::Receiver<NoticeSwitches> {
        self.notices.subscribe()
    }

    /// Another configuration is in force.
    pub(crate) fn set_notices(&self, switches: NoticeSwitches) {
        self.notices.send_if_modified(|now| std::mem::replace(now, switches) != switches);
    }

    /// Steps numbered `from` and later that are still known, and those to come.
    pub fn steps(&self, from: u64) -> (Vec<TimelineEntry>, broadcast::Receiver<TimelineEntry>) {
        let timeline = self.timeline.lock();
        (timeline.since(from), self.steps.subscribe())
    }

    /// Publishes changes and keeps outages, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut every = tokio::time::interval(limits::OUTAGES_SAVE);
        loop {
            let mut link = self.facts.lock().link.clone();
            let link_changed = async {
                let gone = match &mut link {
                    Some(link) => link.changed().await.is_err(),
                    None => true,
                };
                if gone {
                    std::future::pending::<()>().await;
                }
            };
            let mut lasting_too = false;
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.changed.notified() => {}
                () = link_changed => {}
                _ = every.tick() => {
                    self.look_at_disk();
                    lasting_too = true;
                }
            }
            self.snapshot();
            self.save_outages(lasting_too).await;
            tokio::time::sleep(limits::STATUS_EVERY).await;
        }
        self.snapshot();
        self.save_outages(true).await;
    }

    fn look_at_disk(&self) {
        let Some(file) = self.facts.lock().outage_file.clone() else { return };
        match files::free_space(file.parent().unwrap_or(&file)) {
            Some(free) if free < limits::DISK_LOW as u64 => {
                self.warn(WarningCode::DiskLow, format!("only {} MiB are free on the data folder's disk", free >> 20));
            }
            _ if self.facts.lock().health.stands(WarningCode::DiskLow) => self.clear(WarningCode::DiskLow),
            _ => {}
        }
    }

    /// What is to be written: outages that began or ended since the last question, and one that lasts when it is its turn.
    fn unsaved_outages(&self, lasting_too: bool) -> Option<(PathBuf, OutageLog)> {
        let mut facts = self.facts.lock();
        let file = facts.outage_file.clone()?;
        let due = std::mem::take(&mut facts.outages_changed) || lasting_too && facts.outages.is_open();
        due.then(|| (file, facts.outages.clone()))
    }

    async fn save_outages(&self, lasting_too: bool) {
        let Some((file, log)) = self.unsaved_outages(lasting_too) else { return };
        let saved = tokio::task::spawn_blocking(move || outage_file::save(&file, &log, unix_ms())).await;
        if let Ok(Err(e)) = saved {
            tracing::warn!("outages are not kept: {e}");
        }
    }

    /// Takes up the outages an earlier process left in a file, and keeps them there from now on.
    pub fn keep_outages(&self, file: PathBuf) {
        let mut facts = self.facts.lock();
        if facts.outage_file.is_none() {
            facts.outages = outage_file::load(&file);
            facts.outage_file = Some(file);
        }
    }

    /// No engine runs any more: what was known of them is no longer true.
    pub fn engines_gone(&self) {
        let mut facts = self.facts.lock();
        let AppStatus { version, pid, started_at, autostart, .. } = facts.app.clone();
        facts.app = AppStatus { version, pid, started_at, autostart, ..AppStatus::default() };
        facts.without_link = RelayStatus::stopped(unix_ms());
        facts.link = None;
        facts.consents.clear();
        facts.worker = None;
        facts.seat = None;
        facts.channels = None;
        for over in [
            WarningCode::ConfigInvalid,
            WarningCode::ConfigRestart,
            WarningCode::PolicyNotLoosened,
            WarningCode::RelayFailed,
            WarningCode::StorageFull,
            WarningCode::LedgerSetAside,
            WarningCode::WorkerRefused,
            WarningCode::WorkerFailed,
            WarningCode::SeatFailed,
            WarningCode::SeatFrozen,
            WarningCode::BotUsedElsewhere,
            WarningCode::ChannelParked,
            WarningCode::MessagesHeld,
            WarningCode::ChannelStuck,
            WarningCode::ChannelSetAside,
        ] {
            facts.health.clear(over);
        }
        drop(facts);
        self.changed.notify_one();
    }

    /// The calls that ask before they run are these.
    pub fn questions(&self, questions: Vec<Question>) {
        self.facts.lock().questions = questions;
        self.changed.notify_one();
    }

    /// Clients that wait to be let in, oldest first.
    pub fn consents(&self, consents: Vec<Consent>) {
        self.facts.lock().consents = consents;
        self.changed.notify_one();
    }

    /// The link to look at from now on; `None` when there is none.
    pub fn set_link(&self, link: Option<watch::Receiver<Arc<LinkSnapshot>>>) {
        let mut facts = self.facts.lock();
        facts.without_link = RelayStatus::stopped(unix_ms());
        facts.link = link;
        drop(facts);
        self.changed.notify_one();
    }

    /// There is no link, because this machine has no credential for that relay.
    pub fn no_credential(&self, relay: &str) {
        self.facts.lock().without_link = RelayStatus {
            state: LinkState::SignInNeeded,
            cause: Some("this machine is not enrolled there".into()),
            url: Some(relay.into()),
            ..RelayStatus::stopped(unix_ms())
        };
        self.changed.notify_one();
    }

    /// What is known of the process changed.
    pub fn app(&self, change: impl FnOnce(&mut AppStatus)) {
        change(&mut self.facts.lock().app);
        self.changed.notify_one();
    }

    /// An engine's state changed.
    pub fn engine(&self, engine: Engine, state: EngineState) {
        self.app(|app| {
            app.engines.insert(engine, state);
        });
    }

    /// Something is wrong.
    pub fn warn(&self, code: WarningCode, text: impl Into<String>) {
        let text = text.into();
        if self.facts.lock().health.raise(code, unix_ms(), text.clone()) {
            tracing::warn!(code = code.as_str(), "{text}");
        }
        self.changed.notify_one();
    }

    /// Something is wrong as long as there is a text for it.
    pub(crate) fn hold(&self, code: WarningCode, text: Option<String>) {
        match text {
            Some(text) => self.warn(code, text),
            None if self.facts.lock().health.stands(code) => self.clear(code),
            None => {}
        }
    }

    /// Durable operations are these now; `None` while no worker is hosted.
    pub(crate) fn worker(&self, worker: Option<WorkerStatus>) {
        self.facts.lock().worker = worker;
        self.changed.notify_one();
    }

    /// The seat is this now.
    pub(crate) fn seat(&self, seat: SeatStatus) {
        self.facts.lock().seat = Some(seat);
        self.changed.notify_one();
    }

    /// What passes between agents and channels is this now.
    pub(crate) fn channels(&self, status: Arc<ForwarderStatus>) {
        self.facts.lock().channels = Some(status);
        self.changed.notify_one();
    }

    /// Something happened to the channel.
    pub(crate) fn noticed(&self, notice: ChannelNotice, text: &str) {
        self.push(TimelineEntry {
            seq: 0,
            at: unix_ms(),
            call: None,
            tool: "channel".into(),
            step: Step::Noticed,
            code: None,
            client: None,
            summary: Some(text.into()),
            notice: Some(notice),
        });
    }

    fn push(&self, entry: TimelineEntry) {
        // Sent under the lock, so that a reader gets entries in their order.
        let mut timeline = self.timeline.lock();
        // Nobody may be listening.
        let _ = self.steps.send(timeline.push(entry));
    }

    /// No channel is set up.
    pub(crate) fn no_channel(&self) {
        let mut facts = self.facts.lock();
        facts.seat = None;
        facts.channels = None;
        facts.app.engines.remove(&Engine::Channels);
        for over in [
            WarningCode::SeatFailed,
            WarningCode::SeatFrozen,
            WarningCode::BotUsedElsewhere,
            WarningCode::ChannelParked,
            WarningCode::MessagesHeld,
            WarningCode::ChannelStuck,
            WarningCode::ChannelSetAside,
        ] {
            facts.health.clear(over);
        }
        drop(facts);
        self.changed.notify_one();
    }

    /// Whether this is wrong now.
    pub fn stands(&self, code: WarningCode) -> bool {
        self.facts.lock().health.stands(code)
    }

    /// It is over.
    pub fn clear(&self, code: WarningCode) {
        self.facts.lock().health.clear(code);
        self.changed.notify_one();
    }
}

impl Facts {
    fn look_at_link(&mut self, now: UnixMs) -> (RelayStatus, CallCounts) {
        // Marked as seen, so that waiting for a change waits for the next one.
        let Some(link) = self.link.as_mut().map(|l| l.borrow_and_update().clone()) else {
            let relay = self.without_link.clone();
            self.health.link(&relay, None, now);
            return (relay, CallCounts::default());
        };
        let relay = link.relay_status();
        let mut calls = link.calls().clone();
        let age = now.saturating_sub(link.taken_at);
        calls.oldest_ms = calls.oldest_ms.map(|ms| ms.saturating_add(age));
        self.health.link(&relay, Some(&link), now);
        let held = (calls.pending + calls.queued_results) as u64;
        let calls_now = Tally { held, delivered: link.link.delivered, lost: link.link.lost };
        let cause = relay.cause.as_deref();
        self.outages_changed |= self.outages.observe(now, relay.state, relay.since, cause, calls_now);
        (relay, calls)
    }
}

/// Whether a reader would see no difference.
fn same(a: &StatusSnapshot, b: &StatusSnapshot) -> bool {
    let counts = |c: &CallCounts| (c.pending, c.detached, c.queued_results);
    counts(&a.calls) == counts(&b.calls)
        && a.calls.by_tool == b.calls.by_tool
        && a.relay == b.relay
        && a.worker == b.worker
        && a.seat == b.seat
        && a.channels == b.channels
        && a.consents == b.consents
        && a.questions == b.questions
        && a.app == b.app
        && a.health == b.health
        && a.outages == b.outages
}

impl LinkObserver for StatusHub {
    fn step(&self, step: CallStep) {
        let entry = TimelineEntry {
            seq: 0,
            at: unix_ms(),
            call: Some(step.id),
            tool: step.tool,
            step: step.step,
            code: step.code,
            client: step.client,
            summary: step.summary,
            notice: None,
        };
        self.push(entry);
    }

    fn told(&self, told: Told) {
        match told {
            Told::FirstReady => tracing::info!("the relay can reach this machine"),
            Told::Outage { lasting, attempts, cause, hint } => {
                let advice = if hint { "; is this machine online?" } else { "" };
                tracing::warn!(attempts, "the relay has been away for {} s: {cause}{advice}", lasting.as_secs());
            }
            Told::Recovered { lasted, attempts } => {
                tracing::warn!(attempts, "the relay is back after {} s", lasted.as_secs());
            }
            Told::State { from, to, why } => tracing::info!("link: {} → {}, {why}", from.words(), to.words()),
            Told::GraceExpired { stopped, held } => {
                tracing::warn!(stopped, held, "the relay stayed away too long; running calls were stopped");
            }
            Told::CutOff { calls } => {
                tracing::warn!(calls, "the link was stopped; who asked for these calls cannot know their outcome");
            }
            Told::ProtocolErrors => tracing::warn!("the relay broke the protocol three times in ten minutes"),
            Told::DeviceInUse => tracing::warn!("another running instance uses this device's credential"),
            Told::Resumed { running, replayed, stopped, dropped, unknown, lost } => {
                if stopped + dropped > 0 {
                    tracing::warn!(stopped, dropped, "the relay no longer waits for calls; nobody has their answers");
                }
                tracing::info!(running, replayed, stopped, dropped, unknown, lost, "calls were bound again");
            }
        }
    }
}

#[cfg(test)]
mod tests;
