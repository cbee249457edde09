//! Every bound of the product: one line each, with unit, value and reason. `docs/limits.md` is made from this table.
//!
//! A bound that depends on another says so in its reason, and the test at the end checks the relation.

use std::time::Duration;

/// One row of the table, for the generated page.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The part of the product it belongs to.
    pub group: &'static str,
    /// The constant's name.
    pub name: &'static str,
    /// Its value, printed.
    pub value: Value,
    /// What the number counts.
    pub unit: &'static str,
    /// Why this value.
    pub why: &'static str,
}

/// A value of the table.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// A count or a number of bytes.
    Count(u64),
    /// A time.
    Time(Duration),
}

trait IntoValue: Copy {
    fn into_value(self) -> Value;
}
impl IntoValue for usize {
    fn into_value(self) -> Value {
        Value::Count(self as u64)
    }
}
impl IntoValue for u64 {
    fn into_value(self) -> Value {
        Value::Count(self)
    }
}
impl IntoValue for u32 {
    fn into_value(self) -> Value {
        Value::Count(u64::from(self))
    }
}
impl IntoValue for Duration {
    fn into_value(self) -> Value {
        Value::Time(self)
    }
}

macro_rules! limits {
    ($([$group:literal] $($name:ident : $ty:ty = $value:expr, $unit:literal, $why:literal;)+)+) => {
        $($(#[doc = $why] #[doc = ""] #[doc = concat!("Unit: ", $unit, ".")] pub const $name: $ty = $value;)+)+

        /// The rows of this file, in its order.
        pub(super) fn rows() -> Vec<Limit> {
            vec![$($(Limit {
                group: $group,
                name: stringify!($name),
                value: IntoValue::into_value($name),
                unit: $unit,
                why: $why,
            },)+)+]
        }
    };
}

mod chat;
mod operations;
mod people;
mod store;

pub use chat::*;
pub use operations::*;
pub use people::*;
pub use store::*;

/// The whole table, in the order of its files.
pub fn all() -> Vec<Limit> {
    let mut all = rows();
    all.extend(operations::rows());
    all.extend(chat::rows());
    all.extend(people::rows());
    all.extend(store::rows());
    all
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const GIB: u64 = 1024 * MIB as u64;
const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}
const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

limits! {
    ["The wire"]
    FRAME_MAX: usize = 8 * MIB, "bytes", "One frame each way, as on the base wire; a longer one closes 1009.";
    FRAME_PEEK_ABOVE: usize = 16 * KIB, "bytes", "Longer numbered frames are told apart by how they begin, so that they are read once.";
    CHUNK_FRAME_MAX: usize = 64 * KIB, "bytes", "One chunk frame of a big result, so that control frames get between them.";
    CHUNK_THRESHOLD: usize = 256 * KIB, "bytes", "Results above this are sent in chunks; without the feature it is the limit of a result.";
    RESULT_MAX: usize = 8 * MIB - 64 * KIB, "bytes", "Largest result on the link: FRAME_MAX less an envelope.";
    RESUME_IDS_MAX: usize = 64, "ids", "Ids in one resume_calls between Holdfasts: every call a device can hold.";
    BASE_RESUME_IDS_MAX: usize = 32, "ids", "Ids in one resume_calls on the base wire.";
    ERROR_MESSAGE_MAX: usize = 2000, "characters", "Message of a tool error, as on the base wire.";
    TOOL_NAME_MAX: usize = 128, "bytes", "Name of a tool.";
    CALL_TIMEOUT_MIN: Duration = millis(1000), "time", "Smallest execution budget on the wire.";
    CALL_TIMEOUT_MAX: Duration = millis(610_000), "time", "Largest execution budget on the wire.";
    CALL_TIMEOUT_DEFAULT: Duration = secs(60), "time", "Budget of a tool without a timeout of its own.";
    CLOSE_REASON_MAX: usize = 123, "bytes", "Reason of a close frame (RFC 6455: 125 less the code).";

    ["Calls"]
    DEVICE_CALLS_MAX: usize = 64, "calls", "Calls the relay holds for one device, waiting ones included.";
    DAEMON_CALLS_MAX: usize = 64, "calls", "Calls a daemon runs at once (hello.max_calls).";
    CONTROL_RESERVE: usize = 4, "calls", "Places kept for control tools in both counts, so that a full machine can still be asked and stopped.";
    BASE_CALLS_MAX: usize = 16, "calls", "Calls an unmodified base daemon runs at once.";
    BASE_CONTROL_RESERVE: usize = 2, "calls", "Places kept for control tools towards a base daemon.";
    QUEUE_WAIT: Duration = secs(15), "time", "How long a new call waits for a ready device or a free place.";
    SETTLEMENT: Duration = secs(5), "time", "The relay's deadline is the daemon's plus this, so that the daemon's word comes first.";
    KILL_SETTLE: Duration = secs(4), "time", "How long the executor may take to end a stopped call; less than SETTLEMENT, more than the 2 s between TERM and KILL.";
    QUEUE_TTL: Duration = secs(3600), "time", "How long a promoted call waits for its device, from its opening; much longer than QUEUE_WAIT, because nobody holds a connection open for it.";
    PROMOTED_WAITING_MAX: usize = 64, "calls", "Promoted calls of one device that wait to be sent, beside the DEVICE_CALLS_MAX others.";
    PROMOTE_AFTER: Duration = secs(10), "time", "A call of a client that takes tasks becomes one after this.";
    PROMOTE_AGAIN: Duration = secs(10), "time", "A promotion that found no room, or a full disk, is tried again after this.";
    REDISPATCH_MIN: Duration = secs(1), "time", "A call the instance never saw is sent again if at least this much of its budget is left.";

    ["The link"]
    DIAL_TIMEOUT: Duration = secs(10), "time", "From dialling to an open WebSocket.";
    UPGRADE_BODY_MAX: usize = 16 * KIB, "bytes", "Body of a refused upgrade that is read for its code.";
    LINK_BATCH: usize = 64, "events", "Events of the link handled before its sockets are written again.";
    LINK_WRITE_ROOM: usize = 64 * KIB, "bytes", "A socket with more than this unwritten is given no further frame.";
    SOCKET_UNSENT: usize = 64 * KIB, "bytes", "What the kernel holds unsent of a socket the relay accepted; half of it moves within TRANSFER_WINDOW at TRANSFER_MIN_RATE.";
    LINK_SEND_BUFFER: usize = 128 * KIB, "bytes", "Send buffer of the daemon's socket: a bigger one swallows megabytes at once and then stands still for longer than TRANSFER_WINDOW, which looks dead.";
    LINK_PROGRESS_QUEUE: usize = 64, "reports", "Progress on its way from tools to the link; more is dropped.";
    STATUS_PACE: Duration = millis(50), "time", "Counts of calls are published at most this often; a change of state at once.";
    DIALS_IN_FLIGHT: usize = 2, "attempts", "Attempts at once while something waits: a patient one and a fresh one.";
    HANDSHAKE_TIMEOUT: Duration = secs(10), "time", "From an open socket to hello_ack; on the relay, to hello.";
    READINESS_TIMEOUT: Duration = secs(15), "time", "From hello_ack to ready_ack.";
    CHECK_TIMEOUT: Duration = secs(1), "time", "After a network change a link must show life within this, or a new connection is made beside it.";
    REPORT_TIMEOUT: Duration = secs(3), "time", "From resume_calls to resume_report; dispatch pauses meanwhile.";
    HEARTBEAT: Duration = secs(5), "time", "Each side writes at least one frame this often (feature live).";
    SILENCE_DEAD: Duration = secs(10), "time", "No received byte for this long is a dead link (feature live); at least twice HEARTBEAT.";
    BASE_HEARTBEAT: Duration = secs(25), "time", "Heartbeat on the base wire.";
    BASE_DAEMON_SILENCE: Duration = secs(75), "time", "Silence after which a daemon gives up a base relay.";
    BASE_RELAY_SILENCE: Duration = secs(90), "time", "Silence after which the relay gives up a base daemon.";
    TRANSFER_MIN_RATE: usize = 4 * KIB, "bytes/s", "A frame in transfer slower than this over TRANSFER_WINDOW is dead.";
    TRANSFER_WINDOW: Duration = secs(30), "time", "Window of TRANSFER_MIN_RATE.";
    GRACE: Duration = secs(120), "time", "How long the relay keeps detached calls.";
    DAEMON_GRACE_EXTRA: Duration = secs(15), "time", "The daemon's grace is the relay's plus this, so that the relay expires first.";
    BASE_GRACE: Duration = secs(30), "time", "Grace on the base wire, on both sides.";
    WAKE_GRACE: Duration = secs(60), "time", "The daemon's grace after a wake.";
    SUSPEND_HOLD: Duration = secs(12 * 3600), "time", "How long the relay keeps the calls of a device that announced its sleep.";
    SUSPEND_ACK_WAIT: Duration = secs(4), "time", "How long sleep is delayed for the relay's answer; logind allows 5 s.";
    INCUMBENT_PING: Duration = secs(5), "time", "How long the relay waits for the incumbent's answer before it lets another instance in.";
    IN_USE_TOLD: Duration = secs(600), "time", "How long the incumbent is told of a refused instance; twice IN_USE_RETRY, so that one that keeps trying is told without a gap.";
    IN_USE_RETRY: Duration = secs(300), "time", "How often a refused or signed-out daemon tries by itself.";
    RECONNECT_FAST: Duration = millis(250), "time", "Reconnect interval while calls are detached or results wait, at first.";
    RECONNECT_FAST_FOR: Duration = secs(5), "time", "How long RECONNECT_FAST holds.";
    RECONNECT_STEADY: Duration = secs(1), "time", "Reconnect interval while something waits, afterwards.";
    BACKOFF_BASE: Duration = millis(500), "time", "First step of the idle back-off (full jitter).";
    BACKOFF_MAX: Duration = secs(15), "time", "Cap of the idle back-off.";
    BACKOFF_RESET: Duration = secs(60), "time", "Readiness after which the back-off starts over.";
    RESTART_JITTER: Duration = secs(5), "time", "Jitter after the relay said it restarts (1001, 1012).";
    OUTAGE_SILENT: Duration = secs(10), "time", "A shorter break is a blip and told nobody.";
    OUTAGE_HINT: Duration = secs(300), "time", "Outage after which the log adds a hint.";
    OUTAGE_REMINDER: Duration = secs(60), "time", "First reminder; doubles.";
    OUTAGE_REMINDER_MAX: Duration = secs(900), "time", "Cap of the reminders.";
    SHELL_TURN_MAX: Duration = secs(1), "time", "A shell never sleeps longer than this.";
    AWAKE_STEP_MAX: Duration = secs(5), "time", "A turn adds at most this to awake time; more is a wake.";
    PROTOCOL_ERRORS_WARN: usize = 3, "errors", "Protocol errors in PROTOCOL_ERRORS_WINDOW that raise a warning.";
    PROTOCOL_ERRORS_WINDOW: Duration = secs(600), "time", "Window of PROTOCOL_ERRORS_WARN.";
    STOP_WAIT: Duration = secs(30), "time", "How long Stop waits for running calls.";
    STOP_ACK_WAIT: Duration = secs(3), "time", "How long Stop waits for acknowledgements after that.";
    RELAY_STOP_WAIT: Duration = secs(10), "time", "How long a stopping relay waits for calls.";

    ["The switchboard"]
    DEVICE_TOOLS_MAX: usize = 512, "tools", "Names of tools taken from one hello.";
    DEVICE_ARGUMENTS_MAX: usize = 64 * MIB, "bytes", "Arguments of all calls held for one device; at least two frames of FRAME_MAX.";
    CALL_WAITERS_MAX: usize = 16, "requests", "Requests that may wait for one call.";
    CHUNK_TRANSFERS_MAX: usize = 4, "transfers", "Results one daemon may have in transfer as chunks at once; each at most FRAME_MAX.";
    CHUNK_TRIES_MAX: u32 = 3, "tries", "Transfers of one result with a wrong digest before the call fails with integrity_error.";
    ACK_DELAY: Duration = millis(50), "time", "Acknowledgements wait this long for a frame to travel with; far below RESEND_FIRST.";
    IN_USE_REMEMBERED: usize = 8, "instances", "Instances remembered as refused with device_in_use.";
    IDEMPOTENCY_KEYS_MAX: usize = 10_000, "records", "Idempotency records of one account.";
    RECORD_KEPT: Duration = secs(24 * 3600), "time", "How long the record of a call with an idempotency key or a handle is kept after its end.";
    KEPT_RESULT_MAX: usize = MIB, "bytes", "Result kept with an idempotency record.";
    HANDLES_MAX: usize = 10_000, "calls", "Promoted calls of one relay, running and finished.";
    HANDLES_PER_ACCOUNT: usize = 1000, "calls", "Promoted calls of one account; its oldest finished one makes room.";
    KEPT_BYTES_MAX: usize = 64 * MIB, "bytes", "Results of one account's promoted calls; the oldest go first, and who reads them is told. At least RESULT_MAX.";
    SOCKET_QUEUE_MAX: usize = 1024, "frames", "Frames queued for one socket; above it the socket is dead. Far above what DEVICE_CALLS_MAX calls can cause.";
    ROOM_TURN_MAX: Duration = secs(4), "time", "The relay's timer of a device never sleeps longer; below AWAKE_STEP_MAX.";
    STALL_NOTICED: Duration = secs(1), "time", "A timer this late means that the relay itself did not run; it then waits as long before it judges silence.";
    SOCKET_BUFFER: usize = 8 * KIB, "bytes", "Read buffer and flush threshold of one device socket; an idle device must fit 24 KiB in all.";
    SOCKET_WRITE_MAX: usize = SOCKET_BUFFER + FRAME_MAX + KIB, "bytes", "Unwritten bytes of one device socket: it takes a frame only when at most SOCKET_BUFFER waits, so one frame with its head, and an answer to a ping, fit on top.";
    SOCKET_READ_BATCH: usize = 32, "frames", "Frames read from one socket before what they caused is written.";
    CALL_PROGRESS_BEHIND: usize = 16, "updates", "Progress a slow request may fall behind; older updates go first, because newer ones say more.";
    CLOSE_WAIT: Duration = secs(2), "time", "How long a closed socket may take to write what is queued and read the peer's end.";

    ["The daemon's outbox"]
    OUTBOX_MEMORY: usize = 16 * MIB, "bytes", "Results waiting in memory.";
    OUTBOX_SPILL_ABOVE: usize = 64 * KIB, "bytes", "A waiting result above this goes to disk.";
    CHUNK_PIECE: usize = 45 * KIB, "bytes", "Bytes of a result in one chunk frame: base64 makes 60 KiB of it, the rest is envelope.";
    OUTBOX_DISK: usize = 512 * MIB, "bytes", "Results waiting on disk; at least DAEMON_CALLS_MAX results of RESULT_MAX.";
    RESEND_FIRST: Duration = secs(10), "time", "An unacknowledged result is sent again after this; doubles.";
    RESEND_MAX: Duration = secs(60), "time", "Cap of RESEND_FIRST.";
    SEEN_IDS_MAX: usize = 4096, "ids", "Call ids remembered by a daemon, and results that may wait (one call more is a protocol error); far above what a relay can still name.";

    ["MCP"]
    MCP_BODY_MAX: usize = 8 * MIB, "bytes", "Body of one POST /mcp; the configuration may raise it to MCP_BODY_MAX_CONFIGURED.";
    MCP_BODY_MAX_CONFIGURED: usize = 16 * MIB, "bytes", "Highest body limit a configuration may ask for.";
    MCP_SMALL_BODY_MAX: usize = 64 * KIB, "bytes", "Body of every MCP message but tools/call; a typed parser would spend a second of CPU on a large one.";
    ARGUMENTS_MAX: usize = FRAME_MAX - 64 * KIB, "bytes", "Arguments of one call: FRAME_MAX less an envelope; more is refused before dispatch.";
    ARGUMENT_VALUES_MAX: usize = 100_000, "values", "JSON values in one call's arguments; more is refused before a tree of them is built.";
    RPC_METHOD_MAX: usize = 256, "bytes", "A JSON-RPC method, as on the base relay.";
    RPC_ID_MAX: usize = 256, "bytes", "A JSON-RPC id that is a text.";
    IDEMPOTENCY_KEY_MAX: usize = 128, "characters", "holdfast/idempotency-key of a call.";
    PATIENCE: Duration = secs(45), "time", "A call answers a client without tasks within this, with a handle if it still runs; below the 60 s after which most clients give up. The configuration may change it.";
    TASK_POLL: Duration = secs(2), "time", "How often a client is asked to look at its task.";
    SESSIONS_PER_PRINCIPAL: usize = 64, "sessions", "MCP sessions of one account and client; the least recently used idle one makes room.";
    SESSIONS_MAX: usize = 1024, "sessions", "MCP sessions in all; at least SESSIONS_PER_PRINCIPAL.";
    SESSION_IDLE: Duration = secs(24 * 3600), "time", "A session without a request, a call in flight or an open stream for this long ends.";
    SESSION_SWEEP: Duration = secs(10), "time", "How often idle sessions and old results are looked for; well under RESUME_KEPT.";
    SESSION_CALLS_MAX: usize = 256, "calls", "Calls in flight in one session, whatever device holds them; at least DEVICE_CALLS_MAX.";
    RESUME_KEPT: Duration = secs(60), "time", "How long a finished 2025-11-25 answer can be fetched again.";
    RESUME_SESSION_BYTES: usize = 8 * MIB, "bytes", "Finished answers one session keeps; the newest is kept whatever its size.";
    RESUME_TOTAL_BYTES: usize = 128 * MIB, "bytes", "Finished answers all sessions keep.";
    STREAM_PROGRESS_MAX: usize = 256, "events", "Progress events a stream keeps for a reader that is away or stalled; the oldest go first.";
    SSE_AFTER: Duration = secs(1), "time", "A 2026-07-28 call that takes longer is answered as an event stream, so that comments keep the connection alive.";
    PRIMING_HOLD: Duration = millis(5), "time", "How long a session's answer waits for a fast call before it begins, so that priming event and result leave in one write.";
    SSE_COMMENT: Duration = secs(15), "time", "An open event stream carries at least a comment this often.";
    SSE_STREAM_COST: usize = 512, "bytes", "What a kept answer costs in RESUME_SESSION_BYTES beside its own bytes.";
    SSE_RETRY: Duration = secs(1), "time", "How soon a client should come back for a lost stream.";
    STRUCTURED_TEXT_MAX: usize = 64 * KIB, "bytes", "A structured result above this is not repeated as text.";
    BOOTSTRAP_TIMEOUT: Duration = secs(10), "time", "How long initialize waits for the device's own instructions.";
    BOOTSTRAP_TEXT_MAX: usize = 3 * MIB, "bytes", "Instructions of the device that initialize passes on.";

    ["Tools"]
    EXEC_TIMEOUT_DEFAULT: Duration = secs(120), "time", "timeout_seconds of run_process and exec_command when absent.";
    EXEC_TIMEOUT_MAX: Duration = secs(600), "time", "Largest timeout_seconds; with SETTLEMENT still below CALL_TIMEOUT_MAX.";
    DRILL_ECHO_MAX: usize = 256, "bytes", "Text that a drill's own call carries there and back.";
    DRILL_LINES: usize = 64, "lines", "Lines of a drill that wait for a slow reader; the drill waits with them.";
    DRILL_WAIT_MAX: Duration = secs(60), "time", "Longest wait of the drill's own call.";
    PROGRESS_EVERY: Duration = secs(2), "time", "How often a running program reports that it runs.";
    TREE_KILL_WAIT: Duration = secs(2), "time", "From SIGTERM to SIGKILL for a process group.";
    OUTPUT_DRAIN_WAIT: Duration = millis(500), "time", "How long output is still read after the program itself ended; then what it left behind is killed.";
    OUTPUT_KEPT: usize = 512 * KIB, "bytes", "Output of a one-shot program kept per stream, half head and half tail; both streams, escaped at worst, fit RESULT_MAX.";
    ARGV_MAX: usize = 256, "items", "Items of an argument vector.";
    ARGV_BYTES_MAX: usize = 64 * KIB, "bytes", "An argument vector in all.";
    COMMAND_MAX: usize = 64 * KIB, "bytes", "A shell command line.";
    PROC_SESSIONS_MAX: usize = 8, "sessions", "Process sessions at once.";
    PROC_OUTPUT: usize = 1024 * KIB, "bytes", "Output kept per stream of a process session; the oldest goes first.";
    PROC_IDLE: Duration = secs(30 * 60), "time", "A process session goes this long after its exit or its last read, whichever is later.";
    PROC_READ_MAX: usize = 256 * KIB, "bytes", "One read_process, per stream.";
    PROC_READ_DEFAULT: usize = 64 * KIB, "bytes", "One read_process when max_bytes is absent.";
    PROC_WAIT_MAX: Duration = secs(30), "time", "Longest wait_ms; below CALL_TIMEOUT_DEFAULT.";
    STDIN_WRITE_MAX: usize = 64 * KIB, "bytes", "One write_process.";
    STDIN_WRITE_WAIT: Duration = secs(10), "time", "How long a write waits for a program that does not read.";
    FILE_BYTES_MAX: usize = 5 * MIB, "bytes", "Largest file written or edited, image, patch, and text of one read or diff; as base64 it fits RESULT_MAX.";
    FILE_BYTES_DEFAULT: usize = MIB, "bytes", "max_bytes of read_file, git_diff and git_show when absent.";
    DIR_ENTRIES_MAX: usize = 5000, "entries", "Entries of one list_dir.";
    LIST_FILES_MAX: usize = 10_000, "files", "Largest max_files of list_files.";
    SEARCH_MATCHES_MAX: usize = 1000, "matches", "Largest max_matches of search_text.";
    SEARCH_FILES_MAX: usize = 100_000, "files", "Largest max_files of search_text.";
    SEARCH_QUERY_MAX: usize = 4 * KIB, "bytes", "A text to search for.";
    SEARCH_LINE_MAX: usize = 500, "characters", "A matching line as shown.";
    PATCH_FILES_MAX: usize = 256, "files", "Files changed by one patch.";
    PATCH_BYTES_MAX: usize = 32 * MIB, "bytes", "Files changed by one patch, old and new text together: it is staged in memory.";
    PATCH_STEPS_MAX: usize = 32 * 1024 * 1024, "steps", "Comparisons of lines one patch may take to find its places: well under a second, because other writes wait.";
    PATCH_STEP: usize = 64, "bytes", "A comparison of longer lines counts as a further step for each of these.";
    PATH_MAX: usize = 4 * KIB, "bytes", "A path in arguments.";
    OVERVIEW_ENTRIES: usize = 200, "entries", "Entries of the workspace shown by project_overview; list_dir shows all.";
    GIT_REVISION_MAX: usize = 256, "bytes", "A revision in arguments.";
    GIT_STORES_MAX: usize = 16, "stores", "Object stores that lend to each other, all inside the workspace.";
    GIT_HEAD_MAX: usize = 4 * KIB, "bytes", "HEAD of a repository that is read for its branch.";
    GIT_LOG_MAX: usize = 100, "commits", "Largest max_count of git_log.";
    GIT_STATUS_MAX: usize = 5000, "entries", "Entries of one git_status.";
    INSTRUCTION_FILE_MAX: usize = 64 * KIB, "bytes", "One instruction file (AGENTS.md and the like).";
    INSTRUCTIONS_MAX: usize = 256 * KIB, "bytes", "All instruction files of one answer.";
    SKILLS_MAX: usize = 500, "skills", "Largest max_skills.";
    SKILL_HEAD: usize = 4 * KIB, "bytes", "Beginning of a skill that is read for its name and description.";
    SUMMARY_MAX: usize = 120, "characters", "The one-line summary of a call in the call list.";
    RESULT_PREVIEW: usize = 32 * KIB, "bytes", "Head and tail shown of a result that does not fit the link.";
    RESULT_PAGE_MAX: usize = 256 * KIB, "bytes", "One read_result.";
    RESULT_KEPT_FOR: Duration = secs(3600), "time", "How long a result that did not fit waits under its handle.";
    RESULTS_DISK: usize = 512 * MIB, "bytes", "Waiting results in all; the oldest goes first.";

    ["Asking before a call runs"]
    ASK_WAIT: Duration = secs(120), "time", "Longest wait for the answer to a question, in awake time.";
    ASK_LEFT: Duration = secs(10), "time", "What a question leaves of the call's budget for the work; of a shorter budget it leaves half.";
    ASKS_MAX: usize = 16, "questions", "Questions that wait at once; a further call is refused as busy. Below the ordinary places of DAEMON_CALLS_MAX, so that questions cannot take them all.";
    ASK_TEXT_MAX: usize = 4096, "characters", "What is shown of a call that asks; how much is not shown is told.";
    ASKS_REMEMBERED: usize = 64, "clients", "Clients whose answer is remembered until the process ends; beyond it the oldest is asked about again.";

    ["Bodies of calls, when they are kept"]
    BODY_SHOWN: usize = 10 * KIB, "bytes", "Arguments and result of one call, each, as they are kept.";
    BODY_READ: usize = 14 * KIB, "bytes", "What is looked at of each for secrets; more than BODY_SHOWN, so that one across the cut is known as one.";
    BODIES_MAX: usize = 2 * MIB, "bytes", "Kept bodies in all; the oldest go first.";

    ["Configuration and this process"]
    CONFIG_FILE_MAX: usize = 256 * KIB, "bytes", "Largest config.toml that is read.";
    CONFIG_POLL: Duration = secs(2), "time", "How often the configuration is looked at when no event came.";
    UPDATE_POLL: Duration = secs(5), "time", "How often a process looks whether a newer program stands in its place.";
    AUTOSTART_POLL: Duration = secs(2), "time", "How often the system's entry is looked at: settings programs change it and tell nobody.";
    AUTOSTART_ENTRY_MAX: usize = 64 * KIB, "bytes", "Of the entry that is read; ours has 300.";
    SECRETS_POLL: Duration = secs(10), "time", "How often the file of credentials is looked at when no event came: the bot's token may have been replaced.";
    CONFIG_SETTLE: Duration = millis(100), "time", "From the first sign of an edit to reading it, because editors write in steps.";
    LOG_FILE_MAX: usize = 8 * MIB, "bytes", "A log file above this is rolled.";
    LOG_FILES: usize = 5, "files", "Log files kept, the current one included.";
    LOG_QUEUE: usize = 8192, "lines", "Log lines waiting for the disk; more are dropped and counted.";
    LOG_TAIL_MAX: usize = 10_000, "lines", "Log lines in one answer.";
    SUPPORT_LOG_LINES: usize = 500, "lines", "Log lines in a support report.";
    SUPPORT_LINE_MAX: usize = 2000, "characters", "One of its lines; the rest is cut.";
    SUPPORT_WORD: usize = 32, "characters", "A run of letters, digits, - and _ this long in a support report is taken for a secret and hidden.";
    SECRETS_FILE_MAX: usize = 64 * KIB, "bytes", "The file that holds this machine's credentials when no keyring does.";
    KEYRING_WAIT: Duration = secs(3), "time", "A keyring that has not answered by then is not used; it may be asking a dialog that nobody sees.";
    API_BODY_MAX: usize = 64 * KIB, "bytes", "One request to the loopback API.";
    API_REQUESTS: usize = 32, "requests", "Requests with a token that the loopback API serves at once, streams included.";
    API_COMMANDS_RESERVED: usize = 4, "requests", "Places beside API_REQUESTS that only commands take, so that Stop works whatever else is open.";
    API_CONNECTIONS: usize = 512, "connections", "Connections to the loopback API at once; many more than places, because anybody on this machine can open one.";
    API_HEADER_TIMEOUT: Duration = secs(5), "time", "A request's head to the loopback API must be complete within this, and an idle connection is kept this long.";
    API_BODY_TIMEOUT: Duration = secs(5), "time", "A request's body to the loopback API must be complete within this.";
    API_STRANGER: Duration = secs(10), "time", "How long a connection to the loopback API lasts on which nobody showed a token.";
    ENROL_ASKS: u32 = 4, "tries", "How often an enrolment is asked for when no answer comes; the relay answers the same exchange the same way.";
    OPEN_CODE_TTL: Duration = secs(60), "time", "Life of the code that opens the window in a browser, and the window of OPEN_TRIES.";
    OPEN_CODES_MAX: usize = 8, "codes", "Such codes not used yet; the oldest makes room.";
    OPEN_TRIES: usize = 10, "tries", "Wrong codes in OPEN_CODE_TTL after which a further wrong one is told so; a right one is always taken.";
    SESSION_TOKENS_MAX: usize = 32, "tokens", "Browsers that have the window open; the oldest has to be opened again.";
    API_ANSWER: Duration = secs(10), "time", "How long a command waits for the loopback API.";
    DISK_LOW: usize = 64 * MIB, "bytes", "Less room than this on the data folder's disk is told as a failure.";
    CLOCK_SKEW_WARN: Duration = secs(30), "time", "A clock further from the relay's is told.";
    LOCK_WAIT: Duration = secs(2), "time", "How long a start waits for the data folder, because a command may hold it for a moment.";
    LOCK_RETRY: Duration = millis(50), "time", "How often a start looks again within LOCK_WAIT.";
    HOLDER_SILENT: Duration = secs(8), "time", "A holder that answers nothing for so long hangs; the command that asked it ends.";
    HOLDER_WAIT: Duration = secs(5), "time", "How long a command waits for a starting holder to name its API.";
    READY_WAIT: Duration = secs(10), "time", "How long a start waits for its own embedded relay to prove the link before it says ready.";
    OUTAGES_FILE_MAX: usize = 256 * KIB, "bytes", "The file of OUTAGES_KEPT outages.";
    KEEP_AWAKE_AFTER: Duration = secs(1), "time", "How long calls run before idle sleep is held off, so that short ones trouble nobody; far below what any system waits before it sleeps.";
    MAINS_LOOK: Duration = secs(30), "time", "How often mains power is looked for while calls run.";
    OUTAGES_SAVE: Duration = secs(60), "time", "How often an outage that lasts is written to disk.";

    ["The tray application"]
    TRAY_EVERY: Duration = millis(500), "time", "The tray's icon and menu change at most this often.";
    TRAY_HOST_WAIT: Duration = secs(5), "time", "How long a hidden start waits for somebody who shows tray icons before it opens the window instead; at login the panel may come later than we do.";
    WORD_MAX: usize = 60, "characters", "A name from elsewhere within a sentence of ours: a client's, a host's.";
    SENTENCE_MAX: usize = 200, "characters", "A cause or a warning within a text of ours.";
    TRAY_TEXT_MAX: usize = 127, "characters", "A tray's tooltip and each line of its menu; Windows shows no more of a tooltip.";
    NOTICE_QUIET: Duration = secs(20), "time", "After a start and after a wake no notice but lost calls; what still stands then is told.";
    NOTICE_OUTAGE: Duration = secs(30), "time", "An outage is told once it has lasted this long.";
    NOTICES_PER_HOUR: usize = 6, "notices", "Notices of one kind in an hour; what comes above it waits, and is told if it still stands.";
    NOTICE_ASKS_PER_HOUR: usize = 60, "notices", "The same for questions that a call waits on: each is one somebody has to answer.";
    WINDOW_STREAMS: usize = 16, "streams", "Streams the status window follows at once.";

    ["The seat"]
    SEAT_ANSWER: Duration = secs(6), "time", "A holder that has not answered a take by then is dead or frozen.";
    SEAT_DRAIN: Duration = secs(4), "time", "How long a holder finishes what is under way before it lets go.";
    SEAT_HANDOVER: Duration = secs(8), "time", "From a holder's word that it drains to its word that it let go; more than SEAT_DRAIN.";
    SEAT_RESERVED: Duration = secs(10), "time", "How long a seat that was let go is kept for who asked for it.";
    SEAT_RETRY: Duration = millis(200), "time", "How often a claimer looks for the lock again; many times within SEAT_RESERVED.";
    SEAT_LOOK: Duration = secs(1), "time", "How often a holder looks whether the seat is still its own, and everybody else who holds it.";
    SEAT_NOTICES: usize = 256, "notices", "What the timeline shall get and the seat has not taken in yet; more is in the log only.";
    DISK_WAIT: Duration = secs(1), "time", "How long a question about a path that people or agents named waits for its disk.";
    SEAT_DISK: Duration = secs(5), "time", "How long the disk of a seat's folder may take to answer; then whatever was wanted of it is tried again later.";
    SEAT_BACKOFF_MIN: Duration = secs(2), "time", "First wait before the chat service, or a seat's disk that is full, is tried again; doubles, and half of it is jitter.";
    SEAT_BACKOFF_MAX: Duration = secs(60), "time", "Longest wait before either is tried again.";
    SEAT_SETTLED: Duration = secs(60), "time", "A connection that stood for this long lets the back-off start over.";
    CHANNEL_AFTER_MAX: Duration = secs(3600), "time", "Longest wait that a chat service may ask for.";
    SEAT_PEERS: usize = 16, "connections", "Processes that a holder listens to at once.";
    SEAT_LINE_MAX: usize = 4 * KIB, "bytes", "One line between processes that want the same seat, and the files of a seat.";
    SEAT_ASK_WAIT: Duration = secs(2), "time", "How long a peer may take to ask, once it is connected.";
    SEAT_COMMAND_WAIT: Duration = secs(30), "time", "How long a command waits for what comes of it; more than SEAT_ANSWER, SEAT_HANDOVER and CHANNEL_REQUEST together.";
    CHANNEL_REQUEST: Duration = secs(10), "time", "One request to a chat service, apart from a long poll.";
    CHANNEL_POLL: Duration = secs(25), "time", "How long the chat service may hold a poll that has nothing to tell.";
    CHANNEL_SEND: Duration = secs(30), "time", "One attempt at a message; less than OUTBOX_WATCH.";
    CHANNEL_UPDATES: usize = 50, "updates", "What one poll brings; the next comes only when all of it is stored.";
    CHANNEL_BODY_MAX: usize = 4 * MIB, "bytes", "One answer of a chat service.";

    ["Status"]
    TIMELINE_ENTRIES: usize = 500, "entries", "Ring of the timeline.";
    STATUS_EVERY: Duration = millis(100), "time", "Shortest time between two published snapshots; a reader who asks gets a fresh one.";
    CALLS_LOST_TOLD: Duration = secs(3600), "time", "How long the warning about lost calls stands.";
    STEPS_QUEUE: usize = 256, "entries", "Timeline entries a slow reader may be behind; it misses the older ones.";
    OUTAGES_KEPT: usize = 200, "outages", "Outages remembered for the 24 h strip.";
    OUTAGES_KEPT_FOR: Duration = secs(24 * 3600), "time", "How long an outage is remembered.";
    ["The relay's HTTP"]
    HTTP_CONNECTIONS_MAX: usize = 16_384, "connections", "Open HTTP connections of one relay; above it the listener waits. Links leave this count when their upgrade is done.";
    HTTP_ACCEPT_PAUSE: Duration = millis(100), "time", "Pause after a failed accept, because most often descriptors are short.";
    HTTP_HEADER_TIMEOUT: Duration = secs(60), "time", "A request's head must be complete within this, and an idle connection is kept this long.";
    HTTP_BODY_IDLE: Duration = secs(30), "time", "A request's body that brings nothing for this long is given up.";
    HTTP_HEADERS_MAX: usize = 64, "headers", "Header lines of one request.";
    HTTP_HEAD_MAX: usize = 64 * KIB, "bytes", "Head of one HTTP/1 request; it is refused by the first read that passes this.";
    HTTP_DRAIN_MAX: usize = 32 * MIB, "bytes", "Body of a refused request that is read and forgotten, so that the answer is not lost to a reset.";
    HTTP_STREAMS_MAX: u32 = 256, "streams", "Concurrent HTTP/2 streams of one connection.";
    TLS_HANDSHAKE: Duration = secs(10), "time", "A TLS handshake must be done within this.";
    SMALL_BODY_MAX: usize = 64 * KIB, "bytes", "Body of every OAuth, account and enrolment request.";
    CERTIFICATE_POLL: Duration = secs(60), "time", "How often certificate files are looked at for a change.";
    FORWARDED_HOPS_MAX: usize = 16, "hops", "Addresses read from the end of one X-Forwarded-For.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::assertions_on_constants, reason = "whoever changes a limit reads here what depends on it")]
    fn the_relations_between_limits_hold() {
        assert!(IN_USE_TOLD >= IN_USE_RETRY * 2);
        assert!(FRAME_MAX > RESULT_MAX);
        assert!(CHUNK_FRAME_MAX < CHUNK_THRESHOLD);
        assert!(SILENCE_DEAD >= HEARTBEAT * 2, "one lost heartbeat must not kill a link");
        assert!(BASE_DAEMON_SILENCE >= BASE_HEARTBEAT * 2 && BASE_RELAY_SILENCE > BASE_DAEMON_SILENCE);
        assert!(BACKOFF_MAX + DIAL_TIMEOUT < GRACE, "an idle daemon must find the relay again inside the grace");
        assert!(SUSPEND_ACK_WAIT < secs(5), "logind's own bound");
        assert!(RUNNER_TOLD_WAIT < SUSPEND_ACK_WAIT, "runners are told while sleep still waits");
        assert!(WORKER_LIVING_SHOWN < WORKER_SHOWN, "some of what ended is shown too");
        assert!(OUTBOX_DISK >= DAEMON_CALLS_MAX * RESULT_MAX);
        assert!(CONTROL_RESERVE < DAEMON_CALLS_MAX && DAEMON_CALLS_MAX <= DEVICE_CALLS_MAX);
        assert!(RESUME_IDS_MAX >= DEVICE_CALLS_MAX, "every held call must fit one resume_calls");
        assert!(QUEUE_WAIT < QUEUE_TTL && PROMOTE_AFTER < QUEUE_WAIT, "a promotion gives a call more time to be sent");
        assert!(HANDLES_PER_ACCOUNT < HANDLES_MAX && KEPT_BYTES_MAX >= RESULT_MAX);
        assert!(TRANSCRIPT_TEXT_MAX > OUTBOX_CHUNKS * CHUNK_DISCORD && TRANSCRIPT_LINE_MAX > TRANSCRIPT_READ);
        assert!(DIFF_MAX < CHUNK_DISCORD && TOOL_BLOCK_MAX < CHUNK_DISCORD, "a tool is told in one message");
        assert!(OUTAGE_SILENT < OUTAGE_HINT);
        assert!(OUTAGE_SILENT < NOTICE_OUTAGE, "a blip is told nobody");
        assert!(REPORT_TIMEOUT < READINESS_TIMEOUT);
        assert!(SOCKET_UNSENT <= TRANSFER_MIN_RATE * TRANSFER_WINDOW.as_secs() as usize);
        assert!(LINK_SEND_BUFFER <= 2 * TRANSFER_MIN_RATE * TRANSFER_WINDOW.as_secs() as usize);
        assert!(KILL_SETTLE < SETTLEMENT, "the daemon's word comes first");
        assert!(CHUNK_PIECE.div_ceil(3) * 4 + 512 <= CHUNK_FRAME_MAX);
        assert!(SEEN_IDS_MAX >= 8 * DAEMON_CALLS_MAX);
        assert!(ROOM_TURN_MAX < AWAKE_STEP_MAX, "a turn must not be taken for a freeze");
        assert!(ACK_DELAY * 10 < RESEND_FIRST, "a delayed acknowledgement must not look like a lost one");
        assert!(DEVICE_ARGUMENTS_MAX >= 2 * FRAME_MAX && SOCKET_QUEUE_MAX >= 8 * DEVICE_CALLS_MAX);
        assert!(EXEC_TIMEOUT_MAX + SETTLEMENT <= CALL_TIMEOUT_MAX);
        assert!(PROC_WAIT_MAX + SETTLEMENT <= CALL_TIMEOUT_DEFAULT);
        assert!(2 * 6 * OUTPUT_KEPT < RESULT_MAX, "a control character takes six bytes in JSON");
        assert!(FILE_BYTES_MAX / 3 * 4 < RESULT_MAX && FILE_BYTES_MAX < ARGUMENTS_MAX);
        assert!(2 * PROC_READ_MAX * 6 < RESULT_MAX && RESULT_PAGE_MAX * 6 < RESULT_MAX);
        assert!(APPROVAL_TTL <= CONSENT_TTL, "a code must not outlive its request");
        assert!(REFRESH_GRACE < ACCESS_LIFE && ACCESS_LIFE < REFRESH_LIFE);
        assert!(GRANTS_PER_CLIENT <= GRANTS_PER_ACCOUNT);
        assert!(
            STORE_WRITE_MAX >= RESULT_MAX + 2 * MIB,
            "a result, and what SQLite has not yet written of its neighbours"
        );
        assert!(STORE_WRITE_MAX >= WORKER_WINDOW + 2 * MIB, "all output in flight may be one commit");
        assert!(STORE_LOG_KEPT < STORE_LOG_LONG && STORE_LOG_LONG < STORE_LOG_MAX - 2 * STORE_WRITE_MAX);
        assert!(MCP_BODY_MAX <= MCP_BODY_MAX_CONFIGURED && MCP_SMALL_BODY_MAX < MCP_BODY_MAX);
        assert!(ARGUMENTS_MAX < FRAME_MAX);
        assert!(API_CONNECTIONS >= 4 * (API_REQUESTS + API_COMMANDS_RESERVED + API_AGENTS));
        assert!(API_HEADER_TIMEOUT + API_BODY_TIMEOUT <= API_STRANGER);
        assert!(SESSIONS_PER_PRINCIPAL <= SESSIONS_MAX && SESSION_CALLS_MAX >= DEVICE_CALLS_MAX);
        assert!(SESSION_SWEEP * 2 < RESUME_KEPT && RESUME_KEPT < SESSION_IDLE);
        assert!(RESUME_SESSION_BYTES >= RESULT_MAX && RESUME_SESSION_BYTES <= RESUME_TOTAL_BYTES);
        assert!(SSE_AFTER < SSE_COMMENT);
        assert!(QUEUE_WAIT < PATIENCE && PROC_WAIT_MAX < PATIENCE, "a reader's wait must not need a handle itself");
        assert!(BODY_SHOWN < BODY_READ && BODIES_MAX >= 2 * 64 * BODY_SHOWN);
        assert!(ASKS_MAX < DAEMON_CALLS_MAX - CONTROL_RESERVE && ASK_LEFT < CALL_TIMEOUT_DEFAULT);
        assert!(SEAT_DRAIN < SEAT_HANDOVER && SEAT_RETRY * 10 < SEAT_RESERVED, "a taker must not miss its own time");
        assert!(SEAT_COMMAND_WAIT > SEAT_ANSWER + SEAT_HANDOVER + CHANNEL_REQUEST);
        assert!(SEAT_BACKOFF_MIN < SEAT_BACKOFF_MAX);
        assert!(OUTBOX_DRAIN_STARTS < SEAT_DRAIN, "a send that is begun must have time to end");
        assert!(OUTBOX_RECORDS < OUTBOX_ENTRIES * OUTBOX_CHUNKS && OUTBOX_CHUNKS < OUTBOX_RECORDS);
        assert!(OUTBOX_NONCE_WINDOW < OUTBOX_WATCH + OUTBOX_WATCH_END, "what hung is asked for, not sent again");
        assert!(ASK_LIFE < OUTBOX_AGE, "a prompt is over before it is too old to be shown");
        assert!(TYPING_AGAIN * 10 < TYPING_FOR && OUTBOX_RETRY_MIN < OUTBOX_RETRY_MAX);
        assert!(OPERATION_INPUT_MAX.div_ceil(3) * 4 < OPERATION_REQUEST_MAX);
        assert!(OPERATION_REQUEST_MAX + 4 * KIB < OPERATION_FRAME_MAX);
        assert!(SYNC_RETRY_BASE < SYNC_RETRY_MAX && SYNC_RETRY_MAX < SYNC_RETRY_FOR);
        assert!(6 * SYNC_LISTED_MAX + 64 * SYNC_FILES_MAX < OPERATION_FRAME_MAX, "the result of a file sync");
        assert!(WORKER_OUTPUT_PIECE.div_ceil(3) * 4 + 512 < OPERATION_FRAME_MAX);
        assert!(WORKER_LEASE_RENEW * 3 < WORKER_LEASE, "two lost renewals must not end a lease");
        assert!(WORKER_SILENCE >= WORKER_ALIVE * 2);
        assert!(WORKER_READ_AHEAD * WORKER_OUTPUT_PIECE <= WORKER_WINDOW);
        assert!(WORKER_RUN_INPUTS_MAX < OPERATIONS_HELD_MAX && WORKER_RUN_INPUTS_MAX <= RUNNER_INPUT_SEEN);
        assert!(WORKER_FRAMES_WAITING > 2 * OPERATIONS_HELD_MAX, "a recovery's answers fit");
        assert!(
            SPOOL_SEGMENT * 2 <= SPOOL_RUN_MIN && SPOOL_RUN_MIN <= SPOOL_RUN_MAX && SPOOL_RUN_MAX <= SPOOL_TOTAL_MAX
        );
        assert!(RUNNER_LINE_MAX > OPERATION_INPUT_MAX.div_ceil(3) * 4);
        assert!(2 * RUNNER_PIPE + RUNNER_RESUME < SPOOL_RUN_MIN, "a program can be read again");
        assert!(2 * RUNNER_PIPE * WORKER_RUNS_MAX as u64 <= 32 * MIB as u64);
        assert!(SPOOL_RUN_MIN * WORKER_RUNS_MAX as u64 <= SPOOL_TOTAL_MAX, "every run has its least");
    }
}
