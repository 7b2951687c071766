//! Words that are no code words: the vocabulary of the built-in model, and the usual words of reports.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::analyzer::tokenize;
use super::fnv1a;
use crate::domain::question::kind_words;
use crate::search::vectors::embed::TOKENIZER;

/// Words of reports that the model knows only in pieces.
const REPORT_WORDS: &str = "\
    malware ransomware spyware adware scareware wiper dropper downloader infostealer stealer keylogger backdoor \
    trojan rootkit bootkit botnet cryptominer webshell shellcode payload beacon implant exploit zeroday phishing \
    spearphishing smishing vishing spoofing sniffing pharming typosquatting exfiltrate exfiltration obfuscate \
    obfuscation deobfuscate sandbox honeypot blockchain cryptocurrency crypto wallet darknet firewall antivirus \
    endpoint login username plaintext cleartext ciphertext encrypt decrypt encryption decryption tunneling proxy \
    hacktivist cyberattack cybercrime cybercriminal cyberespionage cyber attacker adversary hacker extortion \
    defacement timestomping hijacking scripting toolkit toolset framework middleware firmware hypervisor \
    hostname subdomain metadata registry timestamp mitigation reconnaissance persistence escalation \
    enumeration deserialization overflow misconfiguration unpatched ddos whitelisting blacklisting";

/// Common words of German, Dutch, French, Spanish, Portuguese, Italian, Polish and Russian that are rare in English texts.
const FOREIGN_WORDS: &str = "\
    der das und ist ein eine einen einem einer auf aus bei dem vom zum zur wie wer nicht sich auch wurde wurden haben gegen \
    über für nach durch welche welcher welches het een voor niet naar tegen zijn wordt werd les du une aux et dans pour avec \
    qui quel quelle quels contre ont el los las del por para como qué su sus fue contra una unos desde uma nos pelo pela foi \
    ao não il gli della delle che sono hanno contro nella nie się jest przez oraz przeciwko \
    и в на не что по для от из как или кто какие против";

#[derive(Deserialize)]
struct TokenizerFile {
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct TokenizerModel {
    vocab: HashMap<String, IgnoredAny>,
}

/// Hashes of the stems, sorted: a tenth of the words' memory.
static STEMS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let words = serde_json::from_slice(TOKENIZER)
        .map_or_else(|_| HashMap::new(), |file: TokenizerFile| file.model.vocab);
    // "##" marks the pieces inside words.
    let whole = words.keys().filter(|word| !word.starts_with("##"));
    let stems = whole.map(String::as_str).chain(REPORT_WORDS.split_whitespace());
    let stems = stems.filter_map(|word| tokenize(word).into_iter().next());
    let mut stems: Vec<u64> = stems.map(|stem| fnv1a(stem.bytes())).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
});

/// The tokens of the words that name kinds of things.
static KINDS: LazyLock<HashSet<String>> = LazyLock::new(|| kind_words().flat_map(tokenize).collect());

/// Whether a token of the analyser is that of a word that names a kind of things, as "vulnerability" does.
pub(in crate::search) fn names_kind(token: &str) -> bool {
    KINDS.contains(token)
}

/// Whether a word is one of the commonest of another language.
pub(in crate::search) fn is_foreign(word: &str) -> bool {
    let word = word.to_lowercase();
    FOREIGN_WORDS.split_whitespace().any(|foreign| foreign == word)
}

/// Whether a token of the analyser is that of an ordinary word. The first call takes some ten milliseconds.
pub(in crate::search) fn is_ordinary(token: &str) -> bool {
    STEMS.binary_search(&fnv1a(token.bytes())).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_language_are_told_from_code_words() {
        let is_ordinary = |word: &str| tokenize(word).iter().all(|token| is_ordinary(token));
        for word in [
            "leaves",
            "Hospitals",
            "phishing",
            "Ransomware",
            "encrypted",
            "downloaders",
        ] {
            assert!(is_ordinary(word), "{word}");
        }
        for word in ["zusuzuze", "svcqx", "HenyvagiServer", "вжухомет"] {
            assert!(!is_ordinary(word), "{word}");
        }
    }
}
