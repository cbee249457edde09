//! What a request needs of the device that does it, in the words of tools.

use super::{Command, Request};
use crate::policy::Availability;
use crate::tools::Effect;

impl Request {
    /// What the device's policy and the account's role must allow.
    pub const fn class(&self) -> Availability {
        match self {
            Request::Exec { command: Command::Shell(_), .. }
            | Request::PtyOpen { command: None | Some(Command::Shell(_)), .. } => Availability::ShellExec,
            Request::Exec { .. }
            | Request::PtyOpen { .. }
            | Request::ExecStdin { .. }
            | Request::PtyInput { .. }
            | Request::PtyResize { .. }
            | Request::PtyClose {} => Availability::DirectExec,
            Request::SyncWorkspace { .. } | Request::CreateProjectBranch { .. } => Availability::WriteAndDirectExec,
            // Which ports are open stands in the configuration; what is behind one may change things.
            Request::FileSync { .. } | Request::PortForwardConnect { .. } => Availability::Write,
            Request::WorkspaceConfig { .. } => Availability::Always,
        }
    }

    /// What it does to the machine: the measure by which calls ask the person there. Nothing for what must work when nobody is
    /// there.
    pub const fn effect(&self) -> Option<Effect> {
        match self {
            Request::Exec { .. }
            | Request::PtyOpen { .. }
            | Request::ExecStdin { .. }
            | Request::PtyInput { .. }
            | Request::PortForwardConnect { .. } => Some(Effect::Runs),
            Request::FileSync { .. } | Request::SyncWorkspace { .. } | Request::CreateProjectBranch { .. } => {
                Some(Effect::Writes)
            }
            Request::WorkspaceConfig { .. } | Request::PtyResize { .. } | Request::PtyClose {} => None,
        }
    }
}
