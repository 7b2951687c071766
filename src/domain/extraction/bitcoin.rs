//! Bitcoin addresses, accepted only with a valid checksum.
//!
//! Main network only: Base58Check for P2PKH and P2SH, bech32 (BIP-173) for version 0 and bech32m (BIP-350) for
//! later witness programs.

use sha2::{Digest, Sha256};

use super::kind::EntityKind;
use super::scan::Token;
use super::source::Source;

const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &[u8] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// Final constants of the two checksums.
const BECH32_CONST: u32 = 1;
const BECH32M_CONST: u32 = 0x2bc8_30a3;

/// Finds an address that is the whole part.
pub(super) fn find(source: &mut Source<'_>, part: &Token<'_>) -> bool {
    let text = part.text;
    let legacy = (26..=35).contains(&text.len()) && text.starts_with(['1', '3']) && is_base58check(text);
    let segwit = (14..=90).contains(&text.len())
        && text
            .get(..3)
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case("bc1"))
        && is_segwit(text);
    if legacy {
        source.push(
            EntityKind::Bitcoin,
            text.to_owned(),
            part.span(),
            "bitcoin-base58check",
            0.99,
        );
    } else if segwit {
        source.push(
            EntityKind::Bitcoin,
            text.to_ascii_lowercase(),
            part.span(),
            "bitcoin-bech32",
            0.99,
        );
    }
    legacy || segwit
}

fn is_base58check(text: &str) -> bool {
    let Some(bytes) = base58(text) else { return false };
    let (payload, checksum) = bytes.split_at(21);
    let digest = Sha256::digest(Sha256::digest(payload));
    digest.starts_with(checksum) && matches!(payload.first(), Some(0 | 5))
}

/// The 25 bytes of an address; `None` if it has another length.
fn base58(text: &str) -> Option<[u8; 25]> {
    let mut bytes = [0u8; 25];
    for c in text.bytes() {
        let mut carry = BASE58.iter().position(|known| *known == c)?;
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry != 0 {
            return None;
        }
    }
    // Each leading zero byte is encoded as one leading `1`.
    let ones = text.bytes().take_while(|c| *c == b'1').count();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    (ones == zeros).then_some(bytes)
}

fn is_segwit(text: &str) -> bool {
    let upper = text.bytes().any(|c| c.is_ascii_uppercase());
    let lower = text.bytes().any(|c| c.is_ascii_lowercase());
    let Some(data) = text.get(3..).filter(|_| !(upper && lower)) else {
        return false;
    };
    let mut checksum = 1;
    // The expanded human-readable part "bc".
    for value in [3, 3, 0, 2, 3] {
        checksum = polymod_step(checksum, value);
    }
    let mut version = None;
    for c in data.bytes() {
        let c = c.to_ascii_lowercase();
        let Some(value) = BECH32.iter().position(|known| *known == c) else {
            return false;
        };
        version.get_or_insert(value);
        checksum = polymod_step(checksum, value as u32);
    }
    let program = data.len().saturating_sub(7) * 5 / 8;
    match version {
        Some(0) => checksum == BECH32_CONST && matches!(program, 20 | 32),
        Some(1..=16) => checksum == BECH32M_CONST && (2..=40).contains(&program),
        _ => false,
    }
}

fn polymod_step(checksum: u32, value: u32) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = checksum >> 25;
    let start = (checksum & 0x01ff_ffff) << 5 ^ value;
    GENERATOR.iter().enumerate().fold(
        start,
        |sum, (bit, generator)| {
            if top >> bit & 1 == 1 { sum ^ generator } else { sum }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_checksums_are_accepted() {
        // The genesis-block address, the first P2SH test of BIP-16, and vectors from BIP-173 and BIP-350.
        for address in [
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
            "3P14159f73E4gFr7JterCCQh9QjiTjiZrG",
        ] {
            assert!(is_base58check(address), "{address}");
        }
        for address in [
            "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        ] {
            assert!(is_segwit(address), "{address}");
        }
        assert!(!is_base58check("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb"));
        assert!(!is_segwit("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5"));
        assert!(!is_segwit(
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd"
        ));
    }
}
