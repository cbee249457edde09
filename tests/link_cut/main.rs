//! What `docs/PROMISES.md` says of calls, with real processes: a call, a link that breaks in the middle of it, and exactly one outcome.
//!
//! Every sentence is a test on the feature wire and on the base wire. Work leaves one line in a journal for each side
//! effect, so that "once" is counted and not believed.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod bytes;
mod cuts;
mod frames;
mod leaving;
mod others;
mod sleep;

use holdfast_testkit::mcp::{Answer, Lost};
use holdfast_testkit::stand::Stand;

/// One test for each wire, in modules named after it.
macro_rules! on_both_wires {
    ($($name:ident),+ $(,)?) => {
        mod on_the_feature_wire {
            $(#[tokio::test] async fn $name() { super::$name(holdfast_testkit::stand::WireKind::Feature).await; })+
        }
        mod on_the_base_wire {
            $(#[tokio::test] async fn $name() { super::$name(holdfast_testkit::stand::WireKind::Base).await; })+
        }
    };
}
use on_both_wires;

/// The answer is the work's result, and the work ran once.
fn assert_done_once(stand: &Stand, name: &str, answer: Result<Answer, Lost>) {
    let answer = answer.expect("an answer");
    assert_eq!(answer.content()["stdout"], format!("result-{name}\n"), "{answer:?}");
    assert_eq!(marks(stand, name), (1, 1));
}

/// How often this work started and finished.
fn marks(stand: &Stand, name: &str) -> (usize, usize) {
    let journal = stand.journal();
    let count = |mark: &str| journal.iter().filter(|line| **line == format!("{mark} {name}")).count();
    (count("started"), count("finished"))
}
