//! The catalogue of local tools: names, schemas, classes and deadlines. Pure data, shared by relay and daemon.
//!
//! The relay lists tools from here and checks arguments against the schemas; the daemon advertises the names its policy
//! allows and runs them. `server_info` stands here for its definition and is answered by the relay itself.

mod files;
mod git;
pub mod operations;
mod orient;
pub mod patch;
mod process;
mod schema;
mod summary;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use summary::{summary, whole};

use crate::limits;
use crate::policy::{Availability, Policy, Role};

/// One tool, as data.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Name on the wire.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// What a model needs to know to call it well.
    pub description: &'static str,
    /// Builds the JSON Schema of the arguments: an object without additional properties.
    pub input: fn() -> Value,
    /// What a policy must allow.
    pub class: Availability,
    /// What it does to the machine.
    pub effect: Effect,
    /// How long it may run.
    pub timing: Timing,
    /// Whether it may use the reserved places, so that a full machine can still be asked and stopped.
    pub control: bool,
    /// Who answers it and who sees it.
    pub place: Place,
}

/// What a tool does to the machine, the harmless first; [`Annotations`] and the meaning of a timeout follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Changes nothing. A timed-out call may be sent again.
    Reads,
    /// Changes files; the same call again finds its work done or refuses.
    Writes,
    /// May do anything the user may do.
    Runs,
}

/// How a tool's execution budget is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Always this long.
    Fixed(Duration),
    /// By its argument `timeout_seconds`, and [`limits::SETTLEMENT`] to end its processes.
    TimeoutSeconds,
}

/// Who answers a tool and who sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A device; listed when the device advertises it.
    Device,
    /// The relay.
    Relay,
    /// The relay for its own handles, a device for the others.
    Shared,
    /// The relay, for the worker of a device; listed when that device advertises it.
    Worker,
    /// A device, for Holdfast itself; never listed nor callable by a client.
    Internal,
}

/// MCP's hints, as they stand in `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Name for people.
    pub title: &'static str,
    /// Changes nothing.
    pub read_only_hint: bool,
    /// May destroy something.
    pub destructive_hint: bool,
    /// The same call twice is the same as once.
    pub idempotent_hint: bool,
    /// Reaches beyond this machine.
    pub open_world_hint: bool,
}

impl Tool {
    /// The hints of this tool.
    pub fn annotations(&self) -> Annotations {
        Annotations {
            title: self.title,
            read_only_hint: self.read_only(),
            destructive_hint: !self.read_only(),
            idempotent_hint: self.read_only(),
            open_world_hint: self.effect == Effect::Runs,
        }
    }

    /// Whether it changes nothing, so that a timed-out call may be sent again.
    pub fn read_only(&self) -> bool {
        self.effect == Effect::Reads
    }

    /// The execution budget of a call with these arguments; the daemon's deadline (the relay adds its settlement).
    /// Arguments that say nonsense get the default: the argument check refuses them anyway.
    pub fn budget(&self, arguments: &RawValue) -> Duration {
        #[derive(Deserialize)]
        struct Timed {
            timeout_seconds: Option<f64>,
        }
        match self.timing {
            Timing::Fixed(budget) => budget,
            Timing::TimeoutSeconds => {
                let asked = serde_json::from_str::<Timed>(arguments.get()).ok().and_then(|t| t.timeout_seconds);
                let seconds =
                    asked.map_or(limits::EXEC_TIMEOUT_DEFAULT, |s| Duration::try_from_secs_f64(s).unwrap_or_default());
                seconds.clamp(Duration::from_secs(1), limits::EXEC_TIMEOUT_MAX) + limits::SETTLEMENT
            }
        }
    }
}

/// Every tool, in the order of `tools/list`.
pub fn all() -> impl Iterator<Item = &'static Tool> {
    [orient::TOOLS, files::TOOLS, git::TOOLS, process::TOOLS, operations::TOOLS].into_iter().flatten()
}

/// The tool of a name.
pub fn find(name: &str) -> Option<&'static Tool> {
    all().find(|tool| tool.name == name)
}

/// The tools a device with this policy advertises in `hello`.
pub fn advertised(policy: &Policy) -> impl Iterator<Item = &'static Tool> {
    all()
        .filter(|tool| matches!(tool.place, Place::Device | Place::Shared | Place::Worker) && policy.allows(tool.class))
}

/// Why a tool of the catalogue may not be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The device's policy does not allow its class.
    Policy,
    /// The account's role does not.
    Role,
}

/// Whether an account of this role may use a class of tools on a device with this policy.
pub fn allowed(class: Availability, role: Role, device: &Policy) -> Result<(), Refusal> {
    if !device.allows(class) {
        return Err(Refusal::Policy);
    }
    // As `Policy::of(role.profile()).allows(class)`, without building that policy on every call.
    let least = match class {
        Availability::Always => Role::Reviewer,
        Availability::Write => Role::Editor,
        Availability::DirectExec | Availability::WriteAndDirectExec => Role::Operator,
        Availability::ShellExec | Availability::Full => Role::Owner,
    };
    if role >= least { Ok(()) } else { Err(Refusal::Role) }
}

/// The execution budget of a call; a name outside the catalogue gets the default.
pub fn budget(name: &str, arguments: &RawValue) -> Duration {
    find(name).map_or(limits::CALL_TIMEOUT_DEFAULT, |tool| tool.budget(arguments))
}

#[cfg(test)]
mod tests;
