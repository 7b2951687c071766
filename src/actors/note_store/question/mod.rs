//! Questions that ask for related things: what they name, and what they ask for.

mod evidence;
mod walk;

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

pub(super) use self::evidence::{Level, NoteAnswer, QuestionAnswers};
use self::walk::Walk;
use super::graph::{MemoryGraph, Slot};
use crate::domain::extraction::Gazetteer;
use crate::domain::kinds::EntityKind;
use crate::domain::node::NodeType;
use crate::domain::question::{
    Combination, Kind, ModelReading, Name, Question, QuestionPlan, Role, name_similarity,
};

/// Most entities of a type that are compared with the words of a question that names nothing.
const COMPARED: usize = 5_000;
/// Bytes of a word by which entities are chosen for that comparison; shorter words are never alike.
const BEGINNING: usize = 3;

/// What a question names and asks for.
#[derive(Debug, Clone)]
pub(super) struct GraphQuestion {
    pub(super) names: Vec<NamedEntities>,
    pub(super) plan: QuestionPlan,
}

/// Words of a question, and the entities that they name.
#[derive(Debug, Clone)]
pub(super) struct NamedEntities {
    pub(super) words: Range<usize>,
    pub(super) text: String,
    pub(super) entities: Vec<Slot>,
}

impl MemoryGraph {
    /// What a question asks for; `None` if it doesn't ask for things related to what it names, or of a time.
    pub(super) fn understand(&self, reading: &Question) -> Option<GraphQuestion> {
        let mut names = self.names_in(reading);
        let mut known = self.kinds_of(&names);
        if known.is_empty() {
            names = self.find_subject_entity(reading).into_iter().collect();
            known = self.kinds_of(&names);
        }
        let plan = reading.plan(&known)?;
        Some(GraphQuestion { names, plan })
    }

    /// A word by which a question denies or excepts something that the rules don't understand.
    pub(super) fn denial_in(&self, question: &Question) -> Option<String> {
        let names = self.kinds_of(&self.names_in(question));
        question.denial(&names).map(str::to_owned)
    }

    /// Walks from each part of what a question names, and combines where the walks lead. With the answers comes what is
    /// their opposite.
    fn walk_by_logic(&self, asked: &GraphQuestion) -> (Walk, HashSet<Slot>) {
        let mut barred = HashSet::new();
        let logic = &asked.plan.logic;
        let words: Vec<Range<usize>> = asked.names.iter().map(|name| name.words.clone()).collect();
        let mut answers = Walk::from_named(&asked.plan, []);
        for (role, places) in logic.walks(&words) {
            let named = places.iter().filter_map(|place| asked.names.get(*place));
            let slots = named.flat_map(|name| &name.entities);
            let kind_of_slot = |slot: &Slot| kind_of(&self.entity_in(*slot)?.entity_type);
            let mut walk = Walk::from_named(
                &asked.plan,
                slots.filter_map(|slot| Some((*slot, kind_of_slot(slot)?))),
            );
            // Where the graph does not know the time of a relationship, the notes on it do.
            while walk.proceed(self).is_some() {}
            let found = walk.found();
            match role {
                Role::Answers if logic.combination == Combination::None => {
                    answers.reach(self.entities_of_kinds(&asked.plan.wanted));
                    answers.retain(|entity| !found.contains(&entity));
                    barred.extend(found);
                }
                Role::Answers => answers = walk,
                Role::Required => answers.retain(|entity| found.contains(&entity)),
                Role::Barred => {
                    answers.retain(|entity| !found.contains(&entity));
                    barred.extend(found);
                }
            }
        }
        if !logic.is_plain() {
            // Names that are excepted answer nothing, and neither does what else is named.
            let named: Vec<Slot> = asked
                .names
                .iter()
                .flat_map(|name| &name.entities)
                .copied()
                .collect();
            answers.retain(|entity| !named.contains(&entity));
        }
        (answers, barred)
    }

    /// Entities of these kinds, of each type a bounded number.
    fn entities_of_kinds(&self, kinds: &[Kind]) -> Vec<(Slot, Kind, f64)> {
        let types = kinds.iter().flat_map(|kind| kind.node_types());
        let types: BTreeSet<&str> = types.flat_map(|of_type| types_of(*of_type)).copied().collect();
        let mut found = Vec::new();
        for entity_type in types {
            let entities = self.entities_of_type(entity_type).take(COMPARED);
            found.extend(
                entities.filter_map(|(slot, entity)| {
                    Some((slot, kind_of(&entity.entity_type)?, entity.confidence))
                }),
            );
        }
        found
    }

    /// What a question asks for that a language model read.
    pub(super) fn understand_model_reading(&self, meant: &ModelReading) -> Option<GraphQuestion> {
        let named = |name: &String| NamedEntities {
            words: 0..0,
            text: name.clone(),
            entities: self.entities_named(name),
        };
        let names: Vec<NamedEntities> = meant.names.iter().map(named).collect();
        let kinds = self.kinds_of(&names).into_iter().flat_map(|name| name.kinds);
        let plan = meant.plan(&kinds.collect::<Vec<Kind>>())?;
        Some(GraphQuestion { names, plan })
    }

    /// The entities with this name, or another name of the same thing.
    fn entities_named(&self, name: &str) -> Vec<Slot> {
        let entities = self.slots_named([name]);
        if !entities.is_empty() {
            return entities;
        }
        let entry = Gazetteer::shared().resolve(name);
        self.slots_named(entry.into_iter().flat_map(|entry| entry.names()))
    }

    fn kinds_of(&self, names: &[NamedEntities]) -> Vec<Name> {
        let name = |named: &NamedEntities| {
            let mut kinds: Vec<Kind> = Vec::new();
            let entities = named.entities.iter().filter_map(|slot| self.entity_in(*slot));
            for kind in entities.filter_map(|entity| kind_of(&entity.entity_type)) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            (!kinds.is_empty()).then(|| Name {
                words: named.words.clone(),
                kinds,
            })
        };
        names.iter().filter_map(name).collect()
    }

    /// The entities whose names stand in a question; longer names first, and no word twice.
    pub(super) fn names_in(&self, reading: &Question) -> Vec<NamedEntities> {
        let mut named: Vec<NamedEntities> = Vec::new();
        for candidate in reading.candidates() {
            let is_taken = |other: &NamedEntities| {
                other.words.start < candidate.words.end && candidate.words.start < other.words.end
            };
            if named.iter().any(is_taken) {
                continue;
            }
            let entities = self.entities_named(candidate.text);
            if !entities.is_empty() {
                named.push(NamedEntities {
                    words: candidate.words,
                    text: candidate.text.to_owned(),
                    entities,
                });
            }
        }
        named
    }

    /// The entity that a question means but does not name in full: "credential dumping" is OS Credential Dumping.
    fn find_subject_entity(&self, reading: &Question) -> Option<NamedEntities> {
        let subject = reading.subject();
        let beginnings: Vec<&str> = subject.iter().filter_map(|word| word.get(..BEGINNING)).collect();
        let mut best: Option<(f32, Slot)> = None;
        for entity_type in reading.subject_types().iter().flat_map(|kind| types_of(*kind)) {
            for (slot, entity) in self.entities_of_type(entity_type).take(COMPARED) {
                let may_be = beginnings.iter().any(|word| entity.value.contains(word));
                if !may_be && entity.aliases().is_empty() {
                    continue;
                }
                let alike = name_similarity(&subject, entity.all_names());
                if alike > best.map_or(0.0, |(alike, _)| alike) {
                    best = Some((alike, slot));
                }
            }
        }
        let (_, slot) = best?;
        Some(NamedEntities {
            words: reading.subject_words(),
            text: subject.join(" "),
            entities: vec![slot],
        })
    }
}

/// The kind of an entity as questions ask for it; `None` for one that no question asks for.
fn kind_of(entity_type: &str) -> Option<Kind> {
    match EntityKind::of_local(entity_type) {
        Some(kind) => kind.row().asked,
        None if entity_type == "vulnerability" => Some(Kind::Vulnerability),
        None => is_sponsor(entity_type).then_some(Kind::Group),
    }
}

/// Whether an entity of this type is an indicator, such as an address or the name of a file.
pub(super) fn is_indicator(entity_type: &str) -> bool {
    kind_of(entity_type) == Some(Kind::Indicator)
}

/// Whether groups can be attributed to an entity of this type, though nobody calls it a group.
fn is_sponsor(entity_type: &str) -> bool {
    matches!(entity_type, "organization" | "person" | "identity")
}

/// The types of the entities that are nodes of this type and have names of words.
fn types_of(node_type: NodeType) -> &'static [&'static str] {
    match node_type {
        NodeType::Actor => &["actor", "campaign"],
        NodeType::Tool => &["malware", "tool"],
        NodeType::Attck => &["attack_pattern", "course_of_action"],
        NodeType::Vulnerability => &["vulnerability"],
        NodeType::Cve | NodeType::Ioc | NodeType::Osint => &[],
    }
}
