//! Seals a position so that its reader can neither read nor make one: a synthetic initialization vector (RFC 5297) with
//! HMAC-SHA-256 as its keyed function, over at most 32 bytes.
//!
//! The same position always gives the same text. So a cursor that did not move tells that nothing was written that its reader
//! may see, and one that moved tells nothing of what was written beside.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Size of the vector, in bytes.
const VECTOR: usize = 16;
/// Longest position, in bytes: one output of the keyed function.
const LONGEST: usize = 32;

/// Seals and opens the positions of one list.
#[derive(Clone)]
pub struct CursorSeal {
    secret: Vec<u8>,
}

impl CursorSeal {
    /// A seal for one list of one workspace; `secret` is the installation's.
    pub fn new(secret: &[u8], list: &str, of: &[u8]) -> Self {
        let parts = [secret, list.as_bytes(), &[0], of];
        Self {
            secret: parts.concat(),
        }
    }

    fn keyed(&self, purpose: u8, data: &[u8]) -> [u8; LONGEST] {
        // A key may have any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else {
            return [0; LONGEST];
        };
        mac.update(&[purpose]);
        mac.update(data);
        mac.finalize().into_bytes().into()
    }

    /// The text for a position of at most 32 bytes.
    pub fn seal(&self, position: &[u8]) -> String {
        let vector = self.keyed(0, position);
        let vector = vector.first_chunk::<VECTOR>().copied().unwrap_or_default();
        let stream = self.keyed(1, &vector);
        let mut sealed = vector.to_vec();
        sealed.extend(position.iter().zip(stream).map(|(byte, key)| byte ^ key));
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The position in a text that this seal has made; `None` for any other text.
    pub fn open(&self, text: &str) -> Option<Vec<u8>> {
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (vector, body) = sealed.split_first_chunk::<VECTOR>()?;
        if body.len() > LONGEST {
            return None;
        }
        let stream = self.keyed(1, vector);
        let position: Vec<u8> = body.iter().zip(stream).map(|(byte, key)| byte ^ key).collect();
        let right = self.keyed(0, &position);
        let right = right.first_chunk::<VECTOR>()?;
        bool::from(right.ct_eq(vector)).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_is_opened() {
        let seal = CursorSeal::new(b"secret", "changes", b"one");
        for length in [0, 1, 17, 32] {
            let position: Vec<u8> = (0..length).collect();
            let text = seal.seal(&position);
            assert_eq!(seal.open(&text), Some(position.clone()));
            assert_eq!(seal.seal(&position), text);
            let other = CursorSeal::new(b"secret", "changes", b"two");
            assert_eq!(other.open(&text), None);
            let mut damaged = text.into_bytes();
            damaged[3] = if damaged[3] == b'A' { b'B' } else { b'A' };
            assert_eq!(seal.open(std::str::from_utf8(&damaged).unwrap()), None);
        }
        for text in ["", "0", "AAAA", "not a cursor", "§"] {
            assert_eq!(seal.open(text), None, "{text}");
        }
    }
}
