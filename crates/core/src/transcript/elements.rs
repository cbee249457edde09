//! Elements that hosts put between what an agent says.

/// Their names.
const NAMES: [&str; 4] = ["system-reminder", "memory-context", "event", "channel"];

/// The text without them. In code they are part of what is said, and so is one that is not closed.
pub(super) fn without_elements(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut code = false;
    // Names that are not closed any more, so that nobody looks for their ends again and again.
    let mut open = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begins_line = out.is_empty() || out.ends_with('\n');
        if begins_line && (rest.starts_with("```") || rest.starts_with("~~~")) {
            code = !code;
        }
        if !code
            && !out.ends_with('`')
            && let Some(length) = element(rest, &mut open)
        {
            rest = &rest[length..];
            continue;
        }
        // To where the next one may begin.
        let length = rest.char_indices().skip(1).find(|(at, c)| *c == '<' || rest.as_bytes()[at - 1] == b'\n');
        let (said, after) = rest.split_at(length.map_or(rest.len(), |(at, _)| at));
        out.push_str(said);
        rest = after;
    }
    out
}

/// Length of the element that the text begins with.
fn element(text: &str, open: &mut Vec<&'static str>) -> Option<usize> {
    let inner = text.strip_prefix('<')?;
    let name = NAMES.into_iter().find(|name| inner.starts_with(name) && !open.contains(name))?;
    if !inner[name.len()..].starts_with(['>', ' ', '\n']) {
        return None;
    }
    let end = format!("</{name}>");
    let length = text.find(&end).map(|at| at + end.len());
    if length.is_none() {
        open.push(name);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_hosts_go_and_those_in_code_stay() {
        for (text, left) in [
            ("a <system-reminder>x\ny</system-reminder>b", "a b"),
            ("<channel source=\"x\" user=\"y\">\nhi\n</channel>\nyes", "\nyes"),
            ("<event>1</event><event>2</event>", ""),
            ("<events>1</events>", "<events>1</events>"),
            ("use `<event>` and `</event>`", "use `<event>` and `</event>`"),
            ("```xml\n<event>1</event>\n```\n<event>2</event>z", "```xml\n<event>1</event>\n```\nz"),
            ("<event>never <event>closed<channel>x</channel>", "<event>never <event>closed"),
            ("1 < 2\n\u{e9}<\n<", "1 < 2\n\u{e9}<\n<"),
        ] {
            assert_eq!(without_elements(text), left);
        }
    }
}
