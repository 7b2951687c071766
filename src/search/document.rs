//! The documents of the index, and the queries and results of a search.
//!
//! A node's type, status and marking are packed into one byte, its *class*. A [`Filter`] becomes a [`Mask`], the set of
//! classes the caller may see, so both search legs test one bit per row.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;

/// A node as indexed. `rev` orders the versions of a node; the highest wins.
#[derive(Debug, Clone)]
pub struct IndexDoc {
    pub node_id: Uuid,
    /// Hybrid-logical-clock timestamp of the write, assigned by the store.
    pub rev: u64,
    pub node_type: NodeType,
    pub status: NodeStatus,
    pub tlp: Tlp,
    pub name: String,
    pub aliases: Vec<String>,
    /// Ids that identify exactly this node: CVE, ATT&CK id, indicator value, STIX id.
    pub identifiers: Vec<String>,
    pub body: String,
    /// The quantised embedding; a node without one is found only by its text.
    pub vector: Option<Vec<i8>>,
}

impl IndexDoc {
    /// Removes a node from every search and keeps older versions of it from reappearing.
    pub fn removal(node_id: Uuid, rev: u64) -> Self {
        IndexDoc {
            node_id,
            rev,
            node_type: NodeType::Osint,
            status: NodeStatus::Merged,
            tlp: Tlp::Red,
            name: String::new(),
            aliases: Vec::new(),
            identifiers: Vec::new(),
            body: String::new(),
            vector: None,
        }
    }
}

/// The rows that the caller may see and wants to see. Merged nodes are never shown.
#[derive(Debug, Clone)]
pub struct Filter {
    pub highest_tlp: Tlp,
    pub include_rejected: bool,
    /// `None` means every type.
    pub node_types: Option<Vec<NodeType>>,
    /// A further condition, checked for each row that would otherwise be a result.
    pub only: Option<Only>,
}

/// A condition on individual rows, such as the domain of a note.
#[derive(Clone)]
pub struct Only(Arc<dyn Fn(Uuid) -> bool + Send + Sync>);

impl Only {
    /// Accepts the rows for which `holds` returns true. It is called often and must be fast.
    pub fn new(holds: impl Fn(Uuid) -> bool + Send + Sync + 'static) -> Self {
        Only(Arc::new(holds))
    }
}

impl fmt::Debug for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Only(..)")
    }
}

impl Filter {
    /// Active nodes of every type up to this marking.
    pub fn up_to(highest_tlp: Tlp) -> Self {
        Filter {
            highest_tlp,
            include_rejected: false,
            node_types: None,
            only: None,
        }
    }

    /// This filter restricted to the given types; an empty list changes nothing.
    pub(super) fn narrowed(&self, types: &[NodeType]) -> Filter {
        let wanted = |node_type: &&NodeType| {
            self.node_types
                .as_ref()
                .is_none_or(|allowed| allowed.contains(*node_type))
        };
        let node_types = match types {
            [] => self.node_types.clone(),
            _ => Some(types.iter().filter(wanted).copied().collect()),
        };
        Filter {
            node_types,
            ..self.clone()
        }
    }
}

/// One result. `score` is between 0 and 1, and results are sorted by descending score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub node_id: Uuid,
    pub score: f32,
}

/// How a query is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Both legs, fused; exact names and identifiers first.
    Blended,
    /// Words, names and identifiers.
    Keyword,
    /// Vectors only; the score is the cosine, so it can be compared with a threshold.
    Vector,
}

/// A query already resolved into filters.
#[derive(Debug, Clone, Default)]
pub struct StructuredQuery {
    /// Any of these types; empty means every type.
    pub node_types: Vec<NodeType>,
    /// Names, aliases or identifiers, one of which a node must carry.
    pub keys: Vec<String>,
    /// Remaining words, searched when no key is given or known.
    pub text: String,
}

/// How a node carries a key, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    Alias,
    Name,
    Identifier,
}

impl KeyKind {
    /// The name of the kind in a duplicate check.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyKind::Identifier => "id",
            KeyKind::Name => "name",
            KeyKind::Alias => "alias",
        }
    }
}

/// A node that carries one of the keys looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHit {
    /// Position of the key in the query.
    pub key: usize,
    pub node_id: Uuid,
    pub kind: KeyKind,
}

const STATUSES: usize = NodeStatus::ALL.len();
const TLPS: usize = Tlp::ALL.len();
const CLASSES: usize = NodeType::ALL.len() * STATUSES * TLPS;

// A mask is one u128, and its last bit is reserved for deleted rows.
const _: () = assert!(CLASSES < 127, "classes no longer fit a mask");

/// The class of a replaced row; no mask contains it.
pub(super) const GONE: u8 = 127;

/// Type, status and marking of a node in one byte.
pub(super) fn class_of(node_type: NodeType, status: NodeStatus, tlp: Tlp) -> u8 {
    let packed = (node_type as usize * STATUSES + status as usize) * TLPS + usize::from(tlp.rank());
    u8::try_from(packed).unwrap_or(GONE)
}

/// Whether nodes of this class may merely be mentioned in a text: actors and tools.
pub(super) fn is_entity(class: u8) -> bool {
    [NodeType::Actor, NodeType::Tool]
        .iter()
        .any(|&kind| usize::from(class) / (STATUSES * TLPS) == kind as usize)
}

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mask(u128);

impl Mask {
    /// The classes that a filter accepts.
    fn of(filter: &Filter) -> Mask {
        let mut bits = 0u128;
        for &node_type in NodeType::ALL {
            if filter
                .node_types
                .as_ref()
                .is_some_and(|types| !types.contains(&node_type))
            {
                continue;
            }
            for tlp in Tlp::ALL.into_iter().filter(|&tlp| tlp <= filter.highest_tlp) {
                bits |= 1u128 << class_of(node_type, NodeStatus::Active, tlp);
                if filter.include_rejected {
                    bits |= 1u128 << class_of(node_type, NodeStatus::Rejected, tlp);
                }
            }
        }
        Mask(bits)
    }

    /// Whether rows of this class may be shown.
    #[inline]
    fn allows(self, class: u8) -> bool {
        class < GONE && self.0 >> class & 1 == 1
    }
}

/// What a search may return: the allowed classes, and the condition on rows.
#[derive(Debug, Clone)]
pub(super) struct Allowed {
    mask: Mask,
    only: Option<Only>,
}

impl Allowed {
    pub(super) fn of(filter: &Filter) -> Allowed {
        Allowed {
            mask: Mask::of(filter),
            only: filter.only.clone(),
        }
    }

    /// Whether rows of this class may be shown at all.
    #[inline]
    pub(super) fn class(&self, class: u8) -> bool {
        self.mask.allows(class)
    }

    /// Whether this row may be shown; its node is looked up only if needed.
    #[inline]
    pub(super) fn row(&self, class: u8, node: impl FnOnce() -> Uuid) -> bool {
        self.mask.allows(class) && self.only.as_ref().is_none_or(|Only(holds)| holds(node()))
    }
}
