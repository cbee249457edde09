//! The claim: one file, put in place once, that decides whether anything ever ran.

use std::io::{self, Write as _};
use std::path::Path;

use holdfast_core::run::Claim;

use super::folder::{CLAIM, read, sync_folder};

/// Puts a claim in place unless there is one, and returns the one that is: of several that try, exactly one finds its own.
/// It is whole and durable when this returns. Fails if the folder cannot be written to; then nothing was decided.
pub fn claim(folder: &Path, claim: &Claim) -> io::Result<Claim> {
    let place = folder.join(CLAIM);
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(claim)?)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(&place) {
        Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => return Err(e.error),
        // Whoever was first may not have come to this.
        _ => sync_folder(folder)?,
    }
    read(&place)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_core::run::Identity;

    #[test]
    fn of_a_runner_and_a_recovering_worker_exactly_one_wins_and_both_read_the_same() {
        let runner = Claim::Runner(Identity {
            pid: 7,
            started: Some("1".into()),
            boot: "b".into(),
            mark: "run_x".into(),
            scope: None,
        });
        let mut won = [0, 0];
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let found = std::thread::scope(|scope| {
                let both = [&runner, &Claim::Void].map(|ours| scope.spawn(|| claim(dir.path(), ours).unwrap()));
                both.map(|one| one.join().unwrap())
            });
            assert_eq!(found[0], found[1]);
            won[usize::from(found[0] == Claim::Void)] += 1;
            assert_eq!(claim(dir.path(), &Claim::Void).unwrap(), found[0]);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
        assert_eq!(won[0] + won[1], 50);
    }
}
