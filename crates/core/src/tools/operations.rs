//! Tools for durable operations. The relay answers them; a device that hosts a worker advertises them.

use serde_json::{Value, json};

use super::schema::{argv, object, path, switch, text, timeout_without_default, whole};
use super::{Effect, Place, Timing, Tool};
use crate::limits;
use crate::policy::Availability;

/// Names of the tools, as [`find`](super::find) knows them.
pub const START: &str = "start_operation";
/// See [`START`].
pub const READ: &str = "read_operation";
/// See [`START`].
pub const WRITE: &str = "write_operation";
/// See [`START`].
pub const CANCEL: &str = "cancel_operation";
/// See [`START`].
pub const LIST: &str = "list_operations";

const fn tool(name: &'static str, title: &'static str, description: &'static str, input: fn() -> Value) -> Tool {
    Tool {
        name,
        title,
        description,
        input,
        class: Availability::DirectExec,
        effect: Effect::Runs,
        // Nothing of it runs on the link.
        timing: Timing::Fixed(limits::CALL_TIMEOUT_DEFAULT),
        control: false,
        place: Place::Worker,
    }
}

fn operation_id() -> Value {
    json!({"type": "string", "pattern": "^op_[A-Za-z0-9_-]{22,64}$", "description": "The operation, from start_operation."})
}

fn offset(what: &str) -> Value {
    whole(0, (1 << 53) - 1, Some(0), what)
}

pub(super) static TOOLS: &[Tool] = &[
    tool(
        START,
        "Start an operation",
        "Starts work that must not be lost: it is queued while the machine is away, goes on when the connection, the relay or \
         Holdfast itself goes away, never runs twice, and its output is kept. Give argv or command; or request for another \
         kind of work. Returns at once with an operation id; follow it with read_operation.",
        || {
            object(
                &[
                    ("argv", argv()),
                    (
                        "command",
                        text(1, limits::COMMAND_MAX, "A command line for the system's shell, in place of argv."),
                    ),
                    ("cwd", path("Folder to run in.")),
                    (
                        "env",
                        json!({"type": "object", "maxProperties": limits::OPERATION_ENV_MAX,
                               "additionalProperties": {"type": "string"}, "description": "Environment variables to add."}),
                    ),
                    ("stdin", switch(false, "Keep its standard input open for write_operation.")),
                    ("terminal", switch(false, "Run it in a terminal of 80 columns and 24 rows.")),
                    ("timeout_seconds", timeout_without_default()),
                    (
                        "on_lease_expiry",
                        json!({"type": "string", "enum": ["continue", "stop"], "default": "continue",
                               "description": "stop: end it when the machine was out of the relay's reach for two minutes."}),
                    ),
                    (
                        "on_full",
                        json!({"type": "string", "enum": ["wait", "drop_middle"], "default": "wait",
                               "description": "What happens when its output is not fetched and finds no more room."}),
                    ),
                    (
                        "session",
                        text(
                            1,
                            limits::OPERATION_SESSION_NAME_MAX,
                            "A name under which operations can be cancelled together.",
                        ),
                    ),
                    (
                        "key",
                        text(
                            1,
                            limits::OPERATION_KEY_MAX,
                            "Your own key: the same key and request again is the same operation.",
                        ),
                    ),
                    (
                        "request",
                        json!({"type": "object", "description": "Another kind of operation: {\"type\": \"file_sync\" | \
                               \"sync_workspace\" | \"create_project_branch\" | \"port_forward_connect\", …}."}),
                    ),
                ],
                &[],
            )
        },
    ),
    Tool {
        effect: Effect::Reads,
        ..tool(
            READ,
            "Read an operation",
            "State of an operation and its output from the given offsets. Pass the returned next offsets to go on until done is \
             true; with wait_ms the call waits for more. Output that is no text comes as base64.",
            || {
                object(
                    &[
                        ("operation_id", operation_id()),
                        ("stdout_offset", offset("Byte of stdout, or of the terminal, to start at.")),
                        ("stderr_offset", offset("Byte of stderr to start at.")),
                        (
                            "max_bytes",
                            whole(
                                1,
                                limits::PROC_READ_MAX as u64,
                                Some(limits::PROC_READ_DEFAULT as u64),
                                "Bytes per stream at most.",
                            ),
                        ),
                        (
                            "wait_ms",
                            whole(0, limits::CONTROL_WAIT_MAX.as_millis() as u64, Some(0), "How long to wait."),
                        ),
                    ],
                    &["operation_id"],
                )
            },
        )
    },
    tool(
        WRITE,
        "Write to an operation",
        "Sends input to an operation that takes some, or changes its terminal's size.",
        || {
            object(
                &[
                    ("operation_id", operation_id()),
                    ("data", text(0, limits::STDIN_WRITE_MAX, "The text; end a line with \\n.")),
                    (
                        "data_base64",
                        text(
                            0,
                            limits::STDIN_WRITE_MAX.div_ceil(3) * 4,
                            "Bytes that are no text, as base64; in place of data.",
                        ),
                    ),
                    ("close", switch(false, "That was all: close its input, or hang its terminal up.")),
                    ("cols", whole(1, 1000, None, "Columns of its terminal; with rows, in place of data.")),
                    ("rows", whole(1, 1000, None, "Rows of its terminal.")),
                    (
                        "key",
                        text(1, limits::OPERATION_KEY_MAX, "Your own key: the same key again is not written twice."),
                    ),
                ],
                &["operation_id"],
            )
        },
    ),
    tool(
        CANCEL,
        "Cancel an operation",
        "Ends an operation and everything it started; one that waits for its machine never starts.",
        || object(&[("operation_id", operation_id())], &["operation_id"]),
    ),
    Tool {
        effect: Effect::Reads,
        ..tool(LIST, "List operations", "The newest operations of this machine that are yours.", || {
            object(
                &[
                    ("living", switch(false, "Only those that have not ended.")),
                    (
                        "before",
                        json!({"type": "string", "maxLength": 80, "description": "Only those older than this one."}),
                    ),
                    ("limit", whole(1, limits::CONTROL_LIST_MAX as u64, Some(20), "How many at most.")),
                ],
                &[],
            )
        })
    },
];
