mod admission;
mod cancels;
mod delivery;
mod desk;
mod ends;

mod output;
mod recovery;
mod sockets;
mod store;
