//! Prints what was measured.

use crate::questions::Question;
use crate::report::thousands;
use crate::score::{Score, Tally};

/// Both modes: blended, structured.
type Tallies = [Tally; 2];

/// The tallies of a kind of question: of the ways to put it that may be looked at, and of the others.
#[derive(Clone, Copy, Default)]
struct Row {
    seen: Tallies,
    unseen: Tallies,
    all: Tallies,
}

impl Row {
    fn add(&mut self, unseen: bool, scores: [Score; 2]) {
        let own = if unseen { &mut self.unseen } else { &mut self.seen };
        for tallies in [own, &mut self.all] {
            for (tally, score) in tallies.iter_mut().zip(scores) {
                tally.add(score);
            }
        }
    }
}

#[derive(Default)]
pub struct Table {
    rows: Vec<(String, Row)>,
    all: Row,
}

impl Table {
    pub fn add(&mut self, question: &Question, scores: [Score; 2]) {
        self.all.add(question.unseen, scores);
        let at = self.rows.iter().position(|(title, _)| *title == question.title);
        let at = at.unwrap_or_else(|| {
            self.rows.push((question.title.clone(), Row::default()));
            self.rows.len() - 1
        });
        self.rows[at].1.add(question.unseen, scores);
    }
}

/// A part's row of the page: its questions, and a figure of blended search for all and for the unseen ones, and of
/// structured search for all.
pub fn summary(part: &str, table: &Table, figure: fn(Score) -> f64) -> Vec<String> {
    let Row { unseen, all, .. } = table.all;
    let [blended, structured] = all;
    let mut row = vec![part.to_owned(), thousands(blended.questions as f64)];
    row.extend([blended, unseen[0], structured].map(|tally| format!("{:.3}", figure(tally.mean()))));
    row
}

/// R-precision at 10 of each kind of question; in brackets the part of the right answers among the first ten.
pub fn relational(part: &str, table: &Table) {
    println!("\n{part}: R-precision at 10 (and the part of the right answers among the first ten)");
    println!(
        "{:40} {:>9}   {:^27}   {:^27}",
        "", "questions", "blended", "structured"
    );
    let head = format!("{:>6} {:>6} {:>13}", "seen", "unseen", "all");
    println!("{:40} {:>9}   {head}   {head}", "", "");
    let all = [("all".to_owned(), table.all)];
    for (title, row) in table.rows.iter().chain(&all) {
        let mode = |mode: usize| {
            let [seen, unseen, all] = [row.seen, row.unseen, row.all].map(|tallies| tallies[mode].mean());
            format!(
                "{:6.3} {:6.3} {:6.3} ({:.2})",
                seen.precision, unseen.precision, all.precision, all.found
            )
        };
        println!(
            "{title:40} {:>9}   {}   {}",
            row.all[0].questions,
            mode(0),
            mode(1)
        );
    }
}

/// Recall at 1 and 10 and the mean reciprocal rank of questions with one right answer.
pub fn ordinary(table: &Table) {
    println!("\nordinary: recall at 1, at 10, and mean reciprocal rank among the first ten");
    println!(
        "{:10} {:>9}   {:^20}   {:^20}",
        "", "questions", "blended", "structured"
    );
    let head = format!("{:>6} {:>6} {:>6}", "R@1", "R@10", "MRR");
    println!("{:10} {:>9}   {head}   {head}", "", "");
    for (title, tallies) in [
        ("seen", table.all.seen),
        ("unseen", table.all.unseen),
        ("all", table.all.all),
    ] {
        let [blended, structured] = tallies.map(|tally| {
            let Score {
                precision,
                found,
                reciprocal,
            } = tally.mean();
            format!("{precision:6.3} {found:6.3} {reciprocal:6.3}")
        });
        println!(
            "{title:10} {:>9}   {blended}   {structured}",
            tallies[0].questions
        );
    }
}
