//! What the owner of the data folder may ask: the command line and the window, through the loopback API or on the closed store.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::limits;
use holdfast_core::policy::Role;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::http::error::ApiError;
use crate::oauth::{ApprovalView, Approved};
use crate::people::accounts::{self, AccountChange};
use crate::people::{AccountView, ClientView, DeviceCode, DeviceView, Enrolled, NewToken, TokenView};
use crate::people::{checked_name, devices, grants};
use crate::state::AppState;

/// Administration of one relay. Whoever holds one is trusted fully; nothing here asks for a password.
#[derive(Debug, Clone)]
pub struct Admin {
    pub(crate) state: Arc<AppState>,
}

/// A new account.
#[derive(Debug, Clone, Deserialize)]
pub struct NewAccount {
    /// 3 to 64 of `a-z 0-9 . _ -`.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Without one, only local approval signs in.
    #[serde(default)]
    pub password: Option<SecretString>,
}

/// What to change of an account; what is left out stays. Any change ends the account's access everywhere.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountPatch {
    /// Another role.
    #[serde(default)]
    pub role: Option<Role>,
    /// Switched on or off.
    #[serde(default)]
    pub active: Option<bool>,
    /// Another password.
    #[serde(default)]
    pub password: Option<SecretString>,
}

/// A new personal access token.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenRequest {
    /// What it is for.
    pub name: String,
    /// Account by name or id; the only one if left out.
    pub account: Option<String>,
    /// Device by id or name; the account's default if left out.
    pub device: Option<String>,
    /// A cap below the account's role.
    pub role: Option<Role>,
    /// Life in days; [`limits::TOKEN_LIFE`] if left out, at most [`limits::TOKEN_LIFE_MAX`].
    pub days: Option<u32>,
}

impl Admin {
    fn now(&self) -> i64 {
        self.state.clock.unix()
    }

    /// All accounts by name.
    pub async fn accounts(&self) -> Result<Vec<AccountView>, ApiError> {
        let accounts = self.state.store.read(accounts::list).await?;
        Ok(accounts.into_iter().map(AccountView::from).collect())
    }

    /// Adds an account.
    pub async fn create_account(&self, new: NewAccount) -> Result<AccountView, ApiError> {
        let password = match new.password {
            Some(password) => Some(self.state.people.passwords.hash(password).await?),
            None => None,
        };
        let now = self.now();
        let made = self.state.store.write(move |db| accounts::create(db, now, &new.name, new.role, password)).await?;
        Ok(made.into())
    }

    /// The owner of an embedded relay: made at its first start, without a password.
    pub async fn ensure_owner(&self, name: &str) -> Result<AccountView, ApiError> {
        let (now, name) = (self.now(), name.to_owned());
        let owner = self.state.store.write(move |db| {
            let first = accounts::list(db)?.into_iter().find(|account| account.role == Role::Owner && account.active);
            first.map_or_else(|| accounts::create(db, now, &name, Role::Owner, None), Ok)
        });
        Ok(owner.await?.into())
    }

    /// Changes an account, by name or id.
    pub async fn change_account(&self, account: &str, patch: AccountPatch) -> Result<AccountView, ApiError> {
        let AccountPatch { role, active, password } = patch;
        let password = match password {
            Some(password) => Some(self.state.people.passwords.hash(password).await?),
            None => None,
        };
        let wanted = account.to_owned();
        let change = AccountChange { role, active, password };
        let changed = self.state.auth.write(move |db, news| {
            let account = accounts::chosen(db, Some(&wanted))?;
            accounts::change(db, &account.id, change, news)
        });
        let changed = changed.await?;
        self.state.oauth.forget_account(&changed.id);
        Ok(changed.into())
    }

    /// Removes an account, by name or id, with everything it has.
    pub async fn remove_account(&self, account: &str) -> Result<(), ApiError> {
        let wanted = account.to_owned();
        let removed = self.state.auth.write(move |db, news| {
            let account = accounts::chosen(db, Some(&wanted))?;
            Ok::<_, ApiError>((accounts::remove(db, &account.id, news)?, account.id))
        });
        let (gone, id) = removed.await?;
        self.state.oauth.forget_account(&id);
        for device in gone {
            self.forget_device(&device);
        }
        Ok(())
    }

    /// The devices of one account, or of all, revoked ones included.
    pub async fn devices(&self, of: Option<&AccountId>) -> Result<Vec<DeviceView>, ApiError> {
        let of = of.cloned();
        let devices = self.state.store.read(move |db| devices::list(db, of.as_ref())).await?;
        Ok(devices.into_iter().map(|device| self.view(device)).collect())
    }

    fn view(&self, device: devices::Device) -> DeviceView {
        let devices::Device { id, account_name, name, default, created, revoked, .. } = device;
        let status = self.state.devices.known(&id).map(|room| room.status());
        let connected = status.as_ref().is_some_and(|status| status.link.ready);
        let in_use = status.and_then(|status| status.in_use);
        DeviceView { id, name, account: account_name, default, connected, in_use, created, revoked }
    }

    /// An enrolment code for an account by name or id; for the only one if left out.
    pub async fn device_code(&self, account: Option<&str>) -> Result<DeviceCode, ApiError> {
        let (now, wanted) = (self.now(), account.map(str::to_owned));
        let code = self.state.store.write(move |db| {
            let account = accounts::chosen(db, wanted.as_deref())?;
            devices::create_code(db, now, &account.id)
        });
        code.await
    }

    /// Enrols a device without a code: the embedded relay's own machine.
    pub async fn enrol_local(&self, account: &AccountId, name: &str) -> Result<Enrolled, ApiError> {
        let (now, account, name) = (self.now(), account.clone(), checked_name(name)?);
        self.state.auth.write(move |db, news| devices::enrol(db, now, &account, &name, news)).await
    }

    /// Gives a device (id or name) another name. `of` limits it to one account's devices, here and below.
    pub async fn rename_device(
        &self,
        of: Option<&AccountId>,
        device: &str,
        name: &str,
    ) -> Result<DeviceView, ApiError> {
        let (of, wanted, name) = (of.cloned(), device.to_owned(), checked_name(name)?);
        let renamed = self.state.store.write(move |db| {
            let device = devices::find(db, of.as_ref(), &wanted)?;
            devices::rename(db, &device.id, &name)?;
            Ok::<_, ApiError>(devices::Device { name, ..device })
        });
        Ok(self.view(renamed.await?))
    }

    /// Makes a device (id or name) the one that `/mcp` means. Grants that exist keep theirs.
    pub async fn make_default_device(&self, of: Option<&AccountId>, device: &str) -> Result<DeviceView, ApiError> {
        let (of, wanted) = (of.cloned(), device.to_owned());
        let made = self.state.store.write(move |db| {
            let device = devices::find(db, of.as_ref(), &wanted)?;
            devices::make_default(db, &device)?;
            Ok::<_, ApiError>(devices::Device { default: true, ..device })
        });
        Ok(self.view(made.await?))
    }

    /// Revokes a device (id or name): its link closes, every grant that reaches it ends.
    pub async fn revoke_device(&self, of: Option<&AccountId>, device: &str) -> Result<DeviceId, ApiError> {
        let (of, wanted, now) = (of.cloned(), device.to_owned(), self.now());
        let revoked = self.state.auth.write(move |db, news| {
            let device = devices::find(db, of.as_ref(), &wanted)?;
            devices::revoke(db, now, &device, news)?;
            Ok::<_, ApiError>(device.id)
        });
        let device = revoked.await?;
        self.forget_device(&device);
        Ok(device)
    }

    fn forget_device(&self, device: &DeviceId) {
        self.state.devices.revoke(device);
        self.state.operations.revoke(device);
    }

    /// All personal access tokens.
    pub async fn tokens(&self) -> Result<Vec<TokenView>, ApiError> {
        self.state.store.read(|db| grants::tokens(db, None)).await
    }

    /// Makes a personal access token.
    pub async fn create_token(&self, request: TokenRequest) -> Result<NewToken, ApiError> {
        let name = checked_name(&request.name)?;
        let life = request.days.map_or(limits::TOKEN_LIFE, |days| Duration::from_secs(u64::from(days) * 86_400));
        if life.is_zero() || life > limits::TOKEN_LIFE_MAX {
            return Err(ApiError::invalid("a token lives 1 to 366 days"));
        }
        let (now, life) = (self.now(), i64::try_from(life.as_secs()).unwrap_or(0));
        let made = self.state.auth.write(move |db, news| {
            let account = accounts::chosen(db, request.account.as_deref())?;
            let device = match (&request.device, &account.default_device) {
                (Some(wanted), _) => devices::find(db, Some(&account.id), wanted)?.id,
                (None, Some(default)) => default.clone(),
                (None, None) => return Err(devices::none_enrolled()),
            };
            let order =
                grants::TokenOrder { account: &account, device: &device, name: &name, role: request.role, life };
            grants::create_token(db, now, &order, news)
        });
        made.await
    }

    /// Revokes a personal access token by id.
    pub async fn revoke_token(&self, id: &str) -> Result<(), ApiError> {
        let id = id.to_owned();
        let revoked =
            self.state.auth.write(move |db, news| grants::revoke_where(db, "kind = 'token' AND id = ?1", &id, news));
        if revoked.await? == 0 { Err(ApiError::not_found()) } else { Ok(()) }
    }

    /// The clients that one account (or any) granted something, and, for all, those that only registered.
    pub async fn clients(&self, of: Option<&AccountId>) -> Result<Vec<ClientView>, ApiError> {
        let of = of.cloned();
        self.state.store.read(move |db| grants::clients(db, of.as_ref())).await
    }

    /// Revokes what a client was granted (client id), or one grant of it (grant id). Tells how many grants ended. Its sessions end and its
    /// calls are cancelled.
    pub async fn revoke_client(&self, of: Option<&AccountId>, id: &str) -> Result<usize, ApiError> {
        let (of, id) = (of.map(|of| of.as_str().to_owned()), id.to_owned());
        let revoked = self.state.auth.write(move |db, news| {
            let found = grants::of_client(db, &id, of.as_deref())?;
            for grant in &found {
                grants::revoke_where(db, "id = ?1", grant, news)?;
            }
            let forgotten = if of.is_none() { db.execute("DELETE FROM clients WHERE id = ?1", [&id])? } else { 0 };
            if found.is_empty() && forgotten == 0 { Err(ApiError::not_found()) } else { Ok(found.len()) }
        });
        revoked.await
    }

    /// Cuts all access: every grant and token is revoked, every operation cancelled. The caller stops the link and kills what
    /// runs. Tells how many ended.
    pub async fn cut_all_access(&self) -> Result<usize, ApiError> {
        self.state.oauth.forget_all();
        let revoked = self.state.auth.write(grants::revoke_all).await?;
        self.state.operations.cancel_all();
        Ok(revoked)
    }

    /// Authorization requests that wait for a typed code. The codes are not among what is told.
    pub fn approvals(&self) -> Vec<ApprovalView> {
        self.state.oauth.approvals(self.state.clock.now().boot)
    }

    /// The same, as they come and go.
    pub fn watch_approvals(&self) -> watch::Receiver<Vec<ApprovalView>> {
        self.state.oauth.watch_approvals()
    }

    /// Refuses the request of this id; its browser sends the client away.
    pub fn deny(&self, id: &str) -> Result<ApprovalView, ApiError> {
        self.state.oauth.deny(self.state.clock.now().boot, id).ok_or_else(ApiError::not_found)
    }

    /// Approves the request whose browser page shows this code.
    pub async fn approve(&self, code: &str) -> Result<Approved, ApiError> {
        crate::oauth::approve(&self.state, code).await
    }
}
