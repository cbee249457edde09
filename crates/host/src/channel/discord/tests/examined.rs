//! What keeps the bot from hearing or speaking.

use holdfast_core::chat::{Scope, SendError};
use holdfast_testkit::discord::MESSAGE_CONTENT;

use super::*;

#[tokio::test]
async fn a_bot_whose_content_intent_is_off_is_told_to_switch_it_on() {
    let stand = stand().await;
    assert_eq!(stand.bot.hears().await, Ok(()));
    stand.service.intents(!MESSAGE_CONTENT & ((1 << 26) - 1));
    let Err(Failed::ForGood(why)) = stand.bot.hears().await else { panic!("it hears") };
    assert!(why.contains("Message Content Intent"), "{why}");
}

#[tokio::test]
async fn a_channel_says_its_name_and_what_the_bot_lacks_there() {
    let stand = stand().await;
    let channel = stand.service.channel();
    let id = ChannelId::parse(&channel.to_string()).unwrap();
    let name = format!("#channel-{channel} in Workshop");
    let examined = stand.bot.examine(&id).await.unwrap();
    assert_eq!((examined.name, examined.lacks), (name.clone(), vec![]));
    stand.service.silence(channel, true);
    let examined = stand.bot.examine(&id).await.unwrap();
    assert_eq!((examined.name, examined.lacks), (name, vec!["Send Messages"]));
    stand.service.forbid(channel, true);
    let refused = stand.bot.examine(&id).await.unwrap_err();
    assert!(matches!(refused, SendError::Permanent { scope: Scope::Channel, .. }), "{refused:?}");
}

#[tokio::test]
async fn a_thread_has_the_permissions_of_its_channel() {
    let stand = stand().await;
    let channel = stand.service.channel();
    let id = |id: u64| ChannelId::parse(&id.to_string()).unwrap();
    let thread = id(stand.service.thread(channel));
    assert_eq!(stand.bot.examine(&thread).await.unwrap().lacks, Vec::<&str>::new());
    stand.service.silence(channel, true);
    assert_eq!(stand.bot.examine(&thread).await.unwrap().lacks, ["Send Messages in Threads"]);
}
