//! The words of `locale/en.ftl`, which the window reads too.

use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};

use crate::limits::{SENTENCE_MAX, WORD_MAX};
use crate::line::one_line;

/// What stands in a message's place of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg<'a> {
    /// A count, with the plural it takes.
    Count(u64),
    /// A name from elsewhere, a client's or a host's: cleaned, and cut to [`WORD_MAX`].
    Theirs(&'a str),
    /// A cause or a warning from elsewhere: cleaned, and cut to [`SENTENCE_MAX`].
    Sentence(&'a str),
    /// Words of ours that are already right: a duration, a message said before.
    Ours(&'a str),
}

static ENGLISH: LazyLock<FluentBundle<FluentResource>> = LazyLock::new(|| {
    let source = include_str!("../../../../locale/en.ftl");
    // What can be read of a file with a mistake in it is better than nothing; a test sees the mistake.
    let resource = FluentResource::try_new(source.to_owned()).unwrap_or_else(|(readable, _)| readable);
    let mut bundle = FluentBundle::new_concurrent(vec!["en".parse().unwrap_or_default()]);
    bundle.set_use_isolating(false);
    bundle.add_resource_overriding(resource);
    bundle
});

/// The text of a message. A message that does not exist is said as its id.
pub fn say(id: &str, args: &[(&str, Arg<'_>)]) -> String {
    let mut values = FluentArgs::with_capacity(args.len());
    for (name, arg) in args {
        let value = match arg {
            Arg::Count(n) => FluentValue::from(*n),
            Arg::Theirs(text) => clean(text, WORD_MAX).into(),
            Arg::Sentence(text) => clean(text, SENTENCE_MAX).into(),
            Arg::Ours(text) => FluentValue::from(*text),
        };
        values.set(*name, value);
    }
    match ENGLISH.get_message(id).and_then(|message| message.value()) {
        Some(pattern) => ENGLISH.format_pattern(pattern, Some(&values), &mut Vec::new()).into_owned(),
        None => id.to_owned(),
    }
}

fn clean(text: &str, max: usize) -> String {
    one_line(text, max).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SOURCE: &str = include_str!("../../../../locale/en.ftl");

    /// Every text of this folder that names a message of the tray's or the notices' groups.
    fn said() -> BTreeSet<&'static str> {
        let sources = [
            include_str!("lines.rs"),
            include_str!("sentence.rs"),
            include_str!("notices.rs"),
            include_str!("notices/texts.rs"),
        ];
        let texts = sources.into_iter().flat_map(|source| source.split('"').skip(1).step_by(2));
        texts.filter(|text| text.starts_with("tray-") || text.starts_with("notice-")).collect()
    }

    #[test]
    fn the_file_of_words_has_no_mistake_and_no_message_twice() {
        let resource = FluentResource::try_new(SOURCE.to_owned()).map_err(|(_, errors)| errors).unwrap();
        let mut bundle = FluentBundle::new_concurrent(vec!["en".parse().unwrap()]);
        bundle.add_resource(resource).unwrap();
    }

    #[test]
    fn every_message_that_is_said_exists_and_every_one_that_exists_is_said() {
        let group = |line: &&str| line.starts_with("tray-") || line.starts_with("notice-");
        let known: BTreeSet<_> =
            SOURCE.lines().filter(group).filter_map(|line| line.split_once(" =")).map(|(id, _)| id).collect();
        assert_eq!(said(), known);
    }

    #[test]
    fn a_message_that_does_not_exist_is_said_as_its_id() {
        assert_eq!(say("tray-nonsense", &[]), "tray-nonsense");
    }

    #[test]
    fn words_from_elsewhere_are_cleaned_and_cut_and_words_of_ours_are_not() {
        let hostile = format!("\u{202e}Chat\u{1b}[2J\n{}", "x".repeat(100));
        let text = say("tray-consent", &[("client", Arg::Theirs(&hostile))]);
        assert_eq!(text, format!("Chat [2J {}… wants access", "x".repeat(WORD_MAX - 11)));
        let count = |n| say("tray-running", &[("count", Arg::Count(n))]);
        assert_eq!((count(1), count(2)), ("1 call running".into(), "2 calls running".into()));
    }
}
