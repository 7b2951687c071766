//! The walk from what a question names to what it asks for, over the relationships in the search index. The database tells
//! the times of nodes and confirms the ways to the answers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::core::GraphCore;
use super::merges::SeenMerges;
use super::recall::Search;
use super::tactics::{OF_TACTIC, Tactics};
use super::why::GraphAnswer;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::kinds::STIX_TYPES;
use crate::domain::node::NodeType;
use crate::domain::question::walk::{self, Edge, Goal, Graph, Hop, Start};
use crate::domain::question::{Kind, Period, QuestionPlan, relationship_code, relationship_of_code};
use crate::domain::why::PathStep;
use crate::search::{Filter, Population, Step, StepFilter, WorkspaceIndex, hash_of_type};
use crate::store::{NodeOfType, StixFacts};

/// Nodes whose times are compared with the one asked for, the best ones.
const COMPARED: usize = 5_000;
/// Most nodes that a caller may see for whom a question about a time alone is answered by reading all of the type.
const LISTED: usize = 20_000;

pub(super) type Walk = walk::Walk<Uuid, Uuid>;
pub(super) type Answer = walk::Answer<Uuid, Uuid>;
type Stop = walk::Stop<Uuid, Uuid>;
/// From what a question names to an answer.
type Way = Vec<Stop>;

/// The relationships in the index of a workspace, as far as a caller may see them.
struct IndexGraph {
    index: Arc<WorkspaceIndex>,
    /// What the caller may see, and what it asks of the answers.
    filter: Filter,
    tactics: Arc<Tactics>,
    merges: SeenMerges,
}

/// The kinds of observables, by the hashes of their STIX types.
static OBSERVABLES: LazyLock<HashMap<u32, Kind>> = LazyLock::new(|| {
    let rows = STIX_TYPES.iter().filter_map(|row| Some((row.stix, row.asked?)));
    let observables = rows.filter(|(_, kind)| kind.is_observable());
    observables
        .map(|(stix_type, kind)| (hash_of_type(stix_type), kind))
        .collect()
});

/// The kind of a node that a step leads to. An observable that another source states, too, is an indicator as well.
fn kind_of_step(step: &Step, to: &Goal) -> Option<Kind> {
    let kind = Kind::of_code(step.node_code)?;
    let observable = OBSERVABLES
        .get(&step.node_stix_type)
        .filter(|_| kind == Kind::Indicator);
    Some(*observable.filter(|kind| to.kinds.contains(kind)).unwrap_or(&kind))
}

impl Graph for IndexGraph {
    type Thing = Uuid;
    type Relationship = Uuid;
    const HAS_FREE_LABELS: bool = false;
    const KEPT: usize = 0;

    fn visit_edges(
        &self,
        from: &[Start<Uuid>],
        to: &Goal,
        most: usize,
        mut visit: impl FnMut(usize, Edge<Uuid, Uuid>),
    ) {
        let near: HashSet<Kind> = from.iter().map(|start| start.kind).collect();
        let pairs = near
            .iter()
            .flat_map(|from| to.kinds.iter().map(|to| (*from, *to)));
        let names = pairs.flat_map(|(from, far)| to.relationships_from(from, far));
        let codes: Vec<u8> = names.map(relationship_code).collect();
        let (places, nodes) = self.merges.groups(from.iter().map(|start| start.thing));
        self.tactics.visit(from, to, &mut visit);
        let is_about_context = near.iter().chain(&to.kinds).any(|kind| kind.is_context());
        let filter = match is_about_context {
            true => filter_of(&self.filter, to).of_all(),
            false => filter_of(&self.filter, to),
        };
        let along = StepFilter {
            codes: &codes,
            filter: &Filter {
                node_types: Some(types_of(&to.kinds)),
                ..filter
            },
            most,
        };
        self.index.steps(&nodes, along, |step| {
            let kind = kind_of_step(&step, to);
            if let Some((kind, place)) = kind.zip(places.get(step.from)) {
                let edge = Edge {
                    to: self.merges.standing(step.node),
                    ..edge_of(&step, kind)
                };
                visit(*place, edge);
            }
        });
    }

    fn sub_techniques(&self, _: Uuid) -> Vec<Uuid> {
        Vec::new()
    }
}

/// What the nodes that a step leads to must pass. What a caller asks of results is not asked of what lies on the way.
fn filter_of(asked: &Filter, to: &Goal) -> Filter {
    if to.is_asked {
        asked.clone()
    } else {
        asked.without_narrowing()
    }
}

fn edge_of(step: &Step, kind: Kind) -> Edge<Uuid, Uuid> {
    Edge {
        hop: Hop {
            relationship: step.relationship,
            label: step.code,
            outgoing: step.outgoing,
            confidence: step.confidence,
        },
        to: step.node,
        kind,
        confidence: step.node_confidence,
        recorded_at: step.ingested_at,
    }
}

impl GraphCore {
    /// Walks from what is named to what is asked for.
    pub(super) async fn walk(
        &self,
        ask: &Search,
        plan: &QuestionPlan,
        named: Vec<(Uuid, Kind)>,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Walk, DomainError> {
        let is_unnamed = named.is_empty();
        let mut walk = Walk::from_named(plan, named);
        if is_unnamed {
            self.begin_with_period(ask, &mut walk, target).await?;
        }
        self.walk_on(ask, walk, target, Arc::default()).await
    }

    /// Takes the steps of a walk, and keeps on the way what is of the time asked for.
    pub(super) async fn walk_on(
        &self,
        ask: &Search,
        mut walk: Walk,
        target: &Arc<WorkspaceIndex>,
        tactics: Arc<Tactics>,
    ) -> Result<Walk, DomainError> {
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let graph = Arc::new(IndexGraph {
            index: Arc::clone(target),
            filter: ask.filter.clone(),
            tactics,
            merges: self.merges_seen(ask.ws, shown).await?,
        });
        loop {
            let graph = Arc::clone(&graph);
            let (taken, period) = blocking(move || {
                let period = walk.proceed(&*graph);
                Ok((walk, period))
            })
            .await?;
            walk = taken;
            let Some(period) = period else {
                return Ok(walk);
            };
            let best = walk.best(COMPARED);
            let facts = self.graph.store.stix_facts(ask.ws, &best, shown).await?;
            walk.keep_timely(|node, kind| is_timely(&period, facts.get(&node), kind));
        }
    }

    /// A question that names nothing and asks for a time begins with what is of that time.
    pub(super) async fn begin_with_period(
        &self,
        ask: &Search,
        walk: &mut Walk,
        target: &WorkspaceIndex,
    ) -> Result<(), DomainError> {
        let Some(goal) = walk.goal() else { return Ok(()) };
        let is_context = goal.kinds.iter().any(|kind| kind.is_context());
        // Hidden nodes don't decide how a question is answered.
        let is_listed = || match is_context {
            true => target.count(&of_types(&ask.filter, &goal.kinds)) <= LISTED,
            false => target.count(&ask.filter.without_narrowing()) <= LISTED,
        };
        let Some(period) = goal.period.filter(|_| is_listed()) else {
            return Ok(());
        };
        let filter = filter_of(&ask.filter, goal);
        let types = types_of(&goal.kinds);
        let wanted = (types.as_slice(), &filter.narrowing);
        let shown = (filter.highest_tlp, filter.include_rejected);
        let store = &self.graph.store;
        let nodes = store
            .nodes_of_type(ask.ws, shown, wanted, (is_context, LISTED))
            .await?;
        let merges = self.merges_seen(ask.ws, shown).await?;
        let of_period = |node: NodeOfType| {
            let stix_type = node.stix.kind.as_deref();
            let kind = match is_context {
                true => Kind::of_context(stix_type?, node.stix.field("identity_class")),
                false => Kind::of(node.node_type, stix_type),
            }?;
            let is_timely = is_in(&period_for_kind(kind, period), &node.stix, kind) == Some(true);
            is_timely.then_some((merges.standing(node.id), kind, node.confidence))
        };
        walk.reach(nodes.into_iter().filter_map(of_period));
        Ok(())
    }

    /// Everything of the kinds that a question asks for, as if a walk had led there; nothing in a workspace with more nodes
    /// than can be listed.
    pub(super) async fn things_asked_for(
        &self,
        ask: &Search,
        plan: &QuestionPlan,
        target: &WorkspaceIndex,
    ) -> Result<Walk, DomainError> {
        let mut walk = Walk::from_named(plan, []);
        // Hidden nodes don't decide how a question is answered.
        if target.count(&ask.filter.without_narrowing()) > LISTED {
            return Ok(walk);
        }
        let types = types_of(&plan.wanted);
        let wanted = (types.as_slice(), &ask.filter.narrowing);
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let nodes = self
            .graph
            .store
            .nodes_of_type(ask.ws, shown, wanted, (false, LISTED))
            .await?;
        let merges = self.merges_seen(ask.ws, shown).await?;
        let thing = |node: NodeOfType| {
            let kind = Kind::of(node.node_type, node.stix.kind.as_deref())?;
            Some((merges.standing(node.id), kind, node.confidence))
        };
        walk.reach(nodes.into_iter().filter_map(thing));
        Ok(walk)
    }

    /// The best answers whose way still stands in the database, and that way if the caller asks why.
    pub(super) async fn confirm_ways(
        &self,
        ask: &Search,
        walk: &Walk,
        answers: &[Answer],
    ) -> Result<GraphAnswer, DomainError> {
        let best = answers.iter().take(ask.limit);
        let mut ways: Vec<Way> = best.map(|answer| walk.way_to(answer)).collect();
        let relationships: HashSet<Uuid> = ways.iter().flat_map(relationships_on).collect();
        let relationships: Vec<Uuid> = relationships.into_iter().collect();
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let standing = self
            .graph
            .store
            .relationships_in_force(ask.ws, &relationships, shown)
            .await?;
        let stands = |relationship: Uuid| relationship == OF_TACTIC || standing.contains(&relationship);
        ways.retain(|way| relationships_on(way).all(stands));
        let nodes = ways.iter().filter_map(|way| Some(way.last()?.thing)).collect();
        let paths = if ask.explain {
            self.named_paths(ask, &ways).await?
        } else {
            HashMap::new()
        };
        Ok(GraphAnswer {
            nodes,
            paths,
            ..GraphAnswer::default()
        })
    }

    /// Ways of at least one step as the caller is told them, by the nodes where they end.
    async fn named_paths(
        &self,
        ask: &Search,
        ways: &[Way],
    ) -> Result<HashMap<Uuid, Vec<PathStep>>, DomainError> {
        let on_them: HashSet<Uuid> = ways.iter().flatten().map(|stop| stop.thing).collect();
        let on_them: Vec<Uuid> = on_them.into_iter().collect();
        let nodes = self.visible_nodes(ask, &on_them).await?;
        let step = |stop: &Stop| {
            let label = stop.by.and_then(|hop| relationship_of_code(hop.label));
            Some(PathStep {
                id: stop.thing,
                name: nodes.get(&stop.thing)?.name.clone(),
                relationship: label.map(str::to_owned),
                outgoing: stop.by.map(|hop| hop.outgoing),
            })
        };
        let path = |way: &Way| Some((way.last()?.thing, way.iter().map(step).collect::<Option<_>>()?));
        let led = ways.iter().filter(|way| way.len() > 1);
        Ok(led.filter_map(path).collect())
    }
}

fn relationships_on(way: &Way) -> impl Iterator<Item = Uuid> {
    way.iter().filter_map(|stop| Some(stop.by?.relationship))
}

/// The types of nodes of these kinds.
fn types_of(kinds: &[Kind]) -> Vec<NodeType> {
    let mut types: Vec<NodeType> = kinds.iter().flat_map(|kind| kind.node_types()).copied().collect();
    types.dedup();
    types
}

/// Whether a node is of the time asked for; `None` if nobody says so. Of a group or a technique nobody records when it was
/// seen, but a campaign without a time is none of that time, nor is a node whose times were not read.
fn is_timely(period: &Period, facts: Option<&StixFacts>, kind: Kind) -> Option<bool> {
    let Some(facts) = facts else {
        return Some(false);
    };
    let timely = is_in(period, facts, kind);
    timely.or((kind == Kind::Campaign).then_some(false))
}

/// The nodes of these context kinds that the caller may see.
fn of_types(seen: &Filter, kinds: &[Kind]) -> Filter {
    Filter {
        population: Some(Population::Context),
        node_types: Some(types_of(kinds)),
        ..seen.without_narrowing()
    }
}

/// What a period means for a kind. Nobody records when a technique or mitigation was seen, so its entry counts.
fn period_for_kind(kind: Kind, period: Period) -> Period {
    Period {
        entered: period.entered || matches!(kind, Kind::Technique | Kind::Mitigation),
        ..period
    }
}

/// Whether a node was seen, or entered, in the period; `None` if the node has no times.
fn is_in(period: &Period, stix: &StixFacts, kind: Kind) -> Option<bool> {
    let time = |text: Option<&str>| -> Option<DateTime<Utc>> { text?.parse().ok() };
    let [first, last] = stix.times().map(time);
    let created = time(stix.created.as_deref());
    // What is written is of the day on which it was published.
    let is_written = matches!(kind, Kind::Report | Kind::Note | Kind::Incident);
    let (first, last) = if is_written {
        (first.or(last).or(created), last)
    } else if period.entered {
        (created, created)
    } else {
        (first.or(last), last)
    };
    first.map(|first| period.covers(first, last.unwrap_or(first)))
}
