//! Checks that sketches suit a model's vectors.
//!
//! Signs say much about vectors whose components scatter around zero, as those of the built-in model do. For other
//! models this is measured: vectors of the table are searched for by sketch and exactly, and where the sketch misses
//! too many, more rows are scored in every search, up to all of them. This is measured for each clearance among what callers
//! with it may see, so that what one finds does not depend on what is hidden from it.

use uuid::Uuid;

use crate::domain::tlp::Tlp;
use crate::search::document::{CompiledFilter, Filter};
use crate::search::vectors::table::{Depth, Table, Widening};

/// Row counts between which a table is checked each time that it has doubled.
const FROM: usize = 16_384;
const UP_TO: usize = 131_072;
/// Number of vectors searched for.
const PROBES: usize = 16;
/// Results compared, and the share of the exact ones that must be among them. Texts of reports reach 1.0 and 0.99 with
/// the built-in model, random words, all about equally far apart, 0.94 and 0.80.
const WANTED: [(usize, f32); 2] = [(10, 0.9), (100, 0.75)];
/// Share of the rows (1 in 4) from which scoring all of them is hardly slower.
const EVERYTHING: usize = 4;

/// Numbers of nodes that callers with each clearance may see, the lowest first.
pub(in crate::search) fn visible_nodes(table: &Table) -> [usize; Tlp::ALL.len()] {
    Tlp::ALL.map(|highest| table.count(&CompiledFilter::of(&Filter::up_to(highest))))
}

/// Checks the table for each clearance whose nodes have doubled since, and records how many there are now. None if no check
/// was due.
pub(in crate::search) fn check(table: &Table, checked: &mut [usize; Tlp::ALL.len()]) -> Option<Widening> {
    let mut widenings = table.widening();
    let mut below = None;
    let mut is_any_due = false;
    let levels = Tlp::ALL.into_iter().zip(visible_nodes(table));
    for (((highest, rows), checked), own) in levels.zip(checked).zip(&mut widenings) {
        if is_due(rows, *checked) {
            let same = below.filter(|(count, _)| *count == rows);
            *own = same.map_or_else(|| widening(table, highest), |(_, widening)| widening);
            *checked = rows;
            is_any_due = true;
        }
        below = Some((rows, *own));
    }
    is_any_due.then_some(widenings)
}

/// Whether so many nodes that were checked when they were `checked` should be checked again.
fn is_due(rows: usize, checked: usize) -> bool {
    rows >= FROM && checked < UP_TO && rows >= checked * 2
}

/// The least factor by which a search of what a clearance allows must score more rows than usual.
pub(in crate::search) fn widening(table: &Table, highest: Tlp) -> usize {
    let allowed = CompiledFilter::of(&Filter::up_to(highest));
    let rows = table.count(&allowed);
    let probes: Vec<Vec<i8>> = table
        .rows_of(&allowed)
        .step_by((rows / PROBES).max(1))
        .filter_map(|row| Some(table.rows().vector(row)?.to_vec()))
        .collect();
    let widest = WANTED.iter().map(|(limit, _)| *limit).max().unwrap_or(1);
    let exact: Vec<Vec<Uuid>> = probes
        .iter()
        .map(|probe| ids(table.nearest_within(probe, &allowed, widest, Depth::EXACT)))
        .collect();
    let depth = table.depth(&allowed, widest);
    let suffices = |widening: &usize| {
        let found: Vec<Vec<Uuid>> = probes
            .iter()
            .map(|probe| ids(table.nearest_within(probe, &allowed, widest, depth.widen_by(*widening))))
            .collect();
        WANTED
            .iter()
            .all(|(limit, share)| recall(&exact, &found, *limit) >= *share)
    };
    let is_less = |widening: &usize| depth.widen_by(*widening).scored < rows / EVERYTHING;
    let widenings = std::iter::successors(Some(1usize), |widening| widening.checked_mul(2));
    widenings.take_while(is_less).find(suffices).unwrap_or(usize::MAX)
}

fn ids(found: Vec<(Uuid, f32)>) -> Vec<Uuid> {
    found.into_iter().map(|(node, _)| node).collect()
}

/// Share of the first `limit` exact results that are also among the first `limit` found.
pub(in crate::search) fn recall(exact: &[Vec<Uuid>], found: &[Vec<Uuid>], limit: usize) -> f32 {
    let (mut wanted, mut hit) = (0, 0);
    for (exact, found) in exact.iter().zip(found) {
        let found: Vec<&Uuid> = found.iter().take(limit).collect();
        let exact = exact.iter().take(limit);
        wanted += exact.len();
        hit += exact.filter(|node| found.contains(node)).count();
    }
    if wanted == 0 {
        1.0
    } else {
        hit as f32 / wanted as f32
    }
}
