//! What questions ask for among the objects that give context, given what they name.

use super::super::walk::Goal;
use super::*;
use crate::domain::question::kind::Kind::{
    Address, Analytic, Asset, DataComponent, Detection, Domain, Group, Identity, Indicator, Infrastructure,
    Note, Place, Report, Sector, Sighting, Software, Tactic, Technique,
};

/// The plan of a question in which these words name things of these kinds.
fn plan(text: &str, names: &[(&str, Kind)]) -> Option<ContextPlan> {
    let now = "2026-03-01T00:00:00Z".parse().unwrap();
    let question = Question::read(text, now);
    let named = |(name, kind): &(&str, Kind)| {
        let candidates = question.context_candidates();
        let candidate = candidates.into_iter().find(|candidate| candidate.text == *name);
        Name {
            words: candidate
                .unwrap_or_else(|| panic!("{text}: {name} is no candidate"))
                .words,
            kinds: vec![*kind],
        }
    };
    let names: Vec<Name> = names.iter().map(named).collect();
    question.context_plan(&names).map(|plan| plan.unwrap())
}

#[test]
fn a_noun_or_a_verb_says_what_is_asked_for() {
    let cases: &[(&str, (&str, Kind), &[Kind])] = &[
        (
            "How can I detect T0866?",
            ("T0866", Technique),
            &[Detection, DataComponent],
        ),
        ("Which analytics detect T0866?", ("T0866", Technique), &[Analytic]),
        (
            "techniques of the tactic Lateral Movement",
            ("Lateral Movement", Tactic),
            &[Technique],
        ),
        ("Which tactics does T0866 serve?", ("T0866", Technique), &[Tactic]),
        ("Which techniques target PLCs?", ("PLCs", Asset), &[Technique]),
        (
            "Which groups target telecommunications?",
            ("telecommunications", Sector),
            &[Group],
        ),
        (
            "Which sectors does Sandworm target?",
            ("Sandworm", Group),
            &[Sector],
        ),
        (
            "Whom does Sandworm target?",
            ("Sandworm", Group),
            &[Sector, Identity, Place],
        ),
        ("who operates from China", ("China", Place), &[Group]),
        ("groups from China", ("China", Place), &[Group]),
        (
            "Where was Industroyer sighted?",
            ("Industroyer", Software),
            &[Place, Identity],
        ),
        ("reports about Sandworm", ("Sandworm", Group), &[Report, Note]),
        ("Sandworm reports", ("Sandworm", Group), &[Report, Note]),
        (
            "which domains resolve to 203.0.113.7",
            ("203.0.113.7", Address),
            &[Domain],
        ),
        (
            "what does a.example resolve to",
            ("a.example", Domain),
            &[Domain, Address],
        ),
        (
            "which infrastructure hosts Industroyer",
            ("Industroyer", Software),
            &[Infrastructure],
        ),
        (
            "what communicates with a.example",
            ("a.example", Domain),
            &[Software],
        ),
        (
            "what is Beacon one based on",
            ("Beacon one", Indicator),
            &[Domain, Address],
        ),
        (
            "Which countries and organizations saw Industroyer?",
            ("Industroyer", Software),
            &[Place, Identity],
        ),
    ];
    for (text, name, wanted) in cases {
        let plan = plan(text, &[*name]).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(
            plan.wanted.get(..wanted.len()),
            Some(*wanted),
            "{text}: {:?}",
            plan.wanted
        );
    }
}

#[test]
fn a_verb_says_which_relationships_count_and_where_the_way_leads() {
    let of = |text: &str, name: (&str, Kind)| {
        let plan = plan(text, &[name]).unwrap();
        let ways: Vec<Vec<Kind>> = plan
            .walks()
            .map(|goals: Vec<Goal>| goals.iter().rev().flat_map(|goal| goal.kinds.clone()).collect())
            .collect();
        (ways, plan)
    };
    let (ways, plan) = of("Which countries does Sandworm target?", ("Sandworm", Group));
    assert_eq!(ways, [vec![Place], vec![Identity, Place]]);
    assert!(plan.along.contains(&"targets") && !plan.along.contains(&"located-at"));
    let (ways, plan) = of("Where does Sandworm operate from?", ("Sandworm", Group));
    assert_eq!(ways.first(), Some(&vec![Place]));
    assert!(
        !ways.contains(&vec![Identity, Place]),
        "a victim's seat is not the attacker's"
    );
    assert!(plan.along.contains(&"located-at") && !plan.along.contains(&"targets"));
    let (ways, _) = of("Where was Industroyer seen?", ("Industroyer", Software));
    assert_eq!(ways.first(), Some(&vec![Sighting, Place]));
    let (ways, _) = of("Which data components detect T0866?", ("T0866", Technique));
    assert_eq!(
        ways.get(..2),
        Some(&[vec![DataComponent], vec![Detection, Analytic, DataComponent]][..])
    );
    for (text, outgoing) in [
        ("what does a.example resolve to", Some(true)),
        ("Resolve a.example", Some(true)),
        ("what resolves to a.example", Some(false)),
    ] {
        assert_eq!(of(text, ("a.example", Domain)).1.outgoing, outgoing, "{text}");
    }
}

#[test]
fn the_time_is_that_of_what_is_dated() {
    let plan = plan(
        "Where was Industroyer sighted in May 2024?",
        &[("Industroyer", Software)],
    )
    .unwrap();
    let goals = plan.walks().next().unwrap();
    let timed: Vec<bool> = goals.iter().rev().map(|goal| goal.period.is_some()).collect();
    assert_eq!(timed, [true, false], "of the sighting, not of the place");
}

/// What asks for things that an ingest counts, and names one, is no question about context.
#[test]
fn other_questions_are_not_taken() {
    for (text, name) in [
        ("Which groups use T0866?", ("T0866", Technique)),
        ("How do I defend against T0866?", ("T0866", Technique)),
        (
            "What countermeasures are there against T0866?",
            ("T0866", Technique),
        ),
        ("List mitigations that cover T0866.", ("T0866", Technique)),
        ("methods of attack used by Sandworm", ("Sandworm", Group)),
        ("Which attack patterns are used by Sandworm?", ("Sandworm", Group)),
        (
            "What does Sandworm use to attack its victims - malware, tools?",
            ("Sandworm", Group),
        ),
        (
            "According to reports, which groups use T0866?",
            ("T0866", Technique),
        ),
        ("Who has been seen with Industroyer?", ("Industroyer", Software)),
        ("Who attacks others by phishing?", ("phishing", Technique)),
        ("defences against T0866", ("T0866", Technique)),
        ("Who is behind Industroyer attacks?", ("Industroyer", Software)),
        ("Sandworm", ("Sandworm", Group)),
    ] {
        let taken = plan(text, &[name]);
        assert!(
            taken.as_ref().is_none_or(|plan| !plan.is_certain),
            "{text}: {taken:?}"
        );
    }
}
