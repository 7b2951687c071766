//! What a model answered: checked against the schema, cut to its limits, and nothing beyond.
//!
//! Fields that are not in the schema are dropped before anything looks at them, so an answer can't bring a marking,
//! an id or a status with it.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde::Deserialize;
use serde_json::Value;

use super::prompt::SCHEMA;
use crate::domain::node::NodeType;

/// Entities of one text.
pub const MAX_ENTITIES: usize = 500;
/// Relations of one text.
pub const MAX_RELATIONS: usize = 1000;
/// Characters.
pub const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 2000;
const MAX_QUOTE: usize = 1000;
const MAX_REASONING: usize = 500;
const MAX_ALIASES: usize = 10;
/// Characters of a complaint that the model, and maybe a person, reads.
const MAX_COMPLAINT: usize = 300;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Answer {
    pub entities: Vec<AnswerEntity>,
    pub relations: Vec<AnswerRelation>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AnswerEntity {
    pub name: String,
    pub node_type: NodeType,
    pub description: String,
    pub confidence: f64,
    pub quote: String,
    pub aliases: Vec<String>,
    pub reasoning: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AnswerRelation {
    pub source: String,
    pub target: String,
    pub relationship: String,
    pub quote: String,
}

static VALIDATOR: LazyLock<Option<Validator>> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).ok()?;
    jsonschema::validator_for(&schema).ok()
});

/// Reads the model's words.
///
/// # Errors
/// What is wrong with them, without quoting them.
pub fn parse(content: &str, cut_off: bool) -> Result<Answer, String> {
    let json = json_part(content);
    let mut value: Value = serde_json::from_str(json).map_err(|error| {
        let reason = if cut_off {
            "it was cut off at the length limit; list less, with shorter texts"
        } else if error.is_eof() {
            "it ends before the JSON does"
        } else {
            "it is not JSON"
        };
        format!("{reason} (line {}, column {})", error.line(), error.column())
    })?;
    prune(&mut value);
    let validator = VALIDATOR.as_ref().ok_or("the schema could not be read")?;
    if let Err(error) = validator.validate(&value) {
        let complaint = format!("{} at {}", error.masked(), error.instance_path());
        return Err(complaint.chars().take(MAX_COMPLAINT).collect());
    }
    let mut answer: Answer =
        serde_json::from_value(value).map_err(|_| "it does not fit the schema".to_owned())?;
    limit(&mut answer);
    Ok(answer)
}

/// The JSON in an answer that wraps it in a code fence or puts its thoughts before it.
fn json_part(content: &str) -> &str {
    let content = content
        .rsplit_once("</think>")
        .map_or(content, |(_, after)| after)
        .trim();
    let Some(fenced) = content.strip_prefix("```") else {
        return content;
    };
    let body = fenced.strip_prefix("json").unwrap_or(fenced);
    body.trim_end().strip_suffix("```").unwrap_or(body).trim()
}

/// Drops whatever has no place in the schema: local servers don't all hold a model to it.
fn prune(value: &mut Value) {
    keep(value, &["entities", "relations"]);
    for (list, fields) in [
        (
            "entities",
            &[
                "name",
                "node_type",
                "description",
                "confidence",
                "quote",
                "aliases",
                "reasoning",
            ][..],
        ),
        ("relations", &["source", "target", "relationship", "quote"]),
    ] {
        let items = value.get_mut(list).and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(|item| keep(item, fields));
    }
}

fn keep(value: &mut Value, fields: &[&str]) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|key, _| fields.contains(&key.as_str()));
    }
}

fn limit(answer: &mut Answer) {
    answer.entities.truncate(MAX_ENTITIES);
    answer.relations.truncate(MAX_RELATIONS);
    for entity in &mut answer.entities {
        entity.name = clean(&entity.name, MAX_NAME);
        entity.description = clean(&entity.description, MAX_DESCRIPTION);
        entity.quote = clean(&entity.quote, MAX_QUOTE);
        entity.reasoning = clean(&entity.reasoning, MAX_REASONING);
        entity.aliases.truncate(MAX_ALIASES);
        for alias in &mut entity.aliases {
            *alias = clean(alias, MAX_NAME);
        }
        entity.aliases.retain(|alias| !alias.is_empty());
    }
    answer.entities.retain(|entity| !entity.name.is_empty());
    for relation in &mut answer.relations {
        relation.source = clean(&relation.source, MAX_NAME);
        relation.target = clean(&relation.target, MAX_NAME);
        relation.quote = clean(&relation.quote, MAX_QUOTE);
    }
}

/// One line without control characters, and without the marks that turn the direction of what follows: a name with
/// them reads as another one.
fn clean(text: &str, max: usize) -> String {
    let turning =
        |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    let mut out = String::new();
    let mut count = 0;
    for c in text.trim().chars().filter(|c| !turning(*c)) {
        let c = if c.is_whitespace() || c.is_control() {
            ' '
        } else {
            c
        };
        if c == ' ' && out.ends_with(' ') {
            continue;
        }
        if count == max {
            break;
        }
        out.push(c);
        count += 1;
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entity() -> Value {
        json!({"name": "X-Agent", "node_type": "tool", "description": "d", "confidence": 0.9,
               "quote": "q", "aliases": [], "reasoning": "r"})
    }

    fn with(key: &str, value: Value) -> String {
        let mut entity = entity();
        entity[key] = value;
        json!({"entities": [entity], "relations": []}).to_string()
    }

    #[test]
    fn an_answer_is_read_bare_fenced_or_after_thoughts() {
        let plain = json!({"entities": [entity()], "relations": []}).to_string();
        for content in [
            plain.clone(),
            format!("```json\n{plain}\n```"),
            format!("<think>{{ hm</think>\n{plain}"),
        ] {
            assert_eq!(parse(&content, false).unwrap().entities.len(), 1, "{content}");
        }
    }

    #[test]
    fn what_breaks_the_schema_is_named_without_being_quoted() {
        for (content, want) in [
            ("sure, here it is".to_owned(), "is not JSON"),
            ("{\"entities\": [".to_owned(), "ends before"),
            ("{}".to_owned(), "\"entities\" is a required property"),
            (with("node_type", json!("secret")), "/entities/0/node_type"),
            (with("node_type", json!("osint")), "/entities/0/node_type"),
            (with("confidence", json!(7)), "/entities/0/confidence"),
            (with("confidence", json!("1")), "/entities/0/confidence"),
            (with("name", json!(null)), "/entities/0/name"),
        ] {
            let wrong = parse(&content, false).unwrap_err();
            assert!(wrong.contains(want), "{wrong}");
            assert!(!wrong.contains("secret"), "{wrong}");
        }
        assert!(
            parse("{\"entities\": [", true)
                .unwrap_err()
                .contains("cut off at the length limit")
        );
    }

    #[test]
    fn fields_of_no_schema_are_dropped() {
        let mut hostile = entity();
        hostile["proposed_tlp"] = json!("TLP:WHITE");
        hostile["status"] = json!("accepted");
        let content = json!({"entities": [hostile], "relations": [], "tlp": "TLP:WHITE", "auto": true});
        let plain = json!({"entities": [entity()], "relations": []});
        assert_eq!(
            parse(&content.to_string(), false),
            parse(&plain.to_string(), false)
        );
    }

    #[test]
    fn limits_hold() {
        let long = "x".repeat(5000);
        let mut big = entity();
        for key in ["name", "description", "quote", "reasoning"] {
            big[key] = json!(long);
        }
        big["aliases"] = json!(vec!["y".repeat(300); 20]);
        let relation = json!({"source": "a", "target": "b", "relationship": "uses", "quote": "q"});
        let content = json!({"entities": vec![big; 600], "relations": vec![relation; 2000]}).to_string();
        let answer = parse(&content, false).unwrap();
        assert_eq!(
            (answer.entities.len(), answer.relations.len()),
            (MAX_ENTITIES, MAX_RELATIONS)
        );
        let first = &answer.entities[0];
        assert_eq!((first.name.len(), first.aliases.len()), (MAX_NAME, MAX_ALIASES));
        assert!(first.description.len() <= MAX_DESCRIPTION && first.quote.len() <= MAX_QUOTE);
    }

    #[test]
    fn names_are_one_line_without_tricks() {
        let answer = parse(&with("name", json!(" X\u{202e}-\nAgent\u{0}  two ")), false).unwrap();
        assert_eq!(answer.entities[0].name, "X- Agent two");
        assert!(
            parse(&with("name", json!(" \n ")), false)
                .unwrap()
                .entities
                .is_empty()
        );
    }
}
