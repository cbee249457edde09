//! Codes of refused requests and commands: the local API, the relay's HTTP paths, and the command line, which passes them on.
//! Beside them every code of a failed tool may stand ([`crate::code::Code`]). The house suite holds the sources to this table.

/// Every code of this kind, and what it says: the rows of `docs/errors.md`.
pub const ALL: &[(&str, &str)] = &[
    // This machine.
    (
        "not_running",
        "No Holdfast runs on the data folder, or the engine that is needed is stopped. The command line ends with 3.",
    ),
    ("in_use", "Another process holds the data folder. The command line ends with 4."),
    ("config_invalid", "`config.toml` cannot be read or written, or says something that is not allowed."),
    ("stopped", "The link is stopped: start it first."),
    ("silent", "The running Holdfast does not answer. The command line ends with 4."),
    ("no_relay_here", "The relay is elsewhere: run this where the relay runs."),
    ("failed", "Everything that has no code of its own; the message says what."),
    ("host_refused", "The `Host` of a request is not the local API's."),
    ("origin_refused", "A web page from elsewhere asked the local API."),
    ("rate_limited", "Too many wrong codes for a window; wait a minute."),
    // The channel and its seat.
    ("no_seat", "This process does not speak for the bot now; `holdfast seat take`."),
    ("seat_busy", "The seat was not taken in time; the message says what is in the way."),
    ("seat_frozen", "The seat's holder lives and does not answer. The command line ends with 6."),
    ("seat_failed", "The seat was given up; the message says why."),
    ("token_refused", "The chat service does not accept the bot's token."),
    ("wrong_code", "No pairing code of this kind waits, or pairing is closed."),
    (
        "pane_missing",
        "tmux has no such pane now; the binding is made all the same, and messages wait until it is there.",
    ),
    ("channel_parked", "The chat service refuses this channel; `holdfast channel retry` once that is mended."),
    // The relay: people.
    ("account_needed", "There are several accounts: name one."),
    ("account_not_found", "There is no such account."),
    ("account_name_exists", "An account of that name exists."),
    ("account_limit_reached", "There are as many accounts as there may be."),
    ("first_account_must_be_owner", "The first account must have the role owner."),
    ("last_owner_required", "One active owner must remain."),
    ("invalid_account", "The name is not one that an account can have."),
    ("weak_password", "The password is too short or too long."),
    ("login_blocked", "Too many failed sign-ins from there; wait, or approve at the machine."),
    ("token_limit_reached", "The account has as many static tokens as it may: revoke one."),
    ("approval_code_invalid", "No page shows that code; three wrong ones cancel what waits."),
    ("approvals_cancelled", "It was the third wrong code: every request that waited is cancelled."),
    // The relay: devices.
    ("no_device", "The account has no device yet."),
    ("device_not_found", "There is no such device."),
    ("device_ambiguous", "Several devices have that name: give the id."),
    ("device_limit_reached", "The account has as many devices as it may: revoke one."),
    ("device_unknown", "The relay does not know this credential."),
    ("device_revoked", "The device was revoked."),
    ("code_limit_reached", "As many enrolment codes wait as may."),
    ("enrolment_code_invalid", "The enrolment code is wrong, used or expired."),
    // The relay: requests.
    ("host_not_allowed", "The relay does not go by that name."),
    ("origin_not_allowed", "A web page of that origin may not ask this relay (`relay.allowed_origins`)."),
    ("proxy_required", "The relay stands behind a proxy, and this request did not come through it."),
    ("method_not_allowed", "The path takes another method."),
    ("unsupported_media_type", "The body must be JSON."),
    ("invalid_json", "The body is not JSON."),
    ("request_body_too_large", "The body is larger than this path takes."),
    ("request_incomplete", "The body did not arrive whole."),
    ("too_many_requests", "Too many tries from there; `Retry-After` says when."),
    ("temporarily_unavailable", "The relay has as many clients as it may; `Retry-After` says when one goes."),
    ("offset_gone", "These bytes of an operation's output were not kept; `first_available` says where it goes on."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::code::Code;

    #[test]
    fn no_code_stands_twice() {
        let ours: BTreeSet<&str> = ALL.iter().map(|(code, _)| *code).collect();
        assert_eq!(ours.len(), ALL.len());
        assert!(Code::ALL.iter().all(|code| !ours.contains(code.as_str())), "a tool's code has its row already");
    }
}
