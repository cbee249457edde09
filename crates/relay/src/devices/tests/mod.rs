//! The rooms and their sockets with real sockets: a scripted daemon on one side, requests on the other.

mod calls;
mod fake;
mod kept;
mod keys;
mod sockets;
mod upgrade;
