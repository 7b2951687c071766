//! What makes two notes exact duplicates: the same words in the same domain, whatever stands around them.

use sha2::{Digest, Sha256};

/// Half a SHA-256 over domain and content, without surrounding white space and with line ends made alike.
pub fn digest(domain: &str, content: &str) -> [u8; 16] {
    let mut hasher = Sha256::new();
    hasher.update(domain.as_bytes());
    hasher.update([0]);
    let mut lines = content.trim().lines();
    if let Some(first) = lines.next() {
        hasher.update(first.as_bytes());
    }
    for line in lines {
        hasher.update(b"\n");
        hasher.update(line.as_bytes());
    }
    let whole: [u8; 32] = hasher.finalize().into();
    let mut half = [0; 16];
    half.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_at_the_ends_and_line_ends_are_alike() {
        let one = digest("cti", "a\nb");
        assert_eq!(one, digest("cti", "  a\r\nb \n"));
        assert_ne!(one, digest("cti", "a b"));
        assert_ne!(one, digest("ops", "a\nb"));
        assert_ne!(digest("a", "b"), digest("", "ab"));
    }
}
