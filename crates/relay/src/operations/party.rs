//! Whose operations.

use std::sync::Arc;

use holdfast_core::id::DeviceId;
use holdfast_core::limits;
use holdfast_core::policy::Role;
use http::StatusCode;

use crate::auth::DeviceIdentity;
use crate::http::error::ApiError;
use crate::principal::Principal;

/// Who asks: an account, through a grant for one device; or that device itself, which sees everything that runs on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    device: DeviceId,
    account: Arc<str>,
    client: Arc<str>,
    client_name: Arc<str>,
    role: Role,
    is_device: bool,
}

impl Party {
    /// The account of a grant, with the role operator or above: an operation can be any program.
    pub fn of(principal: &Principal) -> Result<Party, ApiError> {
        if principal.role < Role::Operator {
            let why = "operations take the role operator";
            return Err(ApiError::new(StatusCode::FORBIDDEN, "authorization_denied", why));
        }
        Ok(Party {
            device: principal.device.clone(),
            account: principal.account.as_str().into(),
            client: principal.client.clone(),
            client_name: principal.client_name.clone(),
            role: principal.role,
            is_device: false,
        })
    }

    /// The device itself: whoever holds its credential holds the machine.
    pub(super) fn device_itself(identity: &DeviceIdentity) -> Party {
        Party {
            device: identity.id.clone(),
            account: identity.account.as_str().into(),
            client: identity.id.as_str().into(),
            client_name: "this device".into(),
            role: Role::Owner,
            is_device: true,
        }
    }

    /// Where its operations run.
    pub fn device(&self) -> &DeviceId {
        &self.device
    }

    /// Whose it is.
    pub(super) fn account(&self) -> &Arc<str> {
        &self.account
    }

    /// What it may do.
    pub(super) fn role(&self) -> Role {
        self.role
    }

    /// What the client calls itself, for the device's owner to read.
    pub(super) fn client_name(&self) -> &str {
        &self.client_name
    }

    /// Its name in the store: account and client, as one text.
    pub(super) fn principal(&self) -> Arc<str> {
        format!("{} {}", self.account, self.client).into()
    }

    /// Whether an operation of this account is its own.
    pub(super) fn owns(&self, account: &str) -> bool {
        self.is_device || *self.account == *account
    }

    /// The account that a list is limited to.
    pub(super) fn only_account(&self) -> Option<Arc<str>> {
        (!self.is_device).then(|| self.account.clone())
    }

    /// A session's name as the worker and the store know it: no other account's.
    pub(super) fn session(&self, name: &str) -> Result<String, ApiError> {
        if name.is_empty() || name.len() > limits::OPERATION_SESSION_NAME_MAX || name.chars().any(char::is_control) {
            return Err(ApiError::invalid("a session's name has 1 to 64 printable bytes"));
        }
        Ok(session_of(&self.account, name))
    }
}

/// An account's session, by the name that the account gave it.
pub(super) fn session_of(account: &str, name: &str) -> String {
    format!("{account}/{name}")
}
