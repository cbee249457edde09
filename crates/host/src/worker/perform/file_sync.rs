//! file_sync: files that are to be in a folder, from the relay or from listed hosts.

use std::collections::HashSet;
use std::path::{Component, Path};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use holdfast_core::code::Code;
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::line::one_line;
use holdfast_core::operation::{BadRequest, Failure, File, Request};
use holdfast_core::policy::Policy;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::again::{Broken, Tries, or_stopped};
use super::download::{Came, Wanted, blocking, settle};
use super::fetch::{Answer, Fetch, in_time};
use crate::exec::{Access, Env};

/// Longest piece of a file's name in an error.
const NAMED: usize = 80;

/// The list of files behind a `manifestUrl`. Its URLs may be relative to its own.
#[derive(Deserialize)]
struct Manifest {
    files: Vec<File>,
}

/// What one file sync works with.
pub(super) struct FileSync<'a> {
    pub(super) env: &'a Arc<Env>,
    pub(super) policy: Policy,
    pub(super) fetch: Fetch,
    pub(super) id: &'a OperationId,
    pub(super) stop: &'a CancellationToken,
}

impl FileSync<'_> {
    /// Makes the files be there. Each is put in its place on its own; the first that fails ends it, and those that are in
    /// place stay.
    pub(super) async fn run(&self, target: &str, manifest_url: Option<&str>, files: &[File]) -> Result<Value, Failure> {
        if !self.policy.allow_write {
            return Err(Failure::new(Code::PolicyDenied, "the policy of this device does not allow writing files"));
        }
        let listed = match manifest_url {
            Some(url) => self.manifest(target, &address(url, None)?).await?,
            None => files.to_vec(),
        };
        let wanted = self.wanted(target, &listed).await?;
        let count = wanted.len();
        let named = wanted.into_iter().zip(listed.into_iter().map(|file| file.filename));
        let settled = stream::iter(named).map(|(wanted, name)| async move {
            match settle(self.env, &self.fetch, &wanted, self.stop).await {
                Ok(came) => Ok((name, came)),
                Err(failure) => Err(about(&name, failure)),
            }
        });
        let mut done: Vec<(String, Came)> = settled.buffer_unordered(limits::SYNC_PARALLEL).try_collect().await?;
        done.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let fetched = done.iter().filter(|(_, came)| matches!(came, Came::Fetched(_))).count();
        let bytes: u64 = done.iter().map(|(_, came)| if let Came::Fetched(bytes) = came { *bytes } else { 0 }).sum();
        let mut room = limits::SYNC_LISTED_MAX;
        let shown: Vec<Value> = done
            .iter()
            .map_while(|(name, came)| {
                room = room.checked_sub(name.len())?;
                let state = if *came == Came::Present { "present" } else { "fetched" };
                Some(json!({"filename": name, "state": state}))
            })
            .collect();
        Ok(json!({
            "fetched": fetched, "present": count - fetched, "bytes": bytes, "unlisted": count - shown.len(), "files": shown,
        }))
    }

    /// The list of files at an address, its URLs made absolute.
    async fn manifest(&self, target: &str, url: &Url) -> Result<Vec<File>, Failure> {
        let mut tries = Tries::new(self.stop);
        let (text, url) = loop {
            let read = tries.make(or_stopped(self.stop, self.text(url))).await;
            if let Some(read) = read.map_err(|failure| about("the manifest", failure))? {
                break read;
            }
        };
        let bad = |why: &str| about("the manifest", Failure::new(Code::InvalidRequest, why));
        let Manifest { mut files } = serde_json::from_slice(&text)
            .map_err(|_| bad("it is no JSON object with the files' names, digests, sizes and URLs"))?;
        for file in &mut files {
            file.url = address(&file.url, Some(&url)).map_err(|failure| about(&file.filename, failure))?.into();
        }
        if !files.is_empty() {
            let asked = Request::FileSync { target: target.to_owned(), manifest_url: None, files: files.clone() };
            asked.check().map_err(|BadRequest(why)| bad(why))?;
        }
        Ok(files)
    }

    /// One try to read all of a manifest, and where it finally came from.
    async fn text(&self, url: &Url) -> Result<(Vec<u8>, Url), Broken> {
        let Answer { mut response, url } = self.fetch.open(url, 0).await?;
        let mut text = Vec::new();
        loop {
            match in_time(response.chunk()).await {
                Ok(None) => return Ok((text, url)),
                Ok(Some(more)) if text.len() + more.len() > limits::SYNC_MANIFEST_MAX => {
                    let bound = limits::SYNC_MANIFEST_MAX >> 20;
                    return Err(Failure::new(Code::LimitExceeded, format!("it is larger than {bound} MiB")).into());
                }
                Ok(Some(more)) => text.extend_from_slice(&more),
                Err(broken) => {
                    self.fetch.forget(&url);
                    return Err(broken);
                }
            }
        }
    }

    /// Where each file goes. All are looked at before one is fetched.
    async fn wanted(&self, target: &str, files: &[File]) -> Result<Vec<Arc<Wanted>>, Failure> {
        let (env, policy, id) = (Arc::clone(self.env), self.policy.clone(), self.id.clone());
        let (target, files) = (target.to_owned(), files.to_vec());
        blocking(move || {
            let folder = env.files.find(&target, &policy, Access::Write)?.real;
            let mut places = HashSet::new();
            let place = |file: &File| {
                let path = Path::new(&target).join(plain(&file.filename)?);
                let spot = env.files.find(&path.to_string_lossy(), &policy, Access::Write)?;
                if !spot.real.starts_with(&folder) || spot.real == folder {
                    return Err(Failure::new(Code::PathBoundary, "it would lie outside the target"));
                }
                if !places.insert(spot.real.clone()) {
                    return Err(Failure::new(Code::InvalidRequest, "two files have this name"));
                }
                let sha256 = data_encoding::HEXLOWER_PERMISSIVE.decode(file.sha256.as_bytes()).ok();
                let sha256 = sha256.and_then(|bytes| bytes.try_into().ok());
                let sha256 =
                    sha256.ok_or_else(|| Failure::new(Code::InvalidRequest, "sha256 is 64 hexadecimal digits"))?;
                let part =
                    Sha256::new().chain_update(id.as_str()).chain_update([0]).chain_update(&file.filename).finalize();
                let part = format!(".holdfast-{}.part", &data_encoding::HEXLOWER.encode(&part)[..32]).into();
                Ok(Arc::new(Wanted { spot, part, size: file.size, sha256, url: address(&file.url, None)? }))
            };
            let mut place = place;
            files.iter().map(|file| place(file).map_err(|failure| about(&file.filename, failure))).collect()
        })
        .await
    }
}

/// A name that goes down from the target and nowhere else.
fn plain(filename: &str) -> Result<&Path, Failure> {
    let path = Path::new(filename);
    let down = path.components().all(|part| matches!(part, Component::Normal(_)));
    match down && !filename.is_empty() && !filename.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        true => Ok(path),
        false => Err(Failure::new(Code::PathBoundary, "a file's name goes down from the target and nowhere else")),
    }
}

fn address(text: &str, base: Option<&Url>) -> Result<Url, Failure> {
    let url = base.map_or_else(|| Url::parse(text), |base| base.join(text));
    url.map_err(|_| Failure::new(Code::InvalidRequest, "this is no URL"))
}

pub(super) fn about(name: &str, failure: Failure) -> Failure {
    Failure { message: format!("{}: {}", one_line(name, NAMED), failure.message), ..failure }
}
