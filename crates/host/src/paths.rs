//! Where Holdfast keeps its things.

use std::env;
use std::path::{Path, PathBuf};

use crate::files::{self, FileError};

/// The two folders of one Holdfast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// Holds `config.toml`; may be shared by several data folders.
    pub config: PathBuf,
    /// Holds everything else; owned by one process at a time.
    pub data: PathBuf,
}

/// The platform names no folder for this user, and none was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no home folder: give --config-dir and --data-dir, or set HOLDFAST_CONFIG_DIR, HOLDFAST_DATA_DIR and HOLDFAST_STATE_DIR"
)]
pub struct NoHome;

impl Dirs {
    /// A folder that was given wins over `HOLDFAST_CONFIG_DIR` and `HOLDFAST_DATA_DIR`, these over the platform's.
    pub fn find(config: Option<PathBuf>, data: Option<PathBuf>) -> Result<Dirs, NoHome> {
        let from_env = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let config = config
            .or_else(|| from_env("HOLDFAST_CONFIG_DIR"))
            .or_else(|| dirs::config_dir().map(|d| d.join("holdfast")))
            .ok_or(NoHome)?;
        let data = data
            .or_else(|| from_env("HOLDFAST_DATA_DIR"))
            .or_else(|| dirs::data_local_dir().map(|d| d.join("holdfast")))
            .ok_or(NoHome)?;
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Ok(Dirs { config: absolute(config), data: absolute(data) })
    }

    /// Where the seats of bots are kept: one folder for every Holdfast of this user, because a bot has one seat.
    /// `HOLDFAST_STATE_DIR` wins over the platform's.
    pub fn state() -> Result<PathBuf, NoHome> {
        let given = env::var_os("HOLDFAST_STATE_DIR").filter(|v| !v.is_empty()).map(PathBuf::from);
        let platform = || dirs::state_dir().or_else(dirs::data_local_dir).map(|d| d.join("holdfast"));
        let path = given.or_else(platform).ok_or(NoHome)?;
        Ok(std::path::absolute(&path).unwrap_or(path))
    }

    /// Makes both folders, 0700. The data folder must belong to this user and to nobody else.
    pub fn prepare(&self) -> Result<(), FileError> {
        files::make_dir(&self.config)?;
        files::make_dir(&self.data)?;
        files::own_dir(&self.data)
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Where the loopback API of the holder is named.
    pub fn api_file(&self) -> PathBuf {
        self.data.join("api.json")
    }

    /// The relay's store and keys.
    pub fn relay(&self) -> PathBuf {
        self.data.join("relay")
    }

    /// The log files.
    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }
}

/// Finds the workspace: the given folder, which must exist, or `~/holdfast`, which is made. Never a home folder itself
/// and never a root, so that a client's file tools do not reach everything by default.
pub fn workspace(given: Option<&Path>) -> Result<PathBuf, WorkspaceError> {
    let home = dirs::home_dir();
    let wanted = match (given, &home) {
        (Some(path), Some(home)) => match path.strip_prefix("~") {
            Ok(rest) => home.join(rest),
            Err(_) => path.to_path_buf(),
        },
        (Some(path), None) => path.to_path_buf(),
        (None, Some(home)) => {
            let path = home.join("holdfast");
            files::make_dir(&path).map_err(|e| unusable(&path, &e))?;
            path
        }
        (None, None) => return Err(WorkspaceError::NoHome),
    };
    let real = wanted.canonicalize().map_err(|e| unusable(&wanted, &e))?;
    if !real.is_dir() {
        return Err(unusable(&real, &"not a folder"));
    }
    let is_home = home.and_then(|h| h.canonicalize().ok()).is_some_and(|h| h == real);
    if is_home || real.parent().is_none() {
        return Err(WorkspaceError::TooWide(real));
    }
    Ok(real)
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> WorkspaceError {
    WorkspaceError::Unusable { path: path.to_path_buf(), why: why.to_string() }
}

/// Why a folder cannot be the workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// It does not exist or cannot be used.
    #[error("workspace {}: {why}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It is the home folder or a root.
    #[error("the workspace cannot be {}, which is a home folder or a root: choose a folder inside it", .0.display())]
    TooWide(PathBuf),
    /// There is no home folder to make the default one in.
    #[error("no home folder: give --workspace")]
    NoHome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_folder_wins_and_becomes_absolute() {
        let dirs = Dirs::find(Some("conf".into()), Some("/data".into())).unwrap();
        assert_eq!(dirs.data, Path::new("/data"));
        assert_eq!(dirs.config, env::current_dir().unwrap().join("conf"));
    }

    #[test]
    fn the_home_folder_and_the_root_are_no_workspace() {
        assert!(matches!(workspace(Some(Path::new("/"))), Err(WorkspaceError::TooWide(_))));
        let home = dirs::home_dir().unwrap();
        assert!(matches!(workspace(Some(&home)), Err(WorkspaceError::TooWide(_))));
        assert!(matches!(workspace(Some(Path::new("~"))), Err(WorkspaceError::TooWide(_))));
        assert!(matches!(workspace(Some(&home.join("../../no-such"))), Err(WorkspaceError::Unusable { .. })));
    }
}
