//! What the pages point at is there: files, headings, and the pages that comments name. And the page of the local API is whole.

use std::path::Path;

use crate::{files, read, root, shown};

/// The targets of a page's links and pictures.
fn targets(page: &str) -> Vec<String> {
    let ends = |(at, before): (usize, &str)| page[at + before.len()..].split([')', '"']).next().map(str::to_owned);
    ["](", "src=\"", "srcset=\""].iter().flat_map(|before| page.match_indices(before)).filter_map(ends).collect()
}

/// A heading as a link names it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_heading(page: &Path, wanted: &str) -> bool {
    read(page).lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == wanted)
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut dead = Vec::new();
    for page in files("docs", &["md"]).into_iter().chain([root().join("README.md")]) {
        let text = read(&page);
        for target in targets(&text).iter().filter(|target| !target.contains("://")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            if !to.exists() || (!heading.is_empty() && !has_heading(&to, heading)) {
                dead.push(format!("{}: {target}", shown(&page)));
            }
        }
    }
    assert!(dead.is_empty(), "these links lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn every_page_that_a_comment_names_is_there() {
    let folders = ["crates", "tests", "src-tauri", "benches", "ui/src"];
    let mut dead = Vec::new();
    for path in folders.iter().flat_map(|folder| files(folder, &["rs", "ts", "js", "svelte"])) {
        let text = read(&path);
        for (at, _) in text.match_indices("docs/") {
            let name: String =
                text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || "/._-".contains(*c)).collect();
            if name.ends_with(".md") && !root().join(&name).exists() {
                dead.push(format!("{}: {name}", shown(&path)));
            }
        }
    }
    assert!(dead.is_empty(), "these pages are gone:\n{}", dead.join("\n"));
}

#[test]
fn the_tests_that_show_a_promise_are_there() {
    let page = read(&root().join("docs/PROMISES.md"));
    let named: Vec<&str> =
        page.split('`').filter(|path| path.starts_with("crates/") || path.starts_with("tests/")).collect();
    assert!(named.len() > 20, "the page names the tests of each promise");
    let gone: Vec<&&str> = named.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(gone.is_empty(), "docs/PROMISES.md names what is not there: {gone:?}");
}

#[test]
fn the_page_of_the_local_api_has_every_endpoint_and_every_command() {
    let page = read(&root().join("docs/LAPTOP.md"));
    let between = |text: &str, before: &str| -> Vec<String> {
        text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    };
    let routes = files("crates/host/src/api", &["rs"]).into_iter().flat_map(|path| between(&read(&path), ".route(\""));
    let endpoints = routes.filter(|route| route.starts_with("/api/") && !route.contains('*'));
    let commands = between(&read(&root().join("ui/src/api/types.ts")), "{ \"command\": \"");
    let missing: Vec<String> = endpoints
        .filter(|path| !page.contains(path.as_str()))
        .chain(commands.into_iter().filter(|c| !page.contains(&format!("`{c}"))))
        .collect();
    assert!(missing.is_empty(), "docs/LAPTOP.md does not have {missing:?}");
}

#[test]
fn an_anchor_is_its_heading_without_marks() {
    assert_eq!(anchor(" `[[channel.binding]]`"), "channelbinding");
    assert_eq!(anchor(" Durable operations: bounds"), "durable-operations-bounds");
}
