//! A chat service that behaves as Telegram's Bot API does: tokens, long polls of which the newest wins, updates that are
//! offered until a poll asks for later ones, refusals.

mod answers;
mod people;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How long something that should happen soon may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A message that a bot posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Who asked.
    pub caller: String,
    /// Where.
    pub chat: i64,
    /// In which topic of it.
    pub topic: Option<i64>,
    /// Its number there.
    pub message: i64,
    /// As it stands there now.
    pub text: String,
    /// The message it answers.
    pub reply_to: Option<i64>,
    /// What its buttons call back with.
    pub buttons: Vec<String>,
    /// What Telegram makes mentions and commands of in its text.
    pub alive: Vec<String>,
    /// Whether it looks up what its addresses lead to, and shows that.
    pub previews: bool,
}

/// What the service has seen, and how it shall behave.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// Who asked for what, in order: (caller, method).
    pub requests: Vec<(String, String)>,
    /// Callers with open long polls, and how many.
    pub polling: BTreeMap<String, usize>,
    /// How often a long poll was ended by another caller's.
    pub conflicts: usize,
    /// What stands there of bots.
    pub posts: Vec<Post>,
    /// Reactions of bots: (chat, message, emoji).
    pub reactions: Vec<(i64, i64, String)>,
    /// Where it was shown that a bot types.
    pub typing: Vec<i64>,
    /// Answers to clicks: (click, text).
    pub answered: Vec<(String, String)>,
    tokens: BTreeMap<String, u64>,
    polls: HashMap<String, (u64, String)>,
    minted: u64,
    /// Updates that no poll has asked beyond.
    updates: Vec<(i64, Value)>,
    /// Updates and messages so far.
    written: i64,
    files: BTreeMap<String, Vec<u8>>,
    /// Chats that are not there, and why.
    closed: BTreeMap<i64, (u16, String)>,
    /// Methods whose next answer is lost.
    cut: Vec<String>,
    refuse: Option<(u16, Option<u64>)>,
    webhook: bool,
    held: bool,
    /// How much its clock is ahead of this machine's, in milliseconds.
    ahead: i64,
    /// Its answers have no date.
    dateless: bool,
}

impl Seen {
    /// How often a caller asked for a method.
    pub fn count(&self, caller: &str, method: &str) -> usize {
        self.requests.iter().filter(|(c, m)| c == caller && m == method).count()
    }

    /// Updates that are still offered.
    pub fn offered(&self) -> usize {
        self.updates.len()
    }
}

/// A running service on 127.0.0.1.
pub struct FakeTelegram {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    changed: watch::Sender<u64>,
    listening: AbortHandle,
}

impl Drop for FakeTelegram {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl FakeTelegram {
    /// Starts it on a free port.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start() -> FakeTelegram {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (seen, changed) = (Arc::<Mutex<Seen>>::default(), watch::Sender::new(0));
        let service = (Arc::clone(&seen), changed.clone());
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    // Whoever leaves in the middle is gone.
                    let _ = serve(stream, service.0, service.1).await;
                });
            }
        });
        FakeTelegram { address, seen, changed, listening: listening.abort_handle() }
    }

    /// The base address for one caller, by which its requests are told apart.
    pub fn url(&self, caller: &str) -> String {
        format!("http://{}/{caller}", self.address)
    }

    /// Makes a bot; returns its token.
    pub fn bot(&self, id: u64) -> String {
        let token = format!("{id}:fake-TOKEN_{id:020}");
        self.change(|seen| {
            seen.tokens.insert(token.clone(), id);
        });
        token
    }

    /// Gives a bot another token: those that it had are worthless.
    pub fn rotate(&self, id: u64) -> String {
        self.change(|seen| {
            seen.minted += 1;
            let token = format!("{id}:fresh-TOKEN_{:020}", seen.minted);
            seen.tokens.retain(|_, of| *of != id);
            seen.polls.clear();
            seen.tokens.insert(token.clone(), id);
            token
        })
    }

    /// Makes a token worthless. Open polls with it end.
    pub fn revoke(&self, token: &str) {
        self.change(|seen| {
            seen.tokens.remove(token);
            seen.polls.clear();
        });
    }

    /// From now on every request is refused with this code, and what the service asks for.
    pub fn refuse(&self, with: Option<(u16, Option<u64>)>) {
        self.change(|seen| {
            seen.refuse = with;
            seen.polls.clear();
        });
    }

    /// Somebody has a webhook get the updates.
    pub fn webhook(&self) {
        self.change(|seen| seen.webhook = true);
    }

    /// While held, `getMe` is not answered: whoever connects is kept connecting.
    pub fn hold(&self, held: bool) {
        self.change(|seen| seen.held = held);
    }

    /// What it has seen so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic while held").clone()
    }

    /// Waits until something was seen.
    ///
    /// # Panics
    /// If it is not within two minutes.
    pub async fn until(&self, what: &str, found: impl Fn(&Seen) -> bool) -> Seen {
        let mut changes = self.changed.subscribe();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                let seen = self.seen();
                if found(&seen) {
                    return seen;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(seen) => seen,
            Err(_) => panic!("no {what} within {PATIENCE:?}: {:#?}", self.seen()),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        let result = change(&mut self.seen.lock().expect("no panic while held"));
        self.changed.send_modify(|n| *n += 1);
        result
    }
}

struct Request {
    caller: String,
    token: String,
    method: String,
    /// The file that is fetched, if it is none of the API's methods.
    file: Option<String>,
    body: Value,
}

/// One request, then the end: `/caller/bot<token>/<method>`.
async fn serve(stream: TcpStream, seen: Arc<Mutex<Seen>>, changed: watch::Sender<u64>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream).await? else { return Ok(()) };
    let change = |act: &mut dyn FnMut(&mut Seen)| {
        act(&mut seen.lock().expect("no panic while held"));
        changed.send_modify(|n| *n += 1);
    };
    let long = request.method == "getUpdates" && request.body["timeout"].as_u64() > Some(0);
    change(&mut |seen| {
        seen.requests.push((request.caller.clone(), request.method.clone()));
        if long {
            *seen.polling.entry(request.caller.clone()).or_default() += 1;
        }
    });
    let mut closed = [0; 1];
    let answer = tokio::select! {
        answer = answer(&request, &seen, &changed) => Some(answer),
        // A caller that is gone hears nothing any more.
        _ = stream.read(&mut closed) => None,
    };
    if long {
        change(&mut |seen| {
            let left = seen.polling.remove(&request.caller).unwrap_or_default();
            if left > 1 {
                seen.polling.insert(request.caller.clone(), left - 1);
            }
        });
    }
    let Some((status, body)) = answer else { return Ok(()) };
    let mut lost = false;
    change(&mut |seen| {
        let at = seen.cut.iter().position(|method| *method == request.method);
        lost = at.map(|at| seen.cut.remove(at)).is_some();
    });
    if lost {
        return Ok(());
    }
    let text = match &request.file {
        Some(path) => seen.lock().expect("no panic while held").files.get(path).cloned().unwrap_or_default(),
        None => body.to_string().into_bytes(),
    };
    let date = match seen.lock().expect("no panic while held") {
        seen if seen.dateless => String::new(),
        seen => format!("date: {}\r\n", crate::calendar::date(seen.ahead)),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{date}connection: close\r\n\r\n",
        text.len()
    );
    stream.get_mut().write_all(&[head.as_bytes(), &text].concat()).await
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let mut parts = path.rsplitn(3, '/').map(str::to_owned);
    let (method, bot, caller) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
    let (caller, file) = match caller.strip_suffix("/file") {
        Some(caller) => (caller.to_owned(), method.clone()),
        None => (caller, None),
    };
    let token = bot.unwrap_or_default().strip_prefix("bot").unwrap_or_default().to_owned();
    Ok(Some(Request {
        caller: caller.trim_start_matches('/').to_owned(),
        token,
        method: if file.is_some() { "file".into() } else { method.unwrap_or_default() },
        file,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

fn refused(code: u16, description: &str, retry_after: Option<u64>) -> (u16, Value) {
    let mut body = json!({"ok": false, "error_code": code, "description": description});
    if let Some(seconds) = retry_after {
        body["parameters"] = json!({"retry_after": seconds});
    }
    (code, body)
}

async fn answer(request: &Request, seen: &Mutex<Seen>, changed: &watch::Sender<u64>) -> (u16, Value) {
    let mut changes = changed.subscribe();
    let now = || seen.lock().expect("no panic while held").clone();
    if let Some((code, after)) = now().refuse {
        return refused(code, "refused by the test", after);
    }
    let Some(id) = now().tokens.get(&request.token).copied() else { return refused(401, "Unauthorized", None) };
    match request.method.as_str() {
        "getMe" => {
            // Whoever leaves drops this.
            let _ = changes.wait_for(|_| !now().held).await;
            (200, json!({"ok": true, "result": {"id": id, "is_bot": true, "username": format!("bot_{id}")}}))
        }
        "getUpdates" if now().webhook => {
            let why = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
            refused(409, why, None)
        }
        "getUpdates" => poll(request, seen, changed).await,
        "file" => (200, Value::Null),
        _ => {
            let answer = answers::answer(&mut seen.lock().expect("no panic while held"), request);
            changed.send_modify(|n| *n += 1);
            answer
        }
    }
}

/// The newest poll of a token wins; the one before it ends with a conflict.
async fn poll(request: &Request, seen: &Mutex<Seen>, changed: &watch::Sender<u64>) -> (u16, Value) {
    let seconds = request.body["timeout"].as_u64().unwrap_or(0);
    let offset = request.body["offset"].as_i64().unwrap_or(0);
    let limit = request.body["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100);
    let mut changes = changed.subscribe();
    let mine = {
        let mut seen = seen.lock().expect("no panic while held");
        // What comes before is not offered any more.
        seen.updates.retain(|(id, _)| *id >= offset);
        seen.minted += 1;
        let mine = seen.minted;
        let before = seen.polls.insert(request.token.clone(), (mine, request.caller.clone()));
        if before.is_some_and(|(_, caller)| caller != request.caller && seen.polling.contains_key(&caller)) {
            seen.conflicts += 1;
        }
        mine
    };
    changed.send_modify(|n| *n += 1);
    let ended = changes.wait_for(|_| {
        let seen = seen.lock().expect("no panic while held");
        !seen.updates.is_empty() || seen.polls.get(&request.token).is_none_or(|(newest, _)| *newest != mine)
    });
    let _ = tokio::time::timeout(Duration::from_secs(seconds), ended).await;
    let seen = seen.lock().expect("no panic while held");
    if let Some((code, after)) = seen.refuse {
        return refused(code, "refused by the test", after);
    }
    if !seen.tokens.contains_key(&request.token) {
        return refused(401, "Unauthorized", None);
    }
    if seen.polls.get(&request.token).is_none_or(|(newest, _)| *newest != mine) {
        return refused(409, "Conflict: terminated by other getUpdates request", None);
    }
    let updates: Vec<&Value> = seen.updates.iter().map(|(_, update)| update).take(limit).collect();
    (200, json!({"ok": true, "result": updates}))
}
