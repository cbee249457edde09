//! The machine against a scripted relay, ledger and runners.
