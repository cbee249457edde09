//! The drill: proves the promise on the user's own set-up.
//!
//! It calls itself through the relay, cuts its own link in the middle, lets it recover, and tells each step with its time
//! and what came of it. The call is an internal one that only waits.

use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use holdfast_core::id::CallId;
use holdfast_core::limits;
use holdfast_core::status::{LinkState, Step, TimelineEntry};
use holdfast_core::wire::TOKEN_HEADER;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::engines::{CommandError, Running};
use crate::http_client;

/// The tool of the drill's call.
const TOOL: &str = "drill_wait";

/// What kind of drill.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct DrillOrder {
    /// For how long the link is cut, in milliseconds; at most twice [`limits::DRILL_WAIT_MAX`], less a second.
    pub cut_ms: u64,
    /// Also when real calls are in flight.
    #[serde(default)]
    #[cfg_attr(feature = "ts", ts(optional = nullable))]
    pub force: bool,
}

/// One line of a drill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum DrillLine {
    /// Something happened.
    Step {
        /// What: `asked`, `cut`, `answered`, or a step of the call.
        step: String,
        /// Milliseconds since the drill began.
        at_ms: u64,
        /// The same in words.
        text: String,
    },
    /// The end.
    Verdict {
        /// What came of it.
        verdict: Verdict,
        /// Whether the promise was kept.
        passed: bool,
        /// The drill's call.
        call: Option<CallId>,
        /// The cut, in milliseconds.
        cut_ms: u64,
        /// From the end of the cut to the answer, in milliseconds.
        recovered_ms: Option<u64>,
        /// From asking to the answer, in milliseconds.
        took_ms: u64,
        /// One sentence.
        text: String,
    },
}

/// What came of a drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call ran once and its result arrived once.
    DeliveredOnce,
    /// The result did not arrive, and that was said honestly.
    Reported,
    /// Neither.
    Failed,
}

/// Begins a drill; the lines come as things happen, the verdict last.
pub(crate) async fn run(
    running: Arc<Running>,
    order: DrillOrder,
) -> Result<impl Stream<Item = DrillLine> + use<>, CommandError> {
    let longest = (limits::DRILL_WAIT_MAX - LEAD) * 2;
    if Duration::from_millis(order.cut_ms) > longest {
        return Err(CommandError::new("invalid_request", format!("a drill cuts at most {} s", longest.as_secs())));
    }
    if running.link.is_none() {
        let text = "this is a relay alone; the drill runs at the machines that join it";
        return Err(CommandError::new("not_found", text));
    }
    let now = running.hub.snapshot();
    if now.relay.state != LinkState::Healthy {
        return Err(CommandError::new("unavailable", "the link is not up now, so there is nothing to cut"));
    }
    if now.calls.pending > 0 && !order.force {
        let text = match now.calls.pending {
            1 => "1 call is running; let it end first, or cut anyway (--force)".to_owned(),
            some => format!("{some} calls are running; let them end first, or cut anyway (--force)"),
        };
        return Err(CommandError::new("busy", text));
    }
    let (lines, coming) = mpsc::channel(limits::DRILL_LINES);
    tokio::spawn(async move {
        let mut drill = Drill { began: Instant::now(), lines, call: None, seen: Vec::new() };
        let verdict = drill.run(&running, order).await;
        // The one who asked may have left.
        let _ = drill.lines.send(verdict).await;
    });
    Ok(futures_util::stream::unfold(coming, |mut coming| async move { Some((coming.recv().await?, coming)) }))
}

/// From the start of the call to the cut.
const LEAD: Duration = Duration::from_millis(500);

struct Drill {
    began: Instant,
    lines: mpsc::Sender<DrillLine>,
    call: Option<CallId>,
    seen: Vec<Step>,
}

impl Drill {
    async fn run(&mut self, running: &Arc<Running>, order: DrillOrder) -> DrillLine {
        let cut = Duration::from_millis(order.cut_ms);
        // It ends while the link is away, so that its result has to be kept.
        let wait = LEAD + cut / 2;
        let (_, mut steps) = running.hub.steps(u64::MAX);
        let Some(answer) = ask(running, wait) else {
            return self.verdict(Verdict::Failed, order, None, "this process has no link");
        };
        self.tell("asked", format!("a call of {} s was sent to the relay", wait.as_secs_f32())).await;
        let mut answer = std::pin::pin!(answer);
        let mut answered = None;
        let mut cut_at = None;
        let mut healed_at = None;
        let give_up = self.began + wait + cut + limits::GRACE + limits::QUEUE_WAIT;
        let mut end_at = give_up;
        loop {
            tokio::select! {
                entry = steps.recv() => {
                    if let Ok(entry) = entry && self.step(&entry).await && entry.step == Step::Received {
                        cut_at = Some(Instant::now() + LEAD);
                    }
                }
                () = at(cut_at) => {
                    cut_at = None;
                    healed_at = Some(Instant::now() + cut);
                    if let Some(link) = &running.link {
                        link.cut(cut);
                    }
                    if let Some(worker) = &running.worker {
                        worker.cut(cut).await;
                    }
                    self.tell("cut", format!("the link is cut for {} s", cut.as_secs_f32())).await;
                }
                got = answer.as_mut(), if answered.is_none() => {
                    self.tell("answered", "the relay answered the call".into()).await;
                    answered = Some((got, Instant::now()));
                    // The acknowledgement may still be on its way.
                    end_at = Instant::now() + limits::STOP_ACK_WAIT;
                }
                () = tokio::time::sleep_until(end_at) => break,
            }
            if answered.is_some() && self.seen.contains(&Step::Delivered) {
                break;
            }
        }
        let recovered = match (&answered, healed_at) {
            (Some((_, at)), Some(healed)) => Some(at.saturating_duration_since(healed)),
            _ => None,
        };
        let (verdict, text) = self.judge(answered.map(|(answer, _)| answer), healed_at.is_some());
        self.verdict(verdict, order, recovered, &text)
    }

    fn judge(&self, answer: Option<Result<Answer, String>>, was_cut: bool) -> (Verdict, String) {
        let times = |step| self.seen.iter().filter(|s| **s == step).count();
        match answer {
            Some(Ok(Answer::Ours)) if !was_cut => (Verdict::Failed, "the call ended before the link was cut".into()),
            Some(Ok(Answer::Ours)) if (times(Step::Received), times(Step::Finished)) == (1, 1) => {
                (Verdict::DeliveredOnce, "the call ran one time and its result arrived".into())
            }
            Some(Ok(Answer::Ours)) => {
                (Verdict::Failed, "the result arrived, but the call did not run exactly once".into())
            }
            Some(Ok(Answer::Error(code))) => {
                (Verdict::Reported, format!("the relay reported {code} instead of a result"))
            }
            Some(Ok(Answer::Strange)) => (Verdict::Failed, "an answer came that is not this call's".into()),
            Some(Err(why)) => (Verdict::Failed, why),
            None => (Verdict::Failed, "no answer came".into()),
        }
    }

    /// Takes a step of the timeline if it is of the drill's call.
    async fn step(&mut self, entry: &TimelineEntry) -> bool {
        let ours = match &self.call {
            Some(call) => entry.call.as_ref() == Some(call),
            None => &*entry.tool == TOOL && entry.step == Step::Received,
        };
        if ours {
            self.call = self.call.take().or_else(|| entry.call.clone());
            self.seen.push(entry.step);
            let (name, text) = match entry.step {
                Step::Received => ("received", "this machine received the call and runs it"),
                Step::Detached => ("detached", "the link is gone; the call runs on, detached"),
                Step::Rebound => ("rebound", "the link is back and proven; the call is bound to it again"),
                Step::Finished => ("finished", "the call ended; its result is kept"),
                Step::Sent => ("sent", "the result was sent"),
                Step::Delivered => ("delivered", "the relay confirmed the result"),
                Step::Cancelled => ("cancelled", "the call was stopped"),
                Step::Lost => ("lost", "the relay no longer waits for the call"),
                // Of no call.
                Step::Noticed => return false,
            };
            self.tell(name, text.into()).await;
        }
        ours
    }

    async fn tell(&self, step: &str, text: String) {
        let line = DrillLine::Step { step: step.into(), at_ms: ms(self.began.elapsed()), text };
        // The one who asked may have left; the drill ends all the same.
        let _ = self.lines.send(line).await;
    }

    fn verdict(&self, verdict: Verdict, order: DrillOrder, recovered: Option<Duration>, text: &str) -> DrillLine {
        DrillLine::Verdict {
            verdict,
            passed: verdict == Verdict::DeliveredOnce,
            call: self.call.clone(),
            cut_ms: order.cut_ms,
            recovered_ms: recovered.map(ms),
            took_ms: ms(self.began.elapsed()),
            text: text.into(),
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

enum Answer {
    Ours,
    Strange,
    Error(String),
}

/// Asks the relay for the call, as its client; `None` without a link.
fn ask(running: &Running, wait: Duration) -> Option<impl Future<Output = Result<Answer, String>> + use<>> {
    let (relay, token, ca_file) = running.link.as_ref()?.caller()?;
    let url = relay.join("api/drill").ok()?;
    let echo = format!("{:032x}", rand::random::<u128>());
    let patience = wait + limits::GRACE + limits::QUEUE_WAIT;
    Some(async move {
        let client = http_client::to_relay(ca_file.as_deref()).await.map_err(|e| e.to_string())?;
        let request = client
            .post(url)
            .header(TOKEN_HEADER, token.expose_secret())
            .timeout(patience)
            .json(&json!({"wait_ms": ms(wait), "echo": echo}));
        let response = request.send().await.map_err(|e| format!("the relay cannot be asked: {}", e.without_url()))?;
        let status = response.status();
        let body: Value = response.json().await.unwrap_or_default();
        if !status.is_success() {
            let why = body["code"].as_str().unwrap_or("no drill there");
            return Err(format!("the relay refused the drill: {status}, {why}"));
        }
        Ok(match (&body["error"]["code"], body["result"]["echo"] == echo) {
            (Value::String(code), _) => Answer::Error(code.clone()),
            (_, true) => Answer::Ours,
            _ => Answer::Strange,
        })
    })
}
