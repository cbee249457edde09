//! The shells of the engines: sockets, files, processes, clocks.
