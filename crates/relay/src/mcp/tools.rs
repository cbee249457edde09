//! Which tools a caller has, and whether a call's arguments fit: the core catalogue with its schemas compiled once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use holdfast_core::policy::{Availability, Role};
use holdfast_core::tools::{self, Place, Refusal};
use jsonschema::Validator;
use rmcp::model::ToolAnnotations;
use serde_json::Value;
use serde_json::value::RawValue;

use super::arguments;
use super::reply::RpcError;
use crate::devices::Catalogue;

/// A tool that is not in the core catalogue; a bench registers one under the same name on relay and daemon.
#[derive(Debug, Clone)]
pub struct ExtraTool {
    /// Name on the wire.
    pub name: Arc<str>,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of its result, if it promises one.
    pub output_schema: Option<Value>,
    /// A client that takes tasks gets one at once.
    pub long_running: bool,
}

/// One tool as this relay offers it.
#[derive(Debug)]
pub(super) struct Offered {
    pub name: Arc<str>,
    /// As `tools/list` shows it.
    pub definition: rmcp::model::Tool,
    pub control: bool,
    /// A client that takes tasks gets one at once.
    pub long_running: bool,
    place: Place,
    class: Availability,
    /// `None`: not in the core catalogue, default budget.
    core: Option<&'static tools::Tool>,
    check: Option<Validator>,
}

/// Every tool this relay can offer, in the order of `tools/list`.
#[derive(Debug)]
pub(super) struct ToolSet {
    tools: Vec<Offered>,
    by_name: HashMap<Arc<str>, usize>,
}

fn definition(name: String, description: String, schema: Value) -> rmcp::model::Tool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    rmcp::model::Tool::new(name, description, Arc::new(schema))
}

/// What a caller may do with a name.
pub(super) enum Found<'a> {
    /// The relay answers it.
    Relay(&'a Offered),
    /// The device runs it.
    Device(&'a Offered),
    /// It exists and may not be used: a tool error.
    Refused(ToolError),
}

impl ToolSet {
    /// Compiles the schemas. A schema that does not compile is a defect of ours and checks nothing; a test sees to it.
    pub fn new(extra: &[ExtraTool]) -> ToolSet {
        let core = tools::all().filter(|tool| tool.place != Place::Internal).map(|tool| {
            let schema = (tool.input)();
            let annotations = tool.annotations();
            let hints = ToolAnnotations::with_title(annotations.title)
                .read_only(annotations.read_only_hint)
                .destructive(annotations.destructive_hint)
                .idempotent(annotations.idempotent_hint)
                .open_world(annotations.open_world_hint);
            Offered {
                name: tool.name.into(),
                check: jsonschema::validator_for(&schema).ok(),
                definition: definition(tool.name.into(), tool.description.into(), schema)
                    .with_title(tool.title)
                    .with_annotations(hints),
                control: tool.control,
                long_running: false,
                place: tool.place,
                class: tool.class,
                core: Some(tool),
            }
        });
        let extra = extra.iter().map(|tool| {
            let mut definition = definition(tool.name.to_string(), tool.description.clone(), tool.input_schema.clone());
            definition.output_schema = tool.output_schema.as_ref().and_then(Value::as_object).cloned().map(Arc::new);
            Offered {
                name: tool.name.clone(),
                check: jsonschema::validator_for(&tool.input_schema).ok(),
                definition,
                control: false,
                long_running: tool.long_running,
                place: Place::Device,
                class: Availability::Always,
                core: None,
            }
        });
        let tools: Vec<_> = core.chain(extra).collect();
        let by_name = tools.iter().enumerate().map(|(at, tool)| (tool.name.clone(), at)).collect();
        ToolSet { tools, by_name }
    }

    /// The tools of an account with this role on a device with this catalogue, in a fixed order.
    pub fn listed<'a>(&'a self, role: Role, device: &'a Catalogue) -> impl Iterator<Item = &'a Offered> {
        self.tools.iter().filter(move |tool| match tool.place {
            // Without a device there is nothing to do but to learn that.
            Place::Relay | Place::Shared => &*tool.name == "server_info" || !device.tools.is_empty(),
            Place::Device | Place::Worker => {
                device.tools.contains(&tool.name) && tools::allowed(tool.class, role, &device.policy).is_ok()
            }
            Place::Internal => false,
        })
    }

    /// Finds the tool of a call. A name nobody knows is an error of the protocol.
    pub fn find(&self, name: &str, role: Role, device: &Catalogue) -> Result<Found<'_>, RpcError> {
        let tool = self.by_name.get(name).and_then(|at| self.tools.get(*at));
        let tool = tool.ok_or_else(|| RpcError::invalid_params("unknown tool"))?;
        if tool.place == Place::Relay || tool.place == Place::Shared && !device.tools.contains(&tool.name) {
            return Ok(Found::Relay(tool));
        }
        if device.tools.is_empty() {
            let text = "no device has connected yet";
            return Ok(Found::Refused(ToolError::nothing_done(Code::Unavailable, text)));
        }
        let refused = |code, text: &str| Ok(Found::Refused(ToolError::new(code, text)));
        match tools::allowed(tool.class, role, &device.policy) {
            Err(Refusal::Role) => refused(Code::AuthorizationDenied, "tool is not allowed for this account role"),
            Err(Refusal::Policy) => refused(Code::PolicyDenied, "the device's policy does not allow this tool"),
            Ok(()) if !device.tools.contains(&tool.name) => Err(RpcError::invalid_params("unknown tool")),
            Ok(()) if tool.place == Place::Worker => Ok(Found::Relay(tool)),
            Ok(()) => Ok(Found::Device(tool)),
        }
    }
}

impl Offered {
    /// Checks a call's arguments against the advertised schema; answers them as a tree.
    pub fn check(&self, raw: &RawValue) -> Result<Value, RpcError> {
        if raw.get().len() > limits::ARGUMENTS_MAX {
            return Err(RpcError::invalid_params("arguments do not fit one frame of the link"));
        }
        let arguments = arguments::read(raw).map_err(RpcError::invalid_params)?;
        if let Some(error) = self.check.as_ref().and_then(|check| check.validate(&arguments).err()) {
            let (what, place) = (error.masked().to_string(), error.instance_path().to_string());
            let text = if place.is_empty() { what } else { format!("{place}: {what}") };
            let text: String = text.chars().take(limits::ERROR_MESSAGE_MAX).collect();
            return Err(RpcError::invalid_params(text));
        }
        Ok(arguments)
    }

    /// The execution budget.
    pub fn budget(&self, arguments: &RawValue) -> Duration {
        self.core.map_or(limits::CALL_TIMEOUT_DEFAULT, |tool| tool.budget(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::policy::{Policy, Profile};

    fn device(tools: &[&str], profile: Profile) -> Catalogue {
        Catalogue { tools: tools.iter().map(|t| Arc::from(*t)).collect(), policy: Policy::of(profile, "explicit") }
    }

    fn names(set: &ToolSet, role: Role, device: &Catalogue) -> Vec<String> {
        set.listed(role, device).map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn every_schema_compiles() {
        let set = ToolSet::new(&[]);
        assert!(set.tools.iter().all(|tool| tool.check.is_some()));
    }

    #[test]
    fn a_caller_sees_what_role_and_policy_and_device_all_allow_in_a_fixed_order() {
        let set = ToolSet::new(&[]);
        let full = device(&["write_file", "exec_command", "list_dir", "unheard_of"], Profile::Full);
        assert_eq!(
            names(&set, Role::Owner, &full),
            ["server_info", "read_result", "cancel_result", "list_dir", "write_file", "exec_command"]
        );
        assert_eq!(
            names(&set, Role::Editor, &full),
            ["server_info", "read_result", "cancel_result", "list_dir", "write_file"]
        );
        let edit = device(&["exec_command", "write_file", "list_dir"], Profile::Edit);
        assert_eq!(
            names(&set, Role::Owner, &edit),
            ["server_info", "read_result", "cancel_result", "list_dir", "write_file"]
        );
        assert_eq!(names(&set, Role::Owner, &Catalogue::default()), ["server_info"]);
    }

    #[test]
    fn a_refusal_says_whether_role_policy_or_absence_is_the_reason() {
        let set = ToolSet::new(&[]);
        let agent = device(&["write_file", "list_dir"], Profile::Review);
        let code = |name: &str, role, device: &Catalogue| match set.find(name, role, device) {
            Ok(Found::Refused(error)) => error.code.as_str().to_owned(),
            Ok(Found::Relay(_)) => "relay".into(),
            Ok(Found::Device(tool)) => tool.name.to_string(),
            Err(error) => error.code.to_string(),
        };
        assert_eq!(code("write_file", Role::Owner, &agent), "policy_denied");
        let full = device(&["write_file", "list_dir"], Profile::Full);
        assert_eq!(code("write_file", Role::Reviewer, &full), "authorization_denied");
        assert_eq!(code("write_file", Role::Owner, &full), "write_file");
        assert_eq!(code("read_file", Role::Owner, &full), "-32602");
        assert_eq!(code("nonsense", Role::Owner, &full), "-32602");
        assert_eq!(code("drill_wait", Role::Owner, &full), "-32602");
        assert_eq!(code("list_dir", Role::Owner, &Catalogue::default()), "unavailable");
        assert_eq!(code("server_info", Role::Reviewer, &Catalogue::default()), "relay");
    }

    #[test]
    fn arguments_must_fit_the_advertised_schema() {
        let set = ToolSet::new(&[]);
        let full = device(&["read_file"], Profile::Full);
        let Ok(Found::Device(tool)) = set.find("read_file", Role::Owner, &full) else { panic!("not found") };
        let check =
            |text: &str| tool.check(&RawValue::from_string(text.into()).unwrap()).map(|_| ()).map_err(|e| e.code);
        assert_eq!(check(r#"{"path":"a"}"#), Ok(()));
        for bad in [r#"{}"#, r#"{"path":7}"#, r#"{"path":"a","start_line":0}"#, r#"{"path":"a","nonsense":1}"#] {
            assert_eq!(check(bad), Err(-32602), "{bad}");
        }
    }
}
