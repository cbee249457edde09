//! Running programs: one at a time to its end, or as a session that lives on.

mod environment;
mod once;
mod output;
mod session;
mod trees;

pub(super) use environment::{Program, direct, shell};
pub(super) use once::{End, Keep, exec_command, run_process, to_end};
pub(super) use output::{HeadTail, whole_characters};
pub(super) use session::{Sessions, kill_process, read_process, start_process, write_process};
pub(super) use trees::Trees;
