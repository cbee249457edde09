mod discovery;
mod extraction;
mod follow;
mod samples;
mod shell;
mod survival;

use super::{Extraction, Line, Piece, read_line};

/// The pieces of a transcript that is read as a whole.
fn pieces(extraction: &mut Extraction, transcript: &str) -> Vec<Piece> {
    let mut at = 0;
    let mut all = Vec::new();
    for line in transcript.split_inclusive('\n') {
        let range = at..at + line.len() as u64;
        at = range.end;
        match read_line(line.as_bytes(), range) {
            Line::Entry(entry) => all.push(extraction.take(&entry)),
            Line::Nothing => {}
            Line::Unreadable => panic!("{line}"),
        }
    }
    all
}
