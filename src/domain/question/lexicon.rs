//! The words that the understanding of questions knows. They are data: `assets/question/words.txt` has the lists,
//! `nouns.txt` the nouns for kinds of things, `phrases.txt` the phrases that tell what kind of answer is wanted, `dates.txt` the
//! names of months and seasons. A new word or phrase is an entry there.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::intent::Wording;
use super::kind::Kind;
use crate::domain::node::NodeType;

const WORDS: &str = include_str!("../../../assets/question/words.txt");
const NOUNS: &str = include_str!("../../../assets/question/nouns.txt");
const DATES: &str = include_str!("../../../assets/question/dates.txt");
const PHRASES: &str = include_str!("../../../assets/question/phrases.txt");

pub(super) const ACTORS: &[Kind] = &[Kind::Group, Kind::Campaign];
/// Longest noun and longest phrase, in words.
pub(super) const MAX_NOUN: usize = 3;
const MAX_PHRASE: usize = 4;

macro_rules! word_lists {
    ($($list:ident = $name:literal,)+) => {
        /// A list of words; `assets/question/words.txt` says what each is for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum List { $($list,)+ }

        impl List {
            const ALL: &[(&'static str, List)] = &[$(($name, List::$list),)+];
        }
    };
}

word_lists! {
    Asking = "asking",
    Indirect = "indirect",
    Observing = "observing",
    Requests = "requests",
    AskingPast = "asking past",
    Listing = "listing",
    Qualifiers = "qualifiers",
    Means = "means",
    Places = "places",
    Pronouns = "pronouns",
    Topics = "topics",
    Possessives = "possessives",
    Joining = "joining",
    Attributing = "attributing",
    Selecting = "selecting",
    Persons = "persons",
    Openings = "openings",
    Prepositions = "prepositions",
    Operated = "operated",
    Attached = "attached",
    Belonging = "belonging",
    Using = "using",
    Employs = "employs",
    Vague = "vague",
    Protecting = "protecting",
    FunctionWords = "function words",
    Relative = "relative",
    Conjunctions = "conjunctions",
    Determiners = "determiners",
    Links = "links",
    Times = "times",
    Adverbs = "adverbs",
    Anything = "anything",
    Described = "described",
    Attackers = "attackers",
    Helping = "helping",
    Past = "past",
    WithoutObject = "without object",
    PlainWithoutObject = "plain without object",
    PastOrParticiple = "past or participle",
    Describing = "describing",
    Perceived = "perceived",
    Verbs = "verbs",
    VerbsAndNouns = "verbs and nouns",
    AskingAbility = "asking ability",
    Telling = "telling",
    Doing = "doing",
    Circumstances = "circumstances",
    Employing = "employing",
    YesOrNo = "yes or no",
    Being = "being",
    Entered = "entered",
    Begins = "begins",
    Introducing = "introducing",
    DateJoining = "date joining",
    Relating = "relating",
    AskingThings = "asking things",
    YesOrNoVerbs = "yes or no verbs",
    Months = "months",
    BeforeMonth = "before a month",
    Products = "products",
    Units = "units",
    Filler = "filler",
    LookingUp = "looking up",
    Negating = "negating",
    Excepting = "excepting",
}

/// The lists in which a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lists(u128);

impl Lists {
    /// Those of a word in lower case.
    pub(super) fn of(word: &str) -> Self {
        let listed = LEXICON.lists.get(word).copied().unwrap_or_default();
        let begun = LEXICON
            .beginnings
            .iter()
            .filter(|(beginning, _)| word.starts_with(beginning));
        begun.fold(listed, |lists, (_, list)| lists.with(*list))
    }

    pub(super) fn has(self, list: List) -> bool {
        self.0 & bit(list) != 0
    }

    fn with(self, list: List) -> Self {
        Lists(self.0 | bit(list))
    }
}

fn bit(list: List) -> u128 {
    1 << (list as u32)
}

impl List {
    /// Whether the list has a word, which is in lower case.
    pub(super) fn has(self, word: &str) -> bool {
        Lists::of(word).has(self)
    }

    fn named(name: &str) -> Option<Self> {
        let mut all = List::ALL.iter();
        all.find(|(known, _)| *known == name).map(|(_, list)| *list)
    }
}

/// A noun for things of a kind.
#[derive(Debug)]
pub(super) struct KindNoun {
    pub(super) kinds: Vec<Kind>,
    /// Whether it can stand for many: a plural, or a noun without one.
    pub(super) many: bool,
}

/// What a form of a verb can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// "has", "was", "could".
    Helping,
    /// The past alone: "stole".
    Past,
    /// "used": the past, or a participle as in "malware used by Sandworm".
    PastOrParticiple,
    /// "uses".
    Present,
    /// "attacks": a noun, too.
    PresentOrNoun,
    /// "use": the present of many, the infinitive, and often a noun.
    Plain,
}

/// The lists of words that are forms of verbs, later ones before earlier ones.
const FORMS: [(List, Form); 6] = [
    (List::Verbs, Form::Plain),
    (List::VerbsAndNouns, Form::Plain),
    (List::PastOrParticiple, Form::PastOrParticiple),
    (List::Past, Form::Past),
    (List::WithoutObject, Form::Past),
    (List::Helping, Form::Helping),
];

#[derive(Default)]
struct Lexicon {
    lists: HashMap<&'static str, Lists>,
    /// Words that are told by their beginnings alone.
    beginnings: Vec<(&'static str, List)>,
    forms: HashMap<String, Form>,
    nouns: HashMap<String, KindNoun>,
    /// Plurals and other words that mean a kind always, and those that do so only beside others.
    plurals: HashMap<&'static str, Vec<Kind>>,
    asked_plurals: HashMap<&'static str, Vec<Kind>>,
    /// Words of a query that limit its answers to types of nodes.
    types: HashMap<&'static str, Vec<NodeType>>,
    countries: HashMap<&'static str, &'static str>,
    phrases: HashMap<&'static str, Vec<Wording>>,
    /// Numbers of months, of the first months of seasons, and of quarters and halves.
    months: HashMap<&'static str, u32>,
    seasons: HashMap<&'static str, u32>,
    parts: HashMap<&'static str, u32>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::read);

/// The lists of a file: their names, each with its entries.
pub(in crate::domain) fn sections(text: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let header = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        match (header, sections.last_mut()) {
            (Some(name), _) => sections.push((name, Vec::new())),
            (None, Some((_, entries))) => {
                let parts = line.split(',').map(str::trim);
                entries.extend(parts.filter(|part| !part.is_empty()));
            }
            (None, None) => {}
        }
    }
    sections
}

impl Lexicon {
    fn read() -> Self {
        let mut lexicon = Lexicon::default();
        for (name, words) in sections(WORDS) {
            if let Some(list) = List::named(name) {
                lexicon.add_words(list, &words);
            }
        }
        lexicon.add_forms();
        lexicon.add_dates();
        lexicon.add_nouns();
        for (name, phrases) in sections(PHRASES) {
            for phrase in phrases {
                let wordings = lexicon.phrases.entry(phrase).or_default();
                wordings.extend(Wording::named(name));
            }
        }
        lexicon
    }

    fn add_words(&mut self, list: List, words: &[&'static str]) {
        for word in words {
            if let Some(beginning) = word.strip_suffix('*') {
                self.beginnings.push((beginning, list));
            } else {
                let lists = self.lists.entry(word).or_default();
                *lists = lists.with(list);
            }
        }
    }

    /// Adds the forms of the listed verbs; of a word in several lists the last of [`FORMS`] counts.
    fn add_forms(&mut self) {
        for (list, form) in FORMS {
            let words = self.lists.iter().filter(|(_, lists)| lists.has(list));
            for (word, _) in words {
                self.forms.insert((*word).to_owned(), form);
                // Nobody writes "the uses" in a report.
                let in_s_form = match list == List::VerbsAndNouns {
                    true if *word != "use" => Form::PresentOrNoun,
                    _ => Form::Present,
                };
                if matches!(list, List::Verbs | List::VerbsAndNouns) {
                    self.forms.insert(in_s(word), in_s_form);
                }
            }
        }
    }

    fn add_dates(&mut self) {
        for (name, words) in sections(DATES) {
            let (what, number) = name.rsplit_once(' ').unwrap_or(("", name));
            let numbers = match what {
                "season" => &mut self.seasons,
                "part" => &mut self.parts,
                _ => &mut self.months,
            };
            let number: Option<u32> = number.parse().ok();
            numbers.extend(words.into_iter().filter_map(|word| Some((word, number?))));
        }
    }

    fn add_nouns(&mut self) {
        let sections = sections(NOUNS);
        let mass = sections.iter().filter(|(name, _)| *name == "mass");
        let mass: Vec<&str> = mass.flat_map(|(_, words)| words).copied().collect();
        for (name, words) in sections {
            let (what, rest) = name.split_once(' ').unwrap_or((name, ""));
            for word in words {
                match what {
                    "mass" => {}
                    "demonyms" => self.countries.extend(word.split_once(' ')),
                    "plural" => drop(self.plurals.insert(word, kinds_of(rest))),
                    "asked" => drop(self.asked_plurals.insert(word, kinds_of(rest))),
                    "type" => {
                        let types = rest.split(' ').filter_map(|name| name.parse().ok());
                        self.types.insert(word, types.collect());
                    }
                    _ => self.add_noun(word, &kinds_of(name), mass.contains(&word)),
                }
            }
        }
    }

    /// Adds a noun in the singular, and its plurals.
    fn add_noun(&mut self, noun: &str, kinds: &[Kind], is_mass: bool) {
        // The head of "courses of action" comes first, that of other phrases last.
        let (front, head, tail) = match noun.find(" of ") {
            Some(at) => ("", noun.get(..at), noun.get(at..)),
            None => match noun.rfind(' ') {
                Some(at) => (noun.get(..=at).unwrap_or_default(), noun.get(at + 1..), Some("")),
                None => ("", Some(noun), Some("")),
            },
        };
        let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or_default());
        let mut add = |head: &str, many| {
            let noun = KindNoun {
                kinds: kinds.to_vec(),
                many,
            };
            self.nouns.entry(format!("{front}{head}{tail}")).or_insert(noun);
        };
        add(head, is_mass);
        for plural in plurals(head) {
            add(&plural, true);
        }
    }
}

/// What the plural of a noun could be.
pub(super) fn plurals(singular: &str) -> impl Iterator<Item = String> {
    let in_ies = singular.strip_suffix('y').map(|stem| format!("{stem}ies"));
    [format!("{singular}s"), format!("{singular}es")]
        .into_iter()
        .chain(in_ies)
}

pub(super) fn kinds_of(names: &str) -> Vec<Kind> {
    let kind = |name: &str| {
        let mut all = Kind::ALL.into_iter();
        all.find(|kind| kind.as_str() == name)
    };
    names.split(' ').filter_map(kind).collect()
}

/// The form for one who acts: "uses", "searches", "tries".
fn in_s(verb: &str) -> String {
    let hisses = ["s", "sh", "ch", "x", "z"].iter().any(|end| verb.ends_with(end));
    match verb.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if hisses => format!("{verb}es"),
        _ => format!("{verb}s"),
    }
}

/// What a word can be if it is a verb.
pub(super) fn verb_form(word: &str) -> Option<Form> {
    if let Some(form) = LEXICON.forms.get(word) {
        return Some(*form);
    }
    let is_past = word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed") && !word.contains('-');
    is_past.then_some(Form::PastOrParticiple)
}

/// The noun for a kind with these words, joined by blanks.
pub(super) fn kind_noun(words: &str) -> Option<&'static KindNoun> {
    LEXICON.nouns.get(words)
}

/// The words that name kinds of things, in lower case: "vulnerability", "actors", both of "attack pattern".
pub fn kind_words() -> impl Iterator<Item = &'static str> {
    let nouns = LEXICON.nouns.keys().flat_map(|noun| noun.split(' '));
    nouns.chain(LEXICON.types.keys().copied())
}

/// The kinds that a word means without being their noun: "families".
pub(super) fn plural_kinds(word: &str) -> Option<&'static [Kind]> {
    LEXICON.plurals.get(word).map(Vec::as_slice)
}

/// The kinds that a word means only where it is asked for, or where the words around it say so.
pub(super) fn asked_kinds(word: &str) -> Option<&'static [Kind]> {
    LEXICON.asked_plurals.get(word).map(Vec::as_slice)
}

/// The types of nodes to which a word, in the singular or plural, limits a query.
pub(super) fn node_types(word: &str) -> Option<&'static [NodeType]> {
    let in_ies = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let forms = [
        Some(word),
        word.strip_suffix('s'),
        word.strip_suffix("es"),
        in_ies.as_deref(),
    ];
    let mut found = forms
        .into_iter()
        .flatten()
        .filter_map(|form| LEXICON.types.get(form));
    found.next().map(Vec::as_slice)
}

/// The country of an adjective that does not begin with the country's name.
pub(super) fn country_of(demonym: &str) -> Option<&'static str> {
    LEXICON.countries.get(demonym).copied()
}

/// The number of a month.
pub(in crate::domain) fn month_of(word: &str) -> Option<u32> {
    LEXICON.months.get(word).copied()
}

/// The number of a season's first month.
pub(super) fn season_of(word: &str) -> Option<u32> {
    LEXICON.seasons.get(word).copied()
}

/// The number of a quarter or half.
pub(super) fn part_of(ordinal: &str) -> Option<u32> {
    LEXICON.parts.get(ordinal).copied()
}

/// What the phrases that begin with the first of these words tell, each with the phrase.
pub(super) fn wordings<'w>(words: &[&'w str]) -> impl Iterator<Item = Wording> + use<'w> {
    let lengths = 1..=MAX_PHRASE.min(words.len());
    let phrases: Vec<String> = lengths
        .filter_map(|length| Some(words.get(..length)?.join(" ")))
        .collect();
    let found = phrases
        .into_iter()
        .filter_map(|phrase| LEXICON.phrases.get(phrase.as_str()));
    found.flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_words_and_every_section_is_read() {
        let sections_of = |text: &'static str| sections(text).into_iter().map(|(name, _)| name);
        let mut found: Vec<&str> = sections_of(WORDS).collect();
        let mut lists: Vec<&str> = List::ALL.iter().map(|(name, _)| *name).collect();
        found.sort_unstable();
        lists.sort_unstable();
        assert_eq!(found, lists);
        for name in sections_of(PHRASES) {
            assert!(Wording::named(name).is_some(), "[{name}]");
        }
        let months: Vec<u32> = (1..=12).collect();
        let mut known: Vec<u32> = LEXICON.months.values().copied().collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(known, months);
        for (name, words) in sections(NOUNS) {
            let kinds = name.trim_start_matches("plural ").trim_start_matches("asked ");
            let is_known = kinds_of(kinds).len() == kinds.split(' ').count();
            let is_type = name.strip_prefix("type ").is_some_and(|types| {
                let mut types = types.split(' ');
                types.all(|name| name.parse::<NodeType>().is_ok())
            });
            assert!(
                is_known || is_type || matches!(name, "mass" | "demonyms"),
                "[{name}]"
            );
            assert!(!words.is_empty(), "[{name}]");
        }
    }

    #[test]
    fn entries_are_in_lower_case_stand_once_in_a_list_and_are_no_longer_than_what_is_looked_for() {
        for (text, longest) in [(WORDS, 1), (NOUNS, MAX_NOUN), (PHRASES, MAX_PHRASE), (DATES, 1)] {
            for (name, entries) in sections(text) {
                let mut seen = std::collections::HashSet::new();
                for entry in entries {
                    assert!(seen.insert(entry), "[{name}] {entry} twice");
                    assert_eq!(entry, entry.to_lowercase(), "[{name}]");
                    let length = entry.split(' ').count();
                    assert!(name == "demonyms" || length <= longest, "[{name}] {entry}");
                }
            }
        }
    }

    #[test]
    fn verbs_have_their_forms() {
        for (word, form) in [
            ("uses", Form::Present),
            ("attacks", Form::PresentOrNoun),
            ("tries", Form::Present),
            ("launches", Form::PresentOrNoun),
            ("stole", Form::Past),
            ("deployed", Form::PastOrParticiple),
            ("was", Form::Helping),
        ] {
            assert_eq!(verb_form(word), Some(form), "{word}");
        }
        assert_eq!(verb_form("speed"), None);
    }
}
