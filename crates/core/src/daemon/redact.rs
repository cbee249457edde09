//! What may be printed of the daemon's values: never arguments, results or frames.

use std::fmt::{Debug, Formatter, Result};

use super::{Daemon, Input, Output, Progress, Run};

impl Debug for Input<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Input::Start => f.write_str("Start"),
            Input::Stop { patient } => write!(f, "Stop {{ patient: {patient} }}"),
            Input::Wake => f.write_str("Wake"),
            Input::NetworkChanged => f.write_str("NetworkChanged"),
            Input::SleepAnnounced => f.write_str("SleepAnnounced"),
            Input::Cut(lasting) => write!(f, "Cut({lasting:?})"),
            Input::Advertise(advertised) => write!(f, "Advertise({} tools)", advertised.tools.len()),
            Input::Opened(socket) => write!(f, "Opened({})", socket.0),
            Input::Refused(socket, error) => write!(f, "Refused({}, {error:?})", socket.0),
            Input::Frame(socket, text) => write!(f, "Frame({}, {} bytes)", socket.0, text.len()),
            Input::Unreadable(socket, error) => write!(f, "Unreadable({}, {error})", socket.0),
            Input::Control(socket) => write!(f, "Control({})", socket.0),
            Input::Traffic(socket, traffic) => write!(f, "Traffic({}, {traffic:?})", socket.0),
            Input::Closed(socket, word) => write!(f, "Closed({}, {word:?})", socket.0),
            Input::Probed(socket) => write!(f, "Probed({})", socket.0),
            Input::Finished(id, outcome) => {
                write!(f, "Finished({id}, {})", outcome.as_ref().map_or_else(|error| error.code.as_str(), |_| "done"))
            }
            Input::Progress(id, progress) => write!(f, "Progress({id}, {progress:?})"),
            Input::Stored(id, ok) => write!(f, "Stored({id}, {ok})"),
            Input::Loaded(id, text) => write!(f, "Loaded({id}, {:?} bytes)", text.as_ref().map(|text| text.len())),
        }
    }
}

impl Debug for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Output::Dial(socket) => write!(f, "Dial({})", socket.0),
            Output::Close(socket, code, reason) => write!(f, "Close({}, {code}, {reason:?})", socket.0),
            Output::Drop(socket) => write!(f, "Drop({})", socket.0),
            Output::Probe(socket) => write!(f, "Probe({})", socket.0),
            Output::Run(run) => write!(f, "{run:?}"),
            Output::Cancel(id, why) => write!(f, "Cancel({id}, {why:?})"),
            Output::Store(id, text) => write!(f, "Store({id}, {} bytes)", text.len()),
            Output::Load(id) => write!(f, "Load({id})"),
            Output::Remove(id) => write!(f, "Remove({id})"),
            Output::Step(step) => write!(f, "Step({}, {:?}, {:?})", step.id, step.step, step.code),
            Output::Told(told) => write!(f, "{told:?}"),
            Output::Changed => f.write_str("Changed"),
            Output::AllowSleep => f.write_str("AllowSleep"),
            Output::Stopped => f.write_str("Stopped"),
        }
    }
}

impl Debug for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Run({}, {}, {:?})", self.id, self.tool, self.budget)
    }
}

impl Debug for Progress {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} of {:?}", self.progress, self.total)
    }
}

impl Debug for Daemon {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let open: Vec<u64> = self.serving.iter().chain(&self.candidate).map(|session| session.socket.0).collect();
        let (state, _) = self.outage.state();
        f.debug_struct("Daemon").field("state", &state).field("sockets", &open).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::daemon::SocketId;
    use crate::id::CallId;

    #[test]
    fn neither_frames_nor_results_are_printed() {
        let id = CallId::parse("call_abcdefgh").expect("an id");
        let raw = RawValue::from_string("\"secret\"".into()).expect("json");
        let printed = format!(
            "{:?} {:?} {:?}",
            Input::Frame(SocketId(1), "secret"),
            Input::Finished(id.clone(), Ok(raw)),
            Output::Store(id, "secret".into()),
        );
        assert_eq!(printed, "Frame(1, 6 bytes) Finished(call_abcdefgh, done) Store(call_abcdefgh, 6 bytes)");
    }
}
