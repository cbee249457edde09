//! Output: from a program into its runner's spool beside `cat`, and through worker and relay beside a plain WebSocket.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio_tungstenite::tungstenite::Message;

use super::api::{Api, Serve};
use super::runner::Started;
use crate::child::Running;
use crate::roles::say;
use crate::table::{Goals, Wanted, median, short};

const SIZE: usize = 256 << 20;
const FRAME: usize = 128 << 10;

/// Both ways.
pub async fn run(rounds: usize, goals: &mut Goals) -> Result<()> {
    let home = tempfile::tempdir()?;
    let file = home.path().join("big");
    // No two blocks are alike, and it is no text.
    let bytes: Vec<u8> =
        (0..SIZE as u64 / 8).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    std::fs::write(&file, &bytes)?;
    std::fs::File::open(&file)?.sync_all()?;
    spool(rounds, home.path(), &file, goals).await?;
    end_to_end(rounds, home.path(), &file, bytes.into(), goals).await
}

fn rate(time: Duration) -> f64 {
    SIZE as f64 / 1e6 / time.as_secs_f64()
}

fn line(name: &str, rates: Vec<f64>) {
    println!("{name:<66} {:>8} MB/s", short(median(rates)));
}

async fn spool(rounds: usize, home: &Path, file: &Path, goals: &mut Goals) -> Result<()> {
    let (mut cat, mut cat_synced, mut ours, mut ours_synced) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let big = file.to_str().context("a name that is no text")?;
    let other = home.join("other");
    for _ in 0..rounds {
        let began = Instant::now();
        let copy = format!("cat {big} > {}", other.display());
        ensure!(Command::new("sh").args(["-c", &copy]).status().await?.success(), "cat");
        cat.push(rate(began.elapsed()));
        std::fs::File::open(&other)?.sync_all()?;
        cat_synced.push(rate(began.elapsed()));
        std::fs::remove_file(&other)?;

        let runs = tempfile::tempdir_in(home)?;
        let began = Instant::now();
        let end = Started::start(runs.path(), &["cat", big]).await?.end().await?;
        ours_synced.push(rate(began.elapsed()));
        let exit = end.exit.context("it did not start")?;
        ours.push(rate(Duration::from_millis(exit.ended_at.saturating_sub(exit.started_at).max(1))));
        ensure!(end.written.values().sum::<u64>() == SIZE as u64, "not all of it: {:?}", end.written);
    }
    println!("\noutput of 256 MiB");
    line("cat file > other", cat.clone());
    line("cat file | runner, until the program ended", ours.clone());
    line("cat file > other, and sync", cat_synced.clone());
    line("cat file | runner, from its start until output and end are synced", ours_synced.clone());
    let share =
        |ours: Vec<f64>, theirs: Vec<f64>| median(ours.iter().zip(theirs).map(|(o, t)| o / t * 100.0).collect());
    goals.add("output into the spool ÷ `cat > file`", Wanted::AtLeast(50.0), share(ours, cat), " %");
    goals.add("the same until it is synced", Wanted::AtLeast(50.0), share(ours_synced, cat_synced), " %");
    Ok(())
}

async fn end_to_end(rounds: usize, home: &Path, file: &Path, bytes: Bytes, goals: &mut Goals) -> Result<()> {
    let serve = Serve::start(home).await?;
    let mut api = serve.api(home).await?;
    let mut reader = api.again(serve.address).await?;
    let first = api.exec(&["true"]).await?;
    api.until(&first.id, |view| view.state == "completed").await?;
    let big = file.to_str().context("a name that is no text")?;
    let (mut plain, mut unread, mut read) = (Vec::new(), Vec::new(), Vec::new());
    let mut late = 0;
    for _ in 0..rounds {
        plain.push(rate(stream(&bytes).await?));
        unread.push(rate(through(&mut api, None, big).await?.0));
        let (time, gone) = through(&mut api, Some(&mut reader), big).await?;
        read.push(rate(time));
        late += gone;
    }
    println!("\n256 MiB to another process, kept there");
    line("plain WebSocket, frames of 128 KiB, not kept", plain);
    line("exec → worker → relay, committed and acknowledged, nobody reads", unread.clone());
    line("the same with a reader that follows", read);
    if late > 0 {
        println!("the reader came too late for {} MB", late / 1_000_000);
    }
    goals.add("output through worker and relay", Wanted::AtLeast(40.0), median(unread), " MB/s");
    Ok(())
}

/// From the request until all is at the relay, and read if somebody reads.
async fn through(api: &mut Api, reader: Option<&mut Api>, big: &str) -> Result<(Duration, u64)> {
    let began = Instant::now();
    let id = api.exec(&["cat", big]).await?.id;
    let gone = match reader {
        Some(reader) => {
            let (length, gone) = reader.read(&id).await?;
            ensure!(length == SIZE as u64, "it read {length} bytes");
            gone
        }
        None => 0,
    };
    api.until(&id, |view| view.state == "completed").await?;
    Ok((began.elapsed(), gone))
}

/// The bytes over one socket, until the other process says that it has them.
async fn stream(bytes: &Bytes) -> Result<Duration> {
    let mut sink = Running::role(&["sink"])?;
    let address: std::net::SocketAddr = sink.hear().await?;
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let (mut socket, _) = tokio_tungstenite::client_async(format!("ws://{address}/"), tcp).await?;
    let began = Instant::now();
    for at in (0..bytes.len()).step_by(FRAME) {
        socket.send(Message::Binary(bytes.slice(at..bytes.len().min(at + FRAME)))).await?;
    }
    socket.next().await.context("the sink closed")??;
    Ok(began.elapsed())
}

/// Takes one socket's bytes, says when it has them all.
pub async fn sink() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    say(&listener.local_addr()?)?;
    let mut socket = tokio_tungstenite::accept_async(listener.accept().await?.0).await?;
    let mut got = 0;
    while got < SIZE {
        got += socket.next().await.context("it closed")??.len();
    }
    Ok(socket.send(Message::text("all")).await?)
}
