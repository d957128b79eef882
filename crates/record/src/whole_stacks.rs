//! The whole stacks of a row's calls, as sampled and as printed; the row's context is their innermost part.

use crate::row_lines::Line;
use crate::table::{ImageId, MAX_LINES, RawRow, Table};
use crate::trunks::{RawTrunk, Trunks};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use systoll_symbols::RawFrame;

/// Number of ancestors of a process that borrow nothing from it, at most; a damaged table may hold a circle.
const MOST_ANCESTORS: usize = 64;

/// Whole stacks of a program's processes that are lent to processes of the same program in which no call was sampled.
#[derive(Clone, Debug)]
pub(crate) struct LentStacks {
    line: Line,
    trunks: Trunks,
}

/// The whole stacks of a row without script lines, as they are printed: stacks with the same functions and lines
/// are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergedTrunks {
    /// The merged stacks, at least one.
    pub(crate) trunks: Trunks,
    /// Number of innermost frames, compared by name, that all of the stacks share.
    pub(crate) shared: usize,
}

impl MergedTrunks {
    /// Merges the stacks of a row, or those that other processes lend it. `same` returns true if two frames are printed
    /// alike.
    pub(crate) fn of(
        row: &RawRow,
        lent: Option<&LentStacks>,
        table: &Table,
        same: impl Fn(&RawFrame, &RawFrame) -> bool,
    ) -> Option<Self> {
        let (line, trunks) = match (row.lines.as_slice(), lent) {
            ([line], _) if line.line.is_none() => (line, &row.trunks),
            ([], Some(lent)) => (&lent.line, &lent.trunks),
            _ => return None,
        };
        let frames = |whole: u32| table.stacks.get(whole as usize).map_or(&[][..], |s| &s.frames);
        let alike = |one: u32, other: u32| {
            let both = frames(one).iter().zip(frames(other));
            both.take_while(|(a, b)| same(a, b)).count()
        };
        let mut told = Trunks { others: trunks.others, ..Trunks::default() };
        for trunk in &trunks.all {
            let is_it = |known: &&mut RawTrunk| {
                let len = frames(known.whole).len();
                len == frames(trunk.whole).len() && alike(known.whole, trunk.whole) == len
            };
            match told.all.iter_mut().find(is_it) {
                Some(known) => known.add(trunk.weight, trunk.looks),
                None => told.all.push(*trunk),
            }
        }
        let first = told.all.first()?.whole;
        let of_all = told.all.iter().map(|trunk| alike(first, trunk.whole)).min()?;
        // Only the number of frames that the other stacks share with one of these is known.
        let shared = if told.others > 0 { of_all.min(line.shared) } else { of_all };
        Some(Self { trunks: told, shared })
    }

    /// Returns true if there are several stacks.
    pub(crate) fn differ(&self) -> bool {
        self.trunks.differ()
    }
}

impl Table {
    /// Notes that `looks` samples, which stand for `weight` calls of a row, have this whole stack. The thread compared
    /// its stack with this one; nobody else read it.
    pub(crate) fn stack_found(&mut self, row: u32, (frames, complete): (&[RawFrame], bool), looks: u64, weight: u64) {
        if !self.has_room_for_stacks() {
            return;
        }
        let whole = self.stack(frames, complete);
        let Some(raw) = self.rows.get_mut(row as usize) else { return };
        if weight > 0 {
            raw.trunks.note(whole, weight, whole);
        }
        if let Some(seen) = raw.lines.iter_mut().find(|l| l.line.is_none()) {
            let first = self.stacks.get(seen.whole as usize).map_or(&[][..], |s| &s.frames);
            seen.shared = first.iter().take(seen.shared).zip(frames).take_while(|(a, b)| a == b).count();
            seen.looks = seen.looks.saturating_add(looks);
            seen.weight = seen.weight.saturating_add(weight);
        } else if raw.lines.len() < MAX_LINES {
            raw.lines.push(Line { line: None, looks, weight, whole, shared: frames.len() });
        }
    }

    /// Notes that samples, which stand for `weight` calls of a row, have other whole stacks than this one. They
    /// share its innermost `shared` frames.
    pub(crate) fn stack_missed(&mut self, row: u32, whole: (&[RawFrame], bool), shared: usize, weight: u64) {
        self.stack_found(row, whole, 0, 0);
        let Some(raw) = self.rows.get_mut(row as usize) else { return };
        raw.trunks.others = raw.trunks.others.saturating_add(weight);
        if let Some(seen) = raw.lines.iter_mut().find(|l| l.line.is_none()) {
            let frames = whole.0.iter().take(shared);
            let first = self.stacks.get(seen.whole as usize).map_or(&[][..], |s| &s.frames);
            seen.shared = first.iter().take(seen.shared).zip(frames).take_while(|(a, b)| a == b).count();
        }
    }

    /// Returns stacks for rows without a sampled stack, by the row's index in the table: those of other processes of
    /// the same program, since only the first processes of a program are sampled. A process borrows nothing from those that
    /// it forked: they may do another part of the program's work.
    pub(crate) fn lent_stacks(&self) -> HashMap<usize, LentStacks> {
        let key = |row: &RawRow| {
            let exe = self.images.get(row.image.index()).map(|image| Arc::clone(&image.exe));
            (exe, row.syscall, row.context)
        };
        let mut seen: HashMap<_, LentStacks> = HashMap::new();
        let lends = |row: &&RawRow| row.lines.len() == 1 && row.lines.iter().all(|line| line.line.is_none());
        for row in self.rows.iter().filter(lends) {
            let Some(line) = row.lines.first() else { continue };
            let new = || LentStacks { line: *line, trunks: Trunks::default() };
            let lent = seen.entry(key(row)).or_insert_with(new);
            lent.line.shared = self.shared(lent.line.whole, line.whole, lent.line.shared.min(line.shared));
            lent.trunks.others = lent.trunks.others.saturating_add(row.trunks.others);
            for trunk in &row.trunks.all {
                lent.trunks.note(trunk.whole, trunk.weight, trunk.full);
            }
        }
        let unseen = self.rows.iter().enumerate().filter(|(_, row)| row.lines.is_empty());
        let may_borrow = self.borrowers(self.rows.iter().filter(lends), key);
        let unseen = unseen.filter(|(_, row)| may_borrow(row));
        unseen.filter_map(|(at, row)| Some((at, seen.get(&key(row))?.clone()))).collect()
    }

    /// Returns script lines for rows of which too few calls were sampled, by the row's index in the table: those of the
    /// same calls in other processes that run the same program with the same arguments, since a shell forks more
    /// children than are sampled. Their weights are the others' sums, without samples. A process borrows nothing
    /// from those that it forked: one end of a connection had the other end's line.
    pub(crate) fn lent_lines(&self) -> HashMap<usize, Vec<Line>> {
        let has_lines = |row: &&RawRow| row.lines.iter().any(|line| line.line.is_some()) && row.lines_tell();
        let mut seen: HashMap<_, Vec<Line>> = HashMap::new();
        for row in self.rows.iter().filter(has_lines) {
            let lent = seen.entry(self.script_key(row)).or_default();
            for line in row.lines.iter().filter(|line| line.line.is_some()) {
                let room = lent.len() < MAX_LINES;
                match lent.iter_mut().find(|known| known.line == line.line) {
                    Some(known) => known.weight = known.weight.saturating_add(line.weight),
                    None if room => lent.push(Line { looks: 0, ..*line }),
                    None => {}
                }
            }
        }
        if seen.is_empty() {
            return HashMap::new();
        }
        let unseen = self.rows.iter().enumerate().filter(|(_, row)| row.lines.is_empty() || !row.lines_tell());
        let may_borrow = self.borrowers(self.rows.iter().filter(has_lines), |row| self.script_key(row));
        let unseen = unseen.filter(|(_, row)| may_borrow(row));
        unseen.filter_map(|(at, row)| Some((at, seen.get(&self.script_key(row))?.clone()))).collect()
    }

    /// Returns for each row without samples by object, by its index in the table, the row that lends its own: that of
    /// the same calls in another process that runs the same program with the same arguments, and that it did not fork.
    pub(crate) fn lent_samples(&self) -> HashMap<usize, usize> {
        let has_any = |row: &RawRow| row.samples.stacks().next().is_some();
        let lends = |row: &&RawRow| row.samples.has_several_lines();
        let shared = self.rows.iter().enumerate().filter(|(_, row)| lends(row));
        let seen: HashMap<_, usize> = shared.map(|(at, row)| (self.script_key(row), at)).collect();
        if seen.is_empty() {
            return HashMap::new();
        }
        let unseen = self.rows.iter().enumerate().filter(|(_, row)| !has_any(row));
        let may_borrow = self.borrowers(self.rows.iter().filter(lends), |row| self.script_key(row));
        let unseen = unseen.filter(|(_, row)| may_borrow(row));
        unseen.filter_map(|(at, row)| Some((at, *seen.get(&self.script_key(row))?))).collect()
    }

    /// Returns whether a row may borrow from `lenders` with the same key: none of these is its process's fork, or a fork's.
    fn borrowers<'a, K: Eq + Hash>(
        &'a self,
        lenders: impl Iterator<Item = &'a RawRow>,
        key: impl Fn(&RawRow) -> K,
    ) -> impl Fn(&RawRow) -> bool {
        let parent = |image: &ImageId| self.images.get(image.index()).and_then(|image| image.parent);
        let mut makers = HashSet::new();
        for row in lenders {
            let ancestors = std::iter::successors(parent(&row.image), parent).take(MOST_ANCESTORS);
            makers.extend(ancestors.filter(|image| *image != row.image).map(|image| (key(row), image)));
        }
        move |row| !makers.contains(&(key(row), row.image))
    }

    /// Returns a key that is equal for the same calls of all processes that run the same program with the same arguments.
    fn script_key(&self, row: &RawRow) -> impl Eq + Hash + use<> {
        let image = self.images.get(row.image.index());
        (image.map(|image| (Arc::clone(&image.exe), image.argv.clone())), row.syscall, row.context)
    }

    /// Returns the number of innermost frames that two whole stacks share, `most` at most.
    fn shared(&self, one: u32, other: u32, most: usize) -> usize {
        let frames = |id: u32| self.stacks.get(id as usize).map_or(&[][..], |s| &s.frames);
        frames(one).iter().zip(frames(other)).take(most).take_while(|(a, b)| a == b).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Image, ImageId};
    use systoll_model::Sysno;

    fn frame(address: u64) -> RawFrame {
        RawFrame { module: None, address, is_return: true }
    }

    fn frames<const N: usize>(addresses: [u64; N]) -> [RawFrame; N] {
        addresses.map(frame)
    }

    /// Frames whose addresses lie in the same hundred are printed alike.
    fn same(a: &RawFrame, b: &RawFrame) -> bool {
        a.address / 100 == b.address / 100
    }

    fn told(table: &Table, row: u32) -> MergedTrunks {
        let lent = table.lent_stacks();
        MergedTrunks::of(&table.rows[row as usize], lent.get(&(row as usize)), table, same).unwrap()
    }

    #[test]
    fn stacks_through_the_same_functions_are_merged() {
        let mut table = Table::default();
        let (row, _) = table.row(ImageId::FIRST, Sysno(1), &[frame(1)]);
        table.stack_found(row, (&frames([1, 201, 900]), true), 1, 4);
        table.stack_found(row, (&frames([1, 202, 900]), true), 2, 8);
        let one = told(&table, row);
        assert_eq!((one.differ(), one.shared, one.trunks.all[0].weight), (false, 3, 12));
        table.stack_found(row, (&frames([1, 203, 301, 900]), true), 1, 2);
        let two = told(&table, row);
        assert_eq!((two.differ(), two.shared, two.trunks.all.len()), (true, 2, 2));
    }

    #[test]
    fn other_stacks_share_only_the_frames_that_samples_found() {
        let mut table = Table::default();
        let (row, _) = table.row(ImageId::FIRST, Sysno(1), &[frame(1)]);
        let whole = frames([1, 2, 300, 400]);
        table.stack_found(row, (&whole, true), 3, 4);
        table.stack_missed(row, (&whole, true), 2, 64);
        let told = told(&table, row);
        assert_eq!((told.differ(), told.shared, told.trunks.others, told.trunks.all.len()), (true, 2, 64, 1));
        assert_eq!(table.rows[row as usize].lines[0].looks, 3, "what was not found was not looked at");
    }

    #[test]
    fn an_unsampled_process_gets_its_programs_stacks() {
        let mut table = Table::default();
        let mut image = |exe: &str| table.image(Image { exe: exe.into(), ..Image::default() });
        let images = [image("a"), image("a"), image("b"), image("a")];
        let rows = images.map(|image| table.row(image, Sysno(1), &[frame(1)]).0);
        table.stack_found(rows[0], (&frames([1, 200]), true), 1, 4);
        table.stack_found(rows[1], (&frames([1, 300]), true), 1, 6);
        let lent = table.lent_stacks();
        assert_eq!(lent.keys().copied().collect::<Vec<_>>(), [rows[3] as usize], "another program has others");
        let told = told(&table, rows[3]);
        let weights: Vec<u64> = told.trunks.all.iter().map(|trunk| trunk.weight).collect();
        assert_eq!((told.shared, weights), (1, vec![4, 6]));
    }

    #[test]
    fn lines_are_lent_to_children_of_the_same_script_of_which_no_call_was_sampled() {
        let mut table = Table::default();
        let script = |name: &str| Image { argv: vec!["bash".into(), name.into()], ..Image::default() };
        let [shell, child, other] = ["a.sh", "a.sh", "b.sh"].map(|name| table.image(script(name)));
        let stack = frames([1, 2]);
        let rows = [shell, child, other].map(|image| table.row(image, Sysno::named("stat"), &stack).0 as usize);
        let line = |at: u64, weight| Line { line: Some(frame(at)), looks: 3, weight, whole: 0, shared: 1 };
        table.rows[rows[0]].lines = vec![line(70, 5), line(80, 2)];
        table.rows[rows[0]].entered = 7;
        let lent = table.lent_lines();
        assert_eq!(lent.len(), 1, "another script's calls come from other lines");
        let lent: Vec<_> = lent[&rows[1]].iter().map(|l| (l.line, l.looks, l.weight)).collect();
        assert_eq!(lent, [(Some(frame(70)), 0, 5), (Some(frame(80)), 0, 2)]);
    }

    #[test]
    fn a_process_borrows_no_lines_from_those_that_it_forked() {
        let mut table = Table::default();
        let parent = table.image(Image::default());
        let sampled = table.image(Image { parent: Some(parent), ..Image::default() });
        let sibling = table.image(Image { parent: Some(parent), ..Image::default() });
        let rows = [parent, sampled, sibling].map(|image| table.row(image, Sysno::named("read"), &frames([1])).0);
        let line = Line { line: Some(frame(70)), looks: 3, weight: 3, whole: 0, shared: 1 };
        table.rows[rows[1] as usize].lines = vec![line];
        table.rows[rows[1] as usize].entered = 3;
        assert_eq!(table.lent_lines().into_keys().collect::<Vec<_>>(), [rows[2] as usize]);
    }
}
