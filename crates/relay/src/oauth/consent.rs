//! Authorization requests between the first page and the redirect. No I/O: time comes in as boot time.
//!
//! `Asked` (the page asks who) → `Waiting` (a code is to be typed elsewhere) → `SignedIn` (the page shows device and rights and asks
//! to allow). A password leads from `Asked` to `SignedIn` directly. Whoever is not signed in is told nothing about any account.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_core::id::AccountId;
use holdfast_core::limits;
use tokio::sync::Notify;

use super::ApprovalView;
use super::redirect;
use crate::principal::{ResourcePath, Scopes};
use crate::secret::{TokenHash, mint_name, typed_code};

/// What a client asked for, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) client: String,
    pub(super) client_name: String,
    pub(super) redirect_uri: String,
    pub(super) state: Option<String>,
    pub(super) challenge: String,
    pub(super) scopes: Scopes,
    /// Whether a refresh token is wanted.
    pub(super) refreshes: bool,
    /// The resource as a URL: the audience.
    pub(super) resource: String,
    pub(super) path: ResourcePath,
    /// The origin it was asked under.
    pub(super) issuer: String,
}

/// How far a request is.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// Nobody named an account yet.
    Asked,
    /// The account was named; the code is to be typed into Holdfast.
    Waiting(Waiting),
    /// This account's person said who they are.
    SignedIn(AccountId),
    /// The owner refused; the browser sends the client away.
    Denied,
}

/// A request that waits for its code.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// The name as typed.
    pub(super) name: String,
    /// `None` for a name that does not exist, which the page must not tell.
    account: Option<AccountId>,
    pub(super) code: String,
    since: Duration,
    wrong: usize,
}

#[derive(Debug)]
struct Consent {
    request: Request,
    /// Hash of the cookie of the browser that began.
    browser: TokenHash,
    opened: Duration,
    stage: Stage,
}

/// All open requests, by id.
#[derive(Debug, Default)]
pub(super) struct Consents {
    open: HashMap<String, Consent>,
    /// Told when what waits may be different.
    changed: Arc<Notify>,
}

/// Why no code can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No such request in this browser, or it lapsed.
    Gone,
    /// The account has as many waiting as it may.
    TooMany,
}

impl Consents {
    fn prune(&mut self, now: Duration) {
        self.open.retain(|_, consent| now < consent.opened + limits::CONSENT_TTL);
        for consent in self.open.values_mut() {
            if let Stage::Waiting(waiting) = &consent.stage
                && now >= waiting.since + limits::APPROVAL_TTL
            {
                consent.stage = Stage::Asked;
            }
        }
    }

    /// Opens a request for the browser with this cookie; returns its id. When all places are taken, the oldest that nobody named an
    /// account for makes room.
    pub(super) fn open(&mut self, now: Duration, request: Request, browser: TokenHash) -> Result<String, Refusal> {
        self.prune(now);
        if self.open.len() >= limits::CONSENTS_MAX {
            let asked = self.open.iter().filter(|(_, consent)| matches!(consent.stage, Stage::Asked));
            let oldest = asked.min_by_key(|(_, consent)| consent.opened).map(|(id, _)| id.clone());
            self.open.remove(&oldest.ok_or(Refusal::TooMany)?);
        }
        let id = mint_name("");
        self.open.insert(id.clone(), Consent { request, browser, opened: now, stage: Stage::Asked });
        Ok(id)
    }

    /// A request of this browser.
    pub(super) fn get(&mut self, now: Duration, id: &str, browser: &TokenHash) -> Option<(Request, Stage)> {
        let consent = self.own(now, id, browser).ok()?;
        Some((consent.request.clone(), consent.stage.clone()))
    }

    fn own(&mut self, now: Duration, id: &str, browser: &TokenHash) -> Result<&mut Consent, Refusal> {
        self.prune(now);
        self.open.get_mut(id).filter(|consent| consent.browser.same(browser)).ok_or(Refusal::Gone)
    }

    /// A request of this browser that was not refused.
    fn open_still(&mut self, now: Duration, id: &str, browser: &TokenHash) -> Result<&mut Consent, Refusal> {
        let consent = self.own(now, id, browser)?;
        if matches!(consent.stage, Stage::Denied) { Err(Refusal::Gone) } else { Ok(consent) }
    }

    /// The account was named and a code is wanted. `account` is `None` for a name that does not exist.
    pub(super) fn wait(
        &mut self,
        now: Duration,
        id: &str,
        browser: &TokenHash,
        name: &str,
        account: Option<AccountId>,
    ) -> Result<(), Refusal> {
        self.open_still(now, id, browser)?;
        let others = self.open.iter().filter(|(other, consent)| {
            *other != id && matches!(&consent.stage, Stage::Waiting(waiting) if waiting.name == name)
        });
        if others.count() >= limits::APPROVALS_PER_ACCOUNT {
            return Err(Refusal::TooMany);
        }
        let code = loop {
            let code = typed_code::<5>();
            if self.by_code(&code).is_none() {
                break code;
            }
        };
        let waiting = Waiting { name: name.to_owned(), account, code, since: now, wrong: 0 };
        self.open_still(now, id, browser)?.stage = Stage::Waiting(waiting);
        self.changed.notify_one();
        Ok(())
    }

    fn by_code(&self, code: &str) -> Option<String> {
        let wanted = TokenHash::of(code);
        let fits =
            |consent: &Consent| matches!(&consent.stage, Stage::Waiting(w) if TokenHash::of(&w.code).same(&wanted));
        self.open.iter().find(|(_, consent)| fits(consent)).map(|(id, _)| id.clone())
    }

    /// A code was typed. A right one signs its account in, in the browser that began. A wrong one counts against every request that waits,
    /// because it cannot be known which was meant; the third cancels them. The error is how many this one cancelled.
    pub(super) fn approve(&mut self, now: Duration, code: &str) -> Result<(Request, AccountId), usize> {
        self.prune(now);
        self.changed.notify_one();
        if let Some(consent) = self.by_code(code).and_then(|id| self.open.get_mut(&id))
            && let Stage::Waiting(Waiting { account: Some(account), .. }) = &consent.stage
        {
            let account = account.clone();
            consent.stage = Stage::SignedIn(account.clone());
            return Ok((consent.request.clone(), account));
        }
        let open = self.open.len();
        for consent in self.open.values_mut() {
            if let Stage::Waiting(waiting) = &mut consent.stage {
                waiting.wrong += 1;
            }
        }
        self.open
            .retain(|_, consent| !matches!(&consent.stage, Stage::Waiting(w) if w.wrong >= limits::APPROVAL_TRIES));
        Err(open - self.open.len())
    }

    /// The password was right.
    pub(super) fn sign_in(
        &mut self,
        now: Duration,
        id: &str,
        browser: &TokenHash,
        account: AccountId,
    ) -> Result<(), Refusal> {
        self.open_still(now, id, browser)?.stage = Stage::SignedIn(account);
        self.changed.notify_one();
        Ok(())
    }

    /// The owner refuses a request that waits for its code.
    pub(super) fn deny(&mut self, now: Duration, id: &str) -> Option<ApprovalView> {
        self.prune(now);
        let consent = self.open.get_mut(id)?;
        let view = view(now, id, consent)?;
        consent.stage = Stage::Denied;
        self.changed.notify_one();
        Some(view)
    }

    /// Tells when what waits may be different.
    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Ends a request of this browser and gives it out, with the account if somebody signed in.
    pub(super) fn finish(
        &mut self,
        now: Duration,
        id: &str,
        browser: &TokenHash,
    ) -> Option<(Request, Option<AccountId>)> {
        self.own(now, id, browser).ok()?;
        let consent = self.open.remove(id)?;
        self.changed.notify_one();
        let account = match consent.stage {
            Stage::SignedIn(account) => Some(account),
            Stage::Asked | Stage::Waiting(_) | Stage::Denied => None,
        };
        Some((consent.request, account))
    }

    /// What waits for a typed code, for accounts that exist; oldest first.
    pub(super) fn waiting(&mut self, now: Duration) -> Vec<ApprovalView> {
        self.prune(now);
        let mut views: Vec<_> = self.open.iter().filter_map(|(id, consent)| view(now, id, consent)).collect();
        views.sort_by_key(|view| view.lapses_in);
        views
    }

    /// Drops what an account (or anybody) had open.
    pub(super) fn forget(&mut self, account: Option<&AccountId>) {
        self.changed.notify_one();
        self.open.retain(|_, consent| match (&consent.stage, account) {
            (_, None) => false,
            (Stage::SignedIn(who), Some(account)) => who != account,
            (Stage::Waiting(waiting), Some(account)) => waiting.account.as_ref() != Some(account),
            (Stage::Asked | Stage::Denied, Some(_)) => true,
        });
    }
}

fn view(now: Duration, id: &str, consent: &Consent) -> Option<ApprovalView> {
    match &consent.stage {
        Stage::Waiting(waiting) if waiting.account.is_some() => Some(ApprovalView {
            id: id.to_owned(),
            client: consent.request.client_name.clone(),
            redirect_host: redirect::host(&consent.request.redirect_uri),
            account: waiting.name.clone(),
            scopes: consent.request.scopes.to_text(),
            lapses_in: (waiting.since + limits::APPROVAL_TTL).saturating_sub(now),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn request() -> Request {
        Request {
            client: "client_x".into(),
            client_name: "X".into(),
            redirect_uri: "https://a.example/cb".into(),
            state: None,
            challenge: "c".into(),
            scopes: Scopes { mcp: true, ..Scopes::default() },
            refreshes: true,
            resource: "http://127.0.0.1:1/mcp".into(),
            path: ResourcePath(None),
            issuer: "http://127.0.0.1:1".into(),
        }
    }

    fn browser(n: u32) -> TokenHash {
        TokenHash::of(&n.to_string())
    }

    fn account() -> AccountId {
        AccountId::mint([1; 18])
    }

    fn waiting(consents: &mut Consents, now: Duration, n: u32) -> (String, String) {
        let id = consents.open(now, request(), browser(n)).unwrap();
        consents.wait(now, &id, &browser(n), "ada", Some(account())).unwrap();
        let Some((_, Stage::Waiting(w))) = consents.get(now, &id, &browser(n)) else { panic!("not waiting") };
        (id, w.code)
    }

    #[test]
    fn a_typed_code_signs_in_the_browser_that_began_and_no_other() {
        let mut consents = Consents::default();
        let (id, code) = waiting(&mut consents, S, 1);
        assert_eq!(code.len(), 8);
        assert_eq!(consents.approve(S * 2, &code).unwrap().1, account());
        assert!(consents.get(S * 2, &id, &browser(2)).is_none());
        assert!(consents.finish(S * 2, &id, &browser(2)).is_none());
        assert_eq!(consents.finish(S * 2, &id, &browser(1)).unwrap().1, Some(account()));
        assert!(consents.finish(S * 2, &id, &browser(1)).is_none());
    }

    #[test]
    fn a_code_is_used_once_and_lapses_after_five_minutes() {
        let mut consents = Consents::default();
        let (_, code) = waiting(&mut consents, S, 1);
        assert!(consents.approve(S, &code).is_ok());
        assert_eq!(consents.approve(S, &code).err(), Some(0));
        let (_, late) = waiting(&mut consents, S, 2);
        assert_eq!(consents.approve(S * 301, &late).err(), Some(0));
    }

    #[test]
    fn three_wrong_entries_cancel_what_waits() {
        let mut consents = Consents::default();
        let (id, code) = waiting(&mut consents, S, 1);
        for cancelled in [0, 0, 1] {
            assert_eq!(consents.approve(S, "AAAAAAA2").err(), Some(cancelled));
        }
        assert_eq!(consents.approve(S, &code).err(), Some(0));
        assert!(consents.get(S, &id, &browser(1)).is_none());
    }

    #[test]
    fn an_account_has_three_waiting_at_most_and_one_that_does_not_exist_looks_the_same() {
        for account in [Some(account()), None] {
            let mut consents = Consents::default();
            for n in 0..3 {
                let id = consents.open(S, request(), browser(n)).unwrap();
                assert_eq!(consents.wait(S, &id, &browser(n), "ada", account.clone()), Ok(()));
            }
            let id = consents.open(S, request(), browser(9)).unwrap();
            assert_eq!(consents.wait(S, &id, &browser(9), "ada", account.clone()), Err(Refusal::TooMany));
            assert_eq!(consents.wait(S, &id, &browser(9), "bob", None), Ok(()));
            assert_eq!(consents.waiting(S).len(), if account.is_some() { 3 } else { 0 });
        }
    }

    #[test]
    fn the_code_of_a_name_that_does_not_exist_never_approves() {
        let mut consents = Consents::default();
        let id = consents.open(S, request(), browser(1)).unwrap();
        consents.wait(S, &id, &browser(1), "nobody", None).unwrap();
        let Some((_, Stage::Waiting(w))) = consents.get(S, &id, &browser(1)) else { panic!("not waiting") };
        assert_eq!(consents.approve(S, &w.code).err(), Some(0));
    }

    #[test]
    fn a_refused_request_is_not_approved_and_waits_no_more() {
        let mut consents = Consents::default();
        let (id, code) = waiting(&mut consents, S, 1);
        assert_eq!(consents.deny(S, "another"), None);
        assert_eq!(consents.deny(S, &id).unwrap().client, "X");
        assert_eq!((consents.deny(S, &id), consents.waiting(S)), (None, vec![]));
        assert_eq!(consents.approve(S, &code).err(), Some(0));
        assert_eq!(consents.sign_in(S, &id, &browser(1), account()), Err(Refusal::Gone));
        assert!(matches!(consents.get(S, &id, &browser(1)), Some((_, Stage::Denied))));
    }

    #[test]
    fn a_flood_of_requests_takes_no_place_from_one_that_waits() {
        let mut consents = Consents::default();
        let (_, code) = waiting(&mut consents, S, 1);
        for _ in 0..limits::CONSENTS_MAX * 2 {
            consents.open(S * 2, request(), browser(2)).unwrap();
        }
        assert_eq!(consents.open.len(), limits::CONSENTS_MAX);
        assert!(consents.approve(S * 3, &code).is_ok());
    }
}
