//! The walk along relationships, one step or two, from what a question names to what it asks for. Each service has a graph
//! of its own; which relationships count, which answer is the better one and which way leads to it is decided here.

use std::cmp::Reverse;
use std::hash::Hash;

use hashbrown::{HashMap, HashSet};

use super::{Kind, Period, QuestionPlan, relationship_code, relationship_of_code, relationships};

/// Relationships that one step looks at: bounded work, far beyond what a question needs.
const EXAMINED: usize = 250_000;
/// Things on the way that are followed, the best ones.
const FOLLOWED: usize = 200;
/// How much less well an answer fits for each kind that the question asks for before that of the answer.
const LATER_KIND: usize = 10;
/// How much less well it fits if it is related to a sub-technique of the technique that the question names.
const OF_SUB_TECHNIQUE: usize = 100;
/// How much less well it fits if nobody knows whether it is of the time asked for.
const OF_UNKNOWN_TIME: usize = 200;

/// Things and their relationships, as far as a caller may see them: nothing hidden is passed on, counted or passed through.
pub trait Graph {
    /// Identifies a thing. Of equally good things the lesser one comes first.
    type Thing: Copy + Ord + Hash;
    type Relationship: Copy;
    /// Whether people label relationships in words of their own, so that any label may mean the usual one.
    const HAS_FREE_LABELS: bool;
    /// Number of relationships kept with each answer, the newest ones.
    const KEPT: usize;

    /// Visits the relationships that lead from these things to the goal, the newest of each thing first, looking at `most`
    /// in all. With each comes the position in `from` of the thing where it was found. A graph that knows when
    /// relationships were seen leaves out those of another time than the goal's.
    fn visit_edges(
        &self,
        from: &[Start<Self::Thing>],
        to: &Goal,
        most: usize,
        visit: impl FnMut(usize, Edge<Self::Thing, Self::Relationship>),
    );

    /// The sub-techniques of a technique that its identifier tells. Others are told by relationships.
    fn sub_techniques(&self, technique: Self::Thing) -> Vec<Self::Thing>;
}

/// What a step leads to.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The kinds of things, the most fitting one first.
    pub kinds: Vec<Kind>,
    /// The time that they must be of.
    pub period: Option<Period>,
    /// Whether they are what the question asks for, rather than on the way.
    pub is_asked: bool,
    /// The relationships that the question says; where none of them connects the kinds, and if there are none, all count.
    pub along: Vec<&'static str>,
    /// Whether the relationships must lead to these things rather than back, if the question says so.
    pub outgoing: Option<bool>,
}

/// A thing where a step begins.
#[derive(Debug, Clone, Copy)]
pub struct Start<T> {
    pub thing: T,
    pub kind: Kind,
    /// How well the way to it fits; 0 is the best.
    fit: usize,
    /// Position of the thing among the stops of the walk.
    stop: usize,
}

/// A relationship that a step follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop<R> {
    pub relationship: R,
    /// Code of its type, as [`super::relationship_code`] tells it; 0 for other types.
    pub label: u8,
    /// Whether it leads to the next thing, rather than back.
    pub outgoing: bool,
    /// 0 to 1.
    pub confidence: f64,
}

/// A relationship, and what is at the end that it leads to.
#[derive(Debug, Clone, Copy)]
pub struct Edge<T, R> {
    pub hop: Hop<R>,
    pub to: T,
    pub kind: Kind,
    /// Confidence of the thing, 0 to 1.
    pub confidence: f64,
    /// When the relationship or the thing was recorded, in microseconds since 1970.
    pub recorded_at: i64,
}

/// A thing on a way, and the relationship that leads to it from the one before; none at the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop<T, R> {
    pub thing: T,
    pub by: Option<Hop<R>>,
}

/// A thing that answers a question.
#[derive(Debug, Clone)]
pub struct Answer<T, R> {
    pub thing: T,
    /// How well kinds, relationships and time fit; 0 is the best.
    pub fit: usize,
    /// The newest relationships of the last step, as many as the graph keeps.
    pub relationships: Vec<R>,
    lead: Option<Lead<R>>,
}

/// The best relationship that leads to a thing, and the position of the stop where it begins.
type Lead<R> = (Hop<R>, usize);

/// A thing that a step has reached.
#[derive(Debug)]
struct Reached<R> {
    kind: Kind,
    fit: usize,
    /// Number of relationships that lead to it, and the highest confidence of one.
    edges: usize,
    edge_confidence: f64,
    /// Its own confidence, 0 to 1.
    confidence: f64,
    recorded_at: i64,
    kept: Vec<R>,
    /// None for what no relationship led to.
    lead: Option<Lead<R>>,
}

/// How well a thing answers; the least is the best.
type Rank = (usize, Reverse<usize>, Reverse<u64>, Reverse<u64>, Reverse<i64>);

/// A walk under way.
#[derive(Debug)]
pub struct Walk<T, R> {
    named: HashSet<T>,
    /// The goals of the steps to take, the last one first.
    goals: Vec<Goal>,
    /// Where the next step begins.
    starts: Vec<Start<T>>,
    /// What the last step reached; `None` before the first.
    reached: Option<HashMap<T, Reached<R>>>,
    /// The things where steps began, and what led to each.
    stops: Vec<(T, Option<Lead<R>>)>,
}

impl Goal {
    fn is_related_to(&self, kind: Kind) -> bool {
        self.kinds
            .iter()
            .any(|goal| !relationships(*goal, kind).is_empty())
    }

    /// Things of these kinds, by whatever usually leads to them.
    pub fn of_kinds(kinds: Vec<Kind>, is_asked: bool) -> Goal {
        Goal {
            kinds,
            period: None,
            is_asked,
            along: Vec::new(),
            outgoing: None,
        }
    }

    /// The relationships by which a step to one of the goal's kinds may lead, the usual one first.
    pub fn relationships_from(&self, near: Kind, far: Kind) -> impl Iterator<Item = &'static str> {
        let usual = relationships(near, far);
        let is_said = usual.iter().any(|name| self.along.contains(name));
        let counts = move |name: &&&'static str| !is_said || self.along.contains(*name);
        usual.iter().filter(counts).copied()
    }

    /// The goals of a plan, the last one first.
    fn of_plan(plan: &QuestionPlan) -> Vec<Goal> {
        let is_direct = plan.through.is_empty();
        let asked = Goal {
            period: plan.period.filter(|_| is_direct || !plan.period_is_of_through),
            ..Goal::of_kinds(plan.wanted.clone(), true)
        };
        let between = (!is_direct).then(|| Goal {
            period: plan.period.filter(|_| plan.period_is_of_through),
            ..Goal::of_kinds(plan.through.clone(), false)
        });
        std::iter::once(asked).chain(between).collect()
    }
}

impl<T: Copy + Ord + Hash, R: Copy> Walk<T, R> {
    /// A walk from what a question names, with the kind of each thing.
    pub fn from_named(plan: &QuestionPlan, named: impl IntoIterator<Item = (T, Kind)>) -> Self {
        Self::to_goals(Goal::of_plan(plan), named)
    }

    /// A walk from what a question names, with the kind of each thing, to these goals, of which the last one comes first.
    pub fn to_goals(goals: Vec<Goal>, named: impl IntoIterator<Item = (T, Kind)>) -> Self {
        let mut walk = Walk {
            named: HashSet::new(),
            goals,
            starts: Vec::new(),
            reached: None,
            stops: Vec::new(),
        };
        for (thing, kind) in named {
            let is_related = walk.goal().is_some_and(|goal| goal.is_related_to(kind));
            if walk.named.insert(thing) && is_related {
                walk.begin_at(thing, None, (kind, 0));
            }
        }
        walk
    }

    /// What the next step leads to; `None` at the end.
    pub fn goal(&self) -> Option<&Goal> {
        self.goals.last()
    }

    /// Takes things of the next goal, each with its kind and its confidence, in place of what a step would reach.
    pub fn reach(&mut self, things: impl IntoIterator<Item = (T, Kind, f64)>) {
        let kinds = self.goals.pop().map(|goal| goal.kinds).unwrap_or_default();
        let mut reached = HashMap::new();
        for (thing, kind, confidence) in things {
            if let Some(place) = kinds.iter().position(|known| *known == kind) {
                let found = Reached {
                    fit: place * LATER_KIND,
                    ..Reached::new(kind, confidence)
                };
                reached.insert(thing, found);
            }
        }
        self.reached = Some(reached);
    }

    /// Walks on, to the end or to where only things of a time may be passed. That time is returned; a caller that knows
    /// the times of things drops the others ([`Walk::keep_timely`]) before it calls this again.
    pub fn proceed<G: Graph<Thing = T, Relationship = R>>(&mut self, graph: &G) -> Option<Period> {
        while let Some(goal) = self.goals.pop() {
            match self.reached.take() {
                Some(reached) => self.follow(reached),
                None => self.add_sub_techniques(graph, &goal),
            }
            self.reached = Some(self.take_step(graph, &goal));
            if goal.period.is_some() {
                return goal.period;
            }
        }
        None
    }

    /// Keeps of what the last step reached what is of the time asked for. `is_timely` tells it of a thing; `None` means that
    /// nobody knows, and such things come after the others.
    pub fn keep_timely(&mut self, mut is_timely: impl FnMut(T, Kind) -> Option<bool>) {
        let reached = self.reached.iter_mut();
        reached.for_each(|reached| {
            reached.retain(|thing, found| {
                let timely = is_timely(*thing, found.kind);
                found.fit += if timely.is_none() { OF_UNKNOWN_TIME } else { 0 };
                timely != Some(false)
            });
        });
    }

    /// Keeps of what the last step reached what passes.
    pub fn retain(&mut self, keep: impl Fn(T) -> bool) {
        let reached = self.reached.iter_mut();
        reached.for_each(|reached| reached.retain(|thing, _| keep(*thing)));
    }

    /// What the last step reached, in no order.
    pub fn found(&self) -> HashSet<T> {
        self.reached.iter().flat_map(HashMap::keys).copied().collect()
    }

    /// What the last step reached, the best `most` of it, best first.
    pub fn best(&self, most: usize) -> Vec<T> {
        self.reached
            .as_ref()
            .map_or_else(Vec::new, |reached| best(reached, most))
    }

    /// The best `most` answers, best first. Call it at the end of the walk.
    pub fn answers(&mut self, most: usize) -> Vec<Answer<T, R>> {
        let mut reached = self.reached.take().unwrap_or_default();
        let best = best(&reached, most).into_iter();
        best.filter_map(|thing| {
            let found = reached.remove(&thing)?;
            Some(Answer {
                thing,
                fit: found.fit,
                relationships: found.kept,
                lead: found.lead,
            })
        })
        .collect()
    }

    /// The way to an answer, from what the question names; only the answer itself if no relationship led to it.
    pub fn way_to(&self, answer: &Answer<T, R>) -> Vec<Stop<T, R>> {
        let mut way = Vec::new();
        let mut at = Some((answer.thing, answer.lead));
        while let Some((thing, lead)) = at {
            let by = lead.map(|(hop, _)| hop);
            way.push(Stop { thing, by });
            at = lead.and_then(|(_, stop)| self.stops.get(stop).copied());
        }
        way.reverse();
        way
    }

    fn begin_at(&mut self, thing: T, lead: Option<Lead<R>>, (kind, fit): (Kind, usize)) {
        let stop = self.stops.len();
        self.stops.push((thing, lead));
        self.starts.push(Start {
            thing,
            kind,
            fit,
            stop,
        });
    }

    /// The sub-techniques of the techniques that are named: what is related to them is related to these, if less closely.
    fn add_sub_techniques<G>(&mut self, graph: &G, goal: &Goal)
    where
        G: Graph<Thing = T, Relationship = R>,
    {
        if goal.kinds.contains(&Kind::Technique) {
            return;
        }
        let is_technique = |start: &&Start<T>| start.kind == Kind::Technique;
        let techniques: Vec<Start<T>> = self.starts.iter().filter(is_technique).copied().collect();
        let is_part_of = relationship_code("subtechnique-of");
        let parts = Goal::of_kinds(vec![Kind::Technique], false);
        let mut found: Vec<(T, Option<Lead<R>>)> = Vec::new();
        graph.visit_edges(&techniques, &parts, EXAMINED, |place, edge| {
            let is_part = edge.kind == Kind::Technique && edge.hop.label == is_part_of && !edge.hop.outgoing;
            if let Some(technique) = techniques.get(place).filter(|_| is_part) {
                found.push((edge.to, Some((edge.hop, technique.stop))));
            }
        });
        let identified = techniques
            .iter()
            .flat_map(|technique| graph.sub_techniques(technique.thing));
        found.extend(identified.map(|part| (part, None)));
        let mut known: HashSet<T> = self.starts.iter().map(|start| start.thing).collect();
        for (part, lead) in found {
            if known.insert(part) {
                self.begin_at(part, lead, (Kind::Technique, OF_SUB_TECHNIQUE));
            }
        }
    }

    /// Makes the best of what was reached the beginning of the next step.
    fn follow(&mut self, mut reached: HashMap<T, Reached<R>>) {
        self.starts.clear();
        for thing in best(&reached, FOLLOWED) {
            if let Some(found) = reached.remove(&thing) {
                self.begin_at(thing, found.lead, (found.kind, found.fit));
            }
        }
    }

    fn take_step<G>(&self, graph: &G, goal: &Goal) -> HashMap<T, Reached<R>>
    where
        G: Graph<Thing = T, Relationship = R>,
    {
        let mut reached: HashMap<T, Reached<R>> = HashMap::new();
        graph.visit_edges(&self.starts, goal, EXAMINED, |place, edge| {
            let start = self.starts.get(place);
            let fitting = start.and_then(|start| Some((start, edge.fit(start, goal, G::HAS_FREE_LABELS)?)));
            if let Some((start, fit)) = fitting {
                let found = reached
                    .entry(edge.to)
                    .or_insert_with(|| Reached::new(edge.kind, edge.confidence));
                found.add(&edge, (start.stop, fit), G::KEPT);
            }
        });
        // Nothing is its own answer, nor is what a question names.
        for start in &self.starts {
            reached.remove(&start.thing);
        }
        for named in self.named.iter().filter(|_| goal.is_asked) {
            reached.remove(named);
        }
        reached
    }
}

impl<T, R> Edge<T, R> {
    /// How well a way fits that goes on along it; `None` if that is no way to the goal.
    fn fit(&self, start: &Start<T>, goal: &Goal, has_free_labels: bool) -> Option<usize> {
        let place = goal.kinds.iter().position(|kind| *kind == self.kind)?;
        if goal
            .outgoing
            .is_some_and(|outgoing| outgoing != self.hop.outgoing)
        {
            return None;
        }
        let label = relationship_of_code(self.hop.label);
        let mut usual = goal.relationships_from(start.kind, self.kind).zip(0..);
        let known = usual.find(|(usual, _)| label == Some(*usual));
        let unusual = match known {
            Some((_, at)) => usize::from(at > 0),
            None if has_free_labels => 1,
            None => return None,
        };
        Some(start.fit + place * LATER_KIND + unusual)
    }
}

impl<R: Copy> Reached<R> {
    fn new(kind: Kind, confidence: f64) -> Self {
        Reached {
            kind,
            fit: usize::MAX,
            edges: 0,
            edge_confidence: 0.0,
            confidence,
            recorded_at: i64::MIN,
            kept: Vec::new(),
            lead: None,
        }
    }

    /// Adds a relationship that leads here from a stop.
    fn add<T>(&mut self, edge: &Edge<T, R>, (stop, fit): (usize, usize), kept: usize) {
        let hop = edge.hop;
        let is_surer = |(known, _): &Lead<R>| fit == self.fit && hop.confidence > known.confidence;
        if fit < self.fit || self.lead.as_ref().is_some_and(is_surer) {
            self.lead = Some((hop, stop));
        }
        self.fit = self.fit.min(fit);
        self.edges += 1;
        self.edge_confidence = self.edge_confidence.max(hop.confidence);
        self.recorded_at = self.recorded_at.max(edge.recorded_at);
        if self.kept.len() < kept {
            self.kept.push(hop.relationship);
        }
    }

    fn rank(&self) -> Rank {
        // Confidences lie between 0 and 1; their bits are in the same order.
        let confidence = |value: f64| Reverse(value.max(0.0).to_bits());
        (
            self.fit,
            Reverse(self.edges),
            confidence(self.edge_confidence),
            confidence(self.confidence),
            Reverse(self.recorded_at),
        )
    }
}

/// The best `most` of these things, best first.
fn best<T: Copy + Ord, R: Copy>(reached: &HashMap<T, Reached<R>>, most: usize) -> Vec<T> {
    let ranks = reached.iter().map(|(thing, found)| (found.rank(), *thing));
    let mut ranked: Vec<(Rank, T)> = ranks.collect();
    if most < ranked.len() {
        ranked.select_nth_unstable(most);
        ranked.truncate(most);
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, thing)| thing).collect()
}

/// The code of the relationship type that a label means, in any case and however its words are joined; 0 for others.
pub fn code_of_label(label: &str) -> u8 {
    let normal = |c: char| match c {
        '_' | ' ' => '-',
        c => c.to_ascii_lowercase(),
    };
    let is_meant = |name: &str| label.chars().map(normal).eq(name.chars());
    let types = (1..).map_while(|code| Some((code, relationship_of_code(code)?)));
    let mut meant = types.filter(|(_, name)| is_meant(name));
    meant.next().map_or(0, |(code, _)| code)
}

#[cfg(test)]
mod tests;
