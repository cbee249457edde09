//! Tools with which a client finds its way.

mod diagnose;
mod instructions;
mod overview;

pub(super) use diagnose::diagnose_runtime;
pub(super) use instructions::{agent_context, session_bootstrap};
pub(super) use overview::project_overview;
