//! What really happened, kept apart from what the two sides say of it.

use std::collections::BTreeMap;

use holdfast_core::id::{OperationId, RunId};
use holdfast_core::run::End;

/// Everything that was ever done on the machine, whatever its ledger knows.
#[derive(Debug, Default)]
pub struct Truth {
    /// How often a program was started, or work that is no run begun, per operation.
    pub begun: BTreeMap<OperationId, usize>,
    /// How programs ended, by the word of their runner.
    pub ends: BTreeMap<OperationId, End>,
    /// Output that a program wrote and that is kept on the machine, in bytes.
    pub written: BTreeMap<RunId, u64>,
    /// How often an input reached its program.
    pub given: BTreeMap<OperationId, usize>,
    /// How often something drastic happened: a ledger was lost, the power went, a process died.
    pub struck: BTreeMap<&'static str, u64>,
}

impl Truth {
    /// A program starts.
    pub(super) fn ran(&mut self, id: &OperationId) {
        let times = self.begun.entry(id.clone()).or_default();
        *times += 1;
        assert_eq!(*times, 1, "{id} ran twice");
    }

    /// Work that is no run begins.
    pub(super) fn performed(&mut self, id: &OperationId, repeatable: bool) {
        let times = self.begun.entry(id.clone()).or_default();
        *times += 1;
        assert!(*times == 1 || repeatable, "{id} was done twice");
    }

    /// An input reaches its program.
    pub(super) fn gave(&mut self, id: &OperationId) {
        let times = self.given.entry(id.clone()).or_default();
        *times += 1;
        assert_eq!(*times, 1, "{id} was given twice");
    }

    /// Something drastic happens.
    pub(super) fn strike(&mut self, what: &'static str) {
        *self.struck.entry(what).or_default() += 1;
    }
}

/// The byte a program writes at an offset.
pub(super) fn byte(run: &RunId, offset: u64) -> u8 {
    let of = run.as_str().as_bytes()[8];
    of.wrapping_mul(31).wrapping_add(offset as u8).wrapping_add((offset >> 8) as u8)
}
