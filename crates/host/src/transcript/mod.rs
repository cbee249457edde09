//! Transcripts on disk: follows one ([`follow`]), and finds those there are ([`discover`]).

mod discover;
mod files;
mod follow;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod wake;

pub use discover::{Agent, Found, Homes, Wanted, discover};
pub use files::real_path;
pub(crate) use files::{Located, locate};
pub use follow::{Followed, Follower, follow};
