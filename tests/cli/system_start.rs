//! `service`, with a systemctl that only notes what it is told, and `reset`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use holdfast_testkit::home::Home;
use holdfast_testkit::mcp::Modern;
use serde_json::json;

use super::embedded::serve;

/// A home whose PATH begins with a systemctl of ours, which fails when told of a verb in `refuses`.
struct Systemd {
    home: Home,
    bin: tempfile::TempDir,
}

impl Systemd {
    fn new(refuses: &str) -> Systemd {
        let bin = tempfile::tempdir().expect("a folder");
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> {0}/told\ncase \"$*\" in {refuses}) echo no bus >&2; exit 1;; esac\n\
             case \"$*\" in *show*) echo active;; esac\n",
            bin.path().display()
        );
        fs::write(bin.path().join("systemctl"), script).expect("a script");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bin.path().join("systemctl"), mode).expect("a program");
        Systemd { home: Home::new(), bin }
    }

    async fn run(&self, args: &[&str]) -> Output {
        let path = format!("{}:{}", self.bin.path().display(), std::env::var("PATH").expect("a PATH"));
        self.home.command(args).env("PATH", path).output().await.expect("it runs")
    }

    async fn says(&self, args: &[&str]) -> String {
        let output = self.run(args).await;
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn told(&self) -> Vec<String> {
        let told = fs::read_to_string(self.bin.path().join("told")).unwrap_or_default();
        told.lines().map(str::to_owned).collect()
    }

    fn root(&self) -> std::path::PathBuf {
        self.home.data().parent().expect("a home").to_owned()
    }

    fn unit(&self) -> std::path::PathBuf {
        self.root().join("xdg-config/systemd/user/holdfast.service")
    }
}

#[tokio::test]
async fn a_service_is_installed_asked_about_and_removed() {
    let systemd = Systemd::new("never");
    let unit = systemd.unit().display().to_string();
    assert_eq!(systemd.says(&["service", "status"]).await, "no service is installed");
    let said = systemd.says(&["service", "install", "serve", "--listen", "127.0.0.1:0", "--workspace", "work"]).await;
    let expected = [
        &*format!("wrote {unit}"),
        "systemctl --user daemon-reload",
        "systemctl --user enable holdfast.service",
        "systemctl --user restart holdfast.service",
        "it runs while you are signed in; `loginctl enable-linger` makes it run always",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let root = systemd.root().canonicalize().expect("a folder");
    let text = fs::read_to_string(&unit).expect("a unit");
    let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a start");
    let (program, arguments) = start.split_once(' ').expect("arguments");
    assert!(program.ends_with("/holdfast") && std::path::Path::new(program).is_absolute(), "{program}");
    let (config, data) = (systemd.home.config(), systemd.home.data());
    let (work, config, data) = (root.join("workspace/work"), config.display(), data.display());
    let expected =
        format!("serve --workspace {} --listen 127.0.0.1:0 --config-dir {config} --data-dir {data}", work.display());
    assert_eq!(arguments, expected);
    assert_eq!(systemd.says(&["service", "status"]).await, format!("{unit}: active"));

    let said = systemd.says(&["service", "remove"]).await;
    let expected = [
        "systemctl --user disable --now holdfast.service",
        &*format!("removed {unit}"),
        "systemctl --user daemon-reload",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert!(!systemd.unit().exists());
    assert_eq!(systemd.says(&["service", "remove"]).await, "no service is installed");
    let told = systemd.told();
    let verbs: Vec<_> = told.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(verbs, ["show", "daemon-reload", "enable", "restart", "show", "disable", "daemon-reload"]);
}

#[tokio::test]
async fn what_systemd_refuses_is_told_and_a_unit_of_somebody_else_stays() {
    let systemd = Systemd::new("*enable*");
    let output = systemd.run(&["service", "install", "serve"]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("but `systemctl --user enable holdfast.service` failed: no bus"), "{said}");
    fs::write(systemd.unit(), "[Service]\nExecStart=/bin/true\n").expect("a unit");
    for command in [&["service", "install", "serve"][..], &["service", "remove"]] {
        let output = systemd.run(command).await;
        assert!(String::from_utf8_lossy(&output.stderr).contains("was not written by this command"), "{output:?}");
    }
    assert_eq!(fs::read_to_string(systemd.unit()).expect("a unit"), "[Service]\nExecStart=/bin/true\n");
}

#[tokio::test]
async fn no_service_takes_the_folder_of_a_process_that_runs() {
    let systemd = Systemd::new("never");
    let _serve = serve(&systemd.home).await;
    let output = systemd.run(&["service", "install", "serve"]).await;
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Holdfast is already running on this data folder"),
        "{output:?}"
    );
    assert!(!systemd.unit().exists());
}

#[tokio::test]
async fn a_reset_removes_what_is_holdfast_s_and_nothing_else() {
    let home = Home::new();
    home.write_config("# mine\n");
    let never = home.run(&["reset", "--yes"]).await;
    assert!(String::from_utf8_lossy(&never.stderr).contains("is no data folder of Holdfast"), "{never:?}");
    let mut process = serve(&home).await;
    let token = home.ok(&["token", "create", "--name", "script"]).await;
    let client = Modern::new(process.ready_text("mcp"), &*token);
    client.call("write_file", json!({"path": "a.txt", "content": "x"})).send().await.expect("an answer").content();
    let held = home.run(&["reset", "--yes"]).await;
    assert!(String::from_utf8_lossy(&held.stderr).contains("quit it first"), "{held:?}");
    home.ok(&["stop", "link"]).await;
    assert_eq!(process.stop().await.code(), Some(0));
    fs::write(home.data().join("mine.txt"), "x").expect("a file of a person");

    let unsure = home.run_with(&["reset"], "yes\n").await;
    let asked = String::from_utf8_lossy(&unsure.stderr).into_owned();
    assert!(asked.contains("secrets.json  (credentials)") && asked.ends_with("nothing was removed\n"), "{asked}");
    assert!(home.data().join("secrets.json").exists());
    assert!(home.run_with(&["reset"], "reset\n").await.status.success());
    let mut left: Vec<_> =
        fs::read_dir(home.data()).expect("it stays").map(|e| e.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["lock", "mine.txt"]);
    assert_eq!(fs::read_to_string(home.workspace().join("a.txt")).expect("it stays"), "x");
    assert!(home.config().join("config.toml").exists());
    assert!(home.run(&["reset", "--yes", "--all"]).await.status.success());
    assert!(!home.config().join("config.toml").exists());
}
