//! What becomes of a call that lasts: how long its client waits, and in which form it takes the handle.

use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::id::KeptId;
use holdfast_core::limits;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::envelope::Meta;
use super::outcome::Outcome;
use super::tools::Offered;
use crate::Principal;
use crate::devices::Outlives;

/// The extension by which a client says that it takes tasks.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Clients that wait for a call as long as it takes, by the name they give themselves.
const PATIENT: [&str; 1] = ["claude-code"];

/// How a client waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It takes a task in place of any result.
    Tasks,
    /// It gives up after this.
    Ends(Duration),
    /// It waits for the end.
    Endless,
}

/// In which form a client takes the handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A task.
    Task,
    /// An ordinary result.
    Result,
    /// A failure, because a result of this tool has a schema.
    Failure,
}

impl Patience {
    /// Of a client of this name. `setting`: that of an unknown client; zero switches it off.
    pub fn of(name: Option<&str>, setting: Duration) -> Patience {
        match name.is_some_and(|name| PATIENT.contains(&name)) || setting.is_zero() {
            true => Patience::Endless,
            false => Patience::Ends(setting),
        }
    }

    /// Of a self-contained request.
    pub fn of_request(meta: &Meta<'_>, setting: Duration) -> Patience {
        if declares_tasks(meta) {
            return Patience::Tasks;
        }
        // Most names are none of the table's, which a search for them tells without reading the rest.
        let known = |info: &&RawValue| PATIENT.iter().any(|name| info.get().contains(name));
        Patience::of(meta.client_info.filter(known).and_then(name).as_deref(), setting)
    }

    /// What a call of this tool is to do.
    pub fn plan(self, tool: &Offered, principal: &Principal) -> (Option<Outlives>, Form) {
        let (after, form) = match self {
            Patience::Tasks if tool.long_running => (Duration::ZERO, Form::Task),
            Patience::Tasks => (limits::PROMOTE_AFTER, Form::Task),
            Patience::Ends(after) if tool.definition.output_schema.is_some() => (after, Form::Failure),
            Patience::Ends(after) => (after, Form::Result),
            Patience::Endless => return (None, Form::Result),
        };
        (Some(Outlives { after, when_away: self == Patience::Tasks, grant: principal.grant.clone() }), form)
    }
}

/// The name in what a client says of itself.
pub(super) fn name(info: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Info {
        name: String,
    }
    serde_json::from_str::<Info>(info.get()).ok().map(|info| info.name)
}

/// Whether a self-contained request says that its client takes tasks.
pub(super) fn declares_tasks(meta: &Meta<'_>) -> bool {
    #[derive(Deserialize)]
    struct Capabilities {
        #[serde(rename = "extensions")]
        _extensions: Extensions,
    }
    #[derive(Deserialize)]
    struct Extensions {
        #[serde(rename = "io.modelcontextprotocol/tasks")]
        _tasks: IgnoredAny,
    }
    // A search for the literal name is far cheaper than reading every client's capabilities.
    meta.client_capabilities
        .is_some_and(|raw| raw.get().contains(TASKS) && serde_json::from_str::<Capabilities>(raw.get()).is_ok())
}

/// The answer of a plain call that goes on.
pub(super) fn in_progress(handle: &KeptId, form: Form) -> Outcome {
    let message = "the call goes on; read its result with read_result, stop it with cancel_result, do not call again";
    let details = json!({"handle": handle, "read_with": "read_result", "cancel_with": "cancel_result"});
    if form == Form::Failure {
        return Err(ToolError::new(Code::InProgress, message).with_details(&details));
    }
    let mut told = details;
    told["status"] = json!(Code::InProgress);
    told["message"] = json!(message);
    to_raw_value(&told).map_err(|_| ToolError::new(Code::InProgress, message))
}
