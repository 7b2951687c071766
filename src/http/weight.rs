//! Estimates the memory a JSON text takes once parsed, from the text alone.
//!
//! A parsed object costs hundreds of bytes however small it is, so a body of a few megabytes of `{"a":0}` would take
//! gigabytes. Such a body is refused before parsing.

use crate::domain::error::DomainError;

/// Bytes of an object with up to [`LEAF`] members: one B-tree leaf.
const OBJECT: usize = 640;
const LEAF: usize = 11;
/// Bytes of each further member, in half-full leaves.
const MEMBER: usize = 110;
/// Bytes of a list item, in a list that grew by doubling.
const ITEM: usize = 64;
/// Allocator overhead of a string, in bytes.
const TEXT: usize = 16;
/// Nesting depth that the parser accepts; deeper values are never built.
const DEEPEST: usize = 128;
/// Memory allowed for a parsed body, in bytes: a fixed part, and a multiple of the body's size.
const ROOM: usize = 24 << 20;
const ROOM_PER_BYTE: usize = 8;

/// Refuses a body whose parsed form would take far more memory than its text.
///
/// # Errors
/// `Invalid`, naming the body.
pub(super) fn check(json: &[u8]) -> Result<(), DomainError> {
    if parsed_bytes(json) <= ROOM.saturating_add(json.len().saturating_mul(ROOM_PER_BYTE)) {
        return Ok(());
    }
    Err(DomainError::invalid(
        "body",
        "holds too many small objects and lists for its size; send it in parts",
    ))
}

/// Estimated bytes of the parsed text; meaningless if the text is not valid JSON.
fn parsed_bytes(json: &[u8]) -> usize {
    let mut total = 0usize;
    // For each open bracket: whether it is an object, and its number of members or items so far.
    let mut open: Vec<(bool, usize)> = Vec::new();
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = end_of_text(json, at);
                total += (end - at) + TEXT;
                at = end + 1;
            }
            b'{' | b'[' => {
                if open.len() < DEEPEST {
                    total += if *byte == b'{' { OBJECT } else { ITEM };
                }
                open.push((*byte == b'{', 1));
            }
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some((true, members)) => {
                    *members += 1;
                    total += if *members > LEAF { MEMBER } else { 0 };
                }
                Some((false, _)) | None => total += ITEM,
            },
            _ => {}
        }
    }
    total
}

/// Position of the quotation mark that closes a string whose content starts at `from`, or the end of the text.
fn end_of_text(json: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_counts_is_the_structure_outside_of_texts() {
        for (text, want) in [
            ("", 0),
            ("7", 0),
            (r#""abc""#, 3 + TEXT),
            ("{}", OBJECT),
            ("[1,2,3]", 3 * ITEM),
            (r#"{"a":0}"#, OBJECT + 1 + TEXT),
            (r#"["{[,\"\\",2]"#, 2 * ITEM + 7 + TEXT),
            (r#""open"#, 4 + TEXT),
            (r#""\"#, 1 + TEXT),
            ("]}],", ITEM),
        ] {
            assert_eq!(parsed_bytes(text.as_bytes()), want, "{text}");
        }
        let many: serde_json::Map<_, _> = (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
        let text = serde_json::to_vec(&many).unwrap();
        assert_eq!(parsed_bytes(&text), OBJECT + 9 * MEMBER + 20 * (3 + TEXT));
    }

    #[test]
    fn a_body_of_tiny_objects_is_refused_and_one_of_texts_is_not() {
        let tiny = serde_json::to_vec(&vec![json!({"a": 0}); 100_000]).unwrap();
        let error = check(&tiny).unwrap_err().to_string();
        assert!(error.starts_with("body: holds too many small objects"), "{error}");
        assert!(check(&serde_json::to_vec(&vec![json!({"a": 0}); 30_000]).unwrap()).is_ok());
        assert!(
            check("{\"a\":".repeat(1_000_000).as_bytes()).is_ok(),
            "the parser says what is wrong with it"
        );
        let texts: Vec<_> = (0..100_000)
            .map(|n| {
                json!({"name": format!("an indicator {n}"), "pattern": "[domain-name:value = 'x.example']",
                "created": "2020-01-01T00:00:00.000Z", "type": "indicator"})
            })
            .collect();
        assert!(check(&serde_json::to_vec(&texts).unwrap()).is_ok());
    }
}
