use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A program that could be started, below a folder of this name, and its entry.
fn entry(dir: &Path, program: &str) -> Entry {
    let program = dir.join(program);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Entry::at(&dir.join("config"), program, "ubuntu:GNOME").unwrap()
}

#[test]
fn an_entry_is_made_with_its_folder_read_and_taken_away() {
    let dir = tempfile::tempdir().unwrap();
    let entry = entry(dir.path(), "bin/holdfast-desktop");
    assert!(!entry.is_on());
    entry.set(true).unwrap();
    assert!(entry.is_on());
    assert_eq!(entry.file, dir.path().join("config/autostart/holdfast-desktop.desktop"));
    entry.set(false).unwrap();
    assert!(!entry.is_on() && !entry.file.exists());
    entry.set(false).unwrap();
}

#[test]
fn the_program_is_quoted_escaped_and_its_percent_signs_doubled() {
    assert_eq!(exec("/usr/bin/holdfast-desktop"), r#"Exec="/usr/bin/holdfast-desktop" --autostart"#);
    assert_eq!(exec("/a b/100%/h"), r#"Exec=env "/a b/100%%/h" --autostart"#);
    assert_eq!(exec(r#"/"x"/$HOME/`id`/h"#), r#"Exec="/\\"x\\"/\\$HOME/\\`id\\`/h" --autostart"#);
    assert_eq!(exec(r"/a\b"), r#"Exec="/a\\\\b" --autostart"#);
    assert_eq!(exec("/a\nHidden=true\tb"), r#"Exec="/a\nHidden=true\tb" --autostart"#);
    assert_eq!(try_exec("/a b/100%\\\n"), r"TryExec=/a b/100%\\\n");
}

#[test]
fn hostile_paths_are_read_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "a b",
        "100%",
        "%u%%f",
        "\"q\"",
        "$HOME",
        "`id`",
        "back\\slash",
        "new\nline",
        "tab\t",
        "x;y&z|'",
        "ünï ☂",
        "=",
        "\\\\\"%",
    ] {
        let entry = entry(dir.path(), &format!("{name}/holdfast-desktop"));
        entry.set(true).unwrap();
        assert_eq!(named(&read(&entry.file).unwrap()), Some(entry.program.clone()), "{name:?}");
        assert!(entry.is_on(), "{name:?}");
    }
}

#[test]
fn a_path_that_no_entry_can_hold_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let path = Path::new(std::ffi::OsStr::from_bytes(b"/bin/\xff")).to_path_buf();
    assert!(Entry::at(Path::new("/config"), path, "").unwrap_err().to_string().ends_with("is not Unicode"));
    let refused = Entry::at(Path::new("/config"), "/100%/a=b".into(), "").unwrap_err();
    assert_eq!(refused.to_string(), "no desktop entry can start /100%/a=b");
}

#[test]
fn what_desktops_write_to_switch_an_entry_off_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let entry = entry(dir.path(), "holdfast-desktop");
    entry.set(true).unwrap();
    let good = read(&entry.file).unwrap();
    let with = |line: &str| {
        fs::write(&entry.file, format!("{good}{line}\n[Desktop Action x]\nHidden=true\n")).unwrap();
        entry.is_on()
    };
    assert!(with("# Hidden=true"));
    assert!(with("Hidden=false"));
    assert!(with("OnlyShowIn=KDE;GNOME;"));
    assert!(with("NotShowIn=KDE;"));
    assert!(!with("Hidden=true"));
    assert!(!with("Hidden = true"));
    assert!(!with("OnlyShowIn=KDE;XFCE;"));
    assert!(!with("NotShowIn=GNOME;"));
    fs::write(&entry.file, good.replace("enabled=true", "enabled=false")).unwrap();
    assert!(!entry.is_on());
    fs::write(&entry.file, good.replace("TryExec=", "TryExec=/no")).unwrap();
    assert!(!entry.is_on());
    entry.set(true).unwrap();
    assert!(entry.is_on(), "switching it on makes a new entry");
    fs::remove_file(&entry.program).unwrap();
    assert!(!entry.is_on(), "nothing would be started");
}

#[test]
fn an_entry_of_a_program_that_is_gone_is_repaired_and_keeps_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let old = entry(dir.path(), "old place/Holdfast 1.AppImage");
    old.set(true).unwrap();
    let tuned = read(&old.file).unwrap() + "X-GNOME-Autostart-Delay=20\nHidden=true\n";
    fs::write(&old.file, &tuned).unwrap();
    let new = entry(dir.path(), "new place/Holdfast 2.AppImage");
    assert!(!new.repair().unwrap(), "the old one is another installation while it is there");
    fs::remove_file(&old.program).unwrap();
    assert!(new.repair().unwrap());
    assert_eq!(read(&new.file).unwrap(), tuned.replace("old place/Holdfast 1", "new place/Holdfast 2"));
    assert!(!new.is_on(), "it was switched off, and stays so");
    assert!(!new.repair().unwrap());
    fs::write(&new.file, tuned.replace("Hidden=true\n", "")).unwrap();
    assert!(new.repair().unwrap());
    assert!(new.is_on());
}

#[test]
fn an_unquoted_entry_and_a_bare_name_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    let entry = entry(dir.path(), "my apps/holdfast-desktop");
    fs::create_dir_all(entry.file.parent().unwrap()).unwrap();
    fs::write(&entry.file, format!("[Desktop Entry]\nExec={} --autostart\n", entry.program.display())).unwrap();
    assert!(!entry.is_on(), "the part before the space is no program");
    assert!(entry.repair().unwrap());
    assert!(entry.is_on());
    fs::write(&entry.file, "[Desktop Entry]\nExec=holdfast-desktop --autostart\n").unwrap();
    assert!(!entry.repair().unwrap() && entry.is_on(), "found on the path");
    assert!(
        !Entry::at(&dir.path().join("none"), entry.program, "").unwrap().repair().unwrap(),
        "no entry, nothing to repair"
    );
}
