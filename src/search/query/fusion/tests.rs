use std::sync::LazyLock;

use super::super::votes::Vote;
use super::*;

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

static WEIGHT: LazyLock<QueryWeight> = LazyLock::new(|| QueryWeight {
    words: 3,
    most: 30.0,
    known: 30.0,
    nodes: 1000,
    ..QueryWeight::default()
});

fn legs<'a>(keyword: &'a [(Uuid, f32)], vector: &'a [(Uuid, f32)], votes: &'a Votes) -> Legs<'a> {
    Legs {
        keyword,
        vector,
        votes,
        query_weight: &WEIGHT,
        has_floor: true,
    }
}

#[test]
fn being_first_in_both_legs_is_best() {
    let keyword = [(id(1), 9.0), (id(2), 8.0), (id(3), 1.0)];
    let vector = [(id(1), 0.9), (id(3), 0.8), (id(2), 0.1)];
    let hits = blend(
        &legs(&keyword, &vector, &Votes::new()),
        &NameMatches::default(),
        3,
        |_| None,
    )
    .into_hits();
    assert_eq!(hits.first().map(|hit| hit.node_id), Some(id(1)));
}

#[test]
fn the_only_keyword_match_counts() {
    let vector: Vec<(Uuid, f32)> = (1..=50u8)
        .map(|n| (id(u128::from(n)), 0.5 - f32::from(n) / 500.0))
        .collect();
    let hits = blend(
        &legs(&[(id(40), 7.0)], &vector, &Votes::new()),
        &NameMatches::default(),
        100,
        |_| None,
    )
    .into_hits();
    assert_eq!(hits.first().map(|hit| hit.node_id), Some(id(40)));
}

#[test]
fn a_passage_with_the_words_beats_noise_of_meaning() {
    let vector: Vec<(Uuid, f32)> = (1..=50u8)
        .map(|n| (id(u128::from(n)), 0.3 / f32::from(n)))
        .collect();
    let vote = Vote {
        weight: 0.3,
        words: 9.0,
        passages: vec![(id(99), 0.3)],
        ..Vote::default()
    };
    let votes = Votes::from([(id(40), vote)]);
    let legs = legs(&[], &vector, &votes);
    let blend = blend(&legs, &NameMatches::default(), 100, |_| None);
    let shares = blend.shares(&legs)[&id(40)];
    assert!(shares.evidence > 0.9 && shares.words < 0.01, "{shares:?}");
    assert_eq!(blend.into_hits().first().map(|hit| hit.node_id), Some(id(40)));
}

#[test]
fn bands_are_in_order_and_scores_fall() {
    let mut named = NameMatches::default();
    named.nodes.insert(
        id(1),
        ExactMatch {
            share: 0.5,
            ..ExactMatch::default()
        },
    );
    named.nodes.insert(
        id(2),
        ExactMatch {
            whole: Some(KeyKind::Alias),
            share: 1.0,
            ..ExactMatch::default()
        },
    );
    named.nodes.insert(
        id(3),
        ExactMatch {
            whole: Some(KeyKind::Name),
            share: 1.0,
            ..ExactMatch::default()
        },
    );
    let hits = blend(
        &legs(&[(id(4), 99.0)], &[(id(5), 1.0)], &Votes::new()),
        &named,
        100,
        |_| None,
    )
    .into_hits();
    let order: Vec<Uuid> = hits.iter().map(|hit| hit.node_id).collect();
    assert_eq!(order.get(..3), Some([id(3), id(2), id(1)].as_slice()));
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
    assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
}

#[test]
fn shares_tell_what_lifted_a_node_over_the_last_one() {
    let keyword = [(id(1), 9.0), (id(3), 1.0)];
    let vector = [(id(2), 0.9), (id(3), 0.1), (id(4), 0.1)];
    let vote = Vote {
        weight: 0.5,
        words: 0.0,
        passages: vec![(id(9), 0.5)],
        ..Vote::default()
    };
    let votes = Votes::from([(id(4), vote)]);
    let mut named = NameMatches::default();
    let exact = ExactMatch {
        share: 0.5,
        ..ExactMatch::default()
    };
    named.nodes.insert(id(5), exact);
    let legs = legs(&keyword, &vector, &votes);
    let shares = blend(&legs, &named, 100, |_| None).shares(&legs);
    // Nothing but the leg that lists it speaks for the first, the second and the fourth.
    assert!(shares[&id(1)].words > 0.99, "{shares:?}");
    assert!(shares[&id(2)].meaning > 0.99, "{shares:?}");
    assert!(shares[&id(4)].evidence > 0.5, "{shares:?}");
    assert!(shares[&id(5)].words > 0.99, "{shares:?}");
    for shares in shares.values() {
        let parts = [shares.words, shares.meaning, shares.graph, shares.evidence];
        assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{parts:?}");
        assert!((parts.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{parts:?}");
    }
}

#[test]
fn a_node_without_rivals_has_the_shares_of_the_legs_that_list_it() {
    let (keyword, vector, votes) = ([(id(1), 3.0)], [(id(1), 0.5)], Votes::new());
    let alone = legs(&keyword, &vector, &votes);
    let shares = blend(&alone, &NameMatches::default(), 100, |_| None).shares(&alone);
    assert_eq!((shares[&id(1)].words, shares[&id(1)].meaning), (0.5, 0.5));
    let alone = legs(&[], &vector, &votes);
    let shares = blend(&alone, &NameMatches::default(), 100, |_| None).shares(&alone);
    assert_eq!(shares[&id(1)], Shares::MEANING);
}
