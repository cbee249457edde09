//! The Begin/End Patch envelope: parsing, and applying one file's hunks to its text. Pure; the shell stages and commits.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: path
//! *** Move to: new path
//! @@ a line above the change
//!  context
//! -old
//! +new
//! *** End of File
//! *** Add File: path
//! +line
//! *** Delete File: path
//! *** End Patch
//! ```

use crate::limits;

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// As written in the patch.
    pub path: String,
    /// What happens to it.
    pub action: Action,
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is made, with this text.
    Add(String),
    /// It is removed.
    Delete,
    /// Its text changes, or it moves, or both.
    Update {
        /// Where it moves to.
        to: Option<String>,
        /// Changes in the order of the file; may be empty when it moves.
        hunks: Vec<Hunk>,
    },
}

/// One change within a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// Lines above the place, outermost first: each is looked for after the one before it.
    pub anchors: Vec<String>,
    /// Lines that are there now, context included.
    pub old: Vec<String>,
    /// Lines that take their place, context included.
    pub new: Vec<String>,
    /// The old lines are the last of the file.
    pub at_end: bool,
}

/// Why a patch cannot be read or does not fit. Lines count from 1; no text of the patch or the file is repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is not enclosed in the envelope.
    #[error("a patch starts with *** Begin Patch and ends with *** End Patch")]
    Envelope,
    /// A line that has no meaning where it stands.
    #[error("line {0} of the patch has no meaning there")]
    Line(usize),
    /// A path that is empty or too long.
    #[error("line {0} of the patch names no usable path")]
    Path(usize),
    /// A file that is updated without any change.
    #[error("the update at line {0} of the patch changes nothing")]
    Nothing(usize),
    /// No file is changed.
    #[error("the patch changes no file")]
    Empty,
    /// More files than [`limits::PATCH_FILES_MAX`].
    #[error("the patch changes more than {} files", limits::PATCH_FILES_MAX)]
    TooManyFiles,
    /// A path stands in it twice.
    #[error("line {0} of the patch changes a file a second time")]
    Twice(usize),
    /// The lines of a hunk are not in the file.
    #[error("hunk {0} does not match the file")]
    NoMatch(usize),
    /// The lines of a hunk are in the file more than once.
    #[error("hunk {0} matches the file in more than one place; add context or an @@ line")]
    Ambiguous(usize),
    /// Finding the place of a hunk takes more than is left of [`limits::PATCH_STEPS_MAX`].
    #[error("hunk {0} is too much work to find in a file this long; add an @@ line or send fewer hunks at once")]
    TooMuchWork(usize),
}

/// How many comparisons of lines one patch may still take, all its files together: it is applied under a lock.
#[derive(Debug)]
pub struct Steps(usize);

impl Default for Steps {
    fn default() -> Steps {
        Steps(limits::PATCH_STEPS_MAX)
    }
}

impl Steps {
    fn equal(&mut self, a: &str, b: &str) -> Result<bool, Misfit> {
        // Lines of different length differ without a look at their text.
        let bytes = if a.len() == b.len() { a.len() } else { 0 };
        self.0 = self.0.checked_sub(1 + bytes / limits::PATCH_STEP).ok_or(Misfit::TooMuchWork)?;
        Ok(a == b)
    }
}

/// Reads a patch.
pub fn parse(text: &str) -> Result<Vec<Change>, PatchError> {
    let mut lines: Vec<(usize, &str)> =
        text.lines().enumerate().map(|(at, line)| (at + 1, line.strip_suffix('\r').unwrap_or(line))).collect();
    while lines.last().is_some_and(|(_, line)| line.trim().is_empty()) {
        lines.pop();
    }
    let start = lines.iter().position(|(_, line)| !line.trim().is_empty()).ok_or(PatchError::Envelope)?;
    let body = match &lines[start..] {
        [(_, first), body @ .., (_, last)] if first.trim() == "*** Begin Patch" && last.trim() == "*** End Patch" => {
            body
        }
        _ => return Err(PatchError::Envelope),
    };
    let mut changes: Vec<Change> = Vec::new();
    let mut rest = body;
    while let [(at, line), after @ ..] = rest {
        if line.trim().is_empty() {
            rest = after;
            continue;
        }
        let (change, left) = if let Some(path) = line.strip_prefix("*** Add File: ") {
            let (text, left) = added(after)?;
            (Change { path: path_of(*at, path)?, action: Action::Add(text) }, left)
        } else if let Some(path) = line.strip_prefix("*** Delete File: ") {
            (Change { path: path_of(*at, path)?, action: Action::Delete }, after)
        } else if let Some(path) = line.strip_prefix("*** Update File: ") {
            let (action, left) = updated(*at, after)?;
            (Change { path: path_of(*at, path)?, action }, left)
        } else {
            return Err(PatchError::Line(*at));
        };
        if changes.len() == limits::PATCH_FILES_MAX {
            return Err(PatchError::TooManyFiles);
        }
        if changes.iter().any(|earlier| earlier.path == change.path) {
            return Err(PatchError::Twice(*at));
        }
        changes.push(change);
        rest = left;
    }
    if changes.is_empty() { Err(PatchError::Empty) } else { Ok(changes) }
}

type Lines<'a, 'b> = &'b [(usize, &'a str)];

fn path_of(at: usize, path: &str) -> Result<String, PatchError> {
    let path = path.trim();
    if path.is_empty() || path.len() > limits::PATH_MAX { Err(PatchError::Path(at)) } else { Ok(path.to_owned()) }
}

fn added<'a, 'b>(mut rest: Lines<'a, 'b>) -> Result<(String, Lines<'a, 'b>), PatchError> {
    let mut text = String::new();
    while let [(at, line), after @ ..] = rest {
        if line.starts_with("*** ") {
            break;
        }
        text += line.strip_prefix('+').ok_or(PatchError::Line(*at))?;
        text.push('\n');
        rest = after;
    }
    Ok((text, rest))
}

fn updated<'a, 'b>(head: usize, mut rest: Lines<'a, 'b>) -> Result<(Action, Lines<'a, 'b>), PatchError> {
    let mut to = None;
    if let [(at, line), after @ ..] = rest
        && let Some(path) = line.strip_prefix("*** Move to: ")
    {
        to = Some(path_of(*at, path)?);
        rest = after;
    }
    let mut hunks: Vec<Hunk> = Vec::new();
    // Whether the last hunk has lines already, so that the next @@ begins another one.
    let mut open = false;
    while let [(at, line), after @ ..] = rest {
        if *line == "*** End of File" {
            match hunks.last_mut() {
                Some(hunk) if open => hunk.at_end = true,
                _ => return Err(PatchError::Line(*at)),
            }
            open = false;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(anchor) = line.strip_prefix("@@") {
            if open || hunks.is_empty() || hunks.last().is_some_and(|hunk| hunk.at_end) {
                hunks.push(Hunk::default());
            }
            open = false;
            // Line numbers in the manner of other diffs say nothing here; what follows them does.
            let anchor = match anchor.trim_start().split_once(" @@") {
                Some((numbers, rest)) if numbers.starts_with('-') => rest,
                _ => anchor,
            };
            let anchor = anchor.strip_prefix(' ').unwrap_or(anchor);
            if let (false, Some(hunk)) = (anchor.trim().is_empty(), hunks.last_mut()) {
                hunk.anchors.push(anchor.to_owned());
            }
        } else {
            // The first hunk needs no @@ line.
            if hunks.last().is_none_or(|hunk| hunk.at_end) {
                hunks.push(Hunk::default());
            }
            let Some(hunk) = hunks.last_mut() else { return Err(PatchError::Line(*at)) };
            let mut characters = line.chars();
            match characters.next() {
                // Editors strip the space of an empty context line.
                None | Some(' ') => {
                    hunk.old.push(characters.as_str().to_owned());
                    hunk.new.push(characters.as_str().to_owned());
                }
                Some('-') => hunk.old.push(characters.as_str().to_owned()),
                Some('+') => hunk.new.push(characters.as_str().to_owned()),
                Some(_) => return Err(PatchError::Line(*at)),
            }
            open = true;
        }
        rest = after;
    }
    let changes = hunks.iter().all(|hunk| hunk.old != hunk.new);
    if !changes || (hunks.is_empty() && to.is_none()) {
        return Err(PatchError::Nothing(head));
    }
    Ok((Action::Update { to, hunks }, rest))
}

/// Applies hunks, each after the one before it, to a file's text. Line ends of the file are kept: a new line ends as the
/// first line of the file does.
pub fn apply(text: &str, hunks: &[Hunk], steps: &mut Steps) -> Result<String, PatchError> {
    let newline = match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    };
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let trimmed: Vec<&str> = old.iter().map(|line| line.trim_end()).collect();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let place = place(&old, &trimmed, done, hunk, steps).map_err(|why| match why {
            Misfit::Nowhere => PatchError::NoMatch(number + 1),
            Misfit::Ambiguous => PatchError::Ambiguous(number + 1),
            Misfit::TooMuchWork => PatchError::TooMuchWork(number + 1),
        })?;
        old[done..place].iter().for_each(|line| out += line);
        // A line without an end can only be the last one; whatever follows it now starts on a new line.
        if !hunk.new.is_empty() && !out.is_empty() && !out.ends_with('\n') {
            out += newline;
        }
        for line in &hunk.new {
            out += line;
            out += newline;
        }
        done = place + hunk.old.len();
    }
    old[done..].iter().for_each(|line| out += line);
    // A file that ended without a newline still does, if its last line was replaced.
    if done == old.len() && !hunks.is_empty() && !text.is_empty() && !text.ends_with('\n') && out.ends_with(newline) {
        out.truncate(out.len() - newline.len());
    }
    Ok(out)
}

fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

enum Misfit {
    Nowhere,
    Ambiguous,
    TooMuchWork,
}

/// Where a hunk's old lines stand, at or after line `from`. `trimmed` are the lines without trailing space.
fn place(lines: &[&str], trimmed: &[&str], mut from: usize, hunk: &Hunk, steps: &mut Steps) -> Result<usize, Misfit> {
    for anchor in &hunk.anchors {
        // Anchors are written by hand: indentation does not count. No line is looked at for two anchors.
        let anchor = anchor.trim();
        let found = trimmed[from..].iter().position(|line| line.trim_start() == anchor);
        from += found.ok_or(Misfit::Nowhere)? + 1;
    }
    if hunk.old.is_empty() {
        // Pure insertion: behind the anchor, or at the end of the file.
        return Ok(if hunk.anchors.is_empty() || hunk.at_end { lines.len() } else { from });
    }
    let last = lines.len().checked_sub(hunk.old.len()).filter(|last| *last >= from).ok_or(Misfit::Nowhere)?;
    let from = if hunk.at_end { last } else { from };
    // Exactly first; then without trailing space, which models and editors lose.
    for loose in [false, true] {
        let wanted: Vec<&str> = hunk.old.iter().map(|line| if loose { line.trim_end() } else { line }).collect();
        let mut fits = |place: usize| -> Result<bool, Misfit> {
            for (at, old) in (place..).zip(&wanted) {
                if !steps.equal(old, if loose { trimmed[at] } else { bare(lines[at]) })? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let mut found = None;
        for place in from..=last {
            if !fits(place)? {
                continue;
            }
            // An anchor says which: the first after it.
            if !hunk.anchors.is_empty() {
                return Ok(place);
            }
            if found.replace(place).is_some() {
                return Err(Misfit::Ambiguous);
            }
        }
        if let Some(place) = found {
            return Ok(place);
        }
    }
    Err(Misfit::Nowhere)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn envelope(body: &str) -> String {
        format!("*** Begin Patch\n{body}\n*** End Patch\n")
    }

    fn update(text: &str, body: &str) -> Result<String, PatchError> {
        let changes = parse(&envelope(&format!("*** Update File: f\n{body}")))?;
        match &changes[0].action {
            Action::Update { hunks, .. } => apply(text, hunks, &mut Steps::default()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_patch_adds_deletes_moves_and_updates() {
        let patch = envelope(
            "*** Add File: a/new.txt\n+one\n+\n+two\n*** Delete File: old.txt\n*** Update File: x\n*** Move to: y\n\
             @@ fn main\n ctx\n-old\n+new\n*** End of File",
        );
        let hunk = Hunk {
            anchors: vec!["fn main".into()],
            old: vec!["ctx".into(), "old".into()],
            new: vec!["ctx".into(), "new".into()],
            at_end: true,
        };
        assert_eq!(
            parse(&patch).unwrap(),
            [
                Change { path: "a/new.txt".into(), action: Action::Add("one\n\ntwo\n".into()) },
                Change { path: "old.txt".into(), action: Action::Delete },
                Change { path: "x".into(), action: Action::Update { to: Some("y".into()), hunks: vec![hunk] } },
            ]
        );
    }

    #[test]
    fn malformed_patches_are_refused_at_their_line() {
        let many: String = (0..=limits::PATCH_FILES_MAX).map(|n| format!("*** Delete File: f{n}\n")).collect();
        for (patch, error) in [
            (String::new(), PatchError::Envelope),
            ("*** Begin Patch".into(), PatchError::Envelope),
            ("*** Delete File: x".into(), PatchError::Envelope),
            (envelope(""), PatchError::Empty),
            (envelope("*** Rename File: x"), PatchError::Line(2)),
            (envelope("*** Add File: x\nno plus"), PatchError::Line(3)),
            (envelope("*** Add File:  "), PatchError::Path(2)),
            (envelope("*** Update File: x\n*** Move to: \n-a"), PatchError::Path(3)),
            (envelope("*** Update File: x"), PatchError::Nothing(2)),
            (envelope("*** Update File: x\n same"), PatchError::Nothing(2)),
            (envelope("*** Update File: x\n*** End of File"), PatchError::Line(3)),
            (envelope("*** Update File: x\n-a\n?b"), PatchError::Line(4)),
            (envelope("*** Delete File: x\n*** Delete File: x"), PatchError::Twice(3)),
            (envelope(&many), PatchError::TooManyFiles),
        ] {
            assert_eq!(parse(&patch), Err(error), "{patch:.60}");
        }
    }

    #[test]
    fn a_hunk_is_found_by_its_lines_its_anchor_or_the_end_of_the_file() {
        let text = "a\nx\nb\nx\nc\n";
        assert_eq!(update(text, "-b\n+B").unwrap(), "a\nx\nB\nx\nc\n");
        assert_eq!(update(text, "-x\n+X"), Err(PatchError::Ambiguous(1)));
        assert_eq!(update(text, "@@ b\n-x\n+X").unwrap(), "a\nx\nb\nX\nc\n");
        assert_eq!(update(text, "@@ -1,2 +1,2 @@ b\n-x\n+X").unwrap(), "a\nx\nb\nX\nc\n");
        assert_eq!(update(text, "@@\n a\n-x\n+X\n@@\n-x\n+Y").unwrap(), "a\nX\nb\nY\nc\n");
        assert_eq!(update("x\nx\n", "-x\n+X\n*** End of File").unwrap(), "x\nX\n");
        assert_eq!(update(text, "-nowhere\n+X"), Err(PatchError::NoMatch(1)));
        assert_eq!(update(text, "@@ nowhere\n-x\n+X"), Err(PatchError::NoMatch(1)));
        assert_eq!(update(text, "@@ c\n-b\n+B"), Err(PatchError::NoMatch(1)));
        assert_eq!(update(text, "+end").unwrap(), "a\nx\nb\nx\nc\nend\n");
        assert_eq!(update(text, "@@ a\n+after").unwrap(), "a\nafter\nx\nb\nx\nc\n");
        assert_eq!(update("a  \nb\n", "-a\n+A").unwrap(), "A\nb\n");
    }

    #[test]
    fn a_patch_to_five_mebibytes_of_equal_lines_takes_bounded_work() {
        let text = "x\n".repeat(limits::FILE_BYTES_MAX / 2);
        let hunk = |anchors: usize, old: usize| Hunk {
            anchors: vec!["x".into(); anchors],
            old: vec!["x".into(); old],
            ..Hunk::default()
        };
        let tried = |hunks: &[Hunk]| {
            let mut steps = Steps(1_000_000);
            let outcome = apply(&text, hunks, &mut steps).map(|text| text.len());
            (outcome, 1_000_000 - steps.0)
        };
        let mut nowhere = hunk(0, 100_000);
        nowhere.old.push("y".into());

        // With an anchor, work grows with the patch only.
        assert_eq!(tried(&vec![hunk(1, 1); 100_000]), (Ok(text.len() - 200_000), 100_000));
        assert_eq!(tried(&[hunk(0, 100_000)]), (Err(PatchError::Ambiguous(1)), 200_000));
        assert_eq!(tried(&[nowhere]), (Err(PatchError::TooMuchWork(1)), 1_000_000));
    }

    #[test]
    fn long_lines_count_for_more_than_one_step() {
        let line = "x".repeat(3 * limits::PATCH_STEP);
        let hunks = [Hunk { old: vec![line.clone()], ..Hunk::default() }];
        let mut steps = Steps(3);
        assert_eq!(apply(&line, &hunks, &mut steps), Err(PatchError::TooMuchWork(1)));
        let mut steps = Steps(4);
        assert_eq!((apply(&line, &hunks, &mut steps), steps.0), (Ok(String::new()), 0));
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        assert_eq!(update("a\r\nb\r\n", "-a\n+A").unwrap(), "A\r\nb\r\n");
        assert_eq!(update("a\nb", "-b\n+B").unwrap(), "a\nB");
        assert_eq!(update("a\nb", " b\n+c").unwrap(), "a\nb\nc");
        assert_eq!(update("a", "-a").unwrap(), "");
        assert_eq!(update("", "+a").unwrap(), "a\n");
    }

    proptest! {
        #[test]
        fn replacing_a_unique_line_with_its_context_changes_exactly_that_line(
            lines in proptest::collection::vec("[a-c]{0,2}", 1..12), at in any::<prop::sample::Index>(),
        ) {
            let at = at.index(lines.len());
            let mut body = String::new();
            for (number, line) in lines.iter().enumerate() {
                body += &if number == at { format!("-{line}\n+NEW\n") } else { format!(" {line}\n") };
            }
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut expected = lines.clone();
            expected[at] = "NEW".into();
            prop_assert_eq!(update(&text, body.trim_end_matches('\n')).unwrap(), expected.iter().map(|l| format!("{l}\n")).collect::<String>());
        }

        #[test]
        fn no_text_makes_the_parser_or_the_hunks_panic(text in "([ +@*-]|Begin Patch|Update File: f|\\*\\*\\* |a|é|\r|\n){0,40}", file in "[ab\r\n]{0,20}") {
            for patch in [text.clone(), envelope(&text), envelope(&format!("*** Update File: f\n{text}"))] {
                for change in parse(&patch).unwrap_or_default() {
                    if let Action::Update { hunks, .. } = change.action {
                        let _ = apply(&file, &hunks, &mut Steps::default());
                    }
                }
            }
        }
    }
}
