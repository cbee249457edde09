//! Bounds of durable operations: worker, ledger, runner, control side.

use std::time::Duration;

use super::{GIB, IntoValue, KIB, Limit, MIB, millis, secs};

limits! {
    ["Operations"]
    OPERATIONS_HELD_MAX: usize = 256, "operations", "Operations of one device that have not ended, at the relay and in the worker's ledger; more are refused.";
    OPERATIONS_HELD_BYTES: usize = 16 * MIB, "bytes", "What these ask, as JSON, together; more is refused.";
    OPERATIONS_QUEUE_TTL: Duration = secs(3600), "time", "How long an operation waits for its worker before it expires, unless asked shorter; never one that may have been received.";
    OPERATIONS_KEPT: usize = 100_000, "operations", "Ended operations one store remembers, and as many inputs beside them; the oldest go first.";
    OPERATIONS_KEPT_ACCOUNT: usize = 50_000, "operations", "Of them those of one account, so that nobody's history makes another's go; and as many inputs.";
    OPERATIONS_KEPT_FOR: Duration = secs(7 * 86_400), "time", "How long an ended operation is remembered, so that its id and key are not run again.";
    OPERATION_INPUTS_KEPT_FOR: Duration = secs(3600), "time", "How long ended input is remembered at the relay after its run is over; without a key, after its own end. Typing makes many of them.";
    OPERATION_FRAME_MAX: usize = MIB, "bytes", "One frame of the worker's socket.";
    OPERATION_REQUEST_MAX: usize = 512 * KIB, "bytes", "One request as JSON; fits a frame with its envelope.";
    OPERATION_OUTCOME_MAX: usize = 256 * KIB, "bytes", "Value or evidence in an operation's outcome, as JSON; a larger one is left out, and its size told.";
    OPERATION_BODY_MAX: usize = OPERATION_REQUEST_MAX + 16 * KIB, "bytes", "Body of a request to /api/operations: the operation, its key and its session.";
    OPERATION_INPUT_MAX: usize = 256 * KIB, "bytes", "One piece of input; as base64 it fits OPERATION_REQUEST_MAX.";
    OPERATION_LOOK_MIN: Duration = millis(2), "time", "A watcher that waits for an end looks again after this, then after twice as long, at most RECONNECT_STEADY.";
    OPERATION_ENV_MAX: usize = 256, "variables", "Variables of one request.";
    OPERATION_KEY_MAX: usize = 128, "characters", "A client's key for an operation.";
    OPERATION_SUMMARY_MAX: usize = 200, "characters", "What a list says of an operation.";
    OPERATION_CLIENT_MAX: usize = 2048, "bytes", "The name of the client that asks; ids of clients can be addresses.";
    OPERATION_SESSION_MAX: usize = 128, "characters", "A session's or a cancellation's name.";
    OPERATION_SESSION_NAME_MAX: usize = 64, "bytes", "A session's name as a client gives it; with the account before it, it fits OPERATION_SESSION_MAX.";
    WORKSPACE_CONFIG_MAX: usize = 64 * KIB, "bytes", "A workspace configuration as JSON.";
    SYNC_FILES_MAX: usize = 1024, "files", "Files of one file sync.";
    SYNC_FILE_MAX: u64 = 4 * GIB, "bytes", "One file of a file sync.";
    SYNC_PROJECTS_MAX: usize = 64, "projects", "Projects of one workspace sync.";
    SYNC_URL_MAX: usize = 4096, "characters", "A URL of a file sync.";
    SYNC_TRY: Duration = secs(30), "time", "One attempt to read from a server.";
    SYNC_RETRY_FOR: Duration = secs(600), "time", "A download or git step that keeps failing on the network fails for good after this.";
    SYNC_RETRY_BASE: Duration = millis(500), "time", "Longest wait before the second try; doubled for each further one.";
    SYNC_RETRY_MAX: Duration = secs(30), "time", "Longest wait between two tries; far below SYNC_RETRY_FOR.";
    SYNC_REDIRECTS: usize = 5, "redirects", "Redirects followed for one file; each is checked as the first address was.";
    SYNC_MANIFEST_MAX: usize = 4 * MIB, "bytes", "A manifest; room for SYNC_FILES_MAX ordinary entries.";
    SYNC_PARALLEL: usize = 4, "downloads", "Files of one file sync that are fetched side by side.";
    SYNC_LISTED_MAX: usize = 32 * KIB, "bytes", "File names in the result of a file sync; the rest is counted.";
    SYNC_GIT_TRY: Duration = secs(1800), "time", "One attempt of git to fetch or push; a peer that is silent for SYNC_TRY ends it sooner.";

    ["Worker"]
    WORKER_LEASE: Duration = secs(120), "time", "How long a worker may execute without a word of the relay.";
    WORKER_NO_SLEEP: Duration = secs(60), "time", "An announced sleep that has not come after this, awake, is none: others may put it off, and the system says when it is over.";
    WORKER_LEASE_RENEW: Duration = secs(20), "time", "How often the relay renews the lease while the worker is live.";
    LEDGER_SWEEP_EVERY: Duration = secs(3600), "time", "How often the worker's ledger forgets what is over for too long.";
    WORKER_WINDOW: usize = 8 * MIB, "bytes", "Output in flight that the relay has not acknowledged, over all runs; half of it is being committed while the other half comes, and a commit of all of it stays below STORE_WRITE_MAX.";
    WORKER_OUTPUT_PIECE: usize = 128 * KIB, "bytes", "Output in one frame; as base64 it fits OPERATION_FRAME_MAX, and cancels are not kept waiting behind it for long.";
    WORKER_REOFFER_MIN: Duration = secs(2), "time", "Output and results are offered again on a live connection when no acknowledgement moved for this, or for 4 round trips if that is longer.";
    WORKER_SHOWN: usize = 80, "operations", "Operations in the status: up to 64 living ones and the latest ended.";
    WORKER_LIVING_SHOWN: usize = 64, "operations", "Living operations in the status; the rest of WORKER_SHOWN is for ended ones.";
    WORKER_ENDED_SHOWN: usize = 32, "operations", "Ended and acknowledged operations a worker still shows.";
    WORKER_READ_AHEAD: usize = 4, "pieces", "Pieces of output read before the socket has room for them; within WORKER_WINDOW.";
    WORKER_OFFSETS_EVERY: Duration = millis(200), "time", "Acknowledged output is made durable and trimmed at most this often.";
    WORKER_FRAMES_WAITING: usize = 2048, "frames", "Answers that wait for a worker's socket, and commits under way; a relay that causes more is cut off.";
    WORKER_RUN_INPUTS_MAX: usize = 64, "operations", "Inputs of one run that its program has not taken; more are refused as busy before they are admitted.";
    WORKER_PERFORMS_MAX: usize = 8, "operations", "Operations that are no run done at once.";
    WORKER_RUNS_MAX: usize = 64, "runs", "Runs of one worker that have not ended; more wait.";
    WORKER_ALIVE: Duration = secs(5), "time", "Each side of the worker's socket writes at least this often.";
    WORKER_SILENCE: Duration = secs(10), "time", "A worker's socket without one received byte for this long is dead.";
    WORKER_HANDSHAKE: Duration = secs(15), "time", "From an open socket to recovery_ready, without output: a step of recovery that brings nothing for this long gives the connection up.";

    ["Spool"]
    SPOOL_SEGMENT: u64 = 4 * MIB as u64, "bytes", "A spool is a row of files of this size; acknowledged ones are removed.";
    SPOOL_RUN_MAX: u64 = 256 * MIB as u64, "bytes", "Unacknowledged output of one run.";
    SPOOL_RUN_MIN: u64 = 16 * MIB as u64, "bytes", "A run starts only when this much room can be promised to it.";
    SPOOL_TOTAL_MAX: u64 = 2 * GIB, "bytes", "Unacknowledged output of all runs of one worker.";
    SPOOL_FLOOR: u64 = 64 * MIB as u64, "bytes", "A run's output waits when less than this, and less than a quarter of the disk, is left: the rest is for stores that must write before they can forget.";
    SPOOL_RETRY: Duration = secs(1), "time", "How often a runner that found the disk full tries again.";
    RUNNER_LINE_MAX: usize = 512 * KIB, "bytes", "One line between worker and runner.";
    RUNNER_NEWS: Duration = millis(5), "time", "Growth of output is told to the worker at most this often.";
    RUNNER_START: Duration = secs(10), "time", "A runner puts its claim in place within this, or is looked after.";
    RUNNER_TOLD_WAIT: Duration = secs(1), "time", "Before an announced sleep, the longest wait until runners were told that it holds their lease; part of SUSPEND_ACK_WAIT.";
    RUNNER_LOOK: Duration = secs(30), "time", "A runner with nothing to do looks this often whether its folder is still there; without it, its program is nobody's and is ended.";
    RUNNER_INPUT_SEEN: usize = 1024, "requests", "Inputs a runner remembers so that a repetition is recognised.";
    RUNNER_INPUT_WAITING: usize = 16, "requests", "Inputs that wait for a program to read; more are refused and may be asked again.";
    RUNNER_PIPE: u64 = 256 * KIB as u64, "bytes", "What a pipe between a program and its runner may hold; of SPOOL_RUN_MIN as much per stream is kept for it, and all pipes of WORKER_RUNS_MAX are half of what Linux lets a user have.";
    RUNNER_RESUME: u64 = MIB as u64, "bytes", "A program that waited for room is read again when there is this much.";
    RUNNER_ESCAPED: usize = 64, "processes", "Escaped processes that the end of a run names.";
    RUNNER_BLOCK: usize = 256 * KIB, "bytes", "Output a runner moves at once.";
    RUNNER_PORT_WAIT: Duration = secs(10), "time", "How long a runner waits for a port of this machine to answer.";
    RUNNER_GOODBYE: Duration = secs(1), "time", "How long a runner that is over waits for its worker to hear it.";
    RUNNER_DRAIN: Duration = secs(2), "time", "After a program ended, its pipes are read for this long if something it started still holds them.";

    ["Control store"]
    CONTROL_HEAD: u64 = MIB as u64, "bytes", "Beginning of each stream that the relay keeps.";
    CONTROL_TAIL: u64 = 64 * MIB as u64, "bytes", "End of each stream that the relay keeps.";
    CONTROL_TOTAL: u64 = 4 * GIB, "bytes", "Output of all operations that one relay keeps; the oldest ended ones give up theirs first.";
    CONTROL_CHUNK_SMALL: usize = 4 * KIB, "bytes", "Output that comes in smaller pieces is joined to rows of this size.";
    CONTROL_OUTCOME_SMALL: usize = 4 * KIB, "bytes", "Value or evidence above this counts as output: with the output of its operation it is given up when CONTROL_TOTAL is reached.";
    CONTROL_READERS_MAX: usize = 64, "readers", "Readers of one account that wait for output or follow it; more are refused.";
    CONTROL_ROWS_AT_ONCE: usize = 64, "rows", "Rows of output given up in one step, so that no write takes long.";
    CONTROL_FORGET_AT_ONCE: usize = 16, "operations", "Ended operations forgotten in one write.";
    CONTROL_READ_MAX: usize = 256 * KIB, "bytes", "Output in one answer to read_operation.";
    CONTROL_FOLLOW_PIECE: usize = 48 * KIB, "bytes", "Output in one event of a reader that follows.";
    CONTROL_WAIT_MAX: Duration = secs(30), "time", "How long a reader of an operation may ask to wait.";
    CONTROL_LIST_MAX: usize = 200, "operations", "Operations in one page of a list.";
    CONTROL_RETRY: Duration = secs(1), "time", "How often the relay tries again to commit what its store refused.";
    CONTROL_UNRECEIVED_MAX: usize = 16, "operations", "Operations that stand as sent to a worker that has not confirmed them; the next ones still expire in their time, and another ledger leaves them alone.";
    CONTROL_LATE_MAX: usize = 256, "answers", "Answers to a worker about operations that are not living, on their way at once; more are left to be offered again.";
    CONTROL_PIECES_MAX: usize = 4096, "pieces", "Pieces of one stream that wait at the relay for the commit before them; more are left to be offered again.";
    SESSION_CANCELS_MAX: usize = 256, "cancellations", "Cancelled sessions of one device that its worker has not confirmed; more are refused.";
    CONTROL_RESULT_EDGE: usize = 32 * KIB, "bytes", "Head and tail of each stream in the result of an operation's task.";
}
