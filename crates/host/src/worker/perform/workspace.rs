//! workspace_config: what the worker works for. It gives runs their folder and variables where a request names none.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_core::code::Code;
use holdfast_core::limits;
use holdfast_core::operation::{Digest, Failure};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::download::blocking;
use crate::files::{self, FileError};

const FILE: &str = "workspace.json";

/// What a configuration may say.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Workspace {
    /// The folder of runs that name none, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// Variables of every run; a request's own win.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
}

/// Variables can hold secrets.
impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// A configuration as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    digest: Digest,
    /// SHA-256 of the credential under which it came: another one makes it anew.
    credential: String,
    workspace: Workspace,
}

/// Takes a configuration. Tells its digest, and whether it is the one that was there.
pub(super) async fn put(dir: &Path, token: &SecretString, config: &Value) -> Result<Value, Failure> {
    let workspace = read(config)?;
    let digest = Digest::of_json(config);
    let credential = data_encoding::HEXLOWER.encode(&Sha256::digest(token.expose_secret().as_bytes()));
    let path = dir.join(FILE);
    let reused = blocking(move || {
        if load(&path).is_some_and(|kept| kept.digest == digest && kept.credential == credential) {
            return Ok(true);
        }
        let text = serde_json::to_vec(&Kept { digest, credential, workspace }).unwrap_or_default();
        files::replace(&path, &text).map_err(not_kept)?;
        Ok(false)
    });
    Ok(json!({"digest": digest, "reused": reused.await?}))
}

/// The configuration in force, empty before the first. Blocks for a moment.
pub(crate) fn kept(dir: &Path) -> Workspace {
    load(&dir.join(FILE)).map(|kept| kept.workspace).unwrap_or_default()
}

fn load(path: &Path) -> Option<Kept> {
    let text = files::read(path, 2 * limits::WORKSPACE_CONFIG_MAX).ok()?;
    serde_json::from_str(&text).ok()
}

fn read(config: &Value) -> Result<Workspace, Failure> {
    let bad = |why: &str| Failure::new(Code::InvalidRequest, why);
    let workspace: Workspace = serde_json::from_value(config.clone())
        .map_err(|_| bad("config may say `cwd`, a text, and `env`, an object of texts"))?;
    let plain = |text: &str| !text.contains('\0');
    let named = |name: &String| !name.is_empty() && !name.contains('=') && plain(name);
    if workspace.cwd.as_ref().is_some_and(|cwd| cwd.len() > limits::PATH_MAX || !plain(cwd)) {
        return Err(bad("cwd is within its bound and holds no NUL"));
    }
    if workspace.env.len() > limits::OPERATION_ENV_MAX
        || !workspace.env.iter().all(|(name, value)| named(name) && plain(value))
    {
        return Err(bad("env holds at most 256 well-formed variables"));
    }
    Ok(workspace)
}

fn not_kept(error: FileError) -> Failure {
    match error {
        FileError::Io { source, .. } => crate::exec::io_error("the configuration cannot be kept", &source).into(),
        FileError::NotOurs { why, .. } => Failure::new(Code::PermissionDenied, format!("not kept, because {why}")),
    }
}
