//! File names: a base name with a real-world extension.

use super::super::source::{Source, is_one_of};
use super::super::token::Token;
use super::super::word_lists::{FILE_EXTENSIONS, HOST_WORDS};
use crate::domain::kinds::EntityKind;

/// Product names that look like script files.
const PRODUCTS: &[&str] = &[
    "node", "vue", "react", "next", "nuxt", "express", "angular", "three", "d3", "ember", "backbone",
    "chart", "moment", "socket", "nest", "deno", "p5", "discord", "electron", "require", "type",
];

/// Top-level domains that are primarily file extensions.
const FILE_TLDS: &[&str] = &[
    "zip", "sh", "py", "rs", "md", "so", "mov", "cab", "inc", "dot", "map", "pub", "java", "ps", "bin", "tf",
    "vi", "pm", "mm", "mk", "docs", "prof", "ini", "cpp", "csh", "bat", "ax", "cmd", "hiv",
];
/// Services under those top-level domains that do occur in reports.
const KNOWN_HOSTS: &[&str] = &[
    "transfer.sh",
    "bashupload.sh",
    "docs.rs",
    "notion.so",
    "starship.rs",
    "raw.sh",
    "get.sh",
    "temp.sh",
    "oshi.at",
];

/// The confidence that this is a file name; `None` if it is not.
pub(in crate::domain::extraction) fn confidence(
    source: &Source<'_>,
    part: &Token<'_>,
    extension: &str,
    domain: bool,
) -> Option<f32> {
    let base = part
        .text
        .get(..part.text.len().checked_sub(extension.len() + 1)?)?;
    if base.is_empty() || !base.chars().all(is_base_char) {
        return None;
    }
    let application = extension == "app" && base.starts_with(|c: char| c.is_uppercase());
    // "Torvo s.r.o.", "d.o.o.": a company's form, not an object file.
    let labels = || part.text.split('.');
    let abbreviation =
        labels().all(|label| label.chars().count() == 1) && (labels().count() > 2 || extension == "o");
    if abbreviation {
        return None;
    }
    let file = (is_known(extension) || is_library(base)) && !domain
        || is_file_first(source, part, extension)
        || application;
    if !file || is_product(base, extension) || is_call(source, part, base, extension) {
        return None;
    }
    Some(if domain { 0.75 } else { 0.9 })
}

/// Whether a top-level domain is primarily a file extension, and nothing indicates a host.
fn is_file_first(source: &Source<'_>, part: &Token<'_>, extension: &str) -> bool {
    if !FILE_TLDS.contains(&extension) || is_one_of(part.text, KNOWN_HOSTS) {
        return false;
    }
    let labels = part.text.split('.').count();
    // `www.gov.md` has more labels than a file has extensions.
    let deep = labels > 2
        && (part.text.starts_with("www.")
            || !part.text.contains(".tar.") && is_public_second_level(part.text));
    let named = source
        .previous_words(part.start)
        .take(2)
        .any(|word| is_one_of(word, &HOST_WORDS))
        || source
            .after(part.end(), 24)
            .split_whitespace()
            .next()
            .is_some_and(|word| is_one_of(word.trim_end_matches(['.', ',']), &HOST_WORDS));
    !(deep || named)
}

fn is_public_second_level(text: &str) -> bool {
    psl::suffix_str(&text.to_lowercase()).is_some_and(|suffix| suffix.contains('.'))
}

/// Whether this is a known file extension (in lower case).
pub(in crate::domain::extraction) fn is_known(extension: &str) -> bool {
    FILE_EXTENSIONS.contains(&extension)
}

/// Whether the name is a versioned library, such as `libcurl.so.4.6.0`.
fn is_library(base: &str) -> bool {
    base.starts_with("lib") && base.contains(".so.") || base.ends_with(".so")
}

fn is_base_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '+' | '~' | '$' | '%' | '@')
}

fn is_product(base: &str, extension: &str) -> bool {
    let capital = base.chars().any(char::is_uppercase);
    let known = PRODUCTS.iter().any(|product| product.eq_ignore_ascii_case(base));
    extension == "js" && (capital || base == "node") && known
}

/// Whether this is member access rather than a file: `console.log(`, `self.config`, `args.url`.
fn is_call(source: &Source<'_>, part: &Token<'_>, base: &str, extension: &str) -> bool {
    let called = source.after(part.end(), 1).starts_with('(');
    let member = matches!(
        base,
        "console" | "self" | "this" | "window" | "args" | "request" | "req" | "logger" | "app" | "obj"
    ) && matches!(
        extension,
        "log"
            | "url"
            | "config"
            | "json"
            | "db"
            | "key"
            | "service"
            | "class"
            | "one"
            | "job"
            | "lock"
            | "sql"
            | "conf"
    );
    called || member
}

/// Records the file name, including the words before it if the whole name is quoted.
pub(in crate::domain::extraction) fn push(source: &mut Source<'_>, part: &Token<'_>, confidence: f32) {
    let start = quoted_start(source, part).unwrap_or(part.start);
    let span = start..part.end();
    let value = source.text.get(span.clone()).unwrap_or(part.text).to_owned();
    source.push(EntityKind::FileName, value, span, "file-name", confidence);
}

/// The start of a quoted name with spaces: `"Invoice May 2021.docx"`.
fn quoted_start(source: &Source<'_>, part: &Token<'_>) -> Option<usize> {
    let closing = source.after(part.end(), 3).chars().next()?;
    let opening = match closing {
        '"' | '\'' => closing,
        '”' => '“',
        '’' => '‘',
        _ => return None,
    };
    let window = source.before(part.start, 80);
    let at = window.rfind(opening)?;
    let inner = window.get(at + opening.len_utf8()..)?;
    let plain = !inner.is_empty()
        && inner.starts_with(|c: char| c.is_alphanumeric())
        && inner
            .chars()
            .all(|c| is_base_char(c) || matches!(c, ' ' | '(' | ')' | '[' | ']' | '&'));
    // A quote directly after a letter is a closing quote.
    let opens = window
        .get(..at)?
        .chars()
        .next_back()
        .is_none_or(|c| !c.is_alphanumeric());
    // A quoted command line may end with a file name too.
    let command = inner
        .split(' ')
        .any(|word| word.starts_with('-') || word.ends_with(".exe"));
    (plain && opens && !command && inner.split(' ').count() <= 10).then(|| part.start - inner.len())
}
