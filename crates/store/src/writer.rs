//! The one thread that writes, and its group commit.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdfast_core::limits;
use parking_lot::Mutex;
use rusqlite::Connection;

use crate::StoreError;
use crate::job::{Class, Job, Ran};
use crate::log::Log;
use crate::queue::{Pace, Queue};
use crate::reserve::Reserve;

/// Hands writes to the thread.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn start(disk: Disk) -> Result<Writer, StoreError> {
        let queue = Arc::new(Queue::new());
        let line = queue.clone();
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || run(disk, &line))
            .map_err(|e| StoreError::Sqlite(e.to_string()))?;
        Ok(Writer { queue, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn submit(&self, job: Job) {
        self.queue.push(job);
    }

    pub(crate) fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It only fails if the thread panicked, and then there is nothing left to wait for.
            drop(thread.join());
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the thread works with.
pub(crate) struct Disk {
    pub(crate) connection: Connection,
    pub(crate) log: Log,
    pub(crate) reserve: Option<Reserve>,
}

fn run(mut disk: Disk, queue: &Queue) {
    let mut pace = Pace { size: 1, took: Duration::ZERO };
    while let Some(group) = queue.next(pace) {
        let (size, began) = (group.len(), Instant::now());
        disk.write(group);
        pace = Pace { size, took: began.elapsed() };
        disk.log.tend(&disk.connection);
    }
    // Leaves no log behind a clean stop; without it the next start replays the log, which is as good.
    disk.log.empty(&disk.connection, limits::STORE_CHECKPOINT_WAIT);
}

impl Disk {
    fn write(&mut self, mut group: Vec<Job>) {
        let mut gave_up = false;
        while !group.is_empty() {
            let least = self.least();
            let (mut open, refused) =
                group.into_iter().partition(|job| least.is_some_and(|least| job.class() >= least));
            settle(refused, &Err(StoreError::Full));
            let Some(least) = least else { return };
            let (run, fate) = self.commit(&mut open, least);
            group = open.split_off(run);
            if fate == Err(StoreError::Full) && !gave_up && open.iter().any(|job| job.class() == Class::Final) {
                // Without their neighbours, and with the reserve, final writes may still fit.
                gave_up = true;
                if let Some(reserve) = &mut self.reserve {
                    reserve.free();
                }
                let (last, ordinary) = open.into_iter().partition(|job| job.class() == Class::Final);
                settle(ordinary, &fate);
                group.splice(..0, last);
            } else {
                settle(open, &fate);
            }
        }
    }

    /// The least class that is admitted now.
    fn least(&mut self) -> Option<Class> {
        if !self.log.has_room(Class::Ordinary) {
            self.log.empty(&self.connection, limits::STORE_READ_MAX);
        }
        let held = self.reserve.as_mut().is_none_or(Reserve::held);
        [Class::Ordinary, Class::Final]
            .into_iter()
            .find(|&class| self.log.has_room(class) && (held || class == Class::Final))
    }

    /// Runs writes in one transaction, and says how many before the log had no more room for the class.
    fn commit(&self, jobs: &mut [Job], class: Class) -> (usize, Result<(), StoreError>) {
        let mut run = jobs.len();
        let ran = self.transact(jobs, class, &mut run);
        let committed = ran.is_ok().then(|| self.step("COMMIT"));
        let fate = committed.clone().unwrap_or(ran);
        if fate.is_err() && !self.connection.is_autocommit() {
            // Fails only when SQLite has already rolled back.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
        if committed.is_some_and(|committed| committed.is_err()) {
            self.bury();
        }
        (run, fate)
    }

    /// A commit that failed while it was synced can stand whole in the log: a crash now would bring it back, although it is
    /// told as failed. One over it ends that; where it fails too, the next that succeeds does.
    fn bury(&self) {
        let version = self.connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let over = |version| format!("BEGIN IMMEDIATE; PRAGMA user_version = {version}; COMMIT");
        if version.and_then(|version| self.connection.execute_batch(&over(version))).is_err()
            && !self.connection.is_autocommit()
        {
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }

    fn step(&self, sql: &'static str) -> Result<(), StoreError> {
        Ok(self.connection.prepare_cached(sql)?.execute([]).map(drop)?)
    }

    fn transact(&self, jobs: &mut [Job], class: Class, run: &mut usize) -> Result<(), StoreError> {
        self.step("BEGIN IMMEDIATE")?;
        for (place, job) in jobs.iter_mut().enumerate() {
            // What a big transaction changed stands in the log before its commit.
            if place > 0 && !self.log.has_room(class) {
                *run = place;
                break;
            }
            self.step("SAVEPOINT one")?;
            let ran = job.run(&self.connection);
            if self.connection.is_autocommit() || ran == Ran::Full {
                // SQLite may have rolled the whole transaction back, neighbours included.
                return Err(StoreError::Full);
            }
            if ran == Ran::Undo {
                self.step("ROLLBACK TO one")?;
            }
            self.step("RELEASE one")?;
        }
        Ok(())
    }
}

fn settle(jobs: Vec<Job>, fate: &Result<(), StoreError>) {
    for job in jobs {
        job.settle(fate.clone());
    }
}
