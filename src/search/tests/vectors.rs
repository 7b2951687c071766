//! The search by sketch finds what a comparison with every vector finds, whatever the model and the filter, while rows
//! change and after a restart.

use test_support::extent;

use super::super::document::{CompiledFilter, GONE, class_of};
use super::super::{BuiltinEmbedder, RowPredicate};
use super::*;
use crate::search::query::calibration::{recall, widening};
use crate::search::vectors::rows::{Extent, NewRow, ROWS_PER_BLOCK};
use crate::search::vectors::table::{Depth, Table};

const CLASS: fn(Tlp) -> u8 = |tlp| class_of(Population::Main, NodeType::Actor, NodeStatus::Active, tlp);

/// Vectors clustered around a few hundred centres, like those of real texts, scattered around `centre`.
fn clustered(count: usize, dimension: usize, seed: u64, centre: f32) -> Vec<Vec<i8>> {
    let mut random = Random(seed);
    let centres: Vec<Vec<f32>> = (0..200)
        .map(|_| (0..dimension).map(|_| random.unit() + centre).collect())
        .collect();
    let mut vector = || {
        let near = &centres[random.next() as usize % centres.len()];
        let vector: Vec<f32> = near.iter().map(|x| x + random.unit() * 0.6).collect();
        quantize(&vector)
    };
    (0..count).map(|_| vector()).collect()
}

/// The first rows of the first generation.
fn first(len: usize) -> Extent {
    Extent { generation: 0, len }
}

/// A table in memory with these vectors, in all markings.
fn table_of(vectors: &[Vec<i8>]) -> Table {
    let mut table = Table::open(None, Extent::default(), vectors[0].len()).unwrap();
    let rows = vectors.iter().enumerate().map(|(at, vector)| {
        let class = CLASS(Tlp::ALL[at % Tlp::ALL.len()]);
        NewRow::new(id(at as u128), 1, class, Some(vector))
    });
    let rows: Vec<NewRow<'_>> = rows.collect();
    rows.chunks(1000).for_each(|rows| table.put(rows).unwrap());
    table
}

/// The share of the exact results among the first ten and the first hundred that a search finds.
fn found_of_exact(table: &Table, queries: &[Vec<i8>], filter: &Filter) -> [f32; 2] {
    let allowed = CompiledFilter::of(filter);
    let ids = |found: Vec<(Uuid, f32)>| found.into_iter().map(|(node, _)| node).collect::<Vec<_>>();
    let exact = queries
        .iter()
        .map(|query| ids(table.nearest_within(query, &allowed, 100, Depth::EXACT)));
    let found = queries
        .iter()
        .map(|query| ids(table.nearest(query, &allowed, 100)));
    let (exact, found): (Vec<_>, Vec<_>) = (exact.collect(), found.collect());
    [recall(&exact, &found, 10), recall(&exact, &found, 100)]
}

/// Texts like those of reports: sentences of the shipped content in pairs that don't repeat.
fn texts(count: usize) -> Vec<String> {
    let demo = include_str!("../../../assets/demo/bundle.json");
    let mut sentences: Vec<&str> = demo
        .split(['.', '"', '\\'])
        .map(str::trim)
        .filter(|sentence| sentence.split(' ').count() > 5)
        .collect();
    sentences.sort_unstable();
    sentences.dedup();
    let mut random = Random(11);
    let mut pick = || sentences[random.next() as usize % sentences.len()];
    (0..count).map(|_| format!("{}. {}.", pick(), pick())).collect()
}

/// Set `THREAT_MEMORY_SKETCH_ROWS` to try other sizes.
#[test]
fn by_sketch_the_vectors_of_the_built_in_model_are_found_as_by_the_exact_scan() {
    let rows = std::env::var("THREAT_MEMORY_SKETCH_ROWS")
        .map_or(extent(10_000, 30_000), |rows| rows.parse().unwrap());
    let model = BuiltinEmbedder::load().unwrap();
    let asked = extent(20, 50);
    let texts = texts(rows + asked);
    let vectors: Vec<Vec<i8>> = texts
        .iter()
        .map(|text| quantize(&model.embed(&[text.as_str()]).unwrap()[0]))
        .collect();
    let (queries, vectors) = vectors.split_at(asked);
    let table = table_of(vectors);
    for filter in [all(), Filter::up_to(Tlp::Green)] {
        let [ten, hundred] = found_of_exact(&table, queries, &filter);
        println!("{rows} rows: {ten} of the first ten, {hundred} of the first hundred");
        assert!(ten >= 0.995 && hundred >= 0.97, "{filter:?}: {ten} {hundred}");
    }
}

#[test]
fn a_model_whose_signs_say_nothing_is_noticed_and_searched_exactly() {
    // All components are positive, so all sketches are equal.
    let count = extent(5_000, 20_000);
    let vectors = clustered(count, 64, 3, 3.0);
    let mut table = table_of(&vectors);
    let wider = widening(&table, Tlp::Red);
    assert!(wider > 1);
    table.widen([wider; Tlp::ALL.len()]);
    let [ten, hundred] = found_of_exact(&table, &vectors[..20], &all());
    assert!(ten >= 0.99 && hundred >= 0.97, "{wider}: {ten} {hundred}");
    // Half of the components say nothing, and the sketch is short.
    let vectors: Vec<Vec<i8>> = clustered(count, 16, 5, 0.9);
    table = table_of(&vectors);
    let wider = widening(&table, Tlp::Red);
    table.widen([wider; Tlp::ALL.len()]);
    let [ten, hundred] = found_of_exact(&table, &vectors[..20], &all());
    assert!(ten >= 0.98 && hundred >= 0.96, "{wider}: {ten} {hundred}");
}

#[test]
fn a_filter_on_rows_gets_its_results_from_those_rows_only() {
    let vectors = clustered(9_000, 64, 3, 0.0);
    let table = table_of(&vectors);
    let even = Filter {
        only: Some(RowPredicate::new(|node| node.as_u128() % 2 == 0)),
        ..all()
    };
    let found = table.nearest(&vectors[7], &CompiledFilter::of(&even), 100);
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|(node, _)| node.as_u128() % 2 == 0));
    assert_eq!(found_of_exact(&table, &vectors[..5], &even), [1.0, 1.0]);
}

#[test]
fn of_all_versions_the_last_one_counts_also_after_a_compaction() {
    let mut table = table_of(&clustered(3_000, 64, 1, 0.0));
    let mut last = Vec::new();
    for rev in 2..6u64 {
        last = clustered(3_000, 64, rev, 0.0);
        let rows = last.iter().enumerate();
        let rows = rows.map(|(at, vector)| NewRow::new(id(at as u128), rev, CLASS(Tlp::White), Some(vector)));
        table.put(&rows.collect::<Vec<_>>()).unwrap();
    }
    table.put(&[NewRow::new(id(0), 9, GONE, None)]).unwrap();
    assert!(table.wants_compaction());
    for table in [table.compact_copy().unwrap(), table] {
        assert_eq!(table.len(), 3_000);
        assert_eq!(table.node(id(5)).map(|state| state.rev), Some(5));
        let near = |at: usize| table.nearest(&last[at], &CompiledFilter::of(&all()), 1);
        assert!((1..50).all(|at| near(at)[0].0 == id(at as u128)));
        assert_ne!(
            near(0)[0].0,
            id(0),
            "a version without a vector is not found by it"
        );
        assert!(!table.compact_copy().unwrap().wants_compaction());
    }
}

#[test]
fn rows_beyond_the_last_commit_are_forgotten_by_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let vectors = clustered(ROWS_PER_BLOCK + 200, 64, 1, 0.0);
    let rows = |from: usize, to: usize, rev| {
        let rows = vectors[from..to].iter().enumerate();
        rows.map(|(at, vector)| NewRow::new(id((from + at) as u128), rev, CLASS(Tlp::White), Some(vector)))
            .collect::<Vec<_>>()
    };
    let committed = ROWS_PER_BLOCK - 100;
    {
        let mut table = Table::open(Some(dir.path()), first(0), 64).unwrap();
        table.put(&rows(0, committed, 1)).unwrap();
        table.put(&rows(committed, vectors.len(), 1)).unwrap();
        table.put(&rows(0, 50, 2)).unwrap();
    }
    let mut table = Table::open(Some(dir.path()), first(committed), 64).unwrap();
    assert_eq!(table.len(), committed);
    assert_eq!(table.node(id(3)).map(|state| state.rev), Some(1));
    table.put(&rows(committed, vectors.len(), 4)).unwrap();
    assert!(table.rows().are_whole());
    let again = Table::open(Some(dir.path()), first(vectors.len()), 64).unwrap();
    for at in [0, committed - 1, committed, vectors.len() - 1] {
        let near = again.nearest(&vectors[at], &CompiledFilter::of(&all()), 1);
        assert_eq!(near[0].0, id(at as u128));
    }
    assert!(
        Table::open(Some(dir.path()), first(3 * ROWS_PER_BLOCK), 64).is_err(),
        "a file is missing"
    );
}

#[test]
fn a_vector_of_the_wrong_length_is_refused() {
    let index = holding(vec![doc(1, "a", "b")]);
    let mut wrong = doc(2, "c", "d");
    wrong.vector = Some(vec![1; DIMENSION + 1]);
    assert!(index.apply(vec![wrong], 1).is_err());
    assert!(
        index
            .search("a", Some(&[1, 2, 3]), Mode::Vector, &all(), 1)
            .is_err()
    );
    assert!(index.search("a", None, Mode::Vector, &all(), 1).is_err());
    assert_eq!(index.len(), 1);
}

#[test]
fn a_vector_without_direction_is_no_vector() {
    assert_eq!(quantize(&[0.0, f32::NAN]), [0, 0]);
    let mut blank = doc(1, "blank", "page");
    blank.vector = Some(vec![0; DIMENSION]);
    let index = holding(vec![blank]);
    assert_eq!(found(&index, "blank page", Mode::Vector, &all(), 5), NONE);
    assert_eq!(found(&index, "blank page", Mode::Blended, &all(), 5), [id(1)]);
}

#[test]
fn the_built_in_model_knows_related_words() {
    let model = super::super::BuiltinEmbedder::load().unwrap();
    let vectors = model
        .embed(&[
            "stealing passwords",
            "credential theft",
            "solar panel installation",
        ])
        .unwrap();
    let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    assert_eq!(vectors[0].len(), model.dimension());
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.1);
}
