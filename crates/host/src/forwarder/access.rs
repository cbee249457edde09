//! Who may speak to which agent, as the configuration has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_core::chat::inbox::{Access, Adapter, Binding, Rule};
use holdfast_core::chat::{ChannelId, UserId};

use crate::config::{BindingConfig, ChannelConfig, Delivery};

/// What the configuration says. What is no id, it names nobody.
pub(super) fn access(config: &ChannelConfig) -> Access {
    let mut rules = BTreeMap::new();
    for binding in &config.bindings {
        if let Ok(channel) = ChannelId::parse(&binding.channel) {
            rules.entry(channel).or_insert_with(|| rule(binding));
        }
    }
    let direct = config.direct.as_ref().and_then(|name| config.bindings.iter().find(|binding| binding.name == *name));
    Access { people: people(&config.people), rules, direct: direct.map(rule) }
}

fn rule(config: &BindingConfig) -> Rule {
    let adapter = match config.deliver {
        Some(Delivery::Command) => Adapter::Command,
        Some(Delivery::Tmux) => Adapter::Tmux,
        Some(Delivery::Mcp) => Adapter::Mcp,
        Some(Delivery::Inbox) => Adapter::Inbox,
        None => Adapter::Mirror,
    };
    let binding = Binding { name: Arc::from(config.name.as_str()), adapter };
    Rule { mention: config.mention, people: people(&config.people), binding }
}

fn people(names: &[String]) -> BTreeSet<UserId> {
    names.iter().filter_map(|name| UserId::parse(name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_channel_are_those_of_its_first_binding_and_of_direct_messages_those_of_the_named_one() {
        let binding = |name: &str, channel: &str, deliver| BindingConfig {
            name: name.to_owned(),
            channel: channel.to_owned(),
            deliver,
            ..BindingConfig::default()
        };
        let mut second = binding("b", "c2", Some(Delivery::Tmux));
        (second.mention, second.people) = (true, vec!["bob".to_owned()]);
        let config = ChannelConfig {
            people: vec!["ann".to_owned(), "not an id".to_owned()],
            direct: Some("b".to_owned()),
            bindings: vec![binding("a", "c1", None), second, binding("late", "c1", Some(Delivery::Mcp))],
            ..ChannelConfig::default()
        };
        let access = access(&config);
        let rule = |name: &str| access.rules[&ChannelId::parse(name).unwrap()].clone();
        let b = Binding { name: "b".into(), adapter: Adapter::Tmux };
        let user = |name: &str| UserId::parse(name).unwrap();
        assert_eq!(access.people, [user("ann")].into());
        let a = Binding { name: "a".into(), adapter: Adapter::Mirror };
        assert_eq!(rule("c1"), Rule { mention: false, people: BTreeSet::new(), binding: a });
        assert_eq!(rule("c2"), Rule { mention: true, people: [user("bob")].into(), binding: b });
        assert_eq!(access.direct, Some(rule("c2")));
    }
}
