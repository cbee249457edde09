//! Accounts, devices, tokens and clients of the relay.

use holdfast_core::command::Command as Ask;
use serde_json::Value;

use super::told;
use crate::args::{Account, Client, Device, Folders, Token};
use crate::ask::{ask, secret_line};
use crate::failure::Failure;
use crate::print;

fn listed(folders: &Folders, rows: &Value, columns: &[(&str, &str)]) -> Result<(), Failure> {
    if folders.json {
        return print::json(rows);
    }
    print::table(rows, columns);
    Ok(())
}

/// Prints a secret alone on stdout, so that a script can take it as it is.
fn alone(folders: &Folders, answer: &Value, field: &str) -> Result<(), Failure> {
    match answer[field].as_str() {
        _ if folders.json => print::json(answer),
        Some(secret) => {
            print::line(secret);
            Ok(())
        }
        None => Err(Failure::plain("the running Holdfast gave no answer that this version understands")),
    }
}

pub async fn account(folders: &Folders, command: Account) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    match command {
        Account::Add { name, role, password_stdin } => {
            let password = if password_stdin { Some(secret_line("password")?) } else { None };
            let account = ask(&dirs, Ask::AccountAdd { name: name.clone(), role, password }).await?;
            told(folders, &account, &format!("account {name} has the role {}", role.as_str()))
        }
        Account::List => {
            let rows = ask(&dirs, Ask::AccountList {}).await?;
            listed(
                folders,
                &rows,
                &[
                    ("NAME", "name"),
                    ("ROLE", "role"),
                    ("PASSWORD", "has_password"),
                    ("ACTIVE", "active"),
                    ("CREATED", "created"),
                    ("ID", "id"),
                ],
            )
        }
    }
}

pub async fn device(folders: &Folders, command: Device) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    match command {
        Device::Code { account } => alone(folders, &ask(&dirs, Ask::DeviceCode { account }).await?, "code"),
        Device::List => {
            let rows = ask(&dirs, Ask::DeviceList {}).await?;
            listed(
                folders,
                &rows,
                &[
                    ("NAME", "name"),
                    ("ACCOUNT", "account"),
                    ("CONNECTED", "connected"),
                    ("CLONE SEEN", "in_use"),
                    ("DEFAULT", "default"),
                    ("CREATED", "created"),
                    ("REVOKED", "revoked"),
                    ("ID", "id"),
                ],
            )
        }
        Device::Rename { device, name } => {
            let answer = ask(&dirs, Ask::DeviceRename { device, name: name.clone() }).await?;
            told(folders, &answer, &format!("the device is called {name}"))
        }
        Device::Default { device } => {
            let answer = ask(&dirs, Ask::DeviceDefault { device: device.clone() }).await?;
            told(folders, &answer, &format!("new clients reach {device}"))
        }
        Device::Revoke { device } => {
            let answer = ask(&dirs, Ask::DeviceRevoke { device: device.clone() }).await?;
            told(folders, &answer, &format!("revoked {device}"))
        }
    }
}

pub async fn token(folders: &Folders, command: Token) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    match command {
        Token::Create { name, role, device, account, days } => {
            let answer = ask(&dirs, Ask::TokenCreate { name, role, device, account, days }).await?;
            alone(folders, &answer, "token")
        }
        Token::List => {
            let rows = ask(&dirs, Ask::TokenList {}).await?;
            listed(
                folders,
                &rows,
                &[
                    ("NAME", "name"),
                    ("ACCOUNT", "account"),
                    ("ROLE", "role"),
                    ("DEVICE", "device"),
                    ("EXPIRES", "expires"),
                    ("ID", "id"),
                ],
            )
        }
        Token::Revoke { token } => {
            let answer = ask(&dirs, Ask::TokenRevoke { token }).await?;
            told(folders, &answer, "token revoked")
        }
    }
}

pub async fn client(folders: &Folders, command: Client) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    match command {
        Client::List => {
            let clients = ask(&dirs, Ask::ClientList {}).await?;
            if folders.json {
                return print::json(&clients);
            }
            print::table(&clients, &[("NAME", "name"), ("REGISTERED", "created"), ("ID", "id")]);
            for client in clients.as_array().into_iter().flatten() {
                if client["grants"].as_array().is_some_and(|g| !g.is_empty()) {
                    print::line(&format!("\n{}:", print::shown(client["name"].as_str().unwrap_or_default())));
                    print::table(
                        &client["grants"],
                        &[
                            ("ACCOUNT", "account"),
                            ("DEVICE", "device"),
                            ("SCOPES", "scopes"),
                            ("GRANTED", "created"),
                            ("ID", "id"),
                        ],
                    );
                }
            }
            Ok(())
        }
        Client::Revoke { client: Some(client), all: _ } => {
            let answer = ask(&dirs, Ask::ClientRevoke { client }).await?;
            told(folders, &answer, "client revoked")
        }
        Client::Revoke { client: None, all: _ } => {
            let answer = ask(&dirs, Ask::CutAllAccess {}).await?;
            let said = match answer["revoked"] {
                Value::Null => {
                    "the link is stopped; the relay is elsewhere, and what it granted ends with \
                     `holdfast client revoke --all` there"
                }
                _ => "all clients and tokens are revoked and the link is stopped; `holdfast start` starts it again",
            };
            told(folders, &answer, said)
        }
    }
}
