//! The patch envelope, and hunks on a file.

use holdfast_core::tools::patch::{Action, Steps, apply, parse};

/// The patch, then, after a line `====`, the file that every update is tried on.
pub fn patch(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (envelope, file) = text.split_once("\n====\n").unwrap_or((text, ""));
    let mut steps = Steps::default();
    for change in parse(envelope).into_iter().flatten() {
        assert!(!change.path.is_empty());
        if let Action::Update { hunks, .. } = change.action {
            let most: usize = hunks.iter().flat_map(|hunk| &hunk.new).map(|line| line.len() + 2).sum();
            if let Ok(changed) = apply(file, &hunks, &mut steps) {
                assert!(changed.len() <= file.len() * 2 + most + 2);
            }
        }
    }
}
