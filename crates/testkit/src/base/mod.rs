//! Scripted peers of the base wire: what an unmodified machine-bridge-mcp 1.2.10 sends, frame by frame, in either role.

mod bench;
mod daemon;
mod relay;
mod wire;

pub use bench::{DaemonBench, RelayBench};
pub use daemon::{dial, hello, instance};
pub use relay::{BaseRelay, call_id};
pub use wire::{Frame, Wire};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_two_scripted_peers_understand_each_other() {
        let relay = BaseRelay::start("sixteen-characters").await;
        let address = format!("http://{}", relay.address());
        let daemon = async {
            assert_eq!(dial(&address, "wrong").await.map(|_| ()).expect_err("refused").0, 401);
            let mut wire = dial(&address, "sixteen-characters").await.expect("upgraded");
            let resumed = wire.become_ready(&instance("a"), &["list_dir"]).await;
            assert_eq!(resumed, [call_id("old")]);
            let call = wire.expect("tool_call").await;
            wire.send(json!({"type": "heartbeat", "ts": 1})).await;
            wire.succeed(&call, json!({"n": 1})).await;
            assert_eq!(wire.expect("pong").await["ts"], 1);
            assert_eq!(wire.closed().await, (vec![], 1012, "bye".into()));
        };
        let relay = async {
            let mut wire = relay.accept().await;
            let hello = wire.prove(&[&call_id("old")]).await;
            assert_eq!(hello["instance_id"], instance("a"));
            wire.call(&call_id("new"), "list_dir", json!({})).await;
            assert_eq!(wire.result().await["result"], json!({"n": 1}));
            wire.close(1012, "bye").await;
        };
        tokio::join!(daemon, relay);
    }
}
