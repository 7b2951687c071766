//! Whether a sentence says that somebody used a program.
//!
//! It does if one who attacks does something with the program ("The attackers used PsExec", "… archived the files with
//! WinRAR") or if that is done with it ("AnyDesk was installed"), and nothing denies or doubts just this.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::super::doubt::{doubts, is_doubtful};
use super::super::word_lists::SUBJECT_DOUBTS;
use crate::domain::with_ascii_edges;

/// Words for what may be done with a program, as a verb before its name and as a participle.
const VERBS: &str = "use|uses|used|using|utili[sz]es?|utili[sz]ed|utili[sz]ing|leverages?|leveraged|leveraging|employs?|\
    employed|employing|abuses?|abused|abusing|misused|executes?|executed|executing|ran|runs?|running|launch(?:es)?|\
    launched|launching|invokes?|invoked|invoking|deploys?|deployed|deploying|installs?|installed|installing|\
    downloads?|downloaded|downloading|drops?|dropped|dropping|spawns?|spawned|spawning|started|calls|called|calling|\
    relied on|relies on";
const PARTICIPLES: &str = "used|utili[sz]ed|leveraged|abused|misused|employed|executed|run|launched|invoked|deployed|\
    installed|downloaded|dropped|spawned|started|called";
/// Those verbs where they do not tell that something happened: "did not look around and use PsExec".
const PLAIN: &str =
    "use|utili[sz]e|leverage|employ|abuse|execute|run|launch|invoke|deploy|install|download|drop|spawn";
/// The beginnings of verbs for what is done by means of a program.
const DEEDS: &str = "archiv|back(?:ed|s|ing)? up|brute|captur|clear|cloak|collect|compress|connect|control|cop(?:y|i)|crack|\
    decod|decrypt|delet|destroy|disabl|discover|download|dump|encod|encrypt|enumerat|eras|escalat|establish|execut|exfiltrat|\
    export|extract|gather|grab|harvest|hid|infiltrat|inject|kill|load|log(?:ged|s|ging)? |maintain|manag|map|migrat|mount|mov|\
    obfuscat|obtain|open|overwr|pack|persist|pivot|prox(?:y|i)|quer|reach|read|record|remov|renam|replac|retriev|return|scan|\
    scrap|search|sen[dt]|shar|sniff|spray|spread|stag|stol|steal|sync|tamper|terminat|transfer|tunnel|unpack|upload|wip|writ|\
    wrot|zip";
/// What only attackers do.
const CRIMES: &str = "dumped|exfiltrated|harvested|stolen|wiped";
/// Words for who attacks, and for who works with the same programs.
const ATTACKERS: &str = "attackers?|actors?|adversar(?:y|ies)|intruders?|hackers?|operators?|affiliates?|groups?|gangs?|\
    crews?|criminals?|perpetrators?|insiders?|campaigns?|they|he|she|it|somebody|someone|malware|ransomware|\
    trojan|backdoor|loader|dropper|implant|scripts?|payloads?|\
    (?:malicious|weaponi[sz]ed|lure|decoy|word|office|excel|pdf|rtf|phishing|attached|these|this|the) documents?|\
    macros?|worm|samples?|botnet|infection|intrusion|apt[ -]?[0-9]+|fin[ -]?[0-9]+|unc[ -]?[0-9]+|ta[0-9]+|storm-[0-9]+|\
    [a-z]+ (?:spider|panda|bear|kitten|blizzard|typhoon|sandstorm|sleet|tempest)";
const OTHERS: &str = "(?-i:IT)|administrators?|admins?|customers?|employees|defenders?|analysts?|researchers?|responders?|we|you|\
    our|help ?desks?|vendors?|developers?|engineers?|staff|technicians?|legitimate users?|many companies|organi[sz]ations|\
    (?:user|working|focus|support|security|policy|resource|research|product|study|admin|administrative|management) groups?|\
    (?:build|log[io]n|admin|administrative|deployment|maintenance|installation|setup|start-?up|test|backup|monitoring) scripts?|\
    (?:plant|grid|network|system|control[ -]room|telecom|pipeline|machine) operators?|\
    (?:marketing|advertising|awareness|training) campaigns?|it (?:is|was|has been) (?:[a-z]+ ){1,2}to";
/// Those who are attacked. Where one of them is the subject of the verb, it works with the program itself.
const VICTIMS: &str = "users?|hospitals?|clinics?|schools?|universities|companies|firms|businesses|banks|utilities|providers|\
    suppliers|contractors|people|students|teachers|doctors|nurses|teams|departments|offices|plants|agencies|victims?|clients?|\
    hosts?|servers?|systems?|machines?|computers?|devices?|workstations?|endpoints?|networks?|environments?";
/// Verbs of reports, which only mention what they speak about.
const MENTIONS: &str = "describ|document|report|mention|monitor|detect|investigat|discuss|explain|prevent|block|stop|recommend|\
    restrict|ban|forbid|prohibit|avoid|audit|track|review|hunt|alert|list|cover|warn";
/// Verbs behind which stands what others found out.
const FINDINGS: &str = "said|says?|found|finds?|observed|saw|see|seen|reported|reports?|noted|noticed|believes?|assess(?:ed)?|\
    confirmed|discovered|determined|learned|revealed|showed|identified|detected|stated?";
const OF_SENTENCE: &[&str] = &[
    "allegedly",
    "reportedly",
    "possibly",
    "perhaps",
    "unconfirmed",
    "hypothetical",
];
/// Doubts right before a subject that are about who it is, not about what it did.
const OF_IDENTITY: &[&str] = &["suspected", "likely", "similar", "false", "unrelated"];
/// Marks between the parts of a sentence.
const MARKS: [char; 9] = [',', ';', ':', '(', ')', '[', ']', '—', '–'];

pub(super) struct UsePatterns {
    /// A verb, with the name as its object at the end.
    active: Regex,
    /// A preposition that makes the name a means, at the end.
    means: Regex,
    /// A deed and "with", with the name at the end.
    deed: Regex,
    /// What only attackers do, in the passive, by means of the name at the end.
    crime: Regex,
    /// A heading of a list of tools, with the name in the list.
    listed: Regex,
    /// "use of" the name, at the end.
    noun: Regex,
    /// The passive, behind the name.
    passive: Regex,
    passive_by: Regex,
    /// Whose use a noun behind the name tells of.
    by: Regex,
    /// A verb of [`PLAIN`] at the beginning.
    plain: Regex,
    /// A victim as the subject of a verb that follows.
    victim: Regex,
    /// What a victim has, with the name at the end: "hosts that run".
    had: Regex,
    victims: Regex,
    attackers: Regex,
    others: Regex,
    mentions: Regex,
    /// Others who found out what follows.
    finding: Regex,
    /// The last "and" or the like, with what follows it.
    joint: Regex,
}

pub(super) static PATTERNS: LazyLock<Option<UsePatterns>> = LazyLock::new(|| {
    let of = |text: &str| Regex::new(&with_ascii_edges(text)).ok();
    const GAP: &str = r"[^.;:!?]";
    Some(UsePatterns {
        active: of(&format!(r"(?is)^.*(\b(?:{VERBS})\b{GAP}{{0,120}})$"))?,
        means: of(r"(?i)\b(?:via|through|by means of|with the help of|with the aid of)\b[^.;:!?,]{0,40}$")?,
        deed: of(&format!(
            r"(?i)\b(?:{DEEDS})[a-z]*\b{GAP}{{0,100}}?\bwith\b[^.;:!?,]{{0,40}}$"
        ))?,
        crime: of(&format!(
            r"(?i)\b(?:was|were|been)\b{GAP}{{0,40}}?\b(?:{CRIMES})\b{GAP}{{0,80}}?\b(?:with|via|using|through)\b[^.;:!?,]{{0,40}}$"
        ))?,
        listed: of(&format!(
            r"(?i)\b(?:tools?|software|utilities|programs|binaries|lolbins|lolbas)\b[^.;!?]{{0,60}}\b(?:{PARTICIPLES}|observed|seen)\b[^.;!?]{{0,40}}:[^.;!?]{{0,200}}$"
        ))?,
        noun: of(&format!(
            r"(?i)\b(?:use|usage|abuse|misuse|execution|deployment|installation) of {GAP}{{0,60}}$"
        ))?,
        passive: of(&format!(
            r"(?i)^{GAP}{{0,80}}?\b(?:was|were|been|being|got)(?: [a-z]+){{0,2}} (?:{PARTICIPLES})\b"
        ))?,
        passive_by: of(&format!(
            r"(?i)^{GAP}{{0,80}}?\b(?:{PARTICIPLES}) by (?:[a-z0-9' -]{{0,40}})?"
        ))?,
        by: of(&format!(r"(?i)^{GAP}{{0,40}}?\bby ([^.;:!?,]{{0,40}})"))?,
        plain: of(&format!(r"(?i)^(?:{PLAIN})\b"))?,
        victim: of(&format!(
            r"(?i)(?:\b(on|against|in|of|at|from|to|into|by|with|for|and) (?:[\w'-]+ ){{0,2}}?)?\b(?:{VICTIMS})(?: (?:[a-z]+ly|often|also|still|sometimes|then))* $"
        ))?,
        had: of(&format!(
            r"(?i)\b(?:{VICTIMS}) (?:running|(?:that|which|who) (?:runs?|ran|used?|uses|have|had|has|installed))\b[^.;:!?,]{{0,60}}$"
        ))?,
        victims: of(&format!(r"(?i)\b(?:{VICTIMS})\b"))?,
        attackers: of(&format!(r"(?i)\b(?:{ATTACKERS})\b"))?,
        others: of(&format!(r"(?i)\b(?:{OTHERS})\b"))?,
        mentions: of(&format!(r"(?i)\b(?:{MENTIONS})[a-z]*\b"))?,
        finding: of(&format!(
            r"(?i)\b(?:{OTHERS})(?: (?:at|from|of|with) [\w.&-]+(?: [A-Z][\w.&-]*)?)?(?: (?:have|has|had|also|later|then|first)){{0,2}} (?:{FINDINGS})\b(?: (?:that|how))?"
        ))?,
        joint: of(r"(?is)^.*\b(?:and|but|then|until|before|after|because|so|when|while|once)\b")?,
    })
});

/// A sentence around the name of a program.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'t> {
    pub(super) before: &'t str,
    pub(super) after: &'t str,
    /// Where `after` begins in the sentence.
    pub(super) end: usize,
}

/// Finds the first actor or malware in a part of a sentence.
pub(super) type FirstUser<'f> = &'f dyn Fn(Range<usize>) -> Option<usize>;

/// How a program that is named is used.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// As the object of a verb, or as a means.
    Verb,
    /// "use of …".
    Noun,
}

impl UsePatterns {
    /// Whether the sentence says that somebody who attacks used the program.
    pub(super) fn is_used(&self, sentence: Surroundings<'_>, first_user: FirstUser<'_>) -> bool {
        let Surroundings { before, after, .. } = sentence;
        if after.trim_end().ends_with('?') {
            return false;
        }
        if self.listed.is_match(before) {
            return !self.others.is_match(before) && !is_doubtful(before);
        }
        self.is_used_by_attackers(sentence, first_user) || self.is_passively_used(sentence, first_user)
    }

    /// The first who is named acts: "The attackers called the help desk and used …", "Researchers who track APT41 used …".
    fn is_used_by_attackers(&self, sentence: Surroundings<'_>, first_user: FirstUser<'_>) -> bool {
        let before = sentence.before;
        let Some((start, by)) = self.use_in(sentence) else {
            return false;
        };
        if by == Use::Noun && self.is_by_attackers(sentence, first_user) {
            return !self.is_doubted(before, start, first_user);
        }
        let lead = before.get(..start).unwrap_or_default();
        if self.had.is_match(before) || self.acts_as_victim(lead, before.get(start..).unwrap_or_default()) {
            return false;
        }
        // What others found out has a subject of its own.
        let found = self.finding.find_iter(lead).last();
        let found = found.map_or(0, |finding| finding.end());
        // So has the last part of the sentence: "Nobody watched the servers, the attackers used …".
        let own = found.max(part_start(lead));
        let from = if self.attacker(lead, own, first_user).is_some() {
            own
        } else {
            found
        };
        let Some(attacker) = self.attacker(lead, from, first_user) else {
            return false;
        };
        let other = self.others.find_at(lead, from).map(|other| other.start());
        let only_mentions =
            by == Use::Noun && self.mentions.is_match(lead.get(attacker..).unwrap_or_default());
        let acts = other.is_none_or(|other| attacker < other);
        acts && !only_mentions && !self.is_doubted(before, start, first_user)
    }

    /// Where a sentence begins to tell of a use, and how.
    fn use_in(&self, sentence: Surroundings<'_>) -> Option<(usize, Use)> {
        let Surroundings { before, after, .. } = sentence;
        // "dumped passwords from hosts with TeamViewer installed"
        let next = after
            .split(|c: char| !c.is_alphanumeric())
            .find(|word| !word.is_empty());
        let is_had = || matches!(next, Some("enabled" | "installed" | "open" | "running"));
        let active = self.active.captures(before).and_then(|found| found.get(1));
        let noun = self.noun.find(before);
        match (active, noun) {
            (Some(active), Some(noun)) if noun.start() < active.start() => Some((active.start(), Use::Verb)),
            (_, Some(noun)) => Some((noun.start(), Use::Noun)),
            (Some(active), None) => Some((active.start(), Use::Verb)),
            (None, None) => {
                let means = self
                    .means
                    .find(before)
                    .or_else(|| self.deed.find(before).filter(|_| !is_had()));
                means.map(|means| (means.start(), Use::Verb))
            }
        }
    }

    /// The first who attacks, from a place of these words on.
    fn attacker(&self, words: &str, from: usize, first_user: FirstUser<'_>) -> Option<usize> {
        let attacker = self
            .attackers
            .find_at(words, from)
            .map(|attacker| attacker.start());
        attacker.into_iter().chain(first_user(from..words.len())).min()
    }

    /// "the use of PsExec by the attackers"
    fn is_by_attackers(&self, sentence: Surroundings<'_>, first_user: FirstUser<'_>) -> bool {
        let by = self.by.captures(sentence.after).and_then(|found| found.get(1));
        by.is_some_and(|by| {
            let attacks = self.attackers.is_match(by.as_str());
            let user = first_user(sentence.end + by.start()..sentence.end + by.end());
            (attacks || user.is_some()) && !self.others.is_match(by.as_str())
        })
    }

    /// Whether the subject of a verb is one who is attacked: "hospitals use …", but not "attacks on hospitals use …" or "they
    /// spread to hosts using …".
    fn acts_as_victim(&self, lead: &str, rest: &str) -> bool {
        let verb = rest.split_whitespace().next().unwrap_or_default();
        let victim = self.victim.captures(lead);
        !verb.ends_with("ing") && victim.is_some_and(|victim| victim.get(1).is_none())
    }

    fn is_passively_used(&self, sentence: Surroundings<'_>, first_user: FirstUser<'_>) -> bool {
        let Surroundings { before, after, .. } = sentence;
        if self.others.is_match(before) {
            return false;
        }
        if let Some(crime) = self.crime.find(before) {
            return !self.is_doubted(before, crime.start(), first_user);
        }
        let by = self.passive_by.find(after);
        if by.is_some_and(|by| self.others.is_match(by.as_str()) || self.is_by_victims(by.as_str())) {
            return false;
        }
        let passive = by.or_else(|| self.passive.find(after));
        passive.is_some_and(|passive| {
            let part = part_start(passive.as_str());
            let is_doubted = doubts(passive.as_str()).any(|doubt| doubt.start >= part);
            !is_doubted && !governs(before, part_start(before), before.len())
        })
    }

    fn is_by_victims(&self, by: &str) -> bool {
        self.victims.is_match(by) && !self.attackers.is_match(by)
    }

    /// Whether something denies or doubts the use that a sentence tells of from `start` on. A doubt before the subject is about
    /// something else: "Without triggering alarms, they used …", "The actor, likely APT28, used …".
    fn is_doubted(&self, before: &str, start: usize, first_user: FirstUser<'_>) -> bool {
        let lead = before.get(..start).unwrap_or_default();
        let own = part_start(lead);
        let is_doubted = |within: Range<usize>| doubts(before).any(|doubt| within.contains(&doubt.start));
        let Some(subject) = self
            .attacker(lead, own, first_user)
            .or_else(|| self.attacker(lead, 0, first_user))
        else {
            return is_doubted(own..before.len()) || governs(before, own, start);
        };
        let clause = lead.get(..subject).map_or(0, part_start);
        // Of several things that the subject does, the last one is the use.
        let from = own.max(subject);
        let joint = lead.get(from..).and_then(|lead| self.joint.find(lead));
        let deed = joint.map_or(from, |joint| from + joint.end());
        let is_plain = before.get(start..).is_some_and(|rest| self.plain.is_match(rest));
        is_doubted(if is_plain { from } else { deed }..before.len())
            || is_subject_doubted(
                before,
                subject..if clause == own {
                    deed
                } else {
                    part_end(lead, subject)
                },
            )
            || governs(before, clause, subject)
    }
}

/// Whether a doubt that holds for all that the subject does stands behind it.
fn is_subject_doubted(before: &str, within: Range<usize>) -> bool {
    doubts(before).any(|doubt| {
        let is_behind = within.contains(&doubt.start) && is_one_of(before, &doubt, &SUBJECT_DOUBTS);
        let rest = before
            .get(doubt.end..within.end.max(doubt.end))
            .unwrap_or_default();
        is_behind && !rest.contains(" but ")
    })
}

/// Whether a doubt before the subject of a part of a sentence is about what the subject does: "no evidence that the attackers …",
/// "No attackers …", "Reportedly, the attackers …".
fn governs(before: &str, part: usize, subject: usize) -> bool {
    let is_aside = |word: &str| {
        matches!(
            word,
            "a" | "an" | "any" | "of" | "some" | "the" | "these" | "this" | "those"
        )
    };
    doubts(before)
        .take_while(|doubt| doubt.start < subject)
        .any(|doubt| {
            if is_one_of(before, &doubt, OF_SENTENCE) {
                return true;
            }
            if doubt.start < part {
                // "Most likely, the attackers …"
                let lead = before.get(..part).unwrap_or_default();
                let words = lead.get(part_start(lead.get(..doubt.start).unwrap_or_default())..);
                return words.is_some_and(|words| words.split_whitespace().count() <= 2)
                    && is_one_of(before, &doubt, &["likely", "unlikely"]);
            }
            let between = before.get(doubt.end..subject).unwrap_or_default().to_lowercase();
            let mut words = between.split_whitespace();
            let is_next = words.clone().all(is_aside) && !is_one_of(before, &doubt, OF_IDENTITY);
            is_next || words.any(|word| word == "that")
        })
}

fn is_one_of(text: &str, word: &Range<usize>, list: &[&str]) -> bool {
    let word = text.get(word.clone()).unwrap_or_default();
    list.iter().any(|listed| word.eq_ignore_ascii_case(listed))
}

/// Where the last part of a text begins.
fn part_start(text: &str) -> usize {
    let mark = text.char_indices().rev().find(|(_, c)| MARKS.contains(c));
    mark.map_or(0, |(at, c)| at + c.len_utf8())
}

/// Where the part of a text that holds a place ends.
fn part_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.find(MARKS).map_or(text.len(), |end| at + end)
}
