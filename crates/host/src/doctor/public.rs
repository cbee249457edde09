//! `doctor --public`: what the world sees of a published relay.

use std::path::Path;
use std::time::Instant;

use holdfast_core::limits;
use holdfast_core::wire::BASE_PROTOCOL;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{Check, Report};
use crate::http_client::{self, root_cause};

const SESSION: &str = "mcp-session-id";

/// Looks at a relay under its public address, as a client from elsewhere would.
///
/// `token` is a bearer token of that relay; without one, streaming is not looked at.
pub async fn examine_public(relay: &Url, ca_file: Option<&Path>, token: Option<&SecretString>) -> Report {
    let origin = relay.origin().ascii_serialization();
    let mut checks = vec![address(relay, &origin)];
    match http_client::to_relay(ca_file).await {
        Err(e) => checks.push(Check::failed("tls", e.to_string())),
        Ok(client) => {
            let reached = reach(&client, &origin).await;
            let go_on = reached.state == super::CheckState::Ok;
            checks.push(reached);
            if go_on {
                checks.push(metadata(&client, &origin).await);
                checks.push(challenge(&client, &origin).await);
                checks.push(match token {
                    Some(token) => streaming(&client, &origin, token).await,
                    None => {
                        Check::skipped("streaming", "needs the relay's own machine, running, with a device enrolled")
                    }
                });
            }
        }
    }
    Report::of(checks)
}

fn address(relay: &Url, origin: &str) -> Check {
    match relay.scheme() {
        _ if http_client::is_this_machine(relay) => {
            Check::warning("address", format!("{origin} is reachable from this machine only"))
                .advise("a relay for elsewhere runs on a host that does not sleep: holdfast relay --public-url …")
        }
        "https" => Check::ok("address", origin),
        _ => Check::failed("address", format!("{origin} is not encrypted"))
            .advise("clients refuse http: except on this machine"),
    }
}

async fn reach(client: &reqwest::Client, origin: &str) -> Check {
    let began = Instant::now();
    match client.get(format!("{origin}/healthz")).timeout(limits::API_ANSWER).send().await {
        Ok(r) if r.status().is_success() => {
            Check::ok("reach", format!("answered in {} ms", began.elapsed().as_millis()))
        }
        Ok(r) => {
            Check::failed("reach", format!("answered {}", r.status())).advise("is another program on that address?")
        }
        Err(e) => Check::failed("reach", root_cause(&e)),
    }
}

/// The issuer must be what clients dial, or their authorization ends somewhere else.
async fn metadata(client: &reqwest::Client, origin: &str) -> Check {
    let url = format!("{origin}/.well-known/oauth-authorization-server");
    let body: Value = match client.get(url).timeout(limits::API_ANSWER).send().await {
        Err(e) => return Check::failed("issuer", root_cause(&e)),
        Ok(response) => response.json().await.unwrap_or_default(),
    };
    match body["issuer"].as_str().map(|i| i.trim_end_matches('/')) {
        Some(issuer) if issuer == origin => Check::ok("issuer", issuer),
        Some(issuer) => Check::failed("issuer", format!("the relay calls itself {issuer}"))
            .advise(format!("start it with --public-url {origin}")),
        None => Check::failed("issuer", "no authorization server is described"),
    }
}

/// Without a token the endpoint must say where to get one; a proxy that swallows the header breaks every client.
async fn challenge(client: &reqwest::Client, origin: &str) -> Check {
    match client.post(format!("{origin}/mcp")).json(&json!({})).timeout(limits::API_ANSWER).send().await {
        Err(e) => Check::failed("challenge", root_cause(&e)),
        Ok(r) if r.status() == 401 && r.headers().contains_key("www-authenticate") => {
            Check::ok("challenge", "401 with its header")
        }
        Ok(r) => Check::failed("challenge", format!("{} instead of 401 with WWW-Authenticate", r.status()))
            .advise("does the reverse proxy add or drop headers?"),
    }
}

/// A stream must come through as it is written; a proxy that collects it first breaks every long answer.
async fn streaming(client: &reqwest::Client, origin: &str, token: &SecretString) -> Check {
    let url = format!("{origin}/mcp");
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": BASE_PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "holdfast doctor", "version": env!("CARGO_PKG_VERSION")},
    }});
    let accept = "application/json, text/event-stream";
    let opened = client
        .post(&url)
        .bearer_auth(token.expose_secret())
        .header("accept", accept)
        .json(&initialize)
        .timeout(limits::API_ANSWER)
        .send()
        .await;
    let session = match opened {
        Err(e) => return Check::failed("streaming", root_cause(&e)),
        Ok(response) => match response.headers().get(SESSION).cloned() {
            Some(session) => session,
            None => return Check::failed("streaming", format!("no session was opened: {}", response.status())),
        },
    };
    let request = |method: reqwest::Method| {
        client
            .request(method, &url)
            .bearer_auth(token.expose_secret())
            .header(SESSION, &session)
            .header("accept", accept)
    };
    let began = Instant::now();
    let first = async { request(reqwest::Method::GET).send().await?.chunk().await };
    let found = match tokio::time::timeout(limits::SSE_COMMENT + limits::API_ANSWER, first).await {
        Ok(Ok(Some(_))) => {
            Check::ok("streaming", format!("the first bytes came after {} ms", began.elapsed().as_millis()))
        }
        Ok(Ok(None)) => Check::failed("streaming", "the stream was closed at once")
            .advise("does the reverse proxy end idle answers?"),
        Ok(Err(e)) => Check::failed("streaming", root_cause(&e)),
        Err(_) => Check::failed("streaming", "nothing came through")
            .advise("turn the reverse proxy's buffering of answers off"),
    };
    // The session would end by itself; this is only tidiness.
    let _ = request(reqwest::Method::DELETE).timeout(limits::API_ANSWER).send().await;
    found
}
