//! The command line as a person or a script uses it.

mod clients;
mod devices;
mod embedded;
mod shown;
