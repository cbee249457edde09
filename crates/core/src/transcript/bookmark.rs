//! What is kept of a transcript, and how it is taken up again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Binding, Cursor, Extraction, Start};

/// How far a transcript was said: kept in one commit with what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bookmark {
    /// Its path.
    pub transcript: String,
    /// How far.
    pub cursor: Cursor,
    /// What the next entry depends on.
    pub extraction: Extraction,
}

impl Bookmark {
    /// As text. It is kept under [`Cursor::source`].
    ///
    /// # Errors
    /// None that happen: every part of it is text or a number.
    pub fn write(&self) -> Result<Arc<str>, serde_json::Error> {
        serde_json::to_string(self).map(Arc::from)
    }

    /// From text; nothing, if it is none of ours.
    pub fn read(text: &str) -> Option<Bookmark> {
        serde_json::from_str(text).ok()
    }

    /// Takes a transcript up where it was left, by all bookmarks that are kept; a new one as `start` and `fresh` say.
    pub fn resume(kept: &[Bookmark], transcript: &str, start: Start, fresh: Extraction) -> (Binding, Extraction) {
        let last = kept.iter().map(|mark| mark.cursor.generation).max().unwrap_or(0);
        let ours = kept.iter().filter(|mark| mark.transcript == transcript).max_by_key(|mark| mark.cursor.generation);
        let bound = |start, generation| Binding { transcript: transcript.into(), start, generation };
        match (ours, start) {
            (Some(mark), Start::End | Start::At(_) | Start::Recent(_)) => {
                (bound(Start::At(mark.cursor.clone()), last + 1), mark.extraction.clone())
            }
            (_, start) => (bound(start, last + 1), fresh),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{FileId, Place};

    fn mark(transcript: &str, generation: u64, offset: u64) -> Bookmark {
        let file = FileId { place: Place { device: 1, inode: 2 }, head: 0, hash: "x".into() };
        let extraction = Extraction::new(Some(transcript.into()), None);
        Bookmark { transcript: transcript.into(), cursor: Cursor { generation, file, offset }, extraction }
    }

    #[test]
    fn a_bookmark_is_read_as_it_was_written() {
        let mark = mark("/a", 3, u64::MAX);
        assert_eq!(Bookmark::read(&mark.write().unwrap()), Some(mark));
        assert_eq!(Bookmark::read("{}"), None);
    }

    #[test]
    fn a_transcript_goes_on_at_its_last_bookmark_and_a_new_or_replayed_one_gets_a_generation_of_its_own() {
        let kept = [mark("/a", 1, 10), mark("/a", 4, 40), mark("/b", 6, 60)];
        let fresh = || Extraction::new(None, Some(5));
        let resume = |transcript: &str, start| Bookmark::resume(&kept, transcript, start, fresh());
        let (a, extraction) = resume("/a", Start::End);
        assert_eq!((a.start, extraction), (Start::At(kept[1].cursor.clone()), kept[1].extraction.clone()));
        let (replay, extraction) = resume("/a", Start::Beginning);
        assert_eq!((replay.start, replay.generation, extraction), (Start::Beginning, 7, fresh()));
        let (new, extraction) = resume("/c", Start::End);
        assert_eq!((new.start, new.generation, extraction), (Start::End, 7, fresh()));
        assert_eq!(Bookmark::resume(&[], "/c", Start::End, fresh()).0.generation, 1);
    }
}
