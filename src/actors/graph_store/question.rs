//! Answers from the graph: what a question asks for, one or two steps from what it names.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::recall::{NodeSet, Search, filter_containing};
use super::why::GraphAnswer;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::node::KgNode;
use crate::domain::passage::readable_part;
use crate::domain::question::{Description, Kind, Name, NameAsked, Question, QuestionAsked, name_similarity};
use crate::search::{Filter, Mode, WorkspaceIndex};

/// Nodes that are compared with the words of a question that names nothing: so many with some of the words in their
/// names, and so many of like meaning.
const ALIKE: usize = 6;
/// Groups that a question may describe, the best ones.
const DESCRIBED: usize = 50;

/// The nodes that a question names, by the words that name them.
type NamedNodes = Vec<(Range<usize>, Vec<Uuid>)>;

impl GraphCore {
    /// The nodes that a question asks for by their relationships to what it names, or by a time. None if it asks for
    /// nothing of the kind or the graph has no answer.
    pub(super) async fn answer_question(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphAnswer, DomainError> {
        let question = &ask.question;
        if !question.asks_for_related() {
            return match question.model_reading() {
                Some(meant) => self.answer_model_question(ask, meant, target).await,
                None => Ok(GraphAnswer::default()),
            };
        }
        let mut named = self.find_names(question, ask, target).await?;
        let ids: Vec<Uuid> = named.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        let mut nodes = self.visible_nodes(ask, &ids).await?;
        if nodes.is_empty() {
            (named, nodes) = self.find_subject(question, ask, target).await?;
        }
        let description = if nodes.is_empty() {
            question.description()
        } else {
            None
        };
        if let Some(description) = &description {
            (named, nodes) = self.find_described_groups(description, ask, target).await?;
        }
        let kind_of = |id: &Uuid| nodes.get(id).and_then(kind_of_node);
        let names: Vec<Name> = named
            .iter()
            .map(|(words, nodes)| Name {
                words: words.clone(),
                kinds: nodes.iter().filter_map(kind_of).collect(),
            })
            .filter(|name| !name.kinds.is_empty())
            .collect();
        let plan = if description.is_some() && !nodes.is_empty() {
            question.plan_for_described_groups()
        } else {
            question.plan(&names)
        };
        let Some(plan) = plan else {
            return Ok(GraphAnswer::default());
        };
        let words = question.other_words(&names).join(" ");
        // Words decide among answers that fit equally well, so all are needed then.
        let most = if words.is_empty() { ask.limit } else { usize::MAX };
        let mut walked = self.walk((ask, most), &plan, &nodes, target).await?;
        if walked.best.len() > 1 {
            self.rank_by_words(ask, target, words, &mut walked.best).await?;
        }
        let answer = self.confirm_paths(ask, walked, &nodes).await?;
        let asked = || QuestionAsked::of(&plan, names_of_question(question, &named, &nodes));
        Ok(GraphAnswer {
            question: ask.explain.then(asked),
            ..answer
        })
    }

    /// Of answers that fit equally well, puts those first that contain the other words of the question.
    async fn rank_by_words(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
        words: String,
        answers: &mut [(Uuid, usize)],
    ) -> Result<(), DomainError> {
        if words.is_empty() {
            return Ok(());
        }
        let among: NodeSet = answers.iter().map(|(node, _)| *node).collect();
        let (target, filter, limit) = (Arc::clone(target), ask.filter.clone(), ask.limit);
        let found = blocking(move || filter_containing(&target, among, &words, filter, limit)).await?;
        let places: HashMap<Uuid, usize> = found.into_iter().zip(0..).collect();
        answers.sort_by_cached_key(|(node, fit)| (*fit, places.get(node).copied().unwrap_or(usize::MAX)));
        Ok(())
    }

    /// The nodes whose names, aliases or identifiers stand in the question; longer names first, and no word twice.
    async fn find_names(
        &self,
        question: &Question,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<NamedNodes, DomainError> {
        let candidates: Vec<(Range<usize>, String)> = question
            .candidates()
            .into_iter()
            .map(|candidate| (candidate.words, candidate.text.to_owned()))
            .collect();
        let (target, filter) = (Arc::clone(target), ask.filter.without_narrowing());
        blocking(move || {
            let mut keys: Vec<(usize, &str)> = Vec::new();
            for (place, (_, text)) in candidates.iter().enumerate() {
                keys.push((place, text));
                let entry = Gazetteer::shared().resolve(text);
                keys.extend(
                    entry
                        .into_iter()
                        .flat_map(|entry| entry.names())
                        .map(|name| (place, name)),
                );
            }
            let texts: Vec<&str> = keys.iter().map(|(_, text)| *text).collect();
            let mut nodes: Vec<BTreeSet<Uuid>> = vec![BTreeSet::new(); candidates.len()];
            for hit in target.lookup(&texts, &filter).map_err(index_error)? {
                let nodes = keys.get(hit.key).and_then(|(place, _)| nodes.get_mut(*place));
                nodes.into_iter().for_each(|nodes| {
                    nodes.insert(hit.node_id);
                });
            }
            let mut named: NamedNodes = Vec::new();
            for ((words, _), nodes) in candidates.iter().zip(nodes) {
                let overlaps = |(other, _): &(Range<usize>, Vec<Uuid>)| {
                    other.start < words.end && words.start < other.end
                };
                if !nodes.is_empty() && !named.iter().any(overlaps) {
                    named.push((words.clone(), nodes.into_iter().collect()));
                }
            }
            Ok(named)
        })
        .await
    }

    /// The visible nodes with these ids.
    pub(super) async fn visible_nodes(
        &self,
        ask: &Search,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, KgNode>, DomainError> {
        let stored = self
            .graph
            .store
            .nodes_by_id(ask.ws, ids, ask.filter.highest_tlp, ask.filter.include_rejected)
            .await?;
        Ok(stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect())
    }

    /// The node that the question means but does not name in full: "credential dumping" is OS Credential Dumping.
    async fn find_subject(
        &self,
        question: &Question,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<(NamedNodes, HashMap<Uuid, KgNode>), DomainError> {
        let subject: Vec<String> = question.subject().into_iter().map(str::to_owned).collect();
        let types = question.subject_types();
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
        Ok((vec![(question.subject_words(), vec![id])], nodes))
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
        let found = found.into_iter().filter(|id| nodes.contains_key(id)).collect();
        Ok((vec![(description.words.clone(), found)], nodes))
    }
}

/// What the question names, and the nodes that can be meant.
fn names_of_question(
    question: &Question,
    named: &NamedNodes,
    nodes: &HashMap<Uuid, KgNode>,
) -> Vec<NameAsked> {
    let is_meant = |id: &&Uuid| nodes.get(*id).and_then(kind_of_node).is_some();
    let name = |(words, ids): &(Range<usize>, Vec<Uuid>)| {
        let meant: Vec<Uuid> = ids.iter().filter(is_meant).copied().collect();
        let text = question.text_of(words)?.to_owned();
        (!meant.is_empty()).then_some(NameAsked { text, nodes: meant })
    };
    named.iter().filter_map(name).collect()
}

pub(super) fn kind_of_node(node: &KgNode) -> Option<Kind> {
    let stix_type = node.properties.get("stix_type").and_then(|value| value.as_str());
    Kind::of(node.node_type, stix_type)
}

fn names_of(node: &KgNode) -> impl Iterator<Item = &str> {
    let aliases = node.properties.get("aliases").and_then(|value| value.as_array());
    let aliases = aliases.into_iter().flatten().filter_map(|alias| alias.as_str());
    std::iter::once(node.name.as_str()).chain(aliases)
}
