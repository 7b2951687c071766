//! Galaxy clusters: which become actor, tool, technique or vulnerability nodes, and with which properties.
//!
//! Clusters come in full as `Galaxy`, or only as a `misp-galaxy:type="value"` tag, as in most feeds; both forms of
//! one cluster yield one node. Clusters of other galaxies (sectors, countries) become tags.
//!
//! ATT&CK clusters are named `Name - ID`. Actors and tools drop the id, since their names are unique. Techniques keep
//! it, because nodes are merged by name and different techniques share one (`Server - T1583.004`,
//! `Server - T1584.004`).

use serde_json::{Map, Value};
use uuid::Uuid;

use super::lenient::{meta_texts, scrub_map};
use super::marking::ClusterTag;
use super::wire::{Cluster, Distribution, Galaxy};
use crate::domain::draft::identity;
use crate::domain::extraction::canonical_name;
use crate::domain::naming::identity_of;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;

/// Maximum number of references kept per cluster.
const MAX_REFERENCES: usize = 50;

/// A cluster that becomes a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClusterNode {
    pub identity: String,
    pub merge_by_name: bool,
    pub node_type: NodeType,
    pub name: String,
    pub description: String,
    pub properties: Map<String, Value>,
    /// The marking from its own distribution, if any.
    pub tlp: Option<Tlp>,
    /// The stated relationship of the carrier to the cluster, if any.
    pub relationship: Option<String>,
}

/// The combined galaxies and galaxy tags of one carrier.
#[derive(Debug, Default)]
pub(super) struct Clusters {
    pub nodes: Vec<ClusterNode>,
    /// Tags of clusters that do not become nodes.
    pub labels: Vec<String>,
}

/// Reads the galaxies and the galaxy tags of an event or attribute.
pub(super) fn read(galaxies: &[Galaxy], tags: &[ClusterTag]) -> Clusters {
    let mut read = Clusters::default();
    let mut described: Vec<&str> = Vec::new();
    for (galaxy, cluster) in galaxies
        .iter()
        .flat_map(|galaxy| galaxy.clusters.iter().map(move |cluster| (galaxy, cluster)))
        .filter(|(_, cluster)| !cluster.deleted)
    {
        described.extend(cluster.tag_name.as_deref());
        let cluster = &with_elements(cluster);
        let kind = cluster
            .kind
            .as_deref()
            .or(galaxy.kind.as_deref())
            .unwrap_or_default();
        read.add(kind, cluster);
    }
    for tag in tags.iter().filter(|tag| !described.contains(&tag.tag.as_str())) {
        let cluster = Cluster {
            value: Some(tag.value.clone()),
            tag_name: Some(tag.tag.clone()),
            ..Cluster::default()
        };
        read.add(&tag.kind, &cluster);
    }
    read
}

impl Clusters {
    fn add(&mut self, kind: &str, cluster: &Cluster) {
        let Some(value) = cluster.value.as_deref() else {
            return;
        };
        // A custom cluster is tagged by its UUID, which names nothing.
        let is_named = Uuid::parse_str(value).is_err();
        match node_type(kind).filter(|_| is_named) {
            Some(node_type) => {
                let node = node(kind, node_type, value, cluster);
                if !self.nodes.iter().any(|known| known.identity == node.identity) {
                    self.nodes.push(node);
                }
            }
            None => {
                let tag = cluster.tag_name.clone();
                self.labels
                    .push(tag.unwrap_or_else(|| format!("misp-galaxy:{kind}=\"{value}\"")));
            }
        }
    }
}

/// A cluster whose elements stand in its `meta`, unless they stand there already.
fn with_elements(cluster: &Cluster) -> Cluster {
    let mut whole = cluster.clone();
    for element in std::mem::take(&mut whole.elements) {
        let (Some(key), Some(value)) = (element.key, element.value) else {
            continue;
        };
        if cluster.meta.contains_key(&key) {
            continue;
        }
        let values = whole.meta.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(values) = values {
            values.push(value.into());
        }
    }
    whole
}

/// The node type of a galaxy's clusters, by the galaxy's `type` (misp-galaxy repository).
fn node_type(kind: &str) -> Option<NodeType> {
    let has = |parts: &[&str]| parts.iter().any(|part| kind.contains(part));
    let is = |names: &[&str]| names.contains(&kind);
    if has(&[
        "threat-actor",
        "intrusion-set",
        "activity-group",
        "360net",
        "campaign",
    ]) || is(&["mitre-ics-groups", "tidal-groups"])
    {
        return Some(NodeType::Actor);
    }
    if has(&[
        "attack-pattern",
        "course-of-action",
        "-techniques",
        "-technique",
        "-tactic",
    ]) || is(&["attck4fraud", "mitre-fight-mitigations"])
    {
        return Some(NodeType::Attck);
    }
    if has(&["branded-vulnerability", "branded_vulnerability"]) {
        return Some(NodeType::Vulnerability);
    }
    let tool = has(&["malware", "malpedia", "ransomware", "-software", "-tool"])
        || is(&[
            "tool",
            "rat",
            "banker",
            "stealer",
            "botnet",
            "exploit-kit",
            "backdoor",
            "android",
            "cryptominers",
            "tds",
            "stalkerware",
            "wiper",
            "loader",
        ]);
    tool.then_some(NodeType::Tool)
}

fn node(kind: &str, node_type: NodeType, value: &str, cluster: &Cluster) -> ClusterNode {
    let (bare, suffix) = match value.rsplit_once(" - ") {
        Some((bare, id)) if fits(id, kind, node_type) => (bare.trim(), Some(id)),
        Some(_) | None => (value, None),
    };
    let listed = meta_texts(&cluster.meta, "external_id");
    let mut ids: Vec<String> = suffix.map(str::to_owned).into_iter().collect();
    for id in listed.into_iter().filter(|id| fits(id, kind, node_type)) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let name = if node_type == NodeType::Attck { value } else { bare };
    let (identity, merge_by_name) = match (node_type, ids.first()) {
        (NodeType::Attck, Some(id)) => identity_of(node_type, id),
        // By the whole name: an id in it that is not the cluster's own must not count.
        (NodeType::Attck, None) => (identity([node_type.as_str(), &canonical_name(name)]), true),
        _ => identity_of(node_type, name),
    };
    ClusterNode {
        identity,
        merge_by_name,
        node_type,
        name: name.to_owned(),
        description: cluster.description.clone().unwrap_or_default(),
        tlp: match cluster.distribution {
            Distribution::Level(0) | Distribution::Unreadable => Some(Tlp::Red),
            Distribution::Level(1) => Some(Tlp::Amber),
            Distribution::Level(_) | Distribution::Absent => None,
        },
        relationship: cluster.relationship_type.clone(),
        properties: properties(kind, name, ids, cluster),
    }
}

fn properties(kind: &str, name: &str, ids: Vec<String>, cluster: &Cluster) -> Map<String, Value> {
    let mut shown = Map::new();
    let mut aliases = Vec::new();
    for alias in meta_texts(&cluster.meta, "synonyms") {
        if alias != name && !aliases.contains(&alias) {
            aliases.push(alias);
        }
    }
    let mut references = meta_texts(&cluster.meta, "refs");
    references.truncate(MAX_REFERENCES);
    for (key, texts) in [
        ("aliases", aliases),
        ("external_ids", ids),
        ("references", references),
        ("kill_chain", meta_texts(&cluster.meta, "kill_chain")),
    ] {
        if !texts.is_empty() {
            shown.insert(key.to_owned(), texts.into());
        }
    }
    shown.insert("galaxy_type".to_owned(), kind.into());
    for (key, text) in [("cluster_uuid", &cluster.uuid), ("galaxy_tag", &cluster.tag_name)] {
        if let Some(text) = text {
            shown.insert(key.to_owned(), text.as_str().into());
        }
    }
    let meta = scrub_map(&cluster.meta, &["synonyms", "refs", "kill_chain"]);
    if !meta.is_empty() {
        shown.insert("meta".to_owned(), meta.into());
    }
    shown
}

/// Whether a text is an ATT&CK id of the kind that the galaxy holds. Old mitigations carry the id of their technique,
/// which does not count.
fn fits(id: &str, kind: &str, node_type: NodeType) -> bool {
    let prefixes: &[&str] = match node_type {
        NodeType::Actor => &["G", "C"],
        NodeType::Tool => &["S"],
        NodeType::Attck if kind.contains("course-of-action") || kind.contains("mitigation") => &["M"],
        NodeType::Attck => &["T", "TA"],
        NodeType::Cve | NodeType::Ioc | NodeType::Osint | NodeType::Vulnerability => &[],
    };
    let is_number = |text: &str, least: usize| {
        text.len() >= least && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    prefixes.iter().any(|prefix| {
        id.strip_prefix(prefix)
            .is_some_and(|number| match number.split_once('.') {
                Some((number, sub)) => *prefix == "T" && is_number(number, 4) && is_number(sub, 3),
                None => is_number(number, 4),
            })
    })
}
