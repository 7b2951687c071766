//! The words for the levels of TLP in the languages that reports are written in, and the words around them.
//!
//! All are compared in lower case without accents.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::words::{Word, Words};
use crate::domain::tlp::Tlp;

const RED: &str = "red rot rote roter rotes rouge rojo roja rosso rossa vermelho vermelha rood rod rød rodt rødt \
    rauður punainen czerwony czerwona czerwone cervena cerveny cervene crveno crvena crven rdeca rosu piros voros \
    kirmizi kırmızı merah đo κοκκινο красныи красная красное червонии червона червен червено 🔴 🟥";
const AMBER: &str = "amber ambar ambra ambre bernstein bernsteinfarben bursztyn bursztynowy bursztynowa jantarova \
    kehribar yellow gelb gelbe gelber jaune amarillo amarilla amarelo giallo gialla geel gul zołty zołta żolty \
    zluta zlata sari sarı keltainen κιτρινο желтыи желтая жовтии жълт orange oranje naranja laranja arancione \
    pomaranczowy oranzova oranssi turuncu янтарныи янтарная оранжевыи оранжевая бурштиновии помаранчевии \
    🟠 🟡 🟧 🟨";
const GREEN: &str = "green grun grune gruen vert verte verde groen gron grøn grønn gront vihrea zielony zielona \
    zielone zelena zeleny zeleno verzui yesil zold hijau xanh πρασινο зеленыи зеленая зеленое зелении зелена зелен \
    🟢 🟩";
const WHITE: &str = "white clear weiss weiß weiße blanc blanche blanco blanca bianco bianca branco branca wit vit \
    hvid hvit valkoinen biały biała biały bila bily alb beyaz feher putih λευκο белыи белая біла біли бял ⚪ ⬜";
const STRICT_AMBER: &str = "amberstrict amberpk amberplusstrict";
/// What makes AMBER stricter.
const STRICT: &str = "strict pk strikt stricte strikte estricto estrito stretto rigoroso streng strengt";

/// Scripts that are written without blanks.
const UNSPACED: [(&str, Tlp); 41] = [
    ("红", Tlp::Red),
    ("紅", Tlp::Red),
    ("赤", Tlp::Red),
    ("レッド", Tlp::Red),
    ("빨강", Tlp::Red),
    ("빨간", Tlp::Red),
    ("적색", Tlp::Red),
    ("레드", Tlp::Red),
    ("احمر", Tlp::Red),
    ("أحمر", Tlp::Red),
    ("قرمز", Tlp::Red),
    ("אדום", Tlp::Red),
    ("แดง", Tlp::Red),
    ("लल", Tlp::Red),
    ("琥珀", Tlp::Amber),
    ("黄", Tlp::Amber),
    ("橙", Tlp::Amber),
    ("アンバー", Tlp::Amber),
    ("노랑", Tlp::Amber),
    ("노란", Tlp::Amber),
    ("황색", Tlp::Amber),
    ("주황", Tlp::Amber),
    ("앰버", Tlp::Amber),
    ("برتقالي", Tlp::Amber),
    ("كهرماني", Tlp::Amber),
    ("اصفر", Tlp::Amber),
    ("أصفر", Tlp::Amber),
    ("כתום", Tlp::Amber),
    ("צהוב", Tlp::Amber),
    ("绿", Tlp::Green),
    ("緑", Tlp::Green),
    ("綠", Tlp::Green),
    ("グリーン", Tlp::Green),
    ("초록", Tlp::Green),
    ("녹색", Tlp::Green),
    ("اخضر", Tlp::Green),
    ("أخضر", Tlp::Green),
    ("ירוק", Tlp::Green),
    ("白", Tlp::White),
    ("ホワイト", Tlp::White),
    ("흰색", Tlp::White),
];
/// Signs of "not" in these scripts.
const UNSPACED_NOT: [char; 6] = ['不', '非', '没', '未', '無', '无'];
/// Levels from which on a list explains TLP.
pub(super) const LIST: usize = 3;
/// How far into such a run of letters a level is looked for, in characters.
const UNSPACED_REACH: usize = 10;

/// Words that may stand between `TLP` and its level.
const KEYS: &str = "level levels lvl class classification classified marking markings mark marked designation \
    designations designated designator color colors colour colours code label labeled labelled tag rating status \
    version ver v value name id type definition content restriction sharing handling caveat category dissemination \
    distribution text string protocol currently now set raised upgraded lowered downgraded changed kept remains was \
    has been is to as at stufe einstufung eingestuft kennzeichnung farbe ist als niveau couleur classement est nivel \
    clasificacion es livello colore classificazione e cor classificacao niva poziom kolor jest uroven seviye renk \
    kleur is уровень уровен цвет маркировка";
/// Those of them that make it a sentence.
const VERBS: &str =
    "is ist est es e jest remains set raised upgraded lowered downgraded changed kept as to at";
/// Words that join two levels.
const JOINTS: &str =
    "and or to vs through und oder bis et ou y o e och eller og en of i lub a ve veya и или та або 和 或 と";
/// Words that take a marking back.
const NOT: &str = "not non no never neither nor without cannot isn isnt wasn aren nicht kein keine nie pas ne sans ni \
    sin nunca nao sem niet geen inte ikke non senza не нет";
/// Words that may stand between "not" and the marking.
const NOT_OF: &str = "marked labeled labelled classified rated tagged as yet a an under considered treated";
/// Words that make something else of a colour.
const COMPOUNDS: &str = "team teams teaming teamer teamers hat hats cross tape flag flags herring herrings line lines \
    canary october carpet apollo echo delta heard";
/// The same for the levels below AMBER, which need a clear form.
const LOWER_COMPOUNDS: &str = "light lights energy house lambert peace paper papers list lists listed listing box \
    boxes space collar text texts check cut evidence sign signs that enough understanding picture from why how path \
    way channel sky skies";
/// Words that say who may read what has a level.
const EXPLAINING: &str = "disclosure disclosed disclose share shared sharing spread distribute distributed distribution \
    disseminate dissemination circulated release released recipient recipients audience participants restricted \
    restriction restrictions limited limit unlimited public publicly community organization organisation organizations \
    organisations everyone anyone world weitergabe weitergegeben offengelegt offentlich offentlichkeit beschrankt \
    begrenzt unbegrenzt eingeschrankt empfanger teilnehmer gemeinschaft organisationen partage partager diffusion \
    divulgation public publique destinataires restreinte limitee communaute compartir difusion divulgacion publico \
    destinatarios limitada restringida comunidad organizacion раскрытие распространение получатели";

/// What words of no level mean.
#[derive(Debug, Clone, Copy)]
enum Class {
    Key,
    Verb,
    Joint,
    Not,
    OfNot,
    Compound,
    LowerCompound,
    Strict,
    Explaining,
}

fn is_among(class: Class, key: &str) -> bool {
    static CLASSES: LazyLock<HashMap<&str, u16>> = LazyLock::new(|| {
        let lists = [
            (KEYS, Class::Key),
            (VERBS, Class::Verb),
            (JOINTS, Class::Joint),
            (NOT, Class::Not),
            (NOT_OF, Class::OfNot),
            (COMPOUNDS, Class::Compound),
            (LOWER_COMPOUNDS, Class::LowerCompound),
            (STRICT, Class::Strict),
            (EXPLAINING, Class::Explaining),
        ];
        let mut classes = HashMap::new();
        for (list, class) in lists {
            for word in list.split_ascii_whitespace() {
                *classes.entry(word).or_insert(0) |= 1 << class as u8;
            }
        }
        classes
    });
    CLASSES
        .get(key)
        .is_some_and(|classes| classes & (1 << class as u8) != 0)
}

pub(super) fn is_key(key: &str) -> bool {
    is_among(Class::Key, key)
}

pub(super) fn is_verb(key: &str) -> bool {
    is_among(Class::Verb, key)
}

pub(super) fn is_joint(key: &str) -> bool {
    is_among(Class::Joint, key)
}

pub(super) fn is_not(key: &str) -> bool {
    is_among(Class::Not, key)
}

pub(super) fn is_explaining(key: &str) -> bool {
    is_among(Class::Explaining, key)
}

pub(super) fn may_follow_not(key: &str) -> bool {
    is_among(Class::OfNot, key)
}

/// Whether a level and this word after it mean something else, as in "red team".
pub(super) fn makes_compound(level: Tlp, key: &str) -> bool {
    is_among(Class::Compound, key) || level < Tlp::Amber && is_among(Class::LowerCompound, key)
}

/// The version of TLP: `2`, `v2`, `0`.
pub(super) fn is_version(key: &str) -> bool {
    let digits = key.strip_prefix('v').unwrap_or(key);
    (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

const LEVELS: [(&str, Tlp); 5] = [
    (STRICT_AMBER, Tlp::AmberPk),
    (RED, Tlp::Red),
    (AMBER, Tlp::Amber),
    (GREEN, Tlp::Green),
    (WHITE, Tlp::White),
];

fn names() -> impl Iterator<Item = (&'static str, Tlp)> {
    let of =
        |(list, level): (&'static str, Tlp)| list.split_ascii_whitespace().map(move |name| (name, level));
    LEVELS.into_iter().flat_map(of)
}

/// The level that a single word names.
pub(super) fn named(key: &str) -> Option<Tlp> {
    static NAMES: LazyLock<HashMap<&str, Tlp>> = LazyLock::new(|| names().collect());
    NAMES.get(key).copied()
}

/// Whether the name of a level may begin with these letters.
fn begins_name(key: &str) -> bool {
    static BEGINNINGS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let of = |name: &'static str| {
            name.char_indices()
                .filter_map(move |(at, c)| name.get(..at + c.len_utf8()))
        };
        names().flat_map(|(name, _)| of(name)).collect()
    });
    BEGINNINGS.contains(key)
}

/// The level that a word names, with what follows it: `AMBER+STRICT`, `R E D`. Moves `words` behind it.
pub(super) fn level_at(word: &Word<'_>, words: &mut Words<'_>) -> Option<Tlp> {
    let level = of_word(word).or_else(|| spelled(word, words))?;
    Some(with_strict(level, words))
}

/// A level with the `+STRICT` that may follow it; then moves `words` behind that.
pub(super) fn with_strict(level: Tlp, words: &mut Words<'_>) -> Tlp {
    if level == Tlp::Amber && takes_strict(words) {
        Tlp::AmberPk
    } else {
        level
    }
}

fn of_word(word: &Word<'_>) -> Option<Tlp> {
    let found = named(&word.key());
    if found.is_some() || word.text.is_ascii() {
        return found;
    }
    named(&word.latin_key()).or_else(|| unspaced(word.text))
}

fn unspaced(text: &str) -> Option<Tlp> {
    let end = text
        .char_indices()
        .nth(UNSPACED_REACH)
        .map_or(text.len(), |(at, _)| at);
    let near = text.get(..end)?;
    if near.contains(UNSPACED_NOT) {
        return None;
    }
    let found = UNSPACED.iter().filter(|(name, _)| near.contains(name));
    let mut levels: Vec<Tlp> = found.map(|(_, level)| *level).collect();
    levels.sort();
    levels.dedup();
    levels.pop().filter(|_| levels.len() + 1 < LIST)
}

/// The level of letters with blanks in between.
fn spelled(word: &Word<'_>, words: &mut Words<'_>) -> Option<Tlp> {
    let mut ahead = words.clone();
    let mut key = single(word)?;
    while let Some(letter) = ahead.peek().filter(Word::follows_blank).as_ref().and_then(single) {
        key.push_str(&letter);
        ahead.next();
        if let Some(level) = named(&key) {
            *words = ahead;
            return Some(level);
        }
        if !begins_name(&key) {
            break;
        }
    }
    None
}

/// The key of a word of one letter.
pub(super) fn single(word: &Word<'_>) -> Option<String> {
    let mut chars = word.text.chars();
    let one = chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none();
    one.then(|| word.latin_key())
}

/// Whether `+STRICT` or the like follows; then moves behind it.
fn takes_strict(words: &mut Words<'_>) -> bool {
    let mut ahead = words.clone();
    let Some(mut next) = ahead.next() else {
        return false;
    };
    let mut joins = joins(next.gap);
    if joins && next.key() == "plus" {
        match ahead.next() {
            Some(after) => next = after,
            None => return false,
        }
    } else if next.follows_blank() {
        // "AMBER STRICT" is the marking; "TLP AMBER strict handling" is not.
        joins = !next.has_small_letters();
    }
    let strict = joins && is_among(Class::Strict, &next.key());
    if strict {
        *words = ahead;
    }
    strict
}

/// Whether a gap joins the two halves of AMBER+STRICT, layout aside.
fn joins(gap: &str) -> bool {
    let plain = |c: char| !matches!(c, '.' | ',' | ';' | '!' | '?' | '|');
    gap.chars().all(plain) && (gap.contains('+') || !gap.contains('\n'))
}

/// Whether a word and what follows it are `AMBER+STRICT`, which counts without `TLP`.
pub(super) fn is_strict_amber(word: &Word<'_>, words: &Words<'_>) -> bool {
    let follows = |next: Word<'_>| next.gap.contains('+') && joins(next.gap) && next.latin_key() == "strict";
    word.latin_key() == "amber" && words.peek().is_some_and(follows)
}

/// Levels of which each stands once, from the strictest down or up, as where TLP is explained.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    steps: Vec<Tlp>,
    is_broken: bool,
}

impl Ladder {
    /// Adds a level; whether it is the next step.
    pub(super) fn step(&mut self, level: Tlp) -> bool {
        let ranks = self.steps.iter().copied().chain([level]).map(rank);
        let ranks: Vec<u8> = ranks.collect();
        let is_next =
            (ranks.is_sorted() || ranks.is_sorted_by(|a, b| a >= b)) && !self.steps.contains(&level);
        self.is_broken |= !is_next;
        if is_next {
            self.steps.push(level);
        }
        is_next
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether a level is a kind of the last one.
    pub(super) fn stands_at(&self, level: Tlp) -> bool {
        self.steps.last().is_some_and(|last| rank(*last) == rank(level))
    }

    /// Whether it is unbroken and has every level.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_broken && are_all(&self.steps)
    }
}

/// AMBER+STRICT is a kind of AMBER and may stand on either side of it.
pub(super) fn rank(level: Tlp) -> u8 {
    match level {
        Tlp::White => 0,
        Tlp::Green => 1,
        Tlp::Amber | Tlp::AmberPk => 2,
        Tlp::Red => 3,
    }
}

/// Whether these are all levels of TLP.
pub(super) fn are_all(levels: &[Tlp]) -> bool {
    (0..4).all(|step| levels.iter().any(|level| rank(*level) == step))
}
