//! The files: whose they are, and who must not open them.

use holdfast_store::StoreError;

use crate::{FILE, open, run};

#[test]
fn a_folder_that_cannot_be_written_and_a_newer_store_are_clear_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = open(&file).unwrap_err();
    assert!(matches!(&error, StoreError::ReadOnly { path, .. } if *path == file.join(FILE)), "{error}");
    let store = open(folder.path()).unwrap();
    run(&store, |db| db.pragma_update(None, "user_version", 9999));
    store.close();
    assert_eq!(open(folder.path()).unwrap_err(), StoreError::Newer);
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_files_whatever_mode_they_had() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("data");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = open(&inner).unwrap();
    assert_eq!(mode(&inner), 0o700);
    for suffix in ["", "-wal", "-shm"] {
        assert_eq!(mode(&inner.join(format!("{FILE}{suffix}"))), 0o600, "{suffix}");
    }
    store.close();
    drop(store);
    std::fs::set_permissions(inner.join(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
    let store = open(&inner).unwrap();
    assert_eq!(mode(&inner.join(FILE)), 0o600);
    store.close();
}
