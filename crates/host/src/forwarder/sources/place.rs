//! Where the transcripts stand that people and agents name by a path. The disk may not answer, so it is asked elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_core::limits;

use super::super::desk::{DeskError, Reply};
use super::super::run::{Event, Phase, Shell};
use super::super::store::Bound;
use super::{Next, Way, ms};
use crate::transcript::{Located, locate};

/// A path that was looked for.
#[derive(Debug)]
pub(in super::super) struct Sought {
    binding: Arc<str>,
    path: PathBuf,
    /// Its agent named it, and waits for the answer perhaps.
    named: Option<Option<Reply<()>>>,
    /// None: the disk has not answered yet.
    found: Option<Result<Located, String>>,
}

impl Shell {
    /// A binding's agent says which transcript it writes from now on.
    pub(in super::super) fn name(&mut self, binding: &str, transcript: &str, reply: Option<Reply<()>>) {
        let path = PathBuf::from(transcript);
        let refused = match self.sources.get_mut(binding) {
            None => DeskError::NotFound(format!("there is no binding {binding}")),
            Some(source) if source.config.transcript.is_some() || source.config.session.is_some() => {
                DeskError::Invalid(format!("the configuration says what {binding} follows"))
            }
            Some(_) if !path.is_absolute() => {
                DeskError::Invalid("the path of a transcript must be absolute".to_owned())
            }
            Some(source) if source.naming => {
                DeskError::Later("the disk has not answered about the transcript that was named before".to_owned())
            }
            Some(source) => {
                source.naming = true;
                return self.ask_disk(binding.into(), path, true, Some(reply));
            }
        };
        answer(reply, Err(refused));
    }

    /// Looks where a path leads now.
    pub(super) fn seek(&mut self, binding: Arc<str>, path: PathBuf) {
        if let Some(source) = self.sources.get_mut(&binding) {
            self.looks += 1;
            source.looking = Some(self.looks);
            let which_session = source.session.lock().is_none();
            self.ask_disk(binding, path, which_session, None);
        }
    }

    /// A disk that does not answer keeps one thread for each of a binding's two ways here, and no more.
    fn ask_disk(&mut self, binding: Arc<str>, path: PathBuf, which_session: bool, named: Option<Option<Reply<()>>>) {
        let events = self.events.clone();
        self.doing.spawn(async move {
            let at = path.clone();
            let mut asked = tokio::task::spawn_blocking(move || locate(&at, which_session));
            let found = match tokio::time::timeout(limits::FORWARDER_LOOK, &mut asked).await {
                Ok(found) => found,
                Err(_) => {
                    if named.is_none() {
                        let (binding, path) = (Arc::clone(&binding), path.clone());
                        let waits = Sought { binding, path, named: None, found: None };
                        // Without the task there is nobody to tell.
                        let _ = events.send(Event::Sought(waits));
                    }
                    asked.await
                }
            };
            let found = found.unwrap_or_else(|e| Err(format!("{}: {e}", path.display())));
            Event::Sought(Sought { binding, path, named, found: Some(found) })
        });
    }

    /// The disk answered, or does not.
    pub(in super::super) fn sought(&mut self, sought: Sought) {
        let Sought { binding, path, named, found } = sought;
        let Some(source) = self.sources.get_mut(&binding) else {
            let gone = DeskError::NotFound(format!("there is no binding {binding} any more"));
            return answer(named.flatten(), Err(gone));
        };
        let wanted = match source.way() {
            Way::Path(wanted) => Some(wanted),
            Way::Search(_) | Way::None => source.named.clone(),
        };
        match (named, found) {
            (Some(reply), Some(found)) => {
                source.naming = false;
                let named = self.named(&binding, path, found);
                answer(reply, named);
            }
            // Meanwhile something else is followed.
            (None, _) if source.gone || self.phase != Phase::Serving || wanted.as_ref() != Some(&path) => {}
            (None, Some(found)) => {
                source.looking = None;
                self.leads_to(&binding, found);
            }
            (_, None) => self.trouble(&binding, Some(format!("{}: the disk does not answer", path.display()))),
        }
    }

    fn named(&mut self, name: &Arc<str>, path: PathBuf, found: Result<Located, String>) -> Result<(), DeskError> {
        let Located { path: transcript, there, session } = found.map_err(DeskError::Invalid)?;
        self.is_free(&transcript, name).map_err(DeskError::Invalid)?;
        if let Some(source) = self.sources.get_mut(name) {
            source.named = Some(path);
        }
        self.bind(name, Bound { transcript: Arc::clone(&transcript), named: true, awaited: !there, looked: None });
        let since = self.turns.unix_ms().saturating_sub(ms(limits::FORWARDER_LOOK));
        let next = Next { transcript: Arc::clone(&transcript), session: None, since: Some(since), replaces: false };
        self.follow(name, next);
        self.writes(name, &transcript, session);
        Ok(())
    }

    /// What is followed by its path stands there now.
    fn leads_to(&mut self, name: &Arc<str>, found: Result<Located, String>) {
        let Some(source) = self.sources.get_mut(name) else { return };
        let current = source.transcript().cloned();
        let Located { path: transcript, there, session: writer } = match found {
            Ok(located) => located,
            // What is followed goes on, for all that its link is broken.
            Err(why) => return self.trouble(name, Some(why).filter(|_| current.is_none())),
        };
        if current.as_ref() == Some(&transcript) {
            self.writes(name, &transcript, writer);
            return self.trouble(name, None);
        }
        if let Err(why) = self.is_free(&transcript, name) {
            return self.trouble(name, Some(why));
        }
        if let Some(current) = &current {
            tracing::info!(
                binding = &**name,
                from = &**current,
                to = &*transcript,
                "a link leads to another transcript"
            );
        }
        let source = self.sources.get(name);
        let session = source.and_then(|source| source.config.session.clone());
        let named = source.is_some_and(|source| source.named.is_some());
        self.bind(name, Bound { transcript: Arc::clone(&transcript), named, awaited: !there, looked: None });
        let next = Next { transcript: Arc::clone(&transcript), session, since: None, replaces: current.is_some() };
        self.follow(name, next);
        self.writes(name, &transcript, writer);
    }

    /// This session writes what a binding follows. After a restart that is not known from the text before its agent writes
    /// again, and messages need it at once.
    pub(super) fn writes(&mut self, name: &Arc<str>, transcript: &str, session: Option<String>) {
        let Some(source) = self.sources.get(name) else { return };
        let follows = source.following.as_ref().is_some_and(|following| *following.transcript == *transcript);
        let mut known = source.session.lock();
        if follows && known.is_none() && session.is_some() {
            *known = session;
            self.unpublished = true;
        }
    }

    /// Which transcript is whose is kept.
    pub(super) fn bind(&mut self, name: &Arc<str>, bound: Bound) {
        let known = self.bound.get(name);
        // Whether it was awaited is known better once it was there.
        if known.is_none_or(|known| (&known.transcript, known.named) != (&bound.transcript, bound.named)) {
            self.store.bind(name, &bound);
            self.bound.insert(Arc::clone(name), bound);
        }
    }
}

fn answer(reply: Option<Reply<()>>, answer: Result<(), DeskError>) {
    // Whoever asked may have left, or never waited.
    let _ = reply.map(|reply| reply.send(answer));
}
