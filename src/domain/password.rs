//! Rules of new passwords: those of NIST SP 800-63B section 5.1.1.2 that need no list of leaked passwords.

use std::collections::HashSet;

use secrecy::{ExposeSecret, SecretString};

use super::error::DomainError;
use super::schema::text_schema;

const MIN_CHARS: usize = 12;
const MAX_CHARS: usize = 1024;
/// Smallest number of different characters; the rule of `weakness` states it.
const MIN_DIFFERENT: usize = 5;
/// Rows whose characters follow each other; each is a circle.
const SEQUENCES: [&str; 5] = [
    "abcdefghijklmnopqrstuvwxyz",
    "0123456789",
    "qwertyuiop[]",
    "asdfghjkl;'",
    "zxcvbnm,./",
];
/// Times that a sequence may begin anew and still counts as one.
const MAX_BREAKS: usize = 2;
/// Words that alone, together or with digits around them are no password. A longer one stands before those that it holds.
const COMMON: [&str; 12] = [
    "password",
    "passwort",
    "passw0rd",
    "administrator",
    "admin",
    "changeme",
    "letmein",
    "welcome",
    "qwertyuiop",
    "qwerty",
    "threatmemory",
    "iloveyou",
];

text_schema! {
    /// A new password.
    NewPassword, (MIN_CHARS, MAX_CHARS), None, "correct horse battery staple"
}

/// Checks a new password of the account with this e-mail address against the rules; `field` names it in the error.
///
/// # Errors
/// `Invalid` with the violated rule.
pub fn check_new(field: &str, password: &SecretString, email: &str) -> Result<(), DomainError> {
    let text = password.expose_secret();
    let rule = match text.chars().count() {
        ..MIN_CHARS => Some(format!("must have at least {MIN_CHARS} characters")),
        MIN_CHARS..=MAX_CHARS => weakness(text, email).map(str::to_owned),
        _ => Some(format!("must have at most {MAX_CHARS} characters")),
    };
    rule.map_or(Ok(()), |rule| Err(DomainError::invalid(field, rule)))
}

/// The rule that a password of sufficient length breaks, if anyone would guess it: those of NIST SP 800-63B section
/// 5.1.1.2 that need no list of leaked passwords.
fn weakness(password: &str, email: &str) -> Option<&'static str> {
    let text: Vec<char> = password.to_lowercase().chars().collect();
    let different: HashSet<&char> = text.iter().collect();
    if different.len() < MIN_DIFFERENT {
        return Some("must have at least 5 different characters");
    }
    if (1..=text.len() / 2).any(|period| text.iter().zip(text.iter().skip(period)).all(|(a, b)| a == b)) {
        return Some("must not be a repeated word");
    }
    if is_sequence(&text) {
        return Some("must not be a sequence of the alphabet, of numbers or of the keyboard");
    }
    let letters: String = text.iter().filter(|c| c.is_alphanumeric()).collect();
    let word = letters.trim_matches(char::is_numeric);
    let email = email.trim().to_lowercase();
    let (name, domain) = email.split_once('@').unwrap_or((email.as_str(), ""));
    let of_email =
        [email.as_str(), name, domain].map(|part| part.replace(|c: char| !c.is_alphanumeric(), ""));
    if !word.is_empty() && of_email.iter().any(|part| part == word || *part == letters) {
        return Some("must not be the e-mail address or a part of it");
    }
    // A blank keeps what stood around a word from becoming a word.
    let rest = COMMON
        .iter()
        .fold(letters.clone(), |rest, common| rest.replace(common, " "));
    let is_common = rest != letters && rest.chars().all(|c| c == ' ' || c.is_numeric());
    is_common.then_some("must not be a common password with digits or signs around it")
}

/// Whether each character follows the one before, up or down, in the alphabet, the digits or a row of the keyboard.
fn is_sequence(text: &[char]) -> bool {
    let rows = SEQUENCES.iter().map(|row| row.chars().collect::<Vec<char>>());
    let steps = rows.map(|row| {
        let place = |c: &char| row.iter().position(|other| other == c);
        let step = |pair: &[char]| {
            let [from, to] = pair else { return false };
            match (place(from), place(to)) {
                (Some(from), Some(to)) => {
                    let length = row.len();
                    (from + 1) % length == to || (to + 1) % length == from
                }
                _ => false,
            }
        };
        text.windows(2).map(step).collect::<Vec<bool>>()
    });
    // A sequence may go on in another row, as from `p` to `a` on a keyboard.
    let mut follows = vec![false; text.len().saturating_sub(1)];
    for row in steps {
        for (follows, step) in follows.iter_mut().zip(row) {
            *follows |= step;
        }
    }
    let breaks = follows.iter().filter(|follows| !**follows).count();
    breaks <= MAX_BREAKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_huge_passwords_are_refused_by_name() {
        let error = check_new("admin_password", &SecretString::from("short"), "").unwrap_err();
        assert_eq!(
            error.to_string(),
            "admin_password: must have at least 12 characters"
        );
        assert!(check_new("p", &SecretString::from("x".repeat(1025)), "").is_err());
    }

    #[test]
    fn what_anyone_would_guess_is_refused_with_the_rule_and_nothing_else_is() {
        let rule = |password: &str| {
            let checked = check_new("p", &SecretString::from(password), "Jane.Doe@example.com");
            checked.err().map(|error| error.to_string())
        };
        for (password, want) in [
            ("aaaaaaaaaaaa", "different characters"),
            ("            ", "different characters"),
            ("abababababab", "different characters"),
            ("AaAaAaAaAaAa", "different characters"),
            ("éééééééééééé", "different characters"),
            ("111222333444", "different characters"),
            ("secretsecret", "repeated word"),
            ("Secretsecretsecre", "repeated word"),
            ("abcdefghijkl", "sequence"),
            ("123456789012", "sequence"),
            ("zyxwvutsrqponm", "sequence"),
            ("qwertyuiopasdf", "sequence"),
            ("abcdef123456", "sequence"),
            ("jane.doe@example.com", "e-mail"),
            ("JANE.DOE@EXAMPLE.COM", "e-mail"),
            ("jane.doe1234", "e-mail"),
            ("example.com!!", "e-mail"),
            ("password12345", "common"),
            ("!!Password!2024", "common"),
            ("AdminAdmin2024", "common"),
            ("administrator", "common"),
            ("threat-memory", "common"),
            ("adminpassword1", "common"),
            ("Password-Admin-2024", "common"),
            ("welcomeadmin12", "common"),
            ("2024letmein!2025", "common"),
            ("admin1password2welcome3", "common"),
            ("administratoradmin", "common"),
            ("letmeinqwerty99", "common"),
            ("qwerty passw0rd", "common"),
            ("iloveyou-changeme", "common"),
            ("threat.memory.passwort", "common"),
        ] {
            let got = rule(password).unwrap_or_default();
            assert!(
                got.starts_with("p: must ") && got.contains(want),
                "{password:?}: {got:?}"
            );
        }
        for fine in [
            "correct horse battery staple",
            "correct-horse-battery-staple",
            "a long enough password",
            "another long password",
            "choose a long one",
            "another-password-1",
            "Tr0ub4dor&3-xkcd",
            "密码很长而且没有人能猜到它的",
            "janes own secret",
            "1a2b3c4d5e6f7g8h",
            "202401019999",
            "welcome to the other admins",
        ] {
            assert_eq!(rule(fine), None, "{fine}");
        }
    }
}
