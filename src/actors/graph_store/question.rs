//! Answers from the graph: what a question asks for, one or two steps from what it names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::documents::context_kind;
use super::recall::{NodeSet, Search, filter_containing};
use super::walk::{Answer, Walk};
use super::why::GraphAnswer;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::node::KgNode;
use crate::domain::passage::readable_part;
use crate::domain::question::{
    Combination, Description, Kind, ModelReading, Name, NameAsked, NameCandidate, Question, QuestionAsked,
    QuestionPlan, Role, name_similarity,
};
use crate::search::{Filter, Mode, WorkspaceIndex};

/// Nodes that are compared with the words of a question that names nothing: so many with some of the words in their
/// names, and so many of like meaning.
const ALIKE: usize = 6;
/// Groups that a question may describe, the best ones.
const DESCRIBED: usize = 50;

/// Words of a question, and the nodes that they name.
pub(super) type NamedNodes = Vec<(Range<usize>, Vec<Uuid>)>;

/// Tells what a node counts as.
type KindOf = fn(&KgNode) -> Option<Kind>;

/// A question that the graph can answer.
struct GraphQuestion {
    plan: QuestionPlan,
    /// What a node that is named counts as.
    kind_of: KindOf,
    /// The nodes that it names.
    nodes: HashMap<Uuid, KgNode>,
    /// Its names, each with the nodes that are meant, and their words.
    names: Vec<NameAsked>,
    words_of_names: Vec<Range<usize>>,
    /// Its other words, which decide among answers that fit equally well.
    words: String,
}

impl GraphQuestion {
    /// These nodes with their kinds, in a fixed order.
    fn kinds(&self, nodes: &HashMap<Uuid, KgNode>) -> Vec<(Uuid, Kind)> {
        let kinds = nodes
            .iter()
            .filter_map(|(id, node)| Some((*id, (self.kind_of)(node)?)));
        let mut kinds: Vec<(Uuid, Kind)> = kinds.collect();
        kinds.sort_unstable_by_key(|(id, _)| *id);
        kinds
    }
}

/// What was read in a question.
enum GraphReading {
    Question(GraphQuestion),
    /// It denies something in a way that the rules don't understand: what is related to its names may be the opposite of
    /// what it asks for.
    Denial(QuestionAsked),
    /// It asks for nothing related to what it names, or of a time.
    Nothing,
}

impl GraphCore {
    /// The nodes that a question asks for by their relationships to what it names, or by a time. None if it asks for
    /// nothing of the kind or the graph has no answer.
    pub(super) async fn answer_question(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphAnswer, DomainError> {
        let question = &ask.question;
        if let Some(answer) = self.answer_from_changes(ask, target).await? {
            return Ok(answer);
        }
        if let Some(answer) = self.answer_from_context(ask, target).await? {
            return Ok(answer);
        }
        let asked = match question.model_reading() {
            Some(meant) => self.understand_model_reading(meant, ask, target).await?,
            None if question.asks_for_related() => self.understand(question, ask, target).await?,
            None => GraphReading::Nothing,
        };
        let asked = match asked {
            GraphReading::Question(asked) => asked,
            GraphReading::Denial(denial) => {
                return Ok(GraphAnswer {
                    question: ask.explain.then_some(denial),
                    is_final: true,
                    ..GraphAnswer::default()
                });
            }
            GraphReading::Nothing => return Ok(GraphAnswer::default()),
        };
        let (mut walk, barred) = self.walk_by_logic(ask, &asked, target).await?;
        // Where words decide among equal answers, all are needed.
        let most = if asked.words.is_empty() {
            ask.limit
        } else {
            usize::MAX
        };
        let mut answers = walk.answers(most);
        if answers.len() > 1 {
            self.rank_by_words(ask, target, asked.words, &mut answers).await?;
        }
        let answer = self.confirm_ways(ask, &walk, &answers).await?;
        let question = || QuestionAsked::of(&asked.plan, asked.names);
        let is_final = !asked.plan.logic.is_plain();
        Ok(GraphAnswer {
            question: ask.explain.then(question),
            is_final,
            barred,
            ..answer
        })
    }

    /// Walks from each part of what a question names, and combines where the walks lead. With the answers comes what is
    /// their opposite.
    async fn walk_by_logic(
        &self,
        ask: &Search,
        asked: &GraphQuestion,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<(Walk, HashSet<Uuid>), DomainError> {
        let logic = &asked.plan.logic;
        let mut barred = HashSet::new();
        if logic.is_plain() {
            let walk = self
                .walk(ask, &asked.plan, asked.kinds(&asked.nodes), target)
                .await?;
            return Ok((walk, barred));
        }
        let mut answers: Option<Walk> = None;
        for (role, places) in logic.walks(&asked.words_of_names) {
            let named = places.iter().filter_map(|place| asked.names.get(*place));
            let ids = named.flat_map(|name| &name.nodes);
            let nodes: HashMap<Uuid, KgNode> = ids
                .filter_map(|id| Some((*id, asked.nodes.get(id)?.clone())))
                .collect();
            let walk = self.walk(ask, &asked.plan, asked.kinds(&nodes), target).await?;
            let found = walk.found();
            match (role, &mut answers) {
                (Role::Answers, _) if logic.combination == Combination::None => {
                    let mut others = self.things_asked_for(ask, &asked.plan, target).await?;
                    others.retain(|thing| !found.contains(&thing));
                    answers = Some(others);
                    barred.extend(found);
                }
                (Role::Answers, _) => answers = Some(walk),
                (Role::Required, Some(answers)) => answers.retain(|thing| found.contains(&thing)),
                (Role::Barred, Some(answers)) => {
                    answers.retain(|thing| !found.contains(&thing));
                    barred.extend(found);
                }
                (Role::Required | Role::Barred, None) => {}
            }
        }
        let mut answers = answers.unwrap_or_else(|| Walk::from_named(&asked.plan, []));
        // Names that are excepted answer nothing, and neither does what else is named.
        answers.retain(|thing| !asked.nodes.contains_key(&thing));
        Ok((answers, barred))
    }

    /// What a question asks for.
    async fn understand(
        &self,
        reading: &Question,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphReading, DomainError> {
        let mut named = self.find_names(reading, ask, target).await?;
        let ids: Vec<Uuid> = named.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        let mut nodes = self.visible_nodes(ask, &ids).await?;
        if nodes.is_empty() {
            (named, nodes) = self.find_subject(reading, ask, target).await?;
        }
        let description = if nodes.is_empty() {
            reading.description()
        } else {
            None
        };
        if let Some(description) = &description {
            (named, nodes) = self.find_described_groups(description, ask, target).await?;
        }
        named.iter_mut().for_each(|(_, ids)| keep_meant(ids, &nodes));
        named.retain(|(_, ids)| !ids.is_empty());
        let name = |(words, ids): &(Range<usize>, Vec<Uuid>)| Name {
            words: words.clone(),
            kinds: ids.iter().filter_map(|id| kind_of_node(nodes.get(id)?)).collect(),
        };
        let names: Vec<Name> = named.iter().map(name).collect();
        let plan = if description.is_some() && !nodes.is_empty() {
            reading.plan_for_described_groups()
        } else {
            reading.plan(&names)
        };
        let words_of_names = named.iter().map(|(words, _)| words.clone()).collect();
        let asked = |(words, nodes): (Range<usize>, Vec<Uuid>)| NameAsked {
            text: reading.text_of(&words).unwrap_or_default().to_owned(),
            nodes,
        };
        let names_asked = named.into_iter().map(asked).collect();
        let Some(plan) = plan else {
            let denial = reading.denial(&names);
            let denied = |word| GraphReading::Denial(QuestionAsked::denied(word, names_asked));
            return Ok(denial.map_or(GraphReading::Nothing, denied));
        };
        Ok(GraphReading::Question(GraphQuestion {
            plan,
            kind_of: kind_of_node,
            nodes,
            words: reading.other_words(&names).join(" "),
            names: names_asked,
            words_of_names,
        }))
    }

    /// What a question asks for that a language model read.
    async fn understand_model_reading(
        &self,
        meant: &ModelReading,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphReading, DomainError> {
        let of_all = Search {
            filter: ask.filter.clone().of_all(),
            ..ask.clone()
        };
        let found = self
            .find_named_nodes(meant.names.clone(), &of_all, target)
            .await?;
        let ids: Vec<Uuid> = found.iter().flatten().copied().collect();
        let nodes = self.visible_nodes(ask, &ids).await?;
        let mut names: Vec<NameAsked> = Vec::new();
        for (text, mut ids) in meant.names.iter().cloned().zip(found) {
            ids.retain(|id| nodes.get(id).and_then(any_kind_of_node).is_some());
            if !ids.is_empty() {
                names.push(NameAsked { text, nodes: ids });
            }
        }
        let meant_ids = names.iter().flat_map(|name| &name.nodes);
        let kinds = meant_ids.filter_map(|id| any_kind_of_node(nodes.get(id)?));
        let plan = meant.plan(&kinds.collect::<Vec<Kind>>());
        Ok(plan.map_or(GraphReading::Nothing, |plan| {
            GraphReading::Question(GraphQuestion {
                plan,
                kind_of: any_kind_of_node,
                nodes,
                names,
                words_of_names: Vec::new(),
                words: String::new(),
            })
        }))
    }

    /// Of answers that fit equally well, puts those first that contain the other words of the question.
    async fn rank_by_words(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
        words: String,
        answers: &mut [Answer],
    ) -> Result<(), DomainError> {
        if words.is_empty() {
            return Ok(());
        }
        let among: NodeSet = answers.iter().map(|answer| answer.thing).collect();
        let (target, filter, limit) = (Arc::clone(target), ask.filter.clone(), ask.limit);
        let found = blocking(move || filter_containing(&target, among, &words, filter, limit)).await?;
        let places: HashMap<Uuid, usize> = found.into_iter().zip(0..).collect();
        answers.sort_by_cached_key(|answer| {
            let place = places.get(&answer.thing).copied();
            (answer.fit, place.unwrap_or(usize::MAX))
        });
        Ok(())
    }

    /// The visible nodes with these ids.
    pub(super) async fn visible_nodes(
        &self,
        ask: &Search,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, KgNode>, DomainError> {
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let store = &self.graph.store;
        let stored = store.nodes_by_id(ask.ws, ids, shown.0, shown.1).await?;
        let mut nodes: HashMap<Uuid, KgNode> = stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect();
        self.unite_merged(ask.ws, shown, nodes.values_mut()).await?;
        Ok(nodes)
    }

    /// What stands for these nodes.
    pub(super) async fn what_stands(&self, ask: &Search, ids: Vec<Uuid>) -> Result<Vec<Uuid>, DomainError> {
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let merges = self.merges_seen(ask.ws, shown).await?;
        Ok(merges.all_standing(ids))
    }

    /// The node that the question means but does not name in full: "credential dumping" is OS Credential Dumping.
    async fn find_subject(
        &self,
        reading: &Question,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<(NamedNodes, HashMap<Uuid, KgNode>), DomainError> {
        let subject: Vec<String> = reading.subject().into_iter().map(str::to_owned).collect();
        let types = reading.subject_types();
        if subject.is_empty() || types.is_empty() {
            return Ok(Default::default());
        }
        let (index, target) = (Arc::clone(&self.graph.index), Arc::clone(target));
        let filter = Filter {
            node_types: Some(types),
            ..ask.filter.without_narrowing()
        };
        let words = subject.join(" ");
        let near = blocking(move || {
            let vector = index.embed_query(&words).ok();
            target
                .find_similar(&words, vector.as_deref(), &filter, ALIKE)
                .map_err(index_error)
        })
        .await?;
        let near = self.what_stands(ask, near).await?;
        let mut nodes = self.visible_nodes(ask, &near).await?;
        let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
        let mut best: Option<(f32, Uuid)> = None;
        for id in near {
            let Some(node) = nodes.get(&id) else { continue };
            let alike = name_similarity(&subject, names_of(node));
            if alike > best.map_or(0.0, |(alike, _)| alike) {
                best = Some((alike, id));
            }
        }
        let Some((_, id)) = best else {
            return Ok(Default::default());
        };
        nodes.retain(|other, _| *other == id);
        Ok((vec![(reading.subject_words(), vec![id])], nodes))
    }

    /// The groups that the question describes but does not name: "groups attributed to the GRU" are those whose
    /// descriptions mention it.
    async fn find_described_groups(
        &self,
        description: &Description,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<(NamedNodes, HashMap<Uuid, KgNode>), DomainError> {
        let (index, target) = (Arc::clone(&self.graph.index), Arc::clone(target));
        let words = description.text();
        let filter = Filter {
            node_types: Some(Kind::Group.node_types().to_vec()),
            ..ask.filter.without_narrowing()
        };
        let found = blocking(move || {
            // By meaning, too: a group's keywords may be outweighed by those of many others.
            let vector = index.embed_query(&words).ok();
            target
                .search(&words, vector.as_deref(), Mode::Blended, &filter, DESCRIBED)
                .map_err(index_error)
        })
        .await?;
        let found: Vec<Uuid> = found.into_iter().map(|hit| hit.node_id).collect();
        let mut nodes = self.visible_nodes(ask, &found).await?;
        nodes.retain(|_, node| {
            kind_of_node(node) == Some(Kind::Group) && description.fits(readable_part(&node.description))
        });
        if nodes.is_empty() {
            return Ok(Default::default());
        }
        let found = found.into_iter().filter(|id| nodes.contains_key(id));
        let found = self.what_stands(ask, found.collect()).await?;
        let nodes = self.visible_nodes(ask, &found).await?;
        Ok((vec![(description.words.clone(), found)], nodes))
    }

    /// The nodes whose names, aliases or identifiers stand in the question; longer names first, and no word twice.
    pub(super) async fn find_names(
        &self,
        reading: &Question,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<NamedNodes, DomainError> {
        let candidates = reading.candidates();
        let texts = candidates.iter().map(|candidate| candidate.text.to_owned());
        let found = self.find_named_nodes(texts.collect(), ask, target).await?;
        let mut named: NamedNodes = Vec::new();
        for (NameCandidate { words, .. }, nodes) in candidates.into_iter().zip(found) {
            let overlaps =
                |(other, _): &(Range<usize>, Vec<Uuid>)| other.start < words.end && words.start < other.end;
            if !nodes.is_empty() && !named.iter().any(overlaps) {
                named.push((words, nodes));
            }
        }
        Ok(named)
    }

    /// For each text the nodes with this name, alias or identifier, or another name of the same thing; what is merged is
    /// the node that stands for it.
    pub(super) async fn find_named_nodes(
        &self,
        texts: Vec<String>,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Vec<Vec<Uuid>>, DomainError> {
        let found = carriers_of(texts, ask, target).await?;
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let merges = self.merges_seen(ask.ws, shown).await?;
        if merges.is_empty() {
            return Ok(found);
        }
        let standing = |nodes: Vec<Uuid>| {
            let mut standing = merges.all_standing(nodes);
            standing.sort_unstable();
            standing
        };
        Ok(found.into_iter().map(standing).collect())
    }
}

/// For each text the nodes with this name, alias or identifier, or another name of the same thing.
async fn carriers_of(
    texts: Vec<String>,
    ask: &Search,
    target: &Arc<WorkspaceIndex>,
) -> Result<Vec<Vec<Uuid>>, DomainError> {
    let (target, filter) = (Arc::clone(target), ask.filter.without_narrowing());
    blocking(move || {
        let mut keys: Vec<(usize, &str)> = Vec::new();
        for (place, text) in texts.iter().enumerate() {
            keys.push((place, text));
            let entry = Gazetteer::shared().resolve(text);
            let others = entry.into_iter().flat_map(|entry| entry.names());
            keys.extend(others.map(|name| (place, name)));
        }
        let names: Vec<&str> = keys.iter().map(|(_, text)| *text).collect();
        let mut nodes: Vec<BTreeSet<Uuid>> = vec![BTreeSet::new(); texts.len()];
        for hit in target.lookup(&names, &filter).map_err(index_error)? {
            let nodes = keys.get(hit.key).and_then(|(place, _)| nodes.get_mut(*place));
            nodes.into_iter().for_each(|nodes| {
                nodes.insert(hit.node_id);
            });
        }
        Ok(nodes
            .into_iter()
            .map(|nodes| nodes.into_iter().collect())
            .collect())
    })
    .await
}

/// The kind of a node of either population.
pub(super) fn any_kind_of_node(node: &KgNode) -> Option<Kind> {
    let stix_type = node.properties.get("stix_type").and_then(|value| value.as_str());
    let of_context = stix_type.and_then(|kind| context_kind(kind, &node.properties));
    of_context.or_else(|| kind_of_node(node))
}

/// Keeps the nodes that a question can mean: visible ones of the kinds that questions ask for.
fn keep_meant(ids: &mut Vec<Uuid>, nodes: &HashMap<Uuid, KgNode>) {
    ids.retain(|id| nodes.get(id).and_then(kind_of_node).is_some());
}

pub(super) fn kind_of_node(node: &KgNode) -> Option<Kind> {
    let stix_type = node.properties.get("stix_type").and_then(|value| value.as_str());
    Kind::of(node.node_type, stix_type)
}

pub(super) fn names_of(node: &KgNode) -> impl Iterator<Item = &str> {
    let aliases = node.properties.get("aliases").and_then(|value| value.as_array());
    let aliases = aliases.into_iter().flatten().filter_map(|alias| alias.as_str());
    std::iter::once(node.name.as_str()).chain(aliases)
}
