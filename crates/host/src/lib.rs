//! The shells of the engines: sockets, files, processes, clocks.

pub mod config;
pub mod exec;
pub mod files;
pub mod link;
pub mod lock;
pub mod logs;
pub mod paths;
pub mod secrets;
pub mod status_hub;
