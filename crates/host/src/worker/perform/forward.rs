//! To which ports a connection may be opened for clients.

use holdfast_core::code::Code;
use holdfast_core::operation::Failure;

use crate::config::ForwardConfig;

/// Whether a connection to a port of this machine may be opened: it is listed, and none of Holdfast's own, on which the local
/// API and the embedded relay listen.
pub(crate) fn forward_allowed(port: u16, listed: &ForwardConfig, own: &[u16]) -> Result<(), Failure> {
    if own.contains(&port) {
        return Err(Failure::new(Code::PolicyDenied, "Holdfast's own ports are not forwarded"));
    }
    match listed.allows(port) {
        true => Ok(()),
        false => Err(Failure::new(Code::PolicyDenied, "this port is not in forward.allow_ports of this device")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_forwarded_when_it_is_listed_and_not_holdfast_s_own() {
        let listed: ForwardConfig = serde_json::from_str(r#"{"allow_ports": ["3000-9000"]}"#).unwrap();
        let allowed = |port| forward_allowed(port, &listed, &[8787, 4711]).map_err(|failure| failure.code);
        assert_eq!(allowed(3000), Ok(()));
        assert_eq!([2999, 8787, 4711, 9001].map(allowed), [Err(Code::PolicyDenied); 4]);
        assert_eq!(forward_allowed(3000, &ForwardConfig::default(), &[]).map_err(|e| e.code), Err(Code::PolicyDenied));
    }
}
