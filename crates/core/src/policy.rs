//! Who may do what: profiles of a device, roles of an account, and the class of each tool.

use serde::{Deserialize, Serialize};

/// How programs may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ExecMode {
    /// Not at all.
    #[default]
    Off,
    /// An argument vector, no shell.
    Direct,
    /// A shell command line too.
    Shell,
}

/// A named policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Read only.
    Review,
    /// Read and write files of the workspace.
    Edit,
    /// Edit and run programs.
    Agent,
    /// Everything this user may do.
    Full,
}

impl Profile {
    /// All profiles, weakest first.
    pub const ALL: [Profile; 4] = [Profile::Review, Profile::Edit, Profile::Agent, Profile::Full];

    /// The name in configuration and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Profile::Review => "review",
            Profile::Edit => "edit",
            Profile::Agent => "agent",
            Profile::Full => "full",
        }
    }

    /// The profile of a name.
    pub fn parse(text: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| p.as_str() == text)
    }
}

/// Rights of an account. Each is capped by the device's own policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// As profile review.
    Reviewer,
    /// As profile edit.
    Editor,
    /// As profile agent.
    Operator,
    /// As profile full.
    Owner,
}

impl Role {
    /// All roles, weakest first.
    pub const ALL: [Role; 4] = [Role::Reviewer, Role::Editor, Role::Operator, Role::Owner];

    /// The name in the store and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Reviewer => "reviewer",
            Role::Editor => "editor",
            Role::Operator => "operator",
            Role::Owner => "owner",
        }
    }

    /// The role of a name.
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|r| r.as_str() == text)
    }

    /// The profile whose tools this role may use.
    pub const fn profile(self) -> Profile {
        match self {
            Role::Reviewer => Profile::Review,
            Role::Editor => Profile::Edit,
            Role::Operator => Profile::Agent,
            Role::Owner => Profile::Full,
        }
    }
}

/// What a policy must allow for a tool to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// Under every policy.
    Always,
    /// With `allowWrite`.
    Write,
    /// With exec mode direct or shell.
    DirectExec,
    /// With both of the above.
    WriteAndDirectExec,
    /// With exec mode shell.
    ShellExec,
    /// With the profile full and all its values.
    Full,
}

/// A device's policy, as it stands in `hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// A profile's name, or `custom`.
    pub profile: String,
    /// Who chose it: `default`, `explicit` or `custom`.
    pub origin: String,
    /// Revision of the policy contract; the base wire's is 5.
    pub revision: u32,
    /// Files may be changed.
    pub allow_write: bool,
    /// Derived: `execMode` is not off.
    pub allow_exec: bool,
    /// How programs may be run.
    pub exec_mode: ExecMode,
    /// File tools may leave the workspace.
    pub unrestricted_paths: bool,
    /// Programs get a minimal environment.
    pub minimal_env: bool,
    /// Absolute paths may be shown.
    pub expose_absolute_paths: bool,
}

/// Revision of the policy contract on the base wire.
pub const POLICY_REVISION: u32 = 5;

impl Policy {
    /// The canonical policy of a profile.
    pub fn of(profile: Profile, origin: &str) -> Policy {
        let exec_mode = match profile {
            Profile::Review | Profile::Edit => ExecMode::Off,
            Profile::Agent => ExecMode::Direct,
            Profile::Full => ExecMode::Shell,
        };
        let full = profile == Profile::Full;
        Policy {
            profile: profile.as_str().into(),
            origin: origin.into(),
            revision: POLICY_REVISION,
            allow_write: profile != Profile::Review,
            allow_exec: exec_mode != ExecMode::Off,
            exec_mode,
            unrestricted_paths: full,
            minimal_env: !full,
            expose_absolute_paths: full,
        }
    }

    /// The profile whose five values these are, whatever name the policy carries.
    pub fn matching_profile(&self) -> Option<Profile> {
        Profile::ALL.into_iter().find(|p| {
            let named = Policy::of(*p, "");
            self.allow_write == named.allow_write
                && self.exec_mode == named.exec_mode
                && self.unrestricted_paths == named.unrestricted_paths
                && self.minimal_env == named.minimal_env
                && self.expose_absolute_paths == named.expose_absolute_paths
        })
    }

    /// Whether a tool of this class exists under this policy.
    pub fn allows(&self, class: Availability) -> bool {
        match class {
            Availability::Always => true,
            Availability::Write => self.allow_write,
            Availability::DirectExec => self.exec_mode >= ExecMode::Direct,
            Availability::WriteAndDirectExec => self.allow_write && self.exec_mode >= ExecMode::Direct,
            Availability::ShellExec => self.exec_mode == ExecMode::Shell,
            Availability::Full => self.profile == "full" && self.matching_profile() == Some(Profile::Full),
        }
    }

    /// What both policies allow: the weaker value of each field.
    #[must_use]
    pub fn intersect(&self, other: &Policy) -> Policy {
        let exec_mode = self.exec_mode.min(other.exec_mode);
        let mut both = Policy {
            profile: String::new(),
            origin: self.origin.clone(),
            revision: self.revision.max(other.revision),
            allow_write: self.allow_write && other.allow_write,
            allow_exec: exec_mode != ExecMode::Off,
            exec_mode,
            unrestricted_paths: self.unrestricted_paths && other.unrestricted_paths,
            minimal_env: self.minimal_env || other.minimal_env,
            expose_absolute_paths: self.expose_absolute_paths && other.expose_absolute_paths,
        };
        both.profile = both.matching_profile().map_or("custom", Profile::as_str).into();
        both
    }

    /// Reads a policy from outside as strictly as the base relay: booleans must be booleans, an unknown exec mode is off,
    /// an unknown origin or a long profile name is `custom`, a senseless revision is the contract's.
    pub fn sanitise(raw: &serde_json::Value) -> Policy {
        let is_true = |key: &str| raw.get(key).and_then(serde_json::Value::as_bool) == Some(true);
        let text = |key: &str| raw.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let exec_mode = match text("execMode") {
            "direct" => ExecMode::Direct,
            "shell" => ExecMode::Shell,
            _ => ExecMode::Off,
        };
        let profile = text("profile");
        let profile_ok = !profile.is_empty() && profile.len() <= 32 && !profile.chars().any(char::is_control);
        let origin = text("origin");
        let revision = raw.get("revision").and_then(serde_json::Value::as_u64).filter(|r| (1..=1_000_000).contains(r));
        Policy {
            profile: if profile_ok { profile.into() } else { "custom".into() },
            origin: if matches!(origin, "default" | "explicit") { origin.into() } else { "custom".into() },
            revision: revision.and_then(|r| u32::try_from(r).ok()).unwrap_or(POLICY_REVISION),
            allow_write: is_true("allowWrite"),
            allow_exec: exec_mode != ExecMode::Off,
            exec_mode,
            unrestricted_paths: is_true("unrestrictedPaths"),
            minimal_env: raw.get("minimalEnv").and_then(serde_json::Value::as_bool) != Some(false),
            expose_absolute_paths: is_true("exposeAbsolutePaths"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn roles_are_capped_by_the_device() {
        let device = Policy::of(Profile::Edit, "explicit");
        let owner = Policy::of(Role::Owner.profile(), "default");
        let both = device.intersect(&owner);
        assert_eq!(both.profile, "edit");
        assert!(both.allow_write && both.minimal_env && !both.unrestricted_paths);
        assert!(!both.allows(Availability::DirectExec));
    }

    #[test]
    fn a_policy_named_full_without_its_values_is_not_full() {
        let mut policy = Policy::of(Profile::Full, "explicit");
        assert!(policy.allows(Availability::Full));
        policy.minimal_env = true;
        assert!(!policy.allows(Availability::Full));
    }

    #[test]
    fn a_hostile_policy_is_read_as_the_weakest() {
        let policy = Policy::sanitise(
            &json!({"profile": "weird\u{1}", "execMode": "zsh", "allowWrite": "yes", "revision": -4, "origin": "x"}),
        );
        assert_eq!(policy.profile, "custom");
        assert_eq!(policy.origin, "custom");
        assert_eq!(policy.exec_mode, ExecMode::Off);
        assert!(!policy.allow_write && policy.minimal_env);
        assert_eq!(policy.revision, POLICY_REVISION);
        assert_eq!(Policy::sanitise(&serde_json::Value::Null).exec_mode, ExecMode::Off);
    }
}
