//! The service's HTTP, by hand: a connection can be cut at any point of an answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use url::Url;

use super::{Fault, Shared};

/// One request, as it came: `/<caller>/<path>?<query>`.
#[derive(Debug)]
pub(super) struct Request {
    pub caller: String,
    pub method: String,
    pub path: Vec<String>,
    pub query: BTreeMap<String, String>,
    /// The header, as it came.
    pub authorization: Option<String>,
    /// Whether it names its program as Discord wants it.
    pub named: bool,
    pub body: Value,
}

impl Request {
    /// The method and the path, with `*` for every id and every token.
    pub fn route(&self) -> String {
        let is_id = |part: &str| part.len() > 3 && part.bytes().all(|b| b.is_ascii_digit());
        let varies = |part: &str| is_id(part) || part.starts_with(super::people::TOKEN);
        let parts = self.path.iter().map(|part| if varies(part) { "*" } else { part });
        format!("{} {}", self.method, parts.collect::<Vec<_>>().join("/"))
    }
}

/// An answer.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Reply {
        let headers = vec![("content-type", "application/json".to_owned())];
        Reply { status, headers, body: body.to_string().into_bytes() }
    }

    pub fn none() -> Reply {
        Reply { status: 204, ..Reply::default() }
    }

    pub fn refusal(status: u16, code: u32, message: &str) -> Reply {
        Reply::json(status, &serde_json::json!({"message": message, "code": code}))
    }

    fn bytes(&self, date: &str) -> Vec<u8> {
        let length = self.body.len();
        let mut head = format!("HTTP/1.1 {} X\r\ndate: {date}\r\ncontent-length: {length}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut bytes = format!("{head}\r\n").into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Requests of one connection, one after the other.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let fault = shared.change(|world| {
            world.saw(&request);
            world.fault(&request)
        });
        let reply = match fault {
            Some(Fault::CutBefore) => return Ok(()),
            Some(Fault::Refuse(status)) => Reply::refusal(status, 0, "refused by the test"),
            Some(Fault::Limit { after, global }) => super::rest::limited(after, global, "user"),
            _ => shared.change(|world| world.answer(&request)),
        };
        let date = || crate::calendar::date(shared.world().ahead);
        match fault {
            Some(Fault::Cut) => return Ok(()),
            Some(Fault::Half) => {
                let bytes = reply.bytes(&date());
                return stream.get_mut().write_all(&bytes[..bytes.len() - reply.body.len() / 2 - 1]).await;
            }
            Some(Fault::Hang) => {
                let mut gone = [0; 1];
                let mut changes = shared.changed.subscribe();
                tokio::select! {
                    _ = stream.read(&mut gone) => return Ok(()),
                    _ = changes.wait_for(|_| !shared.world().hanging) => {}
                }
            }
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            _ => {}
        }
        stream.get_mut().write_all(&reply.bytes(&date())).await?;
    }
    Ok(())
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut authorization, mut named) = (0, None, false);
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "user-agent" => named = value.trim().starts_with("DiscordBot ("),
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let Ok(url) = Url::parse(&format!("http://discord.test{target}")) else { return Ok(None) };
    let mut path = url.path_segments().into_iter().flatten().map(decoded);
    Ok(Some(Request {
        caller: path.next().unwrap_or_default(),
        method,
        path: path.collect(),
        query: url.query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect(),
        authorization,
        named,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    }))
}

/// A part of a path without its percent signs.
fn decoded(part: &str) -> String {
    let form = format!("x={}", part.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}
