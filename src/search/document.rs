//! The documents of the index, and the queries and results of a search.
//!
//! A node's type, status and marking are packed into one byte, its *class*. A [`Filter`] becomes a [`Mask`], the set of
//! classes the caller may see, so both search legs test one bit per row. Passages have classes of their own, so a search
//! for nodes never meets one.

pub(super) mod classes;
pub(super) mod facts;
pub(super) mod marking_counts;

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

pub use self::classes::Population;
pub(super) use self::classes::{GONE, GROUPS, class_of, class_of_passage, group_of, is_entity, is_passage};
use self::classes::{Mask, class_in_group};
use self::facts::{FactBounds, Facts};
use self::marking_counts::VisibleGroups;
use crate::domain::narrowing::Narrowing;
use crate::domain::node::{NodeStatus, NodeType};
use crate::domain::tlp::Tlp;
use crate::domain::why::{MatchedBy, NamedBy};

/// A node, or a passage about nodes, as indexed. `rev` orders the versions of a node; the highest wins.
#[derive(Debug, Clone)]
pub struct IndexDoc {
    pub node_id: Uuid,
    /// The number of the write in its workspace, assigned by the store.
    pub rev: u64,
    pub population: Population,
    pub node_type: NodeType,
    pub status: NodeStatus,
    pub tlp: Tlp,
    pub name: String,
    pub aliases: Vec<String>,
    /// Ids that identify exactly this node: CVE, ATT&CK id, indicator value, STIX id.
    pub identifiers: Vec<String>,
    pub body: String,
    /// What results can be narrowed by.
    pub facts: Facts,
    /// The quantised embedding; a node without one is found only by its text.
    pub vector: Option<Vec<i8>>,
    /// What a passage is about. Only its body is searched, and it is no result itself.
    pub ends: Option<Ends>,
    /// The relationship that has this id, with a text or without one.
    pub relation: Option<Relation>,
}

/// A relationship between two nodes, as steps follow it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relation {
    pub ends: Ends,
    pub tlp: Tlp,
    /// The kind of relationship.
    pub code: u8,
    /// 0 to 1.
    pub confidence: f64,
}

/// Size of the ends of a passage on disk.
pub(super) const ENDS_BYTES: usize = 32;

/// The nodes that a passage is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends([Uuid; 2]);

impl Ends {
    /// The ends of a relationship, the same twice if it connects a node to itself.
    pub fn of(source: Uuid, target: Uuid) -> Self {
        Ends([source, target])
    }

    /// Where it begins and where it ends.
    pub(super) fn both(&self) -> [Uuid; 2] {
        self.0
    }

    /// The nodes, each once.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Uuid> {
        let [source, target] = self.0;
        let second = (source != target).then_some(target);
        std::iter::once(source).chain(second)
    }

    pub(super) fn is_source(&self, node: Uuid) -> bool {
        let [source, target] = self.0;
        node == source && source != target
    }

    pub(super) fn to_bytes(self) -> [u8; ENDS_BYTES] {
        let [source, target] = self.0;
        let mut bytes = [0; ENDS_BYTES];
        let parts = source.into_bytes().into_iter().chain(target.into_bytes());
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; ENDS_BYTES]) -> Option<Self> {
        let (source, rest) = bytes.split_first_chunk::<16>()?;
        let target = rest.first_chunk::<16>()?;
        Some(Ends::of(Uuid::from_bytes(*source), Uuid::from_bytes(*target)))
    }
}

impl IndexDoc {
    /// Removes a node from every search and keeps older versions of it from reappearing.
    pub fn removal(node_id: Uuid, rev: u64) -> Self {
        IndexDoc {
            node_id,
            rev,
            population: Population::Main,
            node_type: NodeType::Osint,
            status: NodeStatus::Merged,
            tlp: Tlp::Red,
            name: String::new(),
            aliases: Vec::new(),
            identifiers: Vec::new(),
            body: String::new(),
            facts: Facts::default(),
            vector: None,
            ends: None,
            relation: None,
        }
    }

    /// A relationship, and its text if it has one.
    pub fn relationship(id: Uuid, rev: u64, relation: Relation, text: Option<String>) -> Self {
        let doc = match text {
            Some(text) => IndexDoc::passage(id, rev, relation.tlp, relation.ends, text),
            None => IndexDoc::removal(id, rev),
        };
        IndexDoc {
            relation: Some(relation),
            ..doc
        }
    }

    /// A text about other nodes.
    pub fn passage(id: Uuid, rev: u64, tlp: Tlp, ends: Ends, text: String) -> Self {
        IndexDoc {
            status: NodeStatus::Active,
            tlp,
            body: text,
            ends: Some(ends),
            ..IndexDoc::removal(id, rev)
        }
    }

    /// Whether this ends all earlier versions without a new one.
    pub(super) fn is_removal(&self) -> bool {
        self.status == NodeStatus::Merged
    }

    /// Whether it matters to the search, apart from a version of it with a text.
    pub(super) fn is_searched(&self) -> bool {
        self.relation.is_none() || !self.is_removal()
    }

    /// The class of its row.
    pub(super) fn class(&self) -> u8 {
        match self.ends {
            Some(_) if !self.is_removal() => class_of_passage(self.population, self.tlp),
            Some(_) | None => class_of(self.population, self.node_type, self.status, self.tlp),
        }
    }
}

/// The rows that the caller may see and wants to see. Merged nodes are never shown.
#[derive(Debug, Clone)]
pub struct Filter {
    pub highest_tlp: Tlp,
    /// `None` means both, which only look-ups of keys and steps along relationships should ask for.
    pub population: Option<Population>,
    pub include_rejected: bool,
    /// `None` means every type.
    pub node_types: Option<Vec<NodeType>>,
    /// What the caller asks of every result.
    pub narrowing: Narrowing,
    /// A further condition, checked for each row that would otherwise be a result.
    pub only: Option<RowPredicate>,
}

/// A condition on individual rows, such as the domain of a note.
#[derive(Clone)]
pub struct RowPredicate(Arc<dyn Fn(Uuid) -> bool + Send + Sync>);

impl RowPredicate {
    /// Accepts the rows for which `holds` returns true. It is called often and must be fast.
    pub fn new(holds: impl Fn(Uuid) -> bool + Send + Sync + 'static) -> Self {
        RowPredicate(Arc::new(holds))
    }
}

impl fmt::Debug for RowPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Only(..)")
    }
}

impl Filter {
    /// Active nodes of every type up to this marking.
    pub fn up_to(highest_tlp: Tlp) -> Self {
        Filter {
            highest_tlp,
            population: Some(Population::Main),
            include_rejected: false,
            node_types: None,
            narrowing: Narrowing::default(),
            only: None,
        }
    }

    fn populations(&self) -> impl Iterator<Item = Population> {
        let asked = self.population;
        let all = Population::ALL.into_iter();
        all.filter(move |population| asked.is_none_or(|asked| asked == *population))
    }

    /// This filter for nodes of both populations.
    pub fn of_all(self) -> Filter {
        Filter {
            population: None,
            ..self
        }
    }

    /// This filter without what the caller asks of results.
    pub fn without_narrowing(&self) -> Filter {
        Filter {
            narrowing: Narrowing::default(),
            ..self.clone()
        }
    }

    /// This filter restricted to the given types; an empty list changes nothing.
    pub(super) fn narrow_to_types(&self, types: &[NodeType]) -> Filter {
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
    pub matched: MatchedBy,
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

impl From<KeyKind> for MatchedBy {
    fn from(kind: KeyKind) -> Self {
        NamedBy::from(kind).into()
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

/// Decides which rows one leg of a search may return.
pub(super) trait RowFilter: Sync {
    /// Whether rows of this class may be returned at all.
    fn class(&self, class: u8) -> bool;

    /// Whether the caller may see rows of this class, wanted or not.
    fn sees(&self, class: u8) -> bool;

    /// The strictest marking that the caller may see.
    fn highest_tlp(&self) -> Tlp;

    /// Whether this row may be returned; what it says is looked up only if needed.
    fn row(&self, class: u8, row: &impl Candidate) -> bool;
}

/// A row that a leg of a search has come across.
pub(super) trait Candidate {
    /// Its node or passage.
    fn node(&self) -> Uuid;

    /// What a passage is about.
    fn ends(&self) -> Option<Ends>;

    /// The classes of what a passage is about.
    fn classes_of_ends(&self) -> Option<[u8; 2]>;

    /// The facts about its node.
    fn facts(&self) -> Option<Facts>;
}

/// What a search may return: the allowed classes, the bounds on facts, and the condition on rows.
#[derive(Debug, Clone)]
pub(super) struct CompiledFilter {
    mask: Mask,
    highest_tlp: Tlp,
    bounds: Option<FactBounds>,
    only: Option<RowPredicate>,
    /// The same without what the caller asks of results, if it asks anything.
    widest: Option<Box<CompiledFilter>>,
    /// Nodes of every type that the caller may see, and passages.
    visible: Mask,
    passages: Mask,
    /// What passages may be about: nodes of both populations.
    ends: Mask,
}

impl CompiledFilter {
    pub(super) fn of(filter: &Filter) -> CompiledFilter {
        let of_every_type = Filter {
            node_types: None,
            ..filter.without_narrowing()
        };
        let widest = || Box::new(CompiledFilter::of(&filter.without_narrowing()));
        CompiledFilter {
            mask: Mask::of(filter),
            highest_tlp: filter.highest_tlp,
            bounds: FactBounds::of(&filter.narrowing),
            widest: (!filter.narrowing.is_empty()).then(widest),
            only: filter.only.clone(),
            visible: Mask::of(&of_every_type),
            passages: Mask::of_passages(filter),
            ends: Mask::of(&of_every_type.of_all()),
        }
    }

    /// Whether the caller may see nodes of this class in either population.
    #[inline]
    pub(super) fn end(&self, class: u8) -> bool {
        self.ends.allows(class)
    }

    /// What would be allowed if the caller asked nothing of results; `None` if it doesn't.
    pub(super) fn widest(&self) -> Option<&CompiledFilter> {
        self.widest.as_deref()
    }

    /// The groups of nodes that the caller may see, wanted or not.
    pub(super) fn groups(&self) -> VisibleGroups {
        VisibleGroups::of(|group| class_in_group(group).is_some_and(|class| self.visible.allows(class)))
    }

    /// Whether the caller may see passages of this class, provided that it may see what they are about.
    #[inline]
    pub(super) fn passage(&self, class: u8) -> bool {
        self.passages.allows(class)
    }
}

impl RowFilter for CompiledFilter {
    #[inline]
    fn class(&self, class: u8) -> bool {
        self.mask.allows(class)
    }

    #[inline]
    fn sees(&self, class: u8) -> bool {
        self.visible.allows(class)
    }

    fn highest_tlp(&self) -> Tlp {
        self.highest_tlp
    }

    #[inline]
    fn row(&self, class: u8, row: &impl Candidate) -> bool {
        let in_bounds = |bounds: &FactBounds| row.facts().is_some_and(|facts| bounds.admit(&facts));
        self.mask.allows(class)
            && self.bounds.as_ref().is_none_or(in_bounds)
            && self
                .only
                .as_ref()
                .is_none_or(|RowPredicate(holds)| holds(row.node()))
    }
}
