//! One connection: the order of the handshake, the numbers of its frames, and whether it lives.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use super::{Compat, Settings, SocketId, Traffic};
use crate::id::{CallId, ProbeId};
use crate::limits;
use crate::time::{Due, Now, TimerTable};
use crate::wire::close::{self, Close};
use crate::wire::{
    self, BASE_PROTOCOL, BASE_SERVER, BASE_VERSION, DaemonFrame, Feature, Features, Heartbeat, Hello, LinkRange,
    RelayFrame, RelayProbeResult, Suspending, ToolCall, ToolProgress, WireError,
};

/// What a frame means to the rest of the machine.
pub(super) enum Heard {
    /// Nothing beyond this connection.
    Nothing,
    /// The executor must be probed.
    Probe,
    /// The relay names the calls it waits for.
    Resume(Vec<CallId>),
    /// The connection is proven.
    Ready,
    /// A call.
    Call(ToolCall),
    /// A call that cannot be understood; answered if its id can be.
    BadCall(Option<CallId>),
    /// Nobody waits for this call.
    Cancel(CallId),
    /// The relay has read everything sent before the heartbeat of this number, and says whether another instance came with
    /// this device's credential.
    Pong { beat: Option<u64>, in_use: bool },
    /// A result arrived; whether somebody waited for it.
    Acked(CallId, bool),
    /// The relay keeps the calls while this machine sleeps.
    Held,
}

/// Why the machine ends a connection by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// What to say; without it the socket is dropped.
    pub close: Option<Close>,
    pub why: Why,
}

/// The kind of end, for back-off, warnings and texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// The peer broke the protocol.
    Protocol(&'static str),
    /// No common link version.
    Incompatible,
    /// A frame is missing.
    Gap,
    /// Too long without life or progress.
    Dead(&'static str),
    /// The relay said an error of this connection.
    Relay(Cow<'static, str>),
}

impl End {
    pub fn protocol(what: &'static str) -> End {
        End { close: Some((1002, what)), why: Why::Protocol(what) }
    }
    fn dead(what: &'static str) -> End {
        // No close frame could be read in time, but one that is lets a base relay detach our calls before we are back.
        End { close: Some((1000, "stale daemon connection")), why: Why::Dead(what) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `hello` is owed (it waits for `welcome`, except on the base wire).
    Greeting,
    /// `hello` was sent.
    Introduced,
    /// `hello_ack` came; the probe has not been answered.
    Probing,
    /// The probe was answered.
    Probed,
    /// `resume_calls` came.
    Resuming,
    /// `ready_ack` came.
    Ready,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Handshake,
    Readiness,
    Beat,
    Silence,
    /// Something is half read.
    Reading,
    /// Something is half written.
    Writing,
}

/// One direction of a transfer that has to keep a pace.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    moving: bool,
    bytes: u64,
}

/// One open WebSocket.
pub(super) struct Session {
    pub socket: SocketId,
    pub features: Features,
    /// Grace the relay named (feature `grace`).
    pub grace: Option<Duration>,
    phase: Phase,
    compat: Compat,
    timers: TimerTable<Timer>,
    probe: Option<ProbeId>,
    number_in: u64,
    number_out: u64,
    last_read: Duration,
    reading: Pace,
    writing: Pace,
    control: VecDeque<DaemonFrame>,
    beats: u64,
    hushed: bool,
}

impl Session {
    /// A socket that just opened.
    pub fn new(now: Now, socket: SocketId, settings: &Settings) -> Session {
        let mut session = Session {
            socket,
            features: Features::NONE,
            grace: None,
            phase: Phase::Greeting,
            compat: settings.compat,
            timers: TimerTable::default(),
            probe: None,
            number_in: 0,
            number_out: 0,
            last_read: now.boot,
            reading: Pace::default(),
            writing: Pace::default(),
            control: VecDeque::new(),
            beats: 0,
            hushed: false,
        };
        session.timers.set(Timer::Handshake, Due::boot(now, limits::HANDSHAKE_TIMEOUT));
        if settings.compat == Compat::Base {
            session.introduce(settings, None);
        }
        session
    }

    /// Whether calls may run over it.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Number of the last heartbeat queued; a pong with a greater number came after everything written until now.
    pub fn beats(&self) -> u64 {
        self.beats
    }

    /// Queues a frame ahead of results.
    pub fn queue(&mut self, frame: DaemonFrame) {
        self.control.push_back(frame);
    }

    /// Queues progress; an older report of the same call that was not written yet is replaced.
    pub fn queue_progress(&mut self, progress: ToolProgress) {
        let same = |frame: &&mut DaemonFrame| matches!(frame, DaemonFrame::ToolProgress(p) if p.id == progress.id);
        match self.control.iter_mut().find(same) {
            Some(older) => *older = DaemonFrame::ToolProgress(progress),
            None => self.control.push_back(DaemonFrame::ToolProgress(progress)),
        }
    }

    /// Announces sleep ahead of everything. The relay holds our calls until the next ordinary frame, so nothing else is
    /// written until [`Session::unhush`].
    pub fn hush(&mut self) {
        self.control.push_front(DaemonFrame::Suspending(Suspending {}));
        self.hushed = true;
    }

    /// Whether only an announcement of sleep may be written.
    pub fn is_hushed(&self) -> bool {
        self.hushed
    }

    /// There was no sleep, or it is over.
    pub fn unhush(&mut self, now: Now) {
        if std::mem::take(&mut self.hushed) {
            self.beat(now);
        }
    }

    /// The executor answered the probe.
    pub fn probed(&mut self) {
        if let (Phase::Probing, Some(id)) = (self.phase, self.probe.take()) {
            self.phase = Phase::Probed;
            self.control.push_back(DaemonFrame::RelayProbeResult(RelayProbeResult { id }));
        }
    }

    /// Writes a heartbeat now and expects life again within the usual time.
    pub fn beat(&mut self, now: Now) {
        let ms = u64::try_from(now.boot.as_millis()).unwrap_or(u64::MAX);
        self.beats = ms.max(self.beats + 1);
        self.control.push_back(DaemonFrame::Heartbeat(Heartbeat { ts: Some(self.beats.into()) }));
        self.timers.set(Timer::Beat, Due::boot(now, self.beat_interval()));
    }

    /// Boot time of the last byte read.
    pub fn last_read(&self) -> Duration {
        self.last_read
    }

    /// After a sleep: silence so far means nothing.
    pub fn excuse_silence(&mut self, now: Now) {
        self.alive(now);
        for (timer, pace) in [(Timer::Reading, &mut self.reading), (Timer::Writing, &mut self.writing)] {
            pace.bytes = 0;
            if pace.moving {
                self.timers.set(timer, Due::boot(now, limits::TRANSFER_WINDOW));
            }
        }
    }

    /// The next control frame as text.
    pub fn next_control(&mut self, now: Now) -> Option<String> {
        if self.hushed && !matches!(self.control.front(), Some(DaemonFrame::Suspending(_))) {
            return None;
        }
        let frame = self.control.pop_front()?;
        Some(self.number(now, |n| frame.encode(n)))
    }

    /// Writes one frame with the next number of this connection.
    pub fn number(&mut self, now: Now, write: impl FnOnce(Option<u64>) -> String) -> String {
        let n = self.features.has(Feature::Seq).then(|| {
            self.number_out += 1;
            self.number_out
        });
        if !self.writing.moving {
            self.writing = Pace { moving: true, bytes: 0 };
            self.timers.set(Timer::Writing, Due::boot(now, limits::TRANSFER_WINDOW));
        }
        write(n)
    }

    /// Bytes went through the socket.
    pub fn traffic(&mut self, now: Now, traffic: Traffic) {
        if traffic.read > 0 {
            self.alive(now);
            self.reading.bytes += traffic.read;
            if !self.reading.moving {
                self.reading.moving = true;
                self.timers.set(Timer::Reading, Due::boot(now, limits::TRANSFER_WINDOW));
            }
        }
        self.writing.bytes += traffic.written;
        if traffic.drained {
            self.writing = Pace::default();
            self.timers.stop(&Timer::Writing);
        }
    }

    /// A whole message of any kind came.
    pub fn message(&mut self, now: Now) {
        self.alive(now);
        self.reading = Pace::default();
        self.timers.stop(&Timer::Reading);
    }

    /// One frame from the relay.
    pub fn frame(&mut self, now: Now, text: &str, settings: &Settings) -> Result<Heard, End> {
        self.message(now);
        let read = match RelayFrame::decode(text) {
            Ok(read) => read,
            Err(WireError::Malformed("tool_call")) if self.is_ready() => {
                self.check_number(number_of(text))?;
                return Ok(Heard::BadCall(id_of(text)));
            }
            Err(error) => return Err(unreadable(error)),
        };
        self.check_number(read.n)?;
        match (read.frame, self.phase) {
            (RelayFrame::Error(error), _) => Err(End { close: None, why: Why::Relay(relay_error(&error.error)) }),
            (RelayFrame::Welcome(welcome), Phase::Greeting | Phase::Introduced) => {
                check_identity(settings, &welcome.server, &welcome.version, welcome.link)?;
                if self.phase == Phase::Greeting {
                    self.introduce(settings, welcome.features);
                }
                Ok(Heard::Nothing)
            }
            (RelayFrame::HelloAck(ack), Phase::Introduced) => {
                check_identity(settings, &ack.server, &ack.version, ack.link)?;
                self.phase = Phase::Probing;
                self.grace = ack.grace_ms.filter(|_| self.features.has(Feature::Grace)).map(Duration::from_millis);
                self.timers.stop(&Timer::Handshake);
                self.timers.set(Timer::Readiness, Due::boot(now, limits::READINESS_TIMEOUT));
                self.timers.set(Timer::Beat, Due::boot(now, self.beat_interval()));
                self.alive(now);
                Ok(Heard::Nothing)
            }
            (RelayFrame::RelayProbe(probe), Phase::Probing) if self.probe.is_none() => {
                self.probe = Some(probe.id);
                Ok(Heard::Probe)
            }
            (RelayFrame::ResumeCalls(resume), Phase::Probed) => {
                let most = match self.compat {
                    Compat::Base => limits::BASE_RESUME_IDS_MAX,
                    Compat::Holdfast => limits::RESUME_IDS_MAX,
                };
                let mut ids = resume.ids.clone();
                ids.sort_unstable();
                ids.dedup();
                if resume.ids.len() > most || ids.len() < resume.ids.len() {
                    return Err(End::protocol("invalid resume_calls"));
                }
                self.phase = Phase::Resuming;
                Ok(Heard::Resume(resume.ids))
            }
            (RelayFrame::ReadyAck(ack), Phase::Resuming) => {
                check_identity(settings, &ack.server, &ack.version, ack.link)?;
                self.phase = Phase::Ready;
                self.timers.stop(&Timer::Readiness);
                Ok(Heard::Ready)
            }
            (RelayFrame::ToolCall(call), Phase::Ready) => Ok(Heard::Call(call)),
            (RelayFrame::CancelCall(cancel), Phase::Ready) => Ok(Heard::Cancel(cancel.id)),
            (RelayFrame::Pong(pong), _) => {
                Ok(Heard::Pong { beat: pong.ts.and_then(|ts| ts.as_u64()), in_use: pong.in_use })
            }
            (RelayFrame::ToolResultAck(ack), Phase::Ready) if self.features.has(Feature::Ack) => {
                Ok(Heard::Acked(ack.id, ack.matched))
            }
            (RelayFrame::SuspendingAck(_), Phase::Ready) if self.features.has(Feature::Suspend) => Ok(Heard::Held),
            // Repeats after their time are harmless and, on the base wire, ignored.
            (RelayFrame::Welcome(_) | RelayFrame::HelloAck(_), phase) if phase != Phase::Greeting => Ok(Heard::Nothing),
            _ => Err(End::protocol("message out of order")),
        }
    }

    /// Does what is due; the end of the connection, if that is due.
    pub fn handle_timeout(&mut self, now: Now) -> Option<End> {
        while let Some(timer) = self.timers.expired(now) {
            let end = match timer {
                Timer::Handshake => Some(End::dead("handshake timeout")),
                Timer::Readiness => Some(End::dead("readiness timeout")),
                Timer::Silence => Some(End::dead("no life")),
                Timer::Beat if self.hushed => {
                    self.timers.set(Timer::Beat, Due::boot(now, self.beat_interval()));
                    None
                }
                Timer::Beat => {
                    let silent = now.boot.saturating_sub(self.last_read);
                    if !self.features.has(Feature::Live) && silent >= limits::BASE_DAEMON_SILENCE {
                        Some(End::dead("no life"))
                    } else {
                        self.beat(now);
                        None
                    }
                }
                Timer::Reading | Timer::Writing => self.pace(now, timer),
            };
            if end.is_some() {
                return end;
            }
        }
        None
    }

    /// Time until something is due.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    fn pace(&mut self, now: Now, timer: Timer) -> Option<End> {
        let pace = if timer == Timer::Reading { &mut self.reading } else { &mut self.writing };
        if wire::too_slow(std::mem::take(&mut pace.bytes)) && self.features.has(Feature::Live) {
            return Some(End::dead("transfer too slow"));
        }
        self.timers.set(timer, Due::boot(now, limits::TRANSFER_WINDOW));
        None
    }

    fn introduce(&mut self, settings: &Settings, offered: Option<Features>) {
        let ours = settings.compat == Compat::Holdfast;
        self.features = if ours { settings.features.and(offered.unwrap_or_default()) } else { Features::NONE };
        self.phase = Phase::Introduced;
        self.control.push_back(DaemonFrame::Hello(Hello {
            instance_id: settings.instance.clone(),
            tools: settings.advertised.tools_for(ours),
            policy: settings.advertised.policy.clone(),
            protocol_versions: vec![BASE_PROTOCOL.to_owned()],
            link: ours.then_some(LinkRange::OURS),
            features: ours.then_some(self.features),
            max_calls: ours.then_some(limits::DAEMON_CALLS_MAX as u32),
            version: ours.then(|| settings.version.clone()),
        }));
    }

    fn beat_interval(&self) -> Duration {
        if self.features.has(Feature::Live) { limits::HEARTBEAT } else { limits::BASE_HEARTBEAT }
    }

    fn alive(&mut self, now: Now) {
        self.last_read = now.boot;
        if self.features.has(Feature::Live) {
            self.timers.set(Timer::Silence, Due::boot(now, limits::SILENCE_DEAD));
        }
    }

    fn check_number(&mut self, n: Option<u64>) -> Result<(), End> {
        if self.phase == Phase::Greeting {
            // Nothing is agreed yet; a relay that offers numbers may begin with its welcome.
            self.number_in = n.unwrap_or(0);
        } else if self.features.has(Feature::Seq) {
            if n != Some(self.number_in + 1) {
                return Err(End { close: Some(close::FRAME_GAP), why: Why::Gap });
            }
            self.number_in += 1;
        }
        Ok(())
    }
}

fn check_identity(settings: &Settings, server: &str, version: &str, link: Option<LinkRange>) -> Result<(), End> {
    let fits = match settings.compat {
        Compat::Base => server == BASE_SERVER && version == BASE_VERSION,
        Compat::Holdfast => link.is_some_and(|range| range.overlaps(LinkRange::OURS)),
    };
    if fits { Ok(()) } else { Err(End { close: Some((1000, "no common link version")), why: Why::Incompatible }) }
}

/// The end for what cannot be read.
pub(super) fn unreadable(error: WireError) -> End {
    match error {
        WireError::TooLarge => End { close: Some(close::TOO_LARGE), why: Why::Protocol("message too large") },
        WireError::InvalidUtf8 => End { close: Some(close::INVALID_UTF8), why: Why::Protocol("invalid UTF-8") },
        WireError::InvalidJson => End { close: Some(close::INVALID_JSON), why: Why::Protocol("invalid JSON") },
        WireError::NotAnObject => End::protocol("message is not an object"),
        WireError::UnknownType => End::protocol("unknown message type"),
        WireError::Malformed(_) => End::protocol("malformed message"),
    }
}

/// Codes are the peer's text; only a plain one is repeated to people.
fn relay_error(code: &str) -> Cow<'static, str> {
    let plain = code.len() <= 64 && code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain { Cow::Owned(code.to_owned()) } else { Cow::Borrowed("an error without a plain code") }
}

#[derive(serde::Deserialize)]
struct Loose {
    id: Option<serde_json::Value>,
    n: Option<u64>,
}

fn id_of(text: &str) -> Option<CallId> {
    let loose: Loose = serde_json::from_str(text).ok()?;
    loose.id?.as_str().and_then(|id| CallId::parse(id).ok())
}

fn number_of(text: &str) -> Option<u64> {
    serde_json::from_str::<Loose>(text).ok()?.n
}
