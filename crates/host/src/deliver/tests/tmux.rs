//! Against a real tmux, on a socket of its own.

use std::process::Command;

use super::*;
use crate::deliver::tmux::TmuxAgent;

/// A server that ends with the test.
struct Server {
    folder: tempfile::TempDir,
}

impl Server {
    /// With one window `agent` that runs this.
    fn new(program: &str) -> Server {
        let server = Server { folder: tempfile::tempdir().unwrap() };
        server.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "work",
            "-n",
            "agent",
            "-x",
            "200",
            "-y",
            "50",
            program,
        ]);
        server
    }

    fn socket(&self) -> String {
        self.folder.path().join("socket").to_str().unwrap().to_owned()
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-S", &self.socket()]).args(arguments).output().expect("tmux");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn agent(&self, bench: &Bench, pane: &str) -> Arc<dyn Agent> {
        let config = BindingConfig { pane: Some(pane.into()), ..binding(Delivery::Tmux) };
        let mut agent = TmuxAgent::new(Arc::clone(&bench.courier.programs), &config).unwrap();
        agent.tmux = ["tmux", "-S", &self.socket()].map(str::to_owned).to_vec();
        Arc::new(agent)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-S", &self.socket(), "kill-server"]).output();
    }
}

/// A program that keeps every byte it is typed, each as two digits, the terminal being raw. It asks for bracketed pastes.
fn recorder(bench: &Bench) -> String {
    let kept = bench.path("kept");
    let kept = kept.display();
    bench.script("recorder", &format!("stty raw -echo; printf '\\033[?2004h'; : > {kept}; exec cat >> {kept}"))
}

async fn kept(bench: &Bench, end: &str) -> String {
    until(|| std::fs::read_to_string(bench.path("kept")).is_ok_and(|text| text.ends_with(end))).await;
    bench.read("kept")
}

#[tokio::test]
async fn a_message_is_one_bracketed_paste_without_control_characters_and_then_enter() {
    let bench = Bench::new();
    let server = Server::new(&recorder(&bench));
    until(|| bench.path("kept").exists()).await;
    let agent = server.agent(&bench, "work:agent");
    let message = said(1, "one\r\n\ttwo \u{1b}[201~ \u{3}three\u{7f}; \u{9b}$(id)");
    let prepared = Prepared { files: vec!["/f/a.png".into()], note: String::new() };
    agent.deliver(&message, &prepared).await.unwrap();
    // A terminal gives a line's end in a paste as the Enter key does.
    assert_eq!(
        kept(&bench, "\x1b[201~\r").await,
        "\x1b[200~one\r\ttwo [201~ three; $(id)\r[file: /f/a.png]\x1b[201~\r"
    );
    assert_eq!(server.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn nothing_that_is_written_ends_the_paste_or_is_a_key() {
    let bench = Bench::new();
    let server = Server::new(&recorder(&bench));
    until(|| bench.path("kept").exists()).await;
    let agent = server.agent(&bench, "work:agent");
    let attacks = [
        "\x1b[201~\rrm -rf x\r",
        // What is left where the escapes of an attack are removed once must not be one.
        "\x1b\x1b[201~[201~",
        "\u{9b}201~\u{90}x\u{9c}",
        "\u{c2}\u{9b}201~",
        "C-c Enter; kill-server\x03\x04\x1a",
        "#{pane_id} #(touch x) %1 -t ; \\; $(id) `id`",
    ];
    for (seq, attack) in attacks.iter().enumerate() {
        std::fs::write(bench.path("kept"), "").unwrap();
        agent.deliver(&said(seq as u64, attack), &Prepared::default()).await.unwrap();
        let typed = kept(&bench, "\x1b[201~\r").await;
        let inside = typed.strip_prefix("\x1b[200~").and_then(|rest| rest.strip_suffix("\x1b[201~\r")).unwrap();
        assert!(inside.chars().all(|c| !c.is_control() || c == '\r'), "{inside:?}");
        let expected: String = attack.chars().filter(|c| !c.is_control() || *c == '\r').collect();
        assert_eq!(inside.replace('\r', ""), expected.replace('\r', ""));
    }
}

#[tokio::test]
async fn a_pane_in_copy_mode_hears_again_and_stop_presses_its_key() {
    let bench = Bench::new();
    let server = Server::new(&recorder(&bench));
    until(|| bench.path("kept").exists()).await;
    server.tmux(&["copy-mode", "-t", "work:agent"]);
    let pane = server.tmux(&["display-message", "-p", "-t", "work:agent", "#{pane_id}"]);
    let agent = server.agent(&bench, pane.trim());
    agent.deliver(&said(1, "x"), &Prepared::default()).await.unwrap();
    assert_eq!(kept(&bench, "\r").await, "\x1b[200~x\x1b[201~\r");
    assert_eq!(agent.stop().await, Ok("Pressed Escape in the agent's pane.".into()));
    assert_eq!(kept(&bench, "\x1b").await, "\x1b[200~x\x1b[201~\r\x1b");
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let bench = Bench::new();
    let deliver = async |agent: Arc<dyn Agent>| match agent.deliver(&said(1, "x"), &Prepared::default()).await {
        Err(Undelivered::Not(why)) => why,
        other => panic!("{other:?}"),
    };
    let server = Server::new("cat");
    assert_eq!(deliver(server.agent(&bench, "other:agent")).await, "tmux knows no pane other:agent");
    assert_eq!(deliver(server.agent(&bench, "%99")).await, "tmux knows no pane %99");
    server.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    server.tmux(&["respawn-pane", "-k", "-t", "work:agent", "true"]);
    until(|| server.tmux(&["display-message", "-p", "-t", "work:agent", "#{pane_dead}"]).trim() == "1").await;
    let agent = server.agent(&bench, "work:agent");
    assert_eq!(deliver(Arc::clone(&agent)).await, "the program in pane work:agent has ended");
    server.tmux(&["kill-server"]);
    // It ends a little later than it says.
    let gone = || Command::new("tmux").args(["-S", &server.socket(), "list-sessions"]).output().unwrap().stderr;
    until(|| gone().starts_with(b"no server running on ")).await;
    assert_eq!(deliver(agent).await, format!("no server running on {}", server.socket()));
    let config = BindingConfig { pane: Some("x".into()), ..binding(Delivery::Tmux) };
    let mut agent = TmuxAgent::new(Arc::clone(&bench.courier.programs), &config).unwrap();
    agent.tmux = vec!["/no/such/tmux".to_owned()];
    assert_eq!(deliver(Arc::new(agent)).await, "/no/such/tmux: no such program");
}

#[tokio::test]
async fn what_was_pasted_and_not_entered_is_perhaps_delivered() {
    let bench = Bench::new();
    let config = BindingConfig { pane: Some("x".into()), ..binding(Delivery::Tmux) };
    let mut agent = TmuxAgent::new(Arc::clone(&bench.courier.programs), &config).unwrap();
    let script = r#"case "$*" in
        display-message*) echo "%1 0 0" ;;
        *Enter) echo "lost server" >&2; exit 1 ;;
        *) cat > /dev/null ;;
    esac"#;
    agent.tmux = vec![bench.script("tmux", script)];
    let given = agent.deliver(&said(1, "x"), &Prepared::default()).await;
    let why = "it was typed, but Enter was not pressed: lost server";
    assert_eq!(given, Err(Undelivered::Perhaps(why.into())));
}

#[test]
fn panes_and_keys_that_would_be_more_than_that_are_refused() {
    let bench = Bench::new();
    let why = |pane: Option<&str>, key: Option<&str>| {
        let (pane, stop_key) = (pane.map(Into::into), key.map(Into::into));
        let config = BindingConfig { pane, stop_key, ..binding(Delivery::Tmux) };
        bench.courier.agent(&config, no_session()).err()
    };
    assert_eq!(why(None, None).as_deref(), Some("`pane` is not set"));
    for bad in ["", "-t", "a;", "a\nb", "a\u{1b}"] {
        assert_eq!(why(Some(bad), None).as_deref(), Some("`pane` is no pane as `tmux -t` takes it"), "{bad:?}");
    }
    for good in ["%3", "work:1.2", "=my session:agent", "{last}"] {
        assert_eq!(why(Some(good), Some("C-c")), None, "{good}");
    }
    for bad in ["", "-X", "Enter;", "C-c x"] {
        assert!(why(Some("%1"), Some(bad)).is_some_and(|why| why.starts_with("`stop_key` is no key")), "{bad:?}");
    }
}
