//! The relay: MCP clients on one side, daemons on the other.
