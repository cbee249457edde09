//! Decides what is read of which file, and when.

use std::collections::VecDeque;
use std::time::Duration;

use super::cursor::{Cursor, Likeness, Look, Place};
use super::io::{Binding, FollowView, Input, Output, Start, Told};
use super::position::{Position, Seen, Until};
use crate::limits;
use crate::time::{Due, Now, TimerTable};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Poll,
}

/// What was asked for and not answered yet.
#[derive(Debug)]
pub(super) enum Doing {
    Nothing,
    Looking,
    /// The file that the cursor names, while this one stands at the path.
    Finding(Cursor, Option<Look>),
    /// The end of the last whole line before this byte.
    Placing(Look, u64),
    Reading,
    /// Files that came and went between two looks.
    Beside,
    /// Somebody keeps what was given out.
    Delivering,
}

#[derive(Debug)]
pub(super) enum At {
    /// No file was seen yet.
    Start(Start),
    File(Position),
}

/// What happens at the end.
#[derive(Debug)]
pub(super) enum Then {
    LetGo,
    Bind(Binding),
}

#[derive(Debug)]
pub(super) struct Bound {
    pub binding: Binding,
    pub at: At,
    pub doing: Doing,
    /// Something changed while something else was under way.
    pub again: bool,
    pub ending: Option<Then>,
    /// The last look was made after the end was asked for, so that there is no further one.
    pub last_look: bool,
    /// It was told that there is no file yet.
    pub awaited: bool,
    pub skipped: u64,
    pub trouble: Option<String>,
    /// Reads that failed one after another.
    pub failures: u32,
}

/// Follows one transcript after another. `handle`, drain `poll_output`, wait for `poll_timeout`.
#[derive(Debug, Default)]
pub struct Follow {
    pub(super) bound: Option<Bound>,
    timers: TimerTable<Timer>,
    pub(super) out: VecDeque<Output>,
}

impl Follow {
    /// One that follows nothing.
    pub fn new() -> Follow {
        Follow::default()
    }

    /// Something happened.
    pub fn handle(&mut self, now: Now, input: Input) {
        match input {
            Input::Bind(binding) => self.bind(now, binding),
            Input::Finish => match &mut self.bound {
                Some(_) => self.end(now, Then::LetGo),
                None => self.out.push_back(Output::Finished),
            },
            Input::Changed => self.changed(),
            Input::Looked(look) => self.looked(now, look),
            Input::Found(look) => self.found(now, look),
            Input::Beside { between, more } => self.beside(now, between, more),
            Input::Bytes { place, offset, bytes } => self.bytes(now, place, offset, &bytes),
            Input::Failed(why) => self.failed(now, why),
            Input::Taken => {
                if let Some(bound) = &mut self.bound
                    && matches!(bound.doing, Doing::Delivering)
                {
                    self.read_on(now);
                }
            }
        }
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some(Timer::Poll) = self.timers.expired(now) {
            self.changed();
        }
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Time until [`Follow::handle_timeout`] has something to do.
    pub fn poll_timeout(&self, now: Now) -> Option<Duration> {
        self.timers.earliest(now)
    }

    /// What is followed.
    pub fn snapshot(&self) -> Option<FollowView> {
        self.bound.as_ref().map(|bound| FollowView {
            transcript: bound.binding.transcript.clone(),
            cursor: match &bound.at {
                At::File(position) => Some(position.cursor.clone()),
                At::Start(_) => None,
            },
            skipped: bound.skipped,
            trouble: bound.trouble.clone(),
        })
    }

    fn bind(&mut self, now: Now, binding: Binding) {
        match &mut self.bound {
            Some(bound) if bound.binding.transcript == binding.transcript => bound.ending = None,
            Some(_) => self.end(now, Then::Bind(binding)),
            None => self.begin(binding),
        }
    }

    fn begin(&mut self, binding: Binding) {
        self.bound = Some(Bound {
            at: At::Start(binding.start.clone()),
            binding,
            doing: Doing::Nothing,
            again: false,
            ending: None,
            last_look: false,
            awaited: false,
            skipped: 0,
            trouble: None,
            failures: 0,
        });
        self.out.push_back(Output::Changed);
        self.changed();
    }

    fn end(&mut self, now: Now, then: Then) {
        let Some(bound) = &mut self.bound else { return };
        bound.ending = Some(then);
        bound.again = true;
        if matches!(bound.doing, Doing::Nothing) {
            self.settle(now);
        }
    }

    fn changed(&mut self) {
        let Some(bound) = &mut self.bound else { return };
        if matches!(bound.doing, Doing::Nothing) {
            (bound.doing, bound.last_look) = (Doing::Looking, bound.ending.is_some());
            self.timers.stop(&Timer::Poll);
            self.out.push_back(Output::Look(bound.binding.transcript.clone()));
        } else {
            bound.again = true;
        }
    }

    fn looked(&mut self, now: Now, look: Option<Look>) {
        let Some(bound) = self.bound.as_mut().filter(|b| matches!(b.doing, Doing::Looking)) else { return };
        bound.doing = Doing::Nothing;
        bound.trouble = None;
        match (&mut bound.at, look) {
            (At::Start(Start::At(cursor)), look) => {
                let cursor = cursor.clone();
                self.return_to(now, cursor, look);
            }
            (At::Start(start), None) => {
                // Everything in a file that comes later is new.
                *start = Start::Beginning;
                self.awaited();
                self.settle(now);
            }
            (At::Start(start), Some(look)) => {
                let (generation, size) = (bound.binding.generation, look.size);
                match start {
                    Start::Recent(most) if size > *most => self.place(now, look, size),
                    Start::Beginning | Start::Recent(_) => self.stand(now, Position::new(&look, generation, 0)),
                    Start::End | Start::At(_) => self.place(now, look, size),
                }
            }
            (At::File(position), None) => {
                position.until = Until::Empty;
                self.read_on(now);
            }
            (At::File(position), Some(look)) if look.place == position.place() => {
                position.complete = 0;
                let dropped = std::mem::take(&mut position.next);
                self.out.extend(dropped.iter().map(|d| Output::Close(d.place)));
                match position.look(&look) {
                    Seen::Same => {}
                    Seen::Truncated => self.out.push_back(Output::Told(Told::Truncated)),
                    Seen::Replaced => self.out.push_back(Output::Told(Told::Replaced)),
                }
                self.read_on(now);
            }
            (At::File(position), Some(look)) => {
                position.until = Until::Empty;
                let dropped = position.follow_by(look);
                self.gap(dropped.is_some());
                self.out.extend(dropped.map(Output::Close));
                self.read_on(now);
            }
        }
    }

    fn bytes(&mut self, now: Now, place: Place, offset: u64, bytes: &[u8]) {
        let Some(bound) = &mut self.bound else { return };
        match (&bound.doing, &mut bound.at) {
            (Doing::Placing(look, from), _) if look.place == place && *from == offset => {
                let look = look.clone();
                match bytes.iter().rposition(|b| *b == b'\n') {
                    Some(end) => {
                        let generation = bound.binding.generation;
                        self.stand(now, Position::new(&look, generation, offset + end as u64 + 1));
                    }
                    None => self.place(now, look, offset),
                }
            }
            (Doing::Reading, At::File(position)) if position.place() == place && position.read_to() == offset => {
                if bytes.is_empty() {
                    return self.at_end(now);
                }
                bound.failures = 0;
                let mut told = Vec::new();
                let (entries, moved) = position.read(bytes, &mut told);
                bound.skipped += told.iter().map(|told| told.lines()).sum::<u64>();
                self.out.extend(told.into_iter().map(Output::Told));
                if moved {
                    let cursor = position.cursor.clone();
                    position.fresh = false;
                    bound.doing = Doing::Delivering;
                    self.out.push_back(Output::Entries { entries, cursor });
                    self.out.push_back(Output::Changed);
                } else {
                    self.read_on(now);
                }
            }
            _ => {}
        }
    }

    fn failed(&mut self, now: Now, why: String) {
        let Some(bound) = &mut self.bound else { return };
        let reading = matches!(bound.doing, Doing::Reading);
        let beside = matches!(bound.doing, Doing::Beside);
        if let (true, At::File(position)) = (beside, &mut bound.at) {
            position.complete = 1;
        }
        if matches!(bound.doing, Doing::Nothing | Doing::Delivering) {
            return;
        }
        // Not at once: it would fail again.
        bound.again = false;
        bound.failures += 1;
        bound.trouble = Some(why);
        self.out.push_back(Output::Changed);
        // A file that was replaced and cannot be read holds up the one that stands there now, but not for ever.
        let given_up = reading && bound.failures >= limits::TRANSCRIPT_TRIES;
        let is_followed = matches!(&bound.at, At::File(position) if !position.next.is_empty());
        self.gap(beside || (given_up && is_followed));
        if given_up { self.at_end(now) } else { self.settle(now) }
    }

    /// Goes on reading, if there is more.
    pub(super) fn read_on(&mut self, now: Now) {
        let Some(bound) = &mut self.bound else { return };
        let At::File(position) = &mut bound.at else { return self.settle(now) };
        if position.fresh {
            position.fresh = false;
            bound.doing = Doing::Delivering;
            self.out.push_back(Output::Entries { entries: Vec::new(), cursor: position.cursor.clone() });
            return;
        }
        match position.until {
            Until::Size(size) if position.read_to() >= size => self.settle(now),
            _ => {
                bound.doing = Doing::Reading;
                let (place, offset) = (position.place(), position.read_to());
                self.out.push_back(Output::Read { place, offset, max: limits::TRANSCRIPT_READ });
            }
        }
    }

    /// There is no more in the open file. If another one stands at the path, it is next.
    fn at_end(&mut self, now: Now) {
        let Some(bound) = &mut self.bound else { return };
        let At::File(position) = &mut bound.at else { return };
        if position.next.is_empty() {
            return self.settle(now);
        }
        let mut told = Vec::new();
        let rest = position.rest(&mut told);
        bound.skipped += told.iter().map(|told| told.lines()).sum::<u64>();
        self.out.extend(told.into_iter().map(Output::Told));
        if let Some(entry) = rest {
            bound.doing = Doing::Delivering;
            self.out.push_back(Output::Entries { entries: vec![entry], cursor: position.cursor.clone() });
            return;
        }
        if let Some(next) = position.next.front().filter(|_| position.complete == 0) {
            let (path, left, next) = (bound.binding.transcript.clone(), position.place(), next.place);
            bound.doing = Doing::Beside;
            return self.out.push_back(Output::Beside { path, left, next });
        }
        let (cursor, complete) = (position.cursor.clone(), position.complete - 1);
        let mut after = std::mem::take(&mut position.next);
        let Some(next) = after.pop_front() else { return };
        self.out.push_back(Output::Close(cursor.file.place));
        if cursor.file.likeness(&next) == Likeness::Copy {
            return self.stand_near(now, &cursor, &next, after);
        }
        self.out.push_back(Output::Told(Told::Rotated));
        self.stand(now, Position::new(&next, cursor.generation + 1, 0).before(after, complete));
    }

    /// These come before the next file.
    fn beside(&mut self, now: Now, between: Vec<Look>, more: bool) {
        let Some(bound) = self.bound.as_mut().filter(|bound| matches!(bound.doing, Doing::Beside)) else { return };
        let At::File(position) = &mut bound.at else { return };
        let none = between.is_empty();
        // Where there are more, it is looked again after the last of these.
        position.complete = between.len() + usize::from(!more || between.is_empty());
        for look in between.into_iter().rev() {
            position.next.push_front(look);
        }
        self.gap(more && none);
        self.at_end(now);
    }

    /// A part may be missing, perhaps.
    pub(super) fn gap(&mut self, there_is: bool) {
        if there_is {
            self.out.push_back(Output::Told(Told::Gap));
        }
    }

    /// There is no file yet, which is told once.
    pub(super) fn awaited(&mut self) {
        if let Some(bound) = &mut self.bound
            && !std::mem::replace(&mut bound.awaited, true)
        {
            self.out.push_back(Output::Told(Told::Awaited));
        }
    }

    /// Nothing is left to read for now.
    pub(super) fn settle(&mut self, now: Now) {
        let Some(bound) = &mut self.bound else { return };
        bound.doing = Doing::Nothing;
        let ends = bound.ending.is_some() && bound.last_look;
        if std::mem::take(&mut bound.again) && !ends {
            return self.changed();
        }
        self.timers.set(Timer::Poll, Due::boot(now, limits::TRANSCRIPT_POLL));
        let Some(then) = bound.ending.take() else { return };
        self.timers.stop(&Timer::Poll);
        if let Some(Bound { at: At::File(position), .. }) = self.bound.take() {
            self.out.extend(position.next.iter().map(|next| Output::Close(next.place)));
            self.out.push_back(Output::Close(position.place()));
        }
        self.out.push_back(Output::Changed);
        match then {
            Then::LetGo => self.out.push_back(Output::Finished),
            Then::Bind(binding) => self.begin(binding),
        }
    }
}
