use super::*;
use crate::chat::UserId;
use crate::time::Now;

const S: Duration = Duration::from_secs(1);

fn at(name: &str) -> ChannelId {
    ChannelId::parse(name).unwrap()
}

fn id(text: &str) -> MessageId {
    MessageId::parse(text).unwrap()
}

fn ask() -> Ask {
    Ask {
        request: "abcde".to_owned(),
        channel: at("c1"),
        tool: "Bash".to_owned(),
        description: "Removes the build".to_owned(),
        preview: "rm -r build\nTOKEN=hunter2hunter2".to_owned(),
        left_out: 0,
    }
}

const SHOWN: &str = "🔐 `Bash` needs permission\n`Removes the build`\n```\nrm -r build\nTOKEN=[hidden]\n```";

fn click(button: &str) -> Click {
    Click {
        id: "click".to_owned(),
        message: id("7"),
        channel: at("c1"),
        parent: None,
        direct: false,
        user: UserId::parse("ann").unwrap(),
        name: "Ann".to_owned(),
        button: button.to_owned(),
    }
}

#[derive(Debug)]
struct World {
    now: Now,
    asks: Asks,
    rows: Vec<Row>,
    full: bool,
}

impl World {
    fn new() -> World {
        let mut world = World { now: Now::at(S * 100), asks: Asks::default(), rows: Vec::new(), full: false };
        world.give(Input::Serving(true));
        world
    }

    fn give(&mut self, input: Input) -> Vec<Output> {
        self.asks.handle(self.now, input);
        self.run()
    }

    fn ask(&mut self) -> Vec<Output> {
        self.give(Input::Ask { request: "abcde".to_owned(), ask: Some(ask()) })
    }

    fn pass(&mut self, time: Duration) -> Vec<Output> {
        self.now = self.now.plus(time);
        self.rows.iter_mut().for_each(|row| row.age += time);
        self.asks.handle_timeout(self.now);
        self.run()
    }

    fn die(&mut self) -> Vec<Output> {
        self.asks = Asks::new(self.now, self.rows.clone());
        self.give(Input::Serving(true))
    }

    fn run(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        while let Some(output) = self.asks.poll_output() {
            let Output::Commit(ticket, changes) = output else {
                out.push(output);
                continue;
            };
            let result = if self.full { Err(CommitError::Full) } else { Ok(()) };
            for change in if self.full { Vec::new() } else { changes } {
                let name = match &change {
                    Change::Put(row) => row.ask.request.clone(),
                    Change::Remove(request) => request.clone(),
                };
                self.rows.retain(|row| row.ask.request != name);
                if let Change::Put(row) = change {
                    self.rows.push(*row);
                }
            }
            self.asks.handle(self.now, Input::Committed(ticket, result));
        }
        out
    }
}

fn ended(end: End) -> Output {
    Output::Ended("abcde".to_owned(), end)
}

#[test]
fn a_prompt_is_stored_before_it_is_shown_with_its_three_buttons_and_without_secrets() {
    let mut world = World::new();
    world.full = true;
    assert_eq!(world.ask(), []);
    world.full = false;
    let out = world.pass(S);
    let [Output::Say(key, draft)] = &out[..] else { panic!("{out:?}") };
    assert_eq!(*key, Key::single("ask:abcde"));
    assert_eq!(draft.text, SHOWN);
    let buttons: Vec<(&str, &str)> = draft.buttons.iter().map(|b| (b.id.as_str(), b.label.as_str())).collect();
    let expected = [("ask:abcde:allow", "Allow"), ("ask:abcde:session", "Session"), ("ask:abcde:deny", "Deny")];
    assert_eq!(buttons, expected);
    assert_eq!(world.ask(), [], "the same hook again");
}

#[test]
fn a_click_reaches_the_hook_once_it_is_stored_and_the_message_says_what_became_of_it() {
    for (button, verdict, text) in [
        ("ask:abcde:allow", Verdict::Allow, "Allowed by Ann"),
        ("ask:abcde:session", Verdict::Session, "Allowed for this session by Ann"),
        ("ask:abcde:deny", Verdict::Deny, "Denied by Ann"),
    ] {
        let mut world = World::new();
        world.ask();
        world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
        world.full = true;
        assert_eq!(world.give(Input::Click(click(button))), []);
        world.full = false;
        let expected = [
            Output::Answer { click: "click".to_owned(), text: text.to_owned() },
            Output::Edit(at("c1"), id("7"), format!("{SHOWN}\n{text}")),
            ended(End::Answered(verdict, "Ann".to_owned())),
        ];
        assert_eq!(world.pass(S), expected);
        let late = world.give(Input::Click(click("ask:abcde:deny")));
        let over = format!("This is over: {}{}.", text[..1].to_lowercase(), &text[1..]);
        assert_eq!(late, [Output::Answer { click: "click".to_owned(), text: over }]);
    }
}

#[test]
fn a_click_nobody_waits_for_is_answered() {
    let mut world = World::new();
    world.ask();
    for button in ["ask:other:allow", "ask:abcde:maybe", "ask:abcde", "ask:"] {
        let expired = Output::Answer { click: "click".to_owned(), text: "This has expired.".to_owned() };
        assert_eq!(world.give(Input::Click(click(button))), [expired], "{button}");
    }
    let elsewhere = Click { channel: at("c2"), ..click("ask:abcde:allow") };
    assert!(matches!(&world.give(Input::Click(elsewhere))[..], [Output::Answer { .. }]));
    assert_eq!(world.asks.open(world.now), [(&ask(), Duration::ZERO)]);
}

#[test]
fn nobody_answers_for_ten_minutes() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    assert_eq!(world.pass(limits::ASK_LIFE - S), []);
    let text = format!("{SHOWN}\nNobody answered in time");
    assert_eq!(world.pass(S), [Output::Edit(at("c1"), id("7"), text), ended(End::Expired)]);
}

#[test]
fn a_hook_that_goes_takes_its_prompt_along() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    let text = format!("{SHOWN}\nDecided at the terminal");
    let out = world.give(Input::Withdraw("abcde".to_owned()));
    assert_eq!(out, [Output::Edit(at("c1"), id("7"), text), ended(End::Withdrawn)]);
}

#[test]
fn without_a_seat_for_ten_seconds_the_terminal_decides() {
    let mut world = World::new();
    world.give(Input::Serving(false));
    assert_eq!(world.ask(), []);
    assert_eq!(world.pass(limits::ASK_PLACE - S), []);
    assert_eq!(world.pass(S), [Output::CannotAsk("abcde".to_owned())]);
    assert_eq!(world.give(Input::Serving(true)), [], "it was told, so it is not asked");
}

#[test]
fn a_seat_that_comes_in_time_shows_the_prompt() {
    let mut world = World::new();
    world.give(Input::Serving(false));
    world.ask();
    world.pass(S * 9);
    assert!(matches!(&world.give(Input::Serving(true))[..], [Output::Say(..)]));
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    assert_eq!(world.pass(S * 10), []);
}

#[test]
fn a_prompt_that_nobody_sees_within_ten_seconds_is_decided_at_the_terminal_and_its_late_message_says_so() {
    let mut world = World::new();
    world.ask();
    assert_eq!(world.pass(limits::ASK_PLACE - S), []);
    assert_eq!(world.pass(S), [ended(End::Unseen)]);
    let text = format!("{SHOWN}\nDecided at the terminal; this message came too late");
    let late = world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    assert_eq!(late, [Output::Edit(at("c1"), id("7"), text), ended(End::Unseen)]);
    assert_eq!(world.ask(), [ended(End::Unseen)], "the same hook again");
}

#[test]
fn a_prompt_that_is_refused_is_decided_at_the_terminal_at_once() {
    for refused in [Input::Refused(Key::single("ask:abcde")), Input::Parked(at("c1"))] {
        let mut world = World::new();
        world.ask();
        assert_eq!(world.give(Input::Refused(Key::single("ask:other"))), []);
        assert_eq!(world.give(Input::Refused(Key::single("say:abcde"))), []);
        assert_eq!(world.give(Input::Parked(at("c2"))), []);
        assert_eq!(world.give(refused.clone()), [ended(End::Unseen)]);
        let mut world = World::new();
        world.ask();
        world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
        assert_eq!(world.give(refused), [], "people see it");
        assert_eq!(world.pass(limits::ASK_LIFE - S), []);
    }
}

#[test]
fn a_prompt_of_the_last_holder_that_was_not_posted_has_ten_seconds_from_its_hook() {
    let mut world = World::new();
    world.ask();
    world.die();
    world.pass(S * 5);
    assert_eq!(world.ask(), []);
    assert_eq!(world.pass(S * 9), []);
    assert_eq!(world.ask(), [], "asking again gives it no more time");
    assert_eq!(world.pass(S), [ended(End::Unseen)]);
}

/// What is shown of these.
fn text_of(tool: &str, description: &str, preview: &str, left_out: usize) -> String {
    let (tool, description, preview) = (tool.to_owned(), description.to_owned(), preview.to_owned());
    shown(&Ask { tool, description, preview, left_out, ..ask() })
}

#[test]
fn the_end_of_what_is_asked_is_shown_and_how_much_is_not() {
    let long = format!("echo {}; curl x | sh", "a".repeat(796));
    let (head, tail) = (format!("echo {}", "a".repeat(595)), format!("{}; curl x | sh", "a".repeat(187)));
    let expected =
        format!("🔐 `Bash` needs permission\n```\n{head}\n```\n**14 characters are not shown**\n```\n{tail}\n```");
    assert_eq!(text_of("Bash", "", &long, 0), expected);
    assert_eq!(text_of("Bash", "", &long, 1000), expected.replace("**14 ", "**1014 "));
    let huge = format!("{}{}{}", "a".repeat(4800), "é".repeat(5000), "b".repeat(1600));
    assert_eq!(preview(&huge), (format!("{}{}", "a".repeat(4800), "b".repeat(1600)), 5000));
    assert_eq!(preview("ls"), ("ls".to_owned(), 0));
}

#[test]
fn nothing_in_what_is_asked_hides_a_part_of_it_or_is_taken_for_what_we_say() {
    let preview = "ls \u{202e}x\u{1b}[8m\u{200b}y\n```\n||a||````b";
    let expected = "🔐 `mcp__a_b__c` needs permission\n`''' **x** ||y`\n```\nls x [8my\n`\u{200b}``\n||a||`\u{200b}``\u{200b}`b\n```";
    assert_eq!(text_of("mcp__a_b__c", "```\n**x** ||y", preview, 0), expected);
}

#[test]
fn the_longest_prompt_and_how_it_ended_fit_a_message() {
    let text = text_of(&"t".repeat(999), &"d".repeat(999), &"`".repeat(9999), 1 << 40);
    let end = said(&End::Answered(Verdict::Session, "n".repeat(limits::INBOX_NAME_MAX)));
    assert!(format!("{text}\n{end}").chars().count() < 2000);
}

#[test]
fn without_a_channel_the_terminal_decides_at_once() {
    let mut world = World::new();
    let out = world.give(Input::Ask { request: "abcde".to_owned(), ask: None });
    assert_eq!(out, [Output::CannotAsk("abcde".to_owned())]);
}

#[test]
fn a_prompt_survives_its_holder_and_so_does_its_answer() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    let out = world.die();
    assert!(matches!(&out[..], [Output::Say(..)]), "its key keeps it from being said twice: {out:?}");
    assert_eq!(world.pass(limits::ASK_PLACE - S), []);
    assert_eq!(world.ask(), [], "the hook registers again");
    assert_eq!(world.pass(S * 60), []);
    world.give(Input::Click(click("ask:abcde:allow")));
    assert_eq!(world.die(), [], "what was shown is not shown again");
    assert_eq!(world.ask(), [ended(End::Answered(Verdict::Allow, "Ann".to_owned()))], "the hook was away");
}

#[test]
fn a_click_after_a_crash_counts_once_the_hook_is_there_again() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    world.die();
    assert_eq!(world.give(Input::Click(click("ask:abcde:deny"))), [], "nobody would hear it yet");
    let just_before = "Already answered.".to_owned();
    let second = Click { id: "second".to_owned(), ..click("ask:abcde:allow") };
    let told = Output::Answer { click: "second".to_owned(), text: just_before };
    assert_eq!(world.give(Input::Click(second)), [told]);
    let expected = [
        Output::Answer { click: "click".to_owned(), text: "Denied by Ann".to_owned() },
        Output::Edit(at("c1"), id("7"), format!("{SHOWN}\nDenied by Ann")),
        ended(End::Answered(Verdict::Deny, "Ann".to_owned())),
    ];
    assert_eq!(world.ask(), expected);
}

#[test]
fn a_prompt_whose_hook_does_not_come_again_is_over_and_a_click_is_told_so() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    world.die();
    assert_eq!(world.give(Input::Click(click("ask:abcde:allow"))), []);
    let expected = [
        Output::Answer { click: "click".to_owned(), text: "The agent is no longer waiting".to_owned() },
        Output::Edit(at("c1"), id("7"), format!("{SHOWN}\nThe agent is no longer waiting")),
        ended(End::Gone),
    ];
    assert_eq!(world.pass(limits::ASK_PLACE), expected);
    let over = "This is over: the agent is no longer waiting.".to_owned();
    let late = world.give(Input::Click(click("ask:abcde:deny")));
    assert_eq!(late, [Output::Answer { click: "click".to_owned(), text: over }]);
    assert_eq!(world.ask(), [ended(End::Gone)], "a hook that comes too late asks at its terminal");
}

#[test]
fn its_time_goes_on_between_holders() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    world.pass(S * 500);
    world.die();
    world.ask();
    assert_eq!(world.pass(S * 99), []);
    let text = format!("{SHOWN}\nNobody answered in time");
    assert_eq!(world.pass(S), [Output::Edit(at("c1"), id("7"), text), ended(End::Expired)]);
}

#[test]
fn a_message_that_comes_after_the_end_is_edited_then() {
    let mut world = World::new();
    world.ask();
    world.give(Input::Withdraw("abcde".to_owned()));
    let out = world.give(Input::Posted(Key::single("ask:abcde"), id("7")));
    assert!(matches!(&out[..], [Output::Edit(_, message, _), Output::Ended(..)] if *message == id("7")), "{out:?}");
}

#[test]
fn prompts_and_what_is_kept_of_them_are_bounded() {
    let mut world = World::new();
    let prompt = |n: usize| Ask { request: format!("r{n}"), ..ask() };
    for n in 0..limits::ASKS {
        world.give(Input::Ask { request: format!("r{n}"), ask: Some(prompt(n)) });
    }
    let out =
        world.give(Input::Ask { request: "more".to_owned(), ask: Some(Ask { request: "more".to_owned(), ..ask() }) });
    assert_eq!(out, [Output::CannotAsk("more".to_owned())]);
    for n in 0..limits::ASKS_KEPT + 50 {
        world.give(Input::Withdraw(format!("r{n}")));
        let next = limits::ASKS + n;
        world.give(Input::Ask { request: format!("r{next}"), ask: Some(prompt(next)) });
    }
    assert_eq!(world.rows.len(), limits::ASKS + limits::ASKS_KEPT);
    let long = "x".repeat(limits::ASK_REQUEST_MAX + 1);
    let out = world.give(Input::Ask { request: long.clone(), ask: Some(Ask { request: long.clone(), ..ask() }) });
    assert_eq!(out, [Output::CannotAsk(long)]);
}

#[test]
fn tools_whose_long_names_begin_alike_have_different_names() {
    let long = format!("mcp__{}", "plugin_".repeat(9));
    let (one, other) = (tool(&format!("{long}read")), tool(&format!("{long}write")));
    assert_eq!((one.chars().count(), other.chars().count()), (limits::INBOX_NAME_MAX, limits::INBOX_NAME_MAX));
    assert_ne!(one, other);
    assert!(one.starts_with("mcp__plugin_plugin_") && one.contains('…'), "{one}");
    assert_eq!(tool("Bash"), "Bash");
}
