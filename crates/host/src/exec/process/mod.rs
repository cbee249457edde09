//! Running programs: one at a time to its end, or as a session that lives on.

mod environment;
mod once;
mod output;
mod session;
mod trees;

pub(crate) use environment::own_environment;
pub(super) use environment::{Program, direct, shell};
pub(crate) use once::{End, Keep, to_end};
pub(super) use once::{exec_command, run_process};
pub(crate) use output::HeadTail;
pub(super) use output::whole_characters;
pub(super) use session::{Sessions, kill_process, read_process, start_process, write_process};
pub(crate) use trees::{Trees, end_escaped};
