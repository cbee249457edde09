//! Results that do not fit the link: kept on disk for their owner, shown in part, read in pages.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::code::{Code, ToolError};
use holdfast_core::limits;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Outcome;
use super::call::{Call, Owner, bounded, encode, io_error, random_name};
use super::process::HeadTail;

pub(super) struct Results {
    folder: Arc<PathBuf>,
    kept: Arc<Mutex<Vec<Kept>>>,
}

/// One kept result; the file is `<folder>/<handle>`.
struct Kept {
    handle: String,
    owner: Owner,
    bytes: u64,
    since: Instant,
}

impl Results {
    /// Starts with none: what a predecessor kept belongs to nobody any more.
    pub(super) fn open(folder: PathBuf) -> io::Result<Results> {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            // A folder is none of ours, and no reason not to start.
            if !entry.file_type()?.is_dir() {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(Results { folder: Arc::new(folder), kept: Arc::default() })
    }

    /// Kept results in numbers, for `diagnose_runtime`.
    pub(super) fn counts(&self) -> serde_json::Value {
        let mut kept = self.kept.lock();
        expire(&self.folder, &mut kept);
        json!({
            "kept": kept.len(),
            "bytes": kept.iter().map(|k| k.bytes).sum::<u64>(),
            "maximum_bytes": limits::RESULTS_DISK,
        })
    }

    /// Lets an outcome through that fits the link; keeps a bigger one and says where.
    pub(super) async fn fit(&self, owner: &Owner, outcome: Outcome) -> Outcome {
        let (ran, big) = match outcome {
            Ok(result) if result.get().len() > limits::RESULT_MAX => (None, result),
            Err(mut error) if error.details.as_ref().is_some_and(|d| d.get().len() > limits::RESULT_MAX) => {
                let details = error.details.take().unwrap_or_default();
                (Some(error), details)
            }
            fits => return fits,
        };
        let (folder, kept, owner) = (Arc::clone(&self.folder), Arc::clone(&self.kept), owner.clone());
        let keep = tokio::task::spawn_blocking(move || keep(&folder, &kept, owner, &big));
        let details = keep.await.unwrap_or_else(|_| json!({}));
        Err(match ran {
            Some(error) => error.with_details(&details),
            None => ToolError::new(Code::ResultTooLarge, "the tool ran; its result is too big to return at once")
                .with_details(&details),
        })
    }

    /// `read_result`.
    pub(super) async fn read(&self, call: &Call) -> Outcome {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Arguments {
            handle: String,
            #[serde(default)]
            offset: u64,
            max_bytes: Option<u64>,
            /// For handles of the relay; a result kept here is complete.
            wait_ms: Option<u64>,
        }
        let args: Arguments = call.arguments()?;
        let max = bounded("max_bytes", args.max_bytes, 1, limits::RESULT_PAGE_MAX, limits::PROC_READ_DEFAULT)?;
        bounded("wait_ms", args.wait_ms, 0, limits::PROC_WAIT_MAX.as_millis() as usize, 0)?;
        let total = {
            let mut kept = self.kept.lock();
            expire(&self.folder, &mut kept);
            kept.iter().find(|k| k.handle == args.handle && k.owner == call.owner).map(|k| k.bytes)
        };
        let total = total.ok_or_else(|| ToolError::new(Code::NotFound, "no such result, or it is no longer kept"))?;
        let path = self.folder.join(&args.handle);
        let offset = args.offset.min(total);
        let page = tokio::task::spawn_blocking(move || -> io::Result<String> {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut page = Vec::new();
            file.take(max as u64).read_to_end(&mut page)?;
            page.truncate(whole(&page));
            // Only an offset that is no page's next_offset can land inside a character.
            Ok(String::from_utf8_lossy(&page).into_owned())
        });
        let text = page.await.map_err(io::Error::other).flatten().map_err(|e| io_error("result", &e))?;
        let next = offset + text.len() as u64;
        encode(&json!({
            "handle": args.handle, "offset": offset, "next_offset": next, "total_bytes": total,
            "done": next >= total, "text": text,
        }))
    }
}

/// Length up to the last whole character, but never nothing of something.
fn whole(page: &[u8]) -> usize {
    match super::process::whole_characters(page) {
        0 => page.len(),
        length => length,
    }
}

fn keep(folder: &Path, kept: &Mutex<Vec<Kept>>, owner: Owner, result: &RawValue) -> serde_json::Value {
    let text = result.get();
    let bytes = text.len() as u64;
    let mut preview = HeadTail::keeping(limits::RESULT_PREVIEW);
    preview.push(text.as_bytes());
    let preview = preview.shown();
    let mut details = json!({
        "total_bytes": bytes, "preview": preview.text, "preview_truncated_bytes": preview.truncated_bytes,
    });
    // The place is taken first, so that results that end together do not exceed the bound together.
    let Ok(handle) = random_name("res_") else { return details };
    {
        let mut kept = kept.lock();
        expire(folder, &mut kept);
        while !kept.is_empty() && kept.iter().map(|k| k.bytes).sum::<u64>() + bytes > limits::RESULTS_DISK as u64 {
            forget(folder, &mut kept, 0);
        }
        kept.push(Kept { handle: handle.clone(), owner, bytes, since: Instant::now() });
    }
    if crate::files::replace(&folder.join(&handle), text.as_bytes()).is_ok() {
        details["handle"] = json!(handle);
        details["read_with"] = json!("read_result");
    } else {
        // A full disk costs the handle, not the preview.
        let mut kept = kept.lock();
        if let Some(at) = kept.iter().position(|k| k.handle == handle) {
            forget(folder, &mut kept, at);
        }
    }
    details
}

/// The list is in order of age.
fn expire(folder: &Path, kept: &mut Vec<Kept>) {
    while kept.first().is_some_and(|oldest| oldest.since.elapsed() > limits::RESULT_KEPT_FOR) {
        forget(folder, kept, 0);
    }
}

fn forget(folder: &Path, kept: &mut Vec<Kept>, at: usize) {
    let gone = kept.remove(at);
    let _ = std::fs::remove_file(folder.join(gone.handle));
}
