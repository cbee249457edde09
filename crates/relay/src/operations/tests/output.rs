use bytes::Bytes;
use holdfast_core::control::Change;
use holdfast_core::limits;
use holdfast_core::operation::{Outcome, Stream};
use rusqlite::Connection;

use super::super::output::{Bounds, Found, Of, append, missing_all, read, received, skip};
use super::super::store;
use super::{admit, database, device, end, id, number};

const OUT: Stream = Stream::Stdout;

/// Small enough to count by hand.
const SMALL: Bounds = Bounds { head: 10, tail: 20, total: 100_000 };

/// A database with living operations 1 to 3.
fn stage() -> Connection {
    let db = database();
    (1..=3).for_each(|n| admit(&db, n));
    db
}

fn put(db: &Connection, operation: i64, from: u64, data: &[u8]) {
    append(db, &SMALL, Of(operation, OUT), from, data).unwrap();
}

fn at(db: &Connection, operation: i64, offset: u64) -> Found {
    read(db, Of(operation, OUT), offset, 1_000).unwrap()
}

fn text(text: &'static str) -> Found {
    Found::Bytes(Bytes::from_static(text.as_bytes()))
}

fn kept(db: &Connection) -> i64 {
    let outcomes = number(db, "SELECT coalesce(sum(octet_length(outcome)), 0) FROM operations");
    let kept = number(db, "SELECT coalesce(sum(length(data)), 0) FROM chunks");
    assert_eq!(number(db, "SELECT output FROM totals"), kept + outcomes, "the total follows");
    kept
}

#[test]
fn the_first_and_the_last_bytes_of_a_stream_are_kept_and_a_read_in_the_gap_tells_where_it_goes_on() {
    let db = stage();
    put(&db, 1, 0, b"abcdef");
    put(&db, 1, 6, b"ghijKLMN");
    assert_eq!(at(&db, 1, 0), text("abcdefghijKLMN"), "nothing was given up yet");
    // In rows that small pieces are not joined to.
    let big = [b'x'; 5_000];
    put(&db, 1, 14, &big);
    put(&db, 1, 5_014, &big);
    put(&db, 1, 10_014, b"the end");
    assert_eq!(at(&db, 1, 0), text("abcdefghij"), "up to the gap");
    for gone in [10, 11, 5_013] {
        assert_eq!(at(&db, 1, gone), Found::Gone { first_available: 5_014 }, "{gone}");
    }
    assert_eq!(at(&db, 1, 10_014), text("the end"));
    assert_eq!(at(&db, 1, 10_021), text(""), "nothing more came yet");
    assert_eq!(at(&db, 1, 10_022), Found::Beyond);
    assert_eq!(kept(&db), 10 + 5_000 + 7);
}

#[test]
fn what_comes_again_is_stored_once_and_a_hole_never() {
    let db = stage();
    put(&db, 1, 0, b"abcdef");
    put(&db, 1, 0, b"abc");
    put(&db, 1, 4, b"efgh");
    assert_eq!(at(&db, 1, 0), text("abcdefgh"));
    assert!(append(&db, &SMALL, Of(1, OUT), 9, b"x").is_err());
    assert!(skip(&db, Of(1, OUT), 9, 12).is_err());
    assert_eq!(received(&db, Of(1, OUT)).unwrap(), 8);
}

#[test]
fn a_gap_that_the_worker_tells_of_is_read_as_one() {
    let db = stage();
    put(&db, 1, 0, b"abc");
    skip(&db, Of(1, OUT), 3, 100).unwrap();
    assert_eq!(at(&db, 1, 3), Found::Gone { first_available: 100 }, "nothing came after it yet");
    put(&db, 1, 100, b"def");
    skip(&db, Of(1, OUT), 50, 60).unwrap();
    assert_eq!((at(&db, 1, 0), at(&db, 1, 3)), (text("abc"), Found::Gone { first_available: 100 }));
    assert_eq!((at(&db, 1, 100), received(&db, Of(1, OUT)).unwrap()), (text("def"), 103));
    assert!(skip(&db, Of(1, OUT), 103, u64::MAX).is_err(), "beyond what can be counted");
}

#[test]
fn output_that_comes_byte_by_byte_takes_few_rows() {
    let db = stage();
    let whole: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let bounds = Bounds { head: 50_000, tail: 100_000, total: 1_000_000 };
    for n in (0..whole.len()).step_by(10) {
        append(&db, &bounds, Of(1, OUT), n as u64, &whole[n..n + 10]).unwrap();
    }
    assert_eq!(number(&db, "SELECT count(*) FROM chunks"), 26, "{} bytes each", limits::CONTROL_CHUNK_SMALL);
    assert_eq!(read(&db, Of(1, OUT), 0, 200_000).unwrap(), Found::Bytes(whole.clone().into()));
    assert_eq!(read(&db, Of(1, OUT), 49_995, 10).unwrap(), Found::Bytes(whole[49_995..50_005].to_vec().into()));
}

#[test]
fn the_oldest_ended_operation_gives_up_its_output_first_and_a_living_one_its_own_only_then() {
    let db = stage();
    let bounds = Bounds { head: 6_000, tail: 100_000, total: 30_000 };
    let fill = |operation: i64, from: u64| append(&db, &bounds, Of(operation, OUT), from, &[b'x'; 5_000]).unwrap();
    (0..2).for_each(|n| (1..=3).for_each(|operation| fill(operation, n * 5_000)));
    end(&db, 2, 2_000);
    end(&db, 1, 3_000);
    assert_eq!(kept(&db), 30_000);
    fill(3, 10_000);
    assert_eq!((at(&db, 2, 0), at(&db, 1, 0)), (Found::Gone { first_available: 10_000 }, whole(1_000)));
    assert_eq!(kept(&db), 25_000);
    (3..7).for_each(|n| fill(3, n * 5_000));
    // Nobody else has any at the end: its own tail gives way, its head stays.
    assert_eq!((at(&db, 1, 0), kept(&db)), (Found::Gone { first_available: 10_000 }, 26_000));
    fill(3, 35_000);
    let own = |offset| read(&db, Of(3, OUT), offset, 10_000).unwrap();
    assert_eq!((own(0), own(6_000)), (whole(6_000), Found::Gone { first_available: 20_000 }));
    assert_eq!((own(39_999), kept(&db)), (whole(1), 26_000));
}

fn whole(bytes: usize) -> Found {
    Found::Bytes(vec![b'x'; bytes].into())
}

#[test]
fn what_the_worker_does_not_have_is_counted_as_missing() {
    let db = stage();
    put(&db, 1, 0, b"abc");
    skip(&db, Of(1, OUT), 3, 9).unwrap();
    skip(&db, Of(1, OUT), 5, 9).unwrap();
    put(&db, 1, 9, b"j");
    assert_eq!(missing_all(&db, 1).unwrap(), [(OUT, 6)].into());
    assert_eq!(missing_all(&db, 2).unwrap(), [].into());
}

#[test]
fn an_outcome_weighs_what_it_is_and_a_heavy_one_is_given_up_with_the_output_of_its_operation() {
    let db = stage();
    let end = |n: u32, bytes: usize, bounds: &Bounds| {
        let value = Some(serde_json::Value::from("v".repeat(bytes)));
        let outcome = Outcome::Completed { exit: None, value };
        let end = Change::End { id: id(n), outcome, written: Default::default(), frees_key: false };
        store::apply(&db, bounds, &device(), &[end], &super::moment(2_000 + u64::from(n))).unwrap();
    };
    let value = |n: u32| -> String {
        db.query_row("SELECT outcome ->> 'value' FROM operations WHERE n = ?1", [n], |row| row.get(0)).unwrap()
    };
    end(1, 60_000, &SMALL);
    assert!(number(&db, "SELECT output FROM totals") > 60_000);
    end(2, 60_000, &SMALL);
    kept(&db);
    assert!(number(&db, "SELECT output FROM totals") < 100_000);
    assert_eq!((value(1).as_str(), value(2).len()), ("{\"omittedBytes\":60002}", 60_000));
}
