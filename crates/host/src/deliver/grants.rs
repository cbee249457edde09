//! Tools that a person allowed for as long as a session lives. Forgotten with the process: then they are asked about again.

use std::collections::VecDeque;

use holdfast_core::limits;
use parking_lot::Mutex;

/// What was allowed, the newest at the end.
#[derive(Debug, Default)]
pub struct Grants(Mutex<VecDeque<(String, String)>>);

impl Grants {
    /// This session may use that tool from now on.
    pub fn give(&self, session: &str, tool: &str) {
        let grant = (session.to_owned(), tool.to_owned());
        let mut grants = self.0.lock();
        grants.retain(|known| *known != grant);
        if grants.len() >= limits::GRANTS {
            grants.pop_front();
        }
        grants.push_back(grant);
    }

    /// Whether it may.
    pub fn has(&self, session: &str, tool: &str) -> bool {
        self.0.lock().iter().any(|(known, allowed)| known == session && allowed == tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_of_one_session_and_one_tool_and_the_oldest_goes() {
        let grants = Grants::default();
        grants.give("a", "Bash");
        assert!(grants.has("a", "Bash") && !grants.has("a", "Edit") && !grants.has("b", "Bash"));
        for n in 0..limits::GRANTS {
            grants.give(&n.to_string(), "Bash");
        }
        assert!(!grants.has("a", "Bash") && grants.has("0", "Bash"));
    }
}
