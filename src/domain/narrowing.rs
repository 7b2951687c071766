//! The filters that a caller may set on the results of a recall. They narrow what is found; they never widen what the
//! caller may see.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use utoipa::openapi::schema::{AnyOfBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::confidence::Confidence;
use super::error::DomainError;
use super::moment::{DayBound, moment};
use super::node::{KgNode, NodeType};
use super::schema::{self, text_schema};

/// Longest name of a STIX type (STIX 2.1 section 3.2), and most of them in a request.
const MAX_STIX_TYPE: usize = 250;
const MAX_STIX_TYPES: usize = 20;

/// Longest source, in characters.
const MAX_SOURCE: usize = 500;

const NODE_TYPE: &str = "node_type";
const STIX_TYPE: &str = "stix_type";
const SOURCE: &str = "source";
const SINCE: &str = "since";
const UNTIL: &str = "until";
const MIN_CONFIDENCE: &str = "min_confidence";

text_schema! {
    /// A source as the nodes name it; case and white space around it do not matter.
    SourceName, (1, MAX_SOURCE), schema::NOT_BLANK, "The MITRE Corporation"
}

/// Stands for the schema of a day in UTC or a time.
#[derive(Debug)]
pub enum DayOrTime {}

impl PartialSchema for DayOrTime {
    fn schema() -> RefOr<Schema> {
        let text = |format| {
            let text = ObjectBuilder::new().schema_type(Type::String);
            text.format(Some(SchemaFormat::KnownFormat(format)))
        };
        let either = AnyOfBuilder::new().item(text(KnownFormat::Date));
        let either = either.item(text(KnownFormat::DateTime));
        either
            .description(Some("A day in UTC, or an RFC 3339 time."))
            .into()
    }
}

impl ToSchema for DayOrTime {}

/// Conditions that every result meets; by default none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Narrowing {
    /// `None` means every type.
    pub node_types: Option<Vec<NodeType>>,
    /// Types of STIX objects; `None` means every node, STIX or not.
    pub stix_types: Option<Vec<String>>,
    pub source: Option<SourceFilter>,
    /// First time of ingest.
    pub since: Option<DateTime<Utc>>,
    /// Last time of ingest.
    pub until: Option<DateTime<Utc>>,
    pub min_confidence: Option<f64>,
}

/// A source, compared without regard to case and white space around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFilter {
    given: String,
    folded: String,
}

impl SourceFilter {
    fn of(text: &str) -> Self {
        SourceFilter {
            given: text.trim().to_owned(),
            folded: fold_source(text),
        }
    }

    /// The text that [`fold_source`] makes of the source.
    pub fn folded(&self) -> &str {
        &self.folded
    }
}

/// How the filters are given in a request, for the description of the API.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct NarrowingParams {
    /// Only nodes of these types.
    #[param(style = Form, explode = false, min_items = 1)]
    pub node_type: Option<Vec<NodeType>>,
    /// Only STIX objects of these types.
    #[param(style = Form, explode = false, min_items = 1, max_items = 20, example = json!(["report", "sighting"]))]
    pub stix_type: Option<Vec<String>>,
    /// Only nodes with this source.
    #[param(inline)]
    pub source: Option<SourceName>,
    /// Only nodes ingested at this time or later.
    #[param(inline)]
    pub since: Option<DayOrTime>,
    /// Only nodes ingested at this time or earlier; of a day, all of it counts.
    #[param(inline)]
    pub until: Option<DayOrTime>,
    /// Only nodes of at least this confidence.
    #[param(inline)]
    pub min_confidence: Option<Confidence>,
}

/// The form in which sources are compared.
pub fn fold_source(source: &str) -> String {
    source.trim().to_lowercase()
}

impl Narrowing {
    /// Reads the filters from the parameters of a request.
    ///
    /// # Errors
    /// When a parameter is not of its form, or `since` is after `until`.
    pub fn read<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<Self, DomainError> {
        let narrowing = Narrowing {
            node_types: given(NODE_TYPE).map(node_types).transpose()?,
            stix_types: given(STIX_TYPE).map(stix_types).transpose()?,
            source: given(SOURCE).map(source).transpose()?,
            since: given(SINCE)
                .map(|text| time(SINCE, text, DayBound::First))
                .transpose()?,
            until: given(UNTIL)
                .map(|text| time(UNTIL, text, DayBound::Last))
                .transpose()?,
            min_confidence: given(MIN_CONFIDENCE).map(confidence).transpose()?,
        };
        match (narrowing.since, narrowing.until) {
            (Some(since), Some(until)) if since > until => {
                Err(DomainError::invalid(SINCE, "must not be after until"))
            }
            _ => Ok(narrowing),
        }
    }

    /// Whether nothing is filtered.
    pub fn is_empty(&self) -> bool {
        *self == Narrowing::default()
    }

    /// Whether nodes of this type may be results.
    pub fn allows(&self, node_type: NodeType) -> bool {
        self.node_types
            .as_ref()
            .is_none_or(|types| types.contains(&node_type))
    }

    /// Whether a node may be a result.
    pub fn admits(&self, node: &KgNode) -> bool {
        let stix_type = || node.properties.get("stix_type").and_then(Value::as_str);
        self.allows(node.node_type)
            && self
                .stix_types
                .as_ref()
                .is_none_or(|types| types.iter().any(|asked| Some(asked.as_str()) == stix_type()))
            && self
                .source
                .as_ref()
                .is_none_or(|source| fold_source(&node.source) == source.folded)
            && self.since.is_none_or(|since| node.ingested_at >= since)
            && self.until.is_none_or(|until| node.ingested_at <= until)
            && self.min_confidence.is_none_or(|least| node.confidence >= least)
    }

    /// The source that was asked for.
    pub fn source_filter(&self) -> Option<&str> {
        self.source.as_ref().map(|source| source.given.as_str())
    }

    /// The other filters that were given, with their names, for the audit log.
    pub fn active_filters(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let time = |time: DateTime<Utc>| json!(time.to_rfc3339_opts(SecondsFormat::AutoSi, true));
        let all = [
            (NODE_TYPE, self.node_types.as_ref().map(|types| json!(types))),
            (STIX_TYPE, self.stix_types.as_ref().map(|types| json!(types))),
            (SINCE, self.since.map(time)),
            (UNTIL, self.until.map(time)),
            (MIN_CONFIDENCE, self.min_confidence.map(|least| json!(least))),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

fn node_types(text: &str) -> Result<Vec<NodeType>, DomainError> {
    let mut types: Vec<NodeType> = Vec::new();
    for name in text.split(',') {
        let node_type = name
            .parse()
            .map_err(|rule: &str| DomainError::invalid(NODE_TYPE, format!("each {rule}")))?;
        if !types.contains(&node_type) {
            types.push(node_type);
        }
    }
    Ok(types)
}

/// Whether a text is the name of a STIX type (STIX 2.1 section 3.2).
pub fn is_stix_type(name: &str) -> bool {
    (3..=MAX_STIX_TYPE).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn stix_types(text: &str) -> Result<Vec<String>, DomainError> {
    let mut types: Vec<String> = Vec::new();
    for name in text.split(',') {
        if !is_stix_type(name) {
            let rule = "each must be the name of a STIX type, such as report or ipv4-addr";
            return Err(DomainError::invalid(STIX_TYPE, rule));
        }
        if !types.iter().any(|known| known == name) {
            types.push(name.to_owned());
        }
    }
    if types.len() > MAX_STIX_TYPES {
        return Err(DomainError::invalid(
            STIX_TYPE,
            format!("must name at most {MAX_STIX_TYPES} types"),
        ));
    }
    Ok(types)
}

fn source(text: &str) -> Result<SourceFilter, DomainError> {
    let length = text.trim().chars().count();
    if !(1..=MAX_SOURCE).contains(&length) {
        let rule = format!("must have from 1 to {MAX_SOURCE} characters");
        return Err(DomainError::invalid(SOURCE, rule));
    }
    if text.contains('\0') {
        return Err(DomainError::invalid(SOURCE, "must not hold a NUL character"));
    }
    Ok(SourceFilter::of(text))
}

fn time(name: &str, text: &str, end: DayBound) -> Result<DateTime<Utc>, DomainError> {
    let rule = "must be a date such as 2024-03-01 or an RFC 3339 date-time";
    // An unescaped `+` arrives as a space.
    moment(&text.replace(' ', "+"), end).ok_or_else(|| DomainError::invalid(name, rule))
}

fn confidence(text: &str) -> Result<f64, DomainError> {
    let wrong = |rule: &str| DomainError::invalid(MIN_CONFIDENCE, rule);
    let number: f64 = text.parse().map_err(|_| wrong("must be a number from 0 to 1"))?;
    Confidence::try_from(number).map(Confidence::value).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<Narrowing, String> {
        let value = |name: &str| given.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        Narrowing::read(value).map_err(|error| error.to_string())
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn each_filter_is_read() {
        let all = read(&[
            ("node_type", "tool,actor,tool"),
            ("source", "  The MITRE Corporation "),
            ("since", "2024-03-01"),
            ("until", "2024-03-01"),
            ("min_confidence", "0.5"),
        ]);
        let all = all.unwrap();
        assert_eq!(all.node_types, Some(vec![NodeType::Tool, NodeType::Actor]));
        assert_eq!(all.source.as_ref().unwrap().folded(), "the mitre corporation");
        assert_eq!(all.since, Some(at("2024-03-01T00:00:00Z")));
        assert_eq!(all.until, Some(at("2024-03-01T23:59:59.999999999Z")));
        assert_eq!(all.min_confidence, Some(0.5));
        assert!(!all.is_empty() && read(&[]).unwrap().is_empty());
        let given: Vec<(&str, Value)> = all.active_filters().collect();
        assert_eq!(
            given,
            [
                ("node_type", json!(["tool", "actor"])),
                ("since", json!("2024-03-01T00:00:00Z")),
                ("until", json!("2024-03-01T23:59:59.999999999Z")),
                ("min_confidence", json!(0.5)),
            ]
        );
        assert_eq!(read(&[]).unwrap().active_filters().count(), 0);
    }

    #[test]
    fn times_have_offsets_and_fractions() {
        for (text, time) in [
            ("2024-03-01T02:00:00+02:00", "2024-03-01T00:00:00Z"),
            ("2024-03-01T02:00:00 02:00", "2024-03-01T00:00:00Z"),
            ("2024-03-01T00:00:00.25Z", "2024-03-01T00:00:00.25Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
        ] {
            assert_eq!(read(&[("since", text)]).unwrap().since, Some(at(time)), "{text}");
        }
        assert!(read(&[("until", "9999-12-31")]).is_ok());
        let same = "2024-03-01T00:00:00Z";
        assert!(read(&[("since", same), ("until", same)]).is_ok());
    }

    #[test]
    fn an_error_names_the_parameter_and_the_rule() {
        let long = "x".repeat(MAX_SOURCE + 1);
        let types = "node_type: each must be one of actor, cve, ioc, attck, osint, tool, vulnerability";
        let length = "source: must have from 1 to 500 characters";
        let when = |name: &str| format!("{name}: must be a date such as 2024-03-01 or an RFC 3339 date-time");
        let number = "min_confidence: must be a number from 0 to 1";
        for (name, text, error) in [
            ("node_type", "", types.to_owned()),
            ("node_type", "actor,", types.to_owned()),
            ("node_type", "actor, tool", types.to_owned()),
            ("node_type", "malware", types.to_owned()),
            ("source", " ", length.to_owned()),
            ("source", &long, length.to_owned()),
            (
                "source",
                "a\0b",
                "source: must not hold a NUL character".to_owned(),
            ),
            ("since", "", when("since")),
            ("since", "yesterday", when("since")),
            ("since", "2024-02-30", when("since")),
            ("since", "2024-3-01", when("since")),
            ("since", "+2024-3-01", when("since")),
            ("until", "2024-03-01T10:00:00", when("until")),
            ("until", "1709251200", when("until")),
            ("min_confidence", "", number.to_owned()),
            ("min_confidence", "high", number.to_owned()),
            ("min_confidence", "NaN", number.to_owned()),
            ("min_confidence", "-0.1", number.to_owned()),
            ("min_confidence", "80", number.to_owned()),
        ] {
            assert_eq!(read(&[(name, text)]), Err(error), "{name}={text}");
        }
        let crossed = read(&[("since", "2024-03-02"), ("until", "2024-03-01")]);
        assert_eq!(crossed, Err("since: must not be after until".to_owned()));
        let longest = "ß".repeat(MAX_SOURCE);
        assert!(read(&[("source", &longest)]).is_ok());
    }
}
