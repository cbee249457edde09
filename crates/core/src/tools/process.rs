//! Tools that run programs.

use serde_json::{Value, json};

use super::schema::{argv, object, path, switch, text, timeout, whole};
use super::{Effect, Place, Timing, Tool};
use crate::limits;
use crate::policy::Availability;

const fn runs(name: &'static str, title: &'static str, description: &'static str, input: fn() -> Value) -> Tool {
    Tool {
        name,
        title,
        description,
        input,
        class: Availability::DirectExec,
        effect: Effect::Runs,
        timing: Timing::Fixed(limits::CALL_TIMEOUT_DEFAULT),
        control: false,
        place: Place::Device,
    }
}

fn session_id() -> Value {
    json!({"type": "string", "pattern": "^proc_[A-Za-z0-9_-]{16,96}$", "description": "The session, from start_process."})
}

pub(super) static TOOLS: &[Tool] = &[
    Tool {
        timing: Timing::TimeoutSeconds,
        ..runs(
            "run_process",
            "Run a program",
            "Runs a program to its end and returns exit code and output; long output keeps its head and tail. Everything the \
             program started ends with it. For something that should keep running use start_process.",
            || {
                object(
                    &[("argv", argv()), ("cwd", path("Folder to run in.")), ("timeout_seconds", timeout())],
                    &["argv"],
                )
            },
        )
    },
    Tool {
        class: Availability::ShellExec,
        timing: Timing::TimeoutSeconds,
        ..runs(
            "exec_command",
            "Run a shell command",
            "Runs a command line in the system's shell, in the workspace, and returns exit code and output as run_process does.",
            || {
                object(
                    &[("command", text(1, limits::COMMAND_MAX, "The command line.")), ("timeout_seconds", timeout())],
                    &["command"],
                )
            },
        )
    },
    runs(
        "start_process",
        "Start a program",
        "Starts a program that keeps running after this call, such as a server or a REPL, and returns a session id for \
         read_process, write_process and kill_process. At most 8 sessions.",
        || object(&[("argv", argv()), ("cwd", path("Folder to run in."))], &["argv"]),
    ),
    Tool {
        effect: Effect::Reads,
        control: true,
        ..runs(
            "read_process",
            "Read a session's output",
            "Output of a session from the given offsets, and whether it still runs. Pass the returned next offsets to go on; with \
             wait_ms the call waits for more output, with wait_for_exit for the end.",
            || {
                object(
                    &[
                        ("session_id", session_id()),
                        ("stdout_offset", whole(0, (1 << 53) - 1, Some(0), "Byte of stdout to start at.")),
                        ("stderr_offset", whole(0, (1 << 53) - 1, Some(0), "Byte of stderr to start at.")),
                        (
                            "max_bytes",
                            whole(
                                1,
                                limits::PROC_READ_MAX as u64,
                                Some(limits::PROC_READ_DEFAULT as u64),
                                "Bytes per stream at most.",
                            ),
                        ),
                        ("wait_ms", whole(0, limits::PROC_WAIT_MAX.as_millis() as u64, Some(0), "How long to wait.")),
                        ("wait_for_exit", switch(false, "Wait for the end instead of for output.")),
                    ],
                    &["session_id"],
                )
            },
        )
    },
    runs("write_process", "Write to a session", "Sends text to the standard input of a session.", || {
        object(
            &[
                ("session_id", session_id()),
                ("data", text(0, limits::STDIN_WRITE_MAX, "The text; end a line with \\n.")),
                ("close_stdin", switch(false, "Close the input after this text.")),
            ],
            &["session_id", "data"],
        )
    }),
    Tool {
        control: true,
        ..runs(
            "kill_process",
            "End a session",
            "Ends a session's program and everything it started: asks first and kills after two seconds, or kills at once with force.",
            || object(&[("session_id", session_id()), ("force", switch(false, "Kill at once."))], &["session_id"]),
        )
    },
];
