//! The TypeScript types of what the window reads, made from the Rust ones. `make types` writes them again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use holdfast_core::command::Command;
use holdfast_core::status::{CallRow, StatusSnapshot, TimelineEntry, TranscriptRow};
use holdfast_host::config::ConfigView;
use holdfast_host::doctor::Report;
use holdfast_host::drill::{DrillLine, DrillOrder};
use holdfast_host::engines::CommandError;
use holdfast_host::exec::CallBody;
use holdfast_relay::Approved;
use holdfast_relay::people::{AccountView, ClientView, DeviceCode, DeviceView, NewToken, TokenView};
use ts_rs::{Config, TS, TypeVisitor};

use crate::pages;

/// Declarations by name. A name that two types claim would be one of them silently, so it is refused.
struct Declarations {
    config: Config,
    found: BTreeMap<String, String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // What has no file of its own is built in: a number, a list.
        if T::output_path().is_none() {
            return;
        }
        let text = laid_out(&format!("{}export {}", T::docs().unwrap_or_default(), T::decl(&self.config)));
        match self.found.insert(T::ident(&self.config), text.clone()) {
            None => T::visit_dependencies(self),
            Some(before) => assert_eq!(before, text, "two types of one name"),
        }
    }
}

/// One field a line, indented, and each comment on one line.
fn laid_out(declaration: &str) -> String {
    let breaks =
        [("/**\n * ", "/** "), ("\n */", " */"), ("\", }", "\" }"), (", };", ",\n};"), (", } | {", ",\n} | {")];
    let broken = breaks.iter().fold(declaration.to_owned(), |text, (from, to)| text.replace(from, to));
    let (mut out, mut inside) = (String::new(), false);
    for line in broken.lines().map(str::trim) {
        inside &= !line.starts_with('}');
        let _ = writeln!(out, "{}{line}", if inside { "  " } else { "" });
        inside |= line.contains('{') && !line.starts_with('/') && !line.ends_with('}');
    }
    out
}

#[test]
fn the_windows_types_are_in_date() {
    let mut all = Declarations { config: Config::new().with_large_int("number"), found: BTreeMap::new() };
    all.visit::<StatusSnapshot>();
    all.visit::<TimelineEntry>();
    all.visit::<TranscriptRow>();
    all.visit::<CallRow>();
    all.visit::<CallBody>();
    all.visit::<Command>();
    all.visit::<CommandError>();
    all.visit::<AccountView>();
    all.visit::<Approved>();
    all.visit::<ClientView>();
    all.visit::<DeviceView>();
    all.visit::<DeviceCode>();
    all.visit::<TokenView>();
    all.visit::<NewToken>();
    all.visit::<DrillOrder>();
    all.visit::<DrillLine>();
    all.visit::<Report>();
    all.visit::<ConfigView>();
    let header = "// Made by `make types` from the Rust types of the same names; change them there.\n\
                  // Over 500 lines because nobody writes them, and one file is what the window imports.\n";
    let declarations: Vec<&str> = all.found.values().map(String::as_str).collect();
    pages::check("ui/src/api/types.ts", "make types", &format!("{header}\n{}", declarations.join("\n")));
}
