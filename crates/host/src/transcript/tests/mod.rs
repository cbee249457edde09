//! Real files, and somebody who keeps what is heard of them.

mod folders;
mod life;
mod stress;

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_core::transcript::{Binding, Cursor, Entry, Part, Start, Told};
use tokio::sync::mpsc;

use super::{Followed, Follower, follow, real_path};

/// So long nothing takes that happens at all.
const SOON: Duration = Duration::from_secs(120);

/// A line of the generic format that says this.
fn line(said: &str) -> Vec<u8> {
    format!("{{\"type\":\"assistant\",\"message\":{{\"content\":\"{said}\"}}}}\n").into_bytes()
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

fn what(entry: &Entry) -> impl Iterator<Item = String> {
    entry.parts.iter().map(|part| match part {
        Part::Said(text) => text.clone(),
        other => format!("{other:?}"),
    })
}

struct World {
    dir: tempfile::TempDir,
    path: PathBuf,
    follower: Follower,
    heard: mpsc::Receiver<Followed>,
    said: Vec<String>,
    told: Vec<Told>,
    cursor: Option<Cursor>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap().join("a.jsonl");
        let (follower, heard) = begun();
        World { dir, path, follower, heard, said: Vec::new(), told: Vec::new(), cursor: None }
    }

    /// Follows a file that says something already, and has got as far as its end.
    async fn bound(before: &[u8]) -> World {
        let mut world = World::new();
        append(&world.path, before);
        world.bind(Start::End);
        world.hear().await;
        assert!(world.cursor.is_some());
        world
    }

    fn bind(&self, start: Start) {
        let generation = self.cursor.as_ref().map_or(0, |c| c.generation) + 1;
        self.follower.bind(Binding { transcript: real_path(&self.path).unwrap(), start, generation });
    }

    fn append(&self, bytes: &[u8]) {
        append(&self.path, bytes);
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    fn rotate(&self, name: &str) {
        fs::rename(&self.path, self.beside(name)).unwrap();
    }

    /// One thing that is heard; whether it was the end.
    async fn hear(&mut self) -> bool {
        let heard = tokio::time::timeout(SOON, self.heard.recv()).await.expect("nothing is heard");
        match heard.expect("the follower ended") {
            Followed::Entries { entries, cursor } => {
                self.said.extend(entries.iter().flat_map(what));
                self.cursor = Some(cursor);
                self.follower.taken();
            }
            Followed::Told(told) => self.told.push(told),
            Followed::Finished => return true,
        }
        false
    }

    /// Hears until so much is said in all, and then to the end of what is there.
    async fn said(&mut self, count: usize) -> Vec<String> {
        while self.said.len() < count {
            self.hear().await;
        }
        std::mem::take(&mut self.said)
    }

    async fn finish(&mut self) {
        self.follower.finish();
        while !self.hear().await {}
    }

    /// The process dies, and the next one begins where it was.
    fn restart(&mut self) {
        (self.follower, self.heard) = begun();
        self.bind(Start::At(self.cursor.clone().unwrap()));
    }
}

fn begun() -> (Follower, mpsc::Receiver<Followed>) {
    let (told, heard) = mpsc::channel(1);
    (follow(told).unwrap(), heard)
}
