//! Finds where a transcript is begun or gone on with.

use std::collections::VecDeque;

use super::cursor::{Cursor, Likeness, Look};
use super::follow::{At, Doing, Follow};
use super::io::{Output, Told};
use super::position::{Position, Until};
use crate::limits;
use crate::time::Now;

impl Follow {
    /// Back to where a transcript was left.
    pub(super) fn return_to(&mut self, now: Now, cursor: Cursor, look: Option<Look>) {
        let Some(bound) = &mut self.bound else { return };
        match look {
            Some(look) if look.place == cursor.file.place => self.stand_near(now, &cursor, &look, VecDeque::new()),
            look => {
                self.out.push_back(Output::Find(bound.binding.transcript.clone(), cursor.file.clone()));
                bound.doing = Doing::Finding(cursor, look);
            }
        }
    }

    /// In the file at the path, if what the cursor says is no other one.
    pub(super) fn stand_near(&mut self, now: Now, cursor: &Cursor, look: &Look, after: VecDeque<Look>) {
        let (told, generation, offset) = match cursor.file.likeness(look) {
            Likeness::Other => (Some(Told::Replaced), cursor.generation + 1, 0),
            _ if look.size < cursor.offset => (Some(Told::Truncated), cursor.generation + 1, look.size),
            _ => (None, cursor.generation, cursor.offset),
        };
        self.gap(told.is_some());
        self.out.extend(told.map(Output::Told));
        self.stand(now, Position::new(look, generation, offset).before(after, 0));
    }

    pub(super) fn found(&mut self, now: Now, found: Option<Look>) {
        let Some(bound) = self.bound.as_mut().filter(|b| matches!(b.doing, Doing::Finding(..))) else { return };
        let Doing::Finding(cursor, next) = std::mem::replace(&mut bound.doing, Doing::Nothing) else { return };
        match (found, next) {
            (Some(old), next) if cursor.file.likeness(&old) == Likeness::Same && old.size >= cursor.offset => {
                let mut position = Position::new(&old, cursor.generation, cursor.offset);
                position.until = Until::Empty;
                position.next = next.into_iter().collect();
                self.stand(now, position);
            }
            (other, Some(look)) => {
                self.out.extend(other.map(|o| Output::Close(o.place)));
                self.stand_near(now, &cursor, &look, VecDeque::new());
            }
            (other, None) => {
                self.out.extend(other.map(|o| Output::Close(o.place)));
                self.awaited();
                self.settle(now);
            }
        }
    }

    /// Looks backwards for the end of the last whole line before this byte.
    pub(super) fn place(&mut self, now: Now, look: Look, before: u64) {
        let Some(bound) = &mut self.bound else { return };
        let generation = bound.binding.generation;
        if before == 0 {
            return self.stand(now, Position::new(&look, generation, 0));
        }
        if look.size - before > limits::TRANSCRIPT_LINE_MAX as u64 {
            return self.stand(now, Position::inside(&look, generation));
        }
        let offset = before.saturating_sub(limits::TRANSCRIPT_BACK as u64);
        let max = usize::try_from(before - offset).unwrap_or(limits::TRANSCRIPT_BACK);
        self.out.push_back(Output::Read { place: look.place, offset, max });
        bound.doing = Doing::Placing(look, offset);
    }

    pub(super) fn stand(&mut self, now: Now, position: Position) {
        let Some(bound) = &mut self.bound else { return };
        bound.at = At::File(position);
        self.read_on(now);
    }
}
