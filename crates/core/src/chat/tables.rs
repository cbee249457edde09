//! Markdown tables, which chat services do not draw.

/// Turns each table outside of code blocks into a list: the first cell of a row in bold, then one line per other cell with
/// its heading. A text without tables stays as it is.
pub fn tables(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len());
    let mut block = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let bare = line.trim_start();
        let fence = ["```", "~~~"].into_iter().find(|fence| bare.starts_with(fence));
        match (block, fence) {
            (None, Some(opened)) => block = Some(opened),
            (Some(opened), Some(closed)) if opened == closed => block = None,
            _ => {}
        }
        let headings = if block.is_none() { table(&lines[at..]) } else { None };
        let Some(headings) = headings else {
            out.push_str(line);
            at += 1;
            continue;
        };
        at += 2;
        while let Some(cells) = lines.get(at).and_then(|line| row(line)) {
            list(&headings, &cells, &mut out);
            at += 1;
        }
    }
    out
}

/// The headings of a table that begins here.
fn table(lines: &[&str]) -> Option<Vec<String>> {
    let headings = row(lines.first()?)?;
    let rule = row(lines.get(1)?)?;
    let is_rule = |cell: &String| {
        let dashes = cell.trim_start_matches(':').trim_end_matches(':');
        !dashes.is_empty() && dashes.bytes().all(|b| b == b'-')
    };
    (rule.iter().all(is_rule) && rule.len() == headings.len()).then_some(headings)
}

/// The cells of a line that has a bar; `\|` is part of a cell.
fn row(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let mut cells = vec![String::new()];
    let mut bars = 0;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'|') => cells.last_mut()?.extend(chars.next()),
            '|' => {
                bars += 1;
                cells.push(String::new());
            }
            other => cells.last_mut()?.push(other),
        }
    }
    if bars == 0 {
        return None;
    }
    if line.starts_with('|') {
        cells.remove(0);
    }
    if line.ends_with('|') && !line.ends_with("\\|") {
        cells.pop();
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

fn list(headings: &[String], cells: &[String], out: &mut String) {
    let mut rest = headings.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
    if let Some((_, first)) = rest.next() {
        let bold = if first.contains("**") { first.clone() } else { format!("**{first}**") };
        out.push_str(&bold);
        out.push('\n');
    }
    for (heading, cell) in rest {
        match heading.is_empty() {
            true => out.push_str(&format!("• {cell}\n")),
            false => out.push_str(&format!("• {heading}: {cell}\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_a_list_of_its_rows() {
        let text = "Before\n| Name | Size | |\n|:---|---:|---|\n| a\\|b | 3 | x |\n| c | | |\nAfter | all\n";
        assert_eq!(tables(text), "Before\n**a|b**\n• Size: 3\n• x\n**c**\n**After**\n• Size: all\n");
    }

    #[test]
    fn a_table_in_a_code_block_and_a_line_with_a_bar_stay_as_they_are() {
        for text in ["```\n| a | b |\n|---|---|\n```\n", "a | b\nc | d\n", "ls | wc\n", "| a |\n", ""] {
            assert_eq!(tables(text), text);
        }
    }
}
