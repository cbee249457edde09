//! Who waits for output: so many of one account and no more.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_core::code::Code;
use holdfast_core::limits;
use http::StatusCode;
use parking_lot::Mutex;

use crate::http::error::ApiError;

/// Readers by account. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers(Arc<Mutex<HashMap<Arc<str>, usize>>>);

/// A reader's place, as long as it is held.
#[derive(Debug)]
pub(super) struct Place {
    readers: Readers,
    account: Arc<str>,
}

impl Readers {
    /// A place, unless [`limits::CONTROL_READERS_MAX`] of the account are taken.
    pub(super) fn enter(&self, account: &Arc<str>) -> Result<Place, ApiError> {
        let mut counts = self.0.lock();
        let count = counts.entry(account.clone()).or_default();
        if *count >= limits::CONTROL_READERS_MAX {
            let why = "too many readers of this account wait for output";
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, Code::LimitExceeded.as_str(), why));
        }
        *count += 1;
        Ok(Place { readers: self.clone(), account: account.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.readers.0.lock();
        if let Some(count) = counts.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_so_many_places_and_another_has_its_own() {
        let readers = Readers::default();
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let mut places: Vec<_> = (0..limits::CONTROL_READERS_MAX).map(|_| readers.enter(&one).unwrap()).collect();
        assert_eq!(readers.enter(&one).unwrap_err().code, "limit_exceeded");
        drop(readers.enter(&other).unwrap());
        places.pop();
        places.push(readers.enter(&one).unwrap());
        drop(places);
        assert!(readers.0.lock().is_empty());
    }
}
