//! `seat`: which process speaks for the bot.

use holdfast_core::command::Command as Ask;
use holdfast_core::status::{SeatState, SeatStatus};

use super::told;
use crate::args::{Folders, Seat};
use crate::ask::ask;
use crate::failure::Failure;
use crate::print;

pub async fn seat(folders: &Folders, command: Seat) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    let answer = match command {
        Seat::Show => ask(&dirs, Ask::SeatShow {}).await?,
        Seat::Take { wait, force } => ask(&dirs, Ask::SeatTake { wait, force }).await?,
        Seat::Release => ask(&dirs, Ask::SeatRelease {}).await?,
    };
    let status: SeatStatus = serde_json::from_value(answer.clone())
        .map_err(|_| Failure::plain("the running Holdfast gave no answer that this version understands"))?;
    told(folders, &answer, &sentence(&status))
}

fn sentence(s: &SeatStatus) -> String {
    let bot = format!("{} bot {}", print::shown(&s.backend), print::shown(&s.bot));
    let state = match s.state {
        SeatState::Off => format!("this process does not speak for {bot}"),
        SeatState::Claiming if s.frozen => format!("the holder of {bot} began to let go and does not answer any more"),
        SeatState::Claiming => format!("taking the seat of {bot}"),
        SeatState::Connecting => format!("this process has the seat of {bot} and connects"),
        SeatState::Serving => format!("this process speaks for {bot}, generation {}", s.generation),
        SeatState::Draining => format!("this process finishes and lets go of {bot}"),
        SeatState::Standby if s.waits => format!("this process waits for the seat of {bot}"),
        SeatState::Standby => format!("this process stands by for {bot}"),
        SeatState::Failed => format!("gave up the seat of {bot}"),
    };
    let mut parts = vec![state];
    if let Some(reason) = &s.reason {
        parts.push(print::shown(reason));
    }
    if let Some(other) = s.holder.as_ref().filter(|h| !h.this) {
        let (host, since) = (print::shown(&other.host), print::moment(other.since));
        parts.push(format!("held by process {} on {host} since {since}, generation {}", other.pid, s.generation));
    }
    if s.state == SeatState::Off && s.holder.is_none() {
        parts.push("`holdfast seat take` takes the seat".to_owned());
    }
    if let Some(next) = s.next_try_at {
        parts.push(format!("next try at {}", print::moment(next)));
    }
    if s.waits {
        parts.push("it takes the seat as soon as nobody holds it, `holdfast seat release` ends that".to_owned());
    }
    if s.frozen {
        parts.push("`holdfast seat take --force` ends its process".to_owned());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::status::SeatHolder;

    #[test]
    fn the_seat_is_a_sentence() {
        let mut status = SeatStatus {
            state: SeatState::Serving,
            since: 0,
            backend: "telegram".into(),
            bot: "7".into(),
            holder: None,
            generation: 3,
            channel: None,
            transcript: None,
            waiting: 0,
            last_sent: None,
            reason: None,
            code: None,
            next_try_at: None,
            frozen: false,
            waits: false,
        };
        assert_eq!(sentence(&status), "this process speaks for telegram bot 7, generation 3");
        status.state = SeatState::Off;
        let said = "this process does not speak for telegram bot 7; `holdfast seat take` takes the seat";
        assert_eq!(sentence(&status), said);
        (status.state, status.frozen) = (SeatState::Claiming, true);
        assert!(sentence(&status).contains("--force"));
        (status.state, status.frozen, status.waits) = (SeatState::Standby, false, true);
        let said = "this process waits for the seat of telegram bot 7; it takes the seat as soon as nobody holds it, `holdfast seat release` ends that";
        assert_eq!(sentence(&status), said);
        status.waits = false;
        (status.state, status.reason) = (SeatState::Standby, Some("another process\nholds the seat".into()));
        status.holder = Some(SeatHolder { this: false, instance: "x".into(), pid: 9, host: "laptop".into(), since: 0 });
        let said = sentence(&status);
        assert!(said.starts_with("this process stands by for telegram bot 7; another process\u{fffd}holds the seat"));
        assert!(said.contains("held by process 9 on laptop"), "{said}");
    }
}
