//! Bounds of what is said at a chat service.

use super::{IntoValue, Limit};

limits! {
    ["Chat"]
    CHUNK_MIN: usize = 100, "UTF-16 units", "The shortest message a long text is cut into; below it code blocks could not be framed.";
    CHUNK_INFO_MAX: usize = 32, "graphemes", "First line of a code block that is repeated where a cut opens it again; well below CHUNK_MIN.";
    CHUNK_DISCORD: usize = 2000, "UTF-16 units", "A Discord message; Discord counts code points, of which there are never more.";
}
