//! Tools that read a git repository. None of them changes it or runs what its configuration names.

use serde_json::{Value, json};

use super::schema::{max_bytes, object, path, switch, text, whole};
use super::{Effect, Place, Timing, Tool};
use crate::limits;
use crate::policy::Availability;

const fn reads(name: &'static str, title: &'static str, description: &'static str, input: fn() -> Value) -> Tool {
    Tool {
        name,
        title,
        description,
        input,
        class: Availability::Always,
        effect: Effect::Reads,
        timing: Timing::Fixed(limits::CALL_TIMEOUT_DEFAULT),
        control: false,
        place: Place::Device,
    }
}

pub(super) static TOOLS: &[Tool] = &[
    reads("git_status", "Git status", "Branch, head commit, and which files are staged, changed or untracked.", || {
        object(&[("path", path("A folder of the repository."))], &[])
    }),
    reads(
        "git_diff",
        "Git diff",
        "Unified diff of the working tree against the index, or with staged of the index against the head commit.",
        || {
            object(
                &[
                    ("path", path("A folder or file of the repository; only changes below it are shown.")),
                    ("staged", switch(false, "Show what is staged.")),
                    ("max_bytes", max_bytes()),
                ],
                &[],
            )
        },
    ),
    reads("git_log", "Git log", "The latest commits that can be reached from the head, newest first.", || {
        object(
            &[
                ("path", path("A folder of the repository.")),
                ("max_count", whole(1, limits::GIT_LOG_MAX as u64, Some(20), "Commits to return at most.")),
                ("include_author_email", switch(false, "Whether to include e-mail addresses.")),
            ],
            &[],
        )
    }),
    reads("git_show", "Git show", "One commit: who, when, its message and its diff against the first parent.", || {
        let mut revision = text(1, 256, "A commit: a name, an id, or an expression such as HEAD~2.");
        revision["default"] = json!("HEAD");
        object(
            &[("path", path("A folder of the repository.")), ("revision", revision), ("max_bytes", max_bytes())],
            &[],
        )
    }),
];
