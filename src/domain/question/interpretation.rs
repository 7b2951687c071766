//! A question as it was understood, told to a caller who asks for it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{AskedTime, Combination, ContextPlan, Kind, Period, QuestionPlan, TimeOrder};

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
    /// The order by time that it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order: Option<TimeOrder>,
    /// How what it names is combined, unless things related to any of it answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub combination: Option<CombinationAsked>,
    /// A word by which it denies or excepts something that was not understood: it was answered by words and meaning alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "without")]
    pub not_understood: Option<String>,
}

/// How a question combines what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CombinationAsked {
    /// What is related to all of it answers: "both A and B".
    All,
    /// What is related to none of it answers: "do not use A".
    None,
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
            order: None,
            combination: CombinationAsked::of(plan.logic.combination),
            not_understood: None,
        }
    }

    /// What a plan asks for among the objects that give context, given what the question names.
    pub fn of_context(plan: &ContextPlan, names: Vec<NameAsked>) -> Self {
        QuestionAsked {
            names,
            wanted: plan.wanted.clone(),
            through: plan.through(),
            period: plan.period.map(AskedPeriod::from),
            order: None,
            combination: CombinationAsked::of(plan.logic.combination),
            not_understood: None,
        }
    }

    /// A question that asks for a time or compares, given what it names.
    pub fn of_time(time: AskedTime, names: Vec<NameAsked>) -> Self {
        QuestionAsked {
            names,
            wanted: Vec::new(),
            through: Vec::new(),
            period: time.period.map(AskedPeriod::from),
            order: time.order,
            combination: None,
            not_understood: None,
        }
    }

    /// A question with a word that denies something in a way that is not understood.
    pub fn denied(word: &str, names: Vec<NameAsked>) -> Self {
        QuestionAsked {
            names,
            wanted: Vec::new(),
            through: Vec::new(),
            period: None,
            order: None,
            combination: None,
            not_understood: Some(word.to_owned()),
        }
    }
}

impl CombinationAsked {
    /// The combination, unless it is the usual one.
    pub fn of(combination: Combination) -> Option<Self> {
        match combination {
            Combination::Any => None,
            Combination::All => Some(Self::All),
            Combination::None => Some(Self::None),
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
