//! What an edit of the file changes in a running Holdfast.

use holdfast_core::policy::Profile;
use serde_json::Value;

use super::Config;

/// What came of an edit.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The configuration that runs from now on.
    pub running: Config,
    /// Keys whose new value runs now.
    pub changed: Vec<String>,
    /// Keys whose new value waits for a restart.
    pub restart: Vec<String>,
    /// The profile that was asked for and not taken, because it is weaker than the running one.
    pub not_loosened: Option<Profile>,
}

impl Applied {
    /// Notes a list of which only what it takes away counts at once; what it adds waits for a restart.
    fn narrowed<T: PartialEq>(&mut self, key: String, running: &T, edited: &T, now: &T) {
        if now != edited {
            self.restart.push(key.clone());
        }
        if now != running {
            self.changed.push(key);
        }
    }
}

/// Applies what can be applied: the log level, the notices, how calls are treated, the channel, and a stricter policy. Everything else waits for a
/// restart. `asked` tells the keys that the owner set by a command, not by an edit of the file: those may loosen the policy.
pub fn apply(running: &Config, edited: &Config, asked: impl Fn(&str) -> bool) -> Applied {
    let mut applied =
        Applied { running: running.clone(), changed: Vec::new(), restart: Vec::new(), not_loosened: None };
    for key in differing_keys(running, edited) {
        match key.as_str() {
            "log.level" => {
                applied.running.log = edited.log.clone();
                applied.changed.push(key);
            }
            "ask.clients" | "ask.tools" => {
                applied.running.ask = edited.ask.clone();
                applied.changed.push(key);
            }
            channel if channel.starts_with("channel.") => {
                applied.running.channel = edited.channel.clone();
                applied.changed.push(key);
            }
            "power.keep_awake" => {
                applied.running.power = edited.power.clone();
                applied.changed.push(key);
            }
            notice if notice.starts_with("notices.") => {
                applied.running.notices = edited.notices.clone();
                applied.changed.push(key);
            }
            "calls.keep_bodies" => {
                applied.running.calls = edited.calls.clone();
                applied.changed.push(key);
            }
            "sync.allow_hosts" => {
                let now = if asked(&key) { edited.sync.clone() } else { edited.sync.common(&running.sync) };
                applied.narrowed(key, &running.sync, &edited.sync, &now);
                applied.running.sync = now;
            }
            "forward.allow_ports" => {
                let now = if asked(&key) { edited.forward.clone() } else { edited.forward.common(&running.forward) };
                applied.narrowed(key, &running.forward, &edited.forward, &now);
                applied.running.forward = now;
            }
            "policy.profile" if asked(&key) || edited.policy.in_force() <= running.policy.in_force() => {
                applied.running.policy = edited.policy.clone();
                applied.changed.push(key);
            }
            "policy.profile" => applied.not_loosened = Some(edited.policy.in_force()),
            _ => applied.restart.push(key),
        }
    }
    applied
}

fn differing_keys(a: &Config, b: &Config) -> Vec<String> {
    let tables = |config: &Config| match serde_json::to_value(config) {
        Ok(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    };
    let (a, b) = (tables(a), tables(b));
    let mut keys = Vec::new();
    for (table, values) in &a {
        for (key, value) in values.as_object().into_iter().flatten() {
            if b[table][key] != *value {
                keys.push(format!("{table}.{key}"));
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BindingConfig, LogLevel, PolicyConfig};

    fn nothing(_: &str) -> bool {
        false
    }

    fn with_profile(profile: Profile) -> Config {
        Config { policy: PolicyConfig { profile: Some(profile) }, ..Config::default() }
    }

    #[test]
    fn a_reload_tightens_the_policy_and_never_loosens_it() {
        let agent = with_profile(Profile::Agent);
        let tighter = apply(&agent, &with_profile(Profile::Review), nothing);
        assert_eq!(tighter.running.policy.in_force(), Profile::Review);
        assert_eq!(tighter.changed, ["policy.profile"]);
        let looser = apply(&agent, &with_profile(Profile::Full), nothing);
        assert_eq!(looser.running, agent);
        assert_eq!(looser.not_loosened, Some(Profile::Full));
        let wanted = apply(&agent, &with_profile(Profile::Full), |key| key == "policy.profile");
        assert_eq!((wanted.running.policy.in_force(), wanted.not_loosened), (Profile::Full, None));
    }

    #[test]
    fn a_reload_takes_hosts_and_ports_away_and_never_adds_any() {
        let reach = |hosts: &[&str], ports: serde_json::Value| {
            let value = serde_json::json!({"sync": {"allow_hosts": hosts}, "forward": {"allow_ports": ports}});
            serde_json::from_value::<Config>(value).unwrap()
        };
        let running = reach(&["a.example", "b.example"], serde_json::json!(["3000-3009"]));
        let edited = reach(&["b.example", "c.example"], serde_json::json!(["3005-3020"]));
        let applied = apply(&running, &edited, nothing);
        assert_eq!(applied.running, reach(&["b.example"], serde_json::json!(["3005-3009"])));
        assert_eq!(applied.changed, ["sync.allow_hosts", "forward.allow_ports"]);
        assert_eq!(applied.restart, ["sync.allow_hosts", "forward.allow_ports"]);
        let asked = apply(&running, &edited, |_| true);
        assert_eq!((asked.running, asked.restart), (edited, vec![]));
    }

    #[test]
    fn what_cannot_be_applied_is_named() {
        let mut edited = Config::default();
        edited.relay.listen = "127.0.0.1:1".parse().unwrap();
        edited.link.ca_file = Some("ca.pem".into());
        edited.log.level = LogLevel::Debug;
        edited.notices.seat = false;
        edited.channel.people = vec!["1".into()];
        edited.channel.bindings = vec![BindingConfig::default()];
        let applied = apply(&Config::default(), &edited, nothing);
        assert_eq!(applied.restart, ["relay.listen", "link.ca_file"]);
        assert_eq!(applied.changed, ["channel.people", "channel.binding", "notices.seat", "log.level"]);
        assert!(!applied.running.notices.seat);
        assert_eq!(applied.running.channel, edited.channel);
        assert_eq!(applied.running.relay, Config::default().relay);
        assert_eq!(applied.running.log.level, LogLevel::Debug);
    }
}
