//! Takes a copy of the built window (`ui/dist`) and lists its files, so that `src/api/page.rs` can hold them. Where it was not
//! built the list is empty.

use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let mut names = Vec::new();
    if std::env::var_os("CARGO_FEATURE_UI").is_some() {
        let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist");
        // A path that is watched and does not exist would make every build a new one.
        let _ = fs::create_dir_all(&dist);
        println!("cargo::rerun-if-changed={}", dist.display());
        // A copy, because the window may be built anew while this is compiled.
        copy(&dist, &out.join("ui"), "", &mut names)?;
        names.sort();
    }
    let entry = |name: &String| {
        format!("    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), {:?}))),\n", format!("/ui/{name}"))
    };
    fs::write(out.join("ui.rs"), format!("&[\n{}]\n", names.iter().map(entry).collect::<String>()))
}

/// Copies the files of `from`; `place` is where in the window they stand.
fn copy(from: &Path, to: &Path, place: &str, names: &mut Vec<String>) -> Result<()> {
    fs::create_dir_all(to)?;
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries.flatten() {
        let Ok(file) = entry.file_name().into_string() else { continue };
        let (path, copied, name) = (entry.path(), to.join(&file), format!("{place}{file}"));
        if path.is_dir() {
            copy(&path, &copied, &format!("{name}/"), names)?;
        } else if fs::copy(&path, &copied).is_ok() {
            names.push(name);
        }
    }
    Ok(())
}
