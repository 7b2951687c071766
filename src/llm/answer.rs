//! A model's findings in a text, checked against the requested schema and cut to their limits.

use std::sync::LazyLock;

use serde::Deserialize;

use super::client::Completion;
use super::response_schema::ResponseSchema;
use crate::domain::node::NodeType;

/// Maximum number of entities per text.
pub const MAX_ENTITIES: usize = 500;
/// Maximum number of relations per text.
pub const MAX_RELATIONS: usize = 1000;
/// Maximum lengths, in characters.
pub const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 2000;
const MAX_QUOTE: usize = 1000;
const MAX_REASONING: usize = 500;
const MAX_ALIASES: usize = 10;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ChunkAnswer {
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

/// The schema of an answer, both for the request and for the check of the response.
pub static SCHEMA: LazyLock<ResponseSchema> = LazyLock::new(|| {
    let schema = include_str!("../../schemas/extraction.json");
    ResponseSchema::new("extraction", serde_json::from_str(schema).unwrap_or_default())
});

/// Parses the model's output.
///
/// # Errors
/// What is wrong with it, without quoting it.
pub fn parse(completion: &Completion) -> Result<ChunkAnswer, String> {
    let mut answer: ChunkAnswer = SCHEMA.parse(completion)?;
    limit(&mut answer);
    Ok(answer)
}

fn limit(answer: &mut ChunkAnswer) {
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

/// Collapses the text into one line and removes control and bidirectional formatting characters, which could disguise a
/// name as another one.
pub(super) fn clean(text: &str, max: usize) -> String {
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
    use serde_json::{Value, json};

    use super::*;

    fn parse(content: &str, cut_off: bool) -> Result<ChunkAnswer, String> {
        super::parse(&Completion {
            content: content.to_owned(),
            cut_off,
        })
    }

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
