//! The walk along relationships, one step or two, from what a question names to what it asks for. The steps are taken in
//! memory; the database confirms the ways to what is answered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::answers::{Answers, PeriodFilter, StepOrigins, StepTarget};
use super::core::GraphCore;
use super::question::kind_of_node;
use super::recall::Search;
use super::trail::{Hops, Trail, Waypoint, path_of};
use super::why::GraphAnswer;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::question::{Kind, Period, QuestionPlan, relationship_code, relationships};
use crate::domain::why::PathStep;
use crate::search::{Filter, Step, StepFilter, WorkspaceIndex};
use crate::store::NodeOfType;

/// Nodes on the way that are followed, the best ones.
const FOLLOWED: usize = 200;
/// Nodes whose times are compared with the one asked for, the best ones.
const COMPARED: usize = 5_000;
/// Most nodes that a caller may see for whom a question about a time alone is answered by reading all of the type.
const LISTED: usize = 20_000;

/// What a step leads to: nodes of these kinds that pass this filter.
type StepGoal<'a> = (&'a [Kind], &'a Filter);

/// What a walk found.
#[derive(Debug)]
pub(super) struct WalkResult {
    /// The answers, best first, with how well they fit: the least is the best.
    pub(super) best: Vec<(Uuid, usize)>,
    answers: Answers,
    /// The steps before the last.
    trail: Trail,
}

impl GraphCore {
    /// Walks from what is named to what is asked for, and returns the best `most` answers at least.
    pub(super) async fn walk(
        &self,
        (ask, most): (&Search, usize),
        plan: &QuestionPlan,
        named: &HashMap<Uuid, KgNode>,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<WalkResult, DomainError> {
        let is_direct = plan.through.is_empty();
        // The filters are on what is asked for, not on what lies on the way.
        let on_the_way = ask.filter.without_narrowing();
        let wanted = (plan.wanted.as_slice(), &ask.filter);
        let through = (plan.through.as_slice(), &on_the_way);
        let first = if is_direct { wanted } else { through };
        let in_first = plan.period.filter(|_| is_direct || plan.period_is_of_through);
        let mut at = StepOrigins::default();
        for (id, node) in named {
            let kind = kind_of_node(node).filter(|kind| is_related(first.0, *kind));
            at.extend(kind.map(|kind| (*id, kind)));
        }
        let mut trail = Trail::default();
        // Hidden nodes don't decide how a question is answered.
        let is_listed = |_: &Period| named.is_empty() && target.count(&on_the_way) <= LISTED;
        let mut answers = match in_first.filter(is_listed) {
            Some(period) => {
                let mut answers = Answers::default();
                answers.add_nodes_of_period(self.list_nodes_of_kinds(ask, first).await?, first.0, period);
                answers
            }
            None => {
                let (answers, parts) = first_step(target, at, first).await?;
                trail.add(parts);
                self.keep_answers_of_period(ask, answers, in_first).await?
            }
        };
        if !is_direct {
            let best = answers.best(FOLLOWED).into_iter();
            let at: StepOrigins = best.map(|(id, kind, _)| (id, kind)).collect();
            trail.add(answers.hops(at.keys()));
            let period = plan.period.filter(|_| !plan.period_is_of_through);
            answers = self
                .keep_answers_of_period(ask, step(target, at, wanted).await?, period)
                .await?;
        }
        let best = answers.best(most.saturating_add(named.len())).into_iter();
        let best = best.map(|(id, _, fit)| (id, fit));
        Ok(WalkResult {
            best: best.filter(|(node, _)| !named.contains_key(node)).collect(),
            answers,
            trail,
        })
    }

    /// Those of these answers that fit a time, if one is asked for.
    async fn keep_answers_of_period(
        &self,
        ask: &Search,
        mut answers: Answers,
        period: Option<Period>,
    ) -> Result<Answers, DomainError> {
        if let Some(period) = period {
            let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
            let best = answers.best(COMPARED).into_iter();
            let nodes: Vec<Uuid> = best.map(|(node, _, _)| node).collect();
            let facts = &self.graph.store.stix_facts(ask.ws, &nodes, shown).await?;
            answers.keep_timely(&PeriodFilter { period, facts });
        }
        Ok(answers)
    }

    /// The best answers whose way still stands in the database, and that way if the caller asks why.
    pub(super) async fn confirm_paths(
        &self,
        ask: &Search,
        mut walked: WalkResult,
        named: &HashMap<Uuid, KgNode>,
    ) -> Result<GraphAnswer, DomainError> {
        walked.best.truncate(ask.limit);
        let nodes = walked.best.iter().map(|(node, _)| node);
        walked.trail.add(walked.answers.hops(nodes));
        let way = |node| walked.trail.path_to(node, |node| named.contains_key(node));
        let mut ways: Vec<(Uuid, Vec<Waypoint>)> =
            walked.best.iter().map(|(node, _)| (*node, way(*node))).collect();
        let relationships: HashSet<Uuid> = ways
            .iter()
            .flat_map(|(_, way)| way.iter().filter_map(|at| Some(at.step.as_ref()?.id)))
            .collect();
        let relationships: Vec<Uuid> = relationships.into_iter().collect();
        let shown = (ask.filter.highest_tlp, ask.filter.include_rejected);
        let standing = self
            .graph
            .store
            .relationships_in_force(ask.ws, &relationships, shown)
            .await?;
        let stands = |at: &Waypoint| at.step.as_ref().is_none_or(|step| standing.contains(&step.id));
        ways.retain(|(_, way)| !way.is_empty() && way.iter().all(stands));
        let mut answer = GraphAnswer {
            nodes: ways.iter().map(|(node, _)| *node).collect(),
            ..GraphAnswer::default()
        };
        if ask.explain {
            answer.paths = self.named_paths(ask, ways).await?;
        }
        Ok(answer)
    }

    /// Ways with the names of the nodes on them.
    async fn named_paths(
        &self,
        ask: &Search,
        ways: Vec<(Uuid, Vec<Waypoint>)>,
    ) -> Result<HashMap<Uuid, Vec<PathStep>>, DomainError> {
        let on_them: HashSet<Uuid> = ways
            .iter()
            .flat_map(|(_, way)| way.iter().map(|at| at.node))
            .collect();
        let on_them: Vec<Uuid> = on_them.into_iter().collect();
        let nodes = self.visible_nodes(ask, &on_them).await?;
        let names = nodes.into_iter().map(|(id, node)| (id, node.name)).collect();
        let paths = ways
            .into_iter()
            .filter_map(|(node, way)| Some((node, path_of(way, &names)?)));
        Ok(paths.collect())
    }

    async fn list_nodes_of_kinds(
        &self,
        ask: &Search,
        to: StepGoal<'_>,
    ) -> Result<Vec<NodeOfType>, DomainError> {
        let (kinds, filter) = to;
        let shown = (filter.highest_tlp, filter.include_rejected);
        let types = types_of(kinds);
        let wanted = (types.as_slice(), &filter.narrowing);
        self.graph
            .store
            .nodes_of_type(ask.ws, shown, wanted, LISTED)
            .await
    }
}

/// The step from what is named; from a technique also by way of its sub-techniques, whose answers fit less well. Tells
/// the way to these, too.
async fn first_step(
    target: &Arc<WorkspaceIndex>,
    at: StepOrigins,
    to: StepGoal<'_>,
) -> Result<(Answers, Hops), DomainError> {
    let goes_on = at.values().all(|kind| *kind == Kind::Technique) && !to.0.contains(&Kind::Technique);
    let (filter, kinds) = (to.1.clone(), to.0.to_vec());
    let target = Arc::clone(target);
    blocking(move || {
        let mut answers = Answers::default();
        take(&target, (&at, 0), (&kinds, &filter), |_| true, &mut answers);
        if !goes_on {
            return Ok((answers, Hops::new()));
        }
        let mut parts = Answers::default();
        let techniques = (&[Kind::Technique][..], &filter.without_narrowing());
        take(&target, (&at, 0), techniques, |step| !step.outgoing, &mut parts);
        let parts = parts.all_hops();
        let at: StepOrigins = parts.keys().map(|part| (*part, Kind::Technique)).collect();
        take(&target, (&at, 1), (&kinds, &filter), |_| true, &mut answers);
        Ok((answers, parts))
    })
    .await
}

/// The step to what is asked for.
async fn step(
    target: &Arc<WorkspaceIndex>,
    at: StepOrigins,
    (kinds, filter): StepGoal<'_>,
) -> Result<Answers, DomainError> {
    let (target, kinds, filter) = (Arc::clone(target), kinds.to_vec(), filter.clone());
    blocking(move || {
        let mut answers = Answers::default();
        take(&target, (&at, 0), (&kinds, &filter), |_| true, &mut answers);
        Ok(answers)
    })
    .await
}

/// Adds what one step from these nodes reaches, as far as `wants` accepts it; `later` lowers its rank.
fn take(
    target: &WorkspaceIndex,
    (at, later): (&StepOrigins, usize),
    (kinds, filter): StepGoal<'_>,
    wants: impl Fn(&Step) -> bool,
    answers: &mut Answers,
) {
    let near: HashSet<Kind> = at.values().copied().collect();
    let pairs = near.iter().flat_map(|from| kinds.iter().map(|to| (*from, *to)));
    let names = pairs.flat_map(|(from, to)| relationships(from, to));
    let codes: Vec<u8> = names.map(|name| relationship_code(name)).collect();
    let filter = Filter {
        node_types: Some(types_of(kinds)),
        ..filter.clone()
    };
    let mut from: Vec<Uuid> = at.keys().copied().collect();
    from.sort_unstable();
    let along = StepFilter {
        codes: &codes,
        filter: &filter,
    };
    let sought = StepTarget { at, kinds, later };
    target.steps(&from, along, |step| {
        if wants(&step) {
            answers.add(&step, sought);
        }
    });
}

/// The types of nodes of these kinds.
fn types_of(kinds: &[Kind]) -> Vec<NodeType> {
    let mut types: Vec<NodeType> = kinds.iter().flat_map(|kind| kind.node_types()).copied().collect();
    types.dedup();
    types
}

fn is_related(kinds: &[Kind], to: Kind) -> bool {
    kinds.iter().any(|kind| !relationships(*kind, to).is_empty())
}
