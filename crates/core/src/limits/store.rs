//! Bounds of every SQLite file: the relay's, its operations', the worker's ledger.

use std::time::Duration;

use super::{IntoValue, Limit, MIB, millis, secs};

limits! {
    ["Store"]
    STORE_QUEUE: usize = 4096, "writes", "Writes waiting for the writer thread; above it a write is refused as busy.";
    STORE_QUEUE_FINAL: usize = 1024, "writes", "Final writes that may wait beyond STORE_QUEUE.";
    STORE_GROUP: usize = 256, "writes", "Writes that share one commit.";
    STORE_GROUP_WAIT: Duration = millis(5), "time", "After a shared commit, the longest wait for as many writes again; no longer than that commit took.";
    STORE_LOCK_WAIT: Duration = secs(5), "time", "How long a statement waits for a lock on the database, which only a backup or a second process holds.";
    STORE_READERS: usize = 4, "connections", "Read connections kept open.";
    STORE_STATEMENTS: usize = 64, "statements", "Prepared statements the writer keeps.";
    STORE_READ_MAX: Duration = secs(5), "time", "A read of a store that takes longer is cut off, because what it sees keeps the log from being emptied; longer ones are made in pages.";
    STORE_LOG_KEPT: usize = 8 * MIB, "bytes", "Size of a store's log file in peace: it is emptied at half of it and cut back to it.";
    STORE_LOG_LONG: usize = 16 * MIB, "bytes", "A log above this is emptied with force: new readers are made to wait.";
    STORE_LOG_MAX: usize = 64 * MIB, "bytes", "A store's log file never passes this; what would add to it is refused as full while somebody's open read keeps it from being emptied.";
    STORE_WRITE_MAX: usize = 12 * MIB, "bytes", "What one write may add to the log; ordinary writes stop twice this before STORE_LOG_MAX, final ones once.";
    STORE_CHECKPOINT_WAIT: Duration = millis(100), "time", "How long emptying a long log waits for readers of other programs, and for our own while there is room.";
    STORE_CHECKPOINT_EVERY: Duration = secs(1), "time", "Pause between two attempts to empty a long log that wait for readers.";
    STORE_RESERVE: usize = 16 * MIB, "bytes", "Disk space held by a reserve file and given up for final writes when the disk is full.";
    STORE_RESERVE_EVERY: Duration = secs(1), "time", "Pause between two attempts to make a reserve file again.";
    STORE_CHECK_MAX: Duration = secs(5), "time", "Longest check of a store's file after a stop that was not clean; what it did not reach counts as sound.";
    STORE_DAMAGED_KEPT: usize = 3, "files", "Damaged stores kept beside the new one; the oldest makes room.";
}
