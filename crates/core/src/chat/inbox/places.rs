//! Places in which nobody wrote before: threads of channels that are listened to, and conversations with one person alone.

use std::collections::BTreeMap;

use super::arrivals::Catching;
use super::io::{Output, Thread, Told};
use super::machine::{Inbox, Timer};
use crate::chat::{ChannelId, Incoming, MessageId, UserId};
use crate::limits;
use crate::time::{Due, Now};

/// Threads are looked for. What else was missed is fetched after that: it moves the mark from which threads are fetched, and a
/// crash in between would leave a gap.
#[derive(Debug, Default)]
pub(super) struct Finding {
    /// What was seen in the channels that have them, before anything missed was fetched.
    after: BTreeMap<ChannelId, MessageId>,
    /// Channels whose missed messages are fetched then.
    waiting: Vec<ChannelId>,
    under_way: bool,
    /// The connection went and came back: what is found may be old.
    again: bool,
}

/// Conversations with people who may have one.
#[derive(Debug, Default)]
pub(super) struct Privately {
    /// Those that are known.
    known: BTreeMap<UserId, ChannelId>,
    /// Those that are looked for, and whether something may have been missed there.
    sought: BTreeMap<UserId, bool>,
    /// Whoever may have one again: what was written meanwhile does not count.
    anew: Vec<UserId>,
    /// What is written from now on has later ids.
    moment: Option<MessageId>,
}

/// Services number their messages upwards.
fn order(message: &MessageId) -> (usize, &str) {
    (message.as_str().len(), message.as_str())
}

impl Inbox {
    /// Missed messages of these channels are fetched once it is known which threads there are.
    pub(super) fn find_threads(&mut self, now: Now, waiting: Vec<ChannelId>) {
        let bound = self.seen.iter().filter(|(channel, _)| self.access.rules.contains_key(*channel));
        let bound: Vec<_> = bound.map(|(channel, seen)| (channel.clone(), seen.clone())).collect();
        if bound.is_empty() {
            return waiting.into_iter().for_each(|channel| self.fetch(now, channel));
        }
        let finding = self.finding.get_or_insert_default();
        finding.waiting.extend(waiting);
        for (channel, seen) in bound {
            // What was not found out yet goes on from where it was.
            finding.after.entry(channel).or_insert(seen);
        }
        finding.again = finding.under_way;
        self.look_for_threads();
    }

    pub(super) fn look_for_threads(&mut self) {
        if let Some(finding) = self.finding.as_mut().filter(|finding| !finding.under_way) {
            finding.under_way = true;
            self.timers.stop(&Timer::Threads);
            self.out.push_back(Output::FindThreads(finding.after.keys().cloned().collect()));
        }
    }

    pub(super) fn threads(&mut self, now: Now, found: Result<Vec<Thread>, String>) {
        let Some(mut finding) = self.finding.take() else { return };
        finding.under_way = false;
        let waiting = std::mem::take(&mut finding.waiting);
        match found {
            Ok(threads) => {
                for Thread { channel, parent, last } in threads {
                    let after = finding.after.get(&parent);
                    // Nobody wrote there since.
                    let after = after.filter(|after| last.is_none_or(|last| order(&last) > order(after)));
                    if let Some(after) = after.filter(|_| self.access.rules.contains_key(&parent)) {
                        self.missed_from(now, channel, after.clone());
                    }
                }
                if std::mem::take(&mut finding.again) {
                    self.finding = Some(finding);
                    self.look_for_threads();
                }
            }
            Err(why) => {
                self.out.push_back(Output::Told(Told::NotFound(why)));
                self.finding = Some(finding);
                self.timers.set(Timer::Threads, Due::boot(now, limits::INBOX_FETCH_RETRY));
            }
        }
        for channel in waiting {
            self.fetch(now, channel);
        }
    }

    /// A thread speaks before it is known which ones there are: something may stand there already.
    pub(super) fn may_be_new(&mut self, now: Now, incoming: &Incoming) {
        let after = |finding: &Finding| finding.after.get(incoming.parent.as_ref()?).cloned();
        if let Some(after) = self.finding.as_ref().and_then(after) {
            self.missed_from(now, incoming.channel.clone(), after);
        }
    }

    /// What was written in a place that was not known is fetched, from here on.
    fn missed_from(&mut self, now: Now, channel: ChannelId, after: MessageId) {
        if self.seen.contains_key(&channel) || self.catching.contains_key(&channel) {
            return;
        }
        self.saw(&channel, &after);
        self.catching.insert(channel.clone(), Catching::after(after));
        self.fetch(now, channel);
    }

    /// From now on whatever is written has later ids than this.
    pub(super) fn begins_privately(&mut self, moment: &MessageId) {
        self.privately.moment = Some(moment.clone());
        self.look_for_people(false);
    }

    /// Where people who may speak to the bot alone do so; whether something may have been missed there. Services that bring
    /// what was missed by themselves know no moment, and are not asked.
    pub(super) fn look_for_people(&mut self, missed: bool) {
        let Privately { known, sought, moment: Some(_), .. } = &mut self.privately else { return };
        let mut people = Vec::new();
        for person in self.access.privately().filter(|person| !known.contains_key(*person)) {
            if let Some(sought) = sought.get_mut(person) {
                *sought |= missed;
            } else if sought.len() < limits::INBOX_DIRECT {
                sought.insert(person.clone(), missed);
                people.push(person.clone());
            }
        }
        if !people.is_empty() {
            self.out.push_back(Output::FindDirect(people));
        }
    }

    pub(super) fn found_privately(&mut self, now: Now, found: Vec<(UserId, Option<ChannelId>)>) {
        for (person, channel) in found {
            let missed = self.privately.sought.remove(&person).unwrap_or_default();
            let (Some(channel), Some(moment)) = (channel, self.privately.moment.clone()) else { continue };
            if !self.access.privately().any(|may| *may == person) {
                continue;
            }
            let anew = self.privately.anew.iter().position(|other| *other == person);
            let anew = anew.map(|at| self.privately.anew.swap_remove(at)).is_some();
            self.privately.known.insert(person, channel.clone());
            match self.seen.get(&channel) {
                Some(seen) if anew && order(seen) < order(&moment) => _ = self.saw(&channel, &moment),
                Some(_) => {}
                None if missed => self.missed_from(now, channel, moment),
                None => _ = self.saw(&channel, &moment),
            }
        }
    }

    /// Other people may have one from now on.
    pub(super) fn others_privately(&mut self, before: &[UserId]) {
        let may: Vec<UserId> = self.access.privately().cloned().collect();
        let Privately { known, anew, .. } = &mut self.privately;
        known.retain(|person, _| may.contains(person));
        anew.retain(|person| may.contains(person));
        anew.extend(may.into_iter().filter(|person| !before.contains(person)));
    }
}
