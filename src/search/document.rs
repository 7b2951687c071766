//! What goes into the index and what a search asks for and gets.
//!
//! A node's type, status and marking are packed into one byte, its *class*; a [`Filter`] becomes a
//! [`Mask`], the set of classes the caller may see, so both search legs test one bit per row.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;

/// One node as the index sees it. `rev` orders the versions of a node; the highest wins.
#[derive(Debug, Clone)]
pub struct IndexDoc {
    pub node_id: Uuid,
    /// Hybrid-logical-clock number of the write, given by the store.
    pub rev: u64,
    pub node_type: NodeType,
    pub status: NodeStatus,
    pub tlp: Tlp,
    pub name: String,
    pub aliases: Vec<String>,
    /// Ids that name exactly this node: CVE, ATT&CK id, indicator value, STIX id.
    pub identifiers: Vec<String>,
    pub body: String,
    /// The quantised embedding; without one the node is found by its text only.
    pub vector: Option<Vec<i8>>,
}

impl IndexDoc {
    /// Takes a node out of every search, and keeps older versions of it from coming back.
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

/// Which rows the caller may see and wants. Merged nodes are never shown.
#[derive(Debug, Clone)]
pub struct Filter {
    pub highest_tlp: Tlp,
    pub include_rejected: bool,
    /// `None` is every type.
    pub node_types: Option<Vec<NodeType>>,
    /// Further wishes, asked of each row that would otherwise be in the answer.
    pub only: Option<Only>,
}

/// A condition on single rows, such as the domain of a note.
#[derive(Clone)]
pub struct Only(Arc<dyn Fn(Uuid) -> bool + Send + Sync>);

impl Only {
    /// Lets through the rows for which `holds` is true; it is called often and must be fast.
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

    /// The same filter for these types only; an empty list changes nothing.
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

/// One result. `score` is 0 to 1 and never rises down the list.
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
    /// Meaning only; the score is the cosine, so it can be compared with a threshold.
    Vector,
}

/// A question already turned into filters.
#[derive(Debug, Clone, Default)]
pub struct StructuredQuery {
    /// Any of these types; empty is every type.
    pub node_types: Vec<NodeType>,
    /// Names, aliases or identifiers: the nodes that carry one of them.
    pub keys: Vec<String>,
    /// Words left over, searched when no key is given or none is known.
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
    /// The kind as a duplicate check names it.
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
    /// Position of the key in the question.
    pub key: usize,
    pub node_id: Uuid,
    pub kind: KeyKind,
}

const STATUSES: usize = NodeStatus::ALL.len();
const TLPS: usize = Tlp::ALL.len();
const CLASSES: usize = NodeType::ALL.len() * STATUSES * TLPS;

// A mask is one u128 and the last bit is kept for rows that are gone.
const _: () = assert!(CLASSES < 127, "classes no longer fit a mask");

/// The class of a row that was replaced; no mask contains it.
pub(super) const GONE: u8 = 127;

/// Number of distinct values a class byte takes.
pub(super) const CLASS_SLOTS: usize = 128;

/// Type, status and marking of a node in one byte.
pub(super) fn class_of(node_type: NodeType, status: NodeStatus, tlp: Tlp) -> u8 {
    let packed = (node_type as usize * STATUSES + status as usize) * TLPS + usize::from(tlp.rank());
    u8::try_from(packed).unwrap_or(GONE)
}

/// Whether nodes of this class are named in passing: who acted, and with what.
pub(super) fn is_entity(class: u8) -> bool {
    [NodeType::Actor, NodeType::Tool]
        .iter()
        .any(|&kind| usize::from(class) / (STATUSES * TLPS) == kind as usize)
}

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mask(u128);

impl Mask {
    /// The classes a filter lets through.
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

/// What a search may show: the classes, and the condition on single rows.
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

    /// Whether this row may be shown; its node is only looked up where it decides.
    #[inline]
    pub(super) fn row(&self, class: u8, node: impl FnOnce() -> Uuid) -> bool {
        self.mask.allows(class) && self.only.as_ref().is_none_or(|Only(holds)| holds(node()))
    }
}
