//! Random lives of a file and of whoever follows it: nothing is lost, nothing comes twice, and the order stays.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::shell::{PATH, Shell, line};
use crate::transcript::Start;

const OLD: &str = "/t/a.jsonl.1";

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    /// The beginning of a line; the next append writes its end first.
    Tear(usize),
    Rotate,
    /// Renamed away; the next append makes a new file.
    Vanish,
    Truncate(usize),
    Poll,
    Down,
    Up,
    Dies,
    Breaks(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0usize..700).prop_map(Step::Append),
        2 => (1usize..60).prop_map(Step::Tear),
        1 => Just(Step::Rotate),
        1 => Just(Step::Vanish),
        1 => (0usize..10).prop_map(Step::Truncate),
        6 => Just(Step::Poll),
        1 => Just(Step::Down),
        2 => Just(Step::Up),
        1 => Just(Step::Dies),
        1 => any::<bool>().prop_map(Step::Breaks),
    ]
}

struct World {
    shell: Shell,
    up: bool,
    count: u64,
    /// The end of a line whose beginning is written.
    torn: Option<(u64, Vec<u8>)>,
    /// Whole lines by number: file and the end of each in it.
    written: BTreeMap<u64, (u64, usize)>,
}

impl World {
    fn is_kept(&self, number: u64) -> bool {
        self.shell.kept.iter().any(|(_, e)| e.parts == [crate::transcript::Part::Said(number.to_string())])
    }

    fn written(&mut self, number: u64) {
        let inode = self.shell.disk.inode(PATH);
        self.written.insert(number, (inode, self.shell.disk.files[&inode].len()));
    }

    fn heal(&mut self) {
        if let Some((number, rest)) = self.torn.take() {
            self.shell.disk.append(PATH, &rest);
            self.written(number);
        }
    }

    /// The lines of a file from this byte on are gone, perhaps before anybody could read them.
    fn excuse(&mut self, inode: u64, from: usize) {
        self.written.retain(|_, (file, end)| *file != inode || *end <= from);
    }

    /// Whoever follows will find this file, wherever it goes.
    fn is_known(&self, inode: u64) -> bool {
        let left = self.shell.cursor.as_ref().is_some_and(|c| c.file.place.inode == inode);
        left || (self.up && self.shell.open.contains(&inode))
    }

    /// A process that begins anew knows the file at the path and the one it left, if that still has a name.
    fn forget(&mut self) {
        let names = &self.shell.disk.names;
        let left = self.shell.cursor.as_ref().map(|c| c.file.place.inode);
        let left = left.filter(|left| names.values().any(|inode| inode == left));
        let known = [names.get(PATH).copied(), left];
        self.written.retain(|_, (file, _)| known.contains(&Some(*file)));
    }

    fn away(&mut self) {
        // A line that was not whole never will be.
        self.torn = None;
        if let Some(inode) = self.shell.disk.names.get(OLD).copied()
            && self.shell.disk.names.contains_key(PATH)
            && !(self.up && self.shell.open.contains(&inode))
        {
            self.excuse(inode, 0);
        }
        // Nobody knows of a file that came and went between two looks.
        if let Some(inode) = self.shell.disk.names.get(PATH).copied()
            && !self.is_known(inode)
        {
            self.excuse(inode, 0);
        }
        self.shell.disk.rename(PATH, OLD);
    }

    fn poll(&mut self) {
        if self.up {
            self.shell.poll();
            if self.shell.dies && self.shell.follow.poll_timeout(self.shell.now).is_none() {
                self.forget();
                self.shell.restart();
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append(length) => {
                self.heal();
                self.count += 1;
                let bytes = line(&self.count.to_string(), length);
                self.shell.disk.append(PATH, &bytes);
                self.written(self.count);
            }
            Step::Tear(at) => {
                self.heal();
                self.count += 1;
                let bytes = line(&self.count.to_string(), 50);
                self.shell.disk.append(PATH, &bytes[..at]);
                self.torn = Some((self.count, bytes[at..].to_vec()));
            }
            Step::Rotate => {
                self.away();
                self.shell.disk.inode(PATH);
            }
            Step::Vanish => self.away(),
            Step::Truncate(share) => {
                self.shell.dies = false;
                self.step(Step::Breaks(false));
                self.torn = None;
                let inode = self.shell.disk.inode(PATH);
                let size = self.shell.disk.files[&inode].len();
                // Within the head, a cut cannot be told from another text after a restart.
                let at = Some(size * share / 10).filter(|at| self.up || *at >= 1024).unwrap_or(0);
                self.shell.disk.truncate(PATH, at);
                self.excuse(inode, at);
                // A file that grew to what it was before anybody looked looks as it was.
                self.step(Step::Up);
                self.poll();
            }
            Step::Poll => self.poll(),
            Step::Down => {
                self.forget();
                self.shell.down();
                self.up = false;
            }
            Step::Up => {
                if !self.up {
                    self.up = true;
                    self.shell.restart();
                }
            }
            Step::Dies => self.shell.dies = self.up,
            Step::Breaks(broken) => self.shell.broken = broken,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]
    #[test]
    fn every_line_comes_once_and_in_order(
        steps in proptest::collection::vec(step(), 1..60),
        short in 1usize..900,
    ) {
        let mut shell = Shell::new();
        shell.short = short;
        shell.bind(PATH, Start::Beginning);
        let mut world = World {
            shell, up: true, count: 0, torn: None, written: BTreeMap::new(),
        };
        for step in steps {
            world.step(step);
        }
        world.heal();
        world.shell.broken = false;
        world.step(Step::Down);
        world.step(Step::Up);
        for _ in 0..4 {
            world.poll();
        }
        let said: Vec<u64> = world.shell.said().iter().map(|n| n.parse().unwrap()).collect();
        prop_assert!(said.is_sorted_by(|a, b| a < b), "{said:?}");
        let missing: Vec<u64> = world.written.keys().copied().filter(|n| !world.is_kept(*n)).collect();
        prop_assert!(missing.is_empty(), "{missing:?} of {said:?} is missing");
    }
}
