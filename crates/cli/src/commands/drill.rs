//! `drill`: cuts the link on purpose and shows how a call survives it.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt as _;
use holdfast_host::drill::{DrillLine, DrillOrder, Verdict};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Folders;
use crate::ask::running;
use crate::failure::{Exit, Failure};
use crate::print;

pub async fn drill(folders: &Folders, cut: Duration, force: bool) -> Result<ExitCode, Failure> {
    let holder = running(&folders.dirs()?).await?.ok_or_else(Failure::not_running)?;
    let order = DrillOrder { cut_ms: u64::try_from(cut.as_millis()).unwrap_or(u64::MAX), force };
    let mut lines = Box::pin(holder.long::<DrillLine>("/api/drill", &order).await?);
    let bar = if folders.json || !std::io::stderr().is_terminal() { None } else { Some(spinner()) };
    let mut kept = None;
    while let Some(line) = lines.next().await {
        if folders.json {
            print::json(&line)?;
        }
        match line {
            DrillLine::Step { at_ms, text, .. } => {
                if let Some(bar) = &bar {
                    bar.suspend(|| print::line(&step(at_ms, &text)));
                } else if !folders.json {
                    print::line(&step(at_ms, &text));
                }
            }
            DrillLine::Verdict { verdict, passed, text, recovered_ms, .. } => {
                if let Some(bar) = &bar {
                    bar.finish_and_clear();
                }
                if !folders.json {
                    let recovered = recovered_ms.map(|ms| format!(", {ms} ms after the cut ended")).unwrap_or_default();
                    print::line(&format!("{}: {}{recovered}", words(verdict), print::shown(&text)));
                }
                kept = Some(passed);
            }
        }
    }
    match kept {
        Some(true) => Ok(ExitCode::SUCCESS),
        Some(false) => Ok(Exit::Found.into()),
        None => Err(Failure::plain("the drill ended without a verdict: the process that ran it is gone")),
    }
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::DeliveredOnce => "delivered once",
        Verdict::Reported => "reported",
        Verdict::Failed => "failed",
    }
}

fn step(at_ms: u64, text: &str) -> String {
    format!("{:>8.3} s  {text}", Duration::from_millis(at_ms).as_secs_f64())
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {elapsed_precise}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
