//! `holdfast`: headless engines, relay and command line.

fn main() {}
