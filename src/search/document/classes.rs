//! The classes of rows: population, type, status and marking in one byte, and sets of classes.

use super::Filter;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;

/// Which nodes are searched together. Each has its own frequencies of words and its own ranks, so that one does not change the
/// results of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Population {
    /// What an ingest counts as nodes, and passages about them.
    #[default]
    Main,
    /// What gives context to them: reports, observables, identities, sightings and so on, and passages about these.
    Context,
}

impl Population {
    pub const ALL: [Population; 2] = [Population::Main, Population::Context];

    /// The types of nodes in it.
    pub(in crate::search) fn types(self) -> &'static [NodeType] {
        match self {
            Population::Main => NodeType::ALL,
            Population::Context => &CONTEXT_TYPES,
        }
    }
}

/// The statuses of nodes that anybody sees.
const SHOWN: [NodeStatus; 2] = [NodeStatus::Active, NodeStatus::Rejected];
const TLPS: usize = Tlp::ALL.len();
/// Nodes of one population and type have so many classes.
const OF_TYPE: usize = SHOWN.len() * TLPS;
const MAIN_TYPES: usize = NodeType::ALL.len();
const CONTEXT_TYPES: [NodeType; 3] = [NodeType::Ioc, NodeType::Attck, NodeType::Osint];
const CLASSES: usize = (MAIN_TYPES + CONTEXT_TYPES.len()) * OF_TYPE;

/// The class of a passage with the lowest marking; those with higher ones follow, then those of the next population.
const PASSAGES: u8 = CLASSES as u8;
const PASSAGE_CLASSES: u8 = (Population::ALL.len() * TLPS) as u8;
/// The class of merged nodes, which no mask contains.
const MERGED: u8 = PASSAGES + PASSAGE_CLASSES;

// A mask is one u128, and its last bit is reserved for deleted rows.
const _: () = assert!(MERGED < 127, "classes no longer fit a mask");

/// Number of groups of nodes that are seen by the same callers: those of one population, status and marking.
pub(in crate::search) const GROUPS: usize = Population::ALL.len() * OF_TYPE;

/// The class of a replaced row; no mask contains it.
pub(in crate::search) const GONE: u8 = 127;

/// Population, type, status and marking of a node in one byte.
pub(in crate::search) fn class_of(
    population: Population,
    node_type: NodeType,
    status: NodeStatus,
    tlp: Tlp,
) -> u8 {
    let kind = population.types().iter().position(|known| *known == node_type);
    let shown = SHOWN.iter().position(|known| *known == status);
    let before = match population {
        Population::Main => 0,
        Population::Context => MAIN_TYPES,
    };
    let packed = kind.zip(shown).map(|(kind, shown)| {
        let class = (before + kind) * OF_TYPE + shown * TLPS + usize::from(tlp.rank());
        u8::try_from(class).unwrap_or(MERGED)
    });
    packed.unwrap_or(MERGED)
}

/// The group of nodes of this class; `None` for passages, and for merged nodes, which nobody sees.
#[inline]
pub(in crate::search) fn group_of(class: u8) -> Option<usize> {
    let class = usize::from(class);
    let population = usize::from(class >= MAIN_TYPES * OF_TYPE);
    (class < CLASSES).then_some(population * OF_TYPE + class % OF_TYPE)
}

/// Whether nodes of this class may merely be mentioned in a text: actors and tools.
pub(in crate::search) fn is_entity(class: u8) -> bool {
    [NodeType::Actor, NodeType::Tool]
        .iter()
        .any(|&kind| usize::from(class) / OF_TYPE == kind as usize)
}

/// The class of passages, and of relationships, of a population with this marking.
pub(in crate::search) fn class_of_passage(population: Population, tlp: Tlp) -> u8 {
    PASSAGES + population as u8 * TLPS as u8 + tlp.rank()
}

/// Whether rows of this class are passages.
pub(in crate::search) fn is_passage(class: u8) -> bool {
    (PASSAGES..PASSAGES + PASSAGE_CLASSES).contains(&class)
}

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mask(u128);

impl Mask {
    /// The classes that a filter accepts.
    pub(super) fn of(filter: &Filter) -> Mask {
        let mut bits = 0u128;
        for population in filter.populations() {
            for &node_type in population.types() {
                let asked = filter.node_types.as_ref();
                if asked.is_some_and(|types| !types.contains(&node_type))
                    || !filter.narrowing.allows(node_type)
                {
                    continue;
                }
                for tlp in Tlp::ALL.into_iter().filter(|&tlp| tlp <= filter.highest_tlp) {
                    bits |= 1u128 << class_of(population, node_type, NodeStatus::Active, tlp);
                    if filter.include_rejected {
                        bits |= 1u128 << class_of(population, node_type, NodeStatus::Rejected, tlp);
                    }
                }
            }
        }
        Mask(bits)
    }

    /// The classes of passages that a filter accepts.
    pub(super) fn of_passages(filter: &Filter) -> Mask {
        let mut bits = 0u128;
        for population in filter.populations() {
            let tlps = Tlp::ALL.into_iter().filter(|&tlp| tlp <= filter.highest_tlp);
            bits = tlps.fold(bits, |bits, tlp| {
                bits | 1u128 << class_of_passage(population, tlp)
            });
        }
        Mask(bits)
    }

    /// Whether rows of this class may be shown.
    #[inline]
    pub(super) fn allows(self, class: u8) -> bool {
        class < GONE && self.0 >> class & 1 == 1
    }
}

/// The first class of a group of nodes: the first type of a population is as good as any.
pub(super) fn class_in_group(group: usize) -> Option<u8> {
    let class = match group.checked_sub(OF_TYPE) {
        None => group,
        Some(group) => MAIN_TYPES * OF_TYPE + group,
    };
    u8::try_from(class).ok()
}
