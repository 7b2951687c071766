use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn id(number: u8) -> Uuid {
    Uuid::from_u128(u128::from(number) + 1)
}

fn merge(node: u8, into: u8, ended: bool) -> Merge {
    let at = DateTime::UNIX_EPOCH;
    Merge {
        node: id(node),
        into: id(into),
        reason: None,
        at,
        ended: ended.then_some(at),
    }
}

/// Merges that lead to a higher number, so that none leads round.
fn any_merges() -> impl Strategy<Value = Vec<Merge>> {
    let one = (0u8..12).prop_flat_map(|node| (Just(node), node + 1..=12, any::<bool>()));
    let all = prop::collection::vec(one, 0..12);
    all.prop_map(|all| {
        let mut known = HashSet::new();
        all.into_iter()
            .filter(|(node, ..)| known.insert(*node))
            .map(|(node, into, ended)| merge(node, into, ended))
            .collect()
    })
}

proptest! {
    #[test]
    fn a_node_stands_for_those_that_it_stands_for(
        merges in any_merges(), hidden in prop::collection::hash_set(0u8..=12, 0..6)
    ) {
        let all = Merges::of(merges);
        let hidden: HashSet<Uuid> = hidden.into_iter().map(id).collect();
        let sees = |node: Uuid| !hidden.contains(&node);
        let seen: Vec<Uuid> = (0..=12).map(id).filter(|node| sees(*node)).collect();
        for node in &seen {
            let stands = all.standing(*node, sees);
            prop_assert!(sees(stands));
            prop_assert_eq!(all.standing(stands, sees), stands);
            prop_assert_eq!(all.members(stands, sees).contains(node), stands != *node);
            for member in all.members(*node, sees) {
                prop_assert!(sees(member));
                prop_assert!(all.stands_in(member, *node));
                prop_assert_eq!(all.standing(member, sees), all.standing(*node, sees));
            }
        }
    }

    #[test]
    fn order_does_not_matter_and_an_end_leaves_nothing(merges in any_merges(), seed in any::<u64>()) {
        let first = Merges::of(merges.clone());
        let mut shuffled = merges.clone();
        let len = shuffled.len().max(1);
        shuffled.rotate_left(usize::try_from(seed % len as u64).unwrap());
        shuffled.reverse();
        let second = Merges::of(shuffled);
        let everybody = |_: Uuid| true;
        for node in (0..=12).map(id) {
            prop_assert_eq!(first.standing(node, everybody), second.standing(node, everybody));
            prop_assert_eq!(first.members(node, everybody), second.members(node, everybody));
        }
        let ended = merges.into_iter().map(|merge| Merge { ended: Some(merge.at), ..merge });
        let ended = Merges::of(ended);
        for node in (0..=12).map(id) {
            prop_assert_eq!(ended.standing(node, everybody), node);
            prop_assert!(ended.members(node, everybody).is_empty());
        }
    }
}
