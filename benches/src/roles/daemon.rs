//! A daemon of the library, as the binary hosts it, with one tool more: `echo`.

use std::io::BufRead as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use holdfast_core::code::{Code, ToolError};
use holdfast_core::daemon::Compat;
use holdfast_core::id::InstanceId;
use holdfast_core::policy::{Availability, Policy, Profile};
use holdfast_core::status::{AppStatus, LinkState};
use holdfast_core::tools::{Effect, Place, Timing, Tool};
use holdfast_core::wire::Features;
use holdfast_host::exec::{ExecOptions, Extra, LocalExecutor};
use holdfast_host::link::{self, LinkOptions, Proxies};
use holdfast_host::status_hub::StatusHub;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::say;

/// The link changed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Changed {
    /// To this.
    pub state: LinkState,
    /// When, in microseconds since 1970.
    pub at: u64,
}

/// The time as roles tell it to each other, in microseconds.
pub fn clock() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_micros() as u64)
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(default, borrow)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    delay_ms: Option<u64>,
}

/// What `echo` says to these arguments.
pub fn said(arguments: &RawValue) -> Result<Box<RawValue>> {
    read(arguments).map(|(text, _)| text)
}

fn read(arguments: &RawValue) -> Result<(Box<RawValue>, Option<u64>)> {
    let Arguments { text, delay_ms } = serde_json::from_str(arguments.get())?;
    let text = match text {
        Some(text) => text.to_owned(),
        None => RawValue::from_string("\"\"".into())?,
    };
    Ok((text, delay_ms))
}

fn echo() -> Extra {
    Extra {
        tool: Tool {
            name: "echo",
            title: "Echo",
            description: "Says it again.",
            input: super::relay::schema,
            class: Availability::Always,
            effect: Effect::Reads,
            timing: Timing::Fixed(Duration::from_secs(60)),
            control: false,
            place: Place::Device,
        },
        run: Arc::new(|arguments| {
            Box::pin(async move {
                let not_ours = |_| ToolError::new(Code::InvalidRequest, "not what echo takes");
                let (text, delay) = read(&arguments).map_err(not_ours)?;
                if let Some(delay) = delay {
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                }
                Ok(text)
            })
        }),
    }
}

/// Runs until it is killed. The credential is the first line of stdin; every change of the link is said.
pub async fn run(relay: &str) -> Result<()> {
    let mut token = String::new();
    std::io::stdin().lock().read_line(&mut token)?;
    let folder = tempfile::tempdir()?;
    let (workspace, data_dir) = (folder.path().join("workspace"), folder.path().join("data"));
    std::fs::create_dir_all(&workspace)?;
    std::fs::create_dir_all(&data_dir)?;
    let policy = Policy::of(Profile::Agent, "default");
    let executor = LocalExecutor::open(ExecOptions {
        extra: vec![echo()],
        ..ExecOptions::new(workspace, data_dir.clone(), policy)
    })?;
    let mut instance = [0; 18];
    instance[..8].copy_from_slice(&clock().to_be_bytes());
    let options = LinkOptions {
        relay: relay.parse()?,
        token: token.trim().into(),
        compat: Compat::Holdfast,
        features: Features::all(),
        instance: InstanceId::mint(instance),
        ca_file: None,
        data_dir,
        proxies: Proxies::Direct,
    };
    // The timeline and the status are kept as in the product.
    let hub = StatusHub::new(AppStatus::default());
    let link = link::spawn(options, executor, hub.clone())?;
    hub.set_link(Some(link.status()));
    let mut status = link.status();
    link.start();
    let mut last = None;
    loop {
        let state = status.borrow_and_update().link.state;
        if last.replace(state) != Some(state) {
            say(&Changed { state, at: clock() })?;
        }
        status.changed().await.context("the link ended")?;
    }
}
