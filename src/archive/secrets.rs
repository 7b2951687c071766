//! Passwords and API keys in an archive, encrypted by a passphrase.

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::RngCore;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::error::ArchiveError;

/// Memory in KiB, passes and lanes of Argon2id (RFC 9106, section 4, second recommendation).
const MEMORY: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 4;
const SALT: usize = 16;
/// Most memory that an archive may ask for, in KiB, and most passes: an archive comes from elsewhere.
const MOST_MEMORY: u32 = 1 << 20;
const MOST_PASSES: u32 = 100;

/// Secret rows, and secret fields of rows.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecretRows {
    /// Whole rows of a table.
    pub rows: Vec<(String, Value)>,
    /// A field of a row: the table, the row's id, the field's name, its value.
    pub fields: Vec<(String, Value, String, Value)>,
}

/// The secrets of an archive, encrypted with AES-256-GCM (NIST SP 800-38D) and a key that Argon2id (RFC 9106) makes of the
/// passphrase. The archive's id is authenticated with them.
#[derive(Debug, Serialize, Deserialize)]
pub struct SealedSecrets {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
    nonce: String,
    text: String,
}

impl SealedSecrets {
    /// # Errors
    /// [`ArchiveError::Cipher`].
    pub fn seal(
        secrets: &SecretRows,
        archive: Uuid,
        passphrase: &SecretString,
    ) -> Result<Self, ArchiveError> {
        let (mut salt, mut nonce) = ([0; SALT], [0; NONCE_LEN]);
        rand::rng().fill_bytes(&mut salt);
        rand::rng().fill_bytes(&mut nonce);
        let mut text = serde_json::to_vec(secrets).map_err(|_| ArchiveError::Cipher)?;
        let key = key_of(passphrase, &salt, (MEMORY, PASSES, LANES))?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(archive.as_bytes()),
            &mut text,
        )
        .map_err(|_| ArchiveError::Cipher)?;
        Ok(Self {
            memory_kib: MEMORY,
            passes: PASSES,
            lanes: LANES,
            salt: STANDARD.encode(salt),
            nonce: STANDARD.encode(nonce),
            text: STANDARD.encode(text),
        })
    }

    /// # Errors
    /// [`ArchiveError::Passphrase`] when the passphrase is another one, or the text is not the one that was sealed.
    pub fn open(&self, archive: Uuid, passphrase: &SecretString) -> Result<SecretRows, ArchiveError> {
        if self.memory_kib > MOST_MEMORY || self.passes > MOST_PASSES {
            return Err(ArchiveError::Cipher);
        }
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| ArchiveError::Cipher);
        let (salt, nonce) = (decode(&self.salt)?, decode(&self.nonce)?);
        let mut text = decode(&self.text)?;
        let key = key_of(passphrase, &salt, (self.memory_kib, self.passes, self.lanes))?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_| ArchiveError::Cipher)?;
        let opened = key.open_in_place(nonce, Aad::from(archive.as_bytes()), &mut text);
        let opened = opened.map_err(|_| ArchiveError::Passphrase)?;
        serde_json::from_slice(opened).map_err(|_| ArchiveError::Cipher)
    }
}

fn key_of(
    passphrase: &SecretString,
    salt: &[u8],
    (memory, passes, lanes): (u32, u32, u32),
) -> Result<LessSafeKey, ArchiveError> {
    let params = Params::new(memory, passes, lanes, Some(32)).map_err(|_| ArchiveError::Cipher)?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut key = [0; 32];
    argon
        .hash_password_into(passphrase.expose_secret().as_bytes(), salt, &mut key)
        .map_err(|_| ArchiveError::Cipher)?;
    let key = UnboundKey::new(&AES_256_GCM, &key).map_err(|_| ArchiveError::Cipher)?;
    Ok(LessSafeKey::new(key))
}
