//! The graph returns the results of the exact scan, also while it grows, with filters, and after a restart.

use super::*;

/// Vectors clustered around a few hundred centres, like those of real texts.
fn clustered(count: u128, seed: u64) -> Vec<IndexDoc> {
    let mut random = Random(seed);
    let centres: Vec<Vec<f32>> = (0..200)
        .map(|_| (0..DIMENSION).map(|_| random.unit()).collect())
        .collect();
    (0..count)
        .map(|n| {
            let centre = &centres[random.next() as usize % centres.len()];
            let vector: Vec<f32> = centre.iter().map(|x| x + random.unit() * 0.6).collect();
            let mut doc = doc(n, "", "");
            doc.vector = Some(quantize(&vector));
            doc.tlp = Tlp::ALL[random.next() as usize % 5];
            doc
        })
        .collect()
}

fn settings(exact_scan_limit: usize) -> IndexSettings {
    IndexSettings {
        exact_scan_limit,
        ..IndexSettings::default()
    }
}

/// Share of the exact top ten that the other index also has in its top ten.
fn recall(exact: &WorkspaceIndex, other: &WorkspaceIndex, docs: &[IndexDoc], filter: &Filter) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    for doc in docs.iter().step_by(docs.len() / 100) {
        let ask = |index: &WorkspaceIndex| -> Vec<Uuid> {
            let hits = index
                .search("", doc.vector.as_deref(), Mode::Vector, filter, 10)
                .unwrap();
            hits.into_iter().map(|hit| hit.node_id).collect()
        };
        let (truth, got) = (ask(exact), ask(other));
        wanted += truth.len();
        found += truth.iter().filter(|node| got.contains(node)).count();
    }
    found as f64 / wanted as f64
}

#[test]
fn the_graph_finds_what_the_scan_finds() {
    let docs = clustered(12_000, 3);
    let dir = tempfile::tempdir().unwrap();
    let exact = open_with(None, "word-hash", settings(usize::MAX))
        .workspace(id(0))
        .unwrap();
    let search = open_with(Some(dir.path()), "word-hash", settings(2_000));
    let graph = search.workspace(id(0)).unwrap();
    for index in [&exact, &graph] {
        index.apply(docs[..9_000].to_vec(), 1).unwrap();
        index.settle();
        // Adds rows behind the graph, and changes rows inside it.
        index.apply(docs[9_000..].to_vec(), 2).unwrap();
        let mut moved: Vec<IndexDoc> = clustered(500, 9);
        moved.iter_mut().for_each(|doc| doc.rev = 2);
        index.apply(moved, 3).unwrap();
        index.settle();
    }
    let filters = [all(), Filter::up_to(Tlp::Green), Filter::up_to(Tlp::White)];
    for filter in &filters {
        let recall = recall(&exact, &graph, &docs, filter);
        assert!(recall >= 0.95, "{filter:?}: {recall}");
    }
    drop(graph);
    drop(search);
    assert!(dir.path().join(id(0).to_string()).join("graph.rows").exists());
    let search = open_with(Some(dir.path()), "word-hash", settings(2_000));
    let graph = search.workspace(id(0)).unwrap();
    assert_eq!(graph.len(), 12_000);
    for filter in &filters {
        let recall = recall(&exact, &graph, &docs, filter);
        assert!(recall >= 0.95, "after a restart, {filter:?}: {recall}");
    }
}

#[test]
fn a_workspace_that_keeps_changing_keeps_its_answers() {
    let exact = open_with(None, "word-hash", settings(usize::MAX))
        .workspace(id(0))
        .unwrap();
    let graph = open_with(None, "word-hash", settings(500))
        .workspace(id(0))
        .unwrap();
    let mut last = Vec::new();
    for rev in 1..8u64 {
        let mut docs = clustered(3_000, rev);
        docs.iter_mut().for_each(|doc| doc.rev = rev);
        for index in [&exact, &graph] {
            index.apply(docs.clone(), rev).unwrap();
        }
        last = docs;
    }
    graph.settle();
    let recall = recall(&exact, &graph, &last, &all());
    assert!(recall >= 0.95, "{recall}");
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
