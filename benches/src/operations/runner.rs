//! Runners by themselves: started on a folder as the worker does it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use holdfast_core::id::{OperationId, RunId};
use holdfast_core::operation::OnFull;
use holdfast_core::run::{Ask, End, Program, Spec, VERSION};
use holdfast_host::run::{self, Found, Starter};

use crate::table::{Goals, Wanted, mib, short};
use crate::usage;

/// A run that was started.
pub struct Started {
    folder: PathBuf,
    /// The runner's process.
    pub pid: u32,
}

impl Started {
    /// Starts a program in a folder, with all the room it wants for its output.
    pub async fn start(home: &Path, argv: &[&str]) -> Result<Started> {
        let run = RunId::mint(rand::random());
        let folder = run::folder(home, &run, 1);
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a folder's name is no text");
        let spec = Spec {
            version: VERSION,
            operation: OperationId::mint(rand::random()),
            run,
            attempt: 1,
            program: Program::Pipes { argv: argv.iter().map(|&word| word.into()).collect(), stdin: false },
            cwd: text(home)?,
            env: vec![("PATH".into(), std::env::var("PATH")?)],
            timeout: None,
            on_full: OnFull::Wait,
            quota: 1 << 40,
            lease: None,
            socket: text(&run::socket(&folder)?)?,
        };
        run::prepare(&folder, &spec)?;
        let binary = std::env::current_exe()?.with_file_name("holdfast");
        Starter::of(vec![binary.into(), "run".into()]).start(&folder).await?;
        let pid = match run::look(&folder)? {
            Found::Lives(identity) | Found::Gone { identity, .. } => identity.pid,
            other => bail!("no runner: {other:?}"),
        };
        Ok(Started { folder, pid })
    }

    /// Waits for the end, which is on disk with all output then.
    pub async fn end(&self) -> Result<End> {
        loop {
            match run::look(&self.folder)? {
                Found::Gone { end, .. } => return end.context("no end"),
                Found::Lives(_) => match run::attach(&self.folder).await {
                    Ok(mut attached) => while attached.next().await.is_some() {},
                    Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                },
                other => bail!("{other:?}"),
            }
        }
    }
}

/// What a runner weighs whose program says nothing.
pub async fn memory(goals: &mut Goals) -> Result<()> {
    let home = tempfile::tempdir()?;
    let started = Started::start(home.path(), &["sleep", "1000"]).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let memory = usage::own_memory(started.pid);
    let before = usage::waits(started.pid);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let wakeups = usage::wakeups(started.pid, &before) as f64 / 5.0;
    run::attach(&started.folder).await?.asker().ask(&Ask::Kill {}).await?;
    ensure!(started.end().await?.killed, "it was not killed");
    println!(
        "\nan idle runner: RSS {} MB, PSS {} MB, {} wake-ups/s",
        short(mib(memory.rss)),
        short(mib(memory.pss)),
        short(wakeups)
    );
    goals.add("an idle runner: PSS", Wanted::AtMost(4.0), mib(memory.pss), " MB");
    Ok(())
}
