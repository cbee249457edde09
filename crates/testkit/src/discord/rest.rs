//! The REST API, with its refusals.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::people::mentioned;
use super::world::{EPHEMERAL, GUILD, Message, NO_PREVIEWS, Nonce, Post, World};

/// How long Discord remembers nonces, by its documentation: "a few minutes".
const NONCES: Duration = Duration::from_secs(180);
/// How soon an interaction must be answered; Discord's own three seconds, with room for a loaded machine.
const INTERACTION: Duration = Duration::from_secs(30);

pub(super) fn limited(after: f64, global: bool, scope: &str) -> Reply {
    let body = json!({"message": "You are being rate limited.", "retry_after": after, "global": global});
    let mut reply = Reply::json(429, &body);
    reply.headers.push(("retry-after", after.ceil().to_string()));
    reply.headers.push(("x-ratelimit-scope", if global { "global".into() } else { scope.into() }));
    if global {
        reply.headers.push(("x-ratelimit-global", "true".into()));
    }
    reply
}

fn unknown_channel() -> Reply {
    Reply::refusal(404, 10003, "Unknown Channel")
}

fn unknown_message() -> Reply {
    Reply::refusal(404, 10008, "Unknown Message")
}

fn bad_form(field: &str, code: &str, message: &str) -> Reply {
    let errors = json!({field: {"_errors": [{"code": code, "message": message}]}});
    Reply::json(400, &json!({"message": "Invalid Form Body", "code": 50035, "errors": errors}))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

fn number_in(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

impl World {
    pub fn answer(&mut self, request: &Request) -> Reply {
        if !request.named {
            return Reply { status: 403, headers: Vec::new(), body: b"error code: 1010".to_vec() };
        }
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        match (request.method.as_str(), &path[..]) {
            ("GET", ["attachments", channel, id, _]) => return self.attachment(request, number(channel), number(id)),
            ("POST", ["interactions", id, token, "callback"]) => {
                return self.callback(number(id), token, &request.body);
            }
            ("POST", ["webhooks", app, token]) => return self.follow_up(number(app), token, &request.body),
            ("PATCH", ["webhooks", _, token, "messages", "@original"]) => return self.fulfil(token, &request.body),
            _ => {}
        }
        let token = request.authorization.as_deref().and_then(|a| a.strip_prefix("Bot "));
        let Some(bot) = token.and_then(|token| self.tokens.get(token).copied()) else {
            return Reply::refusal(401, 0, "401: Unauthorized");
        };
        match (request.method.as_str(), &path[..]) {
            ("GET", ["users", "@me"]) => Reply::json(200, &self.user(bot)),
            ("GET", ["gateway", "bot"]) => self.gateway_of(&request.caller),
            ("GET", ["applications", _, "commands"]) => {
                Reply::json(200, &json!(self.commands.get(&bot).cloned().unwrap_or_default()))
            }
            ("POST", ["applications", _, "commands"]) => {
                self.seen.registered += 1;
                let there = self.commands.entry(bot).or_default();
                there.retain(|command| command["name"] != request.body["name"]);
                there.push(request.body.clone());
                Reply::json(201, &request.body)
            }
            ("GET", ["applications", "@me"]) => {
                let flags = if self.intents & super::MESSAGE_CONTENT == 0 { 0 } else { 1 << 19 };
                Reply::json(200, &json!({"id": bot.to_string(), "flags": flags}))
            }
            ("POST", ["users", "@me", "channels"]) => match number_in(&request.body["recipient_id"]) {
                Some(person) if self.names.contains_key(&person) && person != bot => {
                    let id = self.direct(bot, person);
                    Reply::json(200, &self.channel(id))
                }
                Some(_) => Reply::refusal(400, 50033, "Invalid Recipient(s)"),
                None => bad_form("recipient_id", "BASE_TYPE_REQUIRED", "This field is required"),
            },
            ("GET", ["guilds", guild, ..]) if number(guild) != GUILD => Reply::refusal(404, 10004, "Unknown Guild"),
            ("GET", ["guilds", _, "threads", "active"]) => Reply::json(200, &self.active_threads(bot)),
            ("GET", ["guilds", _]) => Reply::json(200, &self.guild()),
            ("GET", ["guilds", _, "members", member]) if number(member) == bot => {
                Reply::json(200, &json!({"user": self.user(bot), "roles": []}))
            }
            (method, ["channels", channel, rest @ ..]) => {
                let id = number(channel);
                match self.channels.contains_key(&id) {
                    false => unknown_channel(),
                    true if !self.sees(bot, id) => Reply::refusal(403, 50001, "Missing Access"),
                    true => self.in_channel(request, bot, method, id, rest),
                }
            }
            _ => Reply::refusal(404, 0, "404: Not Found"),
        }
    }

    fn gateway_of(&self, caller: &str) -> Reply {
        let limit = json!({
            "total": 1000, "remaining": self.identifies_left, "reset_after": 3_600_000, "max_concurrency": 1,
        });
        let url = format!("ws://{}/{caller}", self.gateway);
        Reply::json(200, &json!({"url": url, "shards": 1, "session_start_limit": limit}))
    }

    fn in_channel(&mut self, request: &Request, bot: u64, method: &str, id: u64, rest: &[&str]) -> Reply {
        match (method, rest) {
            ("GET", []) => Reply::json(200, &self.channel(id)),
            ("POST", ["typing"]) => {
                self.seen.typing.push((request.caller.clone(), id));
                Reply::none()
            }
            ("GET", ["messages"]) => self.list(request, id),
            ("POST", ["messages"]) if self.silent.contains(&id) => Reply::refusal(403, 50013, "Missing Permissions"),
            ("POST", ["messages"]) => match self.count(bot, id) {
                Ok(headers) => {
                    let mut reply = self.post(request, bot, id);
                    reply.headers.extend(headers);
                    reply
                }
                Err(refusal) => refusal,
            },
            (_, ["messages", message, rest @ ..]) => self.at_message(request, bot, id, number(message), rest),
            _ => Reply::refusal(405, 0, "405: Method Not Allowed"),
        }
    }

    /// One more in the bucket: what stands in the answer's head, or a refusal.
    fn count(&mut self, bot: u64, channel: u64) -> Result<Vec<(&'static str, String)>, Reply> {
        let Some((limit, per)) = self.limit else { return Ok(Vec::new()) };
        let now = Instant::now();
        let bucket = self.buckets.entry((bot, channel)).or_insert((0, now + per));
        if bucket.1 <= now {
            *bucket = (0, now + per);
        }
        let after = (bucket.1 - now).as_secs_f64();
        bucket.0 += 1;
        let headers = |left: u32| {
            vec![
                ("x-ratelimit-limit", limit.to_string()),
                ("x-ratelimit-remaining", left.to_string()),
                ("x-ratelimit-reset-after", format!("{after:.3}")),
                ("x-ratelimit-bucket", "posts-of-a-channel".to_owned()),
            ]
        };
        if bucket.0 <= limit {
            return Ok(headers(limit - bucket.0));
        }
        let mut reply = limited((after * 1000.0).ceil() / 1000.0, false, "user");
        reply.headers.extend(headers(0));
        Err(reply)
    }

    fn post(&mut self, request: &Request, bot: u64, channel: u64) -> Reply {
        let body = &request.body;
        let content = body["content"].as_str().unwrap_or_default().trim().to_owned();
        let nonce = body["nonce"].as_str().map(str::to_owned);
        if content.chars().count() > 2000 {
            return bad_form("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.");
        }
        if content.is_empty() {
            return Reply::refusal(400, 50006, "Cannot send an empty message");
        }
        if nonce.as_ref().is_some_and(|nonce| nonce.chars().count() > 25) {
            return bad_form("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
        }
        let components = if body["components"].is_array() { body["components"].clone() } else { json!([]) };
        let Some(buttons) = buttons(&components) else { return bad_form("components", "INVALID", "Bad components.") };
        let reference = &body["message_reference"];
        let to = number_in(&reference["message_id"]);
        if to.is_none() && !reference.is_null() {
            return bad_form("message_reference", "NUMBER_TYPE_COERCE", "Value is not snowflake.");
        }
        if to.is_some() && self.forgetful.contains(&channel) {
            return Reply::refusal(403, 160_002, "Cannot reply without permission to read message history");
        }
        let there = |id: &u64| self.channels[&channel].messages.iter().any(|m| m.id == *id);
        let reply_to = to.filter(there);
        if to != reply_to && reference["fail_if_not_exists"] != json!(false) {
            let code = "REPLIES_UNKNOWN_MESSAGE";
            return bad_form("message_reference", code, "Unknown message");
        }
        let allowed = &body["allowed_mentions"]["parse"];
        let quiet = allowed.as_array().is_some_and(Vec::is_empty);
        let mentions = if quiet { Vec::new() } else { mentioned(&content) };
        let (caller, key) = (request.caller.clone(), (bot, channel, nonce.clone().unwrap_or_default()));
        let known = self.nonces.iter().find(|n| n.of == key && n.made.elapsed() < NONCES);
        let known = known.map(|n| n.message).filter(|_| body["enforce_nonce"] == json!(true));
        let known = known.and_then(|id| self.channels[&channel].messages.iter().find(|m| m.id == id).cloned());
        let repeated = known.is_some();
        let message = known.unwrap_or_else(|| {
            let (mentions, flags) = (mentions.clone(), body["flags"].as_u64().unwrap_or_default());
            Message { flags, reply_to, mentions, components, ..Message::new(self.mint(), bot, content) }
        });
        if !repeated {
            if nonce.is_some() {
                self.nonces.push(Nonce { of: key, message: message.id, made: Instant::now() });
            }
            if let Some(channel) = self.channels.get_mut(&channel) {
                channel.messages.push(message.clone());
            }
            self.tell_message(channel, &message, nonce.as_deref());
        }
        let content = message.content.clone();
        let mut shown = self.message(channel, &message);
        shown["nonce"] = nonce.clone().into();
        let message = message.id;
        self.seen.posts.push(Post {
            caller,
            bot,
            channel,
            message,
            content,
            nonce,
            repeated,
            reply_to,
            mentions,
            buttons,
            previews: body["flags"].as_u64().unwrap_or_default() & NO_PREVIEWS == 0,
        });
        Reply::json(200, &shown)
    }

    fn list(&self, request: &Request, channel: u64) -> Reply {
        let limit = request.query.get("limit").map_or(50, |limit| number(limit));
        if !(1..=100).contains(&limit) {
            return bad_form("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.");
        }
        let limit = usize::try_from(limit).unwrap_or(50);
        let of = |name: &str| request.query.get(name).map(|id| number(id));
        let (after, before) = (of("after"), of("before"));
        let within = |m: &&Message| after.is_none_or(|id| m.id > id) && before.is_none_or(|id| m.id < id);
        let known = !self.forgetful.contains(&channel);
        let found: Vec<_> = self.channels[&channel].messages.iter().filter(|_| known).filter(within).collect();
        // After a message: the next ones; otherwise the newest.
        let from = if after.is_some() { 0 } else { found.len().saturating_sub(limit) };
        let shown = found.iter().skip(from).take(limit).rev().map(|m| self.message(channel, m));
        Reply::json(200, &shown.collect())
    }

    fn at_message(&mut self, request: &Request, bot: u64, channel: u64, id: u64, rest: &[&str]) -> Reply {
        let messages = &mut self.channels.get_mut(&channel).expect("was found").messages;
        let Some(at) = messages.iter().position(|m| m.id == id) else { return unknown_message() };
        match (request.method.as_str(), rest) {
            ("GET", []) => Reply::json(200, &self.message(channel, &self.channels[&channel].messages[at].clone())),
            ("PATCH" | "DELETE", []) if messages[at].author != bot => {
                Reply::refusal(403, 50005, "Cannot edit a message authored by another user")
            }
            ("DELETE", []) => {
                messages.remove(at);
                Reply::none()
            }
            ("PATCH", []) => {
                if let Some(content) = request.body["content"].as_str() {
                    if content.trim().chars().count() > 2000 {
                        return bad_form("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.");
                    }
                    messages[at].content = content.trim().to_owned();
                }
                if request.body["components"].is_array() {
                    messages[at].components = request.body["components"].clone();
                }
                messages[at].flags = request.body["flags"].as_u64().unwrap_or(messages[at].flags);
                let message = messages[at].clone();
                let left = buttons(&message.components).map_or(0, |buttons| buttons.len());
                self.seen.edits.push((id, message.content.clone(), left));
                Reply::json(200, &self.message(channel, &message))
            }
            ("PUT", ["reactions", emoji, "@me"]) => {
                self.seen.reactions.entry(id).or_default().push((*emoji).to_owned());
                Reply::none()
            }
            ("DELETE", ["reactions", emoji, "@me"]) => {
                let there = self.seen.reactions.entry(id).or_default();
                there.retain(|sign| sign != emoji);
                Reply::none()
            }
            _ => Reply::refusal(405, 0, "405: Method Not Allowed"),
        }
    }

    fn callback(&mut self, id: u64, token: &str, body: &Value) -> Reply {
        let Some(found) = self.interactions.get_mut(&id).filter(|i| i.token == token) else {
            return Reply::refusal(404, 10062, "Unknown interaction");
        };
        if found.made.elapsed() > INTERACTION {
            return Reply::refusal(404, 10062, "Unknown interaction");
        }
        if std::mem::replace(&mut found.done, true) {
            return Reply::refusal(400, 40060, "Interaction has already been acknowledged.");
        }
        let kind = body["type"].as_u64().unwrap_or_default();
        found.promised = kind == 5;
        let answered = self.seen.acknowledged.entry(id).or_default();
        answered.kind = kind;
        answered.texts.extend(said(&body["data"]));
        let hidden = body["data"]["flags"].as_u64().unwrap_or_default() & EPHEMERAL != 0;
        if hidden && matches!(kind, 4 | 5) {
            let bot = self.tokens.values().next().copied().unwrap_or_default();
            self.tell_ephemeral(id, bot, body["data"]["content"].as_str().unwrap_or_default());
        }
        Reply::none()
    }

    /// What was promised takes the place of the sign that it is waited for; only whoever asked sees it if they only saw that.
    fn fulfil(&mut self, token: &str, body: &Value) -> Reply {
        let found = self.interactions.iter().find(|(_, i)| i.token == token && i.promised);
        let Some((&id, _)) = found else { return Reply::refusal(404, 10015, "Unknown Webhook") };
        let text = body["content"].as_str().unwrap_or_default().to_owned();
        self.seen.acknowledged.entry(id).or_default().texts.push((text, true));
        Reply::json(200, &json!({"id": id.to_string()}))
    }

    fn follow_up(&mut self, app: u64, token: &str, body: &Value) -> Reply {
        let found = self.interactions.iter().find(|(_, i)| i.token == token && i.done);
        let Some((&id, _)) = found else { return Reply::refusal(404, 10015, "Unknown Webhook") };
        let said = said(body);
        if let Some((text, true)) = &said {
            self.tell_ephemeral(id, app, text);
        }
        self.seen.acknowledged.entry(id).or_default().texts.extend(said);
        let id = self.mint();
        Reply::json(200, &json!({"id": id.to_string()}))
    }

    fn attachment(&mut self, request: &Request, channel: u64, id: u64) -> Reply {
        self.seen.leaked += usize::from(request.authorization.is_some());
        let messages = self.channels.get(&channel).map_or(&[][..], |c| &c.messages[..]);
        let fresh = request.query.get("ex").is_some_and(|ex| *ex == self.signature.to_string());
        match messages.iter().flat_map(|m| &m.files).find(|file| file.id == id && fresh) {
            Some(file) => Reply { status: 200, headers: Vec::new(), body: file.bytes.clone() },
            None => Reply { status: 404, headers: Vec::new(), body: b"This content is no longer available.".to_vec() },
        }
    }
}

fn said(body: &Value) -> Option<(String, bool)> {
    let text = body["content"].as_str()?.to_owned();
    Some((text, body["flags"].as_u64().unwrap_or_default() & EPHEMERAL != 0))
}

/// Ids of the buttons in rows of them; none, if they are not as Discord wants them.
fn buttons(components: &Value) -> Option<Vec<String>> {
    let mut ids = Vec::new();
    for row in components.as_array()? {
        let buttons = row["components"].as_array().filter(|b| row["type"] == json!(1) && (1..=5).contains(&b.len()))?;
        for button in buttons {
            let (id, label) = (button["custom_id"].as_str()?, button["label"].as_str()?);
            let styled = (1..=4).contains(&button["style"].as_u64()?);
            let good = styled && button["type"] == json!(2) && (1..=100).contains(&id.len());
            if !good || label.chars().count() > 80 || ids.iter().any(|other| other == id) {
                return None;
            }
            ids.push(id.to_owned());
        }
    }
    Some(ids)
}
