//! `~/Library/LaunchAgents/dev.holdfast.desktop.plist`: launchd starts it when this user logs in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{ARGUMENT, IDENTIFIER, outdated, text};
use crate::files;

/// See [`super::Autostart`].
#[derive(Debug, Clone)]
pub(super) struct Entry {
    file: PathBuf,
    program: PathBuf,
}

impl Entry {
    #[cfg(target_os = "macos")]
    pub(super) fn of(program: PathBuf) -> io::Result<Entry> {
        let home = dirs::home_dir().ok_or_else(|| io::Error::other("no home folder"))?;
        Entry::at(&home, program)
    }

    fn at(home: &Path, program: PathBuf) -> io::Result<Entry> {
        text(&program)?;
        Ok(Entry { file: home.join("Library/LaunchAgents").join(format!("{IDENTIFIER}.plist")), program })
    }

    pub(super) fn is_on(&self) -> bool {
        let Ok(agent) = fs::read_to_string(&self.file) else { return false };
        // Only our own form: what the system's settings switch off is kept elsewhere, where no program may look.
        !is_true(&agent, "Disabled")
            && is_true(&agent, "RunAtLoad")
            && named(&agent).is_some_and(|program| program.exists())
    }

    pub(super) fn set(&self, on: bool) -> io::Result<()> {
        if !on {
            return files::remove(&self.file).map_err(io::Error::other);
        }
        if let Some(folder) = self.file.parent() {
            files::make_dir(folder).map_err(io::Error::other)?;
        }
        self.write(false)
    }

    pub(super) fn repair(&self) -> io::Result<bool> {
        let agent = match fs::read_to_string(&self.file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            agent => agent?,
        };
        if !named(&agent).is_some_and(|program| outdated(&program, &self.program)) {
            return Ok(false);
        }
        self.write(is_true(&agent, "Disabled"))?;
        Ok(true)
    }

    fn write(&self, disabled: bool) -> io::Result<()> {
        files::replace(&self.file, whole(text(&self.program)?, disabled).as_bytes()).map_err(io::Error::other)
    }
}

fn whole(program: &str, disabled: bool) -> String {
    let program = program.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let disabled = if disabled { "\t<key>Disabled</key>\n\t<true/>\n" } else { "" };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n\t<key>Label</key>\n\t<string>{IDENTIFIER}</string>\n{disabled}\
         \t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>{program}</string>\n\t\t<string>{ARGUMENT}</string>\n\t</array>\n\
         \t<key>RunAtLoad</key>\n\t<true/>\n\t<key>ProcessType</key>\n\t<string>Interactive</string>\n</dict>\n</plist>\n"
    )
}

/// What follows a key.
fn after<'a>(agent: &'a str, key: &str) -> Option<&'a str> {
    Some(agent.split_once(&format!("<key>{key}</key>"))?.1.trim_start())
}

fn is_true(agent: &str, key: &str) -> bool {
    after(agent, key).is_some_and(|value| value.starts_with("<true/>"))
}

fn named(agent: &str) -> Option<PathBuf> {
    let program = after(agent, "ProgramArguments")?.split_once("<string>")?.1.split_once("</string>")?.0;
    Some(program.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_made_read_and_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("R&D <x>/Holdfast.app");
        fs::create_dir(program.parent().unwrap()).unwrap();
        fs::write(&program, "").unwrap();
        let entry = Entry::at(dir.path(), program.clone()).unwrap();
        assert!(!entry.is_on());
        entry.set(true).unwrap();
        assert!(entry.is_on());
        let agent = fs::read_to_string(&entry.file).unwrap();
        assert!(agent.contains("R&amp;D &lt;x&gt;/Holdfast.app</string>\n\t\t<string>--autostart</string>"), "{agent}");
        assert_eq!(named(&agent), Some(program));
        entry.set(false).unwrap();
        assert!(!entry.is_on() && !entry.file.exists());
        entry.set(false).unwrap();
    }

    #[test]
    fn an_agent_of_a_program_that_is_gone_is_repaired_and_stays_off() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("holdfast-desktop");
        fs::write(&program, "").unwrap();
        let gone = Entry::at(dir.path(), dir.path().join("gone")).unwrap();
        gone.set(true).unwrap();
        assert!(!gone.is_on());
        let entry = Entry::at(dir.path(), program).unwrap();
        assert!(entry.repair().unwrap());
        assert!(entry.is_on());
        assert!(!entry.repair().unwrap(), "it names this program");
        gone.write(true).unwrap();
        assert!(entry.repair().unwrap());
        assert!(!entry.is_on());
    }
}
