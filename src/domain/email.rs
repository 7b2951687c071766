//! Checks on an e-mail address that need no mail server.

use super::schema::{text_schema, white};

/// Longest address in bytes (RFC 5321 section 4.5.3.1).
pub const MAX_EMAIL: usize = 254;

text_schema! {
    /// An e-mail address.
    Email, (3, MAX_EMAIL), Some(concat!(
        r"^[^@\x00-\x1f\x7f-\x9f", white!(), r"]+@[^@.\x00-\x1f\x7f-\x9f", white!(),
        r"][^@\x00-\x1f\x7f-\x9f", white!(), "]*$"
    )), "analyst@example.com"
}

/// Whether the text has one `@` with something on both sides, no spaces, and at most [`MAX_EMAIL`] bytes. Only the
/// mail server can tell more.
pub fn is_email(text: &str) -> bool {
    let clean = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    let parts = text
        .split_once('@')
        .filter(|(user, host)| !user.is_empty() && !host.contains('@'));
    let named = parts.is_some_and(|(_, host)| !host.is_empty() && !host.starts_with('.'));
    clean && text.len() <= MAX_EMAIL && named
}

/// An address as accounts are looked up by: trimmed, in lower case. `None` for what is no address, and for letters
/// such as the Kelvin sign, which lower case turns into an ASCII letter and so into somebody else's address.
pub fn account_address(text: &str) -> Option<String> {
    let turns = |c: char| !c.is_ascii() && c.to_lowercase().any(|low| low.is_ascii());
    let text = text.trim();
    (is_email(text) && !text.chars().any(turns)).then(|| text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{account_address, is_email};

    #[test]
    fn an_address_never_turns_into_another_one() {
        let address = |text| account_address(text);
        assert_eq!(address(" Kim@Example.com ").as_deref(), Some("kim@example.com"));
        assert_eq!(address("\u{dc}@x.example").as_deref(), Some("\u{fc}@x.example"));
        for bad in [
            "\u{212a}im@example.com",
            "kim@\u{212a}.example",
            "\u{130}@x.example",
            "kim",
            "",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }

    #[test]
    fn addresses_are_checked_for_what_can_be_checked() {
        for good in ["a@b", "first.last@example.com", "ü@bücher.example"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["", "a", "@b", "a@", "a@b@c", "a b@c", "a@.c"] {
            assert!(!is_email(bad), "{bad}");
        }
    }
}
