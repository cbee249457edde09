//! What is typed wrong, and output that nobody reads.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Output, Stdio};

use holdfast_testkit::home::Home;
use serde_json::Value;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command whose stdout and stderr are pipes that nobody reads.
async fn unheard(home: &Home, args: &[&str]) -> Option<i32> {
    let mut command = home.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    child.wait().await.unwrap().code()
}

#[tokio::test]
async fn a_command_nobody_listens_to_ends_as_it_would_have() {
    let home = Home::new();
    // What makes this a data folder of Holdfast.
    home.ok(&["channel", "people", "--admit", "81"]).await;
    home.ok(&["account", "add", "ann", "--role", "owner"]).await;
    for (args, ends) in [
        (&["reset"][..], 1),
        (&["reset", "--json"], 1),
        (&["nonsense"], 2),
        (&["nonsense", "--json"], 2),
        (&[], 2),
        (&["--help"], 0),
        (&["op", "run", "--help"], 0),
        (&["--version"], 0),
        (&["status"], 3),
        (&["status", "--json"], 3),
        (&["op", "read", "x"], 3),
        (&["op", "run", "--", "true"], 3),
        (&["seat", "show"], 3),
        (&["drill"], 3),
        (&["channel", "show"], 1),
        (&["channel", "people"], 0),
        (&["channel", "people", "--admit", "abc"], 1),
        (&["channel", "setup"], 2),
        (&["approve"], 2),
        (&["enroll", "http://127.0.0.1:9"], 2),
        (&["account", "list"], 0),
        (&["completions", "bash"], 0),
        (&["config-schema"], 0),
        (&["reset", "--yes"], 0),
    ] {
        assert_eq!(unheard(&home, args).await, Some(ends), "{args:?}");
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_read_ends_with_2_and_says_what_is_expected() {
    let home = Home::new();
    for (args, why) in [
        (&["serve", "--relay", "ftp://x"][..], "a web address such as https://relay.example is expected"),
        (&["enroll", "notaurl", "AAAA"], "a web address such as https://relay.example is expected"),
        (&["op", "run", "--timeout", "0s", "--", "true"], "it would be over at once; without it there is no limit"),
        (&["op", "run", "--timeout", "1d", "--", "true"], "a time such as 500ms, 5s, 2m or 1h is expected"),
        (&["op", "run", "--env", "FOO", "--", "true"], "a name and its value are expected, such as LANG=C"),
        (&["approve"], "the code is missing: write it after the command, or to stdin"),
        (&["enroll", "http://127.0.0.1:9"], "the code is missing: write it after the command, or to stdin"),
        (&["channel", "setup"], "the token is missing: its first line of stdin is read"),
        (&["channel", "bind", "app"], "nothing to change: name at least one option"),
    ] {
        let refused = home.run(args).await;
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(why), "{args:?}: {}", stderr(&refused));
        let refused = home.run(&[&["--json"], args].concat()).await;
        let said: Value = serde_json::from_str(&stderr(&refused)).unwrap();
        assert_eq!((refused.status.code(), &said["error"]["code"]), (Some(2), &"invalid_request".into()), "{args:?}");
        assert!(said["error"]["message"].as_str().unwrap().contains(why), "{said}");
    }
    let unknown = home.run(&["--json", "foo"]).await;
    let said: Value = serde_json::from_str(&stderr(&unknown)).unwrap();
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("unrecognized subcommand 'foo'"), "{said}");
    // An hour is a time; only that nothing runs is in the way.
    assert_eq!(home.run(&["op", "run", "--timeout", "1h", "--", "true"]).await.status.code(), Some(3));
}

#[tokio::test]
async fn a_start_that_failed_says_why_and_nothing_else() {
    let home = Home::new();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--workspace", "/not/there"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(stderr(&refused), "holdfast: workspace /not/there: No such file or directory (os error 2)\n");
}
