//! Accounts, devices and tokens: who may do what.

pub(crate) mod accounts;
pub(crate) mod devices;
pub(crate) mod grants;
pub(crate) mod login;
pub(crate) mod password;
pub(crate) mod throttle;

pub use accounts::AccountView;
pub use devices::{DeviceCode, DeviceView, Enrolled};
pub use grants::{ClientView, GrantView, NewToken, TokenView};

use holdfast_core::limits;

use crate::http::error::ApiError;

/// What is kept in memory of people.
#[derive(Debug, Default)]
pub(crate) struct People {
    pub(crate) passwords: password::Passwords,
    pub(crate) logins: login::Logins,
}

/// A name people give: trimmed, one line, without characters that change how the text around it is shown.
pub(crate) fn checked_name(text: &str) -> Result<String, ApiError> {
    let name = text.trim();
    let length = name.chars().count();
    if length == 0 || length > limits::NAME_MAX || name.chars().any(is_unfit) {
        return Err(ApiError::invalid(format!("a name is 1 to {} printable characters", limits::NAME_MAX)));
    }
    Ok(name.to_owned())
}

/// Controls, zero-width characters and everything that turns the writing direction.
pub(crate) fn is_unfit(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
