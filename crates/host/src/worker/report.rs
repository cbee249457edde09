//! The machine's snapshot as status shows it.

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::State;
use holdfast_core::status::{LeaseStatus, OperationRow, UnixMs, WorkerCounts, WorkerStatus};
use holdfast_core::time::Now;
use holdfast_core::worker::{Shown, Snapshot};

/// The status at `now`, which is `unix` for people. `dismissed` ended without a known outcome, and a person knows that.
pub(super) fn report(snapshot: &Snapshot, now: Now, unix: UnixMs, dismissed: &BTreeSet<OperationId>) -> WorkerStatus {
    let at = |boot: Duration| {
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        match boot.checked_sub(now.boot) {
            Some(ahead) => unix.saturating_add(ms(ahead)),
            None => unix.saturating_sub(ms(now.boot - boot)),
        }
    };
    let row = |shown: &Shown| OperationRow {
        id: shown.id.to_string(),
        kind: shown.kind,
        summary: shown.summary.clone(),
        state: shown.state,
        since: at(shown.since),
        exit_code: shown.exit_code,
        behind_bytes: shown.behind,
        stalled_since: shown.stalled,
        on_lease_expiry: shown.on_lease_expiry,
        note: shown.note.clone(),
    };
    let shown = |shown: &&Shown| shown.state != State::Unknown || !dismissed.contains(&shown.id);
    let mut operations: Vec<_> =
        snapshot.living.iter().filter(shown).take(limits::WORKER_LIVING_SHOWN).map(row).collect();
    let left = limits::WORKER_SHOWN - operations.len();
    operations.extend(snapshot.ended.iter().filter(shown).take(left.min(limits::WORKER_ENDED_SHOWN)).map(row));
    let count = |states: &[State]| {
        snapshot.counts.iter().filter(|(state, _)| states.contains(state)).map(|(_, count)| *count).sum()
    };
    WorkerStatus {
        state: snapshot.state,
        since: at(snapshot.since),
        cause: snapshot.cause.as_deref().map(str::to_owned),
        next_try_at: snapshot.next_try_at.map(at),
        lease: LeaseStatus {
            held: snapshot.lease_ends_at.is_some(),
            // One that a sleep holds does not run.
            ends_at: snapshot.lease_ends_at.filter(|_| !snapshot.lease_held).map(at),
            renewed: snapshot.live,
            generation: snapshot.generation,
        },
        counts: WorkerCounts {
            waiting: count(&[State::Received]),
            running: count(&[State::Starting, State::Running]),
            stalled: snapshot.stalled,
            unknown: operations.iter().filter(|row| row.state == State::Unknown).count(),
        },
        behind_bytes: snapshot.behind,
        results_waiting: snapshot.results_waiting,
        admission_closed: snapshot.full_since.map(at),
        operations,
    }
}
