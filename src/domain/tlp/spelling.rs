//! TLP levels as other tools write them: `tlp:amber_strict`, `TLP-RED`, `TLP v2.0: CLEAR`, full-width letters.

use unicode_normalization::UnicodeNormalization;

use super::{Tlp, UnknownTlp};

/// Words around a level that say nothing about it.
const NOISE: [&str; 10] = [
    "tlp", "traffic", "light", "protocol", "level", "v", "v1", "v2", "1", "2",
];

impl Tlp {
    /// Reads a level in any spelling, from a place that states one: with or without the word TLP, and with any
    /// separators. For requests to this service, which must follow its contract, use [`str::parse`].
    ///
    /// # Errors
    /// When it is no level, or more than one.
    pub fn from_spelling(written: &str) -> Result<Self, UnknownTlp> {
        let mut level = String::new();
        for word in words(written) {
            let word = word.strip_prefix("tlp").unwrap_or(&word);
            if !(word.is_empty() || word == "0" || NOISE.contains(&word)) {
                level.push_str(word);
            }
        }
        match level.as_str() {
            "white" | "clear" => Ok(Tlp::White),
            "green" => Ok(Tlp::Green),
            "amber" => Ok(Tlp::Amber),
            "amberpk" | "amberstrict" => Ok(Tlp::AmberPk),
            "red" => Ok(Tlp::Red),
            _ => Err(UnknownTlp),
        }
    }
}

/// Whether a text speaks of TLP.
pub fn mentions_tlp(written: &str) -> bool {
    let mut before = String::new();
    words(written).any(|word| {
        let spelled_out = before == "traffic" && word == "light";
        let mentions = spelled_out || word.starts_with("tlp");
        before = word;
        mentions
    })
}

/// The level that a tag or label states, such as `tlp:amber`, `TLP-RED` or `iep:traffic-light-protocol="RED"`; `None`
/// for one about something else. `tlp:unclear` and `tlp:ex:…` of the MISP taxonomy are no levels: they leave the
/// audience unknown or exclude someone, so they count as RED.
pub fn level_of_tag(tag: &str) -> Option<Result<Tlp, UnknownTlp>> {
    let folded: String = tag.nfkc().flat_map(char::to_lowercase).collect();
    let bare = folded.trim().trim_matches('"');
    let bare = bare.strip_prefix("iep:").unwrap_or(bare);
    let rest = ["tlp", "traffic-light-protocol", "traffic light protocol"]
        .iter()
        .find_map(|name| bare.strip_prefix(name))
        .map(without_version)?;
    if !rest.starts_with(|c: char| !c.is_alphanumeric()) {
        return None;
    }
    let value = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
    if value.starts_with("unclear") || value.starts_with("ex:") {
        return Some(Ok(Tlp::Red));
    }
    match Tlp::from_spelling(value) {
        Err(_) if !rest.starts_with([':', '=']) => None,
        level => Some(level),
    }
}

/// The rest of a tag after the version of TLP, as in `tlpv2:red` and `tlp2.0:red`.
fn without_version(rest: &str) -> &str {
    let number = rest.strip_prefix('v').unwrap_or(rest);
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
    } else {
        rest
    }
}

/// The words of a text in lower case, with letters of other widths as plain ones.
fn words(written: &str) -> impl Iterator<Item = String> {
    let folded: String = written.nfkc().flat_map(char::to_lowercase).collect();
    let words: Vec<String> = folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_in_any_spelling_where_one_is_expected() {
        for (written, want) in [
            ("TLP:AMBER+STRICT", Some(Tlp::AmberPk)),
            ("tlp:amber_strict", Some(Tlp::AmberPk)),
            ("Amber Strict", Some(Tlp::AmberPk)),
            ("AMBER+PK", Some(Tlp::AmberPk)),
            ("TLP v2.0: CLEAR", Some(Tlp::White)),
            ("TLPv2:Green", Some(Tlp::Green)),
            ("TLP RED", Some(Tlp::Red)),
            ("Traffic Light Protocol - amber", Some(Tlp::Amber)),
            ("ＴＬＰ：ＲＥＤ", Some(Tlp::Red)),
            ("\"red\"", Some(Tlp::Red)),
            ("tlp:pink", None),
            ("red or amber", None),
            ("TLP:", None),
            ("", None),
        ] {
            assert_eq!(Tlp::from_spelling(written).ok(), want, "{written}");
        }
    }

    #[test]
    fn a_tag_of_the_taxonomy_states_a_level_and_other_tags_none() {
        for (tag, want) in [
            ("tlp:amber", Some(Some(Tlp::Amber))),
            ("TLP:AMBER+STRICT", Some(Some(Tlp::AmberPk))),
            ("tlp:amber-strict", Some(Some(Tlp::AmberPk))),
            ("tlp: red", Some(Some(Tlp::Red))),
            ("tlp=\"amber\"", Some(Some(Tlp::Amber))),
            ("TLP-RED", Some(Some(Tlp::Red))),
            ("tlp_amber", Some(Some(Tlp::Amber))),
            ("IEP:traffic-light-protocol=\"AMBER\"", Some(Some(Tlp::Amber))),
            ("tlp:ex:chr=\"x\"", Some(Some(Tlp::Red))),
            ("tlp:unclear", Some(Some(Tlp::Red))),
            ("TLPv2:RED", Some(Some(Tlp::Red))),
            ("tlp2:red", Some(Some(Tlp::Red))),
            ("tlp2.0: amber", Some(Some(Tlp::Amber))),
            ("tlpv2:pink", Some(None)),
            ("tlp2-group", None),
            ("tlp:pink", Some(None)),
            ("tlp:", Some(None)),
            ("tlp:red:internal", Some(None)),
            ("tlp-group", None),
            ("tlphunter", None),
            ("pap:red", None),
            ("phishing", None),
        ] {
            assert_eq!(level_of_tag(tag).map(Result::ok), want, "{tag}");
        }
    }
}
