//! Retrieval quality of the search, with ATT&CK procedure sentences as queries.
//!
//! Each `uses` relationship with a description is a query ("what does this sentence describe?"), and the technique it
//! points to is the answer. There are two corpora: the techniques alone, and every active object of the bundle. A hash
//! splits the sentences into two halves, so that a setting tuned on one half can be validated on the other.
//!
//! Run with `cargo bench --bench retrieval_quality`; it exits with a message if the data set is missing.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use threat_memory::domain::node::{NodeStatus, NodeType};
use threat_memory::domain::tlp::Tlp;
use threat_memory::search::{
    BuiltinEmbedder, Filter, IndexDoc, IndexSettings, Mode, SearchIndex, embedding_text,
};
use uuid::Uuid;

/// A sentence, the technique it describes, and the actor or tool it mentions.
struct Question {
    text: String,
    answer: Uuid,
    teller: Uuid,
}

/// Recall at 1, 5 and 10, mean reciprocal rank, and how often the actor or tool is in the first 10 results.
#[derive(Default, Clone, Copy)]
struct Quality {
    questions: usize,
    found: [usize; 3],
    reciprocal: f64,
    tellers: usize,
}

impl Quality {
    fn add(&mut self, rank: Option<usize>) {
        self.questions += 1;
        let Some(rank) = rank else { return };
        for (found, within) in self.found.iter_mut().zip([1, 5, 10]) {
            *found += usize::from(rank <= within);
        }
        self.reciprocal += 1.0 / rank as f64;
    }

    fn row(&self) -> [f64; 4] {
        let all = self.questions.max(1) as f64;
        let [one, five, ten] = self.found.map(|found| found as f64 / all);
        [one, five, ten, self.reciprocal / all]
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/data/attack/ics-attack.json"
    ));
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("data set not found, nothing measured: {}", path.display());
        return Ok(());
    };
    let bundle: Value = serde_json::from_str(&text)?;
    let objects = bundle["objects"].as_array().ok_or("a bundle has objects")?;
    let nodes: Vec<IndexDoc> = objects.iter().filter_map(node).collect();
    let techniques: Vec<IndexDoc> = nodes
        .iter()
        .filter(|doc| doc.node_type == NodeType::Attck && !is_mitigation(doc))
        .cloned()
        .collect();
    let known: HashSet<Uuid> = techniques.iter().map(|doc| doc.node_id).collect();
    let questions: Vec<Question> = objects
        .iter()
        .filter_map(question)
        .filter(|q| known.contains(&q.answer))
        .collect();
    let search = SearchIndex::open(None, Arc::new(BuiltinEmbedder::load()?), IndexSettings::default())?;
    let mut beaten = true;
    for (title, docs) in [("techniques", techniques), ("all active objects", nodes)] {
        println!(
            "\n{} questions, {} documents: {title}",
            questions.len(),
            docs.len()
        );
        beaten &= measure(&search, docs, &questions)?;
    }
    println!(
        "\nblended is {} every figure of the single legs",
        if beaten { "above" } else { "NOT above" }
    );
    Ok(())
}

/// Prints one table; returns true if the blended search leads in every column over both halves together.
fn measure(
    search: &SearchIndex,
    mut docs: Vec<IndexDoc>,
    questions: &[Question],
) -> Result<bool, Box<dyn Error>> {
    let texts: Vec<String> = docs
        .iter()
        .map(|doc| embedding_text(&doc.name, &doc.aliases, &doc.body))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for (doc, vector) in docs.iter_mut().zip(search.embed_texts(&texts)?) {
        doc.vector = Some(vector);
    }
    let workspace = search.workspace(Uuid::new_v4())?;
    workspace.apply(docs, 1)?;
    let mut rows: HashMap<&str, [f64; 4]> = HashMap::new();
    println!(
        "{:10} {:>7} {:>7} {:>7} {:>7}   {:>16} {:>9} {:>8}",
        "", "R@1", "R@5", "R@10", "MRR", "MRR of halves", "actor@10", "p50 ms"
    );
    for (name, mode) in [
        ("keyword", Mode::Keyword),
        ("vector", Mode::Vector),
        ("blended", Mode::Blended),
    ] {
        let mut all = Quality::default();
        let mut halves = [Quality::default(); 2];
        let mut times = Vec::new();
        for question in questions {
            let begun = Instant::now();
            let vector = search.embed_query(&question.text)?;
            let hits =
                workspace.search(&question.text, Some(&vector), mode, &Filter::up_to(Tlp::Red), 100)?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            let rank = hits
                .iter()
                .position(|hit| hit.node_id == question.answer)
                .map(|at| at + 1);
            all.add(rank);
            all.tellers += usize::from(hits.iter().take(10).any(|hit| hit.node_id == question.teller));
            halves[half(&question.text)].add(rank);
        }
        times.sort_by(f64::total_cmp);
        let [one, five, ten, mrr] = all.row();
        let [first, second] = halves.map(|half| half.row()[3]);
        let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
        let actor = all.tellers as f64 / all.questions.max(1) as f64;
        println!(
            "{name:10} {one:7.3} {five:7.3} {ten:7.3} {mrr:7.3}   {first:8.3} {second:7.3} {actor:9.3} {p50:8.2}"
        );
        rows.insert(name, all.row());
    }
    let above = |other: &str| {
        rows["blended"]
            .iter()
            .zip(rows[other])
            .all(|(blended, single)| *blended > single)
    };
    Ok(above("keyword") && above("vector"))
}

fn half(text: &str) -> usize {
    text.bytes().fold(7usize, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(byte))
    }) % 2
}

/// The node for a STIX object; `None` if it is not a node or no longer valid.
fn node(object: &Value) -> Option<IndexDoc> {
    let node_type = match object["type"].as_str()? {
        "threat-actor" | "intrusion-set" | "campaign" => NodeType::Actor,
        "malware" | "tool" => NodeType::Tool,
        "attack-pattern" | "course-of-action" => NodeType::Attck,
        _ => return None,
    };
    if object["revoked"] == true || object["x_mitre_deprecated"] == true {
        return None;
    }
    let stix_id = object["id"].as_str()?;
    let name = object["name"].as_str()?.to_owned();
    let list = |key: &str| -> Vec<String> {
        object[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let mut aliases = list("aliases");
    aliases.extend(list("x_mitre_aliases"));
    aliases.retain(|alias| *alias != name);
    let references = object["external_references"].as_array().into_iter().flatten();
    let mut identifiers: Vec<String> = references
        .filter(|reference| {
            reference["source_name"]
                .as_str()
                .is_some_and(|source| source.starts_with("mitre"))
        })
        .filter_map(|reference| reference["external_id"].as_str().map(str::to_owned))
        .collect();
    identifiers.push(stix_id.to_owned());
    Some(IndexDoc {
        node_id: node_id(stix_id)?,
        rev: 1,
        node_type,
        status: NodeStatus::Active,
        tlp: Tlp::White,
        name,
        aliases,
        identifiers,
        body: plain(object["description"].as_str().unwrap_or("")),
        vector: None,
    })
}

fn is_mitigation(doc: &IndexDoc) -> bool {
    doc.identifiers
        .iter()
        .any(|id| id.starts_with("course-of-action"))
}

fn node_id(stix_id: &str) -> Option<Uuid> {
    Uuid::parse_str(stix_id.split("--").nth(1)?).ok()
}

/// The query derived from a relationship.
fn question(object: &Value) -> Option<Question> {
    let source = object["source_ref"].as_str()?;
    let target = object["target_ref"].as_str()?;
    let asks = object["relationship_type"] == "uses"
        && ["intrusion-set--", "malware--", "campaign--"]
            .iter()
            .any(|kind| source.starts_with(kind))
        && target.starts_with("attack-pattern--")
        && object["revoked"] != true
        && object["x_mitre_deprecated"] != true;
    let text = plain(object["description"].as_str()?);
    (asks && !text.is_empty()).then_some(Question {
        text,
        answer: node_id(target)?,
        teller: node_id(source)?,
    })
}

/// The text without citations, with links reduced to their text.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['(', '[']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let citation = rest.starts_with("(Citation:").then(|| rest.find(')')).flatten();
        let link = rest.starts_with('[').then(|| rest.split_once("](")).flatten();
        if let Some(end) = citation {
            rest = &rest[end + 1..];
        } else if let Some((words, after)) = link.filter(|(words, _)| !words.contains(']')) {
            out.push_str(&words[1..]);
            rest = after.split_once(')').map_or("", |(_, after)| after);
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out.trim().to_owned()
}
