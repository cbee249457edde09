//! Ports for what listens again where it listened before, or later than its address is named. A port that the system gave away
//! may meanwhile be given to somebody else, so these are outside of the range it gives from, and one test's alone.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;

/// A port of 127.0.0.1. It is nobody else's until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _held: File,
}

/// Below what Linux, macOS and Windows give away.
const FROM: u16 = 20_000;
const COUNT: u32 = 12_000;

impl Port {
    /// One that is free.
    ///
    /// # Panics
    /// If none is.
    pub fn reserve() -> Port {
        let folder = std::env::temp_dir().join(format!("holdfast-test-ports-{}", nix::unistd::getuid()));
        let _ = std::fs::create_dir(&folder);
        // Tests of other processes begin elsewhere.
        let first = std::process::id().wrapping_mul(97);
        let numbers = (0..COUNT).map(|n| FROM + (first.wrapping_add(n) % COUNT) as u16);
        let free = |number: u16| {
            let file = OpenOptions::new().create(true).append(true).open(folder.join(number.to_string())).ok()?;
            file.try_lock().ok()?;
            TcpListener::bind(("127.0.0.1", number)).ok()?;
            Some(Port { number, _held: file })
        };
        numbers.into_iter().find_map(free).expect("a free port")
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_held_is_given_to_nobody_else() {
        let first = Port::reserve();
        let second = Port::reserve();
        assert_ne!(first.number(), second.number());
    }
}
