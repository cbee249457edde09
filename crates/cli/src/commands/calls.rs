//! `calls`: the recent calls with their steps.

use holdfast_core::status::CallRow;

use crate::args::Folders;
use crate::ask::running;
use crate::failure::Failure;
use crate::print;

pub async fn calls(folders: &Folders) -> Result<(), Failure> {
    let holder = running(&folders.dirs()?).await?.ok_or_else(Failure::not_running)?;
    let rows: Vec<CallRow> = holder.get("/api/calls").await?;
    if folders.json {
        return print::json(&rows);
    }
    for row in rows.iter().rev() {
        let took = row.took_ms.map(|ms| format!("{ms} ms")).unwrap_or_default();
        let ended = row.code.map(|c| format!(" ({})", c.as_str())).unwrap_or_default();
        let about = row.summary.as_deref().map(print::shown).unwrap_or_default();
        let state = row.state.as_str();
        print::line(&format!("{}  {:<10} {:<18} {took:>9}{ended}  {about}", print::moment(row.at), state, row.tool));
        let steps = row.steps.iter().map(|(step, at)| format!("{} +{}", step.as_str(), at.saturating_sub(row.at)));
        print::line(&format!("          {}", steps.collect::<Vec<_>>().join(" · ")));
    }
    Ok(())
}
