//! The known name that a mistyped one is nearest to.

/// Longest name that is compared, in characters.
const MAX_NAME: usize = 100;

/// The known name that differs from `name` in the fewest letters, if they are alike. Case, hyphens and spaces don't count.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let letters = |text: &str| -> Vec<char> {
        let plain = text.chars().take(MAX_NAME).flat_map(char::to_lowercase);
        plain
            .map(|letter| if matches!(letter, '-' | ' ') { '_' } else { letter })
            .collect()
    };
    let name = letters(name);
    let distances = known
        .into_iter()
        .map(|known| (distance(&name, &letters(known)), known));
    let (distance, known) = distances.min()?;
    (distance * 2 <= known.chars().count()).then_some(known)
}

/// Letters to insert, remove or replace between two texts (Levenshtein).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut diagonal = row;
        let mut left = row + 1;
        for (cell, other) in above
            .iter_mut()
            .zip([None].into_iter().chain(to.iter().map(Some)))
        {
            let replaced = diagonal;
            diagonal = *cell;
            left = match other {
                None => row + 1,
                Some(other) => (replaced + usize::from(other != letter))
                    .min(left + 1)
                    .min(*cell + 1),
            };
            *cell = left;
        }
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_the_known_one() {
        let known = ["item_ids", "status", "resolved_tlp", "knowledge_graph"];
        for (name, want) in [
            ("item_id", Some("item_ids")),
            ("items", Some("item_ids")),
            ("ItemIds", Some("item_ids")),
            ("knowledge-graph", Some("knowledge_graph")),
            ("KNOWLEDGE GRAPH", Some("knowledge_graph")),
            ("staus", Some("status")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), want, "{name}");
        }
    }

    #[test]
    fn the_distance_counts_letters() {
        for (from, to, want) in [
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("abc", "abc", 0),
            ("ab", "ba", 2),
        ] {
            let [from, to] = [from, to].map(|text| text.chars().collect::<Vec<_>>());
            assert_eq!(distance(&from, &to), want);
        }
    }
}
