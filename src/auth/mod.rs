//! Secrets: passwords, access tokens, API keys, sign-in with providers. All comparisons are constant-time.

pub mod api_key;
pub mod oauth;
pub mod password;
pub mod token;

use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::domain::error::DomainError;

/// Random bytes from the operating system.
///
/// # Errors
/// When the operating system can't supply any.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], DomainError> {
    let mut bytes = [0u8; N];
    OsRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| DomainError::internal("no random numbers available", error))?;
    Ok(bytes)
}
