//! What became of the calls that windows show: how many are claimed, and why the others are not.

use crate::evidence::claim::{Claims, Judged};
use crate::options::{Options, UseOfReasons};
use crate::reasons::Why;
use systoll_model::{Recording, RowId};

/// What became of a row's calls in windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Silence {
    /// The row.
    pub row: RowId,
    /// Number of its calls in windows.
    pub seen: u64,
    /// Number of these that are claimed as needless.
    pub needless: u64,
    /// Number of these that may be needless, each with why it is not sure; most calls first.
    pub unsure: Vec<(Option<Why>, u64)>,
    /// Number of these that a window's edge keeps from being judged.
    pub hidden: u64,
    /// Number of the others, each with why they are not claimed; most calls first.
    pub silent: Vec<(Why, u64)>,
}

/// Returns what became of the calls of each row, in the order of [`Recording::rows`]; nothing unless it is asked for.
pub(crate) fn silences(recording: &Recording, claims: &Claims, options: &Options) -> Vec<Silence> {
    if options.reasons != UseOfReasons::Explain {
        return Vec::new();
    }
    let rows = (0u32..).zip(&recording.rows);
    let mut all: Vec<Silence> = rows.map(|(id, _)| Silence { row: RowId(id), ..Silence::default() }).collect();
    let calls = recording.windows.iter().flat_map(|window| &window.calls);
    for ((call, judged), why) in calls.zip(claims.iter()).zip(claims.whys()) {
        let Some(of) = all.get_mut(call.row.0 as usize) else { continue };
        of.seen += 1;
        match (judged, *why) {
            (Judged::Claimed(claim), why) if claim.weak => {
                count(&mut of.unsure, why.filter(|why| matches!(why, Why::Good(_))), 1)
            }
            (Judged::Claimed(_), _) => of.needless += 1,
            (Judged::LeftOut, None | Some(Why::Plain(_))) | (_, None) => of.hidden += 1,
            (_, Some(why)) => count(&mut of.silent, why, 1),
        }
    }
    all.iter_mut().for_each(Silence::sort);
    all
}

impl Silence {
    /// Adds the calls of another row, made at the same place.
    pub fn add(&mut self, of: &Self) {
        self.seen += of.seen;
        self.needless += of.needless;
        self.hidden += of.hidden;
        of.unsure.iter().for_each(|(why, calls)| count(&mut self.unsure, *why, *calls));
        of.silent.iter().for_each(|(why, calls)| count(&mut self.silent, *why, *calls));
        self.sort();
    }

    fn sort(&mut self) {
        self.unsure.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        self.silent.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    }
}

fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, of: T, calls: u64) {
    match counts.iter_mut().find(|(other, _)| *other == of) {
        Some((_, sum)) => *sum += calls,
        None => counts.push((of, calls)),
    }
}
