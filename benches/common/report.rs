//! `--report`: writes tables in Markdown into the page docs/benchmarks.md.

use std::error::Error;
use std::fs::read_to_string;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/benchmarks.md");
const END: &str = "<!-- /report -->";

/// A section of the page that is to be written.
pub struct Report {
    section: &'static str,
}

impl Report {
    /// The section, if the arguments ask for a report. It is an error, before anything is measured, if the page has no such
    /// section, or if another binary than the one just built is measured: the page is about this version.
    pub fn from_args(args: &[String], section: &'static str) -> Fallible<Option<Self>> {
        if !args.iter().any(|arg| arg == "--report") {
            return Ok(None);
        }
        if std::env::var_os("THREAT_MEMORY_BINARY").is_some_and(|path| !path.is_empty()) {
            return Err("--report is about the version just built: unset THREAT_MEMORY_BINARY".into());
        }
        replace_section(&read_to_string(PAGE)?, section, "")?;
        Ok(Some(Self { section }))
    }

    /// Writes the section: its tables, and a line with the version, the machine, the date and a remark.
    pub fn write(&self, tables: &str, remark: &str) -> Fallible<()> {
        let build = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        let version = env!("CARGO_PKG_VERSION");
        let date = threat_memory::clock::now().format("%Y-%m-%d");
        let text = format!(
            "{tables}\n\n*threat-memory {version}, {build} build, {date}, {}.* {}",
            machine(),
            remark.trim()
        );
        std::fs::write(
            PAGE,
            replace_section(&read_to_string(PAGE)?, self.section, &text)?,
        )?;
        println!("\nsection {} of docs/benchmarks.md is written", self.section);
        Ok(())
    }
}

/// The page with another text in a section, which stands between `<!-- report: SECTION -->` and `<!-- /report -->`.
pub fn replace_section(page: &str, section: &str, text: &str) -> Result<String, String> {
    let begin = format!("<!-- report: {section} -->");
    let (before, rest) = page
        .split_once(&begin)
        .ok_or_else(|| format!("docs/benchmarks.md has no section {section}: {begin} is missing"))?;
    let (_, after) = rest
        .split_once(END)
        .filter(|(old, _)| !old.contains("<!-- report:"))
        .ok_or_else(|| format!("section {section} of docs/benchmarks.md has no end: {END} is missing"))?;
    Ok(format!("{before}{begin}\n\n{} {END}{after}", text.trim()))
}

/// A table in Markdown. The first row is its head.
pub fn table(rows: &[Vec<String>]) -> String {
    let mut lines: Vec<String> = rows
        .iter()
        .map(|cells| format!("| {} |", cells.join(" | ")))
        .collect();
    let columns = rows.first().map_or(0, Vec::len);
    lines.insert(lines.len().min(1), format!("|{}", "---|".repeat(columns)));
    lines.join("\n")
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

/// Processor, memory and kernel of this machine.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "an unknown processor".into());
    let memory = field("/proc/meminfo", "MemTotal").and_then(|total| total.strip_suffix(" kB")?.parse().ok());
    let memory = memory.map_or("unknown".into(), |kilobytes: f64| {
        format!("{:.0} GB", kilobytes / 1e6)
    });
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What follows the numbers names a distribution's build.
    let end = kernel.find(|c: char| !c.is_ascii_digit() && c != '.');
    let kernel = kernel.get(..end.unwrap_or(kernel.len())).unwrap_or_default();
    format!("{cores} cores of {processor}, {memory} of memory, Linux {kernel}")
}

/// The first value of this name in a file of lines `name: value`.
fn field(file: &str, name: &str) -> Option<String> {
    let text = read_to_string(file).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}
