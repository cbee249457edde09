//! Messages that wait until a process of their agent takes them: one of each binding at a time, offered to one process.
//!
//! Of several processes that listen for one binding the first has it until it goes: a second session must neither take its
//! messages nor get a copy of them. Offers outlive holders, so that a process that listens stays where it is meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use holdfast_core::chat::inbox::Back;
use holdfast_core::limits;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Letter;

/// What a listening process is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// A message; to be acknowledged once it is where it cannot be lost.
    Message(Letter),
    /// Somebody wants the agent to stop what it does.
    Stop,
}

/// The offers of every binding. Clones are handles of the same ones.
#[derive(Debug, Clone)]
pub struct Offers {
    lines: Arc<Mutex<BTreeMap<Arc<str>, Line>>>,
    changed: watch::Sender<()>,
}

impl Default for Offers {
    fn default() -> Offers {
        Offers { lines: Arc::default(), changed: watch::Sender::new(()) }
    }
}

#[derive(Debug, Default)]
struct Line {
    /// Who listens, the first in front.
    listeners: VecDeque<u64>,
    /// What is offered, or was last.
    offer: Option<Standing>,
    /// How often the agent was told to stop.
    stops: u64,
    minted: u64,
    /// How often a message was taken back.
    round: u64,
}

/// How the message of a line stands.
#[derive(Debug)]
struct Standing {
    letter: Letter,
    /// It is offered at this moment.
    open: bool,
    /// A process was told of it.
    given: bool,
    /// A process has it.
    acknowledged: bool,
}

/// A process that listens. Dropped, it is gone, and what it did not acknowledge is offered again.
#[derive(Debug)]
pub struct Listener {
    offers: Offers,
    binding: Arc<str>,
    number: u64,
    changed: watch::Receiver<()>,
    /// The message it was told of, in which round, and the stops it knows.
    given: Option<(String, u64)>,
    stops: u64,
}

impl Offers {
    /// Joins those who listen for a binding.
    ///
    /// # Errors
    /// There are [`limits::AGENT_LISTENERS`] already.
    pub fn listen(&self, binding: &str) -> Result<Listener, String> {
        let binding: Arc<str> = binding.into();
        let mut lines = self.lines.lock();
        let line = lines.entry(Arc::clone(&binding)).or_default();
        if line.listeners.len() >= limits::AGENT_LISTENERS {
            return Err(format!("{} processes listen for {binding} already", limits::AGENT_LISTENERS));
        }
        line.minted += 1;
        let (number, stops) = (line.minted, line.stops);
        line.listeners.push_back(number);
        drop(lines);
        self.changed.send_replace(());
        let changed = self.changed.subscribe();
        Ok(Listener { offers: self.clone(), binding, number, changed, given: None, stops })
    }

    /// The agent has the message of this id, which is offered or was a moment ago. Whether that is news.
    pub fn acknowledge(&self, binding: &str, id: &str) -> bool {
        let mut lines = self.lines.lock();
        let offer = lines.get_mut(binding).and_then(|line| line.offer.as_mut());
        let Some(offer) = offer.filter(|offer| offer.letter.id == id && !offer.acknowledged) else { return false };
        offer.acknowledged = true;
        drop(lines);
        self.changed.send_replace(());
        true
    }

    /// Whether a process listens for a binding.
    pub fn is_heard(&self, binding: &str) -> bool {
        self.lines.lock().get(binding).is_some_and(|line| !line.listeners.is_empty())
    }

    /// Whether a message is offered.
    #[cfg(test)]
    pub(super) fn is_offered(&self, binding: &str) -> bool {
        let lines = self.lines.lock();
        lines.get(binding).and_then(|line| line.offer.as_ref()).is_some_and(|offer| offer.open)
    }

    /// Tells the process that has the binding to stop. Whether there is one.
    pub(super) fn stop(&self, binding: &str) -> bool {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(binding).filter(|line| !line.listeners.is_empty()) else { return false };
        line.stops += 1;
        drop(lines);
        self.changed.send_replace(());
        true
    }

    /// Takes back what is not offered any more. Who was told of it has a moment to say that they have it.
    pub(super) async fn take_back(&self, binding: &str, id: &str) -> Back {
        let mut changed = self.changed.subscribe();
        let ends = async {
            loop {
                changed.mark_unchanged();
                match self.lines.lock().get_mut(binding).and_then(|line| line.has(id)) {
                    Some(Standing { acknowledged: true, .. }) => return Back::Taken,
                    Some(Standing { given: false, .. }) => return Back::Safe,
                    Some(_) => {}
                    None => return Back::Perhaps(FORGOTTEN.to_owned()),
                }
                // The sender lives as long as `self` does.
                let _ = changed.changed().await;
            }
        };
        let back = tokio::time::timeout(limits::AGENT_AGAIN, ends).await;
        if let Some(line) = self.lines.lock().get_mut(binding)
            && line.has(id).is_some()
        {
            // If it should come here again, that is by a person's wish, and whoever listens is told anew.
            (line.offer, line.round) = (None, line.round + 1);
        }
        back.unwrap_or_else(|_| Back::Perhaps(GIVEN.to_owned()))
    }

    /// Offers a message until it is acknowledged; dropped, it is not offered any more.
    ///
    /// # Errors
    /// A process has it for [`limits::AGENT_TAKES`] and does not say so; the next one is in front now.
    pub(super) async fn give(&self, binding: &Arc<str>, letter: Letter) -> Result<(), String> {
        let mut changed = self.changed.subscribe();
        {
            let mut lines = self.lines.lock();
            let line = lines.entry(Arc::clone(binding)).or_default();
            // Whoever was told of it by an earlier try may still have it, or have said so since.
            let before = line.offer.take().filter(|before| before.letter.id == letter.id);
            let (given, acknowledged) = before.map_or((false, false), |before| (before.given, before.acknowledged));
            line.offer = Some(Standing { letter, open: true, given, acknowledged });
        }
        self.changed.send_replace(());
        let _offered = Offered(self, binding);
        let mut since: Option<(u64, tokio::time::Instant)> = None;
        loop {
            changed.mark_unchanged();
            let front = match self.lines.lock().get(binding) {
                Some(Line { offer: Some(Standing { acknowledged: true, .. }), .. }) => return Ok(()),
                line => line.and_then(|line| line.listeners.front().copied()),
            };
            since = front.map(|front| match since {
                Some((same, at)) if same == front => (same, at),
                _ => (front, tokio::time::Instant::now() + limits::AGENT_TAKES),
            });
            let late = async {
                match since {
                    Some((_, at)) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = changed.changed() => {}
                () = late => {
                    if let Some(line) = self.lines.lock().get_mut(binding) {
                        line.listeners.rotate_left(1);
                    }
                    return Err("the agent's process does not take it".to_owned());
                }
            }
        }
    }
}

/// What the sender reads of a message that was taken back from a process that had it in its hands.
const GIVEN: &str = "its agent was told of it, did not say that it has it, and is not the agent here any more.";

/// The same, where nobody knows any more whether one was told.
const FORGOTTEN: &str =
    "it was offered to an agent before Holdfast began anew, and that is not the agent here any more.";

impl Line {
    fn has(&mut self, id: &str) -> Option<&mut Standing> {
        self.offer.as_mut().filter(|offer| offer.letter.id == id)
    }
}

/// A message while it is offered.
struct Offered<'a>(&'a Offers, &'a Arc<str>);

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        let mut lines = self.0.lines.lock();
        if let Some(offer) = lines.get_mut(self.1).and_then(|line| line.offer.as_mut()) {
            offer.open = false;
        }
    }
}

impl Listener {
    /// The binding it listens for.
    pub fn binding(&self) -> &Arc<str> {
        &self.binding
    }

    /// What comes next. Each message once.
    pub async fn next(&mut self) -> Offer {
        loop {
            self.ready().await;
            if let Some(offer) = self.take() {
                return offer;
            }
        }
    }

    /// What there is to be told at this moment. Each message once.
    pub fn take(&mut self) -> Option<Offer> {
        self.look(true)
    }

    /// Comes when there is something to be told; it may be gone again.
    pub async fn ready(&mut self) {
        loop {
            self.changed.mark_unchanged();
            if self.look(false).is_some() {
                return;
            }
            // The sender lives as long as `offers` does.
            let _ = self.changed.changed().await;
        }
    }

    /// What there is; with `takes` it is told of.
    fn look(&mut self, takes: bool) -> Option<Offer> {
        let mut lines = self.offers.lines.lock();
        let line = lines.get_mut(&self.binding).filter(|line| line.listeners.front() == Some(&self.number))?;
        if self.stops != line.stops {
            self.stops = if takes { line.stops } else { self.stops };
            return Some(Offer::Stop);
        }
        let told = |offer: &Standing| Some((offer.letter.id.clone(), line.round));
        let offer = line.offer.as_mut().filter(|o| o.open && !o.acknowledged && self.given != told(o))?;
        if takes {
            offer.given = true;
            self.given = told(offer);
        }
        Some(Offer::Message(offer.letter.clone()))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut lines = self.offers.lines.lock();
        if let Some(line) = lines.get_mut(&self.binding) {
            line.listeners.retain(|number| *number != self.number);
        }
        drop(lines);
        self.offers.changed.send_replace(());
    }
}
