//! How runs end.

use holdfast_core::operation::Stream;
use holdfast_core::run::{Ask, Claim, Lease};

use super::*;
use crate::identity;
use crate::run::{Leftovers, boot_clock, claim, end_orphan, kill_leftovers};

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
    grown(&folder, &mut attached, Stream::Stdout, 5).await;
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    ended(&folder).await;
    assert_eq!(text(&folder, Stream::Stdout), "once\n");
}

#[tokio::test]
async fn a_kill_ends_the_tree_and_what_left_it_and_says_so() {
    let home = Home::new();
    // Both speak for themselves: until it has, the one that leaves may not have left.
    let line = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 1000' & setsid sh -c 'echo $$; exec sleep 1000' & wait; wait";
    let folder = home.sh(line, |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    let pids = two_numbers(&folder, &mut attached).await;
    attached.asker().ask(&Ask::Kill {}).await.unwrap();
    let end = ended(&folder).await;
    assert_eq!((end.killed, end.interrupted, end.exit.unwrap().signal), (true, false, Some(9)));
    assert_eq!(end.escaped.len(), 1);
    let escaped = end.escaped[0];
    assert!(pids.contains(&escaped));
    let dies = async {
        while pids.iter().any(|pid| alive(*pid)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, dies).await.unwrap();
}

/// The numbers of two processes that say them.
async fn two_numbers(folder: &Path, attached: &mut Attached) -> Vec<u32> {
    while text(folder, Stream::Stdout).lines().count() < 2 {
        told(attached, |tell| matches!(tell, Tell::Grew { .. })).await;
    }
    text(folder, Stream::Stdout).lines().map(|line| line.parse().unwrap()).collect()
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
    // Enough for its first word on any machine.
    let folder = home.sh("echo begun; sleep 1000", |spec| spec.timeout = Some(Duration::from_secs(10))).await;
    let end = ended(&folder).await;
    assert_eq!((end.timed_out, end.killed, end.exit.unwrap().signal), (true, false, Some(15)));
    assert_eq!(text(&folder, Stream::Stdout), "begun\n");
}

#[tokio::test]
async fn a_program_without_supervision_is_ended_with_its_lease() {
    let home = Home::new();
    let until = |ms| Some(boot_clock() + Duration::from_millis(ms));
    let long = Lease { generation: 4, until: Some(boot_clock() + LONG) };
    let folder = home.sh("echo on; sleep 1000", |spec| spec.lease = Some(long)).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 3).await;
    let lease = Lease { generation: 5, until: until(1500) };
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
    kill(identity.pid, Signal::SIGTERM);
    let end = ended(&folder).await;
    assert_eq!((end.killed, end.interrupted), (true, true));
}

#[tokio::test]
async fn a_runner_whose_folder_is_gone_ends_its_program_and_goes_although_it_has_nothing_to_write() {
    let home = Home::new();
    // With a timeout it takes turns; without one it looks each RUNNER_LOOK.
    let folder = home.sh("echo $$; sleep 1000", |spec| spec.timeout = Some(LONG * 10)).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 2).await;
    let program = text(&folder, Stream::Stdout).trim().parse().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let gone = async {
        while attached.next().await.is_some() {}
        while alive(program) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.unwrap();
}

#[tokio::test]
async fn a_killed_runner_leaves_no_end_and_what_it_left_behind_is_ended() {
    let home = Home::new();
    let folder = home.sh("setsid sh -c 'echo $$; exec sleep 1000' & echo $$; sleep 1000", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    let pids = two_numbers(&folder, &mut attached).await;
    kill(attached.identity.pid, Signal::SIGKILL);
    while attached.next().await.is_some() || alive(attached.identity.pid) {}
    let Found::Gone { identity, end: None } = look(&folder).unwrap() else { panic!() };
    assert_eq!(identity, attached.identity);
    let left = kill_leftovers(&folder, &identity).await.unwrap();
    assert!(left.group_ended && left.living.is_empty() && pids.iter().all(|pid| left.ended.contains(pid)), "{left:?}");
    let nothing = Leftovers { may_have_escaped: true, ..Leftovers::default() };
    assert_eq!(kill_leftovers(&folder, &identity).await.unwrap(), nothing);
    assert!(attach(&folder).await.is_err());
}

#[tokio::test]
async fn a_runner_whose_claim_says_nothing_is_found_and_ended_with_its_program() {
    let home = Home::new();
    let folder = home.sh("trap '' TERM; setsid sleep 1000 & echo $! $$; sleep 1000", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 4).await;
    let pids: Vec<u32> = text(&folder, Stream::Stdout).split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    std::fs::write(folder.join("claim"), "{").unwrap();
    assert_eq!(look(&folder).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    let left = end_orphan(&folder).await.unwrap();
    assert!(left.living.is_empty(), "{left:?}");
    assert!(!alive(attached.identity.pid) && !pids.iter().any(|pid| alive(*pid)));
}

#[tokio::test]
async fn without_claim_and_runner_its_program_is_found_by_what_stands_beside() {
    let home = Home::new();
    let folder = home.sh("echo $$; exec sleep 1000", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 2).await;
    let program: u32 = text(&folder, Stream::Stdout).trim().parse().unwrap();
    kill(attached.identity.pid, Signal::SIGKILL);
    while attached.next().await.is_some() || alive(attached.identity.pid) {}
    std::fs::write(folder.join("claim"), "{").unwrap();
    let left = end_orphan(&folder).await.unwrap();
    assert!(left.group_ended && left.may_have_escaped && left.living.is_empty(), "{left:?}");
    assert!(!alive(program));
}

#[tokio::test]
async fn an_exit_that_says_nothing_is_no_end_and_hides_nothing_that_runs() {
    let home = Home::new();
    let folder = home.sh("echo $$; exec sleep 1000", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 2).await;
    crate::files::replace(&folder.join("exit"), b"{").unwrap();
    assert_eq!(look(&folder).unwrap(), Found::Lives(attached.identity.clone()));
    kill(attached.identity.pid, Signal::SIGKILL);
    while attached.next().await.is_some() || alive(attached.identity.pid) {}
    assert_eq!(look(&folder).unwrap(), Found::Gone { identity: attached.identity, end: None });
    let program: u32 = text(&folder, Stream::Stdout).trim().parse().unwrap();
    let Found::Gone { identity, .. } = look(&folder).unwrap() else { panic!() };
    kill_leftovers(&folder, &identity).await.unwrap();
    assert!(!alive(program));
}

/// Kills runners at any moment: what is found afterwards is true.
#[tokio::test]
async fn wherever_a_runner_is_killed_an_end_is_there_only_with_all_its_bytes() {
    let home = Home::new();
    let (mut ends, mut none, mut not_started) = (0, 0, 0);
    // Later and later, until some have come to their end.
    while ends < 5 {
        let soon = Duration::from_millis(7 * (ends + none + not_started));
        let folder = home.run(sh("head -c 3000000 /dev/zero; head -c 1000 /dev/zero >&2"), |_| {});
        let killing = tokio::time::Instant::now() + soon;
        let _ = tokio::time::timeout_at(killing, starter().start(&folder)).await;
        tokio::time::sleep_until(killing).await;
        // One that was forked a moment ago is nobody's yet.
        loop {
            let pids = runners_of(&folder);
            pids.iter().for_each(|pid| kill(*pid, Signal::SIGKILL));
            if !pids.iter().any(|pid| alive(*pid)) && !matches!(look(&folder), Ok(Found::Lives(_))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        match look(&folder).unwrap() {
            Found::NotStarted => {
                not_started += 1;
                // One that was being forked may still be first.
                match claim(&folder, &Claim::Void).unwrap() {
                    Claim::Void => assert_eq!(crate::spool::written(&folder).unwrap().len(), 0),
                    Claim::Runner(identity) => kill(identity.pid, Signal::SIGKILL),
                }
            }
            Found::Gone { end: Some(end), .. } => {
                ends += 1;
                assert_eq!(end.exit.unwrap().code, Some(0));
                assert_eq!(end.written, [(Stream::Stdout, 3_000_000), (Stream::Stderr, 1000)].into());
                assert_eq!(all(&folder, Stream::Stdout, 0).0.len(), 3_000_000);
                assert_eq!(all(&folder, Stream::Stderr, 0).0.len(), 1000);
            }
            Found::Gone { identity, end: None } => {
                none += 1;
                kill_leftovers(&folder, &identity).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(none > 0 && not_started > 0, "{ends} ends, {none} without, {not_started} not started");
}

/// The processes that were started as runners of a folder.
fn runners_of(folder: &Path) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        words.strip_suffix(b"\0")?.ends_with(folder.as_os_str().as_encoded_bytes()).then_some(pid)
    });
    all.collect()
}

#[tokio::test]
async fn a_runner_whose_folder_is_removed_goes_with_its_program() {
    let home = Home::new();
    let folder = home.sh("echo $$; sleep 1; head -c 9000000 /dev/zero; sleep 1000", |_| {}).await;
    let mut attached = attach(&folder).await.unwrap();
    grown(&folder, &mut attached, Stream::Stdout, 2).await;
    let program = text(&folder, Stream::Stdout).trim().parse().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    while attached.next().await.is_some() {}
    while alive(program) || alive(attached.identity.pid) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process lives: one that nobody reaped does not.
fn alive(pid: u32) -> bool {
    identity::lives(pid, identity::started(pid).as_deref())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_that_ended_keeps_its_number_until_its_group_is_over() {
    let home = Home::new();
    let kept = async || {
        // What it leaves holds its pipes: the group is told to end a moment after its leader did.
        let folder = home.sh("sleep 1000 & echo $$", |_| {}).await;
        let Ok(mut attached) = attach(&folder).await else { return false };
        while text(&folder, Stream::Stdout).is_empty() && attached.next().await.is_some() {}
        let leader: u32 = text(&folder, Stream::Stdout).trim().parse().unwrap();
        let state = || {
            let stat = std::fs::read_to_string(format!("/proc/{leader}/stat")).ok()?;
            stat.rsplit_once(')').unwrap().1.trim().chars().next()
        };
        while state().is_some_and(|state| state != 'Z') {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let kept = state() == Some('Z');
        assert_eq!(ended(&folder).await.exit.unwrap().code, Some(0));
        kept
    };
    // A busy machine may look only when all of it is over.
    for _ in 0..20 {
        if kept().await {
            return;
        }
    }
    panic!("the number is free");
}
