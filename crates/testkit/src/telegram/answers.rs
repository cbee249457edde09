//! What bots do there.

use serde_json::{Value, json};

use super::{Post, Request, Seen, refused};

fn done(result: Value) -> (u16, Value) {
    (200, json!({"ok": true, "result": result}))
}

fn bad(why: &str) -> (u16, Value) {
    refused(400, &format!("Bad Request: {why}"), None)
}

/// Names and commands in a text: a sign with letters behind it and none before it, where the text is no code.
fn alive(body: &Value) -> Vec<String> {
    let text: Vec<char> = body["text"].as_str().unwrap_or_default().chars().collect();
    let entities = body["entities"].as_array().map_or(&[][..], |entities| &entities[..]);
    let entities = &entities[..entities.len().min(100)];
    let code = |at: u64| {
        let at_is_in =
            |e: &Value| Some(e["offset"].as_u64()? <= at && at < e["offset"].as_u64()? + e["length"].as_u64()?);
        entities.iter().any(|e| e["type"] == json!("code") && at_is_in(e) == Some(true))
    };
    let letter = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let (mut at, mut alive) = (0, Vec::new());
    for (n, sign) in text.iter().enumerate() {
        let alone = n == 0 || !letter(&text[n - 1]) && text[n - 1] != '/';
        let name: String = text[n + 1..].iter().take_while(|c| letter(c)).collect();
        if matches!(sign, '@' | '/') && alone && !name.is_empty() && !code(at) {
            alive.push(format!("{sign}{name}"));
        }
        at += sign.len_utf16() as u64;
    }
    alive
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
                alive: alive(body),
                previews: body["link_preview_options"]["is_disabled"] != json!(true),
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
            post.alive = alive(body);
            post.previews = body["link_preview_options"]["is_disabled"] != json!(true);
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
