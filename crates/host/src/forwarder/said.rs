//! What an agent wrote, as the entries that are said: what was written together is said together.

use std::time::Duration;

use holdfast_core::chat::outbox::Entry;
use holdfast_core::limits;
use holdfast_core::status::UnixMs;
use holdfast_core::transcript::{Piece, Turn, join};

/// Joins what was read at once into as few messages of at most `chunk` UTF-16 units as that takes; a piece that is too long
/// stands alone. What will not be sent, because it is too old or too many came after it, is not joined, so that it is left out
/// by itself. Pieces follow each other in the transcript.
pub(super) fn entries(pieces: &[Piece], chunk: usize, now: UnixMs) -> Vec<Entry> {
    let pieces: Vec<&Piece> = pieces.iter().filter(|piece| !piece.text.trim().is_empty()).collect();
    let too_many = pieces.len().saturating_sub(limits::OUTBOX_ENTRIES);
    let mut all: Vec<Entry> = Vec::new();
    for (nth, piece) in pieces.into_iter().enumerate() {
        let age = age(piece, now);
        let near = |last: &&mut Entry| last.age <= limits::OUTBOX_AGE && last.age <= age + limits::OUTBOX_JOINED;
        if let Some(last) = all.last_mut().filter(near)
            && nth > too_many
        {
            let both = join([last.text.as_str(), piece.text.as_str()]);
            if both.encode_utf16().count() <= chunk {
                (last.end, last.text, last.count) = (piece.range.end, both, last.count + 1);
                continue;
            }
        }
        let (start, end) = (piece.range.start, piece.range.end);
        all.push(Entry { start, end, age, text: piece.text.clone(), count: 1 });
    }
    all
}

/// How the agent's work goes on, by what it wrote last; nothing, if that tells of old times.
pub(super) fn turns(pieces: &[Piece], now: UnixMs) -> impl Iterator<Item = Turn> {
    pieces.iter().filter(move |piece| age(piece, now) <= limits::FORWARDER_TURN).filter_map(|piece| piece.turn)
}

fn age(piece: &Piece, now: UnixMs) -> Duration {
    Duration::from_millis(piece.at.map_or(0, |at| now.saturating_sub(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = 10_000_000;

    fn piece(start: u64, text: &str, age: Duration) -> Piece {
        let at = NOW - u64::try_from(age.as_millis()).unwrap();
        Piece { range: start..start + 10, at: Some(at), text: text.to_owned(), turn: Some(Turn::Speaks) }
    }

    fn said(pieces: &[Piece], chunk: usize) -> Vec<(u64, u64, String)> {
        entries(pieces, chunk, NOW).into_iter().map(|entry| (entry.start, entry.end, entry.text)).collect()
    }

    #[test]
    fn what_is_read_together_is_one_message_with_empty_lines_between() {
        let s = Duration::from_secs(1);
        let pieces = [piece(0, "Done.", s), piece(10, " ", s), piece(20, "● **Run**", s), piece(30, "Done.", s)];
        assert_eq!(said(&pieces, 100), [(0, 40, "Done.\n\n● **Run**\n\nDone.".to_owned())]);
    }

    #[test]
    fn a_message_is_begun_where_the_last_one_has_no_room() {
        let s = Duration::from_secs(1);
        let (long, longer) = ("a".repeat(60), "b".repeat(150));
        let pieces = [piece(0, &long, s), piece(10, &long, s), piece(20, &longer, s), piece(30, "c", s)];
        let expected = [(0, 10, long.clone()), (10, 20, long), (20, 30, longer), (30, 40, "c".to_owned())];
        assert_eq!(said(&pieces, 100), expected);
    }

    #[test]
    fn a_message_holds_what_was_written_within_five_minutes_and_counts_it() {
        let ages = [limits::OUTBOX_JOINED * 2, limits::OUTBOX_JOINED, limits::OUTBOX_JOINED - Duration::from_secs(1)];
        let pieces: Vec<Piece> = (0..).zip(ages).map(|(n, age)| piece(n * 10, "a", age)).collect();
        let all: Vec<_> = entries(&pieces, 100, NOW).into_iter().map(|entry| (entry.start, entry.count)).collect();
        assert_eq!(all, [(0, 2), (20, 1)]);
    }

    #[test]
    fn of_more_than_two_hundred_only_the_newest_are_joined() {
        let pieces: Vec<Piece> = (0..203).map(|n| piece(n * 10, "a", Duration::ZERO)).collect();
        let counts: Vec<u64> = entries(&pieces, 2000, NOW).into_iter().map(|entry| entry.count).collect();
        assert_eq!(counts, [1, 1, 1, 200]);
    }

    #[test]
    fn what_is_too_old_stands_alone_and_tells_nothing_of_the_agents_work() {
        let (old, new) = (limits::OUTBOX_AGE + Duration::from_secs(1), Duration::ZERO);
        let pieces = [piece(0, "a", old), piece(10, "b", old), piece(20, "c", new), piece(30, "d", new)];
        let expected = [(0, 10, "a".to_owned()), (10, 20, "b".to_owned()), (20, 40, "c\n\nd".to_owned())];
        assert_eq!(said(&pieces, 100), expected);
        assert_eq!(turns(&pieces, NOW).count(), 2);
    }
}
