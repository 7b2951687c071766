//! Raw speed of the embedded store: tells a slow hour of the machine from a slow program.

use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use surrealdb::engine::any::connect;

use crate::Fallible;
use crate::prose::Prose;

/// Rows of one transaction, and transactions measured.
const ROWS: usize = 2_000;
const BATCHES: usize = 7;
const SEED: u64 = 7;
/// Words of a row's text; with its other fields a row has about 1 KB.
const WORDS: std::ops::RangeInclusive<usize> = 110..=120;

/// Rows per second (median of some batches) that a fresh store in this process takes, each batch one transaction that
/// is on disk (fsync) when it is over. The service's store is the same engine.
pub async fn rows_per_second(prose: &Prose) -> Fallible<f64> {
    let dir = tempfile::tempdir()?;
    let db = connect(format!("surrealkv://{}", dir.path().display())).await?;
    db.use_ns("bench").use_db("bench").await?;
    db.query("DEFINE TABLE raw; DEFINE INDEX by_rev ON raw FIELDS ws, rev;")
        .await?
        .check()?;
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut rates = Vec::new();
    for batch in 0..=BATCHES {
        let rows: Vec<Value> = (0..ROWS)
            .map(|row| self::row(batch * ROWS + row, prose, &mut rng))
            .collect();
        let begun = Instant::now();
        let insert = db.query("INSERT INTO raw $rows RETURN NONE").bind(("rows", rows));
        insert.await?.check()?;
        // The first batch warms caches up.
        if batch > 0 {
            rates.push(ROWS as f64 / begun.elapsed().as_secs_f64());
        }
    }
    rates.sort_by(f64::total_cmp);
    rates
        .get(BATCHES / 2)
        .copied()
        .ok_or_else(|| "no batch was measured".into())
}

/// A row like those of an ingested node.
fn row(number: usize, prose: &Prose, rng: &mut StdRng) -> Value {
    let id = uuid::Builder::from_random_bytes(rand::Rng::random(rng)).into_uuid();
    json!({
        "id": id.to_string(), "ws": "6a2b6c52-8fcb-4b5c-9a3e-1f6f0f3f2d11", "node_type": "malware",
        "name": format!("name {number}"), "description": prose.text(rng, WORDS), "source": "stix", "tlp_rank": 1,
        "confidence": 0.5, "status": "active", "rev": number, "ingested_at": "2024-01-01T00:00:00.000Z",
    })
}
