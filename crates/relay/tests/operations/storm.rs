//! Many operations, and a relay that dies again and again at moments nobody chose.

use std::collections::BTreeMap;

use holdfast_core::id::{OperationId, RunId};
use holdfast_core::operation::{Operation, State, Stream, Streams};
use holdfast_core::wire::worker::ControlFrame;
use holdfast_testkit::worker::{FakeWorker, report};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::stage::Stage;

const OPERATIONS: usize = 5;
const DEATHS: usize = 12;

/// An operation as its worker has it.
struct Work {
    operation: Operation,
    /// All that it writes.
    data: Vec<u8>,
    /// Sent on this socket.
    sent: usize,
    /// The most that was ever acknowledged.
    acknowledged: usize,
    over: bool,
}

impl Work {
    fn new(operation: Operation, rng: &mut StdRng) -> Work {
        let data = (0..rng.random_range(0..300_000)).map(|_| rng.random()).collect();
        Work { operation, data, sent: 0, acknowledged: 0, over: false }
    }

    fn exit(&self) -> i32 {
        i32::try_from(self.data.len() % 200).unwrap()
    }
}

struct Storm {
    rng: StdRng,
    works: BTreeMap<RunId, Work>,
}

impl Storm {
    fn hear(&mut self, frame: ControlFrame) {
        match frame {
            ControlFrame::Operation(operation) => {
                let run = operation.run_id.clone().unwrap();
                assert!(!self.works.contains_key(&run), "what the ledger has is not sent again");
                self.works.insert(run, Work::new(operation, &mut self.rng));
            }
            ControlFrame::ExecOutputAck { run_id, stream: Stream::Stdout, next_offset } => {
                let work = self.works.get_mut(&run_id).unwrap();
                let next = usize::try_from(next_offset).unwrap();
                assert!(next <= work.data.len());
                work.acknowledged = work.acknowledged.max(next);
            }
            ControlFrame::ExecTerminalAck { run_id } => self.works.get_mut(&run_id).unwrap().over = true,
            _ => {}
        }
    }

    /// A new socket, which goes on where the relay says.
    async fn connect(&mut self, stage: &Stage) -> FakeWorker {
        let mut worker = stage.socket(1).await;
        let wanted = worker.hello().await;
        let has = self.works.values().filter(|work| !work.over).map(|work| report(&work.operation, State::Running));
        let has: Vec<_> = has.collect();
        for work in self.works.values_mut() {
            work.sent = work.data.len();
        }
        for offset in wanted.offsets.iter().filter(|offset| offset.stream == Stream::Stdout) {
            // One that is not here was sent and never came: it comes again.
            if let Some(work) = self.works.get_mut(&offset.run_id) {
                work.sent = usize::try_from(offset.next_offset).unwrap();
                assert!(
                    work.sent >= work.acknowledged,
                    "{} was acknowledged, {} is there",
                    work.acknowledged,
                    work.sent
                );
            }
        }
        worker.report(&wanted, has).await;
        worker.complete(&wanted).await;
        worker
    }

    /// Sends a piece of something, or an end.
    async fn send(&mut self, worker: &mut FakeWorker) {
        let Storm { rng, works } = self;
        let open: Vec<&RunId> = works.iter().filter(|(_, work)| !work.over).map(|(run, _)| run).collect();
        if open.is_empty() {
            return;
        }
        let run = open[rng.random_range(0..open.len())].clone();
        let work = works.get_mut(&run).unwrap();
        if work.sent == work.data.len() {
            let written = Streams::from([(Stream::Stdout, work.data.len() as u64)]);
            return worker.send_exit(&work.operation, work.exit(), written).await;
        }
        let end = (work.sent + rng.random_range(1..40_000)).min(work.data.len());
        // Now and then some of it again.
        let from = if rng.random_bool(0.1) { work.sent / 2 } else { work.sent };
        worker.send_output(&run, Stream::Stdout, from as u64, &work.data[from..end]).await;
        work.sent = end;
    }
}

async fn survives(seed: u64) {
    let mut stage = Stage::new().await;
    let mut storm = Storm { rng: StdRng::seed_from_u64(seed), works: BTreeMap::new() };
    let mut started: Vec<OperationId> = Vec::new();
    for death in 0..=DEATHS {
        if started.len() < OPERATIONS {
            started.push(stage.start().await);
        }
        let mut worker = storm.connect(&stage).await;
        let last = death == DEATHS;
        let steps = storm.rng.random_range(0..20);
        for step in 0.. {
            let all_over = storm.works.len() == OPERATIONS && storm.works.values().all(|work| work.over);
            if if last { all_over } else { step == steps } {
                break;
            }
            storm.send(&mut worker).await;
            // What there is to hear, now and then only: the relay may be ahead of what its worker has read.
            if last || storm.rng.random_bool(0.7) {
                while let Some(frame) = worker.said().await {
                    storm.hear(frame);
                }
            }
        }
        drop(worker);
        // Else only the connection was lost.
        if last || storm.rng.random_bool(0.7) {
            stage = stage.crash().await;
        }
    }
    for work in storm.works.values() {
        let id = &work.operation.request_id;
        assert_eq!(stage.view(id).await["outcome"]["exit"]["code"], work.exit(), "seed {seed}");
        let mut whole = Vec::new();
        while whole.len() < work.data.len() {
            whole.extend(stage.bytes(id, whole.len()).await);
        }
        assert!(whole == work.data, "seed {seed}: {} of {} bytes", whole.len(), work.data.len());
    }
    assert_eq!(storm.works.len(), started.len());
}

#[tokio::test]
async fn a_relay_that_dies_again_and_again_loses_nothing_it_acknowledged_and_delivers_every_byte_once() {
    for seed in 0..3 {
        survives(seed).await;
    }
}
