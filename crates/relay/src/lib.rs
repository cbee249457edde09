//! The relay: MCP clients on one side, daemons on the other.
//!
//! [`start`] opens the store, binds the listeners and returns a [`RelayHandle`]. The desktop embeds it on 127.0.0.1;
//! `holdfast relay` runs it on a server.

mod admin;
mod auth;
mod clock;
pub mod devices;
mod enroll;
mod http;
pub mod mcp;
mod oauth;
pub mod operations;
pub mod people;
mod principal;
mod relay;
mod secret;
mod socket;
mod state;
pub mod store;

pub use admin::{AccountPatch, Admin, NewAccount, TokenRequest};
pub use auth::{Auth, DeviceAuthFailure, DeviceIdentity};
pub use clock::{BootMoment, Clock, ManualClock, SystemClock, boot_reading};
pub use http::error::ApiError;
pub use http::{Base, RequestId, Source};
pub use oauth::{ApprovalView, Approved};
pub use principal::{AuthFailure, GrantId, Principal, ResourcePath, Scopes};
pub use relay::{Exposure, Offline, RelayHandle, RelayOptions, StartError, start};
pub use state::{AppState, Site};
