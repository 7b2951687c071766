//! Verbs of reports, and what their forms can be in a sentence.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lexicon::has;

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

const HELPING: &str = "has have had is are was were can could may might must will would should does do did cannot can't \
    couldn't didn't doesn't don't hadn't hasn't haven't isn't aren't wasn't weren't won't wouldn't shouldn't";
const PAST: &str = "became began broke came chose did drew drove fell flew forgot gave grew hid knew ran rose saw spoke stole \
    swam threw took tore went withdrew woke wore wrote overtook undertook";
/// Verbs without an object: their participle describes nothing, so that before a preposition they are the past.
const WITHOUT_OBJECT: &str = "acted appeared arrived attempted beaconed began communicated continued disappeared emerged \
    entered escaped evolved failed happened listened logged looked managed masqueraded migrated moved occurred \
    persisted pivoted posed pretended proceeded progressed propagated reacted relied remained resorted responded returned \
    succeeded switched tried vanished waited worked";
/// Verbs that need no object in the present either.
const PLAIN_WITHOUT_OBJECT: &str = "act appear arrive beacon begin communicate continue depend emerge escape evolve exist happen \
    listen masquerade migrate move occur persist pivot propagate rely remain respond spread succeed work";
/// Irregular forms that are both past and participle.
const PAST_OR_PARTICIPLE: &str = "bought brought built caught cut dealt dug fed felt fought found got held hit kept laid led \
    left lost made met overheard paid put read rebuilt resold said sent set shot shut slept sold sought spent split spread \
    stood struck stuck swept taught thought told understood used withheld won wound";
/// Participles by which a noun is only described: "groups linked to …", "malware named …".
const DESCRIBING: &str = "affiliated aligned associated attributed backed based called codenamed dubbed known labeled \
    labelled linked located named nicknamed related said sponsored suspected tied titled tracked";
/// Participles by which others know of a noun: "groups observed using …".
const PERCEIVED: &str = "believed caught confirmed detected documented found identified mentioned noted observed recorded reported \
    seen spotted thought";
/// Verbs by which reports state what somebody does.
const VERBS: &str = "acquire add advertise affect allow alter appear archive arrive attempt attract attribute authenticate begin believe \
    belong blackmail brute-force bypass clear close collect come communicate compare compile compress conceal conduct \
    configure connect consider consist construct contain continue convert corrupt create cripple decode decrypt delete \
    deliver demand deny depend deploy destroy determine develop disable discover disguise disrupt distribute duplicate \
    eavesdrop elevate embed employ enable encode encrypt enter enumerate erase escalate establish evade execute exfiltrate \
    exist expand extort extract fetch gain gather generate get give harvest have hide hijack hunt identify impersonate \
    implement include indicate infect infiltrate inject insert inspect intercept interrupt introduce invoke iterate keep \
    kill learn leave leverage lob maintain make manipulate masquerade mimic modify negotiate obfuscate obscure obtain open \
    operate overwrite parse perform persist pivot possess prepare prevent propagate provide publish push receive recover \
    redirect register rely remain remove rename replace replay reprogram require resolve respond retrieve reveal rewrite \
    rotate sabotage say scrape seek seem select sell send serve show shut siphon spawn speak spoof spread spy stay steal \
    strip subvert succeed suggest suspend take tamper tend terminate traverse try undermine unpack utilise utilize \
    validate verify weaponise weaponize wipe wreck write";
/// Those of whose forms in "s" many are nouns: "attacks", "controls".
const NOUNS_TOO: &str = "abuse access aim attack backdoor beacon block breach call capture change check claim clone command compromise contact \
    control copy crash damage deface display download drop dump exploit flood focus force hack help implant increase \
    install launch leak limit link list load lock log look lure map mark monitor move name need note order pack phish \
    place plan pose probe process program query ransom reach reboot record release report request reset restart return \
    reverse run save scan search set share sniff sponsor stage start state stop store strike supply support surface switch \
    target test threaten trace track transfer trick trigger tunnel turn update upload use view visit wait want watch work";

/// The forms of the listed verbs.
static FORMS: LazyLock<HashMap<String, Form>> = LazyLock::new(|| {
    let mut forms = HashMap::new();
    for verb in VERBS.split_whitespace() {
        forms.insert(verb.to_owned(), Form::Plain);
        forms.insert(in_s(verb), Form::Present);
    }
    for verb in NOUNS_TOO.split_whitespace() {
        forms.insert(verb.to_owned(), Form::Plain);
        forms.insert(in_s(verb), Form::PresentOrNoun);
    }
    // Nobody writes "the uses" in a report.
    forms.insert("uses".to_owned(), Form::Present);
    let mut add = |words: &str, form: Form| {
        let words = words.split_whitespace().map(|word| (word.to_owned(), form));
        forms.extend(words);
    };
    add(PAST_OR_PARTICIPLE, Form::PastOrParticiple);
    add(PAST, Form::Past);
    add(WITHOUT_OBJECT, Form::Past);
    add(HELPING, Form::Helping);
    forms
});

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
pub(super) fn form(word: &str) -> Option<Form> {
    if let Some(form) = FORMS.get(word) {
        return Some(*form);
    }
    let is_past = word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed") && !word.contains('-');
    is_past.then_some(Form::PastOrParticiple)
}

/// Whether a word is a form of a verb.
pub(in crate::domain::question) fn is_verb(word: &str) -> bool {
    form(word).is_some()
}

/// Whether a verb in the present needs no object, as "spread" in "worms spread through the network".
pub(super) fn needs_no_object(word: &str) -> bool {
    has(PLAIN_WITHOUT_OBJECT, word)
}

/// Whether a participle only describes the noun before it.
pub(super) fn describes(word: &str) -> bool {
    has(DESCRIBING, word)
}

/// Whether a participle says that others know of the noun before it.
pub(super) fn is_perceived(word: &str) -> bool {
    has(PERCEIVED, word)
}
