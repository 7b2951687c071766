//! The ingest of a smaller size into fresh services while a larger one is under way, by turns of less than a second, so
//! that a change of the machine's speed affects both alike.

use std::sync::Arc;
use std::time::Duration;

use crate::Fallible;
use crate::bulk::{Bulk, Clock, Pace};
use crate::client::Client;
use crate::corpus::Corpus;
use crate::ledger::Bound::AtLeast;
use crate::ledger::{Ledger, Measure};
use crate::program::{Service, cpu_of};
use crate::prose::Prose;

/// Length of a turn. A service without writes for a second would begin to tidy its index up.
const TURN: Duration = Duration::from_millis(400);

const INGEST: Measure =
    Measure::new("ingest, both sizes in turn", "times that of the size before").always(AtLeast(0.9));
const EFFORT: Measure = Measure::new(
    "CPU time of the service per node, both sizes in turn",
    "times that of the size before",
);

/// A part of an ingest, and the CPU time, in seconds, that the service and this client used meanwhile.
pub struct Part {
    pub pace: Pace,
    pub cpu: Option<f64>,
    /// Unknown if the client had another service meanwhile.
    pub own_cpu: Option<f64>,
}

impl Part {
    /// Ingests until there are this many nodes.
    pub async fn ingest(
        service: &Service,
        client: &Client,
        corpus: Corpus,
        until: usize,
        clock: Arc<Clock>,
    ) -> Fallible<(Corpus, Self)> {
        let before = [service.cpu(), cpu_of("self")];
        let (corpus, pace) = Bulk::timed(client, corpus, until, clock).finish().await?;
        let after = [service.cpu(), cpu_of("self")];
        let mut used = after
            .into_iter()
            .zip(before)
            .map(|(after, before)| Some(after? - before?));
        let part = Self {
            pace,
            cpu: used.next().flatten(),
            own_cpu: used.next().flatten(),
        };
        Ok((corpus, part))
    }

    fn and(self, next: Self) -> Self {
        Self {
            pace: self.pace.and(next.pace),
            cpu: self.cpu.zip(next.cpu).map(|(cpu, more)| cpu + more),
            own_cpu: self.own_cpu.zip(next.own_cpu).map(|(cpu, more)| cpu + more),
        }
    }

    /// CPU time of the service per node, in seconds.
    pub fn effort(&self) -> Option<f64> {
        self.cpu.map(|cpu| cpu / self.pace.nodes as f64)
    }
}

/// A service that can be made to stand still, and the clock of its ingest.
struct Side<'a> {
    service: &'a Service,
    clock: Arc<Clock>,
}

impl<'a> Side<'a> {
    fn of(service: &'a Service) -> Self {
        Self {
            service,
            clock: Arc::new(Clock::running()),
        }
    }

    fn stop(&self) -> Fallible<()> {
        self.clock.stop();
        self.service.pause()
    }

    fn go_on(&self) -> Fallible<()> {
        self.service.resume()?;
        self.clock.go_on();
        Ok(())
    }
}

/// An ingest from one size to the next, into a fresh service each time.
pub struct Smaller {
    pub prose: Arc<Prose>,
    pub from: usize,
    pub to: usize,
}

impl Smaller {
    /// Ingests until there are this many nodes, and notes how that compares to ingests of the smaller size. Of the two
    /// services one stands still, with all that it does in the background.
    pub async fn in_turn(
        &self,
        service: &Service,
        client: &Client,
        corpus: Corpus,
        until: usize,
        ledger: &mut Ledger,
    ) -> Fallible<(Corpus, Part)> {
        let large = Side::of(service);
        let mut small: Option<Part> = None;
        let ingest = Part::ingest(service, client, corpus, until, Arc::clone(&large.clock));
        let (corpus, part) = tokio::select! {
            done = ingest => done?,
            failed = self.again_and_again(&large, &mut small) => return Err(failed),
        };
        large.go_on()?;
        let small = small.ok_or("the smaller ingest was not finished once")?;
        println!(
            "  ingest in turn, nodes/s: {:.0} and {:.0}",
            small.pace.overall, part.pace.overall
        );
        ledger.note(INGEST, part.pace.overall / small.pace.overall);
        if let Some((large, small)) = part.effort().zip(small.effort()) {
            ledger.note(EFFORT, large / small);
        }
        let own_cpu = None;
        Ok((corpus, Part { own_cpu, ..part }))
    }

    /// Ends only with an error.
    async fn again_and_again(
        &self,
        large: &Side<'_>,
        all: &mut Option<Part>,
    ) -> Box<dyn std::error::Error + Send + Sync> {
        loop {
            match self.once(large).await {
                Ok(part) => {
                    *all = Some(match all.take() {
                        Some(before) => before.and(part),
                        None => part,
                    });
                }
                Err(error) => return error,
            }
        }
    }

    async fn once(&self, large: &Side<'_>) -> Fallible<Part> {
        large.stop()?;
        let dir = tempfile::tempdir()?;
        let (service, _) = Service::start(&dir.path().join("fresh")).await?;
        let client = Client::sign_in(service.base()).await?;
        let small = Side::of(&service);
        let ingest = async {
            let corpus = Corpus::of(Arc::clone(&self.prose));
            let clock = || Arc::clone(&small.clock);
            let (corpus, _) = Bulk::timed(&client, corpus, self.from, clock()).finish().await?;
            Part::ingest(&service, &client, corpus, self.to, clock()).await
        };
        let alternate = async {
            loop {
                for (stops, goes) in [(&small, large), (large, &small)] {
                    tokio::time::sleep(TURN).await;
                    let changed = stops.stop().and_then(|()| goes.go_on());
                    if let Err(error) = changed {
                        return error;
                    }
                }
            }
        };
        let part = tokio::select! {
            done = ingest => done?.1,
            failed = alternate => return Err(failed),
        };
        service.kill()?;
        large.go_on()?;
        Ok(part)
    }
}
