//! The runner's loop: what happens goes into the machine, what comes out is done.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::FutureExt as _;
use holdfast_core::id::OperationId;
use holdfast_core::limits;
use holdfast_core::operation::{Exit, Stream};
use holdfast_core::run::{
    Ask, End, Identity, Leader, Program, Runner, RunnerInput, RunnerOutput, Signal, Spec, Tell, VERSION,
};
use holdfast_core::status::UnixMs;
use holdfast_core::time::Now;

use super::interrupts::{Interrupt, Interrupts};
use super::program::{Running, Sink, Source, Tree};
use super::rest::Rest;
use super::talk::Talk;
use crate::link::clock::Turns;
use crate::local_socket::{self, Accepted, Listener};
use crate::run::boot_clock;
use crate::run::folder::{EXIT, LEADER, write};
use crate::{files, group, identity, spool};

/// A runner and all it owns.
pub(super) struct Own {
    folder: PathBuf,
    spec: Spec,
    identity: Identity,
    turns: Turns,
    machine: Runner,
    spool: spool::Writer,
    doors: Doors,
    program: Option<Running>,
    started_at: UnixMs,
    exited: bool,
    /// The tree was signalled: its end is looked for.
    ending: bool,
    /// The tree is gone: what the first of the sources may still give, in bytes.
    rest: Option<u64>,
    inputs: VecDeque<Piece>,
    stalled: Option<UnixMs>,
    rest_wanted: Rest,
    /// When it last came to rest (awake time).
    rested: Option<Duration>,
}

/// Who may come in.
pub(super) struct Doors {
    listener: io::Result<Listener>,
    talk: Option<Talk<Accepted>>,
    interrupts: Interrupts,
}

impl Doors {
    pub(super) fn new(listener: io::Result<Listener>, interrupts: Interrupts) -> Doors {
        Doors { listener, talk: None, interrupts }
    }
}

/// Input that waits for the program.
struct Piece {
    id: OperationId,
    data: Bytes,
    close: bool,
}

enum Event {
    Read(usize, io::Result<usize>),
    Fed(io::Result<usize>),
    Exited(Option<i32>, Option<i32>),
    Gone(Vec<u32>),
    Connected(Accepted),
    /// `None` when the worker is gone.
    Asked(Option<Ask>),
    Interrupted(Interrupt),
    /// Its time came; with `true` after a wait of some length in which nothing happened.
    Due(bool),
}

impl Own {
    pub(super) fn new(folder: &Path, spec: Spec, identity: Identity, doors: Doors, rest_wanted: Rest) -> Own {
        let mut turns = Turns::new();
        let machine = Runner::new(now(&mut turns), &spec);
        Own {
            folder: folder.to_path_buf(),
            spec,
            identity,
            turns,
            machine,
            spool: spool::Writer::new(folder.to_path_buf()),
            doors,
            program: None,
            started_at: 0,
            exited: false,
            ending: false,
            rest: None,
            inputs: VecDeque::new(),
            stalled: None,
            rest_wanted,
            rested: None,
        }
    }

    /// Lives until the end is written.
    pub(super) async fn run(mut self) {
        let mut block = vec![0; limits::RUNNER_BLOCK];
        loop {
            while let Some(output) = self.machine.poll_output() {
                if self.carry_out(output).await {
                    return;
                }
            }
            let room = usize::try_from(self.machine.room()).unwrap_or(usize::MAX).min(block.len());
            if let Some(rest) = self.rest.filter(|_| room > 0) {
                self.read_rest(&mut block[..room], rest);
                continue;
            }
            match self.next(&mut block[..room]).await {
                Event::Read(at, read) => self.read(at, read, &block),
                Event::Fed(Ok(bytes)) => self.fed(bytes),
                Event::Fed(Err(_)) => self.close_input(),
                Event::Exited(code, signal) => self.program_ended(code, signal),
                Event::Gone(escaped) => {
                    if self.machine.ends_everything() {
                        escaped.iter().for_each(|process| group::kill_one(*process));
                    }
                    self.handle(RunnerInput::Gone { escaped });
                }
                Event::Connected(stream) => self.greet(stream).await,
                Event::Asked(Some(ask)) => self.handle(RunnerInput::Asked(ask)),
                Event::Asked(None) => self.doors.talk = None,
                Event::Interrupted(Interrupt::End) => self.handle(RunnerInput::Interrupted),
                Event::Interrupted(Interrupt::Unreached) => self.listen_again(),
                Event::Due(quiet) => {
                    if quiet {
                        self.come_to_rest();
                    }
                    self.machine.handle_timeout(now(&mut self.turns));
                    if self.orphaned() {
                        return;
                    }
                }
            }
        }
    }

    /// Waits for what happens first. Output is read into `block`, unless that is empty.
    async fn next(&mut self, block: &mut [u8]) -> Event {
        let left = self.machine.poll_timeout(now(&mut self.turns));
        let most = if self.rested.is_some() { limits::RUNNER_LOOK } else { limits::SHELL_TURN_MAX };
        let left = left.map_or(most, |left| left.min(limits::SHELL_TURN_MAX));
        let Doors { listener, talk, interrupts } = &mut self.doors;
        let (sources, sink, tree) = match &mut self.program {
            Some(Running { sources, sink, tree }) => (&mut sources[..], sink.as_mut(), Some(tree)),
            None => (&mut [][..], None, None),
        };
        let (exited, ending, mark) = (self.exited, self.ending, &self.identity.mark);
        let piece = self.inputs.front();
        tokio::select! {
            // Output comes last, so that a program that writes without end delays nothing.
            biased;
            interrupt = interrupts.next() => Event::Interrupted(interrupt),
            () = tokio::time::sleep(left) => Event::Due(left >= limits::SHELL_TURN_MAX),
            event = tree_ends(tree, exited, ending, mark) => event,
            ask = hear(talk) => Event::Asked(ask),
            stream = accept(listener) => Event::Connected(stream),
            event = feed(sink, piece) => event,
            event = read(sources, block), if !block.is_empty() => event,
        }
    }

    fn handle(&mut self, input: RunnerInput) {
        self.machine.handle(now(&mut self.turns), input);
    }

    /// Does what the machine wants. Whether that was the last thing to do.
    async fn carry_out(&mut self, output: RunnerOutput) -> bool {
        match output {
            RunnerOutput::Start => self.start().await,
            RunnerOutput::Give { id, data, close } => {
                self.inputs.push_back(Piece { id, data, close });
                self.fed(0);
            }
            RunnerOutput::Resize { id, cols, rows } => {
                let done = self.program.as_ref().map(|program| program.tree.resize(cols, rows));
                let error = done.and_then(Result::err).map(|e| e.to_string());
                self.handle(RunnerInput::Given { id, error });
            }
            RunnerOutput::Signal(signal) => self.signal(signal),
            RunnerOutput::ReadOut => self.rest = Some(limits::RUNNER_PIPE),
            RunnerOutput::Remove(segment) => self.spool.remove(segment),
            RunnerOutput::Retry => {
                for (stream, bytes) in self.spool.retry() {
                    self.handle(RunnerInput::Wrote { stream, bytes });
                }
                match self.spool.is_full() {
                    true => return self.found_no_room(),
                    false => self.handle(RunnerInput::DiskRoom),
                }
            }
            RunnerOutput::Tell(tell) => self.tell(tell),
            RunnerOutput::Stalled(stalled) => {
                self.stalled = stalled.then(|| self.turns.unix_ms());
                self.tell(Tell::Stalled { since: self.stalled });
            }
            RunnerOutput::Finish(end) => return self.finish(end).await,
        }
        false
    }

    async fn start(&mut self) {
        self.started_at = self.turns.unix_ms();
        let started = match &self.doors.listener {
            Ok(_) => Running::start(&self.spec, &self.identity.mark).await,
            Err(e) => Err(io::Error::new(e.kind(), format!("the runner cannot listen: {e}"))),
        };
        match started {
            Ok(program) => {
                if let Some(pid) = program.tree.leader() {
                    // Whoever looks for it without this goes by the mark.
                    let leader = Leader { pid, started: identity::started(pid) };
                    let file = files::open(&self.folder.join(LEADER));
                    let _ = file.map(|file| serde_json::to_writer(file, &leader));
                }
                self.program = Some(program);
                self.handle(RunnerInput::Started);
            }
            Err(e) => self.handle(RunnerInput::NotStarted(e.to_string())),
        }
    }

    fn signal(&mut self, signal: Signal) {
        self.ending = true;
        let is_port = self.is_port();
        let Some(program) = &mut self.program else { return };
        program.tree.signal(signal);
        if is_port {
            program.sources.clear();
            self.handle(RunnerInput::Closed(Stream::Stdout));
            if !self.exited {
                self.program_ended(None, None);
            }
        }
    }

    fn is_port(&self) -> bool {
        matches!(self.spec.program, Program::Port(_))
    }

    fn program_ended(&mut self, code: Option<i32>, signal: Option<i32>) {
        self.exited = true;
        let (started_at, ended_at) = (self.started_at, self.turns.unix_ms());
        self.handle(RunnerInput::Exited(Exit { code, signal, started_at, ended_at }));
    }

    fn read(&mut self, at: usize, read: io::Result<usize>, block: &[u8]) {
        let Some(program) = &mut self.program else { return };
        let stream = program.sources[at].stream;
        match read {
            Ok(bytes @ 1..) => self.append(stream, &block[..bytes]),
            ended => {
                program.sources.remove(at);
                self.handle(RunnerInput::Closed(stream));
                if self.is_port() && !self.exited {
                    // The other side closed the connection, or broke it.
                    self.program_ended(ended.is_ok().then_some(0), None);
                }
            }
        }
    }

    /// Reads what the first source still holds, or is through with it.
    fn read_rest(&mut self, block: &mut [u8], rest: u64) {
        let Some(source) = self.program.as_mut().and_then(|program| program.sources.first_mut()) else {
            self.rest = None;
            return;
        };
        let most = usize::try_from(rest).unwrap_or(usize::MAX).min(block.len());
        match source.read_now(&mut block[..most]) {
            Ok(bytes @ 1..) => {
                let stream = source.stream;
                self.rest = Some(rest - bytes as u64);
                self.append(stream, &block[..bytes]);
            }
            _ => {
                self.rest = Some(limits::RUNNER_PIPE);
                self.read(0, Ok(0), &[]);
            }
        }
    }

    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        let bytes = self.spool.append(stream, bytes);
        if bytes > 0 {
            self.handle(RunnerInput::Wrote { stream, bytes });
        }
        if self.spool.is_full() {
            self.handle(RunnerInput::DiskFull);
        }
    }

    /// The program took some of the first input.
    fn fed(&mut self, bytes: usize) {
        if let Some(piece) = self.inputs.front_mut() {
            piece.data.advance(bytes);
        }
        while let Some(piece) = self.inputs.front() {
            let error = match self.program.as_mut().map(|program| &mut program.sink) {
                Some(Some(_)) if !piece.data.is_empty() => return,
                Some(sink @ Some(_)) => {
                    if let Some(sink) = sink.take_if(|_| piece.close) {
                        sink.close();
                    }
                    None
                }
                _ => Some("the program takes no more input".to_owned()),
            };
            if let Some(Piece { id, .. }) = self.inputs.pop_front() {
                self.handle(RunnerInput::Given { id, error });
            }
        }
    }

    fn close_input(&mut self) {
        if let Some(program) = &mut self.program {
            program.sink = None;
        }
        self.fed(0);
    }

    /// Nothing happened for a moment: what the start needed, or what happened since, is given back. Not so often that a program
    /// that is slow, or a time that is awaited, makes it work.
    fn come_to_rest(&mut self) {
        let awake = now(&mut self.turns).awake;
        if self.rested.is_none_or(|at| awake >= at + limits::RUNNER_LOOK) {
            self.rested = Some(awake);
            self.rest_wanted.wanted();
        }
    }

    /// Whoever tidies a folder for sockets takes the names of those away that are in use.
    fn listen_again(&mut self) {
        let socket = Path::new(&self.spec.socket);
        if let (Ok(_), Ok(false), Some(home)) = (&self.doors.listener, socket.try_exists(), socket.parent()) {
            let ours = files::make_dir(home).and_then(|()| files::own_dir(home));
            if let Ok(listener) = ours.map_err(io::Error::other).and_then(|()| local_socket::listen(socket)) {
                self.doors.listener = Ok(listener);
            }
        }
    }

    /// The newest connection counts, after what the one before it has said.
    async fn greet(&mut self, stream: Accepted) {
        // What has arrived is noticed only when the runtime looks.
        tokio::task::yield_now().await;
        while let Some(Some(ask)) = hear(&mut self.doors.talk).now_or_never() {
            self.handle(RunnerInput::Asked(ask));
        }
        let mut talk = Talk::new(stream);
        let (identity, written) = (self.identity.clone(), self.machine.written());
        talk.tell(Tell::Hello { version: VERSION, identity, written, stalled: self.stalled });
        self.doors.talk = Some(talk);
    }

    fn tell(&mut self, tell: Tell) {
        if let Some(talk) = &mut self.doors.talk {
            talk.tell(tell);
        }
    }

    /// Something could not be written, and whether that is for good.
    fn found_no_room(&mut self) -> bool {
        self.handle(RunnerInput::DiskFull);
        self.orphaned()
    }

    /// Whether the folder itself is gone: then nobody is to be told anything, and the program is nobody's.
    fn orphaned(&mut self) -> bool {
        let orphaned = matches!(self.folder.try_exists(), Ok(false));
        if let (true, Some(program)) = (orphaned, &mut self.program) {
            program.tree.signal(Signal::Kill);
        }
        orphaned
    }

    /// Writes the end, and whether it is time to go.
    async fn finish(&mut self, end: End) -> bool {
        self.close_input();
        self.program = None;
        // What found no room before, of a connection that was cut say, comes before its end and is counted in it.
        for (stream, bytes) in self.spool.retry() {
            self.handle(RunnerInput::Wrote { stream, bytes });
        }
        if self.spool.is_full() {
            return self.found_no_room();
        }
        let end = End { at: self.turns.unix_ms(), written: self.machine.written(), ..end };
        let written = self.spool.sync().and_then(|()| write(&self.folder.join(EXIT), &end).map_err(io::Error::other));
        if written.is_err() {
            return self.found_no_room();
        }
        while let Some(output) = self.machine.poll_output() {
            if let RunnerOutput::Tell(tell) = output {
                self.tell(tell);
            }
        }
        self.tell(Tell::Ended {});
        if let Some(talk) = &mut self.doors.talk {
            let _ = tokio::time::timeout(limits::RUNNER_GOODBYE, talk.flush()).await;
        }
        local_socket::close(Path::new(&self.spec.socket));
        true
    }
}

/// The system's boot clock, and this process's awake time.
fn now(turns: &mut Turns) -> Now {
    Now { boot: boot_clock(), ..turns.now() }
}

async fn tree_ends(tree: Option<&mut Tree>, exited: bool, ending: bool, mark: &str) -> Event {
    match tree {
        Some(tree) if !exited => {
            let (code, signal) = tree.exited().await;
            Event::Exited(code, signal)
        }
        Some(tree) if ending => Event::Gone(tree.gone(mark).await),
        _ => std::future::pending().await,
    }
}

async fn read(sources: &mut [Source], block: &mut [u8]) -> Event {
    let first = std::future::poll_fn(|cx| {
        for (at, source) in sources.iter_mut().enumerate() {
            if let Poll::Ready(read) = source.poll_read(cx, block) {
                return Poll::Ready(Event::Read(at, read));
            }
        }
        Poll::Pending
    });
    first.await
}

async fn feed(sink: Option<&mut Sink>, piece: Option<&Piece>) -> Event {
    match (sink, piece) {
        (Some(sink), Some(piece)) => Event::Fed(sink.write(&piece.data).await),
        _ => std::future::pending().await,
    }
}

async fn hear(talk: &mut Option<Talk<Accepted>>) -> Option<Ask> {
    match talk {
        Some(talk) => talk.next().await,
        None => std::future::pending().await,
    }
}

async fn accept(listener: &mut io::Result<Listener>) -> Accepted {
    let Ok(listener) = listener else { return std::future::pending().await };
    loop {
        match local_socket::accept(listener).await {
            Ok(stream) => return stream,
            // No descriptor is left, say.
            Err(_) => tokio::time::sleep(limits::SPOOL_RETRY).await,
        }
    }
}
