//! Authorization codes: five minutes, one use, and a replay is noticed. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use holdfast_core::id::{AccountId, DeviceId};
use holdfast_core::limits;

use super::consent::Request;
use crate::principal::GrantId;
use crate::secret::{TokenHash, mint};

/// What was allowed.
#[derive(Debug, Clone)]
pub(super) struct Allowed {
    pub(super) request: Request,
    pub(super) account: AccountId,
    pub(super) device: DeviceId,
}

#[derive(Debug)]
enum Use {
    Fresh,
    /// Being traded, or traded, for this grant.
    Traded {
        grant: GrantId,
        replayed: bool,
    },
}

#[derive(Debug)]
struct Entry {
    allowed: Allowed,
    issued: Duration,
    used: Use,
}

/// All codes that are not yet forgotten.
#[derive(Debug, Default)]
pub(super) struct Codes(HashMap<TokenHash, Entry>);

/// What a presented code is.
#[derive(Debug)]
pub(super) enum Presented {
    /// Good so far.
    Fresh(Box<Allowed>),
    /// Used before: what it was traded for must end.
    Replayed(GrantId),
    /// Unknown or lapsed.
    Unknown,
}

impl Codes {
    /// Makes a code.
    pub(super) fn issue(&mut self, now: Duration, allowed: Allowed) -> String {
        // Used ones stay as long as a lost race could replay them; the tokens they gave are revoked by then or never.
        self.0.retain(|_, entry| now < entry.issued + limits::AUTH_CODE_TTL * 2);
        if self.0.len() >= limits::AUTH_CODES_MAX
            && let Some(oldest) = self.0.iter().min_by_key(|(_, entry)| entry.issued).map(|(hash, _)| *hash)
        {
            self.0.remove(&oldest);
        }
        let code = mint("hf_code_");
        self.0.insert(TokenHash::of(&code), Entry { allowed, issued: now, used: Use::Fresh });
        code
    }

    /// Looks a code up without using it. A replay is remembered against the trade under way.
    pub(super) fn present(&mut self, now: Duration, code: &TokenHash) -> Presented {
        match self.0.get_mut(code) {
            Some(Entry { used: Use::Traded { grant, replayed }, .. }) => {
                *replayed = true;
                Presented::Replayed(grant.clone())
            }
            Some(entry) if now < entry.issued + limits::AUTH_CODE_TTL => {
                Presented::Fresh(Box::new(entry.allowed.clone()))
            }
            _ => Presented::Unknown,
        }
    }

    /// Uses a fresh code for a grant that is about to be stored. `false` if somebody was faster.
    pub(super) fn trade(&mut self, code: &TokenHash, grant: &GrantId) -> bool {
        match self.0.get_mut(code) {
            Some(entry) if matches!(entry.used, Use::Fresh) => {
                entry.used = Use::Traded { grant: grant.clone(), replayed: false };
                true
            }
            _ => false,
        }
    }

    /// The grant could not be stored: the code is as good as before.
    pub(super) fn undo(&mut self, code: &TokenHash) {
        if let Some(entry) = self.0.get_mut(code) {
            entry.used = Use::Fresh;
        }
    }

    /// Whether the code was presented again, or voided, while its grant was being stored.
    pub(super) fn was_replayed(&self, code: &TokenHash) -> bool {
        !matches!(self.0.get(code), Some(Entry { used: Use::Traded { replayed: false, .. }, .. }))
    }

    /// Voids the codes of an account, or all.
    pub(super) fn forget(&mut self, account: Option<&AccountId>) {
        self.0.retain(|_, entry| account.is_some_and(|account| entry.allowed.account != *account));
    }
}
