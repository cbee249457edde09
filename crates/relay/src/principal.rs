//! Who is calling, for what, and why not.

use std::sync::Arc;

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::policy::Role;

/// Names one grant: a client's authorisation, or a personal access token.
pub type GrantId = Arc<str>;

/// An authenticated caller. One per grant, shared by all its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Whose rights are used.
    pub account: AccountId,
    /// That account's name, for people.
    pub account_name: Arc<str>,
    /// Counts changes of the account; part of `server_info`.
    pub account_version: u64,
    /// What the account may do; the device's policy caps it.
    pub role: Role,
    /// The OAuth client's id, or the personal access token's.
    pub client: Arc<str>,
    /// What the client calls itself, or the token's name. A claim, for people.
    pub client_name: Arc<str>,
    /// The grant, as told by [`crate::Auth::revocations`].
    pub grant: GrantId,
    /// The only device this grant reaches.
    pub device: DeviceId,
    /// What was consented to.
    pub scopes: Scopes,
}

/// A set of OAuth scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes {
    /// Call tools.
    pub mcp: bool,
    /// Use durable operations.
    pub operations: bool,
    /// Keep access while the person is away.
    pub offline_access: bool,
}

impl Scopes {
    /// The scopes in the order of the metadata.
    pub const NAMES: [&'static str; 3] = ["mcp", "operations", "offline_access"];

    /// Reads a space-separated list; `None` for an unknown or repeated scope.
    pub fn parse(text: &str) -> Option<Scopes> {
        let mut scopes = Scopes::default();
        for name in text.split(' ').filter(|s| !s.is_empty()) {
            let flag = match name {
                "mcp" => &mut scopes.mcp,
                "operations" => &mut scopes.operations,
                "offline_access" => &mut scopes.offline_access,
                _ => return None,
            };
            if std::mem::replace(flag, true) {
                return None;
            }
        }
        Some(scopes)
    }

    /// The space-separated list.
    pub fn to_text(self) -> String {
        let flags = [self.mcp, self.operations, self.offline_access];
        let names = Self::NAMES.iter().zip(flags).filter(|(_, on)| *on).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(" ")
    }
}

/// The protected resource a request is for: `/mcp`, or `/mcp/{device}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourcePath(pub Option<DeviceId>);

impl ResourcePath {
    /// The path of the resource.
    pub fn to_path(&self) -> String {
        match &self.0 {
            None => "/mcp".into(),
            Some(device) => format!("/mcp/{device}"),
        }
    }

    /// Reads a path; `None` if it is no MCP resource.
    pub fn parse(path: &str) -> Option<ResourcePath> {
        match path.strip_prefix("/mcp")?.strip_suffix('/').unwrap_or(path.strip_prefix("/mcp")?) {
            "" => Some(ResourcePath(None)),
            rest => Some(ResourcePath(Some(DeviceId::parse(rest.strip_prefix('/')?).ok()?))),
        }
    }
}

/// Why a bearer token is not accepted. All but the last two are 401 to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthFailure {
    /// No such token, or revoked.
    #[error("unknown token")]
    Unknown,
    /// Past its time.
    #[error("token expired")]
    Expired,
    /// Made for another resource or another relay.
    #[error("token was issued for another resource")]
    WrongAudience,
    /// The grant does not hold the scope that this takes.
    #[error("scope missing")]
    InsufficientScope,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_known_and_named_once() {
        assert_eq!(Scopes::parse("offline_access mcp").unwrap().to_text(), "mcp offline_access");
        assert_eq!(Scopes::parse(""), Some(Scopes::default()));
        for bad in ["mcp mcp", "admin", "mcp,operations", "MCP"] {
            assert_eq!(Scopes::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_resource_is_mcp_or_one_device() {
        assert_eq!(ResourcePath::parse("/mcp"), Some(ResourcePath(None)));
        assert_eq!(ResourcePath::parse("/mcp/"), Some(ResourcePath(None)));
        let one = ResourcePath::parse("/mcp/dev_abcdefgh").unwrap();
        assert_eq!(one.to_path(), "/mcp/dev_abcdefgh");
        for bad in ["", "/", "/mcpx", "/mcp/x", "/mcp/dev_abcdefgh/x", "/mcp//dev_abcdefgh", "/mcp/dev_abc%2Fdef"] {
            assert_eq!(ResourcePath::parse(bad), None, "{bad}");
        }
    }
}
