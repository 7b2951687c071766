//! Searches at two sizes in turn, so that a change of the machine's speed affects both alike.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::client::Client;
use crate::ledger::Bound::AtMost;
use crate::ledger::{Ledger, Measure};
use crate::load::{BLENDED, LIMIT, STRUCTURED};
use crate::program::Service;
use crate::spread::Spread;

/// Questions that one service is asked before it is the other's turn.
const BLOCK: usize = 50;
/// Questions of a series.
const MEASURED: usize = 500;
/// Questions to the copy before it is measured.
const WARM: usize = 300;
/// Questions that [`Before::compare`] needs.
pub const QUESTIONS: usize = WARM + 2 * MEASURED;

const UNIT: &str = "times that of the size before";
/// The kinds of search, with the ratios of p50 and p95.
const SERIES: [(&str, [Measure; 2]); 2] = [
    (
        BLENDED,
        [
            Measure::new("blended, both sizes in turn, p50", UNIT).always(AtMost(1.5)),
            // At most 25 ms on a machine where 100,000 nodes give 15 ms.
            Measure::new("blended, both sizes in turn, p95", UNIT).always(AtMost(25.0 / 15.0)),
        ],
    ),
    (
        STRUCTURED,
        [
            Measure::new("structured, both sizes in turn, p50", UNIT).always(AtMost(1.5)),
            Measure::new("structured, both sizes in turn, p95", UNIT).always(AtMost(2.0)),
        ],
    ),
];

/// The data of a smaller size, and questions about it.
pub struct Before {
    dir: PathBuf,
    questions: Vec<String>,
}

impl Before {
    /// Copies the directory of a service that doesn't run.
    pub fn of(dir: &Path, to: PathBuf, questions: Vec<String>) -> Fallible<Self> {
        copy(dir, &to)?;
        Ok(Self { dir: to, questions })
    }

    /// Asks a service of the copy and the grown one in turn, and notes their latencies and the ratios.
    pub async fn compare(&self, grown: &Client, ledger: &mut Ledger) -> Fallible<()> {
        let (service, _) = Service::start(&self.dir).await?;
        let copy = grown.at(service.base());
        let (warm, rest) = self.questions.split_at(WARM);
        for question in warm {
            copy.search(BLENDED, question, LIMIT).await?;
        }
        for ((path, [p50, p95]), questions) in SERIES.into_iter().zip(rest.chunks(MEASURED)) {
            let [before, now] = in_turn(path, questions, [&copy, grown]).await?;
            println!(
                "  {path} in turn, p50 / p95, ms: {:.2} / {:.2} and {:.2} / {:.2}",
                before.p50, before.p95, now.p50, now.p95
            );
            ledger.note(p50, now.p50 / before.p50);
            ledger.note(p95, now.p95 / before.p95);
        }
        service.terminate()
    }
}

/// Asks both services all questions, some at a time.
async fn in_turn(path: &str, questions: &[String], services: [&Client; 2]) -> Fallible<[Spread; 2]> {
    let mut times: [Vec<Duration>; 2] = Default::default();
    for block in questions.chunks(BLOCK) {
        for (client, times) in services.into_iter().zip(&mut times) {
            for question in block {
                let begun = Instant::now();
                client.search(path, question, LIMIT).await?;
                times.push(begun.elapsed());
            }
        }
    }
    Ok(times.map(Spread::of))
}

/// Copies a directory with everything in it.
fn copy(from: &Path, to: &Path) -> Fallible<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
