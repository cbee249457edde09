//! The rules of the notices, in virtual time.

use proptest::prelude::*;

use super::*;
use crate::desktop::tests::{any_snapshot, consent, embedded, question, remote, seat};
use crate::status::{Outage, SeatState, SeatStatus};

const S: Duration = Duration::from_secs(1);

struct Rig {
    now: Now,
    notices: Notices,
    snapshot: StatusSnapshot,
}

impl Rig {
    /// A process that starts now, and is connected at once.
    fn new() -> Rig {
        let now = Now::at(S * 1000);
        let mut rig = Rig { now, notices: Notices::new(now, NoticeSwitches::default()), snapshot: remote() };
        rig.shown();
        rig
    }

    /// The same when it is not quiet any more.
    fn awake() -> Rig {
        let mut rig = Rig::new();
        assert_eq!(rig.wait(25), []);
        rig
    }

    fn shown(&mut self) -> Vec<Notice> {
        self.input(|snapshot| NoticeInput::Snapshot(snapshot))
    }

    fn input(&mut self, input: impl Fn(&Arc<StatusSnapshot>) -> NoticeInput<'_>) -> Vec<Notice> {
        let snapshot = Arc::new(self.snapshot.clone());
        self.notices.handle(self.now, input(&snapshot));
        std::iter::from_fn(|| self.notices.poll_output()).collect()
    }

    /// A new state.
    fn see(&mut self, change: impl FnOnce(&mut StatusSnapshot)) -> Vec<Notice> {
        change(&mut self.snapshot);
        self.shown()
    }

    fn link(&mut self, state: LinkState) -> Vec<Notice> {
        self.see(|s| s.relay.state = state)
    }

    fn seat(&mut self, state: SeatState, generation: u64) -> Vec<Notice> {
        self.see(|s| s.seat = Some(SeatStatus { generation, ..seat(state) }))
    }

    /// Lets seconds pass and returns what was told, with the second in which it was.
    fn wait(&mut self, seconds: u32) -> Vec<(u32, Notice)> {
        let end = self.now.plus(S * seconds);
        let start = self.now;
        let mut told = Vec::new();
        while let Some(due) = self.notices.poll_timeout(self.now).filter(|due| self.now.boot + *due <= end.boot) {
            self.now = self.now.plus(due);
            self.notices.handle_timeout(self.now);
            let second = (self.now.boot - start.boot).as_secs() as u32;
            told.extend(std::iter::from_fn(|| self.notices.poll_output()).map(|notice| (second, notice)));
        }
        self.now = end;
        told
    }

    fn sleep(&mut self, seconds: u32) {
        self.now = self.now.slept(S * seconds);
    }
}

fn notice(kind: NoticeKind, title: &str, body: &str) -> Notice {
    Notice { kind, title: title.into(), body: body.into() }
}

fn kinds(told: &[(u32, Notice)]) -> Vec<(u32, NoticeKind)> {
    told.iter().map(|(second, notice)| (*second, notice.kind)).collect()
}

#[test]
fn an_outage_is_told_once_after_30_s_and_its_end_with_what_it_saved() {
    let mut rig = Rig::awake();
    rig.see(|s| {
        s.relay.state = LinkState::Blip;
        s.relay.cause = Some("connection refused".into());
        s.calls.pending = 2;
        s.calls.detached = 2;
    });
    assert_eq!(rig.wait(10), []);
    assert_eq!(rig.link(LinkState::Outage), []);
    let body = "Connection refused. Holdfast keeps trying. 2 calls keep running; their results will be kept.";
    assert_eq!(rig.wait(600), [(20, notice(NoticeKind::Outage, "No connection to relay.example", body))]);
    assert_eq!(rig.link(LinkState::Recovering), []);
    rig.snapshot.outages =
        vec![Outage { started_at: 0, ended_at: Some(1), cause: None, calls_saved: 2, calls_lost: 0 }];
    let body = "The connection was down for 10 min 10 s. 2 calls completed.";
    let recovered = notice(NoticeKind::Recovered, "Connected to relay.example again", body);
    assert_eq!(rig.link(LinkState::Healthy), [recovered]);
    assert_eq!(rig.wait(600), []);
}

#[test]
fn a_short_outage_and_its_end_are_told_nobody() {
    let mut rig = Rig::awake();
    rig.link(LinkState::Blip);
    rig.wait(10);
    rig.link(LinkState::Outage);
    assert_eq!(rig.wait(19), []);
    assert_eq!(rig.link(LinkState::Recovering), []);
    assert_eq!(rig.wait(5), [], "it is about to be over");
    assert_eq!(rig.link(LinkState::Healthy), []);
    assert_eq!(rig.wait(3600), []);
}

#[test]
fn a_link_that_is_stopped_by_a_person_is_no_outage() {
    let mut rig = Rig::awake();
    rig.link(LinkState::Outage);
    rig.link(LinkState::Stopped);
    assert_eq!(rig.wait(600), []);
    assert_eq!(rig.link(LinkState::Healthy), []);
}

#[test]
fn nothing_is_told_for_20_s_after_the_start_and_what_still_stands_is_told_then() {
    let mut rig = Rig::new();
    rig.see(|s| {
        s.consents = vec![consent("ChatGPT"), consent("Claude")];
        s.questions = vec![question("a", Some("Codex"))];
        s.health = vec![WarningCode::RelayFailed.warning(1, "address in use")];
    });
    assert_eq!(rig.wait(10), []);
    rig.see(|s| {
        s.consents.remove(0);
        s.questions.clear();
    });
    let told = rig.wait(60);
    assert_eq!(kinds(&told), [(10, NoticeKind::StartFailed), (10, NoticeKind::Consent)]);
    assert_eq!(told[1].1.title, "Claude wants access");
}

#[test]
fn it_is_quiet_for_20_s_after_a_wake_too() {
    let mut rig = Rig::awake();
    rig.sleep(3600);
    assert_eq!(rig.see(|s| s.consents = vec![consent("ChatGPT")]), []);
    assert_eq!(kinds(&rig.wait(60)), [(20, NoticeKind::Consent)]);
}

#[test]
fn a_night_with_a_closed_lid_is_no_outage() {
    let mut rig = Rig::awake();
    rig.link(LinkState::Blip);
    rig.wait(5);
    rig.sleep(8 * 3600);
    assert_eq!(rig.link(LinkState::Outage), []);
    assert_eq!(rig.wait(22), []);
    assert_eq!(rig.link(LinkState::Healthy), []);
    assert_eq!(rig.wait(60), []);
}

#[test]
fn an_end_that_did_not_last_until_it_could_be_told_is_none() {
    let mut rig = Rig::awake();
    rig.link(LinkState::Outage);
    assert_eq!(kinds(&rig.wait(60)), [(30, NoticeKind::Outage)]);
    rig.sleep(60);
    assert_eq!(rig.link(LinkState::Healthy), []);
    rig.wait(5);
    assert_eq!(rig.link(LinkState::Blip), []);
    assert_eq!(rig.wait(55), [], "people think it is away, and it is");
    let told = notice(NoticeKind::Recovered, "Connected to relay.example again", "The connection was down for 3 min.");
    assert_eq!(rig.link(LinkState::Healthy), [told]);
}

#[test]
fn lost_calls_are_told_even_in_the_quiet_and_each_loss_once() {
    let mut rig = Rig::new();
    let lost = |at, text: &str| vec![WarningCode::CallsLost.warning(at, text)];
    let told = notice(NoticeKind::CallsLost, "Calls were lost", "The outcome of 2 calls is not known.");
    assert_eq!(rig.see(|s| s.health = lost(5, "the outcome of 2 calls is not known")), [told]);
    assert_eq!(rig.shown(), []);
    assert_eq!(rig.see(|s| s.health = lost(6, "the outcome of 1 call is not known")).len(), 1);
    assert_eq!(rig.see(|s| s.health.clear()), []);
    assert_eq!(rig.wait(60), []);
}

#[test]
fn losses_above_the_bound_of_an_hour_are_told_together_when_it_is_over() {
    let mut rig = Rig::awake();
    let mut told = 0;
    for at in 0..10 {
        told += rig.see(|s| s.health = vec![WarningCode::CallsLost.warning(at, "x")]).len();
    }
    assert_eq!(told, limits::NOTICES_PER_HOUR);
    rig.see(|s| s.health.clear());
    let several = notice(NoticeKind::CallsLost, "Calls were lost", "It is not known whether several calls finished.");
    assert_eq!(rig.wait(7200), [(3600, several)]);
}

#[test]
fn a_client_that_asks_to_be_let_in_is_told_once_and_several_together() {
    let mut rig = Rig::awake();
    let body = "It will return to chatgpt.com. Open Holdfast and type the code shown in the browser. \
                If you did not start this, ignore it.";
    let one = notice(NoticeKind::Consent, "ChatGPT wants access", body);
    assert_eq!(rig.see(|s| s.consents = vec![consent("ChatGPT")]), [one]);
    assert_eq!(rig.shown(), []);
    let two = notice(NoticeKind::Consent, "2 clients want access", "Open Holdfast to see who they are.");
    assert_eq!(rig.see(|s| s.consents.extend([consent("Claude"), consent("Codex")])), [two]);
    assert_eq!(rig.see(|s| s.consents.clear()), []);
}

#[test]
fn a_call_that_asks_is_told_without_what_it_would_run() {
    let mut rig = Rig::awake();
    let body = "Open Holdfast to allow or deny it.";
    let told = notice(NoticeKind::Question, "ChatGPT wants to use run_process", body);
    assert_eq!(rig.see(|s| s.questions = vec![question("a", Some("ChatGPT"))]), [told]);
    assert_eq!(rig.shown(), []);
    let told = notice(NoticeKind::Question, "A client wants to use run_process", "Open Holdfast to allow or deny it.");
    assert_eq!(rig.see(|s| s.questions.push(question("b", None))), [told]);
}

#[test]
fn the_seat_is_told_once_for_each_generation_and_not_when_it_connects_again() {
    let mut rig = Rig::awake();
    assert_eq!(rig.seat(SeatState::Claiming, 3), []);
    assert_eq!(rig.seat(SeatState::Connecting, 4), []);
    let told = notice(NoticeKind::Seat, "This machine has the seat", "It runs the bot now.");
    assert_eq!(rig.seat(SeatState::Serving, 4), [told]);
    assert_eq!(rig.seat(SeatState::Connecting, 4), []);
    assert_eq!(rig.seat(SeatState::Serving, 4), []);
    assert_eq!(rig.seat(SeatState::Draining, 4), []);
    assert_eq!(rig.seat(SeatState::Off, 4), [], "let go by a person");
    assert_eq!(rig.seat(SeatState::Serving, 6).len(), 1);
}

#[test]
fn a_seat_that_was_held_before_the_first_snapshot_is_not_news() {
    let now = Now::at(S * 1000);
    let mut rig = Rig { now, notices: Notices::new(now, NoticeSwitches::default()), snapshot: remote() };
    assert_eq!(rig.seat(SeatState::Serving, 4), []);
    assert_eq!(rig.wait(60), []);
}

#[test]
fn a_seat_that_another_process_took_is_told_once() {
    let mut rig = Rig::awake();
    rig.seat(SeatState::Serving, 4);
    let off = |s: &mut StatusSnapshot| {
        s.seat = Some(SeatStatus { reason: Some("process 77 took the seat".into()), ..seat(SeatState::Off) });
    };
    let told = notice(NoticeKind::Seat, "Another process has the seat", "Process 77 took the seat.");
    assert_eq!(rig.see(off), [told]);
    assert_eq!(rig.shown(), []);
}

#[test]
fn a_seat_that_was_given_up_is_told_once_and_so_is_a_holder_that_does_not_answer() {
    let mut rig = Rig::awake();
    rig.seat(SeatState::Connecting, 4);
    let failed = |s: &mut StatusSnapshot| {
        s.seat = Some(SeatStatus { reason: Some("the token is not valid".into()), ..seat(SeatState::Failed) });
    };
    let told = notice(NoticeKind::Seat, "Gave up the seat", "The token is not valid.");
    assert_eq!(rig.see(failed), [told]);
    assert_eq!(rig.shown(), []);
    let frozen = |s: &mut StatusSnapshot| s.seat = Some(SeatStatus { frozen: true, ..seat(SeatState::Claiming) });
    assert_eq!(rig.see(frozen)[0].title, "The process that holds the seat is not responding");
    assert_eq!(rig.shown(), []);
    assert_eq!(rig.see(failed).len(), 1, "a new failure");
}

#[test]
fn a_device_that_is_refused_is_told_without_waiting() {
    let mut rig = Rig::awake();
    rig.snapshot.relay.cause = Some("the relay revoked this device".into());
    let body = "The relay revoked this device. Open Holdfast to sign in.";
    let told = notice(NoticeKind::Outage, "This machine is not signed in to relay.example", body);
    assert_eq!(rig.link(LinkState::SignInNeeded), [told]);
    assert_eq!(rig.wait(600), []);
    assert_eq!(rig.link(LinkState::Healthy)[0].kind, NoticeKind::Recovered);
}

#[test]
fn a_failed_start_is_told_each_time_it_fails() {
    let mut rig = Rig::awake();
    let failed = |at| {
        move |s: &mut StatusSnapshot| {
            s.health = vec![WarningCode::StartFailed.warning(at, "another Holdfast uses this data folder")];
        }
    };
    let body = "Another Holdfast uses this data folder.";
    assert_eq!(rig.see(failed(1)), [notice(NoticeKind::StartFailed, "Holdfast could not start", body)]);
    assert_eq!(rig.shown(), []);
    assert_eq!(rig.see(failed(2)).len(), 1);
}

#[test]
fn closing_the_window_is_explained_once_and_at_once() {
    let mut rig = Rig::new();
    let body = "It stays in the tray. To end it, choose Quit in the tray’s menu.";
    let hint = notice(NoticeKind::StillRunning, "Holdfast is still running", body);
    assert_eq!(rig.input(|_| NoticeInput::WindowClosed), [hint]);
    assert_eq!(rig.input(|_| NoticeInput::WindowClosed), []);
}

#[test]
fn what_is_switched_off_is_told_neither_now_nor_later() {
    let mut rig = Rig::awake();
    let off = NoticeSwitches {
        outages: false,
        calls_lost: false,
        consents: false,
        questions: false,
        seat: false,
        start_failed: false,
        still_running: false,
    };
    rig.input(|_| NoticeInput::Switches(off));
    let all = |s: &mut StatusSnapshot| {
        s.consents = vec![consent("ChatGPT")];
        s.questions = vec![question("a", None)];
        s.relay.state = LinkState::Outage;
        s.seat = Some(seat(SeatState::Serving));
        let codes = [WarningCode::StartFailed, WarningCode::CallsLost];
        s.health = codes.map(|code| code.warning(1, "x")).into();
    };
    assert_eq!(rig.see(all), []);
    assert_eq!(rig.input(|_| NoticeInput::WindowClosed), []);
    assert_eq!(rig.wait(60), []);
    assert_eq!(rig.input(|_| NoticeInput::Switches(NoticeSwitches::default())), []);
    assert_eq!(rig.wait(60), []);
}

#[test]
fn an_embedded_relay_is_named_as_what_it_is() {
    let mut rig = Rig::awake();
    rig.snapshot = embedded();
    rig.link(LinkState::Outage);
    let body = "Holdfast keeps trying.";
    let told = notice(NoticeKind::Outage, "No connection to the relay on this machine", body);
    assert_eq!(rig.wait(60), [(30, told)]);
}

/// Everything that happens to a link, for how many seconds each.
fn weather() -> impl Strategy<Value = Vec<(LinkState, u32, bool)>> {
    use LinkState::*;
    let states = vec![Stopped, Connecting, Healthy, Healthy, Blip, Outage, Recovering, SignInNeeded, Incompatible];
    proptest::collection::vec((proptest::sample::select(states), 0..200u32, any::<bool>()), 0..200)
}

proptest! {
    /// The times of all notices within any hour, by kind.
    #[test]
    fn a_flapping_link_tells_at_most_its_number_in_any_hour(weather in weather()) {
        let mut rig = Rig::new();
        let mut told: BTreeMap<NoticeKind, Vec<Duration>> = BTreeMap::new();
        for (at, (state, seconds, loses)) in weather.into_iter().enumerate() {
            let start = rig.now.boot;
            if loses {
                rig.snapshot.health = vec![WarningCode::CallsLost.warning(at as u64, "x")];
            }
            let now = rig.link(state).into_iter().map(|notice| (0, notice)).collect::<Vec<_>>();
            for (second, notice) in now.into_iter().chain(rig.wait(seconds)) {
                told.entry(notice.kind).or_default().push(start + S * second);
            }
        }
        for (kind, times) in told {
            for hour in times.windows(limits::NOTICES_PER_HOUR + 1) {
                prop_assert!(hour[limits::NOTICES_PER_HOUR] - hour[0] >= HOUR - S, "{kind:?}: {hour:?}");
            }
        }
    }

    /// An outage is told before its end is, and never twice in a row.
    #[test]
    fn an_end_is_told_only_after_its_outage(weather in weather()) {
        let mut rig = Rig::new();
        let mut open = false;
        for (state, seconds, _) in weather {
            let told = rig.link(state).into_iter().chain(rig.wait(seconds).into_iter().map(|(_, notice)| notice));
            for notice in told.collect::<Vec<_>>() {
                match notice.kind {
                    NoticeKind::Outage => open = true,
                    NoticeKind::Recovered => prop_assert!(std::mem::take(&mut open)),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            if state == LinkState::Stopped {
                open = false;
            }
        }
    }

    /// Whatever a snapshot holds, texts are bounded and a state that stays is told once.
    #[test]
    fn any_state_is_told_within_bounds_and_once(snapshot in any_snapshot()) {
        let mut rig = Rig::new();
        rig.snapshot = snapshot;
        rig.shown();
        for (_, notice) in rig.wait(60) {
            prop_assert!(!notice.title.is_empty() && notice.title.chars().count() <= 2 * limits::WORD_MAX + 40);
            prop_assert!(!notice.body.is_empty() && notice.body.chars().count() <= limits::SENTENCE_MAX + 120);
            let steers = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
            prop_assert!(!notice.title.contains(steers) && !notice.body.contains(steers));
        }
        prop_assert_eq!(rig.shown(), []);
        prop_assert_eq!(rig.wait(3599), []);
    }
}
