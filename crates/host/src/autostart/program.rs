//! Which program an entry should name, so that it still starts after an update.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::NAME;

/// The file that starts this process's program, by the name that lasts longest.
pub fn program() -> io::Result<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    Ok(lasting(env::current_exe()?, variable("APPIMAGE"), variable("APPDIR"), variable("PATH")))
}

fn lasting(running: PathBuf, image: Option<OsString>, mount: Option<OsString>, path: Option<OsString>) -> PathBuf {
    // An AppImage runs from a folder that is mounted for this run. Programs that it starts inherit its variables.
    if let (Some(image), Some(mount)) = (image, mount)
        && running.starts_with(&mount)
    {
        return image.into();
    }
    // A link on the path stays when what it leads to gets a new version in its name.
    let Ok(real) = running.canonicalize() else { return running };
    let on_path = path.iter().flat_map(|path| env::split_paths(path).collect::<Vec<_>>());
    on_path
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(NAME))
        .find(|candidate| candidate.canonicalize().is_ok_and(|candidate| candidate == real))
        .unwrap_or(running)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_itself_and_not_by_the_programs_it_starts() {
        let image = Some("/home/ann/Holdfast.AppImage".into());
        let inside =
            lasting("/tmp/.mount_x/usr/bin/holdfast-desktop".into(), image, Some("/tmp/.mount_x".into()), None);
        assert_eq!(inside, PathBuf::from("/home/ann/Holdfast.AppImage"));
        let outside =
            lasting("/opt/holdfast-desktop".into(), Some("/other.AppImage".into()), Some("/tmp/.mount_y".into()), None);
        assert_eq!(outside, PathBuf::from("/opt/holdfast-desktop"));
    }

    #[test]
    fn a_link_on_the_path_wins_only_when_it_leads_to_this_program() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (real, other) = (dir.join("holdfast-desktop-1.2"), dir.join("other"));
        std::fs::write(&real, "").unwrap();
        std::fs::write(&other, "").unwrap();
        for (folder, target) in [("a", &other), ("b", &real)] {
            std::fs::create_dir(dir.join(folder)).unwrap();
            std::os::unix::fs::symlink(target, dir.join(folder).join(NAME)).unwrap();
        }
        let path = env::join_paths([PathBuf::from("b"), dir.join("a"), dir.join("b")]).unwrap();
        assert_eq!(lasting(real.clone(), None, None, Some(path)), dir.join("b").join(NAME));
        assert_eq!(lasting(real.clone(), None, None, Some(dir.join("a").into())), real);
    }
}
