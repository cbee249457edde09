//! The pages of authorization: plain HTML from here, no script, one style allowed by its hash.

use std::fmt::Write as _;
use std::sync::OnceLock;

use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_core::policy::Role;
use http::{StatusCode, header};
use sha2::{Digest as _, Sha256};

use super::consent::Request;
use super::redirect;
use crate::http::error::ApiError;
use crate::people::devices::Device;

const STYLE: &str = include_str!("page.css");

/// What every page of a request shows.
pub(super) struct Sheet<'a> {
    pub(super) id: &'a str,
    pub(super) request: &'a Request,
    pub(super) notice: Notice,
}

/// What went wrong with the last step.
pub(super) enum Notice {
    None,
    Login(ApiError),
    TooMany,
}

/// Text as it may stand in HTML, in attributes too.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn policy(form_action: &str) -> String {
    static HASH: OnceLock<String> = OnceLock::new();
    let hash = HASH.get_or_init(|| STANDARD.encode(Sha256::digest(STYLE.as_bytes())));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self' {form_action}; base-uri 'none'; frame-ancestors 'none'"
    )
}

fn html(status: StatusCode, title: &str, head: &str, body: &str, form_action: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{head}<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy(form_action)),
        (header::X_FRAME_OPTIONS, "DENY".to_owned()),
        // Not `no-referrer`: with it the form's Origin would be `null`, and could not be checked.
        (header::REFERRER_POLICY, "same-origin".to_owned()),
    ];
    (status, headers, page).into_response()
}

/// A page that ends here.
pub(super) fn failure(status: StatusCode, text: &str) -> Response {
    let body = format!("<h1>This did not work</h1>\n<p role=\"alert\">{}</p>\n", escape(text));
    html(status, "Holdfast: this did not work", "", &body, "")
}

/// What the client is and what it wants: on every page.
fn about(request: &Request) -> String {
    let mut rows = String::new();
    let mut row = |term: &str, text: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(rows, "<dt>{term}</dt><dd>{}</dd>", escape(text));
    };
    row("Client", &request.client_name);
    row("Returns to", &redirect::host(&request.redirect_uri));
    row("Asks for", &asks(request).join(", "));
    if let Some(device) = &request.path.0 {
        row("Device", device.as_str());
    }
    format!("<dl>\n{rows}</dl>\n")
}

fn asks(request: &Request) -> Vec<&'static str> {
    let scopes = request.scopes;
    let asked = [
        (scopes.mcp, "calling tools"),
        (scopes.operations, "durable operations"),
        (request.refreshes, "access until you revoke it"),
    ];
    asked.into_iter().filter(|(on, _)| *on).map(|(_, text)| text).collect()
}

fn notice(notice: &Notice) -> String {
    let text = match notice {
        Notice::None => return String::new(),
        Notice::Login(error) if error.code == "authentication_failed" => "Name or password is wrong.",
        Notice::Login(error) if error.code == "login_blocked" => {
            "Too many failed logins. Wait 15 minutes, or approve with Holdfast, which still works."
        }
        Notice::Login(_) => "The relay cannot check passwords right now. Try again in a moment.",
        Notice::TooMany => "This account already has three waiting requests. Approve them or wait until they expire.",
    };
    format!("<p class=\"notice\" role=\"alert\">{text}</p>\n")
}

/// Asks who this is: with a password, or with Holdfast itself.
pub(super) fn sign_in(status: StatusCode, sheet: &Sheet<'_>, account: &str) -> Response {
    let (id, account) = (escape(sheet.id), escape(account));
    let body = format!(
        "<h1>A client asks for access</h1>\n{about}{notice}\
         <form method=\"post\" action=\"/oauth/authorize\">\n\
         <input type=\"hidden\" name=\"request\" value=\"{id}\">\n\
         <label for=\"account\">Account</label>\n\
         <input id=\"account\" name=\"account\" value=\"{account}\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" maxlength=\"64\" required>\n\
         <button name=\"action\" value=\"local\" class=\"main\">Approve with Holdfast</button>\n\
         <p class=\"hint\">Shows a code here, which you type into the Holdfast window or <code>holdfast approve</code>.</p>\n\
         <hr>\n\
         <label for=\"password\">Or with the account's password</label>\n\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" maxlength=\"256\">\n\
         <button name=\"action\" value=\"password\">Sign in</button>\n\
         <button name=\"action\" value=\"deny\" class=\"quiet\" formnovalidate>Deny</button>\n\
         </form>\n",
        about = about(sheet.request),
        notice = notice(&sheet.notice),
    );
    html(status, "Holdfast: a client asks for access", "", &body, &redirect::form_action(&sheet.request.redirect_uri))
}

/// Shows the code that is to be typed elsewhere, and looks again by itself.
pub(super) fn waiting(status: StatusCode, sheet: &Sheet<'_>, account: &str, code: &str) -> Response {
    let (first, second) = code.split_at_checked(4).unwrap_or((code, ""));
    let body = format!(
        "<h1>Type this code into Holdfast</h1>\n\
         <p class=\"code\"><code aria-label=\"approval code\">{first}-{second}</code></p>\n\
         <p>In the Holdfast window, or as <code>holdfast approve {first}-{second}</code>. It is good for five minutes; this page goes on by itself.</p>\n\
         <p class=\"hint\">Only if you started this yourself, as {account}.</p>\n{about}\
         <form method=\"post\" action=\"/oauth/authorize\">\n\
         <input type=\"hidden\" name=\"request\" value=\"{id}\">\n\
         <button name=\"action\" value=\"deny\" class=\"quiet\">Deny</button>\n</form>\n",
        account = escape(account),
        about = about(sheet.request),
        id = escape(sheet.id),
    );
    let head = "<meta http-equiv=\"refresh\" content=\"3\">\n";
    html(status, "Holdfast: type this code", head, &body, &redirect::form_action(&sheet.request.redirect_uri))
}

/// Shows what would be allowed, to somebody who is signed in.
pub(super) fn consent(status: StatusCode, sheet: &Sheet<'_>, role: Role, devices: &[Device]) -> Response {
    let body = format!(
        "<h1>Allow {client}?</h1>\n{about}{notice}\
         <form method=\"post\" action=\"/oauth/authorize\">\n\
         <input type=\"hidden\" name=\"request\" value=\"{id}\">\n{choice}\
         <p class=\"rights\">As {role}, {allows}{operations}</p>\n\
         <button name=\"action\" value=\"allow\" class=\"main\">Allow</button>\n\
         <button name=\"action\" value=\"deny\" class=\"quiet\">Deny</button>\n</form>\n",
        client = escape(&sheet.request.client_name),
        about = about(sheet.request),
        notice = notice(&sheet.notice),
        id = escape(sheet.id),
        choice = choice(devices),
        role = role.as_str(),
        allows = allows(role),
        operations = operations(sheet.request, role),
    );
    html(status, "Holdfast: allow this client?", "", &body, &redirect::form_action(&sheet.request.redirect_uri))
}

fn choice(devices: &[Device]) -> String {
    if let [device] = devices {
        return format!("<p>On the device <strong>{}</strong>.</p>\n", escape(&device.name));
    }
    let mut options = String::new();
    for device in devices {
        let _ = writeln!(options, "<option value=\"{}\">{}</option>", escape(device.id.as_str()), escape(&device.name));
    }
    format!("<label for=\"device\">On the device</label>\n<select id=\"device\" name=\"device\">\n{options}</select>\n")
}

/// One honest sentence.
fn allows(role: Role) -> &'static str {
    match role {
        Role::Reviewer => "it can read the files of that device's workspace.",
        Role::Editor => "it can read and change the files of that device's workspace.",
        Role::Operator | Role::Owner => {
            "it can run any program as the user of that device, and so do everything that user can; less only if the device's own policy is stricter."
        }
    }
}

/// The same of operations, where the role lets them mean something: MCP has tools for them, so the scope `mcp` is enough.
fn operations(request: &Request, role: Role) -> &'static str {
    let reaches = request.scopes.mcp || request.scopes.operations;
    match reaches && role >= Role::Operator {
        true => " It can also start durable operations, which wait for the device and go on while nobody is connected.",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_shown_as_text() {
        assert_eq!(escape("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
    }
}
