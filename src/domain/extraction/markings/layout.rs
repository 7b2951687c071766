//! What a text says without its layout: escapes, tags and invisible characters, which separate `TLP` from its level in
//! HTML, mails, wikis and JSON.
//!
//! Every look-ahead stops at the next character that could begin another one, so the time is linear.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::domain::cursor::Cursor;

/// Longest tag or link target that is left out, in bytes.
const TAG: usize = 2000;
/// Longest HTML entity, in bytes.
const ENTITY: usize = 32;
/// Longest forum code or footnote that is left out, in bytes.
const CODE: usize = 40;

/// The text with its escapes resolved, in compatibility form, without invisible characters and accents that stand alone.
pub(super) fn decode(text: &str) -> String {
    let once = decode_once(text);
    // A text that was escaped twice, such as `&amp;nbsp;`.
    if text.contains("&amp;") {
        decode_once(&once)
    } else {
        once
    }
}

fn decode_once(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut cursor = Cursor::new(text);
    while let Some(c) = cursor.peek() {
        let begins = matches!(c, '&' | '%' | '=' | '\\');
        let (meant, length) = begins
            .then(|| escape(cursor.rest()))
            .flatten()
            .unwrap_or((c, c.len_utf8()));
        push(&mut plain, meant);
        cursor.skip_to(cursor.at() + length);
    }
    plain
}

fn push(plain: &mut String, c: char) {
    match c {
        '\0'..='\x7f' => plain.push(c),
        // Soft hyphen, joiners, direction marks and selectors of variants.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => {}
        // Letters that look like a colon.
        '\u{2d0}' | '\u{2d1}' => plain.push(':'),
        other => plain.extend(std::iter::once(other).nfkc().filter(|c| !is_combining_mark(*c))),
    }
}

/// The character that an escape at the start of the text stands for, and the length of the escape in bytes.
fn escape(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'&' => entity(text),
        b'%' => Some((byte(bytes.get(1..3)?)?, 3)),
        b'=' => match bytes.get(1..)? {
            [b'\r', b'\n', ..] => Some(('\u{200b}', 3)),
            [b'\n', ..] => Some(('\u{200b}', 2)),
            [high, low, ..] if !high.is_ascii_lowercase() && !low.is_ascii_lowercase() => {
                Some((byte(&[*high, *low])?, 3))
            }
            _ => None,
        },
        b'\\' => backslash(text),
        _ => None,
    }
}

/// The character of two hexadecimal digits. Bytes of longer characters count as blanks.
fn byte(digits: &[u8]) -> Option<char> {
    let digits = std::str::from_utf8(digits).ok()?;
    let value = u8::from_str_radix(digits, 16).ok()?;
    Some(if value.is_ascii() { char::from(value) } else { ' ' })
}

fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(ENTITY).skip(1).position(|b| !is_of_entity(b))? + 1;
    if text.as_bytes().get(end) != Some(&b';') {
        return None;
    }
    let name = text.get(1..end).filter(|name| !name.is_empty())?;
    let meant = match name.strip_prefix('#') {
        Some(number) => {
            let hex = number.strip_prefix(['x', 'X']);
            let code = match hex {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)?
        }
        None => named(name),
    };
    Some((meant, end + 1))
}

fn is_of_entity(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'#'
}

/// The character of a named entity; a blank for those that do not matter here.
fn named(name: &str) -> char {
    match name {
        "colon" => ':',
        "equals" => '=',
        "plus" => '+',
        "lt" | "LT" => '<',
        "gt" | "GT" => '>',
        "amp" | "AMP" => '&',
        "quot" | "QUOT" => '"',
        "apos" => '\'',
        "lpar" => '(',
        "rpar" => ')',
        "lsqb" | "lbrack" => '[',
        "rsqb" | "rbrack" => ']',
        "ndash" | "mdash" | "dash" | "hyphen" | "minus" => '-',
        "lowbar" => '_',
        "sol" => '/',
        "period" => '.',
        "comma" => ',',
        "semi" => ';',
        "check" | "checkmark" => '✓',
        "squ" | "square" => '☐',
        "NewLine" => '\n',
        "shy" | "zwj" | "zwnj" | "lrm" | "rlm" | "ZeroWidthSpace" | "NoBreak" => '\u{200b}',
        _ => ' ',
    }
}

fn backslash(text: &str) -> Option<(char, usize)> {
    let letters = text
        .bytes()
        .skip(1)
        .take(CODE)
        .take_while(u8::is_ascii_alphabetic)
        .count();
    // A command of LaTeX, such as `\textbf{`.
    if letters > 1 && text.as_bytes().get(letters + 1) == Some(&b'{') {
        return Some((' ', letters + 2));
    }
    match text.as_bytes().get(1)? {
        b'n' | b'r' => Some(('\n', 2)),
        b't' => Some(('\t', 2)),
        b'x' => Some((byte(text.as_bytes().get(2..4)?)?, 4)),
        b'u' => {
            let code = u32::from_str_radix(text.get(2..6)?, 16).ok()?;
            Some((char::from_u32(code).unwrap_or(' '), 6))
        }
        _ => None,
    }
}

/// The text without tags, link targets, forum codes and footnotes. Blocks of HTML become lines, cells of its tables
/// begin with `|`, boxes of its forms are signs.
pub(super) fn strip(text: &str) -> String {
    strip_to(text, |_| "")
}

/// The same with a blank for each of these, and with the tags that name TLP, since a marking may end at a tag or stand in
/// one.
pub(super) fn strip_to_words(text: &str) -> String {
    strip_to(text, |part| {
        let mut parts = part.as_bytes().windows(3);
        let names_tlp = parts.any(|part| part.eq_ignore_ascii_case(b"tlp"));
        if names_tlp && part.starts_with('<') {
            part
        } else {
            " "
        }
    })
}

/// The text with what is left of each part that is no text.
fn strip_to(text: &str, left: impl Fn(&str) -> &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut cursor = Cursor::new(text);
    let mut in_row = false;
    while let Some(c) = cursor.peek() {
        let rest = cursor.rest();
        let mut sign = "";
        let length = match c {
            '<' => tag(rest).map(|(name, inner)| {
                in_row = (in_row || name == "tr") && !matches!(name, "/tr" | "/table");
                sign = meaning(name, inner);
                inner.len() + "<>".len()
            }),
            '[' => code(rest),
            '(' if plain.ends_with(']') => target(rest),
            _ => None,
        };
        if let Some(length) = length {
            plain.push_str(sign);
            // A box has the level of its label, and that counts only if it is ticked.
            if !sign.starts_with(' ') {
                plain.push_str(left(rest.get(..length).unwrap_or_default()));
            }
            cursor.skip_to(cursor.at() + length);
            continue;
        }
        // A row of an HTML table is one line, however it is written.
        plain.push(if in_row && is_line_end(c) { ' ' } else { c });
        cursor.bump();
    }
    plain
}

pub(super) fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Name and content of the HTML tag at the start of the text.
fn tag(text: &str) -> Option<(&str, &str)> {
    let inner = text.get(1..)?;
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
        return None;
    }
    let end = inner.bytes().take(TAG).position(|b| matches!(b, b'<' | b'>'))?;
    if inner.as_bytes().get(end) != Some(&b'>') {
        return None;
    }
    let inner = inner.get(..end)?;
    let name = inner.split(|c: char| c.is_whitespace()).next()?;
    Some((name, inner))
}

/// What a tag stands for in plain text.
fn meaning(name: &str, inner: &str) -> &'static str {
    match name.to_ascii_lowercase().trim_end_matches('/') {
        "input" | "option" => choice(inner),
        "td" | "th" => "|",
        "br" | "p" | "/p" | "div" | "/div" | "li" | "/li" | "tr" | "/tr" | "dt" | "dd" | "hr" | "table"
        | "/table" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "/h1" | "/h2" | "/h3" | "/h4" | "/h5"
        | "/h6" | "blockquote" | "/blockquote" | "pre" | "/pre" | "ul" | "/ul" => "\n",
        _ => "",
    }
}

/// The box that a tag of a form shows.
fn choice(tag: &str) -> &'static str {
    let tag = tag.to_ascii_lowercase();
    let is_box = tag.starts_with("option") || tag.contains("checkbox") || tag.contains("radio");
    let is_ticked = tag
        .split_ascii_whitespace()
        .filter_map(|attribute| attribute.split(['=', '/']).next())
        .any(|name| matches!(name, "checked" | "selected"));
    match (is_box, is_ticked) {
        (true, true) => " ☑ ",
        (true, false) => " ☐ ",
        (false, _) => "",
    }
}

/// The length of a forum code such as `[b]` or `[/color]`, or of a footnote.
fn code(text: &str) -> Option<usize> {
    let inner = text.get(1..)?;
    let end = inner
        .bytes()
        .take(CODE)
        .position(|b| matches!(b, b'[' | b']' | b'\n'))?;
    if inner.as_bytes().get(end) != Some(&b']') {
        return None;
    }
    let inner = inner.get(..end)?;
    let name = inner.trim_start_matches(['/', '^']).split('=').next()?;
    let is_note = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    let is_code = [
        "b", "i", "u", "s", "color", "size", "font", "code", "quote", "center",
    ]
    .iter()
    .any(|code| code.eq_ignore_ascii_case(name));
    (is_note || is_code).then_some(end + 2)
}

/// The length of a link target `(…)`, as it follows `]`.
fn target(text: &str) -> Option<usize> {
    let inner = text.get(1..)?;
    let end = inner
        .bytes()
        .take(TAG)
        .position(|b| matches!(b, b'(' | b')' | b'\n'))?;
    let address = inner
        .get(..end)
        .filter(|address| address.contains("://") || address.starts_with('/'));
    (address.is_some() && inner.as_bytes().get(end) == Some(&b')')).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_invisible_characters_are_resolved() {
        for (text, want) in [
            ("TLP&colon;&nbsp;RED", "TLP: RED"),
            ("TLP&#58;&#x52;ED", "TLP:RED"),
            ("TLP&amp;nbsp;RED", "TLP RED"),
            ("tlp%3Ared, tlp=3Ared", "tlp:red, tlp:red"),
            ("TLP=\r\n:RED", "TLP:RED"),
            ("T\u{200b}L\u{ad}P\u{feff}", "TLP"),
            ("ＴＬＰ：ＲＥＤ", "TLP:RED"),
            (r#""TLP:\u0020RED\n""#, "\"TLP: RED\n\""),
            (r"\textbf{TLP:}", " TLP:}"),
            ("100 % & 3 = x \\", "100 % & 3 = x \\"),
            ("T\u{332}L\u{332}P", "TLP"),
        ] {
            assert_eq!(decode(text), want, "{text:?}");
        }
    }

    #[test]
    fn tags_targets_and_codes_are_left_out() {
        for (text, want) in [
            ("<b>TLP:</b> RED", "TLP: RED"),
            ("TLP:<span class=\"x\">RED</span>", "TLP:RED"),
            ("a < b > c <", "a < b > c <"),
            ("[TLP](https://first.org/tlp): RED", "[TLP]: RED"),
            ("[b]TLP:[/b] RED[1]", "TLP: RED"),
            ("<tr>\n<td>TLP</td>\n<td>RED</td></tr>", "\n |TLP |RED\n"),
            ("[x] (y)", "[x] (y)"),
            ("<input type=\"checkbox\" checked> RED", " ☑  RED"),
            ("<input type=radio value=checked/> RED", " ☐  RED"),
            ("<input name=checked> RED", " RED"),
            ("<option selected=\"selected\">RED</option>", " ☑ RED"),
        ] {
            assert_eq!(strip(text), want, "{text:?}");
        }
    }

    #[test]
    fn tags_divide_words_or_name_tlp() {
        for (text, want) in [
            ("<p><b class=tlp>RED</b>x</p>", "\n <b class=tlp>RED x\n "),
            ("<td data-TLP='red'>x", "|<td data-TLP='red'>x"),
            ("<input type=radio name=tlp>x", " ☐ x"),
            ("TLP[1] [x](https://first.org/tlp)", "TLP  [x] "),
        ] {
            assert_eq!(strip_to_words(text), want, "{text:?}");
        }
    }
}
