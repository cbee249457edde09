//! What a runner runs: a program with pipes, or a connection.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, Waker, ready};

use holdfast_core::limits;
use holdfast_core::operation::Stream;
use holdfast_core::run::{Program, Signal, Spec};
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::process::Command;

use crate::group::MARK;

/// A program that runs, or a connection that stands.
pub(super) struct Running {
    /// Where its output comes from, until that ends.
    pub(super) sources: Vec<Source>,
    /// Where its input goes, while that is open.
    pub(super) sink: Option<Sink>,
    /// Its processes.
    pub(super) tree: Tree,
}

/// A program and what it starts: its job object. Nothing, of a connection.
#[derive(Default)]
pub(super) struct Tree(Option<Box<dyn ChildWrapper>>);

/// The output of one stream.
pub(super) struct Source {
    pub(super) stream: Stream,
    from: Pin<Box<dyn AsyncRead + Send>>,
}

/// The input.
pub(super) struct Sink(Pin<Box<dyn AsyncWrite + Send>>);

impl Running {
    /// Starts it. The error is the system's.
    pub(super) async fn start(spec: &Spec, mark: &str) -> io::Result<Running> {
        match &spec.program {
            Program::Pipes { argv, stdin } => Running::pipes(command(spec, argv, mark)?, *stdin),
            Program::Pty { .. } => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "no terminal can be had on this system"))
            }
            Program::Port(port) => Running::port(*port).await,
        }
    }

    fn pipes(mut command: Command, stdin: bool) -> io::Result<Running> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if stdin { Stdio::piped() } else { Stdio::null() });
        let mut child = CommandWrap::from(command).wrap(JobObject).spawn()?;
        let mut sources = Vec::new();
        if let Some(out) = child.stdout().take() {
            sources.push(Source { stream: Stream::Stdout, from: Box::pin(out) });
        }
        if let Some(err) = child.stderr().take() {
            sources.push(Source { stream: Stream::Stderr, from: Box::pin(err) });
        }
        let sink = child.stdin().take().map(|stdin| Sink(Box::pin(stdin)));
        Ok(Running { sources, sink, tree: Tree(Some(child)) })
    }

    async fn port(port: u16) -> io::Result<Running> {
        let connecting = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let (from, to) = tokio::time::timeout(limits::RUNNER_PORT_WAIT, connecting).await??.into_split();
        let source = Source { stream: Stream::Stdout, from: Box::pin(from) };
        Ok(Running { sources: vec![source], sink: Some(Sink(Box::pin(to))), tree: Tree::default() })
    }
}

impl Tree {
    /// The process that was started.
    pub(super) fn leader(&self) -> Option<u32> {
        self.0.as_ref().and_then(|child| child.id())
    }

    /// Waits for the program itself: its exit code. A connection never ends this way.
    pub(super) async fn exited(&mut self) -> (Option<i32>, Option<i32>) {
        let Some(child) = &mut self.0 else { return std::future::pending().await };
        (child.wait().await.ok().and_then(|status| status.code()), None)
    }

    /// A job object cannot be asked, only ended.
    pub(super) fn signal(&mut self, _signal: Signal) {
        if let Some(child) = &mut self.0 {
            let _ = child.start_kill();
        }
    }

    /// Nothing leaves a job object.
    pub(super) async fn gone(&self, _mark: &str) -> Vec<u32> {
        Vec::new()
    }

    /// There is no terminal.
    pub(super) fn resize(&self, _cols: u16, _rows: u16) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Source {
    /// Reads some bytes; 0 at the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(into);
        ready!(self.from.as_mut().poll_read(cx, &mut into))?;
        Poll::Ready(Ok(into.filled().len()))
    }

    /// Reads what is there; 0 at the end, `WouldBlock` when nothing is there yet.
    pub(super) fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.poll_read(&mut Context::from_waker(Waker::noop()), into) {
            Poll::Ready(read) => read,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Sink {
    /// Writes some bytes. Waiting may be given up.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).await
    }

    /// No more input: a connection hears it when its half is dropped.
    pub(super) fn close(self) {}
}

fn command(spec: &Spec, argv: &[String], mark: &str) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    if !Path::new(&spec.cwd).is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "its folder is not there"));
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&spec.cwd);
    command.env_clear().envs(spec.env.iter().map(|(name, value)| (name, value))).env(MARK, mark);
    Ok(command)
}
