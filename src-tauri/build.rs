//! Tells the shell's configuration and permissions to the compiler.

fn main() {
    #[cfg(feature = "desktop")]
    desktop();
}

#[cfg(feature = "desktop")]
fn desktop() {
    use tauri_build::{AppManifest, Attributes};

    // A build script runs in the folder of Cargo.toml, not in its own.
    println!("cargo:rerun-if-changed=src-tauri/capabilities");
    println!("cargo:rerun-if-changed=src-tauri/permissions");
    assert!(std::path::Path::new("ui/dist/index.html").exists(), "the window is not built: `npm run build` in ui/");
    let attributes = Attributes::new()
        .capabilities_path_pattern("./src-tauri/capabilities/*.json")
        .app_manifest(AppManifest::new().permissions_path_pattern("./src-tauri/permissions/*.toml"));
    if let Err(e) = tauri_build::try_build(attributes) {
        panic!("{e:#}");
    }
}
