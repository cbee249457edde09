//! Whether a binding's transcript, program and pane are there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use holdfast_core::limits;

use super::Check;
use crate::config::{BindingConfig, Delivery};
use crate::transcript::{Homes, Wanted, discover};

/// What the binding follows.
pub(super) async fn transcript(binding: &BindingConfig, homes: Homes) -> Check {
    let name = format!("follows {}", binding.name);
    let BindingConfig { transcript, session, project, .. } = binding;
    if let Some(path) = transcript.clone() {
        let looked = tokio::task::spawn_blocking(move || file(&name, Path::new(&path)));
        return looked.await.unwrap_or_else(|_| Check::skipped("follows", "interrupted"));
    }
    let wanted = Wanted { project: project.as_deref().map(PathBuf::from), session: session.clone(), asker: None };
    match discover(homes, wanted).await.first() {
        Some(found) => Check::ok(&name, found.path.to_string()),
        None => {
            let what = session.as_ref().map(|session| format!("of session {session}"));
            let what = what.or(project.as_ref().map(|project| format!("of an agent in {project}"))).unwrap_or_default();
            Check::warning(&name, format!("there is no transcript {what} yet")).advise(
                "begin a session there; `holdfast channel candidates` lists what there is (CLAUDE_CONFIG_DIR and CODEX_HOME name \
                 other folders)",
            )
        }
    }
}

fn file(name: &str, path: &Path) -> Check {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Check::failed(name, format!("{shown} is no file")).advise("name the transcript itself: --transcript FILE")
        }
        Ok(_) => match std::fs::File::open(path) {
            Ok(_) => Check::ok(name, shown.to_string()),
            Err(e) => Check::failed(name, format!("{shown} cannot be read: {e}")),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Check::warning(name, format!("{shown} is not there yet"))
            .advise("it is followed as soon as it is; is that its path?"),
        Err(e) => Check::failed(name, format!("{shown}: {e}")),
    }
}

/// What delivers messages to the agent. `tmux` is the program that is asked for panes.
pub(super) async fn delivers(binding: &BindingConfig, tmux: &[String]) -> Option<Check> {
    let name = format!("deliver {}", binding.name);
    match binding.deliver? {
        Delivery::Command => {
            let (program, folder) = (binding.command.first()?.clone(), binding.project.clone());
            let looked = tokio::task::spawn_blocking(move || program_at(&name, &program, folder.as_deref()));
            looked.await.ok()
        }
        Delivery::Tmux => Some(pane(&name, binding.pane.as_deref().unwrap_or_default(), tmux).await),
        Delivery::Mcp | Delivery::Inbox => None,
    }
}

/// The program of a command template, as a start would find it.
fn program_at(name: &str, program: &str, folder: Option<&str>) -> Check {
    let path = Path::new(program);
    let places: Vec<PathBuf> = if path.components().count() > 1 {
        vec![folder.map_or(path.to_path_buf(), |folder| Path::new(folder).join(path))]
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).map(|folder| folder.join(path)).collect()
    };
    let there = |place: &PathBuf| place.is_file() || place.with_extension("exe").is_file();
    if let Some(found) = places.iter().find(|place| there(place) && executable(place)) {
        return Check::ok(name, format!("{} is there", found.display()));
    }
    match places.iter().find(|place| there(place)) {
        Some(found) => {
            let found = found.display();
            Check::failed(name, format!("{found} is no program that may be run")).advise(format!("chmod +x {found}"))
        }
        None => Check::failed(name, format!("there is no program {program}")).advise("install it, or name its path"),
    }
}

fn executable(file: &Path) -> bool {
    #[cfg(unix)]
    let may = |meta: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may = |_: &std::fs::Metadata| true;
    file.metadata().is_ok_and(|meta| may(&meta)) || cfg!(windows)
}

/// The pane that messages are typed into, as a binding names it.
pub(crate) async fn pane_of(pane_name: &str) -> Check {
    pane("pane", pane_name, &["tmux".to_owned()]).await
}

/// Whether tmux is there, and knows the pane, and something runs in it.
async fn pane(name: &str, pane: &str, tmux: &[String]) -> Check {
    let Some((program, options)) = tmux.split_first() else { return Check::skipped(name, "no tmux is named") };
    let mut asked = tokio::process::Command::new(program);
    let told = "#{pane_id} #{pane_dead} #{pane_current_command}";
    asked.args(options).args([
        OsStr::new("display-message"),
        "-p".as_ref(),
        "-t".as_ref(),
        pane.as_ref(),
        told.as_ref(),
    ]);
    asked.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let other = "Holdfast asks this user's own tmux server: one that was started with `-L` or `-S`, or has another TMUX_TMPDIR, \
                 is not seen; `tmux list-panes -a` lists what is";
    let said = match tokio::time::timeout(limits::TMUX_TIME, asked.output()).await {
        Err(_) => return Check::failed(name, "tmux does not answer").advise("does its server hang?"),
        Ok(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => {
            return Check::failed(name, format!("there is no program {program}")).advise("install tmux");
        }
        Ok(Err(e)) => return Check::failed(name, format!("{program} cannot be started: {e}")),
        Ok(Ok(said)) => said,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let out = text(&said.stdout);
    let mut words = out.splitn(3, ' ');
    match (said.status.success(), words.next(), words.next()) {
        (true, Some(id), Some("0")) if id.starts_with('%') => {
            Check::ok(name, format!("pane {pane} runs {}", words.next().unwrap_or("a program")))
        }
        (true, Some(id), Some(_)) if id.starts_with('%') => {
            Check::failed(name, format!("the program in pane {pane} has ended")).advise("start the agent there again")
        }
        (true, ..) => Check::failed(name, format!("tmux knows no pane {pane}")).advise(other),
        (false, ..) => {
            let why = text(&said.stderr);
            let why = why.lines().last().unwrap_or("it does not say why").to_owned();
            Check::failed(name, format!("tmux knows no pane {pane}: {why}")).advise(other)
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::doctor::CheckState;

    fn script(at: &Path, text: &str, mode: u32) -> String {
        std::fs::write(at, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).unwrap();
        at.to_str().unwrap().to_owned()
    }

    async fn of_tmux(text: &str) -> (CheckState, String, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        // Run by its interpreter: a file that was just written may still be open in a child of another test.
        let tmux = ["/bin/sh".to_owned(), script(&folder.path().join("tmux"), text, 0o600)];
        let binding = BindingConfig {
            name: "app".into(),
            deliver: Some(Delivery::Tmux),
            pane: Some("work:0.1".into()),
            ..BindingConfig::default()
        };
        let check = delivers(&binding, &tmux).await.unwrap();
        assert_eq!(check.name, "deliver app");
        (check.state, check.found, check.advice)
    }

    #[tokio::test]
    async fn a_pane_is_there_or_has_ended_or_is_of_another_server_and_each_says_what_to_do() {
        assert_eq!(of_tmux("echo '%3 0 claude'").await, (CheckState::Ok, "pane work:0.1 runs claude".into(), None));
        let (state, found, advice) = of_tmux("echo '%3 1 claude'").await;
        assert_eq!((state, found.as_str()), (CheckState::Failed, "the program in pane work:0.1 has ended"));
        assert_eq!(advice.as_deref(), Some("start the agent there again"));
        let (state, found, advice) = of_tmux("echo 'no server running on /tmp/x' >&2; exit 1").await;
        assert_eq!(state, CheckState::Failed);
        assert_eq!(found, "tmux knows no pane work:0.1: no server running on /tmp/x");
        assert!(advice.unwrap().contains("`-L` or `-S`"));
        let (state, found, _) = of_tmux("echo ' '").await;
        assert_eq!((state, found.as_str()), (CheckState::Failed, "tmux knows no pane work:0.1"));
        let binding = BindingConfig { deliver: Some(Delivery::Tmux), ..BindingConfig::default() };
        let check = delivers(&binding, &["/nowhere/tmux".to_owned()]).await.unwrap();
        assert_eq!(check.found, "there is no program /nowhere/tmux");
        assert_eq!(check.advice.as_deref(), Some("install tmux"));
    }

    #[tokio::test]
    async fn the_program_of_a_template_must_be_there_and_may_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::create_dir(folder.join("bin")).unwrap();
        script(&folder.join("bin/agent"), "exit 0", 0o700);
        script(&folder.join("bin/text"), "exit 0", 0o600);
        let of = |program: &str| BindingConfig {
            name: "app".into(),
            deliver: Some(Delivery::Command),
            command: vec![program.into()],
            project: Some(folder.to_str().unwrap().into()),
            ..BindingConfig::default()
        };
        // By a path from the folder the agent works in, where it is started.
        let found = delivers(&of("bin/agent"), &[]).await.unwrap();
        assert_eq!((found.state, found.found), (CheckState::Ok, format!("{}/bin/agent is there", folder.display())));
        let found = delivers(&of("bin/text"), &[]).await.unwrap();
        assert_eq!(found.found, format!("{}/bin/text is no program that may be run", folder.display()));
        assert_eq!(found.advice, Some(format!("chmod +x {}/bin/text", folder.display())));
        let found = delivers(&of("holdfast-no-such-program"), &[]).await.unwrap();
        assert_eq!(found.found, "there is no program holdfast-no-such-program");
        assert_eq!(delivers(&of("sh"), &[]).await.unwrap().state, CheckState::Ok);
        let mirror = BindingConfig { deliver: None, ..of("sh") };
        assert_eq!(delivers(&mirror, &[]).await, None);
    }

    #[tokio::test]
    async fn a_transcript_is_a_file_that_is_there_or_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.jsonl");
        let binding = BindingConfig {
            name: "app".into(),
            transcript: Some(path.to_str().unwrap().into()),
            ..BindingConfig::default()
        };
        let of = async |binding: &BindingConfig| transcript(binding, Homes::default()).await;
        let check = of(&binding).await;
        assert_eq!((check.name.as_str(), check.state), ("follows app", CheckState::Warning));
        assert_eq!(check.found, format!("{} is not there yet", path.display()));
        std::fs::create_dir(&path).unwrap();
        assert_eq!(of(&binding).await.found, format!("{} is no file", path.display()));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert_eq!(of(&binding).await.state, CheckState::Ok);
        let by_folder = BindingConfig { transcript: None, project: Some("/srv/app".into()), ..binding };
        let check = of(&by_folder).await;
        assert_eq!(
            (check.state, check.found.as_str()),
            (CheckState::Warning, "there is no transcript of an agent in /srv/app yet")
        );
        assert!(check.advice.unwrap().contains("holdfast channel candidates"));
    }
}
