//! What a run measures at each size: printed at once, and at its end as ratios, against targets, and as a table.

use crate::Fallible;
use crate::report::{self, thousands};

/// The sizes to measure at, smallest first: those after `flag`, separated by commas, or the default ones.
pub fn sizes(args: &[String], flag: &str, default: &[usize]) -> Fallible<Vec<usize>> {
    let given = args.iter().skip_while(|arg| *arg != flag).nth(1);
    let mut sizes = match given.filter(|given| !given.starts_with('-')) {
        Some(list) => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => default.to_vec(),
    };
    sizes.sort_unstable();
    Ok(sizes)
}

/// A target.
#[derive(Clone, Copy)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn text(self) -> String {
        let number = |bound: f64| match bound.fract() == 0.0 {
            true => thousands(bound),
            false => shown(bound),
        };
        match self {
            Bound::AtLeast(least) => format!("at least {}", number(least)),
            Bound::AtMost(most) => format!("at most {}", number(most)),
        }
    }

    fn is_reached(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        }
    }
}

/// A figure that is measured at every size.
#[derive(Clone, Copy)]
pub struct Measure {
    name: &'static str,
    unit: &'static str,
    /// The target for every size, and the one for a single size.
    always: Option<Bound>,
    at_size: Option<(usize, Bound)>,
    /// What one row more adds: the factor and the unit of the result.
    per_row: Option<(f64, &'static str)>,
}

impl Measure {
    pub const fn new(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            always: None,
            at_size: None,
            per_row: None,
        }
    }

    /// Sets a target for the value at every size.
    pub const fn always(mut self, bound: Bound) -> Self {
        self.always = Some(bound);
        self
    }

    /// Sets a target for the value at one size.
    pub const fn at_size(mut self, size: usize, bound: Bound) -> Self {
        self.at_size = Some((size, bound));
        self
    }

    /// Name and unit.
    fn label(&self) -> String {
        match self.unit {
            "" => self.name.to_owned(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// The targets in words.
    fn target(&self) -> String {
        let always = self.always.map(Bound::text);
        let sized = self
            .at_size
            .map(|(size, bound)| format!("{} at {}", bound.text(), thousands(size as f64)));
        let texts: Vec<String> = always.into_iter().chain(sized).collect();
        texts.join(", ")
    }

    /// The targets that hold at this size.
    fn bounds(&self, size: usize) -> impl Iterator<Item = Bound> {
        let sized = self.at_size.filter(|(only, _)| *only == size);
        self.always.into_iter().chain(sized.map(|(_, bound)| bound))
    }

    /// The name without the percentile at its end.
    fn stem(&self, percentile: &str) -> Option<&'static str> {
        self.name.strip_suffix(percentile)
    }

    /// Has the difference between two sizes printed per row, multiplied by `factor` to give `unit`.
    pub const fn per_row(mut self, factor: f64, unit: &'static str) -> Self {
        self.per_row = Some((factor, unit));
        self
    }
}

/// The figures of one size.
struct Page {
    size: usize,
    figures: Vec<(Measure, f64)>,
}

impl Page {
    fn value(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|(measure, _)| measure.name == name);
        found.map(|(_, value)| *value)
    }

    /// The values of a measure or of two percentiles.
    fn values(&self, pair: &[Measure]) -> String {
        let value = |measure: &Measure| self.value(measure.name).map_or("–".into(), shown);
        let values: Vec<String> = pair.iter().map(value).collect();
        match values.iter().all(|value| value == "–") {
            true => "–".into(),
            false => values.join(" / "),
        }
    }
}

/// All figures so far.
pub struct Ledger {
    what: &'static str,
    pages: Vec<Page>,
}

impl Ledger {
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            pages: Vec::new(),
        }
    }

    /// Begins a size.
    pub fn size(&mut self, size: usize) {
        println!("\n{} {}", thousands(size as f64), self.what);
        self.pages.push(Page {
            size,
            figures: Vec::new(),
        });
    }

    /// Prints and keeps a figure of the current size.
    pub fn note(&mut self, measure: Measure, value: f64) {
        println!("  {:<60} {:>8}", measure.label(), shown(value));
        if let Some(page) = self.pages.last_mut() {
            page.figures.push((measure, value));
        }
    }

    /// Prints the ratios of each size to the one before and of the largest to `reference`.
    pub fn compare_sizes(&self, reference: usize) {
        for pair in self.pages.windows(2) {
            if let [smaller, larger] = pair {
                self.compare(larger, smaller);
            }
        }
        let (largest, before) = (self.pages.last(), self.pages.iter().rev().nth(1));
        let base = self.pages.iter().find(|page| page.size == reference);
        if let (Some(largest), Some(base)) = (largest, base)
            && base.size < largest.size
            && before.is_some_and(|before| before.size != base.size)
        {
            self.compare(largest, base);
        }
    }

    fn compare(&self, larger: &Page, smaller: &Page) {
        let [large, small] = [larger, smaller].map(|page| thousands(page.size as f64));
        println!("\n{large} {} against {small}", self.what);
        for (measure, value) in &larger.figures {
            let Some(before) = smaller.value(measure.name) else {
                continue;
            };
            let ratio = value / before;
            if ratio.is_finite() {
                verdict(measure.name, ratio, None);
            }
            if let Some((factor, unit)) = measure.per_row {
                let each = (value - before) / (larger.size - smaller.size) as f64 * factor;
                verdict(&format!("  {unit} per row more"), each, None);
            }
        }
    }

    /// Prints the targets that hold for the sizes measured, and the table.
    pub fn close(&self) {
        println!("\nTargets for a size");
        for (page, measure, value, bound) in self.bounded() {
            let name = format!("{}: {}", thousands(page.size as f64), measure.label());
            verdict(&name, value, Some(bound));
        }
        println!("\n{}", self.table());
    }

    /// Each figure with a target that holds at its size.
    fn bounded(&self) -> impl Iterator<Item = (&Page, &Measure, f64, Bound)> {
        self.pages.iter().flat_map(|page| {
            page.figures.iter().flat_map(move |(measure, value)| {
                measure
                    .bounds(page.size)
                    .map(move |bound| (page, measure, *value, bound))
            })
        })
    }

    /// The targets that were missed, in a sentence.
    pub fn misses(&self) -> String {
        let missed = self
            .bounded()
            .filter(|(.., value, bound)| !bound.is_reached(*value));
        let texts: Vec<String> = missed
            .map(|(page, measure, value, bound)| {
                let size = thousands(page.size as f64);
                format!(
                    "{} at {size} is {} ({})",
                    measure.label(),
                    shown(value),
                    bound.text()
                )
            })
            .collect();
        match texts.is_empty() {
            true => "All targets are reached.".into(),
            false => format!("**Missed:** {}.", texts.join("; ")),
        }
    }

    /// What the two largest sizes say about larger ones, and how the targets were met. Memory and disk are in MB, the CPU
    /// time of a question in ms.
    pub fn remark_on_growth(&self, memory: &Measure, disk: &Measure, question: &Measure) -> String {
        let capacity = self.capacity(memory, disk, question);
        format!("{capacity} {} {}", self.targets(), self.misses())
    }

    /// The targets of the largest size, each with its value, in a sentence.
    fn targets(&self) -> String {
        let largest = self.pages.last().map_or(0, |page| page.size);
        let texts: Vec<String> = self
            .bounded()
            .filter(|(page, ..)| page.size == largest)
            .map(|(_, measure, value, bound)| {
                format!("{}: {} ({})", measure.label(), shown(value), bound.text())
            })
            .collect();
        let largest = thousands(largest as f64);
        format!("Targets at {largest} {}: {}.", self.what, texts.join("; "))
    }

    /// All figures as a table in Markdown, with a column for each size and one for targets.
    pub fn table(&self) -> String {
        let all = self.pages.last().map_or(&[][..], |page| &page.figures);
        let measures: Vec<Measure> = all.iter().map(|(measure, _)| *measure).collect();
        let mut head = vec![self.what.to_owned()];
        head.extend(self.pages.iter().map(|page| thousands(page.size as f64)));
        head.push("target".to_owned());
        let row = |pair: &[Measure]| {
            let mut row = vec![label(pair)];
            row.extend(self.pages.iter().map(|page| page.values(pair)));
            let targets: Vec<String> = pair.iter().map(Measure::target).collect();
            row.push(targets.join(" / ").trim_matches([' ', '/']).to_owned());
            row
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(pairs(&measures).map(row)).collect();
        report::table(&rows)
    }

    /// These figures as a table in Markdown, with a line for each size and one for what a row more adds.
    pub fn table_by_size(&self, measures: &[Measure]) -> String {
        let line = |first: String, cell: &dyn Fn(&[Measure]) -> String| -> Vec<String> {
            std::iter::once(first).chain(pairs(measures).map(cell)).collect()
        };
        let mut rows = vec![line(self.what.to_owned(), &label)];
        for page in &self.pages {
            rows.push(line(thousands(page.size as f64), &|pair| page.values(pair)));
        }
        let each = |measure: &Measure| {
            let (factor, unit) = measure.per_row?;
            let (_, slope) = self.straight_line(measure)?;
            Some(format!("{} {unit}", shown(slope * factor)))
        };
        let each = |pair: &[Measure]| pair.first().and_then(each).unwrap_or_default();
        rows.push(line("each one more".to_owned(), &each));
        report::table(&rows)
    }

    /// A figure at no rows, and what each row adds, by the two largest sizes.
    fn straight_line(&self, measure: &Measure) -> Option<(f64, f64)> {
        let [.., small, large] = &self.pages[..] else {
            return None;
        };
        let (before, value) = (small.value(measure.name)?, large.value(measure.name)?);
        let slope = (value - before) / (large.size - small.size) as f64;
        Some((before - slope * small.size as f64, slope))
    }

    /// How many rows fit into 32 GB of memory (of 64, with half left to the page cache) and on which disk, and how many
    /// one core searches in 50 ms, if the figures go on as between the two largest sizes.
    fn capacity(&self, memory: &Measure, disk: &Measure, question: &Measure) -> String {
        let rows = |measure, limit: f64| {
            let (fixed, slope) = self.straight_line(measure)?;
            (slope > 0.0).then_some((limit - fixed) / slope)
        };
        let sentence = || {
            let (held, searched) = (rows(memory, 32_000.0)?, rows(question, 50.0)?);
            let (fixed, slope) = self.straight_line(disk)?;
            let gigabytes = (fixed + slope * held) / 1e3;
            Some(format!(
                "Extrapolated, 32 GB of memory hold {} million {} with {} GB on disk, and one core searches {} million \
                 in 50 ms.",
                shown(held / 1e6),
                self.what,
                shown(gigabytes),
                shown(searched / 1e6),
            ))
        };
        sentence().unwrap_or_default()
    }
}

/// The measures, those of a median and its 95th percentile together.
fn pairs(measures: &[Measure]) -> impl Iterator<Item = &[Measure]> {
    measures.chunk_by(|one, next| {
        let stem = one.stem(", p50");
        stem.is_some() && stem == next.stem(", p95")
    })
}

/// Name and unit of a measure or of two percentiles.
fn label(pair: &[Measure]) -> String {
    match pair {
        [p50, _] => {
            let stem = p50.stem(", p50").unwrap_or(p50.name);
            format!("{stem}, p50 / p95, {}", p50.unit)
        }
        _ => pair.first().map_or_else(String::new, Measure::label),
    }
}

fn verdict(name: &str, value: f64, bound: Option<Bound>) {
    let target = bound.map_or(String::new(), |bound| {
        let verdict = if bound.is_reached(value) {
            "reached"
        } else {
            "missed"
        };
        format!("{:<16} {verdict}", bound.text())
    });
    println!(
        "{}",
        format!("  {name:<68} {:>8}   {target}", shown(value)).trim_end()
    );
}

/// A number with about three digits.
fn shown(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => return thousands(value),
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}
