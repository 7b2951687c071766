//! Writers in fresh services of a smaller size, between the parts of what they write to a larger one, so that a change of
//! the machine's speed affects both alike.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::ledger::Bound::AtLeast;
use crate::ledger::{Ledger, Measure};
use crate::process::Memory;
use crate::program::{Service, cpu_of};
use crate::prose::Prose;
use crate::writers::{Pace, Writers};
use crate::{Fallible, WRITERS};

/// Turns of each size.
const TURNS: usize = 5;
/// Notes after a stand-still that are not counted: to the service it was a time without writers, after which it tidies up.
const WARM: usize = 500;

const UNIT: &str = "times that of the size before";
const REMEMBER: Measure = Measure::new("remember, last tenth, both sizes in turn", UNIT).always(AtLeast(0.9));
const EFFORT: Measure = Measure::new("CPU time of the service per note, both sizes in turn", UNIT);

/// What was written, and the CPU time, in seconds, that the service and this client used meanwhile.
pub struct Written {
    pub pace: Pace,
    pub cpu: Option<[f64; 2]>,
}

impl Written {
    /// Writes the notes of these numbers.
    pub fn by(service: &Service, prose: &Arc<Prose>, from: usize, until: usize) -> Fallible<Self> {
        let cpu = || service.cpu().zip(cpu_of("self"));
        let before = cpu();
        let pace = Writers::start(service.base(), prose, from, until).finish()?;
        let used = before.zip(cpu());
        let cpu = used.map(|((service, own), (later, own_later))| [later - service, own_later - own]);
        Ok(Self { pace, cpu })
    }

    pub fn and(self, next: Self) -> Self {
        let cpu = self.cpu.zip(next.cpu);
        Self {
            pace: self.pace.and(next.pace),
            cpu: cpu.map(|([service, own], [more, own_more])| [service + more, own + own_more]),
        }
    }

    /// CPU time of the service per note, in seconds.
    pub fn effort(&self) -> Option<f64> {
        self.cpu.map(|[service, _]| service / self.pace.notes as f64)
    }
}

/// The last tenth of a size, written to a fresh service each time.
pub struct Smaller<'a> {
    pub runtime: &'a Runtime,
    pub prose: Arc<Prose>,
    pub size: usize,
}

impl Smaller<'_> {
    fn write(&self) -> Fallible<Written> {
        let dir = tempfile::tempdir()?;
        let start = Memory::start(dir.path(), WRITERS);
        let (Memory { service, .. }, _) = self.runtime.block_on(start)?;
        let early = last_tenth(0, self.size);
        Writers::start(service.base(), &self.prose, 0, early).finish()?;
        let written = Written::by(&service, &self.prose, early, self.size)?;
        service.kill()?;
        Ok(written)
    }

    /// Writes the notes of these numbers, the last tenth in turn with that of the smaller size, and notes how the two
    /// compare. The larger service stands still during a turn of the smaller one. Some of the notes are not counted.
    pub fn in_turn(
        &self,
        service: &Service,
        from: usize,
        until: usize,
        ledger: &mut Ledger,
    ) -> Fallible<Written> {
        let early = last_tenth(from, until);
        let before = Written::by(service, &self.prose, from, early)?;
        let (mut large, mut small): (Option<Written>, Option<Written>) = (None, None);
        for turn in 0..TURNS {
            service.pause()?;
            small = Some(added(small, self.write()?));
            service.resume()?;
            let [begin, end] = [turn, turn + 1].map(|turn| early + (until - early) * turn / TURNS);
            let warm = end.min(begin + WARM);
            Writers::start(service.base(), &self.prose, begin, warm).finish()?;
            large = Some(added(large, Written::by(service, &self.prose, warm, end)?));
        }
        let (large, small) = large.zip(small).ok_or("nothing was written")?;
        println!(
            "  remember in turn, notes/s: {:.0} and {:.0}",
            small.pace.overall, large.pace.overall
        );
        ledger.note(REMEMBER, large.pace.overall / small.pace.overall);
        if let Some((large, small)) = large.effort().zip(small.effort()) {
            ledger.note(EFFORT, large / small);
        }
        Ok(before.and(large))
    }
}

/// Where the last tenth begins.
fn last_tenth(from: usize, until: usize) -> usize {
    until - (until - from) / 10
}

fn added(before: Option<Written>, written: Written) -> Written {
    match before {
        Some(before) => before.and(written),
        None => written,
    }
}
