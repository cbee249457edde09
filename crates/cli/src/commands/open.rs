//! `open`: the status window in a browser.

use holdfast_host::open;
use serde_json::json;

use super::told;
use crate::args::Folders;
use crate::ask::running;
use crate::failure::Failure;

pub async fn open(folders: &Folders, only_print: bool) -> Result<(), Failure> {
    let holder = running(&folders.dirs()?).await?.ok_or_else(Failure::not_running)?;
    let at = holder.open().await?;
    if only_print {
        return told(folders, &json!(at), &at.url);
    }
    open::window(&at).map_err(|e| Failure::plain(format!("{e}; `holdfast open --print` prints its address")))?;
    told(folders, &json!({"opened": true}), "the window opens in the browser")
}
