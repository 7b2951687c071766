//! Relationships stated by the event: object references, galaxies on attributes, composite values.
//!
//! An object has no node of its own. A reference to or from it becomes one to or from its most significant
//! node: the strongest digest of a file, the host of a connection. An edge is at least as restricted as both
//! its ends and its source.

use std::collections::HashMap;

use super::node::Carrier;
use super::wire::{Attribute, Object, ObjectReference};
use super::{SkipCounts, skip};
use crate::domain::draft::{Drafts, EdgeDraft, NodeDraft};
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;

/// The nodes of one attribute, by position.
pub(super) type NodePositions = Vec<usize>;

/// A node that represents an attribute or object; the lowest rank is the most significant.
#[derive(Debug, Clone, Copy)]
struct RepresentativeNode {
    rank: usize,
    node: usize,
}

#[derive(Debug)]
struct PendingReference {
    object_uuid: String,
    object_name: String,
    tlp: Tlp,
    reference: ObjectReference,
}

#[derive(Debug, Default)]
pub(super) struct Edges {
    standing: HashMap<String, RepresentativeNode>,
    stated: Vec<PendingReference>,
    seen: HashMap<(usize, usize, String), usize>,
}

/// Kinds by their significance for the object that contains them.
const RANKS: [&str; 16] = [
    "sha256",
    "sha512",
    "sha1",
    "md5",
    "url",
    "domain",
    "ipv4",
    "ipv6",
    "cidr",
    "email",
    "file-path",
    "file-name",
    "registry-key",
    "mutex",
    "yara",
    "asn",
];

fn rank(node: &NodeDraft) -> usize {
    if node.node_type != NodeType::Ioc {
        return 0;
    }
    let properties = node.properties.map();
    let kind = properties.get("ioc_type").and_then(|kind| kind.as_str());
    let known = RANKS.iter().position(|known| Some(*known) == kind);
    known.map_or(RANKS.len() + 1, |at| at + 1)
}

impl Edges {
    /// Records the node that represents an attribute, and its object if it has one.
    pub(super) fn learn(
        &mut self,
        drafts: &Drafts,
        attribute: &Attribute,
        object: Option<&Object>,
        ends: &NodePositions,
    ) {
        let ranked = ends.iter().filter_map(|&node| {
            let rank = rank(drafts.nodes.get(node)?);
            Some(RepresentativeNode { rank, node })
        });
        let Some(best) = ranked.min_by_key(|standing| standing.rank) else {
            return;
        };
        let named = [
            attribute.uuid.as_ref(),
            object.and_then(|object| object.uuid.as_ref()),
        ];
        for uuid in named.into_iter().flatten() {
            let known = self.standing.entry(uuid.to_ascii_lowercase()).or_insert(best);
            if best.rank < known.rank {
                *known = best;
            }
        }
    }

    /// Defers an object's references until all nodes are known.
    pub(super) fn refer(&mut self, object: &Object, tlp: Tlp) {
        let Some(uuid) = &object.uuid else { return };
        for reference in object.references.iter().filter(|reference| !reference.deleted) {
            self.stated.push(PendingReference {
                object_uuid: uuid.clone(),
                object_name: object.name.clone().unwrap_or_default(),
                tlp,
                reference: reference.clone(),
            });
        }
    }

    /// Relates the two values of a composite attribute.
    pub(super) fn composite(
        &mut self,
        drafts: &mut Drafts,
        ends: &NodePositions,
        relation: Option<&str>,
        carrier: &Carrier<'_>,
    ) {
        if let ([source, target], Some(relation)) = (ends.as_slice(), relation) {
            let name = |at: &usize| drafts.nodes.get(*at).map_or("", |node| node.name.as_str());
            let proof = format!(
                "MISP attribute {}: {} {} {}",
                attribute_id(carrier),
                name(source),
                relation.replace('-', " "),
                name(target)
            );
            self.push(drafts, (*source, *target), relation, carrier.tlp, proof);
        }
    }

    /// Relates an indicator to a cluster on its attribute.
    pub(super) fn galaxy(
        &mut self,
        drafts: &mut Drafts,
        ends: &NodePositions,
        cluster: usize,
        relationship: Option<String>,
        carrier: &Carrier<'_>,
    ) {
        for &source in ends {
            let ioc = drafts
                .nodes
                .get(source)
                .is_some_and(|node| node.node_type == NodeType::Ioc);
            let usual = if ioc { "indicates" } else { "related-to" };
            let relation = relationship
                .as_deref()
                .filter(|text| is_type(text))
                .unwrap_or(usual);
            let proof = format!("MISP galaxy cluster on attribute {}", attribute_id(carrier));
            self.push(drafts, (source, cluster), relation, carrier.tlp, proof);
        }
    }

    /// Turns object references into edges once all nodes are known, and sets the marking of all edges.
    pub(super) fn resolve_references(&mut self, drafts: &mut Drafts, skipped: &mut SkipCounts) {
        for stated in std::mem::take(&mut self.stated) {
            if let Err(reason) = self.resolve(drafts, &stated) {
                skip(skipped, "object_reference", reason, 1);
            }
        }
        let Drafts { nodes, edges, .. } = drafts;
        for edge in edges {
            let ends = [edge.source, edge.target];
            for node in ends.into_iter().filter_map(|end| nodes.get(end)) {
                edge.tlp = edge.tlp.max(node.tlp);
                edge.confidence = edge.confidence.min(node.confidence);
            }
        }
    }

    fn resolve(&mut self, drafts: &mut Drafts, stated: &PendingReference) -> Result<(), &'static str> {
        let reference = &stated.reference;
        let node_of = |uuid: &str| {
            self.standing
                .get(&uuid.to_ascii_lowercase())
                .map(|standing| standing.node)
        };
        let source = node_of(&stated.object_uuid).ok_or("object reference from an object without nodes")?;
        let target = reference
            .referenced_uuid
            .as_deref()
            .and_then(node_of)
            .ok_or("object reference leads outside the event")?;
        if source == target {
            return Err("object reference leads to its own node");
        }
        let relation = reference
            .relationship_type
            .as_deref()
            .filter(|text| is_type(text))
            .unwrap_or("related-to");
        let mut proof = format!(
            "MISP object reference {}",
            reference.uuid.as_deref().unwrap_or("without uuid")
        );
        if !stated.object_name.is_empty() {
            proof.push_str(&format!(" of {} {}", stated.object_name, stated.object_uuid));
        }
        if let Some(comment) = &reference.comment {
            proof.push_str(&format!(": {comment}"));
        }
        self.push(drafts, (source, target), relation, stated.tlp, proof);
        Ok(())
    }

    fn push(
        &mut self,
        drafts: &mut Drafts,
        (source, target): (usize, usize),
        relation: &str,
        tlp: Tlp,
        proof: String,
    ) {
        if source == target {
            return;
        }
        let at = drafts.edges.len();
        let key = (source, target, relation.to_owned());
        if let Some(edge) = drafts.edges.get_mut(*self.seen.entry(key).or_insert(at)) {
            // The same edge stated with different markings gets the stricter one.
            edge.tlp = edge.tlp.max(tlp);
            return;
        }
        drafts.edges.push(EdgeDraft {
            source,
            target,
            relationship: relation.to_owned(),
            tlp,
            confidence: 1.0,
            proof,
            evidence: 0,
        });
    }
}

fn attribute_id<'c>(carrier: &'c Carrier<'_>) -> &'c str {
    carrier.attribute.uuid.as_deref().unwrap_or("without uuid")
}

/// Whether a text is a relationship type (STIX 2.1 section 5.1).
fn is_type(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 250
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
