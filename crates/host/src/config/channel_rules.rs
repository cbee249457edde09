//! What `[channel]` may say.

use holdfast_core::chat::{ChannelId, UserId};
use holdfast_core::limits;
use holdfast_core::transcript::is_session;

use super::channel::{BindingConfig, ChannelConfig, ChannelService, Delivery};

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The binding, by its place in the list.
    pub binding: Option<usize>,
    /// The key there.
    pub key: &'static str,
    /// A sentence.
    pub why: String,
}

/// The first thing that is wrong with a channel.
pub(super) fn check(channel: &ChannelConfig) -> Result<(), Wrong> {
    let wrong = |key, why: String| Err(Wrong { binding: None, key, why });
    if channel.bindings.len() > limits::BINDINGS {
        return wrong("binding", format!("at most {} bindings", limits::BINDINGS));
    }
    if channel.people.len() > limits::CHANNEL_PEOPLE {
        return wrong("people", format!("at most {} people", limits::CHANNEL_PEOPLE));
    }
    if let Some(person) = channel.people.iter().find(|person| !is_person(channel.backend, person)) {
        return wrong("people", no_person(channel.backend, person));
    }
    if channel.gateway_url.is_some() && channel.backend == Some(ChannelService::Telegram) {
        return wrong("gateway_url", "only Discord has a gateway".into());
    }
    if channel.voice.first().is_some_and(|program| program.trim().is_empty()) {
        return wrong("voice", "it must begin with a program".into());
    }
    for (at, binding) in channel.bindings.iter().enumerate() {
        let before = &channel.bindings[..at];
        if let Err((key, why)) = check_binding(channel.backend, binding, before) {
            return Err(Wrong { binding: Some(at), key, why });
        }
    }
    match &channel.direct {
        Some(name) => match channel.bindings.iter().find(|binding| binding.name == *name) {
            None => wrong("direct", format!("there is no binding `{name}`")),
            Some(binding) if binding.deliver.is_none() => wrong("direct", format!("binding `{name}` has no `deliver`")),
            Some(_) => Ok(()),
        },
        None => Ok(()),
    }
}

type Found = Result<(), (&'static str, String)>;

fn check_binding(service: Option<ChannelService>, binding: &BindingConfig, before: &[BindingConfig]) -> Found {
    let wrong = |key, why: &str| Err((key, why.to_owned()));
    let name_fits = |name: &str| {
        (1..=limits::BINDING_NAME_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    if !name_fits(&binding.name) {
        return Err(("name", format!("1 to {} letters, digits and `-`", limits::BINDING_NAME_MAX)));
    }
    // Names become folders, and not every system tells large letters from small ones.
    if before.iter().any(|other| other.name.eq_ignore_ascii_case(&binding.name)) {
        return wrong("name", "another binding has this name");
    }
    if !is_channel(service, &binding.channel) {
        return Err(("channel", no_channel(service)));
    }
    if let Some(other) = before.iter().find(|other| other.channel == binding.channel) {
        return Err(("channel", format!("binding `{}` has this channel already", other.name)));
    }
    match (&binding.transcript, &binding.session, &binding.project) {
        (None, None, None) => return wrong("name", "name a project, a session or a transcript"),
        (Some(_), Some(_), _) => return wrong("session", "a session or a transcript, not both"),
        _ => {}
    }
    for (key, path) in [("transcript", &binding.transcript), ("project", &binding.project)] {
        if path.as_ref().is_some_and(|path| !is_from_the_root(path)) {
            return wrong(key, "it must be an absolute path or begin with ~/");
        }
    }
    if binding.session.as_deref().is_some_and(|session| !is_session(session)) {
        return wrong("session", "the id of a session");
    }
    if let Some(person) = binding.people.iter().find(|person| !is_person(service, person)) {
        return Err(("people", no_person(service, person)));
    }
    check_delivery(binding)
}

/// Exactly what each way of delivery needs, and nothing of another.
fn check_delivery(binding: &BindingConfig) -> Found {
    let given = [
        ("command", !binding.command.is_empty(), Delivery::Command),
        ("pane", binding.pane.is_some(), Delivery::Tmux),
        ("stop_key", binding.stop_key.is_some(), Delivery::Tmux),
    ];
    for (key, given, of) in given {
        if given && binding.deliver != Some(of) {
            return Err((key, format!("is for deliver = \"{}\"", of.as_str())));
        }
    }
    let blank = |text: &str| text.trim().is_empty() || text.contains(char::is_control);
    match binding.deliver {
        Some(Delivery::Command) if binding.command.first().is_none_or(|program| blank(program)) => {
            Err(("deliver", "\"command\" needs `command`: a program and its arguments".into()))
        }
        Some(Delivery::Tmux) if binding.pane.as_ref().is_none_or(|pane| blank(pane)) => {
            Err(("deliver", "\"tmux\" needs `pane`, as `tmux -t` takes it".into()))
        }
        _ => Ok(()),
    }
}

fn is_from_the_root(path: &str) -> bool {
    std::path::Path::new(path).is_absolute() || path == "~" || path.starts_with("~/")
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_channel(service: Option<ChannelService>, id: &str) -> bool {
    match service {
        Some(ChannelService::Discord) => is_number(id) && ChannelId::parse(id).is_ok(),
        Some(ChannelService::Telegram) => {
            let (chat, topic) = id.split_once('/').map_or((id, None), |(chat, topic)| (chat, Some(topic)));
            // As the service names it: what is written otherwise would never be heard of.
            let is_topic = |topic: &str| is_number(topic) && !topic.starts_with('0');
            is_number(chat.strip_prefix('-').unwrap_or(chat))
                && topic.is_none_or(is_topic)
                && ChannelId::parse(id).is_ok()
        }
        None => ChannelId::parse(id).is_ok(),
    }
}

fn no_channel(service: Option<ChannelService>) -> String {
    match service {
        Some(ChannelService::Discord) => {
            "the channel's id is a number: in Discord, with developer mode on, *Copy channel ID* in the channel's menu"
        }
        Some(ChannelService::Telegram) => {
            "the chat's id is a number such as -1001234567890, and a topic of it is -1001234567890/5"
        }
        None => "the channel's id is missing or is none",
    }
    .into()
}

fn is_person(service: Option<ChannelService>, id: &str) -> bool {
    UserId::parse(id).is_ok() && (service.is_none() || is_number(id))
}

pub(super) fn no_person(service: Option<ChannelService>, id: &str) -> String {
    match service {
        Some(_) => format!("{id:?} is no person's id, which is a number; `holdfast channel pair` adds people"),
        None => format!("{id:?} is no person's id"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    const BOUND: &str = "[[channel.binding]]\nname = \"app\"\nchannel = \"12\"\nproject = \"/srv/app\"\n";

    fn error(text: &str) -> String {
        parse(text, Path::new("c.toml")).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_channel_is_read() {
        let text = "[channel]\nbackend = \"discord\"\nbot = \"1\"\npeople = [\"7\"]\ndirect = \"app\"\nvoice = [\"whisper\"]\n\
             gateway_url = \"https://gateway.example\"\n\
             [[channel.binding]]\nname = \"app\"\nchannel = \"12\"\nsession = \"s-1\"\ndeliver = \"tmux\"\npane = \"work:0.1\"\n\
             stop_key = \"C-c\"\nmention = true\npeople = [\"7\"]\n\
             [[channel.binding]]\nname = \"log\"\nchannel = \"13\"\ntranscript = \"~/log.jsonl\"\n";
        let channel = parse(text, Path::new("c.toml")).unwrap().channel;
        assert_eq!((channel.bindings.len(), channel.direct.as_deref()), (2, Some("app")));
        parse(BOUND, Path::new("c.toml")).unwrap();
        for chat in ["-1001234567890", "-1001234567890/5", "7"] {
            let text = format!("[channel]\nbackend = \"telegram\"\n{}", BOUND.replace("12", chat));
            assert_eq!(parse(&text, Path::new("c.toml")).unwrap().channel.bindings[0].channel, chat);
        }
    }

    #[test]
    fn what_a_channel_may_not_say_is_told_with_its_place_and_key() {
        let discord = "[channel]\nbackend = \"discord\"\n";
        let table = [
            (
                format!("{discord}people = [\"ann\"]"),
                "3:1: \"ann\" is no person's id, which is a number; `holdfast channel pair` adds people",
            ),
            (
                "[channel]\nbackend = \"telegram\"\ngateway_url = \"https://a\"".into(),
                "3:1: only Discord has a gateway",
            ),
            ("[channel]\nvoice = [\" \"]".into(), "2:1: it must begin with a program"),
            (format!("[channel]\ndirect = \"web\"\n{BOUND}"), "2:1: there is no binding `web`"),
            (format!("[channel]\ndirect = \"app\"\n{BOUND}"), "2:1: binding `app` has no `deliver`"),
            (BOUND.replace("app\"\nch", "a b\"\nch"), "2:1: 1 to 40 letters, digits and `-`"),
            (format!("{BOUND}{}", BOUND.replace("app\"\nch", "App\"\nch")), "6:1: another binding has this name"),
            (
                format!("{BOUND}{}", BOUND.replace("app\"\nch", "web\"\nch")),
                "7:1: binding `app` has this channel already",
            ),
            (BOUND.replace("12", "a b"), "3:1: the channel's id is missing or is none"),
            (
                format!("{discord}{}", BOUND.replace("12", "log")),
                "5:1: the channel's id is a number: in Discord, with developer mode on, *Copy channel ID* in the channel's menu",
            ),
            (
                format!("[channel]\nbackend = \"telegram\"\n{}", BOUND.replace("12", "-100/05")),
                "5:1: the chat's id is a number such as -1001234567890, and a topic of it is -1001234567890/5",
            ),
            (BOUND.replace("project = \"/srv/app\"", ""), "2:1: name a project, a session or a transcript"),
            (BOUND.replace("/srv", "srv"), "4:1: it must be an absolute path or begin with ~/"),
            (format!("{BOUND}session = \"a\"\ntranscript = \"/t\""), "5:1: a session or a transcript, not both"),
            (format!("{BOUND}session = \"../a\""), "5:1: the id of a session"),
            (format!("{BOUND}session = \"--resume\""), "5:1: the id of a session"),
            (format!("{BOUND}people = [\"\"]"), "5:1: \"\" is no person's id"),
            (format!("{BOUND}deliver = \"command\""), "5:1: \"command\" needs `command`: a program and its arguments"),
            (format!("{BOUND}deliver = \"tmux\""), "5:1: \"tmux\" needs `pane`, as `tmux -t` takes it"),
            (format!("{BOUND}deliver = \"mcp\"\npane = \"a\""), "6:1: is for deliver = \"tmux\""),
            (format!("{BOUND}command = [\"claude\"]"), "5:1: is for deliver = \"command\""),
            (
                format!("{BOUND}delivr = \"mcp\""),
                "5:1: unknown key `delivr` in [channel.binding]; did you mean `deliver`?",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(error(&text), format!("c.toml:{expected}"), "{text}");
        }
    }
}
