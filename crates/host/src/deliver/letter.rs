//! A message as its agent reads it.

use std::collections::BTreeMap;

use holdfast_core::chat::Incoming;
use holdfast_core::chat::inbox::Prepared;
use serde::{Deserialize, Serialize};

/// What an agent gets of a message. This is what the files of `inbox` hold, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Names it for its acknowledgement; the same each time it is offered.
    pub id: String,
    /// The text, and below it what became of files.
    pub content: String,
    /// Where it came from. Every value is a text, or some agents would drop all of it: `chat_id`, `parent_chat_id`,
    /// `message_id`, `user`, `user_id`, `ts`, `attachment_count`, `attachments`, `files` (a JSON list of paths) and
    /// `image_path`.
    pub meta: BTreeMap<String, String>,
}

impl Letter {
    /// Of a message whose files were fetched.
    pub fn of(from: &Incoming, prepared: &Prepared) -> Letter {
        let texts = [from.text.trim(), prepared.note.trim()];
        let mut content = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        if content.is_empty() {
            // An agent drops what is blank.
            let image = from.attachments.iter().any(|file| file.kind.starts_with("image/"));
            content = if image { "[image]" } else { "[attachment]" }.to_owned();
        }
        let mut meta = BTreeMap::new();
        let mut put = |key: &str, value: String| drop(meta.insert(key.to_owned(), value));
        put("chat_id", from.channel.to_string());
        if let Some(parent) = &from.parent {
            put("parent_chat_id", parent.to_string());
        }
        put("message_id", from.id.to_string());
        put("user", from.author_name.clone());
        put("user_id", from.author.to_string());
        put("ts", date(from.at));
        if !from.attachments.is_empty() {
            put("attachment_count", from.attachments.len().to_string());
            let each = from.attachments.iter();
            let each = each.map(|file| format!("{} ({}, {} kB)", file.name, file.kind, file.size.div_ceil(1000)));
            put("attachments", each.collect::<Vec<_>>().join("; "));
        }
        if !prepared.files.is_empty() {
            put("files", serde_json::to_string(&prepared.files).unwrap_or_default());
        }
        let image = |path: &&std::sync::Arc<str>| IMAGES.iter().any(|end| path.ends_with(end));
        if let Some(path) = prepared.files.iter().find(image) {
            put("image_path", path.to_string());
        }
        Letter { id: Letter::id_of(from), content, meta }
    }

    /// What a message is called.
    pub(super) fn id_of(from: &Incoming) -> String {
        format!("{}/{}", from.channel, from.id)
    }

    /// As the input of a program: a few lines that say who wrote where, an empty line, and the text. What somebody
    /// wrote begins after the first empty line, so no text can pass for a heading.
    pub fn headed(&self, files: &[std::sync::Arc<str>]) -> String {
        let meta = |key: &str| self.meta.get(key).map(String::as_str).unwrap_or_default();
        let mut text = format!("From: {} ({})\nChannel: {}", meta("user"), meta("user_id"), meta("chat_id"));
        if let Some(parent) = self.meta.get("parent_chat_id") {
            text.push_str(&format!(" (thread of {parent})"));
        }
        text.push_str(&format!("\nMessage: {}\nTime: {}\n", meta("message_id"), meta("ts")));
        for file in files {
            text.push_str(&format!("File: {file}\n"));
        }
        text.push_str(&format!("\n{}\n", self.content));
        text
    }
}

/// How the names of image files end, as [`super::files`] gives them.
const IMAGES: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// As people and programs read it: `2026-12-01T04:00:00Z`.
fn date(unix_ms: u64) -> String {
    let ms = i64::try_from(unix_ms).unwrap_or_default();
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
