//! `reset`: removes what Holdfast keeps on this machine.

use std::io::BufRead as _;

use holdfast_host::api::client::{Owner, owner};
use holdfast_host::lock::DataLock;
use holdfast_host::reset::{erase, found};
use serde_json::json;

use crate::args::Folders;
use crate::failure::Failure;
use crate::print;

/// What has to be typed.
const WORD: &str = "reset";

pub async fn reset(folders: &Folders, all: bool, yes: bool) -> Result<(), Failure> {
    let dirs = folders.dirs()?;
    // A folder that no Holdfast ever had is left alone, whoever names it.
    if !DataLock::was_taken(&dirs.data) {
        return Err(Failure::plain(format!("{} is no data folder of Holdfast", dirs.data.display())));
    }
    let lock = match owner(&dirs).await? {
        Owner::Us(lock) => lock,
        Owner::Holder(holder) => {
            let pid = holder.file().pid;
            return Err(Failure::plain(format!("Holdfast runs as process {pid}; quit it first")));
        }
    };
    let removed = found(&dirs, all);
    if !yes {
        print::note("this removes:");
        for (path, what) in &removed {
            print::note(&format!("  {}  ({what})", path.display()));
        }
        print::note(&format!(
            "clients and devices have to be let in again. The workspace stays. Type {WORD} to go on:"
        ));
        let mut word = String::new();
        std::io::stdin().lock().read_line(&mut word)?;
        if word.trim() != WORD {
            return Err(Failure::plain("nothing was removed"));
        }
    }
    tokio::task::spawn_blocking(move || erase(&dirs, all, &lock))
        .await
        .map_err(|e| Failure::plain(e.to_string()))?
        .map_err(|e| Failure::plain(e.to_string()))?;
    if folders.json {
        return print::json(&json!({"removed": removed.iter().map(|(path, _)| path).collect::<Vec<_>>()}));
    }
    for (path, what) in &removed {
        print::line(&format!("removed {}  ({what})", path.display()));
    }
    if removed.is_empty() {
        print::line("there was nothing to remove");
    }
    Ok(())
}
