//! Traffic Light Protocol markings and who may see them.
//!
//! Invariant: every row has exactly one marking, and [`Clearance::permits`] is the only rule that
//! decides whether a caller sees it. Levels are ordered, so "most restrictive" is `max`.

mod spelling;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub use self::spelling::{level_of_tag, mentions_tlp};
use super::schema::{self, text_schema, white};

/// A TLP marking (FIRST TLP 1.0 names, plus the service's own `AMBER+PK`), least restrictive first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tlp {
    White,
    Green,
    Amber,
    AmberPk,
    Red,
}

impl Tlp {
    /// Every level, least restrictive first.
    pub const ALL: [Tlp; 5] = [Tlp::White, Tlp::Green, Tlp::Amber, Tlp::AmberPk, Tlp::Red];

    /// The wire name, `TLP:AMBER` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            Tlp::White => "TLP:WHITE",
            Tlp::Green => "TLP:GREEN",
            Tlp::Amber => "TLP:AMBER",
            Tlp::AmberPk => "TLP:AMBER+PK",
            Tlp::Red => "TLP:RED",
        }
    }

    /// Position in the order WHITE (0) to RED (4), stored with the row.
    pub fn rank(self) -> u8 {
        self as u8
    }

    /// The level of a stored rank.
    pub fn from_rank(rank: u8) -> Option<Tlp> {
        Tlp::ALL.get(usize::from(rank)).copied()
    }
}

impl fmt::Display for Tlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A marking was rejected; the message lists the accepted values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be one of TLP:WHITE, TLP:GREEN, TLP:AMBER, TLP:AMBER+PK, TLP:RED")]
pub struct UnknownTlp;

impl FromStr for Tlp {
    type Err = UnknownTlp;

    /// Reads TLP 1.x and 2.0 names, in any case, with or without the `TLP:` prefix.
    fn from_str(text: &str) -> Result<Self, UnknownTlp> {
        let upper = text.trim().to_ascii_uppercase();
        match upper.strip_prefix("TLP:").unwrap_or(&upper) {
            "WHITE" | "CLEAR" => Ok(Tlp::White),
            "GREEN" => Ok(Tlp::Green),
            "AMBER" => Ok(Tlp::Amber),
            "AMBER+PK" | "AMBER+STRICT" => Ok(Tlp::AmberPk),
            "RED" => Ok(Tlp::Red),
            _ => Err(UnknownTlp),
        }
    }
}

impl Serialize for Tlp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Tlp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl PartialSchema for Tlp {
    fn schema() -> RefOr<Schema> {
        let names = Tlp::ALL.iter().map(|level| level.as_str());
        schema::names(&["A TLP marking, least restrictive first."], names)
    }
}

impl ToSchema for Tlp {}

text_schema! {
    /// A TLP marking: WHITE or CLEAR, GREEN, AMBER, AMBER+PK or AMBER+STRICT, RED; in any case, with or without `TLP:`.
    TlpInput, (3, 1000), Some(concat!(
        "^[", white!(), "]*(?:[Tt][Ll][Pp]:)?(?:[Ww][Hh][Ii][Tt][Ee]|[Cc][Ll][Ee][Aa][Rr]|[Gg][Rr][Ee][Ee][Nn]|",
        r"[Aa][Mm][Bb][Ee][Rr](?:\+(?:[Pp][Kk]|[Ss][Tt][Rr][Ii][Cc][Tt]))?|[Rr][Ee][Dd])[", white!(), "]*$"
    )), "TLP:GREEN"
}

/// The markings that a workspace's signed-in callers may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clearance {
    /// Rows above this level are never shown.
    pub ceiling: Tlp,
    /// Whether rows above AMBER may be shown, up to the ceiling.
    pub elevated: bool,
}

impl Clearance {
    /// Clearance of callers without credentials: WHITE and GREEN.
    pub const PUBLIC: Clearance = Clearance {
        ceiling: Tlp::Green,
        elevated: false,
    };

    /// Whether a row with this marking may be shown.
    pub fn permits(self, tlp: Tlp) -> bool {
        tlp <= self.ceiling && (tlp <= Tlp::Amber || self.elevated)
    }

    /// The most restrictive level that may be shown; levels are contiguous from WHITE up to it.
    pub fn highest(self) -> Tlp {
        if self.elevated {
            self.ceiling
        } else {
            self.ceiling.min(Tlp::Amber)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_name_of_tlp_1_and_2_is_read() {
        for (text, want) in [
            ("TLP:WHITE", Tlp::White),
            ("clear", Tlp::White),
            ("tlp:green", Tlp::Green),
            (" Amber ", Tlp::Amber),
            ("TLP:AMBER+STRICT", Tlp::AmberPk),
            ("amber+pk", Tlp::AmberPk),
            ("RED", Tlp::Red),
        ] {
            assert_eq!(text.parse::<Tlp>(), Ok(want), "{text}");
        }
        for text in ["", "TLP:", "PINK", "TLP:AMBER+", "TLP: RED"] {
            assert_eq!(text.parse::<Tlp>(), Err(UnknownTlp), "{text}");
        }
    }

    proptest! {
        #[test]
        fn clearance_is_ceiling_and_elevation(tlp in 0u8..5, ceiling in 0u8..5, elevated: bool) {
            let clearance = Clearance { ceiling: Tlp::ALL[usize::from(ceiling)], elevated };
            let tlp = Tlp::ALL[usize::from(tlp)];
            let want = tlp.rank() <= ceiling && (tlp.rank() <= 2 || elevated);
            prop_assert_eq!(clearance.permits(tlp), want);
            prop_assert_eq!(tlp <= clearance.highest(), want);
        }
    }
}
