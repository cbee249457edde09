//! One direction: core ← store ← relay ← host ← cli and the desktop shell; testkit only in tests. And one copy of what must be one.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::{read, root};

fn cargo(arguments: &[&str]) -> String {
    let run = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().expect("cargo runs");
    assert!(run.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("cargo speaks UTF-8")
}

/// Package → the workspace's own packages it depends on, dev-dependencies apart.
fn own_dependencies() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let text = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let name = |of: &Value| of["name"].as_str().expect("a name").to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    packages
        .iter()
        .map(|package| {
            let (mut built, mut dev) = (BTreeSet::new(), BTreeSet::new());
            for dependency in package["dependencies"].as_array().expect("dependencies") {
                let set = if dependency["kind"] == "dev" { &mut dev } else { &mut built };
                if ours.contains(&name(dependency)) {
                    set.insert(name(dependency));
                }
            }
            (name(package), (built, dev))
        })
        .collect()
}

#[test]
fn crates_depend_in_one_direction() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("holdfast-core", &[][..]),
        ("holdfast-store", &["holdfast-core"]),
        ("holdfast-relay", &["holdfast-core", "holdfast-store"]),
        ("holdfast-host", &["holdfast-core", "holdfast-relay", "holdfast-store"]),
        ("holdfast", &["holdfast-core", "holdfast-host", "holdfast-relay"]),
        ("holdfast-testkit", &["holdfast-core"]),
        ("holdfast-desktop", &["holdfast-core", "holdfast-host"]),
        ("holdfast-bench", &["holdfast-core", "holdfast-host", "holdfast-relay", "holdfast-testkit"]),
    ]);
    for (package, (built, dev)) in own_dependencies() {
        let may = allowed.get(package.as_str()).unwrap_or_else(|| panic!("{package} has no place in the house yet"));
        for dependency in &built {
            assert!(may.contains(&dependency.as_str()), "{package} must not depend on {dependency}");
        }
        // A test may look from above, but the lower crates stay testable without the upper ones.
        for dependency in dev.iter().filter(|d| *d != "holdfast-testkit") {
            let upwards =
                matches!(package.as_str(), "holdfast-core" | "holdfast-store" | "holdfast-relay" | "holdfast-host");
            assert!(!upwards || may.contains(&dependency.as_str()), "{package}'s tests must not need {dependency}");
        }
    }
}

#[test]
fn core_reaches_nothing_that_does_io() {
    let tree = cargo(&["tree", "--offline", "-p", "holdfast-core", "-e", "normal", "--prefix", "none", "-f", "{lib}"]);
    for line in tree.lines() {
        let io = ["tokio", "mio", "hyper", "axum", "rusqlite", "socket2", "async_std", "smol", "reqwest", "tracing"];
        assert!(!io.contains(&line.trim()), "holdfast-core must not depend on {line}");
    }
}

#[test]
fn there_is_one_copy_of_what_must_be_one() {
    let lock = read(&root().join("Cargo.lock"));
    let count = |name: &str| lock.lines().filter(|line| *line == format!("name = \"{name}\"")).count();
    for one in [
        "tungstenite",
        "tokio-tungstenite",
        "rusqlite",
        "libsqlite3-sys",
        "rustls",
        "ring",
        "axum",
        "hyper",
        "tokio",
        "rmcp",
    ] {
        assert_eq!(count(one), 1, "copies of {one}");
    }
    // ring is the one provider of rustls; nothing brings OpenSSL.
    for none in ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls", "rustls-openssl"] {
        assert_eq!(count(none), 0, "copies of {none}");
    }
}

#[test]
fn tauri_stays_behind_its_feature_and_rmcp_in_the_relay() {
    let text = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&text).expect("JSON");
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("a name");
            if on == "rmcp" {
                assert_eq!(name, "holdfast-relay", "only the relay depends on rmcp");
            }
            if on.starts_with("tauri") {
                assert_eq!(name, "holdfast-desktop", "only the desktop package depends on {on}");
                assert_eq!(dependency["optional"], true, "{on} is behind the feature desktop");
            }
        }
    }
}
