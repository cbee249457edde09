//! Which transcript of a project is followed: the newest interactive session's, but not one and then the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_core::limits;
use holdfast_core::status::UnixMs;

use crate::transcript::Found;

/// What a binding that finds its transcript knows of the last time it looked.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Transcripts that were there. None: it never looked.
    known: Option<BTreeSet<Arc<str>>>,
}

/// What is followed from now on.
#[derive(Debug)]
pub(super) struct Pick<'a> {
    pub found: &'a Found,
    /// By the calendar, since when it may have been meant: the one that was followed was last written then.
    pub since: Option<UnixMs>,
}

impl<'a> Pick<'a> {
    pub fn just(found: &'a Found) -> Pick<'a> {
        Pick { found, since: None }
    }
}

impl Choice {
    /// Which of what was found, the likeliest first, is followed from now on; nothing: the one that is followed stays. A session
    /// that began since the last look is meant before others; else the one that is followed stays while it lives, or
    /// nothing else was written for longer.
    pub(super) fn look<'a>(&mut self, found: &'a [Found], current: Option<&str>) -> Option<Pick<'a>> {
        let known = self.known.replace(found.iter().map(|found| found.path.clone()).collect());
        let Some(at) = found.iter().find(|found| Some(&*found.path) == current) else {
            return found.first().map(Pick::just);
        };
        let is_new = |other: &&Found| known.as_ref().is_some_and(|known| !known.contains(&other.path));
        let begins = |other: &&Found| is_new(other) && (other.live || other.modified > at.modified);
        if let Some(new) = found.iter().find(begins) {
            return Some(Pick::just(new));
        }
        let fresh = u64::try_from(limits::DISCOVERY_FRESH.as_millis()).unwrap_or(u64::MAX);
        let went_on = |other: &&Found| other.modified > at.modified.map(|modified| modified.saturating_add(fresh));
        let first = found.first().filter(|first| first.path != at.path && !at.live);
        let lives = first.filter(|first| first.live).map(Pick::just);
        lives.or_else(|| first.filter(went_on).map(|found| Pick { found, since: at.modified }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Agent;

    fn found(path: &str, live: bool, seconds: u64) -> Found {
        let modified = Some(seconds * 1000);
        Found { path: path.into(), agent: Agent::Claude, session: None, project: None, live, modified }
    }

    fn look(choice: &mut Choice, all: &[Found], current: Option<&str>) -> Option<String> {
        choice.look(all, current).map(|pick| pick.found.path.to_string())
    }

    #[test]
    fn the_likeliest_is_taken_at_first_and_instead_of_one_that_went() {
        let all = [found("/a", true, 9), found("/b", false, 8)];
        assert_eq!(look(&mut Choice::default(), &all, None), Some("/a".to_owned()));
        assert_eq!(look(&mut Choice::default(), &all, Some("/gone")), Some("/a".to_owned()));
        assert_eq!(look(&mut Choice::default(), &[], Some("/gone")), None);
    }

    #[test]
    fn of_two_sessions_that_live_the_one_that_is_followed_stays_whichever_writes() {
        let mut choice = Choice::default();
        for at in 1..5 {
            let all = [found("/b", true, 10 * at + 5), found("/a", true, 10 * at)];
            assert_eq!(look(&mut choice, &all, Some("/a")), None);
        }
    }

    #[test]
    fn a_session_that_begins_while_one_is_followed_is_followed_from_then_on() {
        let mut choice = Choice::default();
        look(&mut choice, &[found("/a", true, 1)], Some("/a"));
        let all = [found("/a", true, 9), found("/new", true, 8)];
        assert_eq!(look(&mut choice, &all, Some("/a")), Some("/new".to_owned()));
        assert_eq!(look(&mut choice, &all, Some("/new")), None);
    }

    #[test]
    fn a_rollout_of_which_nobody_knows_whether_it_lives_is_left_for_a_newer_one() {
        let mut choice = Choice::default();
        look(&mut choice, &[found("/a", false, 1)], Some("/a"));
        let all = [found("/new", false, 8), found("/a", false, 1)];
        assert_eq!(look(&mut choice, &all, Some("/a")), Some("/new".to_owned()));
    }

    #[test]
    fn a_session_that_ended_is_left_for_one_that_lives_or_goes_on() {
        let at = |other: Found| look(&mut Choice::default(), &[other, found("/a", false, 100)], Some("/a"));
        assert_eq!(at(found("/b", true, 1)), Some("/b".to_owned()));
        assert_eq!(at(found("/b", false, 120)), None);
        assert_eq!(at(found("/b", false, 131)), Some("/b".to_owned()));
    }
    #[test]
    fn all_is_new_that_was_said_elsewhere_since_the_last_word_of_the_one_that_is_left() {
        let (mut choice, at) = (Choice::default(), found("/a", false, 100));
        assert!(choice.look(&[found("/b", false, 120), at.clone()], Some("/a")).is_none());
        let all = [found("/b", false, 131), at];
        let pick = choice.look(&all, Some("/a")).unwrap();
        assert_eq!((&*pick.found.path, pick.since), ("/b", Some(100_000)));
    }
}
