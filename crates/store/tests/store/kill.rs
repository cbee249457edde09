//! Killed at any point.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use crate::{both, numbers, open};

/// What the child of the next test does: writes for ever, and says what was acknowledged.
#[test]
fn writes_for_ever_when_it_is_the_child() {
    let Ok(folder) = std::env::var("HOLDFAST_TEST_STORE") else { return };
    let store = open(folder.as_ref()).unwrap();
    let first = numbers(&store).last().copied().unwrap_or(0) + 1;
    let (acked, acks) = channel();
    for group in 0.. {
        // Eight at once, so that some share a commit.
        for n in first + group * 8..first + group * 8 + 8 {
            let acked = acked.clone();
            both(&store, n, 512, move |outcome| acked.send((n, outcome)).unwrap());
        }
        for (n, outcome) in acks.iter().take(8) {
            outcome.unwrap();
            println!("acked {n}");
        }
    }
}

#[test]
fn a_store_killed_at_any_point_has_every_acknowledged_write_whole() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::writes_for_ever_when_it_is_the_child", "--nocapture"])
            .env("HOLDFAST_TEST_STORE", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acked = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("acked ")?.parse::<i64>().ok());
        let last = acked.nth(16 + round * 23).unwrap();
        child.kill().unwrap();
        let last = acked.last().unwrap_or(last);
        child.wait().unwrap();
        let store = open(folder.path()).unwrap();
        let found = numbers(&store);
        assert_eq!(found[..usize::try_from(last).unwrap()], (1..=last).collect::<Vec<_>>(), "round {round}");
        store.close();
    }
}
