//! The result table: plain text, to be pasted into a document.

use std::path::Path;
use std::time::Duration;

use crate::ledger::thousands;
use crate::load::{Grown, Series};
use crate::program::{Service, disk};

const MEGABYTE: f64 = 1e6;

/// How a service restarted.
pub struct Comeback {
    /// From the start to the first healthy response.
    pub healthy: Duration,
    /// From the start to the first search response.
    pub answered: Duration,
}

pub fn title(text: &str) {
    println!("\n{text}");
}

pub fn size(nodes: usize) {
    title(&format!("{} nodes", thousands(nodes as f64)));
}

pub fn line(name: &str, value: &str) {
    println!("  {name:<42} {value:>12}");
}

pub fn millis(time: Duration) -> String {
    format!("{} ms", thousands(time.as_secs_f64() * 1e3))
}

fn rate(count: usize, time: Duration) -> String {
    format!("{}/s", thousands(count as f64 / time.as_secs_f64()))
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", thousands(bytes as f64 / MEGABYTE))
}

pub fn resources(service: &Service, dir: &Path) {
    let memory = |name| service.memory(name).map_or_else(|| "unknown".into(), megabytes);
    line("memory (RSS)", &memory("VmRSS"));
    line("  of which files that are mapped", &memory("RssFile"));
    line("  at its highest", &memory("VmHWM"));
    line("open files", &service.count("fd").to_string());
    line("data directory", &megabytes(disk(dir)));
}

pub fn attack(objects: usize, bytes: usize, time: Duration) {
    let name = format!(
        "ATT&CK for ICS, {} objects, {:.1} MB",
        thousands(objects as f64),
        bytes as f64 / MEGABYTE
    );
    line(&name, &millis(time));
    line("  objects", &rate(objects, time));
}

pub fn ingest(grown: &Grown, cpu: Option<f64>) {
    let name = format!(
        "ingest of {} objects, {:.0} MB",
        thousands(grown.objects as f64),
        grown.bytes as f64 / MEGABYTE
    );
    line(&name, &millis(grown.time));
    line("  objects", &rate(grown.objects, grown.time));
    line("  nodes", &rate(grown.nodes, grown.time));
    line(
        "  slowest tenth of it, objects",
        &format!("{}/s", thousands(grown.slowest)),
    );
    if let Some(cpu) = cpu {
        let busy = cpu / grown.time.as_secs_f64();
        line("  cores the service used", &format!("{busy:.2}"));
        let per_thousand = Duration::from_secs_f64(cpu * 1e3 / grown.objects as f64);
        line("  processor time per 1,000 objects", &millis(per_thousand));
    }
}

pub fn latency_head() {
    println!(
        "  {:<22} {:>9} {:>9} {:>9}   {:>14}",
        "one client, ms", "p50", "p95", "p99", "8 clients"
    );
}

pub fn latency(name: &str, series: &Series) {
    let [p50, p95, p99] = [0.50, 0.95, 0.99].map(|share| series.percentile(share));
    let many = format!("{}/s", thousands(series.per_second));
    println!("  {name:<22} {p50:>9.1} {p95:>9.1} {p99:>9.1}   {many:>14}");
}

pub fn comeback(name: &str, back: &Comeback) {
    line(&format!("start to healthy {name}"), &millis(back.healthy));
    line(
        &format!("start to first search answer {name}"),
        &millis(back.answered),
    );
}
