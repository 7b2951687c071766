//! Bitcoin addresses, accepted only with a valid checksum.
//!
//! Main network only: Base58Check for P2PKH and P2SH, bech32 (BIP-173) for version 0 and bech32m (BIP-350) for
//! later witness programs.

use bech32::primitives::decode::SegwitHrpstring;

use super::super::source::Source;
use super::super::token::Token;
use crate::domain::kinds::EntityKind;

/// Finds an address that is the whole part.
pub(in crate::domain::extraction) fn find(source: &mut Source<'_>, part: &Token<'_>) -> bool {
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
    let mut bytes = [0u8; 25];
    let length = bs58::decode(text).with_check(None).onto(&mut bytes);
    length == Ok(21) && matches!(bytes, [0 | 5, ..])
}

fn is_segwit(text: &str) -> bool {
    SegwitHrpstring::new(text).is_ok_and(|address| address.hrp().is_valid_on_mainnet())
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

    #[test]
    fn other_networks_and_malformed_programs_are_no_addresses() {
        // The checksums are right: an address of the test network, and of the BIPs' vectors the test network's program,
        // version 17, programs of 1 and 41 bytes, one of 16 for version 0, padding that is too long or not zero, no data.
        assert!(!is_base58check("mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn"));
        for text in [
            "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
            "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
            "bc1pw5dgrnzv",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
            "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
            "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j",
            "bc1gmk9yu",
        ] {
            assert!(!is_segwit(text), "{text}");
        }
    }
}
