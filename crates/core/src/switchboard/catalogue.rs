//! What a device offers: the last word of its hello, sanitised.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::policy::{Policy, Profile};

/// Tools and policy of a device. Outlives outages and restarts, so that `tools/list` stays stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// Names of the tools in the device's order, each once, never `server_info`. Empty: no device was ever seen.
    pub tools: Vec<Arc<str>>,
    /// The device's policy.
    pub policy: Policy,
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue { tools: Vec::new(), policy: Policy::of(Profile::Review, "default") }
    }
}

impl Catalogue {
    /// Reads what a hello claims: an ill-formed or repeated name is left out, the policy is read as the weakest it can mean.
    pub fn read(tools: &[String], policy: &serde_json::Value) -> Catalogue {
        let mut seen = std::collections::HashSet::new();
        let tools = tools
            .iter()
            .filter(|name| is_tool_name(name) && name.as_str() != "server_info" && seen.insert(name.as_str()))
            .take(limits::DEVICE_TOOLS_MAX)
            .map(|name| Arc::from(name.as_str()))
            .collect();
        Catalogue { tools, policy: Policy::sanitise(policy) }
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=limits::TOOL_NAME_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_that_names_a_tool_twice_or_badly_offers_it_once_or_not_at_all() {
        let names = ["list_dir", "server_info", "list_dir", "", "a b", "read_file"].map(String::from);
        let catalogue = Catalogue::read(&names, &serde_json::Value::Null);
        assert_eq!(catalogue.tools, ["list_dir", "read_file"].map(Arc::<str>::from));
        assert!(!catalogue.policy.allow_write);
    }
}
