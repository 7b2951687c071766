//! How the objects that give context are related to other things, and over what the way leads where nothing relates two
//! directly.

use super::kind::{Kind, relationships};

/// How a technique is related to its tactic. No object says so: the technique has the short name of the tactic.
pub const KILL_CHAIN_PHASE: &str = "kill-chain-phase";

type Pair = (&'static [Kind], &'static [Kind], &'static [&'static str]);

const ACTORS: &[Kind] = &[Kind::Group, Kind::Campaign];
const ATTACKING: &[Kind] = &[
    Kind::Group,
    Kind::Campaign,
    Kind::Incident,
    Kind::Software,
    Kind::Technique,
];
const SIGHTED: &[Kind] = &[
    Kind::Group,
    Kind::Campaign,
    Kind::Software,
    Kind::Technique,
    Kind::Vulnerability,
    Kind::Indicator,
    Kind::Infrastructure,
    Kind::Incident,
];
const OBSERVABLES: &[Kind] = &[
    Kind::Domain,
    Kind::Address,
    Kind::Url,
    Kind::File,
    Kind::Email,
    Kind::Observable,
];
const VICTIMS: &[Kind] = &[Kind::Sector, Kind::Identity];

/// The relationships of kinds that give context, each pair in one order; a kind may stand in several rows. In a row the
/// usual relationship comes first.
const PAIRS: &[Pair] = &[
    (
        &[Kind::Detection, Kind::DataComponent],
        &[Kind::Technique],
        &["detects"],
    ),
    (&[Kind::Detection], &[Kind::Analytic], &["has-analytic"]),
    (&[Kind::Analytic], &[Kind::DataComponent], &["data-component"]),
    (&[Kind::DataComponent], &[Kind::DataSource], &["data-source"]),
    (&[Kind::Tactic], &[Kind::Technique], &[KILL_CHAIN_PHASE]),
    (ATTACKING, &[Kind::Asset], &["targets"]),
    (
        ATTACKING,
        VICTIMS,
        &[
            "targets",
            "compromises",
            "impersonates",
            "attributed-to",
            "related-to",
        ],
    ),
    (
        ATTACKING,
        &[Kind::Place],
        &["targets", "located-at", "originates-from", "related-to"],
    ),
    (
        ATTACKING,
        &[Kind::Infrastructure],
        &[
            "uses",
            "hosts",
            "controls",
            "compromises",
            "delivers",
            "communicates-with",
            "beacons-to",
            "exfiltrates-to",
            "targets",
            "related-to",
        ],
    ),
    (ACTORS, &[Kind::Incident], &["attributed-to", "related-to"]),
    (
        &[Kind::Incident],
        &[Kind::Software, Kind::Technique],
        &["uses", "related-to"],
    ),
    (
        &[Kind::Vulnerability],
        &[Kind::Incident],
        &["exploits", "targets", "related-to"],
    ),
    (
        &[Kind::Vulnerability],
        &[Kind::Infrastructure, Kind::Observable],
        &["has"],
    ),
    (
        &[Kind::Indicator],
        &[Kind::Infrastructure],
        &["indicates", "related-to"],
    ),
    (&[Kind::Indicator], OBSERVABLES, &["based-on", "related-to"]),
    (&[Kind::Identity], VICTIMS, &["part-of", "related-to"]),
    (
        &[
            Kind::Sector,
            Kind::Identity,
            Kind::Infrastructure,
            Kind::Address,
            Kind::Incident,
        ],
        &[Kind::Place],
        &["located-at", "related-to"],
    ),
    (&[Kind::Place], &[Kind::Place], &["located-at", "part-of"]),
    (
        &[Kind::Identity],
        &[Kind::Infrastructure, Kind::Domain, Kind::Address],
        &["belongs-to", "related-to"],
    ),
    (
        &[Kind::Infrastructure],
        &[Kind::Infrastructure],
        &["communicates-with", "controls", "uses", "consists-of", "hosts"],
    ),
    (
        &[Kind::Infrastructure],
        OBSERVABLES,
        &["consists-of", "communicates-with", "hosts", "related-to"],
    ),
    (
        &[Kind::Sighting],
        &[Kind::Indicator],
        &["sighting-of", "based-on"],
    ),
    (&[Kind::Sighting], SIGHTED, &["sighting-of"]),
    (&[Kind::Sighting], OBSERVABLES, &["sighting-of", "refers-to"]),
    (
        &[Kind::Sighting],
        &[Kind::Identity, Kind::Sector, Kind::Place],
        &["sighted-by"],
    ),
    (&[Kind::Sighting], &[Kind::Sighting], &["based-on"]),
    (
        &[Kind::Software],
        OBSERVABLES,
        &[
            "communicates-with",
            "beacons-to",
            "exfiltrates-to",
            "downloads",
            "drops",
            "sample",
            "related-to",
        ],
    ),
    (ACTORS, OBSERVABLES, &["uses", "related-to"]),
    (&[Kind::Domain], &[Kind::Address], &["resolves-to"]),
    (&[Kind::Domain], &[Kind::Domain], &["resolves-to"]),
    (
        &[Kind::Address],
        &[Kind::Observable],
        &["belongs-to", "dst", "src", "communicates-with", "resolves-to"],
    ),
    (
        &[Kind::Domain, Kind::Url],
        &[Kind::Observable],
        &["dst", "src", "communicates-with", "contains"],
    ),
    (&[Kind::Email], &[Kind::Observable], &["belongs-to"]),
    (
        &[Kind::File],
        &[Kind::File, Kind::Observable],
        &["contains", "downloads", "drops"],
    ),
    (
        &[Kind::File],
        &[Kind::Domain, Kind::Address, Kind::Url],
        &["communicates-with", "contains"],
    ),
];

/// What a way leads over where nothing relates two kinds directly, or besides.
struct Detour {
    /// What it leads from, over and to; in the other direction, too.
    from: &'static [Kind],
    over: &'static [Kind],
    to: &'static [Kind],
    /// The relationships for which it counts, one of which the question must say; if there are none, it always does.
    along: &'static [&'static str],
}

const fn detour(from: &'static [Kind], over: &'static [Kind], to: &'static [Kind]) -> Detour {
    Detour {
        from,
        over,
        to,
        along: &[],
    }
}

const DETOURS: &[Detour] = &[
    detour(&[Kind::Technique], &[Kind::Detection], &[Kind::Analytic]),
    detour(
        &[Kind::Technique],
        &[Kind::Detection, Kind::Analytic],
        &[Kind::DataComponent],
    ),
    detour(&[Kind::Technique], &[Kind::DataComponent], &[Kind::DataSource]),
    detour(
        &[Kind::Technique],
        &[Kind::Detection, Kind::Analytic, Kind::DataComponent],
        &[Kind::DataSource],
    ),
    detour(&[Kind::Detection], &[Kind::Analytic], &[Kind::DataComponent]),
    detour(
        USING,
        &[Kind::Technique],
        &[Kind::Detection, Kind::DataComponent, Kind::Tactic, Kind::Asset],
    ),
    detour(USING, &[Kind::Technique, Kind::Detection], &[Kind::Analytic]),
    detour(
        USING,
        &[Kind::Technique, Kind::DataComponent],
        &[Kind::DataSource],
    ),
    detour(
        SIGHTED,
        &[Kind::Sighting],
        &[Kind::Place, Kind::Identity, Kind::Sector],
    ),
    detour(
        OBSERVABLES,
        &[Kind::Sighting],
        &[Kind::Place, Kind::Identity, Kind::Sector],
    ),
    detour(&[Kind::Domain], &[Kind::Domain], &[Kind::Address]),
    detour(ACTORS, &[Kind::Infrastructure], OBSERVABLES),
    detour(ACTORS, &[Kind::Software], OBSERVABLES),
    // Who attacks an organization attacks its country; where it has its seat says nothing of the attacker's.
    Detour {
        from: ATTACKING,
        over: &[Kind::Identity],
        to: &[Kind::Place],
        along: &["targets"],
    },
    Detour {
        from: SIGHTED,
        over: &[Kind::Indicator],
        to: OBSERVABLES,
        along: &["based-on", "indicates"],
    },
];
const USING: &[Kind] = &[Kind::Group, Kind::Campaign, Kind::Software, Kind::Mitigation];

/// What a way may lead over, with what it ends at: the kinds of its steps.
pub type Way = Vec<Kind>;

/// The relationship types between two kinds of which one gives context, in either direction.
pub(super) fn context_relationships(one: Kind, other: Kind) -> &'static [&'static str] {
    let names = |kind: Kind| matches!(kind, Kind::Report | Kind::Note);
    let holds = |(of, to, _): &&Pair| {
        (of.contains(&one) && to.contains(&other)) || (of.contains(&other) && to.contains(&one))
    };
    match PAIRS.iter().find(holds) {
        Some((_, _, types)) => types,
        // A report may name anything, and so may a note.
        None if names(one) || names(other) => &["refers-to"],
        None => &[],
    }
}

/// The ways from what is named to what is asked for, given the relationships that the question says: the direct one first.
pub(super) fn ways_between(named: Kind, asked: Kind, along: &[&str]) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    if !relationships(named, asked).is_empty() {
        ways.push(vec![asked]);
    }
    let counts =
        |detour: &&Detour| detour.along.is_empty() || detour.along.iter().any(|name| along.contains(name));
    for detour in DETOURS.iter().filter(counts) {
        let mut way = detour.over.to_vec();
        if detour.from.contains(&asked) && detour.to.contains(&named) {
            way.reverse();
        } else if !(detour.from.contains(&named) && detour.to.contains(&asked)) {
            continue;
        }
        way.push(asked);
        let from = std::iter::once(&named).chain(&way);
        if from
            .zip(&way)
            .all(|(from, to)| !relationships(*from, *to).is_empty())
        {
            ways.push(way);
        }
    }
    ways
}

/// Whether one of these relationships leads along a way from what is named.
pub(super) fn leads_by(named: Kind, way: &[Kind], along: &[&str]) -> bool {
    let from = std::iter::once(named).chain(way.iter().copied());
    let mut steps = from.zip(way);
    steps.any(|(from, to)| relationships(from, *to).iter().any(|name| along.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_a_way_is_a_relationship() {
        for named in Kind::ALL {
            for asked in Kind::ALL {
                assert_eq!(
                    context_relationships(named, asked),
                    context_relationships(asked, named)
                );
                let said: Vec<&str> = DETOURS.iter().flat_map(|detour| detour.along).copied().collect();
                for way in ways_between(named, asked, &said) {
                    let from = std::iter::once(&named).chain(&way);
                    for (from, to) in from.zip(&way) {
                        assert!(
                            !relationships(*from, *to).is_empty(),
                            "{from:?} {to:?} of {way:?}"
                        );
                    }
                    assert_eq!(way.last(), Some(&asked));
                }
            }
        }
    }
}
