//! The tray application.
fn main() {}
