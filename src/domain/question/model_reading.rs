//! What a language model says that a question asks for, where the rules don't understand it.

use chrono::{DateTime, Days, NaiveDate, Utc};

use super::lexicon::List;
use super::{Kind, Logic, Period, Question, QuestionPlan, asking, connect_kinds};

/// Fewest words of a question that only a language model may understand: fewer are names and other search terms.
const MIN_WORDS: usize = 3;

/// A question as a language model understood it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelReading {
    /// What the question names, in its own words.
    pub names: Vec<String>,
    /// Kinds of the things asked for, the most fitting one first.
    pub wanted: Vec<Kind>,
    /// Kinds of the things on the way to them.
    pub through: Vec<Kind>,
    /// First and last day asked about.
    pub since: Option<NaiveDate>,
    pub until: Option<NaiveDate>,
}

impl ModelReading {
    /// What to look for, given the kinds of the things that the names stand for. `None` if nothing relates the kinds asked
    /// for to them, or the question limits its answers by neither a name nor a time.
    pub fn plan(&self, named: &[Kind]) -> Option<QuestionPlan> {
        let period = self.period();
        if self.wanted.is_empty() || (named.is_empty() && (period.is_none() || !self.names.is_empty())) {
            return None;
        }
        let through = connect_kinds(&self.wanted, self.through.clone(), named)?;
        Some(QuestionPlan {
            period_is_of_through: through.contains(&Kind::Campaign) && self.wanted != [Kind::Campaign],
            wanted: self.wanted.clone(),
            through,
            period,
            logic: Logic::default(),
        })
    }

    fn period(&self) -> Option<Period> {
        let begin = |day: NaiveDate| -> Option<DateTime<Utc>> { Some(day.and_hms_opt(0, 0, 0)?.and_utc()) };
        let period = Period {
            from: self.since.and_then(begin),
            until: self
                .until
                .and_then(|day| begin(day.checked_add_days(Days::new(1))?)),
            ..Period::default()
        };
        (period.from.is_some() || period.until.is_some()).then_some(period)
    }
}

impl Question {
    /// Whether it is a question that the rules do not understand, but a language model might.
    pub fn is_beyond_rules(&self) -> bool {
        let opens = || self.words.first().is_some_and(|word| word.is(List::Openings));
        self.words.len() >= MIN_WORDS
            && asking::asks(&self.text, &self.words)
            && (self.text.trim_end().ends_with('?') || opens())
            && !self.asks_for_related()
    }

    /// The same question with what a language model read in it.
    pub fn with_model_reading(self, meant: Option<ModelReading>) -> Self {
        Self { meant, ..self }
    }

    /// What a language model read in it, if one was asked and the rules did not understand it.
    pub fn model_reading(&self) -> Option<&ModelReading> {
        self.meant.as_ref().filter(|_| !self.asks_for_related())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_that_the_rules_do_not_understand_are_beyond_them() {
        let now = crate::clock::now();
        for (text, beyond) in [
            ("Who is leaning on Mimikatz these days?", false),
            ("Where has PsExec turned up?", true),
            ("Which groups use PsExec?", false),
            ("PsExec", false),
            ("Fancy Bear?", false),
            ("The crew leaned on PsExec and left.", false),
            ("credential dumping lsass memory", false),
        ] {
            assert_eq!(Question::read(text, now).is_beyond_rules(), beyond, "{text}");
        }
    }

    #[test]
    fn a_plan_needs_a_known_name_or_a_time() {
        let meant = ModelReading {
            names: vec!["PsExec".into()],
            wanted: vec![Kind::Group],
            ..ModelReading::default()
        };
        let plan = meant.plan(&[Kind::Software]).unwrap();
        assert_eq!((plan.wanted, plan.through), (vec![Kind::Group], vec![]));
        assert_eq!(meant.plan(&[]), None, "the name is unknown");
        let since = NaiveDate::from_ymd_opt(2021, 3, 1);
        let timed = ModelReading {
            names: Vec::new(),
            since,
            until: since,
            ..meant
        };
        let period = timed.plan(&[]).unwrap().period.unwrap();
        assert_eq!((period.until.unwrap() - period.from.unwrap()).num_days(), 1);
        let mitigations = ModelReading {
            wanted: vec![Kind::Mitigation],
            ..ModelReading::default()
        };
        assert_eq!(
            mitigations.plan(&[Kind::Group]).unwrap().through,
            [Kind::Technique],
            "by way of what the group uses"
        );
    }
}
