//! A sign-in between its two requests. The browser keeps it in a cookie, so that any process with the same secret can
//! finish it, and none of them keeps something for a sign-in that is never finished.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::auth::{api_key, random_bytes};
use crate::domain::error::DomainError;

/// How long a sign-in may take, in seconds.
pub const LIFETIME: i64 = 600;
/// Issuer of the cookie's token. Access tokens have another one, so neither is accepted as the other.
const PURPOSE: &str = "threat-memory/oauth-pending";
/// Most finished sign-ins that are remembered, each for at most [`LIFETIME`].
const MAX_USED: usize = 100_000;

/// A sign-in that has begun.
#[derive(Clone, Serialize, Deserialize)]
pub struct PendingSignIn {
    iss: String,
    exp: i64,
    pub(super) provider: String,
    /// RFC 6749 section 10.12.
    pub(super) state: String,
    /// OpenID Connect Core 1.0 section 3.1.2.1.
    pub(super) nonce: String,
    /// `code_verifier` of RFC 7636 section 4.1.
    pub(super) verifier: String,
    /// Name or id of the workspace that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
}

impl PendingSignIn {
    /// Begins a sign-in with new random values of 256 bits each.
    ///
    /// # Errors
    /// When the operating system has no random numbers.
    pub fn begin(provider: &str, workspace: Option<String>, now: DateTime<Utc>) -> Result<Self, DomainError> {
        let random = || random_bytes::<32>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        Ok(Self {
            iss: PURPOSE.into(),
            exp: now.timestamp() + LIFETIME,
            provider: provider.to_owned(),
            state: random()?,
            nonce: random()?,
            verifier: random()?,
            workspace,
        })
    }

    /// The workspace that was asked for, as name or id.
    pub fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }

    /// Whether a callback of `provider` with this state belongs to this sign-in. Takes the same time for every state.
    pub fn fits(&self, provider: &str, state: &SecretString) -> bool {
        self.provider == provider && api_key::same(&self.state, state.expose_secret())
    }
}

/// Signs and reads pending sign-ins.
pub struct Seal {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl Seal {
    /// Creates a seal from the service's secret.
    pub fn new(secret: &SecretString) -> Self {
        let bytes = secret.expose_secret().as_bytes();
        Self {
            encoding: EncodingKey::from_secret(bytes),
            decoding: DecodingKey::from_secret(bytes),
        }
    }

    /// The signed form.
    pub fn close(&self, pending: &PendingSignIn) -> Result<SecretString, DomainError> {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), pending, &self.encoding)
            .map(SecretString::from)
            .map_err(|error| DomainError::internal("signing the sign-in failed", error))
    }

    /// A sign-in that was signed here and has not expired.
    pub fn open(&self, sealed: &SecretString) -> Option<PendingSignIn> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[PURPOSE]);
        validation.set_required_spec_claims(&["exp", "iss"]);
        validation.leeway = 0;
        jsonwebtoken::decode(sealed.expose_secret(), &self.decoding, &validation)
            .ok()
            .map(|data| data.claims)
    }
}

/// The sign-ins that this process has finished and that have not expired.
#[derive(Default)]
pub struct UsedStates(Mutex<BTreeSet<(i64, String)>>);

impl UsedStates {
    /// Marks a sign-in as used; false when it was before.
    ///
    /// # Errors
    /// `Busy` when too many are remembered.
    pub fn mark(&self, pending: &PendingSignIn, now: DateTime<Utc>) -> Result<bool, DomainError> {
        let mut used = self.0.lock();
        let now = now.timestamp();
        while used.first().is_some_and(|(exp, _)| *exp < now) {
            used.pop_first();
        }
        if used.len() >= MAX_USED {
            return Err(DomainError::Busy { actor: "identity" });
        }
        Ok(used.insert((pending.exp, pending.state.clone())))
    }
}

#[cfg(test)]
mod tests {
    use chrono::Duration;
    use uuid::Uuid;

    use super::*;
    use crate::auth::token::Tokens;
    use crate::clock;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn seal() -> Seal {
        Seal::new(&SecretString::from(SECRET))
    }

    fn begin(now: DateTime<Utc>) -> PendingSignIn {
        PendingSignIn::begin("corp", Some("Blue Team".into()), now).unwrap()
    }

    #[test]
    fn a_sealed_sign_in_comes_back_until_it_expires() {
        let now = clock::now();
        let pending = begin(now);
        let back = seal().open(&seal().close(&pending).unwrap()).unwrap();
        assert_eq!(back.workspace(), Some("Blue Team"));
        assert_eq!((&back.nonce, &back.verifier), (&pending.nonce, &pending.verifier));
        let [state, nonce] = [&pending.state, &pending.nonce].map(|text| SecretString::from(text.clone()));
        assert!(back.fits("corp", &state));
        assert!(!back.fits("corp", &nonce) && !back.fits("hub", &state));
        // RFC 7636 section 4.1: 43 to 128 characters.
        assert_eq!(pending.verifier.len(), 43);
        let late = begin(now - Duration::seconds(LIFETIME + 1));
        assert!(seal().open(&seal().close(&late).unwrap()).is_none());
    }

    #[test]
    fn only_what_this_secret_signed_for_this_purpose_is_opened() {
        let now = clock::now();
        let other = Seal::new(&SecretString::from("another secret of at least 32 bytes!"));
        assert!(seal().open(&other.close(&begin(now)).unwrap()).is_none());
        let tokens = Tokens::new(&SecretString::from(SECRET));
        let access = tokens.issue(Uuid::new_v4(), Uuid::new_v4(), now, now).unwrap();
        assert!(seal().open(&SecretString::from(access)).is_none());
        let sealed = seal().close(&begin(now)).unwrap();
        assert!(tokens.read(sealed.expose_secret()).is_none());
    }

    #[test]
    fn a_sign_in_is_used_once_and_forgotten_when_it_has_expired() {
        let (now, used) = (clock::now(), UsedStates::default());
        let (first, second) = (begin(now), begin(now));
        assert!(used.mark(&first, now).unwrap());
        assert!(!used.mark(&first, now).unwrap());
        assert!(used.mark(&second, now).unwrap());
        let later = now + Duration::seconds(LIFETIME + 1);
        assert!(used.mark(&begin(later), later).unwrap());
        assert_eq!(used.0.lock().len(), 1);
    }

    #[test]
    fn the_number_of_remembered_sign_ins_is_bounded() {
        let (now, used) = (clock::now(), UsedStates::default());
        let states = (0..MAX_USED).map(|at| (now.timestamp() + 1, at.to_string()));
        used.0.lock().extend(states);
        let full = used.mark(&begin(now), now);
        assert!(matches!(full, Err(DomainError::Busy { .. })), "{full:?}");
        let later = now + Duration::seconds(2);
        assert!(used.mark(&begin(later), later).unwrap());
    }
}
