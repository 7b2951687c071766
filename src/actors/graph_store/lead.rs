//! The nodes that lead because a question asks for a time without asking for related things ("attacks of A before 2020", "most
//! recent attack of A"), or compares what it names ("A vs B").

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::core::GraphCore;
use super::question::{kind_of_node, names_of};
use super::recall::{EXACT, Search};
use super::why::GraphAnswer;
use crate::clock;
use crate::domain::error::DomainError;
use crate::domain::node::{KgNode, NodeType};
use crate::domain::passage::readable_part;
use crate::domain::question::{AskedTime, NameAsked, QuestionAsked, StatedTimes, TimeOrder};
use crate::domain::why::MatchedBy;
use crate::search::{Hit, WorkspaceIndex};
use crate::store::NeighbourQuery;

/// Nodes whose texts are read for dates: of those that a search finds, and of those related to what is named.
const FOUND: usize = 50;
const NEAR: usize = 100;
/// Letters of the shortest name that is looked for in texts.
const SHORTEST: usize = 3;

/// Words of a question, and the visible nodes that they name.
struct Named {
    words: Range<usize>,
    nodes: Vec<KgNode>,
}

impl GraphCore {
    /// The nodes that lead for a question which the graph does not answer.
    pub(super) async fn leading_nodes(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<GraphAnswer, DomainError> {
        let question = &ask.question;
        let compares = question.compares();
        if !compares && !question.time_asked(&[]).is_any() {
            return Ok(GraphAnswer::default());
        }
        let named = self.named_nodes(ask, target).await?;
        let words: Vec<Range<usize>> = named.iter().map(|name| name.words.clone()).collect();
        let time = question.time_asked(&words);
        let mut leading = Vec::new();
        if compares && named.len() > 1 {
            leading.extend(
                named
                    .iter()
                    .filter_map(|name| meant(name, question.text_of(&name.words))),
            );
        } else if time.is_any() && !named.is_empty() {
            leading = self.nodes_by_time(ask, target, &named, time).await?;
        }
        let name = |name: &Named| NameAsked {
            text: question.text_of(&name.words).unwrap_or_default().to_owned(),
            nodes: name.nodes.iter().map(|node| node.id).collect(),
        };
        let is_understood = !leading.is_empty() || (time.is_any() && !named.is_empty());
        let names = || named.iter().map(name).collect();
        Ok(GraphAnswer {
            question: (ask.explain && is_understood).then(|| QuestionAsked::of_time(time, names())),
            leading,
            ..GraphAnswer::default()
        })
    }

    async fn named_nodes(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
    ) -> Result<Vec<Named>, DomainError> {
        let named = self.find_names(&ask.question, ask, target).await?;
        let ids: Vec<Uuid> = named.iter().flat_map(|(_, nodes)| nodes).copied().collect();
        let visible = self.visible_nodes(ask, &ids).await?;
        let mut found: Vec<Named> = named
            .into_iter()
            .map(|(words, ids)| Named {
                words,
                nodes: ids.iter().filter_map(|id| visible.get(id).cloned()).collect(),
            })
            .filter(|name| !name.nodes.is_empty())
            .collect();
        found.sort_by_key(|name| name.words.start);
        Ok(found)
    }

    /// The nodes about what is named that state a time in the period or have a place in the order asked for, best first.
    async fn nodes_by_time(
        &self,
        ask: &Search,
        target: &Arc<WorkspaceIndex>,
        named: &[Named],
        time: AskedTime,
    ) -> Result<Vec<Uuid>, DomainError> {
        let own: Vec<Uuid> = named
            .iter()
            .flat_map(|name| &name.nodes)
            .map(|node| node.id)
            .collect();
        let wide = Search {
            limit: ask.limit.max(FOUND),
            explain: false,
            ..ask.clone()
        };
        let (found, _) = self.by_words_and_meaning(wide, target).await?;
        let wanted = NeighbourQuery {
            highest: ask.filter.highest_tlp,
            include_rejected: ask.filter.include_rejected,
            types: NodeType::ALL,
            narrowing: &ask.filter.narrowing,
            best: NEAR,
        };
        let near = self.neighbours(ask, &own, wanted).await?;
        let ids = found.hits.iter().map(|hit| hit.node_id).collect();
        let mut ids = self.what_stands(ask, ids).await?;
        let near: HashSet<Uuid> = near.best.into_iter().collect();
        let others: Vec<Uuid> = near.iter().filter(|id| !ids.contains(id)).copied().collect();
        ids.extend(others);
        ids.retain(|id| !own.contains(id));
        let nodes = self.visible_nodes(ask, &ids).await?;
        let nodes = nodes
            .into_iter()
            .filter(|(_, node)| ask.filter.narrowing.admits(node));
        let nodes: HashMap<Uuid, KgNode> = nodes.collect();
        let names = named.iter().flat_map(|name| &name.nodes).flat_map(names_of);
        let names = names
            .filter(|name| name.chars().count() >= SHORTEST)
            .map(str::to_lowercase);
        let names: Vec<String> = names.collect();
        let place = |(rank, id): (usize, &Uuid)| {
            let node = nodes.get(id)?;
            let is_about = near.contains(id) || mentions_any(node, &names);
            let place = is_about.then(|| place_of(node, &time)).flatten()?;
            Some((std::cmp::Reverse(place), rank, *id))
        };
        let mut places: Vec<_> = ids.iter().enumerate().filter_map(place).collect();
        places.sort_unstable();
        places.truncate(ask.limit);
        Ok(places.into_iter().map(|(_, _, id)| id).collect())
    }
}

/// Places the nodes that lead before all other hits.
pub(super) fn put_leading_first(leading: &[Uuid], hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    if leading.is_empty() {
        return hits;
    }
    let matched: HashMap<Uuid, MatchedBy> = hits.iter().map(|hit| (hit.node_id, hit.matched)).collect();
    let lead = |node: &Uuid| Hit {
        node_id: *node,
        score: EXACT,
        matched: matched.get(node).copied().unwrap_or(MatchedBy::Name),
    };
    let mut led: Vec<Hit> = leading.iter().map(lead).collect();
    let others = hits.into_iter().filter(|hit| !leading.contains(&hit.node_id));
    led.extend(others.map(|hit| Hit {
        score: hit.score.min(EXACT),
        ..hit
    }));
    led.truncate(limit);
    led
}

/// The node that a name most likely means.
fn meant(name: &Named, text: Option<&str>) -> Option<Uuid> {
    let likely = |node: &&KgNode| {
        let is_own_name = text.is_some_and(|text| node.name.eq_ignore_ascii_case(text));
        (
            kind_of_node(node).is_some(),
            is_own_name,
            std::cmp::Reverse(node.id),
        )
    };
    name.nodes.iter().max_by_key(likely).map(|node| node.id)
}

fn mentions_any(node: &KgNode, names: &[String]) -> bool {
    let text = format!("{} {}", node.name, readable_part(&node.description)).to_lowercase();
    names.iter().any(|name| text.contains(name))
}

/// The place of a node by time, higher ones first; `None` if it states none or another one.
fn place_of(node: &KgNode, time: &AskedTime) -> Option<(i64, i64)> {
    let seen =
        ["first_seen", "last_seen"].map(|key| node.properties.get(key).and_then(|value| value.as_str()));
    let [first, last] = seen.map(Option::unwrap_or_default);
    let text = format!(
        "{} {} {first} {last}",
        node.name,
        readable_part(&node.description)
    );
    let times = StatedTimes::in_text(&text, node.ingested_at);
    let period = time.period.as_ref();
    let is_ingested_in = period.is_some_and(|period| {
        period.from.is_none_or(|from| node.ingested_at >= from)
            && period.until.is_none_or(|until| node.ingested_at < until)
    });
    let fit = match period {
        None => 0,
        Some(period) if period.entered && is_ingested_in => 2,
        Some(period) if times.are_in(period) => 1,
        Some(_) => return None,
    };
    let Some(order) = time.order else {
        return Some((fit, 0));
    };
    let stated = times.first_in_order(order, period, clock::now());
    let at = if time.is_of_records {
        Some(node.ingested_at)
    } else {
        stated
    };
    let at = at?.timestamp_micros();
    Some((
        fit,
        match order {
            TimeOrder::NewestFirst => at,
            TimeOrder::OldestFirst => -at,
        },
    ))
}
