//! What a question can ask for, and which relationships connect what.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::context_routes::{KILL_CHAIN_PHASE, context_relationships};
use crate::domain::kinds::StixRow;
use crate::domain::node::NodeType;

/// A kind of node, as people ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = KindAsked)]
pub enum Kind {
    /// An intrusion set or a threat actor.
    Group,
    Campaign,
    /// Malware or a tool.
    Software,
    Technique,
    /// A course of action.
    Mitigation,
    Vulnerability,
    Indicator,
    /// A detection strategy of ATT&CK.
    Detection,
    Analytic,
    DataComponent,
    DataSource,
    Tactic,
    /// A device of an industrial plant, as ATT&CK for ICS has them.
    Asset,
    /// A class of organizations.
    Sector,
    /// An organization, a person or a system.
    Identity,
    /// A country, a region or another location.
    Place,
    /// A report or a grouping.
    Report,
    /// A note or an opinion.
    Note,
    Incident,
    Infrastructure,
    /// A sighting or observed data.
    Sighting,
    Domain,
    /// An IP address.
    Address,
    Url,
    File,
    Email,
    /// Any other observable.
    Observable,
}

impl Kind {
    /// Their places are codes on disk: new ones are added at the end.
    pub const ALL: [Kind; 27] = [
        Kind::Group,
        Kind::Campaign,
        Kind::Software,
        Kind::Technique,
        Kind::Mitigation,
        Kind::Vulnerability,
        Kind::Indicator,
        Kind::Detection,
        Kind::Analytic,
        Kind::DataComponent,
        Kind::DataSource,
        Kind::Tactic,
        Kind::Asset,
        Kind::Sector,
        Kind::Identity,
        Kind::Place,
        Kind::Report,
        Kind::Note,
        Kind::Incident,
        Kind::Infrastructure,
        Kind::Sighting,
        Kind::Domain,
        Kind::Address,
        Kind::Url,
        Kind::File,
        Kind::Email,
        Kind::Observable,
    ];

    /// Those of the nodes that an ingest counts; the others give context to these.
    pub const MAIN: [Kind; 7] = [
        Kind::Group,
        Kind::Campaign,
        Kind::Software,
        Kind::Technique,
        Kind::Mitigation,
        Kind::Vulnerability,
        Kind::Indicator,
    ];

    /// Whether it is one of the objects that give context to the nodes that an ingest counts.
    pub fn is_context(self) -> bool {
        !Kind::MAIN.contains(&self)
    }

    /// Whether it is a value that is observed.
    pub fn is_observable(self) -> bool {
        self.is_context() && self.node_types() == [NodeType::Ioc]
    }

    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Group => "group",
            Kind::Campaign => "campaign",
            Kind::Software => "software",
            Kind::Technique => "technique",
            Kind::Mitigation => "mitigation",
            Kind::Vulnerability => "vulnerability",
            Kind::Indicator => "indicator",
            Kind::Detection => "detection",
            Kind::Analytic => "analytic",
            Kind::DataComponent => "data_component",
            Kind::DataSource => "data_source",
            Kind::Tactic => "tactic",
            Kind::Asset => "asset",
            Kind::Sector => "sector",
            Kind::Identity => "identity",
            Kind::Place => "place",
            Kind::Report => "report",
            Kind::Note => "note",
            Kind::Incident => "incident",
            Kind::Infrastructure => "infrastructure",
            Kind::Sighting => "sighting",
            Kind::Domain => "domain",
            Kind::Address => "address",
            Kind::Url => "url",
            Kind::File => "file",
            Kind::Email => "email",
            Kind::Observable => "observable",
        }
    }

    /// Whether a question may mean one by a part of its name, as it does with "telecoms".
    pub fn is_named_in_part(self) -> bool {
        let named = [
            Kind::Asset,
            Kind::Sector,
            Kind::Identity,
            Kind::Place,
            Kind::Infrastructure,
            Kind::Incident,
        ];
        named.contains(&self)
    }

    /// The kind of a node; `None` for nodes that no question asks for. A node that is no STIX object has no STIX type. What
    /// gives context is of no kind, but a value that became an observable's node is still an indicator.
    pub fn of(node_type: NodeType, stix_type: Option<&str>) -> Option<Self> {
        let row = stix_type.and_then(StixRow::of);
        if row.is_some_and(StixRow::is_context) && node_type != NodeType::Ioc {
            return None;
        }
        let of_type = row.and_then(|row| row.asked).filter(|kind| !kind.is_context());
        if let Some(kind) = of_type.filter(|kind| kind.node_types().contains(&node_type)) {
            return Some(kind);
        }
        match node_type {
            NodeType::Actor => Some(Kind::Group),
            NodeType::Tool => Some(Kind::Software),
            NodeType::Attck => Some(Kind::Technique),
            NodeType::Cve | NodeType::Vulnerability => Some(Kind::Vulnerability),
            NodeType::Ioc => Some(Kind::Indicator),
            NodeType::Osint => None,
        }
    }

    /// The kind of a STIX object that gives context; `None` for those that no question asks for, and for all others. An
    /// identity is a sector if it is a class of organizations.
    pub fn of_context(stix_type: &str, identity_class: Option<&str>) -> Option<Self> {
        let kind = StixRow::of(stix_type)?.asked.filter(|kind| kind.is_context())?;
        let is_class = kind == Kind::Identity && identity_class == Some("class");
        Some(if is_class { Kind::Sector } else { kind })
    }

    /// The code of a kind on disk; 0 for nodes that no question asks for.
    pub fn code(kind: Option<Kind>) -> u8 {
        code_of(Kind::ALL.iter().position(|known| kind == Some(*known)))
    }

    /// The kind with this code.
    pub fn of_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The types of the nodes of this kind.
    pub fn node_types(self) -> &'static [NodeType] {
        match self {
            Kind::Group | Kind::Campaign => &[NodeType::Actor],
            Kind::Software => &[NodeType::Tool],
            Kind::Technique | Kind::Mitigation => &[NodeType::Attck],
            Kind::Vulnerability => &[NodeType::Cve, NodeType::Vulnerability],
            Kind::Indicator
            | Kind::Domain
            | Kind::Address
            | Kind::Url
            | Kind::File
            | Kind::Email
            | Kind::Observable => &[NodeType::Ioc],
            Kind::Detection
            | Kind::Analytic
            | Kind::DataComponent
            | Kind::DataSource
            | Kind::Tactic
            | Kind::Asset => &[NodeType::Attck],
            Kind::Sector
            | Kind::Identity
            | Kind::Place
            | Kind::Report
            | Kind::Note
            | Kind::Incident
            | Kind::Infrastructure
            | Kind::Sighting => &[NodeType::Osint],
        }
    }

    /// The kinds of the nodes that an ingest counts which a relationship connects with this one.
    pub fn connected_kinds(self) -> Vec<Kind> {
        Kind::MAIN
            .into_iter()
            .filter(|other| !relationships(self, *other).is_empty())
            .collect()
    }
}

/// The relationship types that say how two kinds of nodes are related (STIX 2.1, appendix B), in either direction, the usual
/// one first; none if they aren't related directly.
pub fn relationships(one: Kind, other: Kind) -> &'static [&'static str] {
    use Kind::{Campaign, Group, Indicator, Mitigation, Software, Technique, Vulnerability};
    const INDICATES: &[&str] = &["indicates", "based-on", "communicates-with", "related-to"];
    if one.is_context() || other.is_context() {
        return context_relationships(one, other);
    }
    match (one, other) {
        (Group | Campaign, Technique | Software) | (Technique | Software, Group | Campaign) => {
            &["uses", "authored-by", "related-to"]
        }
        (Software, Technique) | (Technique, Software) => &["uses", "delivers", "related-to"],
        (Campaign, Group) | (Group, Campaign) => &["attributed-to", "related-to"],
        (Mitigation, Technique | Vulnerability) | (Technique | Vulnerability, Mitigation) => &["mitigates"],
        (Group | Campaign | Software | Technique, Vulnerability)
        | (Vulnerability, Group | Campaign | Software | Technique) => &["exploits", "targets", "related-to"],
        (Indicator, Group | Campaign | Software | Technique | Vulnerability)
        | (Group | Campaign | Software | Technique | Vulnerability, Indicator) => INDICATES,
        (Software, Software) => &["variant-of", "drops", "downloads", "delivers", "controls"],
        (Group, Group) => &["attributed-to"],
        (Technique, Technique) => &["subtechnique-of"],
        _ => &[],
    }
}

/// The relationship types that questions follow. Their places are codes on disk: new ones are added at the end.
const CODED: [&str; 40] = [
    "uses",
    "authored-by",
    "related-to",
    "delivers",
    "attributed-to",
    "mitigates",
    "exploits",
    "targets",
    "indicates",
    "based-on",
    "communicates-with",
    "variant-of",
    "drops",
    "downloads",
    "controls",
    "subtechnique-of",
    "detects",
    "has-analytic",
    "data-component",
    "data-source",
    KILL_CHAIN_PHASE,
    "located-at",
    "originates-from",
    "refers-to",
    "sighting-of",
    "sighted-by",
    "hosts",
    "compromises",
    "beacons-to",
    "exfiltrates-to",
    "consists-of",
    "has",
    "resolves-to",
    "belongs-to",
    "impersonates",
    "sample",
    "contains",
    "src",
    "dst",
    "part-of",
];

/// The code of a relationship type; 0 for one that no question follows.
pub fn relationship_code(relationship: &str) -> u8 {
    code_of(CODED.iter().position(|coded| *coded == relationship))
}

/// The relationship type with this code.
pub fn relationship_of_code(code: u8) -> Option<&'static str> {
    CODED.get(usize::from(code).checked_sub(1)?).copied()
}

/// The code of what is at this place of a list.
fn code_of(place: Option<usize>) -> u8 {
    place
        .and_then(|place| u8::try_from(place + 1).ok())
        .unwrap_or_default()
}

/// The kind between two that are related only through it.
pub fn intermediate_kind(one: Kind, other: Kind) -> Option<Kind> {
    use Kind::{Campaign, Group, Mitigation, Software, Technique};
    match (one, other) {
        (Mitigation, Group | Campaign | Software) | (Group | Campaign | Software, Mitigation) => {
            Some(Technique)
        }
        _ => None,
    }
}

/// The kinds on the way from what is named to what is asked for: those that the question says if they fit, else none if
/// both are related directly, else the usual one. `None` if nothing relates them.
pub(super) fn connect_kinds(wanted: &[Kind], said: Vec<Kind>, named: &[Kind]) -> Option<Vec<Kind>> {
    if named.is_empty() {
        let relates = |through: &Kind| {
            wanted
                .iter()
                .any(|wanted| !relationships(*wanted, *through).is_empty())
        };
        return Some(said.into_iter().filter(relates).collect());
    }
    let relates =
        |one: &Kind, others: &[Kind]| others.iter().any(|other| !relationships(*one, *other).is_empty());
    let fitting: Vec<Kind> = said
        .into_iter()
        .filter(|kind| relates(kind, wanted) && relates(kind, named))
        .collect();
    if !fitting.is_empty() {
        return Some(fitting);
    }
    if wanted.iter().any(|kind| relates(kind, named)) {
        return Some(Vec::new());
    }
    let usual = wanted
        .iter()
        .find_map(|wanted| named.iter().find_map(|named| intermediate_kind(*wanted, *named)));
    usual.map(|kind| vec![kind])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_every_relationship_that_a_question_follows_has_a_code() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_code(Kind::code(Some(kind))), Some(kind));
            for other in Kind::ALL {
                for name in relationships(kind, other) {
                    assert_eq!(relationship_of_code(relationship_code(name)), Some(*name));
                }
            }
        }
        assert_eq!(Kind::of_code(Kind::code(None)), None);
        assert_eq!(relationship_code("owns"), 0);
        assert_eq!(relationship_of_code(0), None);
        assert_eq!(relationship_of_code(u8::MAX), None);
        let codes: std::collections::HashSet<u8> = CODED.iter().map(|name| relationship_code(name)).collect();
        assert_eq!(codes.len(), CODED.len());
    }
}
