//! Which transcript each binding follows, and what it says.

mod place;
mod say;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use holdfast_core::chat::ChannelId;
use holdfast_core::limits;
use holdfast_core::status::UnixMs;
use holdfast_core::time::Now;
use holdfast_core::transcript::{Bookmark, Cursor, Entry, Extraction, Start, Told};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::choice::{Choice, Pick};
use super::run::{Event, Phase, Shell};
use super::store::Bound;
use crate::config::BindingConfig;
use crate::deliver::{Agent, Session};
use crate::transcript::{Followed, Follower, Found, Wanted, discover, follow};
pub(super) use place::Sought;

/// What a follower tells next, by its number.
pub(super) type Hearing = BoxFuture<'static, (u64, Option<Followed>, mpsc::Receiver<Followed>)>;

/// One binding.
pub(super) struct Source {
    pub config: BindingConfig,
    pub channel: Option<ChannelId>,
    pub agent: Result<Option<Arc<dyn Agent>>, String>,
    /// The session that writes its transcript.
    pub session: Arc<Mutex<Option<String>>>,
    /// Where its agent was asked since it was last done, and where last: threads of its channel, perhaps.
    pub asked_in: Vec<ChannelId>,
    /// Why nothing is followed.
    pub trouble: Option<String>,
    /// Lines of its transcripts that were too long or could not be read, in this holder's life.
    pub unread: u64,
    /// How often a part of them may be missing.
    pub gaps: u64,
    following: Option<Following>,
    /// What is followed once the one before has been read to its end.
    next: Option<Next>,
    choice: Choice,
    /// By the calendar, when the last look began.
    looked: Option<UnixMs>,
    /// The look that is under way, by its number; the answer of another one counts no longer.
    looking: Option<u64>,
    /// The path as its agent named it, which may be a link, and whether it is looked for.
    named: Option<PathBuf>,
    naming: bool,
    /// Boot time of the next look.
    look_at: Duration,
    /// It is not in the configuration any more.
    gone: bool,
}

struct Following {
    number: u64,
    transcript: Arc<str>,
    extraction: Extraction,
    /// It is known where it begins, or that there is no file yet.
    placed: bool,
    follower: Follower,
    /// What was read and cannot be taken yet.
    held: Option<(Vec<Entry>, Cursor)>,
    /// It is read to its end, and no further.
    finishing: bool,
}

struct Next {
    transcript: Arc<str>,
    session: Option<String>,
    /// All that was said since then is new.
    since: Option<UnixMs>,
    /// It took the place of what is followed, so that all of it is new.
    replaces: bool,
}

/// How a binding comes to its transcript.
enum Way {
    Path(PathBuf),
    Search(Wanted),
    None,
}

impl Source {
    fn way(&self) -> Way {
        let BindingConfig { transcript, session, project, .. } = &self.config;
        match (transcript, session, project) {
            (Some(path), ..) => Way::Path(at_home(path)),
            (None, None, None) => Way::None,
            (None, session, project) => Way::Search(Wanted {
                project: project.as_deref().map(at_home),
                session: session.clone(),
                ..Wanted::default()
            }),
        }
    }

    /// The transcript that is followed, or will be soon.
    pub fn transcript(&self) -> Option<&Arc<str>> {
        let next = self.next.as_ref().map(|next| &next.transcript);
        let following = self.following.as_ref().filter(|following| !following.finishing);
        next.or(following.map(|following| &following.transcript))
    }

    /// Whether anything of a transcript may still be said for this binding.
    fn has(&self, transcript: &str) -> bool {
        let following = self.following.as_ref().map(|following| &following.transcript);
        self.transcript().into_iter().chain(following).any(|known| **known == *transcript)
    }

    /// The same, once its beginning is found.
    pub fn placed(&self) -> Option<&Arc<str>> {
        self.following.as_ref().filter(|following| following.placed).map(|following| &following.transcript)
    }

    pub fn is_following(&self) -> bool {
        self.following.is_some()
    }

    /// Why its transcript is not read.
    pub fn why(&self) -> Option<String> {
        let view = self.following.as_ref().map(|following| following.follower.view());
        self.trouble
            .clone()
            .or_else(|| view.and_then(|view: watch::Receiver<_>| view.borrow().as_ref()?.trouble.clone()))
    }

    /// Reads to the end of what is there.
    pub fn finish(&mut self) {
        self.next = None;
        if let Some(following) = &mut self.following {
            following.finishing = true;
            following.follower.finish();
        }
    }
}

impl Shell {
    /// Makes the bindings what the configuration says.
    pub(super) fn arrange(&mut self) {
        let kept: BTreeSet<&str> = self.config.bindings.iter().map(|binding| binding.name.as_str()).collect();
        for (_, source) in self.sources.iter_mut().filter(|(name, _)| !kept.contains(&***name)) {
            source.gone = true;
            source.finish();
        }
        // A binding that comes back looks anew: by then another one may follow what it followed.
        let stale: Vec<Arc<str>> = self.bound.keys().filter(|name| !kept.contains(&***name)).cloned().collect();
        for name in stale {
            self.bound.remove(&name);
            self.store.unbind(&name);
        }
        self.sources.retain(|_, source| !source.gone || source.is_following());
        for config in &self.config.clone().bindings {
            let name: Arc<str> = config.name.as_str().into();
            let before = self.sources.get(&name).filter(|source| !source.gone).map(|source| source.config.clone());
            if before.as_ref() == Some(config) {
                continue;
            }
            let channel = ChannelId::parse(&config.channel).ok();
            let source = self.sources.entry(Arc::clone(&name)).or_insert_with(|| Source {
                config: config.clone(),
                channel: None,
                agent: Ok(None),
                session: Arc::default(),
                asked_in: Vec::new(),
                trouble: None,
                unread: 0,
                gaps: 0,
                following: None,
                next: None,
                choice: Choice::default(),
                looked: None,
                looking: None,
                named: None,
                naming: false,
                look_at: Duration::ZERO,
                gone: false,
            });
            (source.config, source.channel, source.gone) = (config.clone(), channel, false);
            let session = Arc::clone(&source.session);
            let session: Session = Arc::new(move || session.lock().clone());
            source.agent = self.courier.agent(config, session);
            if let Err(why) = &source.agent {
                tracing::warn!(binding = config.name, "nothing is delivered to this agent: {why}");
            }
            let way = |c: &BindingConfig| (c.transcript.clone(), c.session.clone(), c.project.clone());
            if before.as_ref().is_none_or(|before| way(before) != way(config)) {
                source.look_at = Duration::ZERO;
                (source.choice, source.looked, source.named) = (Choice::default(), None, None);
                // What is looked for counts no longer, even if a disk never answers.
                source.looking = None;
                if before.is_some() {
                    source.finish();
                    self.bound.remove(&name);
                    self.store.unbind(&name);
                } else if let Some(bound) = self.bound.get(&name)
                    && (bound.named || matches!(source.way(), Way::Search(_)))
                {
                    let transcript = Arc::clone(&bound.transcript);
                    source.named = bound.named.then(|| PathBuf::from(&*transcript));
                    let session = source.config.session.clone();
                    // What began since the last holder looked is new.
                    source.looked = bound.looked;
                    self.follow(&name, Next { transcript, session, since: None, replaces: false });
                }
            }
        }
        self.unpublished = true;
    }

    /// Which other binding follows a transcript.
    fn follower_of(&self, transcript: &str, other_than: &str) -> Option<&str> {
        let found = self.sources.iter().find(|(name, source)| ***name != *other_than && source.has(transcript));
        found.map(|(name, _)| &**name)
    }

    fn is_free(&self, transcript: &str, name: &str) -> Result<(), String> {
        match self.follower_of(transcript, name) {
            Some(other) => Err(format!("{other} follows this transcript already")),
            None => Ok(()),
        }
    }

    /// Looks for transcripts where it is time to.
    pub(super) fn look_for(&mut self, now: Now) {
        if self.phase != Phase::Serving {
            return;
        }
        let due = |source: &Source| now.boot >= source.look_at && source.looking.is_none() && !source.gone;
        let due: Vec<Arc<str>> =
            self.sources.iter().filter(|(_, source)| due(source)).map(|(name, _)| Arc::clone(name)).collect();
        for name in due {
            let looked = self.turns.unix_ms();
            let Some(source) = self.sources.get_mut(&name) else { continue };
            source.look_at = now.boot + limits::FORWARDER_LOOK;
            match (source.way(), source.named.clone()) {
                // One that cannot be followed yet may be later, and a link may lead elsewhere.
                (Way::Path(path), _) | (_, Some(path)) => self.seek(name, path),
                (Way::Search(wanted), None) => {
                    self.looks += 1;
                    let look = self.looks;
                    source.looking = Some(look);
                    let homes = self.means.homes.clone();
                    self.doing.spawn(async move {
                        let found = discover(homes, wanted).await;
                        Event::Found { binding: name, look, looked, found }
                    });
                }
                (Way::None, None) => source.look_at = Duration::MAX,
            }
        }
    }

    /// When to look again.
    pub(super) fn looks_again(&self, now: Now) -> Option<Duration> {
        let idle = |source: &&Source| source.looking.is_none() && !source.gone;
        let next = self.sources.values().filter(idle).map(|source| source.look_at.saturating_sub(now.boot)).min();
        next.filter(|_| self.phase == Phase::Serving)
    }

    /// This was found for a binding that looks for its transcript.
    pub(super) fn found(&mut self, binding: &Arc<str>, look: u64, looked: UnixMs, found: Vec<Found>) {
        let free: Vec<Found> = found.into_iter().filter(|found| self.is_free(&found.path, binding).is_ok()).collect();
        let asked = self.sources.get_mut(binding).filter(|source| source.looking == Some(look));
        // It may have been looked for another project's, which is nobody's business in this channel.
        let Some(source) = asked else { return };
        source.looking = None;
        let last = source.looked.replace(looked).filter(|last| *last != looked);
        let named = self.bound.get(binding).is_some_and(|bound| bound.named);
        if source.gone || named || self.phase != Phase::Serving {
            return;
        }
        let current = source.transcript().cloned();
        let same = free.iter().find(|found| Some(&found.path) == current.as_ref());
        let chosen = match source.config.session {
            Some(_) => free.first().map(Pick::just),
            None => source.choice.look(&free, current.as_deref()),
        };
        let Some(Pick { found: chosen, since }) = chosen.filter(|pick| Some(&pick.found.path) != current.as_ref())
        else {
            if let Some(same) = same {
                self.writes(binding, &same.path, same.session.clone());
            }
            let none = current.is_none().then(|| "no transcript of such a session was found yet".to_owned());
            return self.trouble(binding, none);
        };
        // What was not there at the last look is new; a first one is followed from its end. The calendar may have been set back.
        let since = last.map(|last| since.map_or(last, |since| since.min(last)).min(looked));
        let path = Arc::clone(&chosen.path);
        let next = Next { transcript: Arc::clone(&path), session: chosen.session.clone(), since, replaces: false };
        self.bind(binding, Bound { transcript: path, named: false, awaited: false, looked: Some(looked) });
        self.follow(binding, next);
    }

    /// The next holder knows what is new by when this one looked last.
    pub(super) fn keep_looks(&mut self) {
        for (name, source) in &self.sources {
            if let Some(bound) = self.bound.get_mut(name)
                && source.looked.is_some()
            {
                bound.looked = source.looked;
                self.store.bind(name, bound);
            }
        }
    }

    fn trouble(&mut self, name: &str, why: Option<String>) {
        if let Some(source) = self.sources.get_mut(name)
            && source.trouble != why
        {
            source.trouble = why;
            self.unpublished = true;
        }
    }

    /// Follows this, after what is followed was read to its end; not if another binding does.
    fn follow(&mut self, name: &Arc<str>, next: Next) {
        if let Err(why) = self.is_free(&next.transcript, name) {
            return self.trouble(name, Some(why));
        }
        let Some(source) = self.sources.get_mut(name) else { return };
        if source.transcript() == Some(&next.transcript) {
            return;
        }
        self.unpublished = true;
        source.trouble = None;
        source.finish();
        source.next = Some(next);
        if !source.is_following() {
            self.begin(name);
        }
    }

    fn begin(&mut self, name: &Arc<str>) {
        let Some(source) = self.sources.get_mut(name).filter(|_| self.phase == Phase::Serving) else { return };
        let Some(Next { transcript, session, since, replaces }) = source.next.take() else { return };
        let (told, hearing) = mpsc::channel(1);
        let follower = match follow(told) {
            Ok(follower) => follower,
            Err(e) => return self.trouble(name, Some(format!("it cannot be followed: {e}"))),
        };
        let awaited = self.bound.get(name).is_some_and(|bound| bound.transcript == transcript && bound.awaited);
        let start = match (since, replaces) {
            // What was read before goes on where it was left, whatever begins anew.
            _ if self.marks.contains_key(&*transcript) => Start::End,
            _ if awaited => Start::Beginning,
            (None, false) => Start::End,
            (Some(_), _) | (_, true) => Start::Recent(limits::FORWARDER_REPLAY),
        };
        let kept: Vec<Bookmark> = self.marks.values().cloned().collect();
        let (binding, extraction) =
            Bookmark::resume(&kept, &transcript, start, Extraction::new(session.clone(), since));
        tracing::info!(binding = &**name, transcript = &*transcript, "a transcript is followed");
        follower.bind(binding);
        self.followers += 1;
        *source.session.lock() = session;
        source.following = Some(Following {
            number: self.followers,
            transcript,
            extraction,
            placed: false,
            follower,
            held: None,
            finishing: false,
        });
        self.hearing.push(hear(self.followers, hearing));
    }

    pub(super) fn followed(&mut self, (number, followed, hearing): (u64, Option<Followed>, mpsc::Receiver<Followed>)) {
        let is_it = |source: &Source| source.following.as_ref().is_some_and(|following| following.number == number);
        let Some((name, source)) = self.sources.iter_mut().find(|(_, source)| is_it(source)) else { return };
        let name = Arc::clone(name);
        if let (Some(following), Some(_)) = (&mut source.following, &followed)
            && !std::mem::replace(&mut following.placed, true)
        {
            self.unpublished = true;
        }
        match followed {
            Some(Followed::Entries { entries, cursor }) => {
                if let Some(following) = &mut source.following {
                    following.held = Some((entries, cursor));
                }
            }
            Some(Followed::Told(Told::Awaited)) => self.awaited(&name, true),
            Some(Followed::Told(Told::Rotated | Told::Replaced | Told::Truncated)) => {
                // What was read before was taken before.
                if let Some(following) = &mut source.following {
                    following.extraction.begin_anew();
                }
            }
            Some(Followed::Told(told @ (Told::LineTooLong | Told::Unreadable(_)))) => {
                source.unread += told.lines();
                self.unpublished = true;
            }
            Some(Followed::Told(Told::Gap)) => {
                source.gaps += 1;
                self.unpublished = true;
            }
            Some(Followed::Finished) | None => {
                source.following = None;
                if followed.is_none() && source.next.is_none() {
                    source.trouble = Some("its transcript could not be read any further".to_owned());
                }
                self.begin(&name);
                self.sources.retain(|_, source| !source.gone || source.is_following());
                self.unpublished = true;
                return;
            }
        }
        self.hearing.push(hear(number, hearing));
    }

    /// Whether there was no file yet when a binding was made: then all of it is new.
    fn awaited(&mut self, name: &Arc<str>, awaited: bool) {
        if let Some(bound) = self.bound.get_mut(name)
            && bound.awaited != awaited
        {
            bound.awaited = awaited;
            self.store.bind(name, bound);
        }
    }
}

fn hear(number: u64, mut hearing: mpsc::Receiver<Followed>) -> Hearing {
    async move {
        let followed = hearing.recv().await;
        (number, followed, hearing)
    }
    .boxed()
}

/// A path as people write it.
pub(crate) fn at_home(path: &str) -> PathBuf {
    match (Path::new(path).strip_prefix("~"), dirs::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

fn ms(time: Duration) -> UnixMs {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
