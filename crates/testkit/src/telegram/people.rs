//! What people do there, and what is done to their chats.

use serde_json::{Value, json};

use super::FakeTelegram;

impl FakeTelegram {
    /// A message nobody has fetched yet.
    pub fn message(&self) {
        self.write(7, json!({"text": "hello"}));
    }

    /// Somebody with the id 7 writes in a chat: what a message has beside its number, its sender, its chat and its date.
    /// Returns its number. Chats below zero are groups.
    pub fn write(&self, chat: i64, mut message: Value) -> i64 {
        self.change(|seen| {
            seen.written += 1;
            let id = seen.written;
            let kind = if chat < 0 { "supergroup" } else { "private" };
            message["message_id"] = id.into();
            message["chat"] = json!({"id": chat, "type": kind});
            message["date"] = (crate::calendar::unix_ms(seen.ahead) / 1000).into();
            if message["from"].is_null() {
                message["from"] = json!({"id": 7, "is_bot": false, "first_name": "Ann", "last_name": "Lee"});
            }
            seen.updates.push((id, json!({"update_id": id, "message": message})));
            id
        })
    }

    /// Somebody presses a button below a message of a bot; returns the click.
    pub fn click(&self, chat: i64, message: i64, button: &str) -> String {
        self.change(|seen| {
            seen.written += 1;
            let id = format!("click-{}", seen.written);
            let kind = if chat < 0 { "supergroup" } else { "private" };
            let below = json!({"message_id": message, "chat": {"id": chat, "type": kind}, "date": 0});
            let from = json!({"id": 7, "is_bot": false, "first_name": "Ann"});
            let query = json!({"id": id, "from": from, "message": below, "data": button});
            seen.updates.push((seen.written, json!({"update_id": seen.written, "callback_query": query})));
            id
        })
    }

    /// From now on the service's clock is that many seconds ahead of this machine's.
    pub fn clock(&self, ahead: i64) {
        self.change(|seen| seen.ahead = ahead * 1000);
    }

    /// Answers do not tell the service's time any more.
    pub fn hide_clock(&self) {
        self.change(|seen| seen.dateless = true);
    }

    /// A file that bots can fetch by this id.
    pub fn file(&self, id: &str, bytes: Vec<u8>) {
        self.change(|seen| seen.files.insert(id.to_owned(), bytes));
    }

    /// From now on nothing can be done in a chat: the code and the reason.
    pub fn close(&self, chat: i64, code: u16, why: &str) {
        self.change(|seen| seen.closed.insert(chat, (code, why.to_owned())));
    }

    /// The next request of a method is carried out, and its answer is lost.
    pub fn cut(&self, method: &str) {
        self.change(|seen| seen.cut.push(method.to_owned()));
    }

    /// Updates that are still offered.
    pub fn offered(&self) -> usize {
        self.seen().offered()
    }
}
