//! A picture of a part of the graph. Each takes time linear in the nodes and edges that it visits, whatever the degree
//! of a node.

use std::cmp::Ordering;
use std::collections::HashSet;

use uuid::Uuid;

use super::ViewGraph;
use crate::actors::note_store::graph::MemoryGraph;
use crate::actors::note_store::lists::keep_first;
use crate::actors::note_store::node::Node;
use crate::domain::memory::view::{ConnectedNode, GraphEdge, GraphView, MENTIONS, SUPERSEDES};

/// Most edges in a picture.
pub(super) const MAX_EDGES: usize = 20_000;

/// A node with the number of its edges.
#[derive(Clone, Copy)]
struct RankedNode<'a> {
    node: Node<'a>,
    degree: usize,
}

/// The best connected one first, then by id.
fn best_first(a: &RankedNode<'_>, b: &RankedNode<'_>) -> Ordering {
    b.degree.cmp(&a.degree).then_with(|| a.node.cmp_id(b.node))
}

/// Keeps the best of the nodes that there is room for, sorted; whether there were more. Notes often outnumber everything
/// else: while entities wait, here or in a later step, notes take at most half of the room.
fn keep_best(found: &mut Vec<RankedNode<'_>>, room: usize, is_last: bool) -> bool {
    let is_note = |ranked: &RankedNode<'_>| matches!(ranked.node, Node::Note(_));
    let all = found.clone();
    let more = keep_first(found, room, best_first);
    let most = room / 2;
    if !more || found.iter().filter(|ranked| is_note(ranked)).count() <= most {
        return more;
    }
    let (mut notes, mut entities): (Vec<_>, Vec<_>) = all.into_iter().partition(is_note);
    keep_first(&mut entities, room - most, best_first);
    let for_notes = if is_last { room - entities.len() } else { most };
    keep_first(&mut notes, for_notes, best_first);
    found.clear();
    found.append(&mut entities);
    found.append(&mut notes);
    found.sort_unstable_by(best_first);
    true
}

/// Which nodes a picture shows.
struct PictureFilter<'a> {
    query: &'a ViewGraph,
    /// In lower case.
    part: Option<String>,
}

impl PictureFilter<'_> {
    fn includes(&self, node: Node<'_>) -> bool {
        (self.query.notes || matches!(node, Node::Entity(_)))
            && node.fits(&self.query.types, self.part.as_deref())
    }
}

impl MemoryGraph {
    /// The picture; `None` if there is no node to start from.
    pub(super) fn picture(&self, query: &ViewGraph) -> Option<GraphView> {
        let wanted = PictureFilter {
            query,
            part: query.part.as_deref().map(str::to_lowercase),
        };
        let (shown, more_nodes) = match &query.around {
            Some(id) => self.neighbourhood_of(self.find(id)?, &wanted),
            None => self.best_connected(&wanted),
        };
        let (edges, more_edges) = self.edges_among(&shown);
        let nodes = shown.iter().map(|ranked| ConnectedNode {
            node: self.to_graph_node(ranked.node),
            degree: ranked.degree,
        });
        let (total_nodes, total_edges) = self.size();
        Some(GraphView {
            nodes: nodes.collect(),
            edges,
            total_nodes,
            total_edges,
            truncated: more_nodes || more_edges,
        })
    }

    fn rank_node<'a>(&self, node: Node<'a>) -> RankedNode<'a> {
        RankedNode {
            node,
            degree: self.degree(node),
        }
    }

    /// The best connected nodes, and whether there are more.
    fn best_connected(&self, wanted: &PictureFilter<'_>) -> (Vec<RankedNode<'_>>, bool) {
        let nodes = self.all_nodes().filter(|node| wanted.includes(*node));
        let mut found: Vec<RankedNode<'_>> = nodes.map(|node| self.rank_node(node)).collect();
        let more = keep_best(&mut found, wanted.query.limit, true);
        (found, more)
    }

    /// A node and the nodes around it, step by step, and whether there are more. It goes only through nodes that it
    /// shows, so that the picture is connected.
    fn neighbourhood_of<'a>(
        &'a self,
        centre: Node<'a>,
        wanted: &PictureFilter<'_>,
    ) -> (Vec<RankedNode<'a>>, bool) {
        let mut seen = HashSet::from([centre.key()]);
        let mut shown = vec![self.rank_node(centre)];
        let (mut last_step, mut more) = (0, false);
        for left in (0..wanted.query.depth).rev() {
            let mut step = Vec::new();
            for from in shown.iter().skip(last_step) {
                let next = self.neighbours(from.node);
                let new = next.filter(|node| seen.insert(node.key()) && wanted.includes(*node));
                step.extend(new.map(|node| self.rank_node(node)));
            }
            last_step = shown.len();
            let room = wanted.query.limit.saturating_sub(shown.len());
            more |= keep_best(&mut step, room, left == 0);
            shown.append(&mut step);
        }
        (shown, more)
    }

    /// The edges between these nodes, and whether there are more. Each is found from the end that it leads from, so the
    /// notes of an entity are not visited.
    fn edges_among(&self, shown: &[RankedNode<'_>]) -> (Vec<GraphEdge>, bool) {
        let inside: HashSet<Uuid> = shown.iter().map(|ranked| ranked.node.key()).collect();
        let mut all = shown
            .iter()
            .flat_map(|ranked| self.edges_from(ranked.node, &inside));
        let edges = all.by_ref().take(MAX_EDGES).collect();
        (edges, all.next().is_some())
    }

    /// The relationships of which an entity is the source; the mentions of a note and the edge from its successor.
    fn edges_from<'a>(
        &'a self,
        node: Node<'a>,
        inside: &'a HashSet<Uuid>,
    ) -> Box<dyn Iterator<Item = GraphEdge> + 'a> {
        match node {
            Node::Entity(entity) => {
                let own = entity.id;
                let relations = self
                    .relations_of(entity)
                    .filter(move |relation| relation.source == own && inside.contains(&relation.target));
                Box::new(relations.filter_map(|relation| self.relation_edge(relation)))
            }
            Node::Note(head) => {
                let mentions = self.mentioned_by(head).map(|id| (id, MENTIONS));
                let successor = head.superseded_by.iter().map(|id| (*id, SUPERSEDES));
                let ends = mentions.chain(successor);
                let ends = ends.filter(|(other, _)| inside.contains(other));
                Box::new(ends.filter_map(|(other, kind)| self.note_edge(head, other, kind)))
            }
        }
    }
}
