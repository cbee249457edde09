//! The other side: how a command finds the holder of a data folder and asks it.

mod channel;
mod operations;

pub use operations::{Follower, OperationView, Piece};

use futures_util::{Stream, StreamExt as _};
use holdfast_core::command::Command;
use holdfast_core::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ApiFile, OpenAt, lines};
use crate::engines::CommandError;
use crate::files;
use crate::lock::{DataLock, LockError};
use crate::paths::Dirs;

/// Who owns the data folder.
#[derive(Debug)]
pub enum Owner {
    /// A running process; ask it.
    Holder(Holder),
    /// Nobody did; this process does now.
    Us(DataLock),
}

/// A running process that owns the data folder.
#[derive(Debug, Clone)]
pub struct Holder {
    file: ApiFile,
    client: reqwest::Client,
}

/// Why nobody can be asked.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    /// The data folder.
    #[error(transparent)]
    File(#[from] files::FileError),
    /// Held, and no API is named.
    #[error("{0}, which does not answer")]
    Silent(LockError),
    /// `api.json` is not what we wrote.
    #[error("api.json is not readable")]
    Format,
    /// The HTTP client cannot be made.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
}

/// The running process, if there is one. For whoever only reads: a folder that does not exist is not made.
pub async fn holder(dirs: &Dirs) -> Result<Option<Holder>, HolderError> {
    if !DataLock::was_taken(&dirs.data) {
        return Ok(None);
    }
    Ok(match owner(dirs).await? {
        Owner::Holder(holder) => Some(holder),
        Owner::Us(_) => None,
    })
}

/// Finds who owns the data folder. A process that is just starting is waited for.
pub async fn owner(dirs: &Dirs) -> Result<Owner, HolderError> {
    dirs.prepare()?;
    let give_up = tokio::time::Instant::now() + limits::HOLDER_WAIT;
    loop {
        let held = match DataLock::take(&dirs.data) {
            Ok(lock) => return Ok(Owner::Us(lock)),
            Err(LockError::File(e)) => return Err(e.into()),
            Err(held) => held,
        };
        // The lock tells that a holder lives; only then is what the file says worth a token.
        match files::read(&dirs.api_file(), limits::API_BODY_MAX) {
            Ok(text) => {
                let file: ApiFile = serde_json::from_str(&text).map_err(|_| HolderError::Format)?;
                if !file.address.ip().is_loopback() {
                    return Err(HolderError::Format);
                }
                let client =
                    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
                return Ok(Owner::Holder(Holder { file, client }));
            }
            Err(e) if !e.is_absent() => return Err(e.into()),
            Err(_) if tokio::time::Instant::now() >= give_up => return Err(HolderError::Silent(held)),
            Err(_) => tokio::time::sleep(limits::LOCK_RETRY).await,
        }
    }
}

impl Holder {
    /// What `api.json` says.
    pub fn file(&self) -> &ApiFile {
        &self.file
    }

    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.file.address)).bearer_auth(&self.file.token)
    }

    /// Asks for a document.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        let asked = answer(self.request(reqwest::Method::GET, path));
        tokio::time::timeout(limits::HOLDER_SILENT, asked).await.unwrap_or_else(|_| Err(self.silent()))
    }

    /// Asks for a text.
    pub async fn text(&self, path: &str) -> Result<String, CommandError> {
        // It may look at the relay and the keyring, each of which may hang.
        let request = self.request(reqwest::Method::GET, path).timeout(3 * limits::API_ANSWER);
        sent(request).await?.text().await.map_err(silent)
    }

    /// Sends a command. Waits as long as stopping may take, while the holder answers anything at all.
    pub async fn command(&self, command: &Command) -> Result<Value, CommandError> {
        let patience = limits::STOP_WAIT + limits::STOP_ACK_WAIT + limits::RELAY_STOP_WAIT + limits::API_ANSWER;
        let asked = answer(self.request(reqwest::Method::POST, "/api/command").json(command).timeout(patience));
        tokio::select! {
            answer = asked => answer,
            () = self.hangs(limits::HOLDER_SILENT) => Err(self.silent()),
        }
    }

    /// It lives, and answers nothing.
    fn silent(&self) -> CommandError {
        let pid = self.file.pid;
        let why = format!(
            "process {pid} runs on this data folder and does not answer; if it stays so, end it (`kill -9 {pid}`) and start \
             Holdfast again"
        );
        CommandError::new("silent", why)
    }

    /// Comes when the holder lives and does not answer in that time. One that went ends whatever else is asked of it.
    async fn hangs(&self, patience: std::time::Duration) {
        loop {
            let asked = answer::<Value>(self.request(reqwest::Method::GET, "/api/status"));
            if tokio::time::timeout(patience, asked).await.is_err() {
                return;
            }
            tokio::time::sleep(patience).await;
        }
    }

    /// An address that opens the status window in a browser, once.
    pub async fn open(&self) -> Result<OpenAt, CommandError> {
        let at: OpenAt = answer(self.request(reqwest::Method::POST, "/api/open").timeout(limits::API_ANSWER)).await?;
        // It is handed to a program: nothing but a code at the holder's own address may go there.
        let code = at.url.strip_prefix(&format!("http://{}/#", self.file.address));
        match code {
            Some(code) if code.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') => Ok(at),
            _ => Err(CommandError::new("failed", "the running Holdfast answered with an address that is not its own")),
        }
    }

    /// The items of a stream of events (`data:` lines) as they come.
    pub async fn events<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<impl Stream<Item = T> + use<T>, CommandError> {
        let response = sent(self.request(reqwest::Method::GET, path)).await?;
        Ok(lines(response.bytes_stream())
            .filter_map(|line| async move { serde_json::from_str(line.strip_prefix("data:")?.trim()).ok() }))
    }

    /// The items of a long answer, one JSON line each.
    pub async fn long<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<impl Stream<Item = T>, CommandError> {
        let response = sent(self.request(reqwest::Method::POST, path).json(body)).await?;
        Ok(lines(response.bytes_stream()).filter_map(|line| async move { serde_json::from_str(&line).ok() }))
    }
}

async fn sent(request: reqwest::RequestBuilder) -> Result<reqwest::Response, CommandError> {
    accepted(request.send().await.map_err(silent)?).await
}

async fn accepted(response: reqwest::Response) -> Result<reqwest::Response, CommandError> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let error: Value = response.json().await.unwrap_or_default();
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    Err(CommandError {
        code: text("code").unwrap_or_else(|| "failed".into()),
        message: text("message").unwrap_or_else(|| format!("the running Holdfast answered {status}")),
    })
}

async fn answer<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, CommandError> {
    sent(request).await?.json().await.map_err(silent)
}

fn silent(error: reqwest::Error) -> CommandError {
    let why = if error.is_timeout() { "it did not answer in time" } else { "its local API does not answer" };
    CommandError::new("unavailable", format!("the running Holdfast cannot be asked: {why}"))
}
