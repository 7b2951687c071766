//! What a growth run measures at each size: printed at once, and at its end as ratios with their targets and as a table.

use crate::Fallible;

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
        match self {
            Bound::AtLeast(least) => format!("at least {}", shown(least)),
            Bound::AtMost(most) => format!("at most {}", shown(most)),
        }
    }

    fn verdict(self, value: f64) -> &'static str {
        let reached = match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        };
        if reached { "reached" } else { "missed" }
    }
}

/// A target for one size.
#[derive(Clone, Copy)]
enum Scope {
    EverySize,
    Size(usize),
}

/// A figure that is measured at every size.
#[derive(Clone, Copy)]
pub struct Measure {
    name: &'static str,
    unit: &'static str,
    limit: Option<(Bound, Scope)>,
    /// What one row more adds: the factor and the unit of the result.
    per_row: Option<(f64, &'static str)>,
}

impl Measure {
    pub const fn new(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            limit: None,
            per_row: None,
        }
    }

    /// Sets a target for the value at every size.
    pub const fn always(mut self, bound: Bound) -> Self {
        self.limit = Some((bound, Scope::EverySize));
        self
    }

    /// Sets a target for the value at one size.
    pub const fn at_size(mut self, size: usize, bound: Bound) -> Self {
        self.limit = Some((bound, Scope::Size(size)));
        self
    }

    /// Name and unit.
    fn label(&self) -> String {
        match self.unit {
            "" => self.name.to_owned(),
            unit => format!("{}, {unit}", self.name),
        }
    }

    /// The target in words.
    fn target(&self) -> String {
        self.limit.map_or(String::new(), |(bound, scope)| match scope {
            Scope::EverySize => bound.text(),
            Scope::Size(size) => format!("{} at {}", bound.text(), thousands(size as f64)),
        })
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

    /// Prints the ratios of each size to the one before and of the largest to `reference`, then the targets, then the
    /// table.
    pub fn close(&self, reference: usize) {
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
        self.limits();
        self.table();
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

    /// Prints the targets for values, as far as a size was measured that they are for.
    fn limits(&self) {
        println!("\nTargets for a size");
        for page in &self.pages {
            for (measure, value) in &page.figures {
                if let Some((bound, scope)) = measure.limit
                    && matches!(scope, Scope::EverySize)
                        | matches!(scope, Scope::Size(size) if size == page.size)
                {
                    let name = format!("{}: {}", thousands(page.size as f64), measure.label());
                    verdict(&name, *value, Some(bound));
                }
            }
        }
    }

    /// Prints all figures as a table in Markdown.
    fn table(&self) {
        let sizes: Vec<String> = self
            .pages
            .iter()
            .map(|page| thousands(page.size as f64))
            .collect();
        println!("\n| {} | {} | target |", self.what, sizes.join(" | "));
        println!("|---|{}---|", "---|".repeat(sizes.len()));
        let all = self.pages.last().map_or(&[][..], |page| &page.figures);
        let mut measures = all.iter().map(|(measure, _)| measure).peekable();
        while let Some(measure) = measures.next() {
            let pair = measure.name.strip_suffix(", p50").zip(measures.peek());
            match pair.filter(|(stem, next)| next.name.strip_suffix(", p95") == Some(*stem)) {
                Some((stem, _)) => {
                    let label = format!("{stem}, p50 / p95, {}", measure.unit);
                    self.row(&label, &[Some(measure), measures.next()]);
                }
                None => self.row(&measure.label(), &[Some(measure)]),
            }
        }
    }

    fn row(&self, label: &str, measures: &[Option<&Measure>]) {
        let joined = |text: &dyn Fn(&Measure) -> String| {
            let texts: Vec<String> = measures.iter().flatten().map(|measure| text(measure)).collect();
            texts.join(" / ")
        };
        let value = |page: &Page, measure: &Measure| page.value(measure.name).map_or("–".into(), shown);
        let cells: Vec<String> = self
            .pages
            .iter()
            .map(|page| joined(&|measure| value(page, measure)))
            .collect();
        let target = joined(&Measure::target);
        println!(
            "| {label} | {} | {} |",
            cells.join(" | "),
            target.trim_matches([' ', '/'])
        );
    }
}

fn verdict(name: &str, value: f64, bound: Option<Bound>) {
    let target = bound.map_or(String::new(), |bound| {
        format!("{:<16} {}", bound.text(), bound.verdict(value))
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

/// A number without decimals, with thousands separators.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
