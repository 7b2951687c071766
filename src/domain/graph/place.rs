//! The rows in which the versions of an object stand.

use crate::domain::tlp::Tlp;

/// A row of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The one whose id follows from the object's.
    First,
    /// Beside the first one, for those up to this clearance. The number counts the rows that have risen above it.
    UpTo(Tlp, u32),
    /// What writers of this clearance sent without being allowed to see it.
    Above(Tlp),
}

impl Place {
    /// The name from which the id of the row is made.
    pub fn name(self, object: &str) -> String {
        match self {
            Self::First => object.to_owned(),
            Self::UpTo(level, 1) => format!("{object}\0up to {level}"),
            Self::UpTo(level, number) => format!("{object}\0up to {level}\0{number}"),
            Self::Above(level) => format!("{object}\0above {level}"),
        }
    }

    /// Where rows beside the first one may stand, whoever sees them; those of [`Self::following`] come after them. All
    /// levels count: a marking may fall after its version was stored, and so may the clearance of its writer.
    pub fn beside() -> impl Iterator<Item = Self> {
        let levels = Tlp::ALL.into_iter();
        levels.flat_map(|level| [Self::UpTo(level, 1), Self::Above(level)])
    }

    /// Where a further row may stand, given that one stands here.
    pub fn following(self) -> Option<Self> {
        match self {
            Self::UpTo(level, number) => Some(Self::UpTo(level, number + 1)),
            Self::First | Self::Above(_) => None,
        }
    }
}
