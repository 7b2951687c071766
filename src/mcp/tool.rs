//! How a tool is described: which requests of the API it is, and what it changes.

use super::api::Verb;
use crate::domain::permission::Permission;

/// A tool.
pub(super) struct Tool {
    pub name: &'static str,
    pub title: &'static str,
    /// What it is for, for the model that chooses among tools.
    pub about: &'static str,
    /// The permission that its requests require; who lacks it does not see the tool.
    pub needs: Option<Permission>,
    pub effect: Effect,
    /// Requests that it may be; the first whose condition holds is sent.
    pub calls: &'static [Call],
    /// Arguments that are not those of the API: name and JSON Schema.
    pub own: &'static [(&'static str, &'static str)],
    /// What is said when there is no row.
    pub nothing: &'static str,
}

/// What a tool changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Reads,
    /// It adds; what was there stays.
    Adds,
    /// It changes a decision, which can be changed again.
    Decides,
}

/// When a call is the one that is meant.
pub(super) enum When {
    Always,
    /// These arguments are given.
    Given(&'static [&'static str]),
    /// An argument has this value. It is not sent.
    Is(&'static str, &'static str),
}

/// A request that a tool may be.
pub(super) struct Call {
    pub verb: Verb,
    /// Path in the description of the API.
    pub route: &'static str,
    pub when: When,
    /// Fields of the API that have another name as arguments: argument, field.
    pub names: &'static [(&'static str, &'static str)],
    /// Fields that are always sent so, as JSON. They are no arguments.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Values of fields that the caller leaves out, as JSON, where they differ from those of the API.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Fields of the API that are no arguments.
    pub hidden: &'static [&'static str],
    pub paging: Paging,
    /// Lists of the answer whose entries go on together with the rows.
    pub beside: &'static [&'static str],
    /// A list of the answer that the rows refer to, and their fields that hold its ids: a page has those of its rows.
    pub named: Option<(&'static str, &'static [&'static str])>,
    /// The field that takes the id of the entity that the arguments `type` and `value` name.
    pub entity: Option<&'static str>,
    /// The name under which the whole answer stands in that of the tool.
    pub under: Option<&'static str>,
}

impl Call {
    /// A request without any of the exceptions.
    pub const fn new(verb: Verb, route: &'static str) -> Self {
        Self {
            verb,
            route,
            when: When::Always,
            names: &[],
            fixed: &[],
            defaults: &[],
            hidden: &[],
            paging: Paging::One,
            beside: &[],
            named: None,
            entity: None,
            under: None,
        }
    }

    /// The argument for a field of the API.
    pub fn argument<'f>(&self, field: &'f str) -> &'f str {
        let renamed = self.names.iter().find(|(_, api)| *api == field);
        renamed.map_or(field, |(argument, _)| argument)
    }
}

/// How the rows of an answer go on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Paging {
    /// The answer has no rows.
    One,
    /// The answer has all rows of this field.
    Whole(&'static str),
    /// The rows of this field go on at `offset`.
    Offset(&'static str),
    /// The rows of `rows` go on when the answer's `next` is sent as `field`.
    Next { rows: &'static str, field: &'static str },
}

impl Paging {
    /// The field that has the rows.
    pub fn rows(self) -> Option<&'static str> {
        match self {
            Paging::One => None,
            Paging::Whole(rows) | Paging::Offset(rows) | Paging::Next { rows, .. } => Some(rows),
        }
    }
}
