//! Messages that wait until a process of their agent takes them: one of each binding at a time, offered to one process.
//!
//! Of several processes that listen for one binding the first has it until it goes: a second session must neither take its
//! messages nor get a copy of them. Offers outlive holders, so that a process that listens stays where it is meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

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
    /// What is offered, and whether it was acknowledged.
    offer: Option<(Letter, bool)>,
    /// How often the agent was told to stop.
    stops: u64,
    minted: u64,
}

/// A process that listens. Dropped, it is gone, and what it did not acknowledge is offered again.
#[derive(Debug)]
pub struct Listener {
    offers: Offers,
    binding: Arc<str>,
    number: u64,
    changed: watch::Receiver<()>,
    /// The message it was told of, and the stops it knows.
    given: Option<String>,
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

    /// The agent has the message of this id. Whether it was offered.
    pub fn acknowledge(&self, binding: &str, id: &str) -> bool {
        let mut lines = self.lines.lock();
        let offer = lines.get_mut(binding).and_then(|line| line.offer.as_mut()).filter(|(letter, _)| letter.id == id);
        let Some((_, acknowledged)) = offer else { return false };
        *acknowledged = true;
        drop(lines);
        self.changed.send_replace(());
        true
    }

    /// Whether a process listens for a binding.
    pub fn is_heard(&self, binding: &str) -> bool {
        self.lines.lock().get(binding).is_some_and(|line| !line.listeners.is_empty())
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

    /// Offers a message until it is acknowledged; dropped, it is not offered any more.
    ///
    /// # Errors
    /// A process has it for [`limits::AGENT_TAKES`] and does not say so; the next one is in front now.
    pub(super) async fn give(&self, binding: &Arc<str>, letter: Letter) -> Result<(), String> {
        let mut changed = self.changed.subscribe();
        self.lines.lock().entry(Arc::clone(binding)).or_default().offer = Some((letter, false));
        self.changed.send_replace(());
        let _offered = Offered(self, binding);
        let mut since: Option<(u64, tokio::time::Instant)> = None;
        loop {
            changed.mark_unchanged();
            let front = match self.lines.lock().get(binding) {
                Some(Line { offer: Some((_, true)), .. }) => return Ok(()),
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

/// A message while it is offered.
struct Offered<'a>(&'a Offers, &'a Arc<str>);

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        let mut lines = self.0.lines.lock();
        if let Some(line) = lines.get_mut(self.1) {
            line.offer = None;
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
            self.changed.mark_unchanged();
            if let Some(offer) = self.look() {
                return offer;
            }
            // The sender lives as long as `offers` does.
            let _ = self.changed.changed().await;
        }
    }

    fn look(&mut self) -> Option<Offer> {
        let lines = self.offers.lines.lock();
        let line = lines.get(&self.binding).filter(|line| line.listeners.front() == Some(&self.number))?;
        if self.stops != line.stops {
            self.stops = line.stops;
            return Some(Offer::Stop);
        }
        let (letter, _) =
            line.offer.as_ref().filter(|(letter, taken)| !taken && self.given.as_ref() != Some(&letter.id))?;
        self.given = Some(letter.id.clone());
        Some(Offer::Message(letter.clone()))
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
