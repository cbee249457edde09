//! Tools with which a client finds its way: who am I, where am I, what are the rules here.

use std::time::Duration;

use serde_json::json;

use super::schema::{object, path, switch, text, whole};
use super::{Effect, Place, Timing, Tool};
use crate::limits;
use crate::policy::Availability;

const FIXED: Timing = Timing::Fixed(limits::CALL_TIMEOUT_DEFAULT);

pub(super) static TOOLS: &[Tool] = &[
    Tool {
        name: "server_info",
        title: "Server and connection state",
        description: "What this server is, whether the machine behind it is connected, which tools and rights you have here, \
                      and how many calls are running or waiting. Works while the machine is away.",
        input: || object(&[], &[]),
        class: Availability::Always,
        effect: Effect::Reads,
        timing: FIXED,
        control: false,
        place: Place::Relay,
    },
    Tool {
        name: "session_bootstrap",
        title: "Start here",
        description: "Call once at the start of a conversation. Returns the workspace, the rules that apply to you, the project's \
                      own instruction files (AGENTS.md, CLAUDE.md and the like) and the skills it offers.",
        input: || object(&[("path", path("Folder you are going to work in."))], &[]),
        class: Availability::Always,
        effect: Effect::Reads,
        timing: Timing::Fixed(limits::BOOTSTRAP_TIMEOUT),
        control: false,
        place: Place::Device,
    },
    Tool {
        name: "agent_context",
        title: "Project instructions and skills",
        description: "The instruction files that apply to a folder, outermost first, and the skills found on the way. Read them \
                      before changing files there.",
        input: || {
            object(
                &[
                    ("path", path("Folder or file to look at.")),
                    ("include_instruction_content", switch(true, "Whether to include the texts, not only the names.")),
                    ("max_skills", whole(1, limits::SKILLS_MAX as u64, Some(100), "Skills to list at most.")),
                ],
                &[],
            )
        },
        class: Availability::Always,
        effect: Effect::Reads,
        timing: FIXED,
        control: false,
        place: Place::Device,
    },
    Tool {
        name: "project_overview",
        title: "Project overview",
        description: "A first look at the workspace: top-level entries, build files and the tools they imply, git branch, \
                      and the policy in force.",
        input: || object(&[], &[]),
        class: Availability::Always,
        effect: Effect::Reads,
        timing: FIXED,
        control: false,
        place: Place::Device,
    },
    Tool {
        name: "diagnose_runtime",
        title: "Diagnose the runtime",
        description: "State of the program that runs your calls: link to the relay, running calls, processes and sessions, limits. \
                      Answers even when every ordinary place is taken.",
        input: || object(&[], &[]),
        class: Availability::Always,
        effect: Effect::Reads,
        timing: FIXED,
        control: true,
        place: Place::Device,
    },
    Tool {
        name: "read_result",
        title: "Read a kept result",
        description: "Pages through a result that was too big to return at once, or waits for one that is still being made \
                      (in_progress). Use the handle that the call gave, and go on at next_offset until done is true.",
        input: || {
            object(
                &[
                    (
                        "handle",
                        json!({"type": "string", "pattern": "^(res|kept)_[A-Za-z0-9_-]{16,96}$", "description": "The handle."}),
                    ),
                    ("offset", whole(0, u64::from(u32::MAX), Some(0), "Byte to start at.")),
                    (
                        "max_bytes",
                        whole(
                            1,
                            limits::RESULT_PAGE_MAX as u64,
                            Some(limits::PROC_READ_DEFAULT as u64),
                            "Bytes to return at most.",
                        ),
                    ),
                    (
                        "wait_ms",
                        whole(
                            0,
                            limits::PROC_WAIT_MAX.as_millis() as u64,
                            Some(0),
                            "How long to wait for a result that is still being made.",
                        ),
                    ),
                ],
                &["handle"],
            )
        },
        class: Availability::Always,
        effect: Effect::Reads,
        timing: FIXED,
        control: true,
        place: Place::Shared,
    },
    Tool {
        name: "cancel_result",
        title: "Stop a call in progress",
        description: "Stops a call that was answered with in_progress. cancelled is false if it had ended before.",
        input: || {
            object(
                &[(
                    "handle",
                    json!({"type": "string", "pattern": "^kept_[A-Za-z0-9_-]{16,96}$", "description": "The handle that the call gave."}),
                )],
                &["handle"],
            )
        },
        class: Availability::Always,
        effect: Effect::Writes,
        timing: FIXED,
        control: true,
        place: Place::Relay,
    },
    Tool {
        name: "drill_wait",
        title: "Wait (drill)",
        description: "Waits, for the drill that cuts the link on purpose.",
        input: || {
            object(
                &[
                    ("wait_ms", whole(0, limits::DRILL_WAIT_MAX.as_millis() as u64, None, "How long.")),
                    ("echo", text(0, 256, "Returned as it came.")),
                ],
                &["wait_ms"],
            )
        },
        class: Availability::Always,
        effect: Effect::Reads,
        timing: Timing::Fixed(Duration::from_secs(limits::DRILL_WAIT_MAX.as_secs() + limits::SETTLEMENT.as_secs())),
        control: false,
        place: Place::Internal,
    },
];
