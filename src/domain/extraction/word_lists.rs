//! The word lists of the rules: a word or phrase per line, in `assets/extraction`.

use std::sync::LazyLock;

type WordList = LazyLock<Vec<&'static str>>;

/// The lines that are no comments.
fn words(text: &'static str) -> Vec<&'static str> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

macro_rules! word_lists {
    ($($(#[doc = $doc:literal])* $list:ident = $file:literal;)+) => {
        $($(#[doc = $doc])*
        pub(super) static $list: WordList =
            LazyLock::new(|| words(include_str!(concat!("../../../assets/extraction/", $file))));)+

        #[cfg(test)]
        const ALL: &[(&str, &WordList)] = &[$(($file, &$list)),+];
    };
}

word_lists! {
    /// Words of which one must be in the sentence for an introduced name to be a threat.
    ABOUT_THREATS = "about_threats.txt";
    /// Words between a name and the verb that gives it another one: "APT28 is also known as".
    ALIAS_FILLERS = "alias_fillers.txt";
    /// Capitalised words before a name that are no part of it.
    BEFORE_A_NAME = "before_a_name.txt";
    /// Ordinary English words.
    COMMON_WORDS = "common_words.txt";
    /// Extensions that are not top-level domains.
    FILE_EXTENSIONS = "file_extensions.txt";
    /// Nouns of people, beside which the name of a group or of a ransomware stands.
    GROUP_NOUNS = "group_nouns.txt";
    /// Words that tell a group of attackers in its definition.
    HOSTILE_WORDS = "hostile_words.txt";
    /// Words that make the following (or preceding) name a domain.
    HOST_WORDS = "host_words.txt";
    /// Words before a name that keep it from being the subject of the following verb.
    NOT_A_SUBJECT = "not_a_subject.txt";
    /// Words between a name and its noun: "the Zeus banking trojan".
    NOUN_MODIFIERS = "noun_modifiers.txt";
    /// Words with which no name of a threat begins.
    ORDINARY_LEADS = "ordinary_leads.txt";
    /// Nouns of programs, documents and their parts, which name no threat.
    ORDINARY_NOUNS = "ordinary_nouns.txt";
    /// Words before a hexadecimal value that is not a file hash.
    OTHER_WORDS = "other_words.txt";
    /// Words with capitals inside that stand before the noun of a threat and name none.
    PRODUCT_WORDS = "product_words.txt";
    /// Nouns of programs that are not always malicious.
    PROGRAM_NOUNS = "program_nouns.txt";
    /// Words behind a threat's noun, or in the definition of a group, that tell of those who study threats.
    RESEARCH_WORDS = "research_words.txt";
    /// Words before a 40-digit value that is a revision.
    REVISION_WORDS = "revision_words.txt";
    /// Doubts that hold for all that a subject does, and those that stand beside a whole sentence.
    SUBJECT_DOUBTS = "subject_doubts.txt";
    /// Nouns that make the word beside them a name.
    THREAT_NOUNS = "threat_nouns.txt";
    /// Nouns of programs, beside which the name of a tool stands.
    TOOL_NOUNS = "tool_nouns.txt";
    /// First components of absolute Unix paths.
    UNIX_ROOTS = "unix_roots.txt";
    /// Makers, platforms, languages and countries.
    VENDORS = "vendors.txt";
    /// Words between a noun and the verb: "malware family that researchers have previously dubbed".
    VERB_FILLERS = "verb_fillers.txt";
    /// What may follow a version but not an address.
    VERSION_TAILS = "version_tails.txt";
    /// Words directly before a version or section number.
    VERSION_WORDS = "version_words.txt";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_list_has_words_and_each_once() {
        for (file, list) in ALL {
            let different: HashSet<&str> = list.iter().copied().collect();
            assert!(!list.is_empty() && different.len() == list.len(), "{file}");
        }
    }
}
