//! Attacks that need the whole product, and must fail.

mod browsers;
mod files;
mod grants;
mod leaks;
mod oauth;
mod strangers;
