//! How runs end.

use holdfast_core::operation::Stream;
use holdfast_core::run::{Ask, Claim, Lease};

use super::*;
use crate::run::{boot_clock, claim};

#[tokio::test]
async fn a_program_that_cannot_be_started_says_why() {
    let home = Home::new();
    let folder = home.run(Program::Pipes { argv: vec!["no-such-program".into()], stdin: false }, |_| {});
    starter().start(&folder).await.unwrap();
    let end = ended(&folder).await;
    assert_eq!(end.exit, None);
    assert_eq!(end.not_started.as_deref(), Some("No such file or directory (os error 2)"));
    let folder = home.sh("true", |spec| spec.cwd = "/no/such/folder".into()).await;
    assert_eq!(ended(&folder).await.not_started.as_deref(), Some("its folder is not there"));
}

#[tokio::test]
async fn a_run_that_is_void_never_starts() {
    let home = Home::new();
    let folder = home.run(sh("touch ran"), |_| {});
    assert_eq!(claim(&folder, &Claim::Void).unwrap(), Claim::Void);
    starter().start(&folder).await.unwrap();
    assert_eq!(look(&folder).unwrap(), Found::Void);
    assert!(!home.path().join("ran").exists());
    // And one that was claimed by a runner is nobody else's.
    let folder = home.sh("echo once; sleep 60", |_| {}).await;
    starter().start(&folder).await.unwrap();
    let mut attached = attach(&folder).await.unwrap();
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    ended(&folder).await;
    assert_eq!(text(&folder, Stream::Stdout), "once\n");
}

#[tokio::test]
async fn a_kill_ends_the_tree_and_says_what_escaped() {
    let home = Home::new();
    let line = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 1000' & setsid sleep 1000 & echo $!; wait; wait";
    let folder = home.sh(line, |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    while text(&folder, Stream::Stdout).lines().count() < 2 {
        told(&mut attached, |tell| matches!(tell, Tell::Grew { .. })).await;
    }
    let pids: Vec<u32> = text(&folder, Stream::Stdout).lines().map(|line| line.parse().unwrap()).collect();
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    let end = ended(&folder).await;
    assert_eq!((end.killed, end.exit.unwrap().signal), (true, Some(9)));
    assert_eq!(end.escaped.len(), 1);
    let escaped = end.escaped[0];
    let in_tree = pids.into_iter().find(|pid| *pid != escaped).unwrap();
    assert!(!Path::new(&format!("/proc/{in_tree}")).exists());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(escaped as i32), nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn who_holds_the_pipes_of_an_ended_program_is_ended_too() {
    let home = Home::new();
    let folder = home.sh("(echo $$; exec sleep 1000) & sleep 0.1", |_| {}).await;
    let end = ended(&folder).await;
    assert_eq!((end.exit.unwrap().code, end.killed, &end.escaped[..]), (Some(0), false, &[][..]));
}

#[tokio::test]
async fn a_program_is_ended_after_its_time() {
    let home = Home::new();
    let folder = home.sh("echo begun; sleep 1000", |spec| spec.timeout = Some(Duration::from_millis(300))).await;
    let end = ended(&folder).await;
    assert_eq!((end.timed_out, end.killed, end.exit.unwrap().signal), (true, false, Some(15)));
    assert_eq!(text(&folder, Stream::Stdout), "begun\n");
}

#[tokio::test]
async fn a_program_without_supervision_is_ended_with_its_lease() {
    let home = Home::new();
    let until = |ms| Some(boot_clock() + Duration::from_millis(ms));
    let folder = home.sh("sleep 1000", |spec| spec.lease = Some(Lease { generation: 4, until: until(1500) })).await;
    let attached = attach(&folder).await.unwrap();
    let lease = Lease { generation: 5, until: until(2500) };
    attached.asker().ask(&Ask::Lease { lease }).await.unwrap();
    let end = ended(&folder).await;
    assert_eq!((end.lease_expired, end.killed, end.exit.unwrap().signal), (Some(5), false, Some(15)));
    assert!(boot_clock() >= lease.until.unwrap());
    // Without a lease it does not start.
    let folder = home.sh("touch ran", |spec| spec.lease = Some(Lease { generation: 6, until: until(0) })).await;
    assert_eq!(ended(&folder).await.lease_expired, Some(6));
    assert!(!home.path().join("ran").exists());
}

#[tokio::test]
async fn a_runner_that_is_asked_to_end_ends_its_program_and_says_so() {
    let home = Home::new();
    let folder = home.sh("sleep 1000", |_| {}).await;
    let Found::Lives(identity) = look(&folder).unwrap() else { panic!() };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(identity.pid as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(ended(&folder).await.killed);
}
