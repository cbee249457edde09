//! Examples of the pages are what the types take.

use holdfast_core::operation::Request;
use serde_json::Value;

use crate::{read, root};

/// Every JSON text in backticks or fences that has a request's `type`.
fn requests(page: &str) -> Vec<Value> {
    let pieces = page.split('`').map(|piece| piece.trim_start_matches("json").trim());
    let objects = pieces.filter_map(|piece| serde_json::from_str::<Value>(piece).ok());
    objects.map(|object| object.get("request").unwrap_or(&object).clone()).filter(|o| o.get("type").is_some()).collect()
}

#[test]
fn every_request_on_the_page_of_operations_is_read_whole() {
    let found = requests(&read(&root().join("docs/LAPTOP.md")));
    assert!(found.len() >= 12, "{} examples: one of each kind, and more", found.len());
    for example in found {
        let request: Request = serde_json::from_value(example.clone()).unwrap_or_else(|e| panic!("{example}: {e}"));
        let read = serde_json::to_value(&request).expect("JSON");
        for (key, value) in example.as_object().expect("an object") {
            // What stands in a list may have defaults of its own beside it.
            assert!(value.is_array() || read[key] == *value, "{key} of {example} is read as {}", read[key]);
        }
    }
}
