//! The rules of the switchboard, one test each, in virtual time.

mod calls;
mod desk;
mod handshake;
mod keys;
mod model;
mod promote;
mod resume;
mod sleep;
