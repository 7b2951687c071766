use std::collections::BTreeMap;

use proptest::prelude::*;
use test_support::extent;

use super::*;
use crate::domain::question::Logic;
use crate::domain::question::relationship_code;

const THINGS: usize = 9;
/// 16 types of relationships, and one that no question follows.
const LABELS: u8 = 17;

/// A graph of things with numbers. Relationships are numbered, too, the newest last.
#[derive(Debug, Clone, Default)]
struct TestGraph<const FREE_LABELS: bool> {
    things: Vec<TestThing>,
    edges: Vec<TestEdge>,
    /// Techniques whose identifiers tell that the second is part of the first.
    parts: Vec<(usize, usize)>,
}

#[derive(Debug, Clone)]
struct TestThing {
    kind: Kind,
    confidence: f64,
    is_hidden: bool,
    /// Whether it is of the time asked for, if anybody knows.
    is_timely: Option<bool>,
}

#[derive(Debug, Clone)]
struct TestEdge {
    source: usize,
    target: usize,
    label: u8,
    confidence: f64,
    is_hidden: bool,
}

impl<const FREE_LABELS: bool> TestGraph<FREE_LABELS> {
    /// The relationships of a thing, the newest first.
    fn edges_of(&self, near: usize) -> impl Iterator<Item = Edge<usize, usize>> {
        let shown = |thing: usize| !self.things[thing].is_hidden;
        let edges = self.edges.iter().enumerate().rev();
        edges.filter_map(move |(relationship, edge)| {
            let outgoing = edge.source == near;
            let to = if outgoing { edge.target } else { edge.source };
            let is_seen = !edge.is_hidden && shown(near) && shown(to);
            let hop = Hop {
                relationship,
                label: edge.label,
                outgoing,
                confidence: edge.confidence,
            };
            (is_seen && (outgoing || edge.target == near)).then(|| Edge {
                hop,
                to,
                kind: self.things[to].kind,
                confidence: self.things[to].confidence,
                recorded_at: i64::try_from(relationship).unwrap(),
            })
        })
    }

    fn sub_techniques_of(&self, near: usize) -> impl Iterator<Item = Edge<usize, usize>> {
        let told = relationship_code("subtechnique-of");
        let is_part = move |edge: &Edge<usize, usize>| {
            edge.kind == Kind::Technique && edge.hop.label == told && !edge.hop.outgoing
        };
        self.edges_of(near).filter(is_part)
    }
}

impl<const FREE_LABELS: bool> Graph for TestGraph<FREE_LABELS> {
    type Thing = usize;
    type Relationship = usize;
    const HAS_FREE_LABELS: bool = FREE_LABELS;
    const KEPT: usize = 2;

    fn visit_edges(
        &self,
        from: &[Start<usize>],
        _: &Goal,
        most: usize,
        mut visit: impl FnMut(usize, Edge<usize, usize>),
    ) {
        let starts = from.iter().enumerate();
        let edges =
            starts.flat_map(|(place, start)| self.edges_of(start.thing).map(move |edge| (place, edge)));
        edges.take(most).for_each(|(place, edge)| visit(place, edge));
    }

    fn sub_techniques(&self, technique: usize) -> Vec<usize> {
        let is_seen = |part: &usize| {
            let TestThing { kind, is_hidden, .. } = self.things[*part];
            kind == Kind::Technique && !is_hidden
        };
        let parts = self.parts.iter().filter(|(whole, _)| *whole == technique);
        parts.map(|(_, part)| *part).filter(is_seen).collect()
    }
}

fn walk<const F: bool>(graph: &TestGraph<F>, plan: &QuestionPlan, named: &[usize]) -> Walk<usize, usize> {
    let named = named.iter().filter(|thing| !graph.things[**thing].is_hidden);
    let mut walk = Walk::from_named(plan, named.map(|thing| (*thing, graph.things[*thing].kind)));
    while walk.proceed(graph).is_some() {
        walk.keep_timely(|thing, _| graph.things[thing].is_timely);
    }
    walk
}

/// How well a relationship between two kinds fits; `None` if it is no step to one of these.
fn fit(near: Kind, edge: &Edge<usize, usize>, kinds: &[Kind], is_free: bool) -> Option<usize> {
    let place = kinds.iter().position(|kind| *kind == edge.kind)?;
    let usual: Vec<u8> = relationships(near, edge.kind)
        .iter()
        .map(|name| relationship_code(name))
        .collect();
    let is_usual = usual.contains(&edge.hop.label);
    let unusual = usize::from(usual.first() != Some(&edge.hop.label));
    (is_usual || is_free).then_some(10 * place + unusual)
}

/// The steps of a plan: the kinds that each leads to, and whether only those of the time asked for.
fn steps_of(plan: &QuestionPlan) -> Vec<(&[Kind], bool)> {
    let timed = plan.period.is_some();
    if plan.through.is_empty() {
        return vec![(&plan.wanted, timed)];
    }
    vec![
        (&plan.through, timed && plan.period_is_of_through),
        (&plan.wanted, timed && !plan.period_is_of_through),
    ]
}

/// The answers, how well each fits and the confidence of the relationship that leads to it, found by comparing everything
/// with everything.
fn naive_answers<const F: bool>(
    graph: &TestGraph<F>,
    plan: &QuestionPlan,
    named: &[usize],
) -> Vec<(usize, usize, f64)> {
    let steps = steps_of(plan);
    let (first, _) = steps[0];
    let kind_of = |thing: usize| graph.things[thing].kind;
    let is_related = |kind: Kind| first.iter().any(|to| !relationships(kind, *to).is_empty());
    let mut from: BTreeMap<usize, usize> = BTreeMap::new();
    for thing in named {
        if !graph.things[*thing].is_hidden && is_related(kind_of(*thing)) {
            from.insert(*thing, 0);
        }
    }
    if !first.contains(&Kind::Technique) {
        let techniques: Vec<usize> = from.keys().copied().collect();
        let techniques = techniques
            .iter()
            .filter(|thing| kind_of(**thing) == Kind::Technique);
        for technique in techniques {
            let told = graph.sub_techniques_of(*technique).map(|edge| edge.to);
            for part in told.chain(graph.sub_techniques(*technique)) {
                from.entry(part).or_insert(100);
            }
        }
    }
    for (number, (kinds, is_timed)) in steps.iter().enumerate() {
        // How well each fits, then number, highest confidence and newest of the relationships, and confidence of the best.
        let mut found: BTreeMap<usize, (usize, usize, f64, i64, f64)> = BTreeMap::new();
        for (near, before) in &from {
            for edge in graph.edges_of(*near) {
                let is_named = number + 1 == steps.len() && named.contains(&edge.to);
                let fitting = fit(kind_of(*near), &edge, kinds, F).filter(|_| !is_named);
                if let Some(fit) = fitting.filter(|_| !from.contains_key(&edge.to)) {
                    let known = found.entry(edge.to).or_insert((usize::MAX, 0, 0.0, 0, 0.0));
                    if before + fit < known.0 {
                        (known.0, known.4) = (before + fit, 0.0);
                    }
                    if before + fit == known.0 {
                        known.4 = known.4.max(edge.hop.confidence);
                    }
                    known.1 += 1;
                    known.2 = known.2.max(edge.hop.confidence);
                    known.3 = known.3.max(edge.recorded_at);
                }
            }
        }
        if *is_timed {
            found.retain(|thing, _| graph.things[*thing].is_timely != Some(false));
            let unknown = found
                .iter_mut()
                .filter(|(thing, _)| graph.things[**thing].is_timely.is_none());
            unknown.for_each(|(_, known)| known.0 += 200);
        }
        if number + 1 == steps.len() {
            let mut best: Vec<_> = found.into_iter().collect();
            best.sort_by(|(one, a), (other, b)| {
                let own = |thing: usize| graph.things[thing].confidence;
                a.0.cmp(&b.0)
                    .then(b.1.cmp(&a.1))
                    .then(b.2.total_cmp(&a.2))
                    .then(own(*other).total_cmp(&own(*one)))
                    .then(b.3.cmp(&a.3))
                    .then(one.cmp(other))
            });
            let answers = best.into_iter().map(|(thing, found)| (thing, found.0, found.4));
            return answers.collect();
        }
        from = found.into_iter().map(|(thing, (fit, ..))| (thing, fit)).collect();
    }
    Vec::new()
}

/// How well a way fits; `None` if a relationship on it does not exist or is hidden, or it begins at nothing named.
fn fit_of_way<const F: bool>(
    graph: &TestGraph<F>,
    (plan, named): (&QuestionPlan, &[usize]),
    way: &[Stop<usize, usize>],
) -> Option<usize> {
    let steps = steps_of(plan);
    let (first, rest) = way.split_first()?;
    let is_identified = |technique: &usize| graph.sub_techniques(*technique).contains(&first.thing);
    let is_named = named.contains(&first.thing);
    let mut fits = if is_named { 0 } else { 100 };
    let mut near = first.thing;
    let parts = rest.len().checked_sub(steps.len())?;
    for (number, stop) in rest.iter().enumerate() {
        let edge = graph
            .edges_of(near)
            .find(|edge| Some(edge.hop) == stop.by && edge.to == stop.thing)?;
        if number < parts {
            fits += 100;
        } else {
            let (kinds, is_timed) = steps[number - parts];
            let is_unknown = is_timed && graph.things[stop.thing].is_timely.is_none();
            fits += fit(graph.things[near].kind, &edge, kinds, F)? + if is_unknown { 200 } else { 0 };
        }
        near = stop.thing;
    }
    let is_begun = is_named || (parts == 0 && named.iter().any(is_identified));
    (is_begun && first.by.is_none() && parts <= 1).then_some(fits)
}

fn any_confidence() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.25), Just(0.5), Just(1.0)]
}

/// Mostly one of the three that are related to each other and have parts.
fn any_kind() -> impl Strategy<Value = Kind> {
    let usual = vec![Kind::Technique, Kind::Group, Kind::Software];
    prop_oneof![3 => prop::sample::select(usual), 1 => prop::sample::select(Kind::ALL.to_vec())]
}

/// Most relationships have the usual type.
fn any_graph<const F: bool>() -> impl Strategy<Value = TestGraph<F>> {
    let thing = (
        any_kind(),
        any_confidence(),
        prop::bool::weighted(0.1),
        any::<Option<bool>>(),
    );
    let thing = thing.prop_map(|(kind, confidence, is_hidden, is_timely)| TestThing {
        kind,
        confidence,
        is_hidden,
        is_timely,
    });
    let edge = (
        (0..THINGS, 0..THINGS),
        (0..LABELS, prop::bool::weighted(0.8)),
        any_confidence(),
        prop::bool::weighted(0.1),
    );
    let things = prop::collection::vec(thing, THINGS);
    let parts = prop::collection::vec((0..THINGS, 0..THINGS), 0..30);
    (things, prop::collection::vec(edge, 0..40), parts).prop_map(|(things, edges, parts)| {
        let edges = edges
            .into_iter()
            .map(|((source, target), (label, is_usual), confidence, is_hidden)| {
                let [near, far]: [&TestThing; 2] = [source, target].map(|end| &things[end]);
                let usual = relationships(near.kind, far.kind).first().filter(|_| is_usual);
                TestEdge {
                    source,
                    target,
                    label: usual.map_or(label, |name| relationship_code(name)),
                    confidence,
                    is_hidden,
                }
            });
        let edges = edges.collect();
        TestGraph { things, edges, parts }
    })
}

fn any_plan() -> impl Strategy<Value = QuestionPlan> {
    let kinds = |least| prop::collection::vec(any_kind(), least..3);
    let plan = (kinds(1), kinds(0), any::<bool>(), any::<bool>());
    plan.prop_map(|(wanted, through, is_timed, period_is_of_through)| QuestionPlan {
        logic: Logic::default(),
        period_is_of_through: period_is_of_through && !through.is_empty(),
        wanted,
        through,
        period: is_timed.then(Period::default),
    })
}

fn check<const F: bool>(
    graph: &TestGraph<F>,
    plan: &QuestionPlan,
    named: &[usize],
) -> Result<(), TestCaseError> {
    let mut walk = walk(graph, plan, named);
    let answers = walk.answers(usize::MAX);
    let lead = |answer: &Answer<usize, usize>| answer.lead.map_or(0.0, |(hop, _)| hop.confidence);
    let found: Vec<(usize, usize, f64)> = answers
        .iter()
        .map(|answer| (answer.thing, answer.fit, lead(answer)))
        .collect();
    prop_assert_eq!(&found, &naive_answers(graph, plan, named));
    for answer in &answers {
        let way = walk.way_to(answer);
        prop_assert_eq!(way.last().map(|stop| stop.thing), Some(answer.thing));
        prop_assert_eq!(
            fit_of_way(graph, (plan, named), &way),
            Some(answer.fit),
            "{:?}",
            way
        );
        prop_assert!((1..=2).contains(&answer.relationships.len()));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent(400, 20_000)))]

    #[test]
    fn a_walk_finds_what_a_search_of_everything_finds(
        graph in any_graph::<false>(),
        plan in any_plan(),
        named in prop::collection::btree_set(0..THINGS, 1..4),
    ) {
        let named: Vec<usize> = named.into_iter().collect();
        check(&graph, &plan, &named)?;
        let TestGraph { things, edges, parts } = graph;
        check(&TestGraph::<true> { things, edges, parts }, &plan, &named)?;
    }
}

/// A graph in which one thing uses so many others.
fn hub(of: Kind, many: usize) -> TestGraph<false> {
    let thing = |kind| TestThing {
        kind,
        confidence: 1.0,
        is_hidden: false,
        is_timely: None,
    };
    let edge = |target| TestEdge {
        source: 0,
        target,
        label: relationship_code("uses"),
        confidence: 0.5,
        is_hidden: false,
    };
    let others = std::iter::repeat_n(thing(of), many);
    TestGraph {
        things: std::iter::once(thing(Kind::Group)).chain(others).collect(),
        edges: (1..=many).map(edge).collect(),
        parts: Vec::new(),
    }
}

fn plan(wanted: Kind, through: Option<Kind>) -> QuestionPlan {
    QuestionPlan {
        logic: Logic::default(),
        wanted: vec![wanted],
        through: through.into_iter().collect(),
        period: None,
        period_is_of_through: false,
    }
}

#[test]
fn a_step_looks_at_a_bounded_number_of_relationships_the_newest_ones() {
    let graph = hub(Kind::Software, EXAMINED + 5);
    let mut walk = walk(&graph, &plan(Kind::Software, None), &[0]);
    let answers = walk.answers(usize::MAX);
    assert_eq!(answers.len(), EXAMINED);
    assert!(answers.iter().all(|answer| answer.thing > 5));
}

#[test]
fn only_the_best_things_on_the_way_are_followed() {
    let between = FOLLOWED + 50;
    let mut graph = hub(Kind::Software, between);
    for software in 1..=between {
        let technique = TestThing {
            kind: Kind::Technique,
            ..graph.things[software].clone()
        };
        graph.edges.push(TestEdge {
            source: software,
            target: graph.things.len(),
            ..graph.edges[0].clone()
        });
        graph.things.push(technique);
    }
    // The first ones have the surest relationships.
    for edge in &mut graph.edges[..FOLLOWED] {
        edge.confidence = 0.75;
    }
    let mut walk = walk(&graph, &plan(Kind::Technique, Some(Kind::Software)), &[0]);
    let mut found: Vec<usize> = walk
        .answers(usize::MAX)
        .iter()
        .map(|answer| answer.thing)
        .collect();
    found.sort_unstable();
    let expected: Vec<usize> = (1..=FOLLOWED).map(|software| between + software).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_walk_can_begin_with_what_is_of_a_time() {
    let graph = hub(Kind::Software, 3);
    let timed = QuestionPlan {
        logic: Logic::default(),
        period: Some(Period::default()),
        period_is_of_through: true,
        ..plan(Kind::Software, Some(Kind::Group))
    };
    let mut walk = Walk::from_named(&timed, []);
    assert!(
        walk.goal()
            .is_some_and(|goal| goal.period.is_some() && !goal.is_asked)
    );
    walk.reach([(0, Kind::Group, 1.0), (1, Kind::Software, 1.0)]);
    assert_eq!(walk.proceed(&graph), None);
    let answers = walk.answers(2);
    assert_eq!(
        answers.iter().map(|answer| answer.thing).collect::<Vec<_>>(),
        [3, 2]
    );
    let way: Vec<usize> = walk.way_to(&answers[0]).iter().map(|stop| stop.thing).collect();
    assert_eq!(way, [0, 3]);

    let mut direct = Walk::<usize, usize>::from_named(&plan(Kind::Group, None), []);
    direct.reach([(0, Kind::Group, 1.0)]);
    assert_eq!(direct.proceed(&graph), None);
    let answers = direct.answers(1);
    assert_eq!(direct.way_to(&answers[0]), [Stop { thing: 0, by: None }]);
}

#[test]
fn a_label_means_a_type_in_any_case_and_however_its_words_are_joined() {
    for label in ["attributed-to", "Attributed_To", "attributed to", "ATTRIBUTED-TO"] {
        assert_eq!(
            code_of_label(label),
            relationship_code("attributed-to"),
            "{label}"
        );
    }
    for label in ["", "use", "uses ", "attributed--to", "owns"] {
        assert_eq!(code_of_label(label), 0, "{label}");
    }
}
