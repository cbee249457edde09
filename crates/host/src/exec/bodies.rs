//! What calls were asked and answered, for the person at this machine: only while that is switched on, in memory only, cut,
//! and without what looks like a secret.

use std::collections::VecDeque;

use holdfast_core::id::CallId;
use holdfast_core::limits;
use holdfast_core::redact::{HIDDEN, redact};
use parking_lot::Mutex;
use serde::Serialize;

use super::{Outcome, Run};

/// One call's arguments and result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct CallBody {
    /// The call.
    pub call: CallId,
    /// What was asked, as JSON as far as it goes.
    pub arguments: Excerpt,
    /// How it ended; absent while it runs.
    pub result: Option<Excerpt>,
}

/// The beginning of a text, at most [`limits::BODY_SHOWN`] bytes.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Excerpt {
    /// What is shown of it.
    pub text: String,
    /// Length of the whole, in bytes.
    pub bytes: usize,
    /// Whether more follows.
    pub cut: bool,
}

// As everywhere: neither arguments nor output are printed.
impl std::fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.text.len(), self.bytes)
    }
}

impl Excerpt {
    fn of(text: &str) -> Excerpt {
        let mut shown = redact(beginning(text, limits::BODY_READ));
        let cut = text.len() > limits::BODY_READ || shown.len() > limits::BODY_SHOWN;
        let end = beginning(&shown, limits::BODY_SHOWN).len();
        // Half a mark would say nothing.
        let near = beginning(&shown, end.saturating_sub(HIDDEN.len())).len();
        let end = match shown[near..].find(HIDDEN).map(|at| near + at) {
            Some(mark) if mark < end && mark + HIDDEN.len() > end => mark,
            _ => end,
        };
        shown.truncate(end);
        Excerpt { text: shown, bytes: text.len(), cut }
    }
}

/// At most this many bytes of a text, whole characters.
fn beginning(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The bodies of recent calls, oldest first.
#[derive(Default)]
pub(super) struct Bodies(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    on: bool,
    bodies: VecDeque<CallBody>,
    bytes: usize,
}

impl Bodies {
    /// Switches it on or off; off forgets everything.
    pub(super) fn keep(&self, on: bool) {
        let mut kept = self.0.lock();
        if !on {
            *kept = Kept::default();
        }
        kept.on = on;
    }

    /// A call begins.
    pub(super) fn began(&self, run: &Run) {
        if !self.0.lock().on {
            return;
        }
        let arguments = Excerpt::of(run.arguments.get());
        self.0.lock().put(CallBody { call: run.id.clone(), arguments, result: None });
    }

    /// It ended.
    pub(super) fn ended(&self, call: &CallId, outcome: &Outcome) {
        if !self.0.lock().on {
            return;
        }
        let result = match outcome {
            Ok(result) => Excerpt::of(result.get()),
            Err(error) => {
                let details = error.details.as_ref().map_or("", |details| details.get());
                Excerpt::of(&format!("{error}\n{}", beginning(details, limits::BODY_READ)))
            }
        };
        let mut kept = self.0.lock();
        if let Some(at) = kept.bodies.iter().position(|body| body.call == *call)
            && let Some(mut body) = kept.bodies.remove(at)
        {
            kept.bytes -= body.size();
            body.result = Some(result);
            kept.put(body);
        }
    }

    pub(super) fn get(&self, call: &str) -> Option<CallBody> {
        self.0.lock().bodies.iter().find(|body| body.call.as_str() == call).cloned()
    }
}

impl Kept {
    fn put(&mut self, body: CallBody) {
        if !self.on {
            return;
        }
        self.bytes += body.size();
        self.bodies.push_back(body);
        while self.bytes > limits::BODIES_MAX
            && let Some(oldest) = self.bodies.pop_front()
        {
            self.bytes -= oldest.size();
        }
    }
}

impl CallBody {
    fn size(&self) -> usize {
        size_of::<CallBody>() + self.arguments.text.len() + self.result.as_ref().map_or(0, |result| result.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_after_its_secrets_were_hidden() {
        let short = Excerpt::of("é");
        assert_eq!((short.text.as_str(), short.bytes, short.cut), ("é", 2, false));
        let text = format!("{} password=hunter2hunter2", "x".repeat(limits::BODY_SHOWN - 12));
        let across = Excerpt::of(&text);
        assert_eq!(across.text, format!("{} password=", "x".repeat(limits::BODY_SHOWN - 12)));
        assert_eq!((across.bytes, across.cut), (text.len(), true));
        let long = Excerpt::of(&"é".repeat(limits::BODY_READ));
        assert_eq!((long.text.len(), long.bytes, long.cut), (limits::BODY_SHOWN, 2 * limits::BODY_READ, true));
    }
}
