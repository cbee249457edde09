use std::time::Duration;

use holdfast_core::chat::asks::{Ask, End, Verdict};
use holdfast_core::chat::inbox::{Message, Standing as Stands};
use holdfast_core::chat::outbox::{Change, LaneRow, Record, Standing};
use holdfast_core::chat::{Attachment, Button, Look, UserId};
use holdfast_core::transcript::{Cursor, Extraction, FileId, Place};

use super::*;

const S: Duration = Duration::from_secs(1);

fn at(name: &str) -> ChannelId {
    ChannelId::parse(name).unwrap()
}

fn id(name: &str) -> MessageId {
    MessageId::parse(name).unwrap()
}

fn open(folder: &Path, generation: u64) -> Opened {
    SeatStore::open(folder, generation).unwrap()
}

fn record(source: &str, seq: u64, generation: u64) -> Record {
    let button = Button { id: "ask:r:allow".into(), label: "Allow".into(), look: Look::Good };
    Record {
        key: Key::single(source),
        channel: at("c1"),
        seq,
        text: format!("text of {source}"),
        reply_to: Some(id("9")),
        buttons: vec![button],
        age: S * 60,
        skips: 0,
        entries: 3,
        generation,
    }
}

fn commit(store: &SeatStore, changes: Vec<Change>) -> Result<Vec<Key>, CommitError> {
    let (tell, told) = mpsc::channel();
    store.outbox(changes, move |made| tell.send(made).unwrap());
    told.recv().unwrap()
}

fn take_in(store: &SeatStore, changes: Vec<inbox::Change>) -> Result<Vec<u64>, CommitError> {
    let (tell, told) = mpsc::channel();
    store.inbox(changes, move |made| tell.send(made).unwrap());
    told.recv().unwrap()
}

fn prepare(record: &Record) -> Change {
    Change::Prepare(Box::new(record.clone()))
}

fn ended(source: &str, standing: Standing) -> Change {
    Change::Ended { key: Key::single(source), standing, generation: 1 }
}

fn without_age(mut record: Record) -> Record {
    record.age = Duration::ZERO;
    record
}

#[test]
fn the_next_holder_finds_what_is_prepared_and_in_trouble_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), 1).store;
    let all: Vec<Record> = (1..=5).map(|n| record(&format!("m{n}"), n, 1)).collect();
    commit(&first, all.iter().map(prepare).collect()).unwrap();
    let lane = LaneRow { channel: at("c1"), last: Some(id("77")), parked: Some("gone".into()) };
    let other = LaneRow { channel: at("c2"), last: None, parked: None };
    let changes = vec![
        ended("m1", Standing::Sent(id("77"))),
        ended("m2", Standing::Unknown("who knows".into())),
        Change::Skipped(Key::single("m3")),
        ended("m4", Standing::Parked("refused".into())),
        Change::Lane(lane.clone()),
        Change::Lane(other.clone()),
        Change::Lane(lane.clone()),
    ];
    commit(&first, changes).unwrap();
    first.close();
    let next = open(folder.path(), 2);
    let prepared: Vec<Record> = next.outbox.prepared.iter().cloned().map(without_age).collect();
    assert_eq!(prepared, [without_age(all[4].clone())]);
    assert!(next.outbox.prepared[0].age >= S * 60 && next.outbox.prepared[0].age < S * 120);
    let troubles: Vec<_> = next.outbox.troubles.into_iter().map(|(r, s)| (without_age(r), s)).collect();
    let expected = [
        (without_age(all[1].clone()), Standing::Unknown("who knows".into())),
        (without_age(all[3].clone()), Standing::Parked("refused".into())),
    ];
    assert_eq!(troubles, expected);
    assert_eq!(next.outbox.lanes, [other, lane]);
    assert_eq!(next.outbox.seq, 5);
}

#[test]
fn a_message_that_stands_there_already_is_named_unless_its_commit_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let (a, b) = (record("a", 1, 1), record("b", 2, 1));
    assert_eq!(commit(&store, vec![prepare(&a)]), Ok(vec![]));
    assert_eq!(commit(&store, vec![prepare(&a), prepare(&b)]), Ok(vec![]));
    commit(&store, vec![ended("a", Standing::Sent(id("1")))]).unwrap();
    let again = Record { seq: 3, ..a.clone() };
    assert_eq!(commit(&store, vec![prepare(&again)]), Ok(vec![a.key]));
}

#[tokio::test]
async fn a_parked_message_is_prepared_again_at_its_new_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    commit(&store, vec![prepare(&record("a", 1, 1)), ended("a", Standing::Parked("no".into()))]).unwrap();
    commit(&store, vec![Change::Again { key: Key::single("a"), seq: 9 }]).unwrap();
    let known = (store.knows("a".into()).await, store.knows("b".into()).await);
    assert_eq!(known, (Ok(Some(record("a", 1, 1).channel)), Ok(None)));
    store.close();
    let next = open(folder.path(), 2).outbox;
    assert_eq!((next.prepared[0].seq, next.seq), (9, 9));
    assert!(next.prepared[0].age < S * 30);
}

#[test]
fn nothing_of_a_holder_is_stored_once_a_later_one_has_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let old = open(folder.path(), 1).store;
    let new = open(folder.path(), 2);
    assert_eq!(commit(&old, vec![prepare(&record("a", 1, 1))]), Err(CommitError::Superseded(2)));
    assert_eq!(commit(&old, vec![ended("a", Standing::Sent(id("1")))]), Err(CommitError::Superseded(2)));
    assert_eq!(take_in(&old, vec![inbox::Change::Prune]), Err(CommitError::Superseded(2)));
    assert_eq!(commit(&new.store, vec![prepare(&record("a", 1, 2))]), Ok(vec![]));
    assert!(matches!(SeatStore::open(folder.path(), 1), Err(OpenError::Superseded(2))));
}

#[test]
fn a_message_that_takes_others_in_stands_in_their_place_and_whoever_reads_them_again_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let of = |start, end, seq| {
        let key = Key { source: "1:/t".into(), start, end, chunk: 0 };
        Record { key, ..record("", seq, 1) }
    };
    let (first, second, both, next) = (of(0, 10, 1), of(10, 20, 2), of(10, 30, 2), of(30, 40, 3));
    let changes = vec![prepare(&first), prepare(&second), Change::Joined(second.key.clone()), prepare(&both)];
    assert_eq!(commit(&store, changes.clone()), Ok(vec![]));
    // The commit made again, as when its answer was lost: what it says is not in the queue any more.
    assert_eq!(commit(&store, changes), Ok(vec![second.key.clone()]));
    let again = |record: &Record| prepare(&Record { generation: 2, ..record.clone() });
    let read_again = vec![again(&first), again(&second), again(&of(20, 30, 9)), prepare(&next)];
    let known = vec![first.key.clone(), second.key, of(20, 30, 9).key];
    assert_eq!(commit(&store, read_again), Ok(known));
    store.close();
    let prepared = open(folder.path(), 2).outbox.prepared.into_iter().map(without_age);
    assert_eq!(prepared.collect::<Vec<_>>(), [first, both, next].map(without_age));
}

#[test]
fn pieces_of_one_entry_and_lines_for_what_was_left_out_cover_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let of = |source: &str, start, end, chunk, skips| {
        let key = Key { source: source.into(), start, end, chunk };
        Record { key, skips, ..record("", u64::from(chunk) + 1, 1) }
    };
    let all = [
        of("1:/t", 0, 10, 0, 0),
        of("1:/t", 0, 10, 1, 0),
        of("say", 0, 0, 0, 0),
        of("say", 0, 0, 1, 0),
        of("skipped", 5, 9, 0, 2),
        of("skipped", 6, 8, 0, 2),
    ];
    assert_eq!(commit(&store, all.iter().map(prepare).collect()), Ok(vec![]));
}

#[test]
fn a_store_of_before_has_one_entry_in_each_message() {
    let folder = tempfile::tempdir().unwrap();
    let before = Store::open(folder.path(), &Layout { steps: &schema::STEPS[..1], ..LAYOUT }).unwrap();
    let (tell, told) = mpsc::channel();
    let insert = |db: &Connection| {
        let sql =
            "INSERT INTO outbox VALUES ('1:/t', 0, 10, 0, 'c1', 1, 'text', NULL, '[]', 5, 0, 1, 'prepared', NULL, 5)";
        changes::execute(db, sql, [])
    };
    before.submit(insert, move |done| tell.send(done).unwrap());
    assert_eq!(told.recv().unwrap(), Ok(1));
    before.close();
    let prepared = open(folder.path(), 1).outbox.prepared;
    assert_eq!(prepared.iter().map(|record| (record.text.as_str(), record.entries)).collect::<Vec<_>>(), [("text", 1)]);
}

fn message(seq: u64, name: &str, standing: Stands) -> Message {
    let incoming = Incoming {
        id: id(name),
        channel: at("c1"),
        parent: Some(at("c0")),
        direct: false,
        author: UserId::parse("ann").unwrap(),
        author_name: "Ann".into(),
        bot: false,
        text: "hello".into(),
        mentions_us: true,
        attachments: vec![Attachment { id: "1".into(), name: "a".into(), kind: "b".into(), size: 3 }],
        at: unix_ms(),
        age: Duration::ZERO,
    };
    Message { seq, incoming, binding: "agent".into(), standing }
}

#[tokio::test]
async fn the_next_holder_finds_every_message_that_is_not_done_and_what_was_seen() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let take = |message: &Message| inbox::Change::Take(Box::new(message.clone()));
    let all = [message(1, "10", Stands::Stored), message(2, "11", Stands::Stored), message(3, "12", Stands::Done)];
    assert_eq!(take_in(&store, all.iter().map(take).collect()), Ok(vec![]));
    // The commit made again, and the message fetched again.
    assert_eq!(take_in(&store, vec![take(&all[0])]), Ok(vec![]));
    assert_eq!(take_in(&store, vec![take(&message(4, "10", Stands::Stored))]), Ok(vec![4]));
    let changes = vec![
        inbox::Change::Stands(1, Stands::Done),
        inbox::Change::Stands(2, Stands::Delivering(inbox::Adapter::Mcp)),
        inbox::Change::Seen { channel: at("c1"), message: id("11") },
        inbox::Change::Seen { channel: at("c1"), message: id("12") },
        inbox::Change::Seen { channel: at("c2"), message: id("1") },
        inbox::Change::Forget(at("c2")),
        inbox::Change::Again { seq: 2, next: 7 },
    ];
    assert_eq!(take_in(&store, changes), Ok(vec![]));
    let last = store.last("agent".into(), 2).await.unwrap();
    assert_eq!(last.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["12", "11"]);
    store.close();
    let mut next = open(folder.path(), 2).inbox;
    next.messages.iter_mut().for_each(|m| (m.incoming.age, m.incoming.at) = (Duration::ZERO, 0));
    let mut expected = message(7, "11", Stands::Stored);
    expected.incoming.at = 0;
    assert_eq!(next.messages, [expected]);
    assert_eq!(next.seen, [(at("c1"), id("12"))]);
    assert_eq!(next.seq, 7);
}

#[test]
fn prompts_bindings_and_bookmarks_are_found_as_they_were_left() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let ask = |request: &str| Ask {
        request: request.into(),
        channel: at("c1"),
        tool: "Bash".into(),
        description: String::new(),
        preview: "ls".into(),
        left_out: 0,
    };
    let row = |request: &str| asks::Row { ask: ask(request), age: S * 5, message: None, end: None, shown: false };
    let end = Some(End::Answered(Verdict::Session, "Ann".into()));
    let over = asks::Row { message: Some(id("5")), end, shown: true, ..row("b") };
    let put = |row: &asks::Row| asks::Change::Put(Box::new(row.clone()));
    let (tell, told) = mpsc::channel();
    let changes = vec![put(&row("a")), put(&row("b")), put(&row("c")), put(&over), asks::Change::Remove("a".into())];
    store.asks(changes, move |made| tell.send(made).unwrap());
    assert_eq!(told.recv().unwrap(), Ok(()));
    let bound = |path: &str, awaited| Bound { transcript: path.into(), named: true, awaited, looked: Some(7) };
    store.bind("agent", &bound("/a", true));
    store.bind("agent", &bound("/b", false));
    let mark = |path: &str, generation| {
        let file = FileId { place: Place { device: 1, inode: 2 }, head: 0, hash: String::new() };
        let cursor = Cursor { generation, file, offset: 9 };
        Bookmark { transcript: path.into(), cursor, extraction: Extraction::default() }
    };
    let cursor =
        |mark: &Bookmark| Change::Cursor { source: mark.cursor.source(&mark.transcript), state: mark.write().unwrap() };
    let marks = [mark("/x:1", 1), mark("/x:1", 2), mark("/y", 1)];
    let mut changes: Vec<Change> = marks.iter().map(cursor).collect();
    changes.push(Change::Prune);
    commit(&store, changes).unwrap();
    store.close();
    let next = open(folder.path(), 2);
    let mut rows = next.asks;
    assert!(rows.iter().all(|row| row.age >= S * 5 && row.age < S * 60));
    rows.iter_mut().for_each(|row| row.age = S * 5);
    assert_eq!(rows, [over, row("c")]);
    assert_eq!(next.bound, [(Arc::from("agent"), bound("/b", false))].into());
    let mut found = next.bookmarks;
    found.sort_by(|a, b| a.transcript.cmp(&b.transcript));
    assert_eq!(found, [marks[1].clone(), marks[2].clone()]);
}

#[test]
fn a_prompt_that_was_posted_has_its_message_even_if_only_the_outbox_had_come_to_know_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let ask = Ask {
        request: "abc".into(),
        channel: at("c1"),
        tool: "Bash".into(),
        description: String::new(),
        preview: String::new(),
        left_out: 0,
    };
    let row = asks::Row { ask, age: S * 5, message: None, end: None, shown: false };
    let (tell, told) = mpsc::channel();
    store.asks(vec![asks::Change::Put(Box::new(row))], move |made| tell.send(made).unwrap());
    told.recv().unwrap().unwrap();
    let sent = ended("ask:abc", Standing::Sent(id("77")));
    commit(&store, vec![prepare(&record("ask:abc", 1, 1)), sent]).unwrap();
    store.close();
    let next = open(folder.path(), 2);
    assert_eq!(next.asks.into_iter().map(|row| row.message).collect::<Vec<_>>(), [Some(id("77"))]);
}

#[test]
fn ended_messages_are_removed_only_when_they_had_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    commit(&store, vec![prepare(&record("a", 1, 1)), ended("a", Standing::Sent(id("1"))), Change::Prune]).unwrap();
    let a = Record { seq: 2, ..record("a", 1, 1) };
    assert_eq!(commit(&store, vec![prepare(&a)]), Ok(vec![a.key.clone()]));
    let long_ago = unix_ms() - u64::try_from(limits::OUTBOX_KEPT.as_millis()).unwrap() - 1000;
    let age =
        move |db: &Connection, _| changes::execute(db, "UPDATE outbox SET changed = ?1", params![long_ago]).map(|_| ());
    let (tell, told) = mpsc::channel();
    store.commit(true, age, move |made| tell.send(made).unwrap());
    told.recv().unwrap().unwrap();
    commit(&store, vec![Change::Prune]).unwrap();
    assert_eq!(commit(&store, vec![prepare(&a)]), Ok(vec![]));
}

#[test]
fn what_a_holder_left_untouched_is_known_to_the_next_one_and_to_no_later_one() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), 3).store;
    let lane = LaneRow { channel: at("c1"), last: Some(id("7")), parked: None };
    commit(&first, vec![Change::Lane(lane.clone()), Change::Settled(at("c1")), Change::Settled(at("c2"))]).unwrap();
    first.close();
    let next = open(folder.path(), 5);
    assert_eq!(next.outbox.settled, [at("c1"), at("c2")].into());
    assert!(next.outbox.lanes.contains(&lane), "{:?}", next.outbox.lanes);
    next.store.close();
    assert_eq!(open(folder.path(), 6).outbox.settled, [].into());
}

#[test]
fn up_to_when_was_looked_is_known_by_the_last_words_or_as_its_holder_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let bound = |looked| Bound { transcript: "/t".into(), named: false, awaited: false, looked };
    let of_next = |store: SeatStore, generation| {
        store.close();
        let next = open(folder.path(), generation);
        (next.bound["agent"].looked, next.store)
    };
    store.bind("agent", &bound(None));
    let (looked, store) = of_next(store, 2);
    assert_eq!(looked, None);
    let file = FileId { place: Place { device: 1, inode: 2 }, head: 0, hash: String::new() };
    let cursor = Cursor { generation: 1, file, offset: 9 };
    let mark = Bookmark { transcript: "/t".into(), cursor, extraction: Extraction::default() };
    let before = unix_ms();
    commit(&store, vec![Change::Cursor { source: "1:/t".into(), state: mark.write().unwrap() }]).unwrap();
    let (looked, store) = of_next(store, 3);
    assert!((before..=unix_ms()).contains(&looked.unwrap()), "{looked:?}");
    store.bind("agent", &bound(Some(before + 1_000_000)));
    assert_eq!(of_next(store, 4).0, Some(before + 1_000_000));
}

#[test]
fn a_damaged_store_is_set_aside_and_a_new_one_begun() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("channel.sqlite"), vec![7; 8192]).unwrap();
    let opened = open(folder.path(), 3);
    assert!(opened.set_aside.is_some_and(|path| path.exists()));
    assert_eq!(opened.outbox, outbox::Stored::default());
}

/// Columns that change nothing of what a holder begins with, and what reads them.
const READ_LATER: &[(&str, &str)] = &[
    ("seat.one", "there is one row"),
    ("seat.lanes_used", "the order of lanes"),
    ("lanes.used", "the order of lanes"),
    ("outbox.changed", "the order of troubles, and what is removed"),
    ("cursors.source", "which cursor is written anew"),
    ("cursors.transcript", "which cursors are removed"),
    ("cursors.generation", "which cursors are removed"),
    ("inbox.channel", "what is taken twice"),
    ("inbox.id", "what is taken twice"),
    ("inbox.changed", "what is removed"),
    ("asks.seq", "the order of prompts"),
    ("asks.request", "which prompt is written anew or removed"),
];

/// What a holder begins with, with ages in days.
fn begun(folder: &Path) -> String {
    let day = |age: Duration| Duration::from_secs(age.as_secs() / 86_400);
    let opened = match SeatStore::open(folder, 2) {
        Ok(opened) if opened.set_aside.is_none() => opened,
        Ok(_) => return "damaged".to_owned(),
        Err(error) => return error.to_string(),
    };
    opened.store.close();
    let Opened { mut outbox, mut inbox, mut asks, bookmarks, bound, .. } = opened;
    outbox.prepared.iter_mut().for_each(|record| record.age = day(record.age));
    outbox.troubles.iter_mut().for_each(|(record, _)| record.age = day(record.age));
    inbox.messages.iter_mut().for_each(|message| message.incoming.age = day(message.incoming.age));
    asks.iter_mut().for_each(|row| row.age = day(row.age));
    format!("{:?}", (outbox, inbox, asks, bookmarks, bound))
}

#[test]
fn each_field_that_is_kept_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1).store;
    let changes = vec![
        prepare(&record("a", 1, 1)),
        prepare(&record("b", 2, 1)),
        ended("b", Standing::Parked("no".into())),
        Change::Lane(LaneRow { channel: at("c1"), last: Some(id("1")), parked: Some("gone".into()) }),
        Change::Settled(at("c1")),
    ];
    commit(&store, changes).unwrap();
    let file = FileId { place: Place { device: 1, inode: 2 }, head: 0, hash: String::new() };
    let cursor = Cursor { generation: 1, file, offset: 9 };
    let mark = Bookmark { transcript: "/t".into(), cursor, extraction: Extraction::default() };
    commit(&store, vec![Change::Cursor { source: "1:/t".into(), state: mark.write().unwrap() }]).unwrap();
    let seen = inbox::Change::Seen { channel: at("c1"), message: id("10") };
    take_in(&store, vec![inbox::Change::Take(Box::new(message(1, "10", Stands::Stored))), seen]).unwrap();
    let ask = Ask {
        request: "abc".into(),
        channel: at("c1"),
        tool: "Bash".into(),
        description: String::new(),
        preview: "ls".into(),
        left_out: 0,
    };
    let end = Some(End::Expired);
    let row = asks::Row { ask, age: S * 5, message: Some(id("7")), end, shown: false };
    let (tell, told) = mpsc::channel();
    store.asks(vec![asks::Change::Put(Box::new(row))], move |made| tell.send(made).unwrap());
    told.recv().unwrap().unwrap();
    let looked = Some(unix_ms() - 5000);
    store.bind("agent", &Bound { transcript: "/t".into(), named: false, awaited: false, looked });
    store.close();
    let path = folder.path().join("channel.sqlite");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let sql = "SELECT t.name || '.' || c.name, c.type FROM sqlite_master AS t, pragma_table_info(t.name) AS c
               WHERE t.type = 'table' ORDER BY t.name, c.cid";
    let mut statement = db.prepare(sql).unwrap();
    let columns = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let columns: Vec<(String, String)> = columns.map(Result::unwrap).collect();
    drop(statement);
    drop(db);
    assert!(columns.len() > 40, "{columns:?}");
    let copy = |change: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&path, folder.path().join("channel.sqlite")).unwrap();
        let db = Connection::open(folder.path().join("channel.sqlite")).unwrap();
        db.execute_batch(change).unwrap();
        drop(db);
        begun(folder.path())
    };
    let before = copy("");
    let mut unread = Vec::new();
    for (name, kind) in columns.iter().filter(|(name, _)| READ_LATER.iter().all(|(later, _)| later != name)) {
        let (table, column) = name.split_once('.').unwrap();
        let other = match kind.as_str() {
            // What is dated later than now is as old as what was written now.
            "INTEGER" if matches!(column, "written" | "asked") => format!("{column} - 864000000"),
            "INTEGER" => format!("{column} + 864000000"),
            _ => format!("{column} || 'x'"),
        };
        if copy(&format!("UPDATE {table} SET {column} = {other}")) == before {
            unread.push(name);
        }
    }
    assert!(unread.is_empty(), "{unread:?} are kept for nobody");
    assert!(READ_LATER.iter().all(|(later, _)| columns.iter().any(|(name, _)| name == later)));
}
