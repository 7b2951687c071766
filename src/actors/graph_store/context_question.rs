//! Answers to questions about the objects that give context: what detects a technique, whom a group targets, where something
//! was sighted, which reports mention it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::question::{NamedNodes, any_kind_of_node, names_of};
use super::recall::Search;
use super::tactics::Tactics;
use super::walk::Walk;
use super::why::GraphAnswer;
use crate::actors::indexed_store::index_error;
use crate::actors::job::blocking;
use crate::domain::error::DomainError;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::question::walk::Goal;
use crate::domain::question::{
    Combination, ContextPlan, Kind, Name, NameAsked, Question, QuestionAsked, Role, name_similarity,
};
use crate::search::{Filter, Population, WorkspaceIndex};

/// Context objects that are compared with the words of a question that names nothing.
const ALIKE: usize = 6;

/// The similarity of a name that all words of the question are part of.
const ALL_WORDS: f32 = 1.0;

/// A question about context, with what it names.
struct ContextQuestion {
    plan: ContextPlan,
    named: NamedNodes,
    nodes: HashMap<Uuid, KgNode>,
}

/// What the search of names found in a question.
struct NamesFound {
    named: NamedNodes,
    nodes: HashMap<Uuid, KgNode>,
}

impl GraphCore {
    /// The nodes that a question asks for among what gives context, or by way of it. `None` if it asks for nothing of the
    /// kind, or nothing answers.
    pub(super) async fn answer_from_context(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Option<GraphAnswer>, DomainError> {
        let context = of_population(&ask.filter, Population::Context);
        if !ask.question.asks_for_context() || target.count(&context) == 0 {
            return Ok(None);
        }
        let mut found = self.find_any_names(ask, target).await?;
        if found.nodes.is_empty() {
            found = self.find_context_subject(ask, target).await?;
        }
        let names = found.names(any_kind_of_node);
        let plan = match ask.question.context_plan(&names) {
            None => return Ok(None),
            Some(Err(word)) => {
                let denied = QuestionAsked::denied(word, found.names_asked(&ask.question));
                return Ok(Some(GraphAnswer {
                    question: ask.explain.then_some(denied),
                    is_final: true,
                    ..GraphAnswer::default()
                }));
            }
            Some(Ok(plan)) => plan,
        };
        // What an ingest counts is related without context, if the question names it. An indicator may only hold the value
        // that it names.
        let is_main = |kind: &Kind| !kind.is_context() && *kind != Kind::Indicator;
        let main = found.names(|node| any_kind_of_node(node).filter(is_main));
        if !plan.is_certain && !main.is_empty() && ask.question.plan(&main).is_some() {
            return Ok(None);
        }
        let NamesFound { named, nodes } = found;
        let asked = ContextQuestion { plan, named, nodes };
        let answer = self.answer_context_question(ask, &asked, target).await?;
        Ok((!answer.nodes.is_empty()).then_some(answer))
    }

    async fn answer_context_question(
        &self,
        ask: &Search,
        asked: &ContextQuestion,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphAnswer, DomainError> {
        let kinds: Vec<Kind> = asked.nodes.values().filter_map(any_kind_of_node).collect();
        let tactics = match asked.plan.needs_tactics(&kinds) {
            true => Arc::new(self.tactics(ask, target).await?),
            false => Arc::default(),
        };
        let mut answer = GraphAnswer {
            is_final: !asked.plan.logic.is_plain(),
            ..GraphAnswer::default()
        };
        let mut known: HashSet<Uuid> = HashSet::new();
        let walks: Vec<Walk> = self.context_walks(ask, asked, target, &tactics).await?;
        for mut walk in walks {
            walk.retain(|thing| !known.contains(&thing));
            let answers = walk.answers(ask.limit);
            let confirmed = self.confirm_ways(ask, &walk, &answers).await?;
            known.extend(&confirmed.nodes);
            answer.nodes.extend(confirmed.nodes);
            answer.paths.extend(confirmed.paths);
            if answer.nodes.len() >= ask.limit {
                break;
            }
        }
        answer.nodes.truncate(ask.limit);
        if ask.explain {
            let names = names_asked(&ask.question, &asked.named);
            answer.question = Some(QuestionAsked::of_context(&asked.plan, names));
        }
        Ok(answer)
    }

    /// The walks along all ways to what is asked for, each at its end.
    async fn context_walks(
        &self,
        ask: &Search,
        asked: &ContextQuestion,
        target: &Arc<WorkspaceIndex>,
        tactics: &Arc<Tactics>,
    ) -> Result<Vec<Walk>, DomainError> {
        if asked.nodes.is_empty() {
            let goal = Goal {
                period: asked.plan.period,
                ..Goal::of_kinds(asked.plan.wanted.clone(), true)
            };
            let mut walk = Walk::to_goals(vec![goal], []);
            self.begin_with_period(ask, &mut walk, target).await?;
            return Ok(vec![walk]);
        }
        let words: Vec<Range<usize>> = asked.named.iter().map(|(words, _)| words.clone()).collect();
        let mut walks: Vec<Walk> = Vec::new();
        for (role, places) in roles(&asked.plan, &words) {
            let ids = places.iter().filter_map(|place| asked.named.get(*place));
            let kind = |id: &Uuid| Some((*id, any_kind_of_node(asked.nodes.get(id)?)?));
            let mut named: Vec<(Uuid, Kind)> = ids.flat_map(|(_, ids)| ids).filter_map(kind).collect();
            named.sort_unstable_by_key(|(id, _)| *id);
            let mut taken = Vec::new();
            for goals in asked.plan.walks() {
                let walk = Walk::to_goals(goals, named.iter().copied());
                taken.push(self.walk_on(ask, walk, target, Arc::clone(tactics)).await?);
            }
            let found: HashSet<Uuid> = taken.iter().flat_map(Walk::found).collect();
            let keep = |walks: &mut Vec<Walk>, is_kept: &dyn Fn(Uuid) -> bool| {
                walks.iter_mut().for_each(|walk| walk.retain(is_kept));
            };
            match role {
                Role::Answers => walks = taken,
                Role::Required => keep(&mut walks, &|thing| found.contains(&thing)),
                Role::Barred => keep(&mut walks, &|thing| !found.contains(&thing)),
            }
        }
        for walk in &mut walks {
            walk.retain(|thing| !asked.nodes.contains_key(&thing));
        }
        Ok(walks)
    }

    /// The nodes of either population whose names stand in the question; longer names first, and no word twice.
    async fn find_any_names(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<NamesFound, DomainError> {
        let of_all = Search {
            filter: ask.filter.clone().of_all(),
            ..ask.clone()
        };
        let candidates = ask.question.context_candidates();
        let forms: Vec<(usize, String)> = candidates
            .iter()
            .enumerate()
            .flat_map(|(place, candidate)| {
                let forms = std::iter::once(candidate.text.to_owned());
                let others = Question::forms_of_name(candidate.text);
                forms.chain(others).map(move |form| (place, form))
            })
            .collect();
        let texts = forms.iter().map(|(_, form)| form.clone()).collect();
        let found = self.find_named_nodes(texts, &of_all, target).await?;
        let mut of_candidate: Vec<Vec<Uuid>> = vec![Vec::new(); candidates.len()];
        for ((place, _), nodes) in forms.iter().zip(found) {
            // What is called exactly so is meant rather than what is called by another form.
            if let Some(known) = of_candidate.get_mut(*place).filter(|known| known.is_empty()) {
                known.extend(nodes);
            }
        }
        let ids: Vec<Uuid> = of_candidate.iter().flatten().copied().collect();
        let nodes = self.visible_nodes(&of_all, &ids).await?;
        let mut named: NamedNodes = Vec::new();
        for (candidate, mut ids) in candidates.iter().zip(of_candidate) {
            let words = candidate.words.clone();
            ids.retain(|id| nodes.get(id).and_then(any_kind_of_node).is_some());
            let overlaps =
                |(other, _): &(Range<usize>, Vec<Uuid>)| other.start < words.end && words.start < other.end;
            if !ids.is_empty() && !named.iter().any(overlaps) {
                named.push((words, ids));
            }
        }
        Ok(NamesFound::of(named, nodes))
    }

    /// The context object that the question means but does not name in full: "telecoms" is the Telecommunications Sector.
    async fn find_context_subject(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<NamesFound, DomainError> {
        let subject = ask.question.context_subject();
        let words: Vec<String> = subject.iter().map(|(_, word)| (*word).to_owned()).collect();
        let (Some((first, _)), Some((last, _))) = (subject.first(), subject.last()) else {
            return Ok(NamesFound::of(Vec::new(), HashMap::new()));
        };
        let filter = Filter {
            node_types: Some(vec![NodeType::Attck, NodeType::Osint]),
            ..of_population(&ask.filter, Population::Context)
        };
        let (index, asked) = (Arc::clone(&self.graph.index), Arc::clone(target));
        let text = words.join(" ");
        let near = blocking(move || {
            let vector = index.embed_query(&text).ok();
            asked
                .find_similar(&text, vector.as_deref(), &filter, ALIKE)
                .map_err(index_error)
        })
        .await?;
        let near = self.what_stands(ask, near).await?;
        let mut nodes = self.visible_nodes(ask, &near).await?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut best: Option<(f32, Uuid)> = None;
        for id in near {
            let named = nodes
                .get(&id)
                .filter(|node| any_kind_of_node(node).is_some_and(Kind::is_named_in_part));
            let alike = named.map_or(0.0, |node| name_similarity(&words, names_of(node)));
            if alike >= best.map_or(ALL_WORDS, |(alike, _)| alike) {
                best = Some((alike, id));
            }
        }
        nodes.retain(|id, _| best.is_some_and(|(_, best)| best == *id));
        let named = best.map(|(_, id)| (*first..*last + 1, vec![id]));
        Ok(NamesFound::of(named.into_iter().collect(), nodes))
    }
}

impl NamesFound {
    /// Those of the names that are kept, with their nodes.
    fn of(named: NamedNodes, mut nodes: HashMap<Uuid, KgNode>) -> Self {
        let kept: HashSet<Uuid> = named.iter().flat_map(|(_, ids)| ids).copied().collect();
        nodes.retain(|id, _| kept.contains(id));
        NamesFound { named, nodes }
    }

    /// The names of nodes that are of a kind.
    fn names(&self, kind_of: impl Fn(&KgNode) -> Option<Kind>) -> Vec<Name> {
        let name = |(words, ids): &(Range<usize>, Vec<Uuid>)| Name {
            words: words.clone(),
            kinds: ids.iter().filter_map(|id| kind_of(self.nodes.get(id)?)).collect(),
        };
        let names = self.named.iter().map(name);
        names.filter(|name| !name.kinds.is_empty()).collect()
    }

    fn names_asked(&self, question: &Question) -> Vec<NameAsked> {
        names_asked(question, &self.named)
    }
}

fn names_asked(question: &Question, named: &NamedNodes) -> Vec<NameAsked> {
    let name = |(words, nodes): &(Range<usize>, Vec<Uuid>)| NameAsked {
        text: question.text_of(words).unwrap_or_default().to_owned(),
        nodes: nodes.clone(),
    };
    named.iter().map(name).collect()
}

/// The walks that a question needs, the one to the answers first: of each the places of the names where it begins.
fn roles(plan: &ContextPlan, words: &[Range<usize>]) -> Vec<(Role, Vec<usize>)> {
    if plan.logic.combination == Combination::Any && plan.logic.is_plain() {
        return vec![(Role::Answers, (0..words.len()).collect())];
    }
    plan.logic.walks(words)
}

/// The nodes of a population that the caller may see.
fn of_population(seen: &Filter, population: Population) -> Filter {
    Filter {
        population: Some(population),
        ..seen.without_narrowing()
    }
}
