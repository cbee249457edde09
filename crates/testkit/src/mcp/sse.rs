//! Server-sent events from an HTTP body.

use bytes::BytesMut;

use super::Lost;

/// One event. Comments are not events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its id, as the server sent it.
    pub id: Option<String>,
    /// Its data; empty for a priming event.
    pub data: String,
}

/// Reads events from a response's body.
pub struct SseReader {
    response: reqwest::Response,
    held: BytesMut,
    last_event: Option<String>,
}

impl SseReader {
    /// Reads this response's body.
    pub fn new(response: reqwest::Response) -> SseReader {
        SseReader { response, held: BytesMut::new(), last_event: None }
    }

    /// The last event id seen.
    pub fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// The next event; `None` when the server ended the stream in order.
    pub async fn next(&mut self) -> Result<Option<Event>, Lost> {
        let mut event = Event::default();
        let mut any = false;
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            match line
                .split_once(':')
                .map_or((&*line, ""), |(name, value)| (name, value.strip_prefix(' ').unwrap_or(value)))
            {
                ("", "") if line.is_empty() && any => {
                    self.last_event = event.id.clone().or(self.last_event.take());
                    return Ok(Some(event));
                }
                // A comment, or a blank line without an event before it.
                ("", _) => {}
                ("id", value) => (event.id, any) = (Some(value.into()), true),
                ("data", value) => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                    any = true;
                }
                _ => any = true,
            }
        }
    }

    async fn line(&mut self) -> Result<Option<String>, Lost> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.split_to(end + 1);
                let text = String::from_utf8_lossy(&line);
                return Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()));
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.held.extend_from_slice(&bytes),
                Ok(None) => return Ok(None),
                Err(error) => return Err(Lost { last_event: self.last_event.clone(), cause: format!("{error:?}") }),
            }
        }
    }
}
