//! Identity of exact duplicates: the same content in the same domain, regardless of line endings and
//! surrounding white space.
//!
//! Case and inner white space are significant; [`super::similarity`] handles such differences.

use sha2::{Digest as _, Sha256};

/// The identity of a text in its domain.
pub type Digest = [u8; 16];

/// The first 16 bytes of SHA-256 over the domain and the content. Both are trimmed, and line endings become LF. A
/// chance collision of 128 bits is negligible.
pub fn digest(domain: &str, content: &str) -> Digest {
    let domain = domain.trim();
    let mut hasher = Sha256::new();
    // The length prefix separates domain and content.
    hasher.update((domain.len() as u64).to_be_bytes());
    hasher.update(domain);
    let mut lines = content.trim().split('\r').peekable();
    while let Some(part) = lines.next() {
        hasher.update(part);
        // CRLF and a lone CR both count as one line ending.
        if lines.peek().is_some_and(|next| !next.starts_with('\n')) {
            hasher.update("\n");
        }
    }
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().zip(hasher.finalize()) {
        *to = from;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_and_outer_space_do_not_matter() {
        let plain = digest("cti", "one\ntwo\n\nthree");
        for same in [
            "one\r\ntwo\r\n\r\nthree",
            "one\rtwo\r\rthree",
            "  one\ntwo\n\nthree\r\n",
            "one\r\ntwo\n\rthree",
        ] {
            assert_eq!(digest("cti", same), plain, "{same:?}");
        }
        assert_eq!(digest(" cti ", "one\ntwo\n\nthree"), plain);
    }

    #[test]
    fn everything_else_does() {
        let plain = digest("cti", "one two");
        for (domain, content) in [
            ("cti", "One two"),
            ("cti", "one  two"),
            ("cti", "one\ntwo"),
            ("CTI", "one two"),
            ("ctio", "ne two"),
            ("cti", ""),
        ] {
            assert_ne!(digest(domain, content), plain, "{domain} {content:?}");
        }
    }

    #[test]
    fn it_is_the_documented_hash() {
        let whole = Sha256::digest(b"\0\0\0\0\0\0\0\x03ctione two");
        assert_eq!(digest("cti", "one two"), whole[..16]);
    }
}
