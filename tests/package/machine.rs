//! A folder that dpkg takes for the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

fn done(what: &str, output: std::io::Result<Output>) -> String {
    let output = output.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The package of this version, of the binaries under test; built when it is first asked for, without compression.
pub fn package(version: &'static str) -> PathBuf {
    static OLD: OnceLock<TempDir> = OnceLock::new();
    static NEW: OnceLock<TempDir> = OnceLock::new();
    let kept = match version {
        "1.0.0" => &OLD,
        _ => &NEW,
    };
    let folder = kept.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let built = Path::new(env!("CARGO_BIN_EXE_holdfast-desktop")).parent().expect("a folder");
        let mut make = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/deb"));
        make.arg(built).arg(version).env("PACKAGE_DIR", folder.path()).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
        done("packaging/deb", make.output());
        folder
    });
    let mut made = std::fs::read_dir(folder.path()).expect("the folder");
    made.next().expect("a package").expect("a package").path()
}

/// See the module.
pub struct Machine {
    folder: TempDir,
    root: PathBuf,
}

impl Machine {
    /// A machine without packages, in a folder of this name.
    pub fn new(name: &str) -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("its path").join(name);
        for part in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(root.join("var/lib/dpkg").join(part)).expect("a database");
        }
        std::fs::write(root.join("var/lib/dpkg/status"), "").expect("a database");
        Machine { folder, root }
    }

    /// A path on it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A file on it.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// What one of its programs prints.
    pub fn run(&self, program: &str, args: &[&str]) -> String {
        done(program, Command::new(self.path(program)).args(args).current_dir(self.folder.path()).output())
    }

    /// Lays the files of a package out, without installing it.
    pub fn unpack(&self, package: &Path) {
        done("dpkg", Command::new("dpkg").arg("--extract").arg(package).arg(&self.root).output());
    }

    /// A field of a package.
    pub fn field(&self, package: &Path, field: &str) -> String {
        done("dpkg", Command::new("dpkg").arg("--field").arg(package).arg(field).output())
    }

    /// Installs or removes, by dpkg itself. The libraries are those of the real machine, which this one's database does not
    /// know; files belong to whoever runs the test.
    pub fn dpkg(&self, args: &[&str]) -> String {
        let mut root = std::ffi::OsString::from("--root=");
        root.push(&self.root);
        let mut command = Command::new("fakeroot");
        command.args(["dpkg", "--force-depends", "--force-not-root", "--log=/dev/null"]).arg(root).args(args);
        // dpkg looks for programs that only root has on its path.
        let path = std::env::var("PATH").unwrap_or_default();
        done("dpkg", command.env("PATH", format!("{path}:/usr/sbin:/sbin")).output())
    }

    /// The version that is installed.
    pub fn installed(&self) -> String {
        let mut root = std::ffi::OsString::from("--root=");
        root.push(&self.root);
        done("dpkg-query", Command::new("dpkg-query").arg(root).args(["-W", "-f", "${Version}", "holdfast"]).output())
    }
}
