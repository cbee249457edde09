//! The words of `locale/en.ftl`, which the window reads too.

use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};

use crate::limits::WORD_MAX;
use crate::line::one_line;

/// What stands in a message's place of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg<'a> {
    /// A count, with the plural it takes.
    Count(u64),
    /// Words from elsewhere: a client's name, a host, a cause. They are [`clean`]ed.
    Theirs(&'a str),
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
            Arg::Theirs(text) => FluentValue::from(clean(text)),
            Arg::Ours(text) => FluentValue::from(*text),
        };
        values.set(*name, value);
    }
    match ENGLISH.get_message(id).and_then(|message| message.value()) {
        Some(pattern) => ENGLISH.format_pattern(pattern, Some(&values), &mut Vec::new()).into_owned(),
        None => id.to_owned(),
    }
}

/// One line without characters that steer, hide or reorder text, at most [`WORD_MAX`] characters.
pub(super) fn clean(text: &str) -> String {
    one_line(text, WORD_MAX).trim().to_owned()
}
