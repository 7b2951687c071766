use super::super::graph::tests::{ALL, entity, note, numbers, relation};
use super::*;
use crate::domain::memory::tier::Tier;

#[test]
fn entities_are_sorted_by_each_choice_with_ties_by_type_and_value() {
    // An actor uses a tool, which exploits a vulnerability; a domain name stands alone.
    let mut graph = MemoryGraph::of(
        vec![note(10, &[1, 2]), note(11, &[1]), note(12, &[3])],
        vec![
            entity(1, "actor", "APT28"),
            entity(2, "tool", "Mimikatz"),
            entity(3, "cve", "CVE-2024-1000"),
            entity(4, "domain", "evil.example"),
        ],
        vec![relation(20, 1, 2), relation(21, 2, 3)],
    );
    let mut best = note(13, &[3]);
    best.tier = Tier::A;
    graph.put_note(best);
    let sorted = |by, direction| {
        let order = EntityOrder { by, direction };
        let (found, total) = graph.list_entities(&EntityFilter::default(), order, ALL);
        assert_eq!(total, 4);
        let one_by_one = (0..5).flat_map(|offset| {
            let page = Page { offset, limit: 1 };
            graph.list_entities(&EntityFilter::default(), order, page).0
        });
        assert_eq!(one_by_one.collect::<Vec<_>>(), found, "{by}");
        let types: Vec<String> = found.into_iter().map(|entity| entity.node_type).collect();
        types.join(" ")
    };
    for (by, ascending, descending) in [
        (EntitySort::Name, "actor cve domain tool", "tool domain cve actor"),
        (EntitySort::Type, "actor cve domain tool", "tool domain cve actor"),
        (
            EntitySort::Notes,
            "domain tool actor cve",
            "actor cve tool domain",
        ),
        (
            EntitySort::Connections,
            "domain actor cve tool",
            "actor cve tool domain",
        ),
        (EntitySort::Tier, "cve actor tool domain", "domain actor tool cve"),
    ] {
        assert_eq!(sorted(by, SortDirection::Ascending), ascending, "{by}");
        assert_eq!(sorted(by, SortDirection::Descending), descending, "{by}");
    }
}

#[test]
fn domains_with_most_notes_come_first() {
    let mut graph = MemoryGraph::default();
    let domains = ["cti", "ops", "lab", "ops", "cti", "cti"];
    for (number, domain) in (10..).zip(domains) {
        let mut head = note(number, &[]);
        head.domain = domain.into();
        graph.put_note(head);
    }
    let listed = |limit| -> Vec<(String, usize)> {
        let domains = graph.list_domains(limit);
        domains
            .into_iter()
            .map(|domain| (domain.name, domain.notes))
            .collect()
    };
    assert_eq!(
        listed(9),
        [("cti".into(), 3), ("ops".into(), 2), ("lab".into(), 1)]
    );
    assert_eq!(listed(2), listed(9)[..2]);
}

#[test]
fn the_first_of_many_are_found_without_sorting_them_all() {
    let mut random = numbers();
    let items: Vec<u64> = (0..100_000).map(|_| random(1000)).collect();
    let mut sorted = items.clone();
    sorted.sort_unstable();
    for limit in [0, 1, 1000, 99_999, 100_000, 100_001] {
        let (mut first, mut compared) = (items.clone(), 0usize);
        let more = keep_first(&mut first, limit, |a, b| {
            compared += 1;
            a.cmp(b)
        });
        assert_eq!(more, limit < items.len());
        assert_eq!(first, sorted[..limit.min(items.len())]);
        assert!(limit > 1000 || compared < 8 * items.len(), "{limit}: {compared}");
    }
}
