//! What stands in a channel already, and files.

use holdfast_core::chat::SendError;
use holdfast_core::chat::outbox::Posted;
use holdfast_core::limits;
use holdfast_testkit::discord::Written;
use tokio::io::AsyncReadExt as _;
use tokio::io::AsyncSeekExt as _;

use super::*;

#[tokio::test]
async fn missed_messages_come_oldest_first_in_pages() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let thread = service.thread(place);
    let first = service.write(thread, ann, "seen");
    for n in 0..250 {
        service.write(thread, ann, n.to_string().as_str());
    }
    let (mut after, mut texts, mut pages) = (message(first), Vec::new(), Vec::new());
    loop {
        let missed = bot.fetch_after(&channel(thread), &after).await.unwrap();
        assert!(missed.messages.iter().all(|m| m.parent == Some(channel(place))));
        pages.push((missed.messages.len(), missed.more));
        after = missed.messages.last().map_or(after, |m| m.id.clone());
        texts.extend(missed.messages.into_iter().map(|m| m.text));
        if !missed.more {
            break;
        }
    }
    assert_eq!(pages, [(100, true), (100, true), (50, false)]);
    assert!(texts.into_iter().eq((0..250).map(|n| n.to_string())));
    let nothing = bot.fetch_after(&channel(thread), &after).await.unwrap();
    assert!(nothing.messages.is_empty() && !nothing.more);
}

#[tokio::test]
async fn a_channel_that_cannot_be_looked_into_says_so() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    service.forbid(place, true);
    let refused = bot.fetch_after(&channel(place), &message(1)).await;
    assert!(matches!(refused, Err(SendError::Permanent { ref code, .. }) if code == "50001"), "{refused:?}");
}

#[tokio::test]
async fn what_our_bot_posted_is_found_after_a_message_or_since_a_moment() {
    let Stand { service, bot, .. } = stand().await;
    service.limit(None);
    let (ann, place) = (service.person("ann"), service.channel());
    let mut posted = Vec::new();
    for n in 0..3 {
        let text = format!("  line {n}  ");
        let id = bot.send(&draft(place, &text)).await.unwrap();
        posted.push(Posted { id, text: text.trim().into() });
        service.write(place, ann, "chatter");
    }
    let there = channel(place);
    let since = |since| bot.posted(&there, None, since);
    assert_eq!(since(Duration::from_secs(600)).await.unwrap().unwrap(), posted);
    let after = bot.posted(&there, Some(&posted[0].id), Duration::ZERO).await;
    assert_eq!(after.unwrap().unwrap(), posted[1..]);
}

#[tokio::test]
async fn too_much_to_look_through_is_no_answer() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let sent = bot.send(&draft(place, "ours")).await.unwrap();
    let there = channel(place);
    for _ in 0..limits::OUTBOX_COMPARED {
        service.write(place, ann, "chatter");
    }
    assert_eq!(bot.posted(&there, Some(&sent), Duration::ZERO).await.unwrap(), Some(Vec::new()));
    for _ in 0..100 {
        service.write(place, ann, "chatter");
    }
    assert_eq!(bot.posted(&there, Some(&sent), Duration::ZERO).await.unwrap(), None);
}

#[tokio::test]
async fn a_channel_that_shows_nothing_of_what_was_written_cannot_be_asked() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    let sent = bot.send(&draft(place, "ours")).await.unwrap();
    let there = channel(place);
    let asked = async |after| bot.posted(&there, after, Duration::from_secs(600)).await.unwrap();
    assert_eq!(asked(Some(&sent)).await, Some(Vec::new()));
    service.forget(place);
    assert_eq!((asked(Some(&sent)).await, asked(None).await), (None, None));
}

#[tokio::test]
async fn a_channel_whose_last_message_was_removed_is_asked_all_the_same() {
    let Stand { service, bot, .. } = stand().await;
    let place = service.channel();
    let sent = bot.send(&draft(place, "ours")).await.unwrap();
    service.unwrite(place, sent.as_str().parse().unwrap());
    assert_eq!(bot.posted(&channel(place), Some(&sent), Duration::ZERO).await.unwrap(), Some(Vec::new()));
}

#[tokio::test]
async fn a_file_is_fetched_by_its_message_without_the_token_however_old_its_address_is() {
    let Stand { service, bot, .. } = stand().await;
    let (ann, place) = (service.person("ann"), service.channel());
    let file = |name: &str, bytes: Vec<u8>| (name.to_owned(), "text/plain".to_owned(), bytes);
    let large = usize::try_from(limits::ATTACHMENT_MAX).unwrap();
    let files = vec![file("a.txt", b"hello".to_vec()), file("none", Vec::new()), file("large", vec![0; large + 1])];
    let id = service.write(place, ann, Written { text: String::new(), files, ..Written::default() });
    let missed = bot.fetch_after(&channel(place), &message(id - 1)).await.unwrap();
    let heard = &missed.messages[0];
    service.expire_links();

    let mut into = tokio::fs::File::from_std(tempfile::tempfile().unwrap());
    assert_eq!(bot.download(heard, &heard.attachments[0], &mut into).await, Ok(5));
    let mut text = String::new();
    into.rewind().await.unwrap();
    into.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello");
    let empty = bot.download(heard, &heard.attachments[1], &mut into).await;
    assert_eq!(empty, Err("the file is empty".into()));
    let too_large = bot.download(heard, &heard.attachments[2], &mut into).await;
    assert_eq!(too_large, Err("the file is larger than 25 MiB".into()));
    service.unwrite(place, id);
    let gone = bot.download(heard, &heard.attachments[0], &mut into).await;
    assert_eq!(gone, Err("Discord answered 404: Unknown Message (10008)".into()));
    assert_eq!(service.seen().leaked, 0);
}

#[tokio::test]
async fn a_file_elsewhere_is_not_fetched() {
    let Stand { bot, .. } = stand().await;
    let mut into = tokio::fs::File::from_std(tempfile::tempfile().unwrap());
    for address in [
        "https://cdn.discordapp.com.example/a",
        "http://cdn.discordapp.com/a",
        "https://cdn.discordapp.com:8443/a",
        "http://127.0.0.1:1/a",
        "file:///etc/hosts",
    ] {
        let refused = bot.rest.fetch(address, &mut into).await;
        assert_eq!(refused, Err("this file is not at Discord".into()), "{address}");
    }
}
