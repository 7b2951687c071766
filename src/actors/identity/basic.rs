//! E-mail address and password with each request (RFC 7617), for clients that can present nothing else.
//!
//! The first request signs in, under the limits and with the audit entry of every sign-in. The token of that sign-in stays
//! here, and later requests are those of its bearer: a hash of the password takes longer than most answers. A token that is
//! refused meanwhile, because the user or the password changed, is forgotten.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::IdentityCore;
use super::sign_in::Login;
use crate::actors::keyed_locks::KeyedLocks;
use crate::auth::random_bytes;
use crate::domain::error::DomainError;
use crate::domain::principal::{Credential, Workspace};

/// How long a password is not hashed again.
const LIFETIME: Duration = Duration::from_secs(600);
/// Most sign-ins that are remembered.
const MOST: usize = 1_000;

/// An e-mail address and a password.
#[derive(Debug, Clone)]
pub struct BasicCredential {
    pub email: String,
    pub password: SecretString,
    /// The workspace that the request names.
    pub workspace: Option<Uuid>,
}

/// The sign-ins of clients that present a password with each request.
pub(super) struct BasicSignIns {
    /// A digest under a key of this process, so that its memory does not hold what can be guessed at elsewhere.
    key: [u8; 32],
    tokens: parking_lot::Mutex<HashMap<[u8; 32], (SecretString, Instant)>>,
    /// One sign-in at a time for each credential.
    turns: KeyedLocks,
    /// Requests that wait for such a turn, a part of those that the actor works on: one credential, asked with by many, must
    /// not hold up everybody else.
    waiting: Semaphore,
}

impl BasicSignIns {
    /// `most` requests may wait at a time.
    pub(super) fn new(most: usize) -> Result<Self, DomainError> {
        Ok(Self {
            waiting: Semaphore::new(most.max(1)),
            key: random_bytes()?,
            tokens: parking_lot::Mutex::default(),
            turns: KeyedLocks::default(),
        })
    }

    fn digest(&self, credential: &BasicCredential) -> [u8; 32] {
        let mut digest = Sha256::new_with_prefix(self.key);
        for part in [
            credential.email.as_bytes(),
            credential.password.expose_secret().as_bytes(),
        ] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        digest.update(credential.workspace.unwrap_or_default());
        digest.finalize().into()
    }

    fn token(&self, digest: &[u8; 32]) -> Option<SecretString> {
        let tokens = self.tokens.lock();
        let (token, since) = tokens.get(digest)?;
        (since.elapsed() < LIFETIME).then(|| token.clone())
    }

    fn remember(&self, digest: [u8; 32], token: SecretString) {
        let mut tokens = self.tokens.lock();
        tokens.retain(|_, (_, since)| since.elapsed() < LIFETIME);
        if tokens.len() >= MOST {
            tokens.clear();
        }
        tokens.insert(digest, (token, Instant::now()));
    }
}

impl IdentityCore {
    /// The user with this e-mail address and password.
    ///
    /// # Errors
    /// Those of a sign-in.
    pub(super) async fn user_of_password(
        &self,
        credential: BasicCredential,
        ip: IpAddr,
    ) -> Result<(Workspace, Credential), DomainError> {
        let digest = self.basic.digest(&credential);
        if let Some(user) = self.signed_in(&digest).await? {
            return Ok(user);
        }
        let (id, _) = digest.split_at(16);
        let id = Uuid::from_slice(id).unwrap_or_default();
        let place = self.basic.waiting.try_acquire();
        let _place = place.map_err(|_| DomainError::Busy { actor: "identity" })?;
        let _turn = self.basic.turns.take(id).await;
        if let Some(user) = self.signed_in(&digest).await? {
            return Ok(user);
        }
        let login = Login {
            email: credential.email,
            password: credential.password,
            workspace: credential.workspace.map(|id| id.to_string()),
            ip,
        };
        let grant = self.sign_in(login).await?.outcome?;
        let token = SecretString::from(grant.token);
        let user = self.user_of_token(&token).await?;
        self.basic.remember(digest, token);
        Ok(user)
    }

    /// The user whose sign-in is remembered and still valid.
    async fn signed_in(&self, digest: &[u8; 32]) -> Result<Option<(Workspace, Credential)>, DomainError> {
        let Some(token) = self.basic.token(digest) else {
            return Ok(None);
        };
        match self.user_of_token(&token).await {
            Err(DomainError::Unauthenticated(_)) => {
                self.basic.tokens.lock().remove(digest);
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }
}
