//! How a person comes to be heard: somebody at this machine opens pairing, the person writes to the bot and gets a code, and
//! the code is typed at this machine.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::chat::UserId;
use crate::limits;
use crate::time::Now;

/// Nothing that is read as something else.
const ALPHABET: &[u8] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";

#[derive(Debug)]
pub(super) struct Pairing {
    rng: StdRng,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    /// Boot time.
    until: Duration,
    tries: u32,
    people: Vec<(UserId, String, String)>,
}

impl Pairing {
    pub fn new(seed: [u8; 32]) -> Pairing {
        Pairing { rng: StdRng::from_seed(seed), open: None }
    }

    /// Codes that were given before do not count any more.
    pub fn open(&mut self, now: Now) {
        self.open = Some(Open { until: now.boot + limits::PAIR_LIFE, tries: limits::PAIR_TRIES, people: Vec::new() });
    }

    /// A code for somebody who wrote and is not heard. Nothing, if pairing is closed, or they have one, or enough do.
    pub fn meet(&mut self, now: Now, user: &UserId, name: &str) -> Option<String> {
        let open = self.open.as_mut().filter(|open| now.boot < open.until)?;
        if open.people.len() >= limits::PAIR_PEOPLE || open.people.iter().any(|(known, ..)| known == user) {
            return None;
        }
        let letter = |_| char::from(ALPHABET[self.rng.random_range(0..ALPHABET.len())]);
        let code: String = (0..limits::PAIR_CODE).map(letter).collect();
        open.people.push((user.clone(), name.to_owned(), code.clone()));
        Some(code)
    }

    /// Whose code was typed at this machine. That closes pairing, and so do too many wrong ones.
    pub fn typed(&mut self, now: Now, code: &str) -> Option<(UserId, String)> {
        let open = self.open.as_mut().filter(|open| now.boot < open.until)?;
        let code = code.trim().to_ascii_uppercase();
        let found = open.people.iter().find(|(_, _, c)| *c == code).map(|(user, name, _)| (user.clone(), name.clone()));
        open.tries -= 1;
        if found.is_some() || open.tries == 0 {
            self.open = None;
        }
        found
    }

    /// Until when it is open, as boot time.
    pub fn until(&self, now: Now) -> Option<Duration> {
        self.open.as_ref().map(|open| open.until).filter(|until| now.boot < *until)
    }
}
