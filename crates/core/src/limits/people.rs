//! Bounds of people, their rights and their clients.

use std::time::Duration;

use super::{IntoValue, Limit, secs};

limits! {
    ["People and rights"]
    ACCOUNTS_MAX: usize = 1024, "accounts", "Accounts of one relay.";
    DEVICES_PER_ACCOUNT: usize = 64, "devices", "Devices of one account, revoked ones not counted.";
    DEVICES_REVOKED_KEPT: usize = 64, "devices", "Revoked devices of one account that are still told device_revoked; older ones become device_unknown.";
    NAME_MAX: usize = 64, "characters", "Name of a device, a token or an account.";
    PASSWORD_MIN: usize = 12, "characters", "Shortest password of an account.";
    PASSWORD_MAX: usize = 256, "bytes", "Longest password of an account; hashing cost does not depend on it much.";
    PASSWORD_HASHES: usize = 2, "hashes", "Argon2 computations at once, 19 MiB each.";
    PASSWORD_WAITING: usize = 32, "logins", "Logins waiting for a place to hash; more are refused.";
    LOGIN_FAILURES: usize = 10, "failures", "Failed logins in LOGIN_WINDOW after which a source or an account is blocked.";
    LOGIN_WINDOW: Duration = secs(600), "time", "Window of LOGIN_FAILURES.";
    LOGIN_BLOCK: Duration = secs(900), "time", "How long a blocked source or account may not use passwords; local approval goes on.";
    THROTTLE_KEYS: usize = 8192, "keys", "Sources and accounts whose failures are counted; when full the oldest are forgotten.";
    ENROL_CODE_TTL: Duration = secs(600), "time", "Life of an enrolment code.";
    ENROL_CODES_MAX: usize = 64, "codes", "Unused enrolment codes of one account.";
    ENROL_TRIES: usize = 5, "tries", "Wrong enrolment codes per source in LOGIN_WINDOW.";
    ENROL_ID_MAX: usize = 128, "characters", "Enrolment id, drawn by the device so that it can repeat a lost exchange; at least 16.";
    TOKENS_PER_ACCOUNT: usize = 256, "tokens", "Static tokens of one account.";
    USE_RECORDED: Duration = secs(60), "time", "How often the use of a token is written down; what people read as *last used* is this much behind at most.";
    TOKEN_LIFE: Duration = secs(90 * 86_400), "time", "Life of a static token unless another was asked for.";
    TOKEN_LIFE_MAX: Duration = secs(366 * 86_400), "time", "Longest life of a static token.";

    ["OAuth"]
    CLIENTS_MAX: usize = 1000, "clients", "Registered clients in all.";
    CLIENTS_UNUSED_PER_SOURCE: usize = 20, "clients", "Clients of one source that nobody has authorised yet.";
    CLIENT_UNUSED_TTL: Duration = secs(3600), "time", "A client that nobody authorised is forgotten after this.";
    CLIENT_IDLE_TTL: Duration = secs(90 * 86_400), "time", "A client that was not used is forgotten after this.";
    REDIRECT_URIS_MAX: usize = 5, "addresses", "Redirect addresses of one client.";
    URI_MAX: usize = 1024, "bytes", "One redirect address, one state, one resource.";
    CLIENT_NAME_MAX: usize = 128, "characters", "Name of a client on the consent page.";
    CONSENTS_MAX: usize = 512, "requests", "Authorization requests open at once; the oldest that nobody signed in to makes room.";
    CONSENT_TTL: Duration = secs(600), "time", "Life of an authorization request.";
    APPROVAL_TTL: Duration = secs(300), "time", "Life of a local approval code; at most CONSENT_TTL.";
    APPROVAL_TRIES: usize = 3, "tries", "Wrong entries of an approval code that cancel the waiting requests of the account.";
    APPROVALS_PER_ACCOUNT: usize = 3, "requests", "Local approvals one account can have pending.";
    AUTH_CODE_TTL: Duration = secs(300), "time", "Life of an authorization code.";
    AUTH_CODES_MAX: usize = 512, "codes", "Authorization codes remembered, used ones included so that a replay is noticed.";
    ACCESS_LIFE: Duration = secs(3600), "time", "Life of an access token.";
    REFRESH_LIFE: Duration = secs(30 * 86_400), "time", "Life of a refresh token.";
    REFRESH_GRACE: Duration = secs(600), "time", "How long the previous refresh token stays redeemable after the new pair was first used.";
    GENERATIONS_KEPT: usize = 1024, "pairs", "Older pairs of a grant remembered to notice reuse.";
    ACCESS_PER_GRANT: usize = 8, "tokens", "Access tokens of one grant alive at once; refreshing more often ends the oldest.";
    GRANTS_PER_CLIENT: usize = 16, "grants", "Grants of one account to one client; the oldest makes room.";
    GRANTS_PER_ACCOUNT: usize = 512, "grants", "Grants of one account; the oldest makes room.";
    SWEEP_EVERY: Duration = secs(600), "time", "How often expired grants, codes and clients are forgotten; what expired counts for nothing before that too.";
    REVOCATIONS_QUEUE: usize = 1024, "grants", "Revocations waiting for a slow listener; one that fell behind checks every grant it knows.";
}
