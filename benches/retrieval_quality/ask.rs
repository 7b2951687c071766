//! Asks a running service the questions of each part, in both modes.

use std::path::Path;

use serde_json::{Value, json};

use crate::Fallible;
use crate::client::Client;
use crate::graph::Graph;
use crate::process::Service;
use crate::questions::{self, Question};
use crate::score::{FIRST, Score};
use crate::table::{self, Table};

/// The modes of a search, with their routes.
pub const MODES: [(&str, &str); 2] = [
    ("blended", "/api/recall/search?mode=blended"),
    ("structured", "/api/recall/search?mode=structured"),
];

/// Prints a table for each part; returns a row of each for the page.
pub async fn run(bundle: &Value, graph: &Graph, parts: &[&str], misses: bool) -> Fallible<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    let dir = tempfile::tempdir()?;
    let (service, client) = ingested(dir.path(), bundle).await?;
    for part in parts {
        let questions = questions::of(part, graph)?;
        let mut table = Table::default();
        for question in &questions {
            let mut scores = [Score::default(); 2];
            for (score, (mode, route)) in scores.iter_mut().zip(MODES) {
                let results = results(&client, route, &question.text, FIRST).await?;
                *score = Score::of(&results, &question.answers);
                if misses && !question.unseen && score.precision < 1.0 {
                    miss(graph, mode, question, *score, &results);
                }
            }
            table.add(question, scores);
        }
        let figure: fn(Score) -> f64 = if *part == "ordinary" {
            table::ordinary(&table);
            |score| score.reciprocal
        } else {
            table::relational(part, &table);
            |score| score.precision
        };
        rows.push(table::summary(part, &table, figure));
    }
    service.terminate()?;
    Ok(rows)
}

/// A service on `dir` that has ingested the bundle. It was restarted since: what has just been written is searched in
/// memory for a while, with other scores.
pub async fn ingested(dir: &Path, bundle: &Value) -> Fallible<(Service, Client)> {
    let (service, _) = Service::start(dir).await?;
    let client = Client::sign_in(service.base()).await?;
    let body = json!({ "bundle": bundle }).to_string();
    client.ingest(body.into_bytes()).await?;
    service.terminate()?;
    let (service, _) = Service::start(dir).await?;
    let client = client.at(service.base());
    Ok((service, client))
}

/// The STIX ids of the results, in order.
pub async fn results(client: &Client, route: &str, query: &str, limit: usize) -> Fallible<Vec<String>> {
    let answer: Value = serde_json::from_str(&client.search(route, query, limit).await?)?;
    let nodes = answer["results"].as_array().ok_or("an answer has no results")?;
    let id = |node: &Value| node["properties"]["stix_id"].as_str().map(str::to_owned);
    nodes
        .iter()
        .map(|node| id(node).ok_or_else(|| "a node has no STIX id".into()))
        .collect()
}

/// Prints a question that was not answered fully: its score, the first results, and the right answers.
fn miss(graph: &Graph, mode: &str, question: &Question, score: Score, results: &[String]) {
    let names = |ids: &[String]| {
        let name = |id: &String| {
            let object = graph.objects.get(id);
            object.map_or_else(|| id.clone(), |object| object.name.clone())
        };
        ids.iter().map(name).collect::<Vec<_>>().join("; ")
    };
    println!("{:.2} {mode}: {}", score.precision, question.text);
    println!("     answer: {}", names(results));
    println!("     right:  {}", names(&question.answers));
}
