//! The line before the writer thread, and how it is cut into groups.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use holdfast_core::limits;
use parking_lot::{Condvar, Mutex};

use crate::StoreError;
use crate::job::{Class, Job};

/// Writes that wait, oldest first.
pub(crate) struct Queue {
    line: Mutex<Line>,
    arrived: Condvar,
}

struct Line {
    jobs: VecDeque<Job>,
    /// The writer wakes at this many.
    wanted: usize,
    closed: bool,
}

/// What the last group tells about the next: whoever shared it is likely to write again at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Writes of the last group.
    pub(crate) size: usize,
    /// How long its commit took. Waiting for companions longer than that gains nothing.
    pub(crate) took: Duration,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { line: Mutex::new(Line { jobs: VecDeque::new(), wanted: 1, closed: false }), arrived: Condvar::new() }
    }

    /// Puts a write into the line, or settles it as refused. Never blocks.
    pub(crate) fn push(&self, job: Job) {
        let room = match job.class() {
            Class::Ordinary => limits::STORE_QUEUE,
            Class::Final => limits::STORE_QUEUE + limits::STORE_QUEUE_FINAL,
        };
        let refused = {
            let mut line = self.line.lock();
            if line.closed {
                Some((job, StoreError::Closed))
            } else if line.jobs.len() >= room {
                Some((job, StoreError::Busy))
            } else {
                line.jobs.push_back(job);
                if line.jobs.len() == line.wanted {
                    self.arrived.notify_one();
                }
                None
            }
        };
        // Told without the lock, because `done` may write again.
        if let Some((job, why)) = refused {
            job.settle(Err(why));
        }
    }

    /// Waits for the next group; `None` when the line is closed and empty. Who wrote alone is not kept waiting; after a
    /// shared group, as many writes are awaited for a moment, because otherwise the first of them would take a commit of
    /// its own from all others.
    pub(crate) fn next(&self, last: Pace) -> Option<Vec<Job>> {
        let mut line = self.line.lock();
        let patience = last.took.min(limits::STORE_GROUP_WAIT);
        let until = Instant::now() + patience;
        if last.size > 1 && line.jobs.len() < last.size {
            line.wanted = last.size;
            while line.jobs.len() < line.wanted && !line.closed {
                if self.arrived.wait_until(&mut line, until).timed_out() {
                    break;
                }
            }
            line.wanted = 1;
        }
        while line.jobs.is_empty() {
            if line.closed {
                return None;
            }
            self.arrived.wait(&mut line);
        }
        let size = line.jobs.len().min(limits::STORE_GROUP);
        Some(line.jobs.drain(..size).collect())
    }

    /// Refuses what comes later.
    pub(crate) fn close(&self) {
        self.line.lock().closed = true;
        self.arrived.notify_one();
    }
}
