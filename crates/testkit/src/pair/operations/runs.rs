//! Runners, programs and spools of one machine: they outlive its worker, and nothing but the power ends them all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_core::code::Code;
use holdfast_core::id::{OperationId, RunId};
use holdfast_core::limits;
use holdfast_core::operation::{Command, Exit, Failure, OnLeaseExpiry, Operation, Request, Stream, Streams};
use holdfast_core::run::{Ask, End, Lease};
use holdfast_core::time::Now;
use holdfast_core::worker::{Input, Piece, RunNews};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::truth::{Truth, byte};

/// A try to run something.
pub(super) type Try = (RunId, u32);

/// How many pieces a program writes its output in.
const PIECES: u64 = 6;

/// What stands in the folder of a try, and who lives in it.
#[derive(Debug, Default)]
struct Folder {
    id: Option<OperationId>,
    /// When its runner tries to claim (awake time).
    spawned: Option<Duration>,
    void: bool,
    claimed: bool,
    program: Option<Program>,
    written: u64,
    trimmed: u64,
    end: Option<End>,
    given: BTreeSet<OperationId>,
    removed: bool,
}

/// A program and the runner that owns it. Times are awake times, the lease's is boot time.
#[derive(Debug)]
struct Program {
    began: Duration,
    lasts: Duration,
    bytes: u64,
    lease: Option<Lease>,
    /// Asked to end.
    killed: Option<Duration>,
    /// Not by the worker but by the system.
    interrupted: bool,
}

impl Program {
    fn ends_at(&self) -> Duration {
        self.killed.unwrap_or(Duration::MAX).min(self.began + self.lasts)
    }

    fn has_written(&self, at: Duration) -> u64 {
        let done = at.saturating_sub(self.began).min(self.lasts);
        let pieces = PIECES * done.as_millis() as u64 / (self.lasts.as_millis() as u64).max(1);
        self.bytes * pieces / PIECES
    }

    fn next_piece(&self, at: Duration) -> Duration {
        let done = at.saturating_sub(self.began);
        let piece = (self.lasts / PIECES as u32).max(Duration::from_millis(1));
        let next = self.began + piece * (done.as_millis() / piece.as_millis() + 1) as u32;
        next.min(self.ends_at())
    }
}

/// All runs of a machine.
pub(super) struct Runs {
    rng: SmallRng,
    folders: BTreeMap<Try, Folder>,
    /// Tries whose news the living worker asked for.
    watched: BTreeSet<Try>,
    /// Connections to runners that broke, by the time (awake) at which the worker hears of it. Nothing is heard or said till then.
    broken: BTreeMap<Try, Duration>,
    news: Vec<Input<'static>>,
    /// Runners sometimes do not start, and connections to them break.
    pub(super) flaky: bool,
}

impl Runs {
    pub(super) fn new(seed: u64) -> Runs {
        let rng = SmallRng::seed_from_u64(seed);
        let (folders, watched, broken) = Default::default();
        Runs { rng, folders, watched, broken, news: Vec::new(), flaky: false }
    }

    /// The worker is gone, and with it whoever listened.
    pub(super) fn unwatch(&mut self) {
        self.watched.clear();
        self.broken.clear();
        self.news.clear();
    }

    /// A new worker starts: folders that no row names go. Their programs too, if a ledger was lost.
    pub(super) fn sweep(&mut self, named: &BTreeSet<Try>) {
        for (tried, folder) in &mut self.folders {
            if !named.contains(tried) {
                (folder.removed, folder.program, folder.spawned) = (true, None, None);
            }
        }
    }

    /// The power goes: nothing lives on, and output that was not synced may be gone.
    pub(super) fn power_off(&mut self, truth: &mut Truth) {
        for ((run, _), folder) in &mut self.folders {
            folder.spawned = None;
            if folder.program.take().is_some() {
                folder.written = self.rng.random_range(folder.trimmed..=folder.written);
                truth.written.insert(run.clone(), folder.written);
            }
        }
    }

    /// The system asks every runner to end, as at a log-out; whoever was asked before ends for that.
    pub(super) fn interrupt(&mut self, now: Now) {
        for program in
            self.folders.values_mut().filter(|folder| folder.claimed).filter_map(|folder| folder.program.as_mut())
        {
            if program.killed.is_none() {
                (program.killed, program.interrupted) = (Some(now.awake + Duration::from_millis(30)), true);
            }
        }
    }

    pub(super) fn launch(&mut self, now: Now, operation: &Operation, attempt: u32, lease: Option<Lease>) {
        let run = operation.run_id.clone().expect("a run has a run id");
        let supervised = operation.request.on_lease_expiry() == OnLeaseExpiry::Stop;
        assert_eq!(lease.is_some_and(|lease| lease.until.is_some_and(|until| until > now.boot)), supervised);
        let (lasts, bytes) = task(operation);
        let wait = Duration::from_millis(self.rng.random_range(1..60));
        let folder = self.folders.entry((run.clone(), attempt)).or_default();
        folder.id = Some(operation.request_id.clone());
        if folder.void {
            return self.found(&(run, attempt));
        }
        folder.spawned = Some(now.awake + wait);
        folder.program = Some(Program { began: Duration::ZERO, lasts, bytes, lease, killed: None, interrupted: false });
        self.watched.insert((run, attempt));
    }

    pub(super) fn void(&mut self, tried: Try) {
        let folder = self.folders.entry(tried.clone()).or_default();
        folder.void |= !folder.claimed;
        self.found(&tried);
    }

    /// Says what whoever looks at a folder finds.
    pub(super) fn found(&mut self, tried: &Try) {
        self.watched.insert(tried.clone());
        self.broken.remove(tried);
        let folder = self.folders.entry(tried.clone()).or_default();
        assert!(!folder.removed, "looked for what was removed");
        let written = streams(folder.written);
        let news = if let Some(end) = &folder.end {
            RunNews::Ended(end.clone())
        } else if !folder.claimed {
            RunNews::Void(None)
        } else if folder.program.is_some() {
            RunNews::Attached { written, stalled: None }
        } else {
            RunNews::Gone { written, evidence: serde_json::json!({"boot": "another"}) }
        };
        self.tell(tried.clone(), news);
    }

    pub(super) fn ask(&mut self, now: Now, tried: Try, ask: Ask, truth: &mut Truth) {
        let Some(folder) = self.folders.get_mut(&tried).filter(|folder| folder.claimed) else { return };
        let Some(program) = &mut folder.program else { return };
        if self.broken.contains_key(&tried) {
            return;
        }
        if self.flaky && self.rng.random_range(0..20) == 0 {
            // What was said is lost, or the answer to it.
            self.broken.insert(tried.clone(), now.awake + limits::SPOOL_RETRY);
            truth.strike("runner lost");
            if self.rng.random() {
                return;
            }
        }
        match ask {
            Ask::Kill {} => program.killed = program.killed.or(Some(now.awake + Duration::from_millis(30))),
            Ask::Lease { lease } => {
                // Only the lease it runs under can be renewed.
                if let Some(held) = program.lease.as_mut().filter(|held| held.generation == lease.generation) {
                    *held = lease;
                }
            }
            Ask::Input { id, .. } => {
                if folder.given.insert(id.clone()) {
                    truth.gave(&id);
                }
                self.tell(tried, RunNews::Done(id, Ok(())));
            }
            Ask::Resize { id, .. } => self.tell(tried, RunNews::Done(id, Ok(()))),
            Ask::Quota { .. } | Ask::Trim { .. } => {}
        }
    }

    pub(super) fn read(&self, run: &RunId, attempt: u32, offset: u64, max: usize) -> Piece {
        let folder = &self.folders[&(run.clone(), attempt)];
        assert!(!folder.removed, "read what was removed");
        if offset < folder.trimmed {
            return Piece::Gap(folder.trimmed);
        }
        let end = folder.written.min(offset + max as u64);
        match end > offset {
            true => Piece::Bytes((offset..end).map(|at| byte(run, at)).collect::<Vec<u8>>().into()),
            false => Piece::Unreadable,
        }
    }

    pub(super) fn trim(&mut self, tried: &Try, offset: u64) {
        if let Some(folder) = self.folders.get_mut(tried) {
            folder.trimmed = folder.trimmed.max(offset.min(folder.written));
        }
    }

    pub(super) fn remove(&mut self, tried: &Try) {
        if let Some(folder) = self.folders.get_mut(tried) {
            assert!(folder.end.is_some() || folder.program.is_none() || !folder.claimed, "removed what runs");
            (folder.removed, folder.program, folder.spawned) = (true, None, None);
        }
    }

    pub(super) fn take_news(&mut self) -> Vec<Input<'static>> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Time until something is due.
    pub(super) fn next(&self, now: Now) -> Option<Duration> {
        let noticed = self.broken.values().map(|at| at.saturating_sub(now.awake));
        let due = |folder: &Folder| {
            if let Some(at) = folder.spawned {
                return Some(at.saturating_sub(now.awake));
            }
            let program = folder.program.as_ref().filter(|_| folder.claimed)?;
            let work = program.next_piece(now.awake).saturating_sub(now.awake);
            let lease = program.lease.and_then(|lease| lease.until).map(|until| until.saturating_sub(now.boot));
            Some(lease.map_or(work, |lease| lease.min(work)))
        };
        self.folders.values().filter_map(due).chain(noticed).min()
    }

    /// Lets runners and programs do what is due.
    pub(super) fn turn(&mut self, now: Now, truth: &mut Truth) {
        let tries: Vec<Try> =
            self.folders.iter().filter(|(_, f)| f.program.is_some()).map(|(t, _)| t.clone()).collect();
        for tried in tries {
            self.claim(now, &tried, truth);
            self.live(now, &tried, truth);
        }
        let noticed: Vec<Try> =
            self.broken.iter().filter(|(_, at)| **at <= now.awake).map(|(tried, _)| tried.clone()).collect();
        for tried in noticed {
            // Whoever wants more news of it looks for it again.
            self.broken.remove(&tried);
            self.watched.remove(&tried);
            self.news.push(Input::Run(tried.0, tried.1, RunNews::Detached));
        }
    }

    fn claim(&mut self, now: Now, tried: &Try, truth: &mut Truth) {
        let fails = self.flaky && self.rng.random_range(0..40) == 0;
        let Some(folder) = self.folders.get_mut(tried) else { return };
        if folder.spawned.is_none_or(|at| at > now.awake) {
            return;
        }
        folder.spawned = None;
        if folder.void || folder.removed || fails {
            folder.program = None;
            let failure = fails.then(|| Failure::nothing_done(Code::Unavailable, "no runner"));
            if !std::mem::replace(&mut folder.void, true) {
                truth.strike("not started");
                self.tell(tried.clone(), RunNews::Void(failure));
            }
            return;
        }
        folder.claimed = true;
        let lease = folder.program.as_ref().and_then(|program| program.lease);
        if let Some(lease) = lease.filter(|lease| lease.until.is_some_and(|until| until <= now.boot)) {
            // The machine slept between its launch and its start.
            truth.strike("lease over before the start");
            folder.program = None;
            let end = End {
                exit: None,
                written: Streams::new(),
                not_started: Some("its lease was over".into()),
                timed_out: false,
                killed: false,
                interrupted: false,
                lease_expired: Some(lease.generation),
                dropped: 0,
                escaped: Vec::new(),
                at: now.boot.as_millis() as u64,
            };
            folder.end = Some(end.clone());
            return self.tell(tried.clone(), RunNews::Ended(end));
        }
        if let Some(program) = &mut folder.program {
            program.began = now.awake;
        }
        if let Some(id) = &folder.id {
            truth.ran(id);
        }
        if self.watched.contains(tried) {
            self.found(tried);
        }
    }

    fn live(&mut self, now: Now, tried: &Try, truth: &mut Truth) {
        let Some(folder) = self.folders.get_mut(tried).filter(|folder| folder.claimed) else { return };
        let Some(program) = &folder.program else { return };
        let heard = self.watched.contains(tried) && !self.broken.contains_key(tried);
        if self.flaky && heard && self.rng.random_range(0..30) == 0 {
            self.broken.insert(tried.clone(), now.awake + limits::SPOOL_RETRY);
            truth.strike("runner lost");
        }
        let expired = program.lease.filter(|lease| lease.until.is_some_and(|until| until <= now.boot));
        let over = expired.is_some() || program.ends_at() <= now.awake;
        let written = folder.written.max(program.has_written(now.awake.min(program.ends_at())));
        let grew = written > folder.written;
        folder.written = written;
        truth.written.insert(tried.0.clone(), written);
        if over {
            let killed = expired.is_none() && program.killed.is_some_and(|at| at < program.began + program.lasts);
            let cut_off = killed || expired.is_some();
            let end = End {
                exit: Some(Exit {
                    code: Some(if cut_off { 143 } else { 3 }),
                    signal: None,
                    started_at: 1,
                    ended_at: now.boot.as_millis() as u64,
                }),
                written: streams(written),
                not_started: None,
                timed_out: false,
                killed,
                interrupted: killed && program.interrupted,
                lease_expired: expired.map(|lease| lease.generation),
                dropped: 0,
                escaped: Vec::new(),
                at: now.boot.as_millis() as u64,
            };
            if expired.is_some() {
                truth.strike("lease expired");
            }
            if let Some(id) = &folder.id {
                truth.ends.insert(id.clone(), end.clone());
            }
            folder.program = None;
            folder.end = Some(end.clone());
            self.tell(tried.clone(), RunNews::Ended(end));
        } else if grew {
            self.tell(tried.clone(), RunNews::Grew(streams(written)));
        }
    }

    fn tell(&mut self, tried: Try, news: RunNews) {
        if self.watched.contains(&tried) && !self.broken.contains_key(&tried) {
            self.news.push(Input::Run(tried.0, tried.1, news));
        }
    }
}

fn streams(stdout: u64) -> Streams {
    Streams::from([(Stream::Stdout, stdout)])
}

/// How long a program runs and how much it writes: its arguments.
fn task(operation: &Operation) -> (Duration, u64) {
    let Request::Exec { command: Command::Argv(argv), .. } = &operation.request else { panic!("not a program") };
    let number = |at: usize| argv[at].parse().expect("a number");
    (Duration::from_millis(number(1)), number(2))
}
