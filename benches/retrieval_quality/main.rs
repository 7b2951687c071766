//! Retrieval quality, measured on ATT&CK for ICS.
//!
//! `cargo bench --bench retrieval_quality` asks the search index alone: each `uses` relationship with a description is
//! a query ("what does this sentence describe?"), and the technique it points to is the answer.
//!
//! `-- --graph` starts the program and asks it over HTTP: questions whose answers stand in the relationships, and the
//! same sentences with the whole bundle ingested. `-- --graph relational,two-step,time,ordinary,context,sentences` chooses
//! among the parts. `-- --graph --misses` also lists what was answered wrongly, of the questions that may be looked at.
//! `THREAT_MEMORY_BINARY=PATH` measures another binary than the one just built. `-- --report` does both, and writes the
//! table into docs/benchmarks.md.
//!
//! `-- --floor` starts the program, too, and measures what the lowest score of an answer (`search/query/floor.rs`) lets
//! through and takes away.
//!
//! `-- --mixed` asks the local service about notes in eight languages.
//!
//! It exits with a message if the data set is missing.

#![allow(dead_code)] // The modules shared with the service benchmark contain more than is used here.

mod ask;
mod bundle;
mod floor;
mod graph;
mod index;
mod mixed;
mod path;
mod questions;
mod score;
mod sentences;
mod table;

#[path = "../service/client.rs"]
mod client;
#[path = "../service/process.rs"]
mod process;
#[path = "../common/program.rs"]
mod program;
#[path = "../common/report.rs"]
mod report;

use std::error::Error;

use serde_json::Value;

use graph::Graph;
use report::Report;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTS: [&str; 6] = [
    "relational",
    "two-step",
    "time",
    "ordinary",
    "context",
    "sentences",
];

/// The parts that need another bundle than the others.
const OTHER_BUNDLES: [&str; 2] = ["context", "sentences"];

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let report = Report::from_args(&args, "retrieval")?;
    let Some(bundle) = bundle::read()? else {
        return Ok(());
    };
    if args.iter().any(|arg| arg == "--floor") {
        program::head("");
        let graph = Graph::of(&bundle)?;
        return runtime()?.block_on(floor::run(&bundle, &graph));
    }
    if args.iter().any(|arg| arg == "--mixed") {
        program::head("");
        return runtime()?.block_on(mixed::run(&bundle));
    }
    let is_report = report.is_some();
    let is_graph = args.iter().any(|arg| arg == "--graph");
    let mut remark = String::new();
    if is_report || !is_graph {
        remark = index::run(bundle["objects"].as_array().ok_or("a bundle has objects")?)?;
    }
    if !is_report && !is_graph {
        return Ok(());
    }
    let parts = if is_report { PARTS.to_vec() } else { parts(&args)? };
    let misses = args.iter().any(|arg| arg == "--misses");
    let rows = runtime()?.block_on(over_http(&bundle, &parts, misses))?;
    report.map_or(Ok(()), |report| report.write(&report::table(&rows), &remark))
}

fn runtime() -> Fallible<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// The parts named after `--graph`, or all.
fn parts(args: &[String]) -> Fallible<Vec<&str>> {
    let given = args.iter().skip_while(|arg| *arg != "--graph").nth(1);
    let Some(list) = given.filter(|given| !given.starts_with('-')) else {
        return Ok(PARTS.to_vec());
    };
    let parts: Vec<&str> = list.split(',').collect();
    match parts.iter().find(|part| !PARTS.contains(part)) {
        Some(part) => Err(format!("{part} is none of {}", PARTS.join(", ")).into()),
        None => Ok(parts),
    }
}

/// Asks the parts; returns the table of the page.
async fn over_http(bundle: &Value, parts: &[&str], misses: bool) -> Fallible<Vec<Vec<String>>> {
    program::head("");
    let graph = Graph::of(bundle)?;
    let head = ["", "questions", "blended", "blended, unseen third", "structured"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let main: Vec<&str> = parts
        .iter()
        .filter(|part| !OTHER_BUNDLES.contains(part))
        .copied()
        .collect();
    if !main.is_empty() {
        rows.extend(ask::run(bundle, &graph, &main, misses).await?);
    }
    if parts.contains(&"context") {
        let bundle = bundle::with_context(bundle)?;
        let graph = Graph::with_context(&bundle)?;
        rows.extend(ask::run(&bundle, &graph, &["context"], misses).await?);
    }
    if parts.contains(&"sentences") {
        rows.push(sentences::run(bundle).await?);
    }
    Ok(rows)
}
