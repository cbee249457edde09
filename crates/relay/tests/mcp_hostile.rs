//! The fourth of rmcp's defects (see `tests/mcp/defects.rs`): a body of four million bytes of small values must cost neither a second of CPU nor hundreds of megabytes. Alone in
//! its process, because it reads the process's own peak memory.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

use std::fs;

use holdfast_core::switchboard::Identity;
use holdfast_relay::{RelayOptions, TokenRequest};
use holdfast_testkit::base;
use serde_json::Value;

/// Extra memory that one hostile body may cost, in KiB.
const EXTRA_KIB: u64 = 48 * 1024;
const BODY: usize = 4 * 1024 * 1024;

fn status_kib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// `5` sets the peak back to what is in use now.
fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[tokio::test]
async fn a_hostile_body_of_small_values_stays_within_its_memory_whatever_message_it_claims_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let options = RelayOptions { identity: Identity::base(), ..RelayOptions::loopback(0, dir.path()) };
    let relay = holdfast_relay::start(options).await.unwrap();
    let owner = relay.admin.ensure_owner("anna").await.unwrap();
    let credential = relay.admin.enrol_local(&owner.id, "desk").await.unwrap().token;
    let mut device = base::dial(relay.mcp_url().trim_end_matches("/mcp"), &credential).await.unwrap();
    device.become_ready(&base::instance("one"), &["list_dir"]).await;
    let request = TokenRequest { name: "t".into(), ..TokenRequest::default() };
    let token = relay.admin.create_token(request).await.unwrap().token;
    let http = holdfast_testkit::mcp::http();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    for value in ["1,", "{},", "[],", r#"{"a":1},"#, "\"\","] {
        let flood = value.repeat(BODY / value.len());
        for (method, params, status) in [
            ("tools/call", format!(r#"{{"name":"server_info","arguments":{{"a":[{flood}1]}},{meta}}}"#), 200),
            ("tools/call", format!(r#"{{"name":"list_dir","arguments":{{"a":[{flood}1]}},{meta}}}"#), 200),
            ("tools/list", format!(r#"{{"padding":[{flood}1],{meta}}}"#), 413),
        ] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            drop(params);
            let mut request = http.post(relay.mcp_url()).bearer_auth(&token).header("content-type", "application/json");
            request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
            if method == "tools/call" {
                request =
                    request.header("mcp-name", if body.contains("server_info") { "server_info" } else { "list_dir" });
            }
            let request = request.body(body).build().unwrap();
            forget_peak();
            let before = status_kib("VmRSS");
            let response = http.execute(request).await.unwrap();
            assert_eq!(response.status(), status);
            let answer: Value = response.json().await.unwrap();
            assert_eq!(answer["id"], 1);
            let extra = status_kib("VmHWM").saturating_sub(before);
            assert!(extra <= EXTRA_KIB, "{method} full of {value}: {extra} KiB");
        }
    }
}
