//! Calls that ask the person at this machine before they run: which ones, what waits, and what was answered.
//!
//! Pure bookkeeping. The executor asks [`Asks::meet`] after the policy let a call through, waits as long as it is told,
//! and brings back answers, ends of waiting and calls that are not wanted any more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::daemon::Run;
use crate::id::{AccountId, CallId};
use crate::limits;
use crate::status::{Question, UnixMs};
use crate::tools::{self, Effect, Place, Tool};
use crate::wire::Authorization;

/// Stands for every client in [`AskRule::clients`].
pub const EVERY_CLIENT: &str = "*";

/// Which calls ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRule {
    /// Clients by the id the relay vouches for, or [`EVERY_CLIENT`]. Empty: nobody is asked about.
    pub clients: Vec<String>,
    /// Tools with this effect and stronger ones ask.
    pub least: Effect,
}

impl Default for AskRule {
    fn default() -> Self {
        AskRule { clients: Vec::new(), least: Effect::Writes }
    }
}

impl AskRule {
    fn names(&self, tool: &Tool, client: Option<&str>) -> bool {
        // What only looks at Holdfast or stops something must work when nobody is there; drills are Holdfast's own.
        let exempt = tool.control || tool.place == Place::Internal;
        !exempt && self.concerns(tool.effect, client)
    }

    fn concerns(&self, effect: Effect, client: Option<&str>) -> bool {
        effect >= self.least && self.clients.iter().any(|c| c == EVERY_CLIENT || Some(&**c) == client)
    }
}

/// What a call meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may run.
    Open,
    /// This client's calls were answered with *no* for as long as the process lives.
    Closed,
    /// As many questions wait as may.
    Full,
    /// It is asked about; without an answer within this awake time it counts as *no*.
    Asked(Duration),
}

/// Whose calls one answer may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asker {
    account: AccountId,
    client: Option<String>,
}

impl Asker {
    fn of(authorization: &Authorization) -> Asker {
        Asker { account: authorization.account_id.clone(), client: authorization.client.clone() }
    }
}

#[derive(Debug)]
struct Waiting {
    call: CallId,
    asker: Asker,
    question: Question,
}

/// The questions that wait, and the answers that were given for good.
#[derive(Debug, Default)]
pub struct Asks {
    rule: AskRule,
    /// Oldest first.
    waiting: Vec<Waiting>,
    remembered: VecDeque<(Asker, bool)>,
}

impl Asks {
    /// Starts with this rule.
    pub fn new(rule: AskRule) -> Asks {
        Asks { rule, ..Asks::default() }
    }

    /// Puts another rule in force for calls that come. Remembered answers are forgotten, for they were given under the old
    /// one; questions that wait still want their answer.
    pub fn set_rule(&mut self, rule: AskRule) {
        self.rule = rule;
        self.remembered.clear();
    }

    /// Whether work with this effect would ask, if it were a call of this client.
    pub fn would_ask(&self, effect: Effect, client: Option<&str>) -> bool {
        self.rule.concerns(effect, client)
    }

    /// Whether a call that passed the policy may run; `at` is when, for people.
    pub fn meet(&mut self, at: UnixMs, tool: &Tool, run: &Run) -> Gate {
        if !self.rule.names(tool, run.authorization.client.as_deref()) {
            return Gate::Open;
        }
        let asker = Asker::of(&run.authorization);
        match self.remembered.iter().find(|(who, _)| *who == asker) {
            Some((_, true)) => return Gate::Open,
            Some((_, false)) => return Gate::Closed,
            None if self.waiting.len() >= limits::ASKS_MAX => return Gate::Full,
            None => {}
        }
        let lasting = patience(run.budget);
        let summary = tools::summary(&run.arguments);
        let (text, hidden) = tools::whole(&run.arguments);
        let question = Question {
            id: run.id.as_str().into(),
            at,
            expires_at: at.saturating_add(u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX)),
            client: run.authorization.asker(),
            tool: run.tool.as_str().into(),
            summary: Some(summary).filter(|s| !s.is_empty()).map(Arc::from),
            text: Some(text).filter(|s| !s.is_empty()).map(Arc::from),
            hidden,
        };
        self.waiting.push(Waiting { call: run.id.clone(), asker, question });
        Gate::Asked(lasting)
    }

    /// An answer to the question of this id. Returns the calls it is for: with `remember` every one that waits for the
    /// same client; none when the question does not wait any more.
    pub fn answer(&mut self, question: &str, allow: bool, remember: bool) -> Vec<CallId> {
        let Some(at) = self.waiting.iter().position(|w| w.question.id == question) else { return Vec::new() };
        if !remember {
            return vec![self.waiting.remove(at).call];
        }
        let asker = self.waiting[at].asker.clone();
        if self.remembered.len() >= limits::ASKS_REMEMBERED {
            self.remembered.pop_front();
        }
        let answered = self.waiting.extract_if(.., |w| w.asker == asker).map(|w| w.call).collect();
        self.remembered.push_back((asker, allow));
        answered
    }

    /// Nobody answered in time, or the call is not wanted any more. Whether its question still waited.
    pub fn withdraw(&mut self, call: &CallId) -> bool {
        let waited = self.waiting.len();
        self.waiting.retain(|w| w.call != *call);
        self.waiting.len() < waited
    }

    /// What waits, oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.waiting.iter().map(|w| &w.question)
    }
}

/// How long the question of a call with this budget waits: something of the budget is left for the work.
fn patience(budget: Duration) -> Duration {
    budget.saturating_sub(limits::ASK_LEFT).max(budget / 2).min(limits::ASK_WAIT)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::policy::Role;

    fn run(n: usize, client: Option<&str>, tool: &str) -> Run {
        Run {
            id: CallId::parse(&format!("call_{n:08}")).unwrap(),
            tool: tool.into(),
            arguments: RawValue::from_string(r#"{"argv":["npm","test"]}"#.into()).unwrap(),
            budget: Duration::from_secs(60),
            authorization: Authorization {
                account_id: AccountId::mint([1; 18]),
                account_version: 1,
                role: Role::Owner,
                client: client.map(str::to_owned),
                client_name: None,
            },
            progress: false,
        }
    }

    fn meet(asks: &mut Asks, run: &Run) -> Gate {
        asks.meet(1_000, tools::find(&run.tool).unwrap(), run)
    }

    fn every_client(least: Effect) -> Asks {
        Asks::new(AskRule { clients: vec![EVERY_CLIENT.into()], least })
    }

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn only_calls_of_named_clients_with_strong_enough_tools_are_asked_about() {
        let gate = |rule: &AskRule, client, tool| meet(&mut Asks::new(rule.clone()), &run(1, client, tool));
        let asked = Gate::Asked(50 * S);
        let off = AskRule::default();
        assert_eq!(gate(&off, Some("a"), "run_process"), Gate::Open);
        let one = AskRule { clients: vec!["a".into()], ..AskRule::default() };
        assert_eq!(gate(&one, Some("a"), "run_process"), asked);
        assert_eq!(gate(&one, Some("a"), "write_file"), asked);
        assert_eq!(gate(&one, Some("a"), "read_file"), Gate::Open);
        assert_eq!(gate(&one, Some("b"), "run_process"), Gate::Open);
        assert_eq!(gate(&one, None, "run_process"), Gate::Open);
        let runs = AskRule { clients: vec![EVERY_CLIENT.into()], least: Effect::Runs };
        assert_eq!(gate(&runs, None, "run_process"), asked);
        assert_eq!(gate(&runs, None, "write_file"), Gate::Open);
    }

    #[test]
    fn control_tools_and_drills_are_never_asked_about() {
        let mut asks = every_client(Effect::Reads);
        for tool in tools::all().filter(|tool| tool.place != Place::Relay) {
            let gate = meet(&mut asks, &run(1, Some("a"), tool.name));
            let exempt = tool.control || tool.name == "drill_wait";
            assert_eq!(gate == Gate::Open, exempt, "{}", tool.name);
            asks.withdraw(&run(1, None, "").id);
        }
    }

    #[test]
    fn a_question_says_who_wants_what_and_until_when() {
        let mut asks = every_client(Effect::Writes);
        meet(&mut asks, &run(7, Some("a"), "run_process"));
        let expected = Question {
            id: "call_00000007".into(),
            at: 1_000,
            expires_at: 51_000,
            client: Some("a".into()),
            tool: "run_process".into(),
            summary: Some("npm test".into()),
            text: Some("argv: [\"npm\",\"test\"]".into()),
            hidden: 0,
        };
        assert_eq!(asks.questions().collect::<Vec<_>>(), [&expected]);
    }

    #[test]
    fn one_answer_is_for_one_call_and_a_remembered_one_for_all_of_that_client() {
        let mut asks = every_client(Effect::Writes);
        for (n, client) in [(1, "a"), (2, "a"), (3, "b")] {
            meet(&mut asks, &run(n, Some(client), "run_process"));
        }
        assert_eq!(asks.answer("call_00000001", false, false), [run(1, None, "").id]);
        assert_eq!(asks.answer("call_00000001", true, true), []);
        meet(&mut asks, &run(4, Some("a"), "write_file"));
        assert_eq!(asks.answer("call_00000004", true, true), [run(2, None, "").id, run(4, None, "").id]);
        assert_eq!(meet(&mut asks, &run(5, Some("a"), "run_process")), Gate::Open);
        assert_eq!(asks.answer("call_00000003", false, true), [run(3, None, "").id]);
        assert_eq!(meet(&mut asks, &run(6, Some("b"), "run_process")), Gate::Closed);
        assert_eq!(asks.questions().count(), 0);
        asks.set_rule(AskRule { clients: vec!["b".into()], ..AskRule::default() });
        assert_eq!(meet(&mut asks, &run(7, Some("b"), "run_process")), Gate::Asked(50 * S));
    }

    #[test]
    fn questions_and_remembered_answers_are_bounded() {
        let mut asks = every_client(Effect::Writes);
        for n in 0..limits::ASKS_MAX {
            assert_eq!(meet(&mut asks, &run(n, Some("a"), "run_process")), Gate::Asked(50 * S));
        }
        assert_eq!(meet(&mut asks, &run(99, Some("a"), "run_process")), Gate::Full);
        assert!(asks.withdraw(&run(0, None, "").id) && !asks.withdraw(&run(0, None, "").id));
        assert_eq!(meet(&mut asks, &run(99, Some("a"), "run_process")), Gate::Asked(50 * S));
        asks.answer("call_00000099", true, true);
        for n in 0..limits::ASKS_REMEMBERED {
            meet(&mut asks, &run(n, Some(&format!("c{n}")), "run_process"));
            asks.answer(&format!("call_{n:08}"), true, true);
        }
        assert_eq!(meet(&mut asks, &run(1, Some("a"), "run_process")), Gate::Asked(50 * S), "the oldest is forgotten");
        assert_eq!(meet(&mut asks, &run(2, Some("c1"), "run_process")), Gate::Open);
    }

    #[test]
    fn a_question_leaves_time_for_the_work() {
        assert_eq!(patience(60 * S), 50 * S);
        assert_eq!(patience(610 * S), limits::ASK_WAIT);
        assert_eq!(patience(6 * S), 3 * S);
    }
}
