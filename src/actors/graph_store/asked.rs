//! Answers from the graph: what a question asks for, one or two steps from what it names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::answers::Answers;
use super::core::{GraphCore, index_failed};
use super::recall::{Search, containing};
use super::trail::{Hops, Trail, hops_of};
use super::why::FromGraph;
use crate::actors::job::blocking;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::extraction::Gazetteer;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::question::{
    Kind, Name, NameAsked, Period, Plan, QuestionAsked, Reading, likeness, relationships,
};
use crate::search::{Filter, Mode, WorkspaceIndex};
use crate::store::{Passable, Reached, SeenNode};

/// Nodes that are compared with the words of a question that names nothing.
const ALIKE: usize = 10;
/// Nodes on the way that are followed, the best ones.
const FOLLOWED: usize = 200;
/// Largest workspace, in nodes, in which a question about a time alone is answered by reading all nodes of the type.
const LISTED: usize = 20_000;

/// The nodes that a question names, by the words that name them.
type Named = Vec<(Range<usize>, Vec<Uuid>)>;

/// What a step leads to: nodes of these kinds that pass these filters.
#[derive(Debug, Clone, Copy)]
struct To<'a> {
    kinds: &'a [Kind],
    narrowing: &'a Narrowing,
}

impl GraphCore {
    /// The nodes that a question asks for by their relationships to what it names, or by a time. None if it asks for
    /// nothing of the kind or the graph has no answer.
    pub(super) async fn asked_for(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<FromGraph, DomainError> {
        let Some(reading) = Reading::of(&ask.text, clock::now()) else {
            return match &ask.meant {
                Some(meant) => self.meant_by(ask, meant, target).await,
                None => Ok(FromGraph::default()),
            };
        };
        let mut named = self.named_in(&reading, ask, target).await?;
        let ids: Vec<Uuid> = named.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        let mut nodes = self.nodes_named(ask, &ids).await?;
        if nodes.is_empty() {
            (named, nodes) = self.nodes_meant(&reading, ask, target).await?;
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
        let Some(plan) = reading.plan(&names) else {
            return Ok(FromGraph::default());
        };
        let words = reading.other_words(&names).join(" ");
        let (mut found, trail) = self.walk(ask, &plan, &nodes, target.len()).await?;
        found.retain(|(node, _)| !nodes.contains_key(node));
        if found.len() > 1 {
            self.rank_by_words(ask, target, words, &mut found).await?;
        }
        let mut answer = FromGraph {
            nodes: found.into_iter().map(|(node, _)| node).take(ask.limit).collect(),
            ..FromGraph::default()
        };
        if ask.explain {
            answer.question = Some(QuestionAsked::of(&plan, names_asked(&reading, &named, &nodes)));
            answer.paths = trail.paths(&answer.nodes, &nodes);
        }
        Ok(answer)
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
        let among: HashSet<Uuid> = answers.iter().map(|(node, _)| *node).collect();
        let (target, filter, limit) = (Arc::clone(target), ask.filter.clone(), ask.limit);
        let found = blocking(move || containing(&target, among, &words, filter, limit)).await?;
        let places: HashMap<Uuid, usize> = found.into_iter().zip(0..).collect();
        answers.sort_by_key(|(node, fit)| (*fit, places.get(node).copied().unwrap_or(usize::MAX)));
        Ok(())
    }

    /// The nodes whose names, aliases or identifiers stand in the question; longer names first, and no word twice.
    async fn named_in(
        &self,
        reading: &Reading<'_>,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Named, DomainError> {
        let candidates: Vec<(Range<usize>, String)> = reading
            .candidates()
            .into_iter()
            .map(|candidate| (candidate.words, candidate.text.to_owned()))
            .collect();
        let (target, filter) = (Arc::clone(target), ask.filter.unnarrowed());
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
            for hit in target.lookup(&texts, &filter).map_err(index_failed)? {
                let nodes = keys.get(hit.key).and_then(|(place, _)| nodes.get_mut(*place));
                nodes.into_iter().for_each(|nodes| {
                    nodes.insert(hit.node_id);
                });
            }
            let mut named: Named = Vec::new();
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
    pub(super) async fn nodes_named(
        &self,
        ask: &Search,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, KgNode>, DomainError> {
        let stored = self
            .store
            .nodes_by_id(ask.ws, ids, ask.filter.highest_tlp, ask.filter.include_rejected)
            .await?;
        Ok(stored
            .into_iter()
            .map(|stored| (stored.node.id, stored.node))
            .collect())
    }

    /// The node that the question means but does not name in full: "credential dumping" is OS Credential Dumping.
    async fn nodes_meant(
        &self,
        reading: &Reading<'_>,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<(Named, HashMap<Uuid, KgNode>), DomainError> {
        let subject: Vec<String> = reading.subject().into_iter().map(str::to_owned).collect();
        let types = reading.subject_types();
        if subject.is_empty() || types.is_empty() {
            return Ok(Default::default());
        }
        let (index, target) = (Arc::clone(&self.index), Arc::clone(target));
        let filter = Filter {
            node_types: Some(types),
            ..ask.filter.unnarrowed()
        };
        let words = subject.join(" ");
        let near = blocking(move || {
            let vector = index.embed_query(&words).ok();
            target
                .search(&words, vector.as_deref(), Mode::Blended, &filter, ALIKE)
                .map_err(index_failed)
        })
        .await?;
        let near: Vec<Uuid> = near.into_iter().map(|hit| hit.node_id).collect();
        let mut nodes = self.nodes_named(ask, &near).await?;
        let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
        let mut best: Option<(f32, Uuid)> = None;
        for id in near {
            let Some(node) = nodes.get(&id) else { continue };
            let alike = likeness(&subject, names_of(node));
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

    /// Walks from what is named to what is asked for: the answers with how well they fit, best first, and the way to them
    /// if the caller asks why.
    pub(super) async fn walk(
        &self,
        ask: &Search,
        plan: &Plan,
        named: &HashMap<Uuid, KgNode>,
        size: usize,
    ) -> Result<(Vec<(Uuid, usize)>, Trail), DomainError> {
        let is_direct = plan.through.is_empty();
        // The filters are on what is asked for, not on what lies on the way.
        let on_the_way = Narrowing::default();
        let wanted = To {
            kinds: &plan.wanted,
            narrowing: &ask.filter.narrowing,
        };
        let through = To {
            kinds: &plan.through,
            narrowing: &on_the_way,
        };
        let first = if is_direct { wanted } else { through };
        let in_first = plan.period.filter(|_| is_direct || plan.period_is_of_through);
        let mut at: HashMap<Uuid, Kind> = HashMap::new();
        for (id, node) in named {
            let kind = kind_of_node(node).filter(|kind| is_related(first.kinds, *kind));
            at.extend(kind.map(|kind| (*id, kind)));
        }
        let mut answers = Answers::default();
        let mut trail = Trail::default();
        match in_first.filter(|_| named.is_empty() && size <= LISTED) {
            Some(period) => answers.add_listed(self.listed(ask, first).await?, first.kinds, period),
            None => trail.add(self.first_step(ask, &at, first, in_first, &mut answers).await?),
        }
        if !is_direct {
            trail.add(answers.hops(ask));
            let best = answers.best().into_iter().take(FOLLOWED);
            let at: HashMap<Uuid, Kind> = best.map(|(id, kind, _)| (id, kind)).collect();
            let period = plan.period.filter(|_| !plan.period_is_of_through);
            let reached = self.step(ask, &at, wanted).await?;
            answers = Answers::default();
            answers.add(reached, &at, wanted.kinds, 0, period);
        }
        trail.add(answers.hops(ask));
        let best = answers.best().into_iter().map(|(id, _, fit)| (id, fit));
        Ok((best.collect(), trail))
    }

    /// The step from what is named; from a technique also by way of its sub-techniques, whose answers fit less well. Tells
    /// the way to these if the caller asks why.
    async fn first_step(
        &self,
        ask: &Search,
        at: &HashMap<Uuid, Kind>,
        to: To<'_>,
        period: Option<Period>,
        answers: &mut Answers,
    ) -> Result<Hops, DomainError> {
        answers.add(self.step(ask, at, to).await?, at, to.kinds, 0, period);
        let is_of_techniques = at.values().all(|kind| *kind == Kind::Technique);
        if !is_of_techniques || to.kinds.contains(&Kind::Technique) {
            return Ok(Hops::new());
        }
        let techniques = To {
            kinds: &[Kind::Technique],
            narrowing: &Narrowing::default(),
        };
        let parts = self.step(ask, at, techniques).await?;
        let parts: Vec<Reached> = parts.into_iter().filter(|step| !step.outgoing).collect();
        let hops = if ask.explain { hops_of(&parts) } else { Hops::new() };
        let parts = parts.into_iter();
        let parts: HashMap<Uuid, Kind> = parts.map(|step| (step.node.id, Kind::Technique)).collect();
        answers.add(self.step(ask, &parts, to).await?, &parts, to.kinds, 1, period);
        Ok(hops)
    }

    async fn step(
        &self,
        ask: &Search,
        at: &HashMap<Uuid, Kind>,
        to: To<'_>,
    ) -> Result<Vec<Reached>, DomainError> {
        let kinds = to.kinds;
        let mut types: Vec<NodeType> = kinds.iter().flat_map(|kind| kind.node_types()).copied().collect();
        types.dedup();
        let mut names: Vec<&'static str> = Vec::new();
        for name in at
            .values()
            .flat_map(|from| kinds.iter().flat_map(|to| relationships(*from, *to)))
        {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let passable = Passable {
            highest: ask.filter.highest_tlp,
            include_rejected: ask.filter.include_rejected,
            relationships: &names,
            node_types: &types,
            narrowing: to.narrowing,
        };
        let mut from: Vec<Uuid> = at.keys().copied().collect();
        from.sort_unstable();
        self.store.reached(ask.ws, &from, passable).await
    }

    async fn listed(&self, ask: &Search, to: To<'_>) -> Result<Vec<SeenNode>, DomainError> {
        let types: Vec<NodeType> = to
            .kinds
            .iter()
            .flat_map(|kind| kind.node_types())
            .copied()
            .collect();
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let wanted = (types.as_slice(), to.narrowing);
        self.store.nodes_of_type(ask.ws, shown, wanted, LISTED).await
    }
}

/// What the question names, and the nodes that can be meant.
fn names_asked(reading: &Reading<'_>, named: &Named, nodes: &HashMap<Uuid, KgNode>) -> Vec<NameAsked> {
    let is_meant = |id: &&Uuid| nodes.get(*id).and_then(kind_of_node).is_some();
    let name = |(words, ids): &(Range<usize>, Vec<Uuid>)| {
        let meant: Vec<Uuid> = ids.iter().filter(is_meant).copied().collect();
        let text = reading.text_of(words)?.to_owned();
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

fn is_related(kinds: &[Kind], to: Kind) -> bool {
    kinds.iter().any(|kind| !relationships(*kind, to).is_empty())
}
