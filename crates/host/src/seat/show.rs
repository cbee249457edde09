//! What readers see of the seat: status, warnings, and lines in the log.

use std::sync::Arc;
use std::time::Duration;

use holdfast_core::limits;
use holdfast_core::seat::{Advert, SeatView, Told};
use holdfast_core::status::{ChannelNotice, ForwarderStatus, SeatHolder, SeatState, SeatStatus, UnixMs, WarningCode};
use holdfast_core::time::Now;
use tokio::sync::watch;

use super::SeatOptions;
use crate::forwarder::SetAside;
use crate::status_hub::{StatusHub, unix_ms};

/// What is wrong with the seat, if anything, in a fixed order.
type Warnings = [(WarningCode, Option<String>); 6];

/// What was shown last, and who reads it.
#[derive(Debug)]
pub(super) struct Shown {
    /// The calendar at boot time zero.
    calendar: UnixMs,
    service: String,
    bot: String,
    /// Who holds the seat while this process does not, and when that was looked up.
    other: Option<Advert>,
    looked_at: Option<Duration>,
    /// The last one that was known.
    generation: u64,
    warned: Option<Warnings>,
    passing: Option<Arc<ForwarderStatus>>,
    hub: Arc<StatusHub>,
    status: watch::Sender<Arc<SeatStatus>>,
}

fn ms(time: Duration) -> UnixMs {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Shown {
    pub(super) fn new(
        now: Now,
        options: &SeatOptions,
        view: &SeatView,
        hub: Arc<StatusHub>,
    ) -> (Shown, watch::Receiver<Arc<SeatStatus>>) {
        let (service, bot) = (options.service.clone(), options.bot.clone());
        let calendar = unix_ms().saturating_sub(ms(now.boot));
        let (status, reader) = watch::channel(Arc::new(status_of(&service, &bot, calendar, view)));
        let shown = Shown {
            calendar,
            service,
            bot,
            other: None,
            looked_at: None,
            generation: 0,
            warned: None,
            passing: None,
            hub,
            status,
        };
        (shown, reader)
    }

    /// Whether it is time to look who else holds the seat.
    pub(super) fn wonders(&mut self, now: Now, view: &SeatView) -> bool {
        if view.generation.is_some() {
            (self.other, self.looked_at) = (None, None);
            return false;
        }
        self.looked_at.is_none_or(|at| now.boot >= at + limits::SEAT_LOOK)
    }

    /// Who holds it is looked up anew.
    pub(super) fn forgets(&mut self) {
        self.looked_at = None;
    }

    /// Said once, when it happens: in the log and in the timeline.
    pub(super) fn tell(&self, told: &Told) {
        let bot = &self.bot;
        let (notice, text) = match told {
            Told::Acquired { generation } => {
                tracing::info!(generation, "this process has the seat and speaks for the bot");
                (ChannelNotice::Acquired, format!("this process speaks for bot {bot}, generation {generation}"))
            }
            Told::Superseded { generation } => {
                tracing::warn!(generation, "another process has the seat now");
                (ChannelNotice::Superseded, format!("another process has the seat of bot {bot} now"))
            }
            Told::Failed { reason } => {
                tracing::warn!("the seat was given up: {reason}");
                (ChannelNotice::Failed, format!("the seat of bot {bot} was given up: {reason}"))
            }
        };
        self.hub.noticed(notice, &text);
    }

    /// What a forwarder has to say.
    pub(super) fn noticed(&self, notice: ChannelNotice, text: &str) {
        self.hub.noticed(notice, text);
    }

    /// The seat's store was damaged. That stands until the channel is set up anew, or the process ends.
    pub(super) fn set_aside(&self, SetAside { to, waited }: &SetAside) {
        let waited = match waited {
            Some((out, inside)) => format!("{out} messages waited to be posted and {inside} for their agents"),
            None => "how many messages waited cannot be told".to_owned(),
        };
        let text = format!(
            "what waited in bot {}'s channels is forgotten, and transcripts are followed from their ends on: its store was \
             damaged, and is kept as {}; {waited}",
            self.bot,
            to.display()
        );
        self.hub.warn(WarningCode::ChannelSetAside, text);
    }

    pub(super) fn learns(&mut self, now: Now, other: Option<Advert>) {
        (self.other, self.looked_at) = (other, Some(now.boot));
    }

    /// Shows it to everybody who reads, if it differs. `mine` is this process's advert while it holds the seat.
    pub(super) fn show(&mut self, view: &SeatView, mine: Option<&Advert>, passing: &Arc<ForwarderStatus>) {
        let mut status = status_of(&self.service, &self.bot, self.calendar, view);
        (status.channel, status.transcript) = named(passing);
        status.waiting = passing.bindings.iter().map(|binding| binding.waiting_out).sum();
        status.last_sent = passing.bindings.iter().filter_map(|binding| binding.last_sent).max();
        let holder = mine.or(self.other.as_ref());
        status.holder = holder.map(|advert| SeatHolder {
            this: mine.is_some(),
            instance: advert.instance.to_string(),
            pid: advert.pid,
            host: advert.host.clone(),
            since: advert.since,
        });
        self.generation = holder.map_or(self.generation, |advert| advert.generation);
        status.generation = self.generation;
        let warnings = warnings(&status, view.used_elsewhere, passing);
        if self.passing.as_ref() != Some(passing) {
            self.hub.channels(Arc::clone(passing));
            self.passing = Some(Arc::clone(passing));
        }
        if **self.status.borrow() == status && self.warned.as_ref() == Some(&warnings) {
            return;
        }
        for (code, text) in &warnings {
            self.hub.hold(*code, text.clone());
        }
        self.hub.seat(status.clone());
        self.warned = Some(warnings);
        self.status.send_replace(Arc::new(status));
    }
}

fn status_of(service: &str, bot: &str, calendar: UnixMs, view: &SeatView) -> SeatStatus {
    let at = |boot: Duration| calendar.saturating_add(ms(boot));
    SeatStatus {
        state: view.state,
        since: at(view.since),
        backend: service.into(),
        bot: bot.into(),
        holder: None,
        generation: view.generation.unwrap_or_default(),
        channel: None,
        transcript: None,
        waiting: 0,
        last_sent: None,
        reason: view.reason.clone(),
        code: view.code,
        next_try_at: view.next_try.map(at),
        frozen: view.frozen,
        waits: view.waits,
    }
}

fn warnings(status: &SeatStatus, used_elsewhere: bool, passing: &ForwarderStatus) -> Warnings {
    let bot = &status.bot;
    let reason = status.reason.as_deref().unwrap_or("no reason is known");
    let failed = (status.state == SeatState::Failed).then(|| format!("bot {bot} was given up: {reason}"));
    let frozen = status.frozen.then(|| {
        let who = status.holder.as_ref().map_or("its holder".into(), |h| format!("process {} on {}", h.pid, h.host));
        format!("{who} has the seat of bot {bot} and does not answer; `holdfast seat take --force` ends it")
    });
    let elsewhere = used_elsewhere.then(|| format!("somebody else uses bot {bot}; its messages may go there"));
    let parked = passing.bindings.iter().find_map(|binding| {
        let why = binding.parked.as_deref()?;
        Some(format!("nothing is posted for {}: {why}; `holdfast channel retry` tries again", binding.name))
    });
    let troubles = passing.troubles.len();
    let held = (troubles > 0).then(|| {
        format!("{troubles} messages were refused or are perhaps posted; `holdfast channel retry` sends them again")
    });
    let waits = status.code.filter(|_| status.next_try_at.is_some());
    let waits = waits.map(|code| format!("{reason} ({}); it is tried again by itself", code.as_str()));
    let stuck = passing.stuck.clone().or(waits);
    let stuck = stuck.map(|why| format!("nothing passes through bot {bot}'s channels: {why}"));
    [
        (WarningCode::SeatFailed, failed),
        (WarningCode::SeatFrozen, frozen),
        (WarningCode::BotUsedElsewhere, elsewhere),
        (WarningCode::ChannelParked, parked),
        (WarningCode::MessagesHeld, held),
        (WarningCode::ChannelStuck, stuck),
    ]
}

/// The channel and the transcript that an advert names: the first that has both, else the first.
pub(super) fn named(passing: &ForwarderStatus) -> (Option<String>, Option<String>) {
    let mut bindings = passing.bindings.iter();
    let first = bindings.clone().find(|binding| binding.transcript.is_some()).or_else(|| bindings.next());
    match first {
        Some(binding) => {
            let channel = binding.channel_name.clone().unwrap_or_else(|| binding.channel.clone());
            (Some(channel), binding.transcript.clone())
        }
        None => (None, None),
    }
}
