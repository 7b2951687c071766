//! Notes that correct others of the same result: they stand above these, and the two are told as a pair that conflicts.

use super::FoundNote;
use crate::domain::memory::correction::Claim;
use crate::search::tokenize;

/// Notes beyond those asked for that are looked at: the correction of a note that is found is found, too.
pub(super) const BEYOND: usize = 10;
/// Most notes that are compared with each other, the best ones.
const COMPARED: usize = 100;

/// Puts corrections directly above what they correct, and marks both. If the question is about the present, newer notes
/// on the same come first, too, without a mark. Nothing is put above a note with an exact rare word of the question, one of
/// `rare`, unless it has the word, too.
pub(super) fn put_corrections_first(notes: &mut Vec<FoundNote>, is_about_present: bool, rare: &[String]) {
    let read = |found: &FoundNote| Claim::read(&found.note.content, found.note.created_at);
    let claims: Vec<Claim> = notes.iter().take(COMPARED).map(read).collect();
    if !is_about_present && !claims.iter().any(|claim| claim.corrects) {
        return;
    }
    // Each newer note with the older ones, by their places.
    let mut moves: Vec<(usize, usize)> = Vec::new();
    for (place, claim) in claims.iter().enumerate() {
        if !claim.corrects && !is_about_present {
            continue;
        }
        for (other_place, other) in claims.iter().enumerate() {
            let Some([own, others]) = notes.get(place).zip(notes.get(other_place)).map(|(a, b)| [a, b])
            else {
                continue;
            };
            if place == other_place {
                continue;
            }
            let names = shared_names(own, others);
            let is_pair = claim.is_correction_of(other, &names);
            let is_newer = is_pair || (is_about_present && claim.is_newer_on_the_same(other, &names));
            if is_newer
                && rare
                    .iter()
                    .all(|word| has_word(own, word) || !has_word(others, word))
            {
                moves.push((place, other_place));
            }
            if is_pair {
                let ids = [own.note.id, others.note.id];
                for (at, id) in [(place, ids[1]), (other_place, ids[0])] {
                    let marked = notes.get_mut(at).map(|found| &mut found.conflicts_with);
                    marked
                        .filter(|known| !known.contains(&id))
                        .into_iter()
                        .for_each(|known| known.push(id));
                }
            }
        }
    }
    lift(notes, &moves);
}

/// Whether a note has a word whole; the first token of a word is all of it.
fn has_word(found: &FoundNote, word: &str) -> bool {
    let whole = tokenize(word).into_iter().next();
    whole.is_some_and(|whole| tokenize(&found.note.content).contains(&whole))
}

/// The values of the entities that both notes mention.
fn shared_names<'n>(one: &'n FoundNote, other: &FoundNote) -> Vec<&'n str> {
    let values = one.entities.iter().filter(|value| other.entities.contains(value));
    values.map(String::as_str).collect()
}

/// Moves each first note of these pairs of places above the second one, and gives it that one's score.
fn lift(notes: &mut Vec<FoundNote>, moves: &[(usize, usize)]) {
    let mut order: Vec<usize> = (0..notes.len()).collect();
    let mut moves = moves.to_vec();
    // From the best place on, so that of three versions the newest ends above both others.
    moves.sort_unstable_by_key(|(newer, older)| (*older, *newer));
    for (newer, older) in moves {
        let place = |order: &[usize], of: usize| order.iter().position(|at| *at == of);
        let (Some(from), Some(to)) = (place(&order, newer), place(&order, older)) else {
            continue;
        };
        if from > to {
            order.remove(from);
            order.insert(to, newer);
        }
    }
    let mut taken: Vec<Option<FoundNote>> = notes.drain(..).map(Some).collect();
    let found = order
        .iter()
        .filter_map(|at| taken.get_mut(*at).and_then(Option::take));
    notes.extend(found);
    // Scores fall with rank.
    let mut most = 0.0f32;
    for found in notes.iter_mut().rev() {
        most = most.max(found.score);
        found.score = most;
    }
}
