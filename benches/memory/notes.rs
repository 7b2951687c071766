//! The notes and the questions.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::prose::Prose;

const WORDS: [&str; 48] = [
    "beacon",
    "phishing",
    "ministry",
    "server",
    "lateral",
    "movement",
    "credential",
    "dump",
    "loader",
    "dropper",
    "persistence",
    "scheduled",
    "task",
    "registry",
    "exfiltration",
    "archive",
    "tunnel",
    "proxy",
    "fronting",
    "victim",
    "energy",
    "sector",
    "report",
    "campaign",
    "observed",
    "analyst",
    "network",
    "traffic",
    "malware",
    "sample",
    "signed",
    "driver",
    "kernel",
    "exploit",
    "patch",
    "vendor",
    "advisory",
    "incident",
    "mailbox",
    "forwarding",
    "backdoor",
    "implant",
    "staging",
    "operator",
    "infrastructure",
    "certificate",
    "hosting",
    "domain",
];
const ACTORS: [&str; 8] = [
    "APT28",
    "Sandworm",
    "Lazarus Group",
    "APT29",
    "FIN7",
    "Turla",
    "Volt Typhoon",
    "OilRig",
];
const TOOLS: [&str; 6] = [
    "Cobalt Strike",
    "Mimikatz",
    "PsExec",
    "Industroyer",
    "NotPetya",
    "Snake",
];
const ASKED: [&str; 6] = [
    "What tools does APT28 use?",
    "latest incident in the energy sector",
    "CVE-2024-1500",
    "credential dump and lateral movement",
    "Why was the mailbox forwarding?",
    "10.0.3.7",
];
/// Words of a growth run's note, besides what it names at its end.
const LENGTH: std::ops::RangeInclusive<usize> = 40..=60;

/// The same note for a given number in every run.
pub fn note(number: usize) -> String {
    let mut state = number as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut words = Vec::with_capacity(60);
    for _ in 0..60 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        words.push(WORDS[(state >> 33) as usize % WORDS.len()]);
    }
    format!("{} {}.", seen(number), words.join(" "))
}

/// What the note of this number observed.
fn seen(number: usize) -> String {
    let (actor, tool) = (ACTORS[number % ACTORS.len()], TOOLS[number % TOOLS.len()]);
    let (address, cve, domain) = (address(number), 1000 + number % 3000, number % 97);
    format!("{actor} used {tool} against {address} and host{number}.evil-{domain}.com, CVE-2024-{cve}.")
}

fn address(number: usize) -> String {
    let [_, a, b, c] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

pub fn asked(number: usize) -> &'static str {
    ASKED[number % ASKED.len()]
}

/// The growth run's note of this number: the same in every run. Each names an address, every second one an actor and a
/// tool, every fifth one a vulnerability.
pub fn prose_note(prose: &Prose, number: usize) -> String {
    let mut rng = StdRng::seed_from_u64(number as u64);
    let mut note = prose.text(&mut rng, LENGTH);
    if number.is_multiple_of(2) {
        let actor = ACTORS.choose(&mut rng).copied().unwrap_or_default();
        let tool = TOOLS.choose(&mut rng).copied().unwrap_or_default();
        note = format!("{note} {actor} used {tool}.");
    }
    if number.is_multiple_of(5) {
        let cve = rng.random_range(1_000..4_000);
        note = format!("{note} They exploited CVE-2024-{cve}.");
    }
    format!("{note} Seen at {}.", address(number))
}

/// A question of a growth run: mostly about a subject, sometimes about an actor or an address.
pub fn prose_question(prose: &Prose, rng: &mut StdRng, notes: usize) -> String {
    match rng.random_range(0..10) {
        0 => {
            let actor = ACTORS.choose(rng).copied().unwrap_or_default();
            format!("What did {actor} use: {}", prose.question(rng))
        }
        1 => address(rng.random_range(0..notes)),
        _ => prose.question(rng),
    }
}
