//! Retrieval quality, measured on ATT&CK for ICS.
//!
//! `cargo bench --bench retrieval_quality` asks the search index alone: each `uses` relationship with a description is
//! a query ("what does this sentence describe?"), and the technique it points to is the answer.
//!
//! `-- --graph` starts the program and asks it over HTTP: questions whose answers stand in the relationships, and the
//! same sentences with the whole bundle ingested. `-- --graph relational,two-step,time,ordinary,sentences` chooses
//! among the parts. `-- --graph --misses` also lists what was answered wrongly, of the questions that may be looked at.
//! `THREAT_MEMORY_BINARY=PATH` measures another binary than the one just built.
//!
//! It exits with a message if the data set is missing.

#![allow(dead_code)] // The modules shared with the service benchmark contain more than is used here.

mod ask;
mod bundle;
mod graph;
mod index;
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

use std::error::Error;

use serde_json::Value;

use graph::Graph;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTS: [&str; 5] = ["relational", "two-step", "time", "ordinary", "sentences"];

fn main() -> Fallible<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(bundle) = bundle::read()? else {
        return Ok(());
    };
    if !args.iter().any(|arg| arg == "--graph") {
        return index::run(bundle["objects"].as_array().ok_or("a bundle has objects")?);
    }
    let parts = parts(&args)?;
    let misses = args.iter().any(|arg| arg == "--misses");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(over_http(&bundle, &parts, misses))
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

async fn over_http(bundle: &Value, parts: &[&str], misses: bool) -> Fallible<()> {
    program::head("");
    let graph = Graph::of(bundle)?;
    if parts.iter().any(|part| *part != "sentences") {
        ask::run(bundle, &graph, parts, misses).await?;
    }
    if parts.contains(&"sentences") {
        sentences::run(bundle).await?;
    }
    Ok(())
}
