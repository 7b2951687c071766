//! The language of the corpus: English-like sentences from a few thousand words, with common words more frequent.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

const VERBS: &str = "abuse access acquire alter archive attach bypass capture change check clone collect \
    compile compress compromise conceal configure connect copy corrupt create decode decrypt delete deliver \
    deploy destroy disable discover disguise download drop dump elevate embed encode encrypt enumerate erase \
    escalate evade execute exfiltrate exploit export extract fetch flood forge gather halt harvest hide hijack \
    hook impersonate implant import infect inject inspect install intercept invoke launch leverage list load \
    log manipulate map masquerade mimic modify monitor mount move obfuscate observe obtain overwrite pack patch \
    persist phish pivot poison proxy query read recover redirect register relay remove rename replace replay \
    reroute reset restart reuse rotate scan schedule scrape seize send sign sniff spoof stage steal stop store \
    suppress tamper target terminate trace transfer trigger tunnel unlock update upload validate wipe write";

const NOUNS: &str = "account address adversary agent alarm algorithm analysis appliance application archive \
    artifact asset authentication authority backdoor backup bandwidth beacon binary block boot botnet bridge \
    browser buffer bundle cable cache campaign certificate channel checksum client cloud cluster code command \
    communication component computer configuration connection console container controller cookie credential \
    daemon dashboard data database datagram defense desktop device dictionary directory disk document domain \
    downloader driver dropper element email encryption endpoint engine engineer environment event exchange \
    execution extension facility file filter firewall firmware flag folder form framework function gateway \
    generator group handler handshake hardware hash header heap hive host hypervisor identifier image impact \
    implant industry infection information infrastructure input instance instruction interface interpreter \
    inventory investigation job journal kernel key keyboard keylogger laptop layer ledger library license link \
    listener loader log loop macro mailbox malware management manifest manufacturer marker memory message \
    metadata meter method mode model module monitor motor mutex name namespace network node notification object \
    operation operator orchestrator organization output package packet page parameter partition password \
    patch path payload peer permission phase pipe pipeline plant platform plugin point policy port portal \
    pressure printer privilege procedure process product profile program project prompt protocol provider proxy \
    pump query queue ransomware record recovery region registry relay remote repository request resource response \
    robot role rootkit router routine rule runtime safety sample sandbox scanner schedule scheme script search \
    sector segment sensor sequence server service session setting shell shortcut signal signature site snapshot \
    socket software source spreadsheet spyware stack station storage stream string substation subnet supplier \
    surface switch system table target task team technique telemetry template terminal thread ticket token tool \
    topic traffic transaction transformer trojan trust turbine update user utility valve variable vault vector \
    vendor version victim virtualization volume vulnerability wallet wireless workstation worm zone";

const ADJECTIVES: &str = "active additional administrative advanced anonymous arbitrary automated available \
    benign binary central clear common compromised critical custom default digital direct domain dynamic \
    embedded encoded encrypted exposed external false foreign graphical hardcoded hidden industrial infected \
    initial internal isolated known large lateral legitimate local logical malicious managed modified multiple \
    native new obfuscated open operational original passive periodic persistent physical plaintext portable \
    primary private privileged public random recent registered reliable remote removable scheduled second secure \
    sensitive separate shared signed silent similar simple social specific stolen suspicious symmetric temporary \
    trusted unauthorized unencrypted unique unsigned untrusted unusual valid virtual volatile vulnerable weak wide";

const PREFIXES: [&str; 8] = ["sub", "micro", "hyper", "cyber", "multi", "inter", "pre", "meta"];
const SYLLABLES: &str = "ka ri vo dan mel tor sha lin gre pol zu ner bas cor fi tal wex mor dra qua pin sol hex \
    gar lum nav rok syl tem ur vin yar zel";
const SUBJECTS: [&str; 7] = [
    "Adversaries may",
    "Operators of the group can",
    "The malware is able to",
    "It has been observed to",
    "Attackers regularly",
    "The actors use it to",
    "Samples of this family",
];
const LINKS: [&str; 6] = [
    "in order to",
    "and then",
    "so that they",
    "before they",
    "to",
    "and",
];
const PLACES: [&str; 7] = [
    "on the",
    "through a",
    "within the",
    "from a",
    "over the",
    "by means of a",
    "against the",
];

/// The vocabulary; each list starts with its most common words.
pub struct Words {
    verbs: Vec<&'static str>,
    nouns: Vec<String>,
    adjectives: Vec<&'static str>,
    syllables: Vec<&'static str>,
}

impl Words {
    pub fn new() -> Self {
        let plain: Vec<&str> = NOUNS.split_whitespace().collect();
        let mut nouns: Vec<String> = plain.iter().map(|noun| (*noun).to_owned()).collect();
        for prefix in PREFIXES {
            nouns.extend(plain.iter().map(|noun| format!("{prefix}{noun}")));
        }
        Self {
            verbs: VERBS.split_whitespace().collect(),
            nouns,
            adjectives: ADJECTIVES.split_whitespace().collect(),
            syllables: SYLLABLES.split_whitespace().collect(),
        }
    }

    /// All whole words, the most common ones of each kind first.
    pub fn ranked(&self) -> impl Iterator<Item = &str> {
        let at = |rank: usize| {
            let verb = self.verbs.get(rank).copied();
            let noun = self.nouns.get(rank).map(String::as_str);
            [verb, noun, self.adjectives.get(rank).copied()]
        };
        (0..self.nouns.len()).flat_map(at).flatten()
    }

    pub fn verb(&self, rng: &mut StdRng) -> &str {
        self.verbs[often_first(rng, self.verbs.len())]
    }

    pub fn noun(&self, rng: &mut StdRng) -> &str {
        &self.nouns[often_first(rng, self.nouns.len())]
    }

    pub fn adjective(&self, rng: &mut StdRng) -> &str {
        self.adjectives[often_first(rng, self.adjectives.len())]
    }

    /// A new name, very likely unique.
    pub fn name(&self, rng: &mut StdRng) -> String {
        let parts = rng.random_range(3..=4);
        let name: String = (0..parts)
            .map(|_| self.syllables.choose(rng).copied().unwrap_or_default())
            .collect();
        capitalized(&name)
    }

    /// An observable: its value, its path in a pattern, and a label.
    pub fn observable(&self, rng: &mut StdRng) -> (String, &'static str, &'static str) {
        match rng.random_range(0..3) {
            0 => {
                let [a, b, c, d]: [u8; 4] = rng.random();
                (format!("{a}.{b}.{c}.{d}"), "ipv4-addr:value", "Address")
            }
            1 => {
                let name = self.name(rng).to_lowercase();
                let domain = format!("{name}-{}.example.com", self.noun(rng));
                (domain, "domain-name:value", "Domain")
            }
            _ => {
                let hash: [u8; 32] = rng.random();
                let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                (hash, "file:hashes.'SHA-256'", "File")
            }
        }
    }

    /// A sentence of about twenty words.
    pub fn sentence(&self, rng: &mut StdRng) -> String {
        let subject = SUBJECTS.choose(rng).copied().unwrap_or_default();
        let link = LINKS.choose(rng).copied().unwrap_or_default();
        format!(
            "{subject} {} {} {} {} {} {link} {} the {} of a {} {}.",
            self.verb(rng),
            self.adjective(rng),
            self.noun(rng),
            PLACES.choose(rng).copied().unwrap_or_default(),
            self.noun(rng),
            self.verb(rng),
            self.noun(rng),
            self.adjective(rng),
            self.noun(rng),
        )
    }

    /// Sentences of at least this many characters in total.
    pub fn text(&self, rng: &mut StdRng, characters: usize) -> String {
        let mut text = self.sentence(rng);
        while text.len() < characters {
            text.push(' ');
            text.push_str(&self.sentence(rng));
        }
        text
    }

    /// A query as an analyst would phrase it.
    pub fn question(&self, rng: &mut StdRng) -> String {
        let (verb, other) = (self.verb(rng).to_owned(), self.verb(rng).to_owned());
        let (noun, thing) = (self.noun(rng).to_owned(), self.noun(rng).to_owned());
        let (adjective, place) = (self.adjective(rng), self.noun(rng));
        match rng.random_range(0..4) {
            0 => format!("which technique is used to {verb} the {noun} of a {adjective} {thing}"),
            1 => format!("who can {verb} {adjective} {noun} and {other} the {thing}?"),
            2 => format!("{verb} {noun} through {adjective} {thing} to {other} a {place}"),
            _ => format!("malware that may {verb} {noun} on the {thing} {place}"),
        }
    }
}

/// A random index skewed towards small values, as word frequencies are.
pub fn often_first(rng: &mut StdRng, count: usize) -> usize {
    let at = (count as f64 + 1.0).powf(rng.random::<f64>()) as usize;
    at.saturating_sub(1).min(count - 1)
}

pub fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}
