//! The gateway: sessions that outlive their connections, and are resumed from where they were.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use super::world::{Channel, GUILD, World};
use super::{Break, Shared};

/// What one client was told, over as many connections as it takes.
#[derive(Debug)]
pub(super) struct Session {
    pub bot: u64,
    pub intents: u64,
    caller: String,
    token: String,
    /// Every event, with numbers from 1.
    events: Vec<Value>,
    line: Option<Line>,
}

type Line = mpsc::UnboundedSender<Out>;

#[derive(Debug)]
pub(super) enum Out {
    Event(Value),
    Break(Break),
}

impl Session {
    /// While mute, only a resumed connection hears of it.
    pub fn dispatch(&mut self, event: &str, data: Value, mute: bool) {
        let event = json!({"op": 0, "t": event, "s": self.events.len() + 1, "d": data});
        self.events.push(event.clone());
        if let Some(line) = self.line.as_ref().filter(|_| !mute) {
            // A connection that ended meanwhile is replaced by a resumed one.
            let _ = line.send(Out::Event(event));
        }
    }
}

impl World {
    pub fn disturb(&mut self, caller: &str, how: Break) {
        for session in self.sessions.values_mut().filter(|s| s.caller == caller) {
            if let Some(line) = &session.line {
                let _ = line.send(Out::Break(how));
            }
        }
        let ends = match how {
            Break::Close(code) => !(matches!(code, 4000..=4003 | 4005 | 4008)),
            Break::Invalid(resumable) => !resumable,
            Break::Drop | Break::Reset | Break::Reconnect => false,
        };
        if ends {
            self.sessions.retain(|_, s| s.caller != caller);
        }
    }

    pub fn revoke(&mut self, token: &str) {
        self.tokens.remove(token);
        for session in self.sessions.values().filter(|s| s.token == token) {
            if let Some(line) = &session.line {
                let _ = line.send(Out::Break(Break::Close(4004)));
            }
        }
        self.sessions.retain(|_, s| s.token != token);
    }

    /// A new session, or the close code with which it is refused.
    fn identify(&mut self, caller: &str, data: &Value, line: Line) -> Result<String, u16> {
        let token = data["token"].as_str().unwrap_or_default();
        let token = token.strip_prefix("Bot ").unwrap_or(token).to_owned();
        let bot = *self.tokens.get(&token).ok_or(4004_u16)?;
        let intents = data["intents"].as_u64().ok_or(4013_u16)?;
        if intents & !super::ALL_INTENTS != 0 {
            return Err(4013);
        }
        if intents & !self.intents != 0 {
            return Err(4014);
        }
        self.identifies_left = self.identifies_left.saturating_sub(1);
        self.seen.identified.push(caller.to_owned());
        let id = format!("session-{}", self.mint());
        let mut session =
            Session { bot, intents, caller: caller.to_owned(), token, events: Vec::new(), line: Some(line) };
        let ready = json!({
            "v": 10, "user": self.user(bot), "guilds": [{"id": GUILD.to_string(), "unavailable": true}],
            "session_id": id, "resume_gateway_url": format!("ws://{}/{caller}", self.gateway), "shard": [0, 1],
            "application": {"id": bot.to_string(), "flags": 0},
        });
        session.dispatch("READY", ready, self.mute);
        if intents & 1 != 0 {
            let of_kind = |threads: bool| {
                let listed = |(id, c): &(&u64, &Channel)| {
                    c.kind != 1 && c.parent.is_some() == threads && !c.archived && self.sees(bot, **id)
                };
                let ids = self.channels.iter().filter(listed);
                ids.map(|(id, _)| self.channel(*id)).collect::<Vec<_>>()
            };
            let guild = json!({"id": GUILD.to_string(), "channels": of_kind(false), "threads": of_kind(true)});
            session.dispatch("GUILD_CREATE", guild, self.mute);
        }
        self.sessions.insert(id.clone(), session);
        Ok(id)
    }

    /// Goes on with a session, if there is one.
    fn resume(&mut self, caller: &str, data: &Value, line: Line) -> Option<String> {
        let id = data["session_id"].as_str()?;
        let token = data["token"].as_str()?;
        let session = self.sessions.get_mut(id).filter(|s| token.ends_with(&s.token))?;
        let from = usize::try_from(data["seq"].as_u64()?).ok()?;
        for event in session.events.iter().skip(from) {
            let _ = line.send(Out::Event(event.clone()));
        }
        if let Some(before) = session.line.replace(line) {
            let _ = before.send(Out::Break(Break::Drop));
        }
        session.dispatch("RESUMED", json!({}), false);
        self.seen.resumed.push(caller.to_owned());
        Some(id.to_owned())
    }
}

/// One connection.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    if shared.world().closed {
        return;
    }
    let mut caller = String::new();
    #[expect(clippy::result_large_err, reason = "the callback's signature is tungstenite's")]
    let upgraded = accept_hdr_async(stream, |request: &Request, response: Response| {
        caller = request.uri().path().trim_matches('/').to_owned();
        Ok(response)
    });
    let Ok(mut ws) = upgraded.await else { return };
    shared.change(|world| *world.seen.connected.entry(caller.clone()).or_default() += 1);
    let ended = talk(&mut ws, &caller, &shared).await;
    shared.change(|world| {
        let left = world.seen.connected.remove(&caller).unwrap_or_default();
        if left > 1 {
            world.seen.connected.insert(caller.clone(), left - 1);
        }
        if let Some(session) = ended {
            world.sessions.remove(&session);
        }
    });
}

/// Returns the session, if it ended with the connection.
async fn talk(ws: &mut WebSocketStream<TcpStream>, caller: &str, shared: &Shared) -> Option<String> {
    let (line, mut out) = mpsc::unbounded_channel();
    let interval = u64::try_from(shared.world().heartbeat.as_millis()).unwrap_or(u64::MAX);
    say(ws, &json!({"op": 10, "d": {"heartbeat_interval": interval}})).await?;
    let mut session = None;
    loop {
        let heard = tokio::select! {
            Some(out) = out.recv() => {
                match out {
                    Out::Event(event) => say(ws, &event).await?,
                    Out::Break(Break::Drop) => return None,
                    Out::Break(Break::Reset) => {
                        let _ = ws.get_ref().set_zero_linger();
                        return None;
                    }
                    Out::Break(Break::Close(code)) => {
                        close(ws, code).await;
                        return None;
                    }
                    Out::Break(Break::Reconnect) => say(ws, &json!({"op": 7, "d": null})).await?,
                    Out::Break(Break::Invalid(resumable)) => say(ws, &json!({"op": 9, "d": resumable})).await?,
                }
                continue;
            }
            heard = ws.next() => heard?.ok()?,
        };
        let said: Value = match heard {
            Message::Text(text) => serde_json::from_str(&text).unwrap_or_default(),
            Message::Close(frame) => {
                // Whoever says good-bye with these ends the session; anything else leaves it.
                return session.filter(|_| frame.is_some_and(|f| matches!(u16::from(f.code), 1000 | 1001)));
            }
            _ => continue,
        };
        match said["op"].as_u64() {
            Some(1) if !shared.world().mute => {
                shared.change(|world| world.seen.heartbeats += 1);
                say(ws, &json!({"op": 11})).await?;
            }
            Some(1) => {}
            Some(2) => match shared.change(|world| world.identify(caller, &said["d"], line.clone())) {
                Ok(id) => session = Some(id),
                Err(code) => {
                    close(ws, code).await;
                    return None;
                }
            },
            Some(6) => match shared.change(|world| world.resume(caller, &said["d"], line.clone())) {
                Some(id) => session = Some(id),
                None => say(ws, &json!({"op": 9, "d": false})).await?,
            },
            _ => {
                close(ws, 4001).await;
                return None;
            }
        }
    }
}

async fn say(ws: &mut WebSocketStream<TcpStream>, value: &Value) -> Option<()> {
    ws.send(Message::text(value.to_string())).await.ok()
}

async fn close(ws: &mut WebSocketStream<TcpStream>, code: u16) {
    let frame = CloseFrame { code: code.into(), reason: "".into() };
    let _ = ws.send(Message::Close(Some(frame))).await;
    // The other side's answer, or its end.
    while let Some(Ok(_)) = ws.next().await {}
}
