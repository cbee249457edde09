//! Files of messages: fetched as they arrive, kept for [`limits::FILES_KEPT`], named by us.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdfast_core::chat::Attachment;
use holdfast_core::chat::inbox::{Message, Prepared};
use holdfast_core::limits;
use holdfast_core::line::one_line;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::programs::Programs;
use super::voice;
use crate::channel::ChannelBackend;
use crate::files as private;

/// The folder of files of one seat.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// When files that had their time were last removed.
    swept: Mutex<Option<Instant>>,
    voice: voice::Turn,
}

impl Files {
    /// What had its time goes at once, and later when [`Files::sweep`] is called. Blocks.
    pub(super) fn open(folder: PathBuf) -> Files {
        remove_old(&folder, SystemTime::now(), limits::FILES_KEPT, limits::FILES_ROOM);
        Files { folder, swept: Mutex::default(), voice: voice::Turn::default() }
    }

    pub(super) async fn prepare(
        &self,
        backend: &dyn ChannelBackend,
        programs: &Programs,
        hook: &[String],
        message: &Message,
    ) -> Prepared {
        self.sweep();
        let (mut files, mut notes) = (Vec::new(), Vec::new());
        for (number, file) in message.incoming.attachments.iter().enumerate() {
            // What its sender called it stands within brackets of ours.
            let name = one_line(&file.name, limits::INBOX_NAME_MAX).replace(['[', ']', ';'], "_");
            let audio = is_audio(file);
            if audio && hook.is_empty() {
                notes.push("[voice message]".to_owned());
            }
            let fetched = match ending(file) {
                None => Err(format!(
                    "[attachment not fetched: {name} is of kind {}]",
                    one_line(&file.kind, limits::INBOX_NAME_MAX)
                )),
                Some(_) if file.size > limits::ATTACHMENT_MAX => {
                    Err(format!("[attachment not fetched: {name} is too large]"))
                }
                Some(_) if self.is_nearly_full().await => {
                    Err(format!("[attachment not fetched: {name}: the disk is nearly full]"))
                }
                Some(end) => {
                    let path = self.folder.join(kept_name(message, number, end));
                    let fetched = voice::patiently(|| fetch(backend, message, file, &path)).await;
                    fetched.map(|()| path).map_err(|why| match audio && !hook.is_empty() {
                        true => voice::marker(&why),
                        false => {
                            format!("[attachment not fetched: {name}: {}]", one_line(&why, limits::INBOX_NAME_MAX))
                        }
                    })
                }
            };
            match fetched {
                Ok(path) => {
                    if audio && !hook.is_empty() {
                        notes.push(self.voice.heard(programs, hook, &path).await);
                    }
                    files.push(Arc::from(path.to_string_lossy()));
                }
                Err(note) => notes.push(note),
            }
        }
        Prepared { files, note: notes.join("\n") }
    }

    async fn is_nearly_full(&self) -> bool {
        let folder = self.folder.clone();
        tokio::task::spawn_blocking(move || private::is_nearly_full(&folder)).await.unwrap_or(false)
    }

    /// Removes what had its time, now and then, and beside everything else.
    pub(super) fn sweep(&self) {
        let mut swept = self.swept.lock();
        if swept.is_some_and(|at| at.elapsed() < limits::FILES_SWEEP) {
            return;
        }
        *swept = Some(Instant::now());
        let folder = self.folder.clone();
        tokio::task::spawn_blocking(move || {
            remove_old(&folder, SystemTime::now(), limits::FILES_KEPT, limits::FILES_ROOM)
        });
    }
}

/// Removes files older than that, and the oldest of those that are more than `room` bytes in all.
pub(super) fn remove_old(folder: &Path, now: SystemTime, kept: Duration, room: u64) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let known = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        Some((meta.modified().ok()?, meta.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.filter_map(known).collect();
    files.sort_by(|one, other| other.cmp(one));
    let mut total = 0;
    for (modified, size, path) in files {
        total += size;
        if total > room || now.duration_since(modified).is_ok_and(|age| age > kept) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Fetches a file, unless a try before did. It is there as a whole or not at all.
async fn fetch(backend: &dyn ChannelBackend, message: &Message, file: &Attachment, path: &Path) -> Result<(), String> {
    if tokio::fs::try_exists(path).await.unwrap_or(false) {
        return Ok(());
    }
    let part = path.with_extension("part");
    let (opened, at) = (part.clone(), part.clone());
    let open = move || {
        let file = private::open(&opened)?;
        file.set_len(0).map_err(private::FileError::io(&opened)).map(|()| file)
    };
    let into = tokio::task::spawn_blocking(open).await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    let mut into = tokio::fs::File::from_std(into);
    let fetched = backend.download(&message.incoming, file, &mut into).await;
    let fetched = match fetched {
        Ok(_) => into.sync_all().await.and(tokio::fs::rename(&at, path).await).map_err(|e| e.to_string()),
        Err(why) => Err(why),
    };
    if fetched.is_err() {
        let _ = tokio::fs::remove_file(&part).await;
    }
    fetched
}

/// A name of ours: the same for the same file of the same message.
fn kept_name(message: &Message, number: usize, end: &str) -> String {
    let safe = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    let (channel, id) = (safe(message.incoming.channel.as_str()), safe(message.incoming.id.as_str()));
    format!("{}-{channel}-{id}-{number}.{end}", message.incoming.at)
}

fn is_audio(file: &Attachment) -> bool {
    file.kind.starts_with("audio/") || file.kind.starts_with("application/ogg")
}

/// How the name of a file of this kind ends; nothing for kinds that are not fetched.
fn ending(file: &Attachment) -> Option<&'static str> {
    let kind = file.kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let named = file.name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    let known = |list: &[(&str, &'static str)], word: &str| list.iter().find(|(w, _)| *w == word).map(|(_, end)| *end);
    // What has no kind of its own goes by its name.
    if matches!(kind.as_str(), "" | "application/octet-stream") {
        return known(NAMES, &named);
    }
    match kind.split_once('/')? {
        ("text", _) => Some(known(NAMES, &named).filter(|end| !BINARY.contains(end)).unwrap_or("txt")),
        ("image" | "audio", _) => known(KINDS, &kind).or_else(|| known(NAMES, &named)),
        _ => known(KINDS, &kind),
    }
}

/// Endings by kind.
const KINDS: &[(&str, &str)] = &[
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("application/pdf", "pdf"),
    ("application/json", "json"),
    ("application/ogg", "ogg"),
    ("audio/ogg", "ogg"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/x-m4a", "m4a"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/webm", "webm"),
    ("audio/flac", "flac"),
];

/// Endings by name.
const NAMES: &[(&str, &str)] = &[
    ("png", "png"),
    ("jpg", "jpg"),
    ("jpeg", "jpg"),
    ("gif", "gif"),
    ("webp", "webp"),
    ("svg", "svg"),
    ("pdf", "pdf"),
    ("ogg", "ogg"),
    ("oga", "ogg"),
    ("opus", "ogg"),
    ("mp3", "mp3"),
    ("m4a", "m4a"),
    ("wav", "wav"),
    ("flac", "flac"),
    ("json", "json"),
    ("txt", "txt"),
    ("log", "log"),
    ("md", "md"),
    ("csv", "csv"),
    ("html", "html"),
    ("xml", "xml"),
    ("toml", "toml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("diff", "diff"),
    ("patch", "patch"),
];

/// Endings that are no text.
const BINARY: &[&str] = &["png", "jpg", "gif", "webp", "pdf", "ogg", "mp3", "m4a", "wav", "flac"];
