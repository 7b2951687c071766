//! The confidence of a model's entity, limited by the evidence in the text.

use serde_json::Value;

use super::answer::AnswerEntity;
use super::ground::{Haystack, QuotePosition, quote_names};
use crate::domain::naming::OTHER_KIND;
use crate::domain::node::NodeType;
use crate::domain::staging::{ExtractedEntity, NOT_FOUND};

/// Upper bound for any model finding, below that of an identifier in the text.
pub const MAX_CONFIDENCE: f64 = 0.9;
/// Upper bound if only the quote is in the text, not the name.
pub const MAX_INFERRED: f64 = 0.5;
/// Upper bound if neither is in the text.
pub const MAX_INVENTED: f64 = 0.2;

/// Sets a model entity's confidence, span and warnings according to the evidence in the text.
pub fn weigh_evidence(
    haystack: &Haystack,
    mut entity: ExtractedEntity,
    said: &AnswerEntity,
) -> ExtractedEntity {
    // Other names from the gazetteer don't count: the rules would have found them unless they are ordinary words.
    let own = [said.name.as_str(), entity.name.as_str()];
    let named = own.iter().find_map(|name| haystack.name(name));
    let quoted = haystack.quote(&said.quote).filter(|_| !said.quote.is_empty());
    // An identifier or indicator must appear literally; a description of it is not enough.
    let exact = matches!(entity.node_type, NodeType::Ioc | NodeType::Cve);
    let sure = said.confidence.clamp(0.0, 1.0);
    let spelled = quoted.is_some() && !exact && quote_names(&said.quote, &said.name);
    (entity.confidence, entity.span) = match (named, quoted) {
        (Some(place), _) => (sure.min(MAX_CONFIDENCE), span(place)),
        (None, Some(place)) if spelled => (sure.min(MAX_CONFIDENCE), span(place)),
        (None, Some(place)) if !exact => {
            entity
                .warnings
                .push(format!("the name is {NOT_FOUND}, only its quote is"));
            (sure.min(MAX_INFERRED), span(place))
        }
        (None, _) => {
            entity.warnings.push(NOT_FOUND.to_owned());
            (sure.min(MAX_INVENTED), None)
        }
    };
    if entity.confidence > MAX_INFERRED && is_plain_indicator(&entity) {
        entity.confidence = MAX_INFERRED;
        entity
            .warnings
            .push("the rules do not take it for an indicator in this text".to_owned());
    }
    entity
}

/// Whether this is an indicator of a kind that the rules detect, and so would have found in the text.
fn is_plain_indicator(entity: &ExtractedEntity) -> bool {
    let kind = entity.properties.get("ioc_type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind != OTHER_KIND)
}

fn span(place: QuotePosition) -> Option<(usize, usize)> {
    match place {
        QuotePosition::At(range) => Some((range.start, range.end)),
        QuotePosition::Refanged => None,
    }
}
