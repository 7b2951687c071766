//! A question as it was understood, told to a caller who asks for it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Kind, Period, QuestionPlan};

/// What a question about related things or about a time was understood to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct QuestionAsked {
    /// What it names.
    pub names: Vec<NameAsked>,
    /// Kinds of what it asks for, the most fitting one first.
    pub wanted: Vec<Kind>,
    /// Kinds of what lies between; empty if one relationship leads to what is asked for.
    pub through: Vec<Kind>,
    /// The time that it asks about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub period: Option<AskedPeriod>,
}

/// Words that name something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NameAsked {
    /// As the question has it.
    #[schema(example = "Sandworm")]
    pub text: String,
    /// The nodes that it names.
    pub nodes: Vec<Uuid>,
}

/// A time; without one of its ends it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct AskedPeriod {
    /// Its first instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "2021-01-01T00:00:00Z")]
    pub since: Option<DateTime<Utc>>,
    /// The first instant after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "2022-01-01T00:00:00Z")]
    pub until: Option<DateTime<Utc>>,
}

impl QuestionAsked {
    /// What a plan asks for, given what the question names.
    pub fn of(plan: &QuestionPlan, names: Vec<NameAsked>) -> Self {
        QuestionAsked {
            names,
            wanted: plan.wanted.clone(),
            through: plan.through.clone(),
            period: plan.period.map(AskedPeriod::from),
        }
    }
}

impl From<Period> for AskedPeriod {
    fn from(period: Period) -> Self {
        AskedPeriod {
            since: period.from,
            until: period.until,
        }
    }
}
