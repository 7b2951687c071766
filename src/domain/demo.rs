//! The public demo: what anyone may ask, and of which rows.

use uuid::Uuid;

use super::pii::{self, PiiKind};
use super::principal::Workspace;
use super::tlp::Tlp;

/// Longest query, in characters (hosted specification, section Public demo).
pub const MAX_QUERY: usize = 300;

/// A question of a visitor without an account: 1 to 300 characters and no personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoQuery(String);

/// Why a question is refused. It does not contain the question, so it may be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DemoQueryError {
    /// It breaks this rule.
    Malformed(String),
    /// It contains personal data of these kinds, in order and each once.
    PersonalData(Vec<&'static str>),
}

impl DemoQueryError {
    /// The rule, for the client.
    pub fn rule(&self) -> String {
        match self {
            Self::Malformed(rule) => rule.clone(),
            Self::PersonalData(kinds) => format!("must not contain personal data ({})", kinds.join(", ")),
        }
    }
}

impl TryFrom<String> for DemoQuery {
    type Error = DemoQueryError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = text.trim();
        let malformed = |rule: String| Err(DemoQueryError::Malformed(rule));
        if text.is_empty() || text.chars().nth(MAX_QUERY).is_some() {
            return malformed(format!("must have 1 to {MAX_QUERY} characters"));
        }
        if text.contains('\0') {
            return malformed("must not hold a NUL character".into());
        }
        let kinds: Vec<_> = pii::strict::kinds(text)
            .into_iter()
            .map(PiiKind::as_str)
            .collect();
        if !kinds.is_empty() {
            return Err(DemoQueryError::PersonalData(kinds));
        }
        Ok(Self(text.to_owned()))
    }
}

impl From<DemoQuery> for String {
    fn from(query: DemoQuery) -> Self {
        query.0
    }
}

/// The demo workspace as the public sees it: WHITE and GREEN rows only, whatever its settings say.
#[derive(Debug, Clone)]
pub struct PublicDemo {
    workspace: Workspace,
    /// The workspace whose audit log records the visits.
    pub operator: Uuid,
    /// Whether the demo data is loaded.
    pub seeded: bool,
}

impl PublicDemo {
    /// Limits a workspace to what the public may see.
    pub fn new(workspace: Workspace, operator: Uuid, seeded: bool) -> Self {
        let workspace = Workspace {
            tlp_ceiling: workspace.tlp_ceiling.min(Tlp::Green),
            elevated_clearance: false,
            red_export_grant: false,
            ..workspace
        };
        Self {
            workspace,
            operator,
            seeded,
        }
    }

    /// The limited workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }
}

#[cfg(test)]
mod tests;
