//! A value of the `Run` key of this user's registry, and what the Task Manager says about it.

use std::path::PathBuf;

use super::ARGUMENT;

/// The command line. A Windows path holds no quotation mark.
fn command(program: &str) -> String {
    format!("\"{program}\" {ARGUMENT}")
}

/// The program of a command line.
fn named(command: &str) -> Option<PathBuf> {
    let program = match command.strip_prefix('"') {
        Some(rest) => rest.split_once('"')?.0,
        None => command.strip_suffix(ARGUMENT).unwrap_or(command).trim_end(),
    };
    (!program.is_empty()).then(|| program.into())
}

/// Whether a value of `StartupApproved` switches the entry off: the lowest bit of its first byte.
fn switched_off(approved: &[u8]) -> bool {
    approved.first().is_some_and(|state| state & 1 == 1)
}

#[cfg(windows)]
pub(super) mod registry {
    use std::io;
    use std::path::PathBuf;

    use winreg::enums::{HKEY_CURRENT_USER, KEY_READ, KEY_WRITE};
    use winreg::{HKEY, RegKey};

    use super::super::{outdated, text};
    use super::{command, named, switched_off};

    const RUN: &str = r"Software\Microsoft\Windows\CurrentVersion\Run";
    const APPROVED: &str = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run";
    const VALUE: &str = "Holdfast";

    /// See [`super::super::Autostart`].
    #[derive(Debug, Clone)]
    pub(in super::super) struct Entry {
        program: PathBuf,
    }

    fn user(hive: HKEY) -> RegKey {
        RegKey::predef(hive)
    }

    fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    impl Entry {
        pub(in super::super) fn of(program: PathBuf) -> io::Result<Entry> {
            text(&program)?;
            Ok(Entry { program })
        }

        fn command(&self) -> io::Result<String> {
            user(HKEY_CURRENT_USER).open_subkey_with_flags(RUN, KEY_READ)?.get_value(VALUE)
        }

        pub(in super::super) fn is_on(&self) -> bool {
            let approved = user(HKEY_CURRENT_USER)
                .open_subkey_with_flags(APPROVED, KEY_READ)
                .and_then(|key| key.get_raw_value(VALUE));
            let program = self.command().ok().and_then(|command| named(&command));
            !approved.is_ok_and(|value| switched_off(&value.bytes)) && program.is_some_and(|program| program.exists())
        }

        pub(in super::super) fn set(&self, on: bool) -> io::Result<()> {
            let (run, _) = user(HKEY_CURRENT_USER).create_subkey_with_flags(RUN, KEY_WRITE)?;
            if !on {
                return absent_is_fine(run.delete_value(VALUE));
            }
            run.set_value(VALUE, &command(text(&self.program)?))?;
            let approved = user(HKEY_CURRENT_USER).open_subkey_with_flags(APPROVED, KEY_WRITE);
            absent_is_fine(approved.and_then(|key| key.delete_value(VALUE)))
        }

        /// Leaves alone what the Task Manager says.
        pub(in super::super) fn repair(&self) -> io::Result<bool> {
            let wrong = |command: String| named(&command).is_some_and(|program| outdated(&program, &self.program));
            if !self.command().is_ok_and(wrong) {
                return Ok(false);
            }
            let (run, _) = user(HKEY_CURRENT_USER).create_subkey_with_flags(RUN, KEY_WRITE)?;
            run.set_value(VALUE, &command(text(&self.program)?))?;
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_and_read_back() {
        let line = command(r"C:\Program Files\Holdfast\holdfast-desktop.exe");
        assert_eq!(line, r#""C:\Program Files\Holdfast\holdfast-desktop.exe" --autostart"#);
        assert_eq!(named(&line), Some(r"C:\Program Files\Holdfast\holdfast-desktop.exe".into()));
        assert_eq!(named(r"C:\My Apps\holdfast.exe --autostart"), Some(r"C:\My Apps\holdfast.exe".into()));
        assert_eq!(named("\"unclosed"), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn the_task_manager_switches_an_entry_off_by_the_lowest_bit() {
        assert!(!switched_off(&[2, 0, 0, 0]));
        assert!(!switched_off(&[6, 0, 0, 0]));
        assert!(switched_off(&[3, 0, 0, 0, 1, 2, 3, 4]));
        assert!(!switched_off(&[]));
    }
}
