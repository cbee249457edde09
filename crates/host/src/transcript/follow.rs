//! Follows a transcript. A thread rather than a task: all it does is to read files, which blocks; at rest it wakes once per
//! [`limits::TRANSCRIPT_POLL`].

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as orders;

#[cfg(doc)]
use holdfast_core::limits;
use holdfast_core::transcript::{Binding, Cursor, Entry, Follow, FollowView, Input, Output, Told};
use tokio::sync::{mpsc, watch};

use super::files::Files;
use super::wake::Wake;
use crate::link::clock::Turns;

/// What is heard of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// Say this and keep the cursor with it; answered by [`Follower::taken`], before which nothing more comes.
    Entries {
        /// In order; may be empty where only the cursor moved.
        entries: Vec<Entry>,
        /// After them.
        cursor: Cursor,
    },
    /// What happened to the file. It was logged already.
    Told(Told),
    /// Answers [`Follower::finish`]: everything that stood there was given out and taken.
    Finished,
}

enum Order {
    Bind(Binding),
    Taken,
    Finish,
    Changed,
    End,
}

/// Follows one transcript after another until it is dropped. The calls return at once.
#[derive(Debug)]
pub struct Follower {
    // Not bounded: one `taken` for each time something was given out, and binds as people make them.
    orders: orders::Sender<Order>,
    view: watch::Receiver<Option<FollowView>>,
}

impl Follower {
    /// Follows this one; its path is one of [`super::real_path`]. If it is followed already, nothing changes; another one is
    /// read to its end first.
    pub fn bind(&self, binding: Binding) {
        self.order(Order::Bind(binding));
    }

    /// What was given out last is kept, or will be before anything that follows.
    pub fn taken(&self) {
        self.order(Order::Taken);
    }

    /// Reads to the end, then lets go and tells [`Followed::Finished`].
    pub fn finish(&self) {
        self.order(Order::Finish);
    }

    /// What is followed, and how far.
    pub fn view(&self) -> watch::Receiver<Option<FollowView>> {
        self.view.clone()
    }

    fn order(&self, order: Order) {
        // The thread ends first only if nobody hears it any more.
        let _ = self.orders.send(order);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.order(Order::End);
    }
}

/// Begins to follow nothing. What is heard comes in order; it ends when the receiver is dropped, or the follower.
///
/// # Errors
/// The system gives no thread.
pub fn follow(told: mpsc::Sender<Followed>) -> io::Result<Follower> {
    let (to_thread, orders) = orders::channel();
    let (shown, view) = watch::channel(None);
    let shell = Shell {
        machine: Follow::new(),
        turns: Turns::new(),
        files: Files::default(),
        wake: None,
        changed: Arc::default(),
        to_self: to_thread.clone(),
        told,
        shown,
    };
    std::thread::Builder::new().name("transcript".into()).spawn(move || shell.run(&orders))?;
    Ok(Follower { orders: to_thread, view })
}

/// Nobody hears it any more.
struct Unheard;

struct Shell {
    machine: Follow,
    turns: Turns,
    files: Files,
    wake: Option<Wake>,
    /// A change was told that nobody looked at yet; further ones need not be.
    changed: Arc<AtomicBool>,
    to_self: orders::Sender<Order>,
    told: mpsc::Sender<Followed>,
    shown: watch::Sender<Option<FollowView>>,
}

impl Shell {
    fn run(mut self, orders: &orders::Receiver<Order>) {
        loop {
            let now = self.turns.now();
            self.machine.handle_timeout(now);
            if self.carry_out().is_err() {
                return;
            }
            let now = self.turns.now();
            let order = match self.machine.poll_timeout(now) {
                Some(wait) => orders.recv_timeout(wait),
                None => orders.recv().map_err(Into::into),
            };
            let input = match order {
                Ok(Order::Bind(binding)) => Input::Bind(binding),
                Ok(Order::Taken) => Input::Taken,
                Ok(Order::Finish) => Input::Finish,
                Ok(Order::Changed) => Input::Changed,
                Err(orders::RecvTimeoutError::Timeout) => continue,
                Ok(Order::End) | Err(orders::RecvTimeoutError::Disconnected) => return,
            };
            let now = self.turns.now();
            self.machine.handle(now, input);
        }
    }

    fn carry_out(&mut self) -> Result<(), Unheard> {
        while let Some(output) = self.machine.poll_output() {
            let answer = match output {
                Output::Look(path) => {
                    self.aim(&path);
                    self.files.look(&path).map(Input::Looked)
                }
                Output::Find(path, file) => self.files.find(&path, &file).map(Input::Found),
                Output::Beside { path, left, next } => {
                    self.files.beside(&path, left, next).map(|(between, more)| Input::Beside { between, more })
                }
                Output::Read { place, offset, max } => {
                    self.files.read(place, offset, max).map(|bytes| Input::Bytes { place, offset, bytes })
                }
                Output::Close(place) => {
                    self.files.close(place);
                    continue;
                }
                Output::Entries { entries, cursor } => {
                    self.tell(Followed::Entries { entries, cursor })?;
                    continue;
                }
                Output::Told(told) => {
                    self.log(told);
                    self.tell(Followed::Told(told))?;
                    continue;
                }
                Output::Finished => {
                    self.wake = None;
                    self.tell(Followed::Finished)?;
                    continue;
                }
                Output::Changed => {
                    self.shown.send_replace(self.machine.snapshot());
                    continue;
                }
            };
            let input = answer.unwrap_or_else(|e| Input::Failed(e.to_string()));
            let now = self.turns.now();
            self.machine.handle(now, input);
        }
        Ok(())
    }

    /// Whatever happens to the file from now on is told.
    fn aim(&mut self, path: &str) {
        let wake = match self.wake.take() {
            Some(wake) if wake.transcript() == Path::new(path) => wake,
            _ => {
                let (changed, to_self) = (self.changed.clone(), self.to_self.clone());
                Wake::new(path, move || {
                    if !changed.swap(true, Ordering::AcqRel) {
                        let _ = to_self.send(Order::Changed);
                    }
                })
            }
        };
        self.changed.store(false, Ordering::Release);
        self.wake.insert(wake).aim();
    }

    fn tell(&self, followed: Followed) -> Result<(), Unheard> {
        self.told.blocking_send(followed).map_err(|_| Unheard)
    }

    fn log(&self, told: Told) {
        let view = self.machine.snapshot();
        let transcript = view.as_ref().map_or("", |view| &view.transcript);
        match told {
            Told::Awaited => tracing::info!(transcript, "there is no transcript yet"),
            Told::Rotated => tracing::info!(transcript, "the transcript goes on in another file"),
            Told::Replaced => tracing::warn!(transcript, "another transcript stands in the place of the one followed"),
            Told::Truncated => tracing::warn!(transcript, "the transcript was cut; what follows is new"),
            Told::Unreadable(lines) => tracing::warn!(transcript, lines, "lines of the transcript cannot be read"),
            Told::Gap => tracing::warn!(transcript, "a part of the transcript may be missing"),
            Told::LineTooLong => tracing::warn!(transcript, "a line of the transcript is too long and was skipped"),
        }
    }
}
