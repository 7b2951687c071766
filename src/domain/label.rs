//! The name that an administrator gives to a workspace or an API key.

use super::schema::{self, schema_of};

/// Longest label, in characters.
const MAX_CHARS: usize = 200;

/// A trimmed text of 1 to 200 characters without NUL characters, which the store cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl TryFrom<String> for Label {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = text.trim();
        if text.is_empty() || text.chars().nth(MAX_CHARS).is_some() || text.contains('\0') {
            return Err(format!(
                "must have 1 to {MAX_CHARS} characters and no NUL character"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

schema_of! {
    Label, "A name; white space around it is removed.", (1, MAX_CHARS), schema::NOT_BLANK, "Collector of the north site"
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_trimmed_before_it_is_measured() {
        let read = |text: &str| Label::try_from(text.to_owned()).map(String::from).ok();
        let full = "é".repeat(MAX_CHARS);
        assert_eq!(read(&format!(" {full} ")), Some(full.clone()));
        for bad in ["", " ", "a\0", &format!("{full}x")] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
