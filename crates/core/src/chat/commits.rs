//! The commit under way, and what goes with the next.

/// Names a commit of this holder; grows by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Why a commit was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// Anything else.
    #[error("the seat's store could not be written")]
    Failed,
    /// The store belongs to this later generation.
    #[error("the seat belongs to another holder")]
    Superseded(u64),
}

/// One step of a commit.
pub(super) trait Step: Clone {
    /// Whether it may wait for others for a while, and what it says anew: of two with the same name only the later counts.
    fn waits(&self) -> Option<&str>;
}

/// Steps in order, in batches: a batch is stored as a whole, and no later one before it.
#[derive(Debug)]
pub(super) struct Commits<C> {
    /// For the next batch.
    waiting: Vec<C>,
    /// Under way, or to be made again.
    doing: Option<Vec<C>>,
    under_way: bool,
    /// The last batch that is stored.
    stored: u64,
}

impl<C> Default for Commits<C> {
    fn default() -> Self {
        Commits { waiting: Vec::new(), doing: None, under_way: false, stored: 0 }
    }
}

impl<C: Step> Commits<C> {
    /// Adds a step; the number of the batch that will hold it.
    pub fn add(&mut self, step: C) -> u64 {
        if let Some(name) = step.waits() {
            self.waiting.retain(|c| c.waits() != Some(name));
        }
        self.waiting.push(step);
        self.stored + 1 + u64::from(self.doing.is_some())
    }

    /// The batch with which everything is stored that was added so far.
    pub fn last(&self) -> u64 {
        self.stored + u64::from(self.doing.is_some()) + u64::from(!self.waiting.is_empty())
    }

    /// The last batch that is stored.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Whether that batch is stored.
    pub fn has(&self, batch: u64) -> bool {
        batch <= self.stored
    }

    /// Begins the next batch, or the failed one again, unless one is under way.
    pub fn issue(&mut self) -> Option<(Ticket, Vec<C>)> {
        if self.under_way || (self.doing.is_none() && self.waiting.is_empty()) {
            return None;
        }
        self.under_way = true;
        let doing = self.doing.get_or_insert_with(|| std::mem::take(&mut self.waiting));
        Some((Ticket(self.stored + 1), doing.clone()))
    }

    /// The batch under way ended. Whether that was it.
    pub fn ended(&mut self, ticket: Ticket, stored: bool) -> bool {
        if !self.under_way || ticket != Ticket(self.stored + 1) {
            return false;
        }
        self.under_way = false;
        if stored {
            self.stored += 1;
            self.doing = None;
        }
        true
    }

    /// Whether the last one failed and is not under way again.
    pub fn failed(&self) -> bool {
        self.doing.is_some() && !self.under_way
    }

    /// Whether nothing is under way and everything that waits may.
    pub fn can_wait(&self) -> bool {
        self.doing.is_none() && self.waiting.iter().all(|c| c.waits().is_some())
    }

    /// Whether everything is stored.
    pub fn is_idle(&self) -> bool {
        self.doing.is_none() && self.waiting.is_empty()
    }

    /// Steps that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
