mod command;
mod files;
mod inbox;
mod letter;
mod offers;
mod tmux;
mod voice;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::chat::inbox::{Adapter, Back, Message, Prepared, Standing, Undelivered};
use holdfast_core::chat::{Attachment, ChannelId, Incoming, MessageId, UserId};

use super::*;

/// A seat's folder, and what delivers from it.
struct Bench {
    folder: tempfile::TempDir,
    courier: Courier,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let courier = Courier::open(folder.path(), Offers::default()).unwrap();
        Bench { folder, courier }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A program of its own.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        // Written by a process of its own: what another test starts meanwhile would have our open file for a moment, and the
        // system starts no program that somebody may write.
        let mut writer = std::process::Command::new("sh");
        let writer = writer.args(["-c", "cat > \"$1\" && chmod 700 \"$1\"", "sh"]).arg(&path);
        let mut writer = writer.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut writer.stdin.take().unwrap(), format!("#!/bin/sh\n{text}\n").as_bytes())
            .unwrap();
        assert!(writer.wait().unwrap().success());
        path.to_str().unwrap().to_owned()
    }

    fn agent(&self, config: &BindingConfig) -> Arc<dyn Agent> {
        self.courier.agent(config, no_session()).unwrap().unwrap()
    }
}

fn no_session() -> Session {
    Arc::new(|| None)
}

fn binding(deliver: Delivery) -> BindingConfig {
    BindingConfig { name: "app".into(), deliver: Some(deliver), ..BindingConfig::default() }
}

fn said(seq: u64, text: &str) -> Message {
    let incoming = Incoming {
        id: MessageId::parse(&format!("m{seq}")).unwrap(),
        channel: ChannelId::parse("100").unwrap(),
        parent: None,
        direct: false,
        author: UserId::parse("7").unwrap(),
        author_name: "Ann".into(),
        bot: false,
        text: text.into(),
        mentions_us: false,
        attachments: Vec::new(),
        at: 1_796_097_600_000,
        age: Duration::ZERO,
    };
    Message { seq, incoming, binding: "app".into(), standing: Standing::Delivering(Adapter::Command) }
}

fn with(seq: u64, text: &str, files: &[(&str, &str, u64)]) -> Message {
    let mut message = said(seq, text);
    let file = |(number, (name, kind, size)): (usize, &(&str, &str, u64))| Attachment {
        id: number.to_string(),
        name: (*name).into(),
        kind: (*kind).into(),
        size: *size,
    };
    message.incoming.attachments = files.iter().enumerate().map(file).collect();
    message
}

/// Waits until something is so; what is looked at is no event.
async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("in time");
}
