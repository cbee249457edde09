//! What bots do there.

use serde_json::{Value, json};

use super::{Post, Request, Seen, refused};

fn done(result: Value) -> (u16, Value) {
    (200, json!({"ok": true, "result": result}))
}

fn bad(why: &str) -> (u16, Value) {
    refused(400, &format!("Bad Request: {why}"), None)
}

pub(super) fn answer(seen: &mut Seen, request: &Request) -> (u16, Value) {
    let body = &request.body;
    let chat = body["chat_id"].as_i64().unwrap_or_default();
    let message = body["message_id"].as_i64().unwrap_or_default();
    let text = body["text"].as_str().unwrap_or_default().trim().to_owned();
    if let Some((code, why)) = seen.closed.get(&chat) {
        return refused(*code, why, None);
    }
    match request.method.as_str() {
        "sendMessage" | "editMessageText" if text.is_empty() => bad("message text is empty"),
        "sendMessage" | "editMessageText" if text.encode_utf16().count() > 4096 => bad("message is too long"),
        "sendMessage" => {
            let reply = &body["reply_parameters"];
            seen.written += 1;
            let buttons = body["reply_markup"]["inline_keyboard"].as_array().into_iter().flatten();
            let buttons = buttons.filter_map(Value::as_array).flatten();
            seen.posts.push(Post {
                caller: request.caller.clone(),
                chat,
                topic: body["message_thread_id"].as_i64(),
                message: seen.written,
                text,
                reply_to: reply["message_id"].as_i64(),
                buttons: buttons.filter_map(|button| button["callback_data"].as_str()).map(str::to_owned).collect(),
            });
            done(json!({"message_id": seen.written, "chat": {"id": chat}}))
        }
        "editMessageText" => {
            let found = seen.posts.iter_mut().find(|post| (post.chat, post.message) == (chat, message));
            let Some(post) = found else { return bad("message to edit not found") };
            if post.text == text && post.buttons.is_empty() {
                return bad("message is not modified");
            }
            post.text = text;
            post.buttons.clear();
            done(json!({"message_id": message}))
        }
        "getChat" if chat < 0 => done(json!({"id": chat, "type": "supergroup", "title": format!("group {chat}")})),
        "getChat" => done(json!({"id": chat, "type": "private", "username": "ann"})),
        "sendChatAction" => {
            seen.typing.push(chat);
            done(json!(true))
        }
        "setMessageReaction" => {
            seen.reactions.retain(|(c, m, _)| (*c, *m) != (chat, message));
            for reaction in body["reaction"].as_array().into_iter().flatten() {
                let emoji = reaction["emoji"].as_str().unwrap_or_default();
                // Two of the 73 that Telegram has.
                if !matches!(emoji, "🤔" | "👨‍💻") {
                    return bad("REACTION_INVALID");
                }
                seen.reactions.push((chat, message, emoji.to_owned()));
            }
            done(json!(true))
        }
        "answerCallbackQuery" => {
            let id = body["callback_query_id"].as_str().unwrap_or_default();
            seen.answered.push((id.to_owned(), text));
            done(json!(true))
        }
        "getFile" => match body["file_id"].as_str().filter(|id| seen.files.contains_key(*id)) {
            Some(id) => done(json!({"file_id": id, "file_path": id})),
            None => bad("wrong file_id or the file is temporarily unavailable"),
        },
        _ => refused(404, "Not Found", None),
    }
}
