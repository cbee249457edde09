//! Inputs by their ids, so that each is given once.

use std::collections::{HashMap, VecDeque};

use crate::id::OperationId;
use crate::limits;

/// What an input that is asked for is to the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// It is to be given now.
    New,
    /// It is being given.
    Waits,
    /// It was given before, or could not be.
    Known(Option<String>),
    /// Not now; it may be asked again.
    TooMany,
}

/// The inputs a runner remembers: [`limits::RUNNER_INPUT_SEEN`], of which [`limits::RUNNER_INPUT_WAITING`] may wait.
#[derive(Debug, Default)]
pub struct Inputs {
    order: VecDeque<OperationId>,
    answers: HashMap<OperationId, Option<Answer>>,
    waiting: usize,
}

type Answer = Option<String>;

impl Inputs {
    /// An input is asked for.
    pub fn offer(&mut self, id: &OperationId) -> Offer {
        match self.answers.get(id) {
            Some(Some(answer)) => return Offer::Known(answer.clone()),
            Some(None) => return Offer::Waits,
            None if self.waiting == limits::RUNNER_INPUT_WAITING => return Offer::TooMany,
            None => {}
        }
        if self.order.len() == limits::RUNNER_INPUT_SEEN
            && let Some(oldest) = self.order.iter().position(|id| self.answers.get(id).is_some_and(Option::is_some))
            && let Some(oldest) = self.order.remove(oldest)
        {
            self.answers.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.answers.insert(id.clone(), None);
        self.waiting += 1;
        Offer::New
    }

    /// An input was given, or could not be. Whether it was waiting.
    pub fn answer(&mut self, id: &OperationId, error: Answer) -> bool {
        let waits = self.answers.get_mut(id).filter(|answer| answer.is_none());
        waits.map(|answer| *answer = Some(error)).map(|()| self.waiting -= 1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> OperationId {
        OperationId::parse(&format!("op_{n:022}")).unwrap()
    }

    #[test]
    fn an_input_is_new_once_and_its_answer_is_kept() {
        let mut inputs = Inputs::default();
        assert_eq!(inputs.offer(&id(1)), Offer::New);
        assert_eq!(inputs.offer(&id(1)), Offer::Waits);
        assert!(inputs.answer(&id(1), None));
        assert!(!inputs.answer(&id(1), Some("late".into())));
        assert_eq!(inputs.offer(&id(1)), Offer::Known(None));
        assert!(!inputs.answer(&id(2), None));
    }

    #[test]
    fn what_waits_is_bounded_and_never_forgotten() {
        let mut inputs = Inputs::default();
        assert_eq!(inputs.offer(&id(0)), Offer::New);
        for n in 1..=2 * limits::RUNNER_INPUT_SEEN {
            assert_eq!(inputs.offer(&id(n)), Offer::New);
            assert!(inputs.answer(&id(n), None));
        }
        assert_eq!(inputs.offer(&id(0)), Offer::Waits);
        assert_eq!(inputs.offer(&id(2 * limits::RUNNER_INPUT_SEEN)), Offer::Known(None));
        assert_eq!((inputs.order.len(), inputs.answers.len()), (limits::RUNNER_INPUT_SEEN, limits::RUNNER_INPUT_SEEN));
        for n in 1..limits::RUNNER_INPUT_WAITING {
            assert_eq!(inputs.offer(&id(9000 + n)), Offer::New);
        }
        assert_eq!(inputs.offer(&id(9999)), Offer::TooMany);
        assert!(inputs.answer(&id(0), None));
        assert_eq!(inputs.offer(&id(9999)), Offer::New);
    }
}
