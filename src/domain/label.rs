//! The name that an administrator gives to a workspace or an API key.

/// Longest label, in bytes.
const MAX_BYTES: usize = 200;

/// A trimmed text of 1 to 200 bytes without NUL characters, which the store cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl TryFrom<String> for Label {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_BYTES || text.contains('\0') {
            return Err(format!("must have 1 to {MAX_BYTES} bytes and no NUL character"));
        }
        Ok(Self(text.to_owned()))
    }
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
        let full = "x".repeat(MAX_BYTES);
        assert_eq!(read(&format!(" {full} ")), Some(full.clone()));
        for bad in ["", " ", "a\0", &format!("{full}x"), &"é".repeat(101)] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
