//! Turns received STIX objects into items for review.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::domain::packing::{unpack, unpacked_size};
use crate::domain::stix::ingest::{
    Markings, SkippedSize, SkipsByMarking, StixNode, StixPlan, StixRelationship, StixSupport,
};
use crate::domain::stix::marking::{self, Conflict, ObjectMarking};
use crate::domain::stix::object::{flag, type_of_id};
use crate::domain::tlp::Tlp;

/// Markings that one warning names at most.
const MAX_MARKINGS: usize = 3;
/// Undefined markings that an item may wait for.
const MAX_UNDEFINED: usize = 50;
/// Start of the warning about undefined markings, by which a later definition finds it.
const UNDEFINED: &str = "undefined marking: ";
/// Start of the warning about two levels.
const CONFLICT: &str = "two markings: ";
/// The warning about an object without a marking.
const UNMARKED: &str = "states no marking: the default of the feed is proposed";

/// An object to be staged.
#[derive(Debug, Clone)]
pub struct StagedObject {
    pub stix_id: String,
    pub name: String,
    pub modified: DateTime<Utc>,
    /// Ends of a relationship.
    pub ends: Option<(String, String)>,
    pub marking: ProposedMarking,
    pub warnings: Vec<String>,
    /// The packed object.
    pub raw: Vec<u8>,
}

/// The marking proposed for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedMarking {
    pub tlp: Tlp,
    /// The part of it that the object itself states.
    pub stated: Option<Tlp>,
    /// Its undefined markings.
    pub undefined: Vec<String>,
    /// What it says of itself and what its markings say, where these differ.
    pub conflict: Option<Conflict>,
}

/// A page or bundle, ready to be staged.
#[derive(Debug, Clone, Default)]
pub struct StagedPage {
    pub objects: Vec<StagedObject>,
    /// Markings, identities and other objects that items refer to.
    pub support: Vec<StixSupport>,
    pub skips: SkipsByMarking,
}

impl StagedObject {
    /// Size of the object as JSON text in bytes.
    pub fn bytes(&self) -> usize {
        unpacked_size(&self.raw)
    }

    /// Keeps the marking of the stored version, if this one would be marked lower and states no marking.
    pub fn keep_marking_of_stored(&mut self, stored: Tlp) {
        if self.marking.stated.is_none() && self.marking.tlp < stored {
            self.marking.tlp = stored;
            self.warnings.retain(|warning| warning != UNMARKED);
            self.warnings.push(format!(
                "states no marking: {stored} of the stored version is proposed"
            ));
        }
    }
}

impl StagedPage {
    /// Skips objects that name so many undefined markings that waiting for them would be a burden.
    pub fn drop_overmarked(&mut self) {
        let skips = &mut self.skips;
        self.objects.retain(|object| {
            let fits = object.marking.undefined.len() <= MAX_UNDEFINED;
            if !fits {
                let reason = format!("object_marking_refs: more than {MAX_UNDEFINED} undefined markings");
                let size = SkippedSize {
                    tlp: object.marking.tlp,
                    bytes: object.bytes(),
                };
                skips.add_invalid(size, stix_type(&object.stix_id), &object.stix_id, reason);
            }
            fits
        });
    }
}

/// Makes items of planned objects.
#[derive(Debug, Clone)]
pub struct Stager {
    /// The markings known to the workspace, to the feed, and in what was received.
    pub markings: Markings,
    /// Marking of objects that state none.
    pub default_tlp: Tlp,
}

impl Stager {
    /// A page as a whole.
    pub fn page(&self, plan: StixPlan) -> StagedPage {
        let nodes = plan.nodes.into_iter().map(|node| self.node(node));
        let edges = plan.relationships.into_iter().map(|edge| self.relationship(edge));
        let mut page = StagedPage {
            objects: nodes.chain(edges).collect(),
            support: plan.supporting,
            skips: plan.skips,
        };
        page.drop_overmarked();
        page
    }

    /// The item of an object that would become a node.
    pub fn node(&self, node: StixNode) -> StagedObject {
        self.item(StagedObject {
            stix_id: node.stix_id,
            name: node.name,
            modified: node.modified,
            ends: None,
            marking: ProposedMarking::HIDDEN,
            warnings: Vec::new(),
            raw: node.raw,
        })
    }

    /// The item of a relationship.
    pub fn relationship(&self, edge: StixRelationship) -> StagedObject {
        self.item(StagedObject {
            stix_id: edge.stix_id,
            name: edge.relationship,
            modified: edge.modified,
            ends: Some((edge.source_ref, edge.target_ref)),
            marking: ProposedMarking::HIDDEN,
            warnings: Vec::new(),
            raw: edge.raw,
        })
    }

    fn item(&self, mut item: StagedObject) -> StagedObject {
        let object = unpack(&item.raw).unwrap_or_default();
        item.marking = propose_marking(&object, &self.markings, self.default_tlp);
        item.warnings = item.marking.warnings();
        if flag(&object, "revoked") || flag(&object, "x_mitre_deprecated") {
            let warning = "withdrawn by its author: committing it hides its node or edge";
            item.warnings.push(warning.to_owned());
        }
        item
    }
}

/// The marking to propose for a validated object. One that can't be read is RED.
pub fn propose_marking(object: &Map<String, Value>, markings: &Markings, default: Tlp) -> ProposedMarking {
    let Ok(ObjectMarking {
        tlp,
        stated,
        undefined,
        conflict,
        ..
    }) = marking::object_marking(object, markings, default)
    else {
        return ProposedMarking::HIDDEN;
    };
    ProposedMarking {
        tlp,
        stated,
        undefined,
        conflict,
    }
}

impl ProposedMarking {
    /// The strictest marking there is.
    const HIDDEN: Self = Self {
        tlp: Tlp::Red,
        stated: Some(Tlp::Red),
        undefined: Vec::new(),
        conflict: None,
    };

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.undefined.is_empty() {
            let named: Vec<&str> = self
                .undefined
                .iter()
                .take(MAX_MARKINGS)
                .map(String::as_str)
                .collect();
            warnings.push(format!("{UNDEFINED}{}", named.join(", ")));
        } else if self.stated.is_none() {
            warnings.push(UNMARKED.to_owned());
        }
        if let Some(conflict) = self.conflict {
            warnings.push(format!("{CONFLICT}{conflict}"));
        }
        warnings
    }

    /// Says why an item keeps a stricter marking than it has by itself.
    pub fn note_kept(&self, kept: Tlp, warnings: &mut Vec<String>) {
        if kept > self.tlp {
            warnings.retain(|warning| warning != UNMARKED);
            warnings.push(format!(
                "{kept} stays proposed: the marking that was defined later states no level"
            ));
        }
    }

    /// Brings an item's warnings up to date when one of its markings has been defined.
    pub fn renew(&self, warnings: &mut Vec<String>) {
        let renewed = [UNDEFINED, CONFLICT, UNMARKED];
        warnings.retain(|warning| !renewed.iter().any(|start| warning.starts_with(start)));
        warnings.extend(self.warnings());
    }
}

/// The type of a staged object.
pub fn stix_type(stix_id: &str) -> &str {
    type_of_id(stix_id).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RED: &str = "marking-definition--5e57c739-391a-4eb3-b6be-7d15ca92d5ed";
    const LICENCE: &str = "marking-definition--11111111-1111-4111-8111-111111111111";

    fn proposal(object: Value, known: &Markings) -> ProposedMarking {
        propose_marking(object.as_object().unwrap(), known, Tlp::Green)
    }

    #[test]
    fn an_item_is_marked_by_the_rules_of_an_ingest_and_says_what_is_odd() {
        let unknown = Markings::new();
        let conflict = proposal(
            json!({"labels": ["tlp:white"], "object_marking_refs": [RED]}),
            &unknown,
        );
        assert_eq!((conflict.tlp, conflict.stated), (Tlp::Red, Some(Tlp::Red)));
        let warnings = conflict.warnings();
        assert_eq!(
            warnings,
            ["two markings: labels says TLP:WHITE, and its markings say TLP:RED: TLP:RED counts"]
        );

        let marked = json!({"object_marking_refs": [LICENCE]});
        let undefined = proposal(marked.clone(), &unknown);
        let mut warnings = undefined.warnings();
        assert_eq!(undefined.tlp, Tlp::Amber);
        assert_eq!(warnings, [format!("undefined marking: {LICENCE}")]);
        let defined = proposal(marked, &Markings::from([(LICENCE.to_owned(), None)]));
        defined.renew(&mut warnings);
        assert_eq!(warnings, [UNMARKED]);
        defined.note_kept(Tlp::Amber, &mut warnings);
        assert_eq!(
            warnings,
            ["TLP:AMBER stays proposed: the marking that was defined later states no level"]
        );
    }
}
