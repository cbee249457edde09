//! The relay's side of the world.

use super::*;

impl World {
    pub(super) fn connect(&mut self, completes: bool) {
        self.lose();
        self.rig.out.retain(|output| !matches!(output, Output::Dial(_)));
        self.rig.tell(Input::Start);
        let Some(socket) = (0..20).find_map(|_| {
            self.rig.pass(S);
            self.shell_but_dials()
        }) else {
            return;
        };
        self.rig.socket = socket;
        self.open = true;
        self.rig.tell(Input::Opened(socket));
        if !completes {
            return;
        }
        self.recoveries += 1;
        let requests: Vec<u8> = (0..OPERATIONS)
            .filter(|n| self.received.contains(&op(*n)) && !self.results.contains_key(&op(*n)))
            .collect();
        let offsets: Vec<(u8, u64)> = self
            .output
            .iter()
            .map(|(of, offset)| ((0..OPERATIONS).find(|n| run(*n) == *of).unwrap(), *offset))
            .collect();
        self.acked.clone_from(&self.output);
        self.rig.request(self.recoveries, &requests, &offsets);
        self.shell();
        self.commit(64);
        self.rig.say(ControlFrame::RecoveryReady {
            recovery_id: RecoveryId::mint([self.recoveries; 16]),
            lease_ms: 120_000,
        });
    }

    /// Carries out everything else while a dial is awaited.
    pub(super) fn shell_but_dials(&mut self) -> Option<SocketId> {
        let dial = self.rig.dial();
        self.shell();
        dial
    }

    /// The relay commits what it hears at once.
    pub(super) fn hear(&mut self, frame: WorkerFrame) {
        match frame {
            WorkerFrame::OperationReceived { request_id } => {
                assert!(self.rig.ledger.row(&request_id).is_some(), "acknowledged before it was committed");
                self.received.insert(request_id);
            }
            WorkerFrame::OperationRejected { request_id, failure } => {
                let stands = self.rig.ledger.row(&request_id).is_some();
                assert_eq!(stands, failure.code == Code::Conflict, "{failure:?}");
            }
            WorkerFrame::OperationCompleted { request_id, outcome }
            | WorkerFrame::ExecExit { request_id, outcome, .. }
            | WorkerFrame::ExecError { request_id, outcome, .. } => {
                assert_eq!(self.rig.ledger.row(&request_id).unwrap().outcome.as_ref(), Some(&outcome));
                let first = self.results.entry(request_id).or_insert_with(|| outcome.clone());
                assert_eq!(*first, outcome, "another end");
            }
            WorkerFrame::ExecOutput { run_id, offset, data, .. } => {
                let had = self.output.entry(run_id).or_default();
                assert!(offset <= *had, "a hole");
                assert!(data.iter().enumerate().all(|(at, byte)| *byte == ((offset + at as u64) % 251) as u8));
                *had = (*had).max(offset + data.len() as u64);
            }
            WorkerFrame::CancelResult { request_id, state } => {
                let row = self.rig.ledger.row(&request_id);
                assert!(row.is_none_or(|row| row.cancelled || row.state.is_final()), "not kept");
                assert!(row.is_some() || self.rig.ledger.tombstones.contains(&request_id));
                assert!(!state.is_final() || row.is_none_or(|row| row.state == state));
            }
            WorkerFrame::CancelSessionAck { cancellation_id } => {
                assert!(self.rig.ledger.sessions.contains(&cancellation_id));
            }
            WorkerFrame::RecoveryState { operations, .. } => {
                for report in operations {
                    assert!(self.rig.ledger.row(&report.request_id).is_some());
                }
            }
            _ => {}
        }
    }

    pub(super) fn ack(&mut self, at: usize) {
        let Some((id, _)) = self.results.iter().nth(at).filter(|_| self.open) else { return };
        let id = id.clone();
        let of = operation(number(&id));
        self.rig.say(match of.run_id.filter(|_| of.request.kind().is_run()) {
            Some(run_id) => ControlFrame::ExecTerminalAck { run_id },
            None => ControlFrame::OperationResultAck { request_id: id.clone() },
        });
        self.confirmed.insert(id);
    }
}
