//! The ingest of a smaller size into fresh services, between the parts of a larger ingest, so that a change of the
//! machine's speed affects both alike.

use std::sync::Arc;

use crate::Fallible;
use crate::bulk::{Bulk, Pace};
use crate::client::Client;
use crate::corpus::Corpus;
use crate::ledger::Bound::AtLeast;
use crate::ledger::{Ledger, Measure};
use crate::program::{Service, cpu_of};
use crate::prose::Prose;

/// Parts of the larger ingest.
const PARTS: usize = 6;

const INGEST: Measure =
    Measure::new("ingest, both sizes in turn", "times that of the size before").always(AtLeast(0.9));
const EFFORT: Measure = Measure::new(
    "CPU time of the service per node, both sizes in turn",
    "times that of the size before",
);

/// A part of an ingest, and the CPU time, in seconds, that the service and this client used meanwhile.
pub struct Part {
    pub pace: Pace,
    pub cpu: Option<[f64; 2]>,
}

impl Part {
    /// Ingests until there are this many nodes.
    pub async fn ingest(
        service: &Service,
        client: &Client,
        corpus: Corpus,
        until: usize,
    ) -> Fallible<(Corpus, Self)> {
        let cpu = || service.cpu().zip(cpu_of("self"));
        let before = cpu();
        let (corpus, pace) = Bulk::start(client, corpus, until).finish().await?;
        let used = before.zip(cpu());
        let cpu = used.map(|((service, own), (later, own_later))| [later - service, own_later - own]);
        Ok((corpus, Self { pace, cpu }))
    }

    fn and(self, next: Self) -> Self {
        let cpu = self.cpu.zip(next.cpu);
        Self {
            pace: self.pace.and(next.pace),
            cpu: cpu.map(|([service, own], [more, own_more])| [service + more, own + own_more]),
        }
    }

    /// CPU time of the service per node, in seconds.
    pub fn effort(&self) -> Option<f64> {
        self.cpu.map(|[service, _]| service / self.pace.nodes as f64)
    }
}

/// An ingest from one size to the next, into a fresh service each time.
pub struct Smaller {
    pub prose: Arc<Prose>,
    pub from: usize,
    pub to: usize,
}

impl Smaller {
    async fn ingest(&self) -> Fallible<Part> {
        let dir = tempfile::tempdir()?;
        let (service, _) = Service::start(&dir.path().join("fresh")).await?;
        let client = Client::sign_in(service.base()).await?;
        let corpus = Corpus::of(Arc::clone(&self.prose));
        let (corpus, _) = Bulk::start(&client, corpus, self.from).finish().await?;
        let (_, part) = Part::ingest(&service, &client, corpus, self.to).await?;
        service.kill()?;
        Ok(part)
    }

    /// Ingests until there are this many nodes, and notes how that compares to this ingest. The larger service stands
    /// still during a turn of the smaller one, with all that it does in the background. To it, that was a time without
    /// writes, so it begins to tidy its index up, which counts against it.
    pub async fn in_turn(
        &self,
        service: &Service,
        client: &Client,
        mut corpus: Corpus,
        until: usize,
        ledger: &mut Ledger,
    ) -> Fallible<(Corpus, Part)> {
        let begun = corpus.nodes();
        let (mut large, mut small): (Option<Part>, Option<Part>) = (None, None);
        for number in 1..=PARTS {
            let to = begun + (until - begun) * number / PARTS;
            let part;
            (corpus, part) = Part::ingest(service, client, corpus, to).await?;
            large = Some(added(large, part));
            if number < PARTS {
                service.pause()?;
                small = Some(added(small, self.ingest().await?));
                service.resume()?;
            }
        }
        let (large, small) = large.zip(small).ok_or("nothing was ingested")?;
        println!(
            "  ingest in turn, nodes/s: {:.0} and {:.0}",
            small.pace.overall, large.pace.overall
        );
        ledger.note(INGEST, large.pace.overall / small.pace.overall);
        if let Some((large, small)) = large.effort().zip(small.effort()) {
            ledger.note(EFFORT, large / small);
        }
        Ok((corpus, large))
    }
}

fn added(before: Option<Part>, part: Part) -> Part {
    match before {
        Some(before) => before.and(part),
        None => part,
    }
}
