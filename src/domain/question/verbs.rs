//! Questions that ask by a verb instead of a noun: how something is mitigated, what it uses, what it can do.

use super::lexicon::List;
use super::words::Word;

/// Whether the words ask how something is mitigated, or what a mitigation protects from.
pub(super) fn is_about_protection(words: &[Word], is_name: impl Fn(usize) -> bool) -> bool {
    // "What can we do about …?"
    let is_ours = words
        .iter()
        .any(|word| matches!(word.text.as_str(), "we" | "i" | "you" | "be"));
    let words = words.iter().enumerate().filter(|(at, _)| !is_name(*at));
    let (mut reduces, mut helps, mut acts) = (false, false, false);
    let last = words.clone().last();
    let ends_with_help = last.is_some_and(|(_, word)| matches!(word.text.as_str(), "help" | "helps"));
    words.into_iter().any(|(_, word)| {
        let risk = reduces && word.text.starts_with("risk");
        reduces |= word.text.starts_with("reduc") || word.text.starts_with("lower");
        let against = ((helps || ends_with_help) && word.text == "against")
            || (acts && is_ours && matches!(word.text.as_str(), "against" | "about"));
        acts = matches!(word.text.as_str(), "do" | "done");
        helps = matches!(word.text.as_str(), "help" | "helps" | "works" | "effective");
        risk || against || is_protecting(&word.text)
    })
}

/// Whether a word is a verb of protection.
pub(super) fn is_protecting(word: &str) -> bool {
    List::Protecting.has(word)
}

/// Whether the words ask what something uses or does.
pub(super) fn is_about_use(words: &[Word]) -> bool {
    let asks = words
        .first()
        .is_some_and(|word| matches!(word.text.as_str(), "what" | "how"));
    asks && words.iter().any(|word| word.is(List::Employing))
}

/// Whether the words ask what something is able to do: "What can … do?", "everything … is capable of", "How does … work in
/// practice?". After a mark, too: "Through its malware, what can … do?".
pub(super) fn is_about_ability(words: &[Word]) -> bool {
    let mut parts = words.iter().enumerate().filter(|(_, word)| word.ends_part());
    asks_ability(words) || parts.any(|(end, _)| words.get(end + 1..).is_some_and(asks_ability))
}

fn asks_ability(words: &[Word]) -> bool {
    let texts = words.iter().map(|word| word.text.as_str());
    let texts: Vec<&str> = texts.skip_while(|word| List::Telling.has(word)).collect();
    let Some((asking, rest)) = texts
        .split_first()
        .filter(|(first, _)| List::AskingAbility.has(first))
    else {
        return false;
    };
    match rest {
        [.., last] if List::Doing.has(last) => true,
        [.., "capable", "of"] | [.., "used", "for"] => true,
        // "What does the malware of … use?", but not "What malware does … use?"
        ["do" | "does" | "did" | "can", .., "use" | "employ"] => true,
        // "What does … do with its malware?"
        [
            ..,
            "do" | "does",
            "with" | "through" | "using" | "in" | "during",
            "its" | "their",
            _,
        ] => true,
        // "What does the malware of … do once it is installed?"
        [
            "do" | "does" | "did" | "can" | "could" | "will" | "would",
            subject,
            doing @ ..,
        ] if !matches!(*subject, "we" | "i" | "you") && does_when(doing) => true,
        // "What was done in the campaigns of …?"
        ["is" | "was" | "were", "done", next, ..] if List::Circumstances.has(next) => true,
        // "How does the malware of … work in practice?"
        ["many" | "much", ..] => false,
        _ => {
            let works = |word: &&str| List::Doing.has(word) && !matches!(*word, "do" | "does" | "doing");
            *asking == "how" && rest.iter().skip(1).any(works)
        }
    }
}

/// Whether "do" stands before a word that says when, where or by what means.
fn does_when(words: &[&str]) -> bool {
    words
        .windows(2)
        .any(|pair| matches!(pair, ["do", next] if List::Circumstances.has(next)))
}

/// Whether the words ask for ways rather than for things of a kind: "how can we …", "what should be done …", "… and how to
/// prevent it", "what would stop …", "ways to mitigate …".
pub(super) fn asks_for_method(words: &[Word]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let opens =
        |at: usize| at == 0 || word(at - 1) == "and" || words.get(at - 1).is_some_and(Word::ends_part);
    let asks_how = |at: usize| word(at) == "how" && (opens(at) || at + 1 == words.len());
    let asks_what = |at: usize| {
        let modal = matches!(
            word(at + 1),
            "can" | "could" | "may" | "might" | "must" | "should" | "will" | "would"
        );
        let perfect = modal && word(at + 2) == "have";
        let verb = word(at + 1 + usize::from(modal) + usize::from(perfect));
        word(at) == "what" && (is_protecting(verb) || verb == "helps")
    };
    let is_way = |at: usize| {
        matches!(word(at), "way" | "ways" | "steps" | "options")
            && matches!(word(at + 1), "to" | "of" | "for")
            && is_protecting(word(at + 2))
    };
    let protects = is_protecting(word(0)) && word(0).ends_with("ing");
    let does = matches!(word(1), "can" | "could" | "should" | "to" | "must" | "helps");
    protects
        || (word(0) == "what" && does)
        || (0..words.len()).any(|at| asks_how(at) || asks_what(at) || is_way(at))
}
