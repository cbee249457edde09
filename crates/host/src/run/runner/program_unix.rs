//! What a runner runs: a program with pipes, one in a terminal, or a connection.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::operation::Stream;
use holdfast_core::run::{Program, Signal, Spec};
use rustix::process::{Pid, WaitId, WaitIdOptions};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::Command;
use tokio::signal::unix::{self, Signal as Deaths, SignalKind};

use super::terminal::{self, Terminal};
use crate::group::{self, MARK};
use crate::identity;

/// How often a dying tree is looked at: its end is no event.
const LOOK: Duration = Duration::from_millis(20);

/// A program that runs, or a connection that stands.
pub(super) struct Running {
    /// Where its output comes from, until that ends.
    pub(super) sources: Vec<Source>,
    /// Where its input goes, while that is open.
    pub(super) sink: Option<Sink>,
    /// Its processes.
    pub(super) tree: Tree,
}

/// A program and what it starts: its process group, in a terminal its session. Nothing, of a connection.
///
/// The program is not reaped while the runner lives: as long as it stands there dead, its number, which is its group's, is
/// nobody else's.
#[derive(Default)]
pub(super) struct Tree {
    leader: Option<u32>,
    /// Tells that some child ended.
    deaths: Option<Deaths>,
    terminal: Option<Terminal>,
}

/// The output of one stream.
pub(super) struct Source {
    pub(super) stream: Stream,
    from: Receiver,
}

/// The input.
pub(super) struct Sink(Sender);

impl Running {
    /// Starts it. The error is the system's.
    pub(super) async fn start(spec: &Spec, mark: &str) -> io::Result<Running> {
        match &spec.program {
            Program::Pipes { argv, stdin } => Running::pipes(command(spec, argv, mark)?, *stdin),
            Program::Pty { argv, cols, rows } => Running::pty(command(spec, argv, mark)?, *cols, *rows),
            Program::Port(port) => Running::port(*port).await,
        }
    }

    fn pipes(mut command: Command, stdin: bool) -> io::Result<Running> {
        let (out, err) = (output(Stream::Stdout)?, output(Stream::Stderr)?);
        command.stdout(out.1).stderr(err.1).process_group(0);
        let mut sink = None;
        if stdin {
            let (reader, writer) = io::pipe()?;
            command.stdin(reader);
            sink = Some(Sink::new(writer.into())?);
        }
        Ok(Running { sources: vec![out.0, err.0], sink, tree: Tree::spawn(command, None)? })
    }

    fn pty(mut command: Command, cols: u16, rows: u16) -> io::Result<Running> {
        let (terminal, end) = Terminal::open(cols, rows)?;
        command.stdin(end.try_clone()?).stdout(end.try_clone()?).stderr(end);
        terminal::lead(&mut command);
        let source = Source::new(Stream::Pty, terminal.copy()?)?;
        let sink = Some(Sink::new(terminal.copy()?)?);
        Ok(Running { sources: vec![source], sink, tree: Tree::spawn(command, Some(terminal))? })
    }

    async fn port(port: u16) -> io::Result<Running> {
        let connecting = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let socket = tokio::time::timeout(limits::RUNNER_PORT_WAIT, connecting).await??.into_std()?;
        let source = Source::new(Stream::Stdout, socket.try_clone()?.into())?;
        Ok(Running { sources: vec![source], sink: Some(Sink::new(socket.into())?), tree: Tree::default() })
    }
}

impl Tree {
    fn spawn(mut command: Command, terminal: Option<Terminal>) -> io::Result<Tree> {
        // Before there is anybody to die.
        let deaths = Some(unix::signal(SignalKind::child())?);
        let leader = Some(command.as_std_mut().spawn()?.id());
        Ok(Tree { leader, deaths, terminal })
    }

    /// The process that was started.
    pub(super) fn leader(&self) -> Option<u32> {
        self.leader
    }

    /// Waits for the program itself: its exit code, or the signal that ended it. A connection never ends this way.
    pub(super) async fn exited(&mut self) -> (Option<i32>, Option<i32>) {
        let leader = self.leader.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let (Some(leader), Some(deaths)) = (leader, &mut self.deaths) else { return std::future::pending().await };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        loop {
            match rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(leader), look)) {
                Ok(Some(dead)) => return (dead.exit_status(), dead.terminating_signal()),
                Ok(None) => _ = deaths.recv().await,
                Err(_) => return (None, None),
            }
        }
    }

    /// Signals all of it.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.groups().into_iter().for_each(|group| group::signal(group, signal));
    }

    /// Waits until nothing of it lives, and says what left it and lives on. Only once the program itself ended.
    pub(super) async fn gone(&self, mark: &str) -> Vec<u32> {
        while self.groups().into_iter().any(group::lives) {
            tokio::time::sleep(LOOK).await;
        }
        match self.leader {
            Some(_) => identity::marked(&format!("{MARK}={mark}")).into_iter().map(|process| process.pid).collect(),
            None => Vec::new(),
        }
    }

    /// Gives the terminal another size.
    pub(super) fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        self.terminal.as_ref().ok_or(io::ErrorKind::Unsupported)?.resize(cols, rows)
    }

    fn groups(&self) -> Vec<u32> {
        match (self.leader, &self.terminal) {
            (Some(leader), Some(_)) => identity::groups_of_session(leader),
            (leader, _) => leader.into_iter().collect(),
        }
    }
}

impl Source {
    fn new(stream: Stream, fd: OwnedFd) -> io::Result<Source> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Source { stream, from: Receiver::from_owned_fd_unchecked(fd)? })
    }

    /// Reads some bytes; 0 at the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.from.poll_read_ready(cx))?;
            match self.from.try_read(into) {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                read => return Poll::Ready(self.told(read)),
            }
        }
    }

    /// Reads what is there, noticed or not; 0 at the end, `WouldBlock` when nothing is there yet.
    pub(super) fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = rustix::io::retry_on_intr(|| rustix::io::read(&self.from, &mut *into));
        self.told(read.map_err(Into::into))
    }

    fn told(&self, read: io::Result<usize>) -> io::Result<usize> {
        match read {
            // What a terminal says when nobody has it open any more.
            Err(e) if self.stream == Stream::Pty && e.raw_os_error() == Some(libc::EIO) => Ok(0),
            read => read,
        }
    }
}

impl Sink {
    fn new(fd: OwnedFd) -> io::Result<Sink> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Sink(Sender::from_owned_fd_unchecked(fd)?))
    }

    /// Writes some bytes. Waiting may be given up.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.0.writable().await?;
            match self.0.try_write(bytes) {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                wrote => return wrote,
            }
        }
    }

    /// No more input. A connection hears it although it is open for output.
    pub(super) fn close(self) {
        // Nothing but a socket knows this.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Write);
    }
}

fn command(spec: &Spec, argv: &[String], mark: &str) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    if !Path::new(&spec.cwd).is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "its folder is not there"));
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&spec.cwd).stdin(Stdio::null());
    command.env_clear().envs(spec.env.iter().map(|(name, value)| (name, value))).env(MARK, mark);
    Ok(command)
}

/// A pipe for output, as large as an ordinary user may have it.
fn output(stream: Stream) -> io::Result<(Source, io::PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&reader, limits::RUNNER_PIPE as usize);
    Ok((Source::new(stream, reader.into())?, writer))
}
