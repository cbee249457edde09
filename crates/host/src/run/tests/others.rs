//! Terminals, ports, full disks, and a starter that dies.

use holdfast_core::operation::Stream;
use holdfast_core::run::{Ask, Tell};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn pty(line: &str) -> Program {
    Program::Pty { argv: vec!["sh".into(), "-c".into(), line.into()], cols: 80, rows: 24 }
}

/// Waits until a terminal shows something.
async fn shown(folder: &Path, attached: &mut Attached, wanted: &str) {
    while !text(folder, Stream::Pty).contains(wanted) {
        told(attached, |tell| matches!(tell, Tell::Grew { .. })).await;
    }
}

#[tokio::test]
async fn a_terminal_echoes_has_a_size_and_hangs_up() {
    let home = Home::new();
    let line = "trap 'stty size; echo resized' WINCH; trap 'echo hung up; exit 3' HUP; stty size; echo ready; \
                while true; do read -r line && echo \"got $line\"; done";
    let folder = home.run(pty(line), |_| {});
    starter().start(&folder).await.unwrap();
    let mut attached = attach(&folder).await.unwrap();
    shown(&folder, &mut attached, "24 80\r\nready\r\n").await;
    assert_eq!(give(&mut attached, 1, "≤ 3\n".as_bytes(), false).await, None);
    shown(&folder, &mut attached, "≤ 3\r\ngot ≤ 3\r\n").await;
    attached.asker().ask(&Ask::Resize { id: id(2), cols: 132, rows: 50 }).await.unwrap();
    told(&mut attached, |tell| *tell == Tell::Done { id: id(2), error: None }).await;
    assert_eq!(give(&mut attached, 3, b"\n", false).await, None);
    shown(&folder, &mut attached, "50 132\r\n").await;
    shown(&folder, &mut attached, "resized\r\n").await;
    assert_eq!(give(&mut attached, 4, b"", true).await, None);
    let end = ended(&folder).await;
    assert_eq!((end.exit.unwrap().code, end.killed), (Some(3), false));
    assert!(text(&folder, Stream::Pty).ends_with("hung up\r\n"));
    assert_eq!(end.written[&Stream::Pty], all(&folder, Stream::Pty, 0).0.len() as u64);
}

#[tokio::test]
async fn jobs_of_a_terminal_end_with_it() {
    let home = Home::new();
    // With job control, each job is a group of its own.
    let folder = home.run(pty("set -m; sh -c 'trap \"\" HUP; echo job $$; exec sleep 1000' & wait"), |_| {});
    starter().start(&folder).await.unwrap();
    let mut attached = attach(&folder).await.unwrap();
    shown(&folder, &mut attached, "\r\n").await;
    let job: u32 = text(&folder, Stream::Pty).trim().strip_prefix("job ").unwrap().parse().unwrap();
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    let end = ended(&folder).await;
    assert!(end.killed && end.escaped.is_empty(), "{end:?}");
    let dies = async {
        while crate::identity::lives(job, crate::identity::started(job).as_deref()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, dies).await.unwrap();
}

#[tokio::test]
async fn a_port_gets_input_and_its_bytes_are_output() {
    let home = Home::new();
    let port = holdfast_testkit::port::Port::reserve();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.number())).await.unwrap();
    let folder = home.run(Program::Port(port.number()), |_| {});
    let (started, accepted) = tokio::join!(async { starter().start(&folder).await }, listener.accept());
    started.unwrap();
    let mut peer = accepted.unwrap().0;
    let mut attached = attach(&folder).await.unwrap();
    assert_eq!(give(&mut attached, 1, b"ping", true).await, None);
    let mut heard = Vec::new();
    peer.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"ping");
    let answer: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    peer.write_all(&answer).await.unwrap();
    drop(peer);
    assert_eq!(ended(&folder).await.exit.unwrap().code, Some(0));
    assert!(all(&folder, Stream::Stdout, 0).0 == answer);
    // Nobody listens there any more.
    drop(listener);
    let folder = home.run(Program::Port(port.number()), |_| {});
    starter().start(&folder).await.unwrap();
    assert_eq!(ended(&folder).await.not_started.as_deref(), Some("Connection refused (os error 111)"));
}

#[tokio::test]
async fn a_connection_that_is_killed_is_closed() {
    let home = Home::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = home.run(Program::Port(listener.local_addr().unwrap().port()), |_| {});
    let (started, accepted) = tokio::join!(async { starter().start(&folder).await }, listener.accept());
    started.unwrap();
    let attached = attach(&folder).await.unwrap();
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    let end = ended(&folder).await;
    assert_eq!((end.killed, end.exit.unwrap().code), (true, None));
    assert_eq!(accepted.unwrap().0.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_run_survives_its_starter() {
    let home = Home::new();
    let folder = home.run(sh("read -r line; echo \"got $line\""), |_| {});
    let mut starter = starter_process(&folder, &[]).await;
    nix::sys::signal::killpg(nix::unistd::Pid::from_raw(starter.id().cast_signed()), Signal::SIGKILL).unwrap();
    starter.wait().unwrap();
    let mut attached = loop {
        match attach(&folder).await {
            Ok(attached) => break attached,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(give(&mut attached, 1, b"news\n", true).await, None);
    assert_eq!(ended(&folder).await.exit.unwrap().code, Some(0));
    assert_eq!(text(&folder, Stream::Stdout), "got news\n");
}

/// Starts a process, in a group of its own, that starts a runner on a folder and then waits.
async fn starter_process(folder: &Path, env: &[(&str, &Path)]) -> std::process::Child {
    let mut starter = std::process::Command::new(std::env::current_exe().unwrap());
    std::os::unix::process::CommandExt::process_group(&mut starter, 0);
    starter.args(["run::tests::others::the_starter_itself", "--exact", "--nocapture", "--test-threads=1"]).arg(folder);
    let starter = starter.envs(env.iter().copied()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = async {
        while !matches!(look(folder), Ok(Found::Lives(_))) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, begun).await.unwrap();
    starter
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_runner_gets_a_scope_where_systemd_answers_and_starts_without_one_where_it_does_not() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let runtime = tempfile::tempdir().unwrap();
    std::fs::create_dir(runtime.path().join("systemd")).unwrap();
    std::fs::write(runtime.path().join("systemd/private"), "").unwrap();
    let systemd_run = runtime.path().join("systemd-run");
    let path = [runtime.path().to_str().unwrap(), &std::env::var("PATH").unwrap()].join(":");
    for (script, scoped) in [("while [ $1 != -- ]; do shift; done; shift; exec \"$@\"", true), ("exit 1", false)] {
        let asked = runtime.path().join("asked");
        std::fs::write(&systemd_run, format!("#!/bin/sh\necho \"$1 $2 $5\" > {}\n{script}\n", asked.display()))
            .unwrap();
        std::fs::set_permissions(&systemd_run, std::fs::Permissions::from_mode(0o755)).unwrap();
        let folder = home.run(sh("read -r line"), |_| {});
        let env = [("XDG_RUNTIME_DIR", runtime.path()), ("PATH", Path::new(&path))];
        let mut starter = starter_process(&folder, &env).await;
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            std::fs::read_to_string(&asked).unwrap(),
            format!("--user --scope --unit=holdfast-run-{name}\n"),
            "{scoped}"
        );
        starter.kill().unwrap();
        starter.wait().unwrap();
    }
}

/// What the test binary is when the tests above start a starter; otherwise nothing.
#[tokio::test]
async fn the_starter_itself() {
    let folder = std::env::args().next_back().map(PathBuf::from).filter(|path| path.join("meta").exists());
    if let Some(folder) = folder {
        starter().start(&folder).await.unwrap();
        tokio::time::sleep(LONG).await;
    }
}

#[tokio::test]
async fn a_runner_whose_socket_lost_its_name_listens_again_when_it_is_called() {
    let home = Home::new();
    let folder = home.sh("read -r line; echo \"got $line\"", |_| {}).await;
    let socket = super::super::spec(&folder).unwrap().socket;
    std::fs::remove_file(&socket).unwrap();
    assert_eq!(attach(&folder).await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let Found::Lives(identity) = look(&folder).unwrap() else { panic!("it does not live") };
    assert!(super::super::signal(&identity, holdfast_core::run::Signal::HangUp));
    let again = async {
        loop {
            match attach(&folder).await {
                Ok(attached) => return attached,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let mut attached = tokio::time::timeout(LONG, again).await.unwrap();
    assert_eq!(give(&mut attached, 1, b"news\n", true).await, None);
    assert_eq!(ended(&folder).await.exit.unwrap().code, Some(0));
    let gone = async {
        while super::super::signal(&identity, holdfast_core::run::Signal::HangUp) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("it is gone once it has said so");
}

/// Where this user may mount no small disk, the program fills what the run may hold instead.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_stalls_a_program_until_there_is_room_and_loses_nothing() {
    let home = Home::new();
    let mount = |options: &str| {
        let run =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(home.path()).output();
        run.is_ok_and(|run| run.status.success())
    };
    let mounted = mount("size=6m");
    let size = 9_000_000;
    let line = format!("seq 1 2000000 | head -c {size}; echo end >&2");
    let quota = if mounted { limits::SPOOL_RUN_MAX } else { 6 << 20 };
    let folder = home.sh(&line, |spec| spec.quota = quota).await;
    let mut attached = attach(&folder).await.unwrap();
    if attached.stalled.is_none() {
        told(&mut attached, |tell| matches!(tell, Tell::Stalled { since: Some(_) })).await;
    }
    let before = crate::spool::written(&folder).unwrap()[&Stream::Stdout];
    assert!((4_000_000..6_300_000).contains(&before), "{before}");
    match mounted {
        true => assert!(mount("remount,size=40m")),
        false => attached.asker().ask(&Ask::Quota { bytes: limits::SPOOL_RUN_MAX }).await.unwrap(),
    }
    told(&mut attached, |tell| matches!(tell, Tell::Stalled { since: None })).await;
    let end = ended(&folder).await;
    let (bytes, gaps) = all(&folder, Stream::Stdout, 0);
    let umount = || std::process::Command::new("umount").arg("-l").arg(home.path()).status().unwrap().success();
    let unmounted = !mounted || umount();
    let whole: Vec<u8> = (1..).flat_map(|n: u32| format!("{n}\n").into_bytes()).take(size).collect();
    assert!(bytes == whole && gaps.is_empty() && unmounted);
    assert_eq!((end.written[&Stream::Stdout], end.written[&Stream::Stderr]), (size as u64, 4));
    assert_eq!(end.exit.unwrap().code, Some(0));
}

/// Where this user may mount no small disk there is none that runs full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_connection_said_before_it_was_cut_is_kept_though_it_found_no_room_at_first() {
    let home = Home::new();
    let mount = |options: &str| {
        let run =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(home.path()).output();
        run.is_ok_and(|run| run.status.success())
    };
    if !mount("size=6m") {
        return;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = home.run(Program::Port(listener.local_addr().unwrap().port()), |_| {});
    let (started, accepted) = tokio::join!(async { starter().start(&folder).await }, listener.accept());
    started.unwrap();
    let mut peer = accepted.unwrap().0;
    let mut attached = attach(&folder).await.unwrap();
    let said: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    let all_said = said.clone();
    // It ends with the connection.
    tokio::spawn(async move { peer.write_all(&all_said).await });
    if attached.stalled.is_none() {
        told(&mut attached, |tell| matches!(tell, Tell::Stalled { since: Some(_) })).await;
    }
    let before = crate::spool::written(&folder).unwrap()[&Stream::Stdout];
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    assert!(mount("remount,size=40m"));
    let end = ended(&folder).await;
    let (bytes, gaps) = all(&folder, Stream::Stdout, 0);
    assert!(std::process::Command::new("umount").arg("-l").arg(home.path()).status().unwrap().success());
    assert!(end.killed && gaps.is_empty());
    assert_eq!(end.written[&Stream::Stdout], bytes.len() as u64);
    assert!(bytes.len() as u64 > before && said.starts_with(&bytes), "{} of {before}", bytes.len());
}

#[tokio::test]
async fn a_runner_is_small() {
    let home = Home::new();
    let folder = home.sh("head -c 20000000 /dev/zero; read -r line", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 20_000_000).await;
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", attached.identity.pid)).unwrap();
    let kib = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    // What it has for itself; how much of its program is in memory is the build's matter.
    println!("{} KiB of its own, {} KiB in all", kib("Pss_Anon:"), kib("Pss:"));
    assert!(kib("Pss_Anon:") < 4096);
}
