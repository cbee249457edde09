//! Lists the built window (`ui/dist`), so that `src/api/page.rs` can hold its files. Where it was not built the list is empty.

use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut entries = String::new();
    if std::env::var_os("CARGO_FEATURE_UI").is_some() {
        let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist");
        // A path that is watched and does not exist would make every build a new one.
        let _ = fs::create_dir_all(&dist);
        println!("cargo::rerun-if-changed={}", dist.display());
        let mut files = Vec::new();
        list(&dist, &mut files)?;
        files.sort();
        for file in files {
            let name: Vec<_> =
                file.strip_prefix(&dist).unwrap_or(&file).iter().map(|part| part.to_string_lossy()).collect();
            entries.push_str(&format!("    ({:?}, include_bytes!({:?})),\n", name.join("/"), file));
        }
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("ui.rs");
    fs::write(out, format!("&[\n{entries}]\n"))
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
