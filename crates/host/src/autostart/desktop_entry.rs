//! `~/.config/autostart/holdfast-desktop.desktop`, by the XDG autostart and desktop entry specifications.

use std::env;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use holdfast_core::limits;

use super::{ARGUMENT, NAME, outdated, text};
use crate::files;

/// See [`super::Autostart`].
#[derive(Debug, Clone)]
pub(super) struct Entry {
    file: PathBuf,
    program: PathBuf,
    /// Names of the running desktop, as in `XDG_CURRENT_DESKTOP`.
    desktops: Vec<String>,
}

impl Entry {
    pub(super) fn of(program: PathBuf) -> io::Result<Entry> {
        let config = dirs::config_dir().ok_or_else(|| io::Error::other("no home folder"))?;
        let desktops = env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
        Entry::at(&config, program, &desktops)
    }

    fn at(config: &Path, program: PathBuf, desktops: &str) -> io::Result<Entry> {
        // A name that no entry could hold fails here, not when somebody asks for one.
        if text(&program)?.contains('%') && text(&program)?.contains('=') {
            return Err(io::Error::other(format!("no desktop entry can start {}", program.display())));
        }
        let desktops = desktops.split(':').map(str::to_owned).collect();
        Ok(Entry { file: config.join("autostart").join(format!("{NAME}.desktop")), program, desktops })
    }

    pub(super) fn is_on(&self) -> bool {
        let Ok(entry) = read(&self.file) else { return false };
        let says = |key, wanted: &str| value(&entry, key).is_some_and(|value| value == wanted);
        let lists = |key| {
            value(&entry, key)
                .map(|list| list.split(';').any(|name| self.desktops.iter().any(|desktop| desktop == name)))
        };
        let starts = |program: &Path| program.is_relative() || executable(program);
        !says("Hidden", "true")
            && !says("X-GNOME-Autostart-enabled", "false")
            && lists("OnlyShowIn") != Some(false)
            && lists("NotShowIn") != Some(true)
            && value(&entry, "TryExec").is_none_or(|program| starts(Path::new(&unescaped(program))))
            && named(&entry).is_some_and(|program| starts(&program))
    }

    pub(super) fn set(&self, on: bool) -> io::Result<()> {
        if !on {
            return files::remove(&self.file).map_err(io::Error::other);
        }
        if let Some(folder) = self.file.parent() {
            files::make_dir(folder).map_err(io::Error::other)?;
        }
        files::replace(&self.file, whole(text(&self.program)?).as_bytes()).map_err(io::Error::other)
    }

    /// Changes only what names the program: an entry that was switched off, or tuned, stays so.
    pub(super) fn repair(&self) -> io::Result<bool> {
        let entry = match read(&self.file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            entry => entry?,
        };
        // A bare name is found on the path, wherever it is.
        let wrong = |program: PathBuf| program.is_absolute() && outdated(&program, &self.program);
        if !named(&entry).is_some_and(wrong) {
            return Ok(false);
        }
        let program = text(&self.program)?;
        let mut repaired = String::new();
        for (line, key, _) in lines(&entry) {
            match key {
                Some("Exec") => repaired += &exec(program),
                Some("TryExec") => repaired += &try_exec(program),
                _ => repaired += line,
            }
            repaired.push('\n');
        }
        files::replace(&self.file, repaired.as_bytes()).map_err(io::Error::other)?;
        Ok(true)
    }
}

fn whole(program: &str) -> String {
    let (exec, try_exec) = (exec(program), try_exec(program));
    format!(
        "[Desktop Entry]\nType=Application\nName=Holdfast\nComment=Keeps this machine reachable for AI agents\n{exec}\n\
         {try_exec}\nIcon={NAME}\nTerminal=false\nStartupNotify=false\nX-GNOME-Autostart-enabled=true\n"
    )
}

/// An argument in quotes, with the characters escaped that stay special there; `%` begins a field code everywhere. The
/// result is a string value like any other, so it is escaped once more.
fn exec(program: &str) -> String {
    // GLib looks for the first word before it makes `%%` one `%` again, so that word must be another. `env` takes what has a `=`
    // for a variable.
    let mut quoted = String::from(if program.contains('%') { "env \"" } else { "\"" });
    for c in program.chars() {
        match c {
            '"' | '`' | '$' | '\\' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            c => quoted.push(c),
        }
    }
    format!("Exec={}\" {ARGUMENT}", escaped(&quoted))
}

fn try_exec(program: &str) -> String {
    format!("TryExec={}", escaped(program))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
}

fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('s')) => text.push(' '),
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some('r')) => text.push('\r'),
            ('\\', Some(other)) => text.push(other),
            (c, _) => text.push(c),
        }
    }
    text
}

/// The program an entry starts.
fn named(entry: &str) -> Option<PathBuf> {
    let line = unescaped(value(entry, "Exec")?);
    let mut chars = line.chars().peekable();
    let mut word = || {
        while chars.next_if_eq(&' ').is_some() {}
        let quoted = chars.next_if_eq(&'"').is_some();
        let mut word = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted => break,
                ' ' if !quoted => break,
                '\\' => word.extend(chars.next()),
                '%' => word.extend(chars.next_if_eq(&'%')),
                c => word.push(c),
            }
        }
        (!word.is_empty()).then_some(word)
    };
    match word()?.as_str() {
        "env" => word().map(PathBuf::from),
        program => Some(program.into()),
    }
}

/// Each line; with key and value when it holds one, in the group that counts.
fn lines(entry: &str) -> impl Iterator<Item = (&str, Option<&str>, &str)> {
    let mut ours = false;
    entry.lines().map(move |line| {
        if line.starts_with('[') {
            ours = line.trim_end() == "[Desktop Entry]";
        }
        match line.split_once('=') {
            Some((key, value)) if ours && !line.starts_with('#') => (line, Some(key.trim()), value.trim()),
            _ => (line, None, ""),
        }
    })
}

fn value<'a>(entry: &'a str, wanted: &str) -> Option<&'a str> {
    lines(entry).find_map(|(_, key, value)| (key == Some(wanted)).then_some(value))
}

fn read(file: &Path) -> io::Result<String> {
    let mut entry = String::new();
    File::open(file)?.take(limits::AUTOSTART_ENTRY_MAX as u64).read_to_string(&mut entry)?;
    Ok(entry)
}

fn executable(program: &Path) -> bool {
    #[cfg(unix)]
    let may = |meta: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may = |_: &std::fs::Metadata| true;
    program.metadata().is_ok_and(|meta| meta.is_file() && may(&meta))
}

#[cfg(test)]
mod tests;
