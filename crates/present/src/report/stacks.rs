//! The parts of a report for `-k` and `-y`: whole stacks and the files behind descriptors, as
//! windows saw them.

use super::screen::{DETAIL, DETAIL_TEXT, Report};
use crate::access::{frame, module, row, stack};
use crate::style::{Line, Role};
use crate::text::{clean, columns};
use crate::units::{calls, counted, grouped, percent_of};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use systoll_model::{Frame, FrameId, Language, Row, RowId, RowTrunk, StackId, Sysno, WindowCall};

/// Stacks of a row, and descriptors of a finding, that are shown without `--all`.
const TOLD: usize = 3;

/// Frames of a stack that are shown without `--all`.
const FRAMES: usize = 64;

/// A whole stack, and a label with its share.
struct Seen {
    frames: Vec<FrameId>,
    label: String,
}

impl Report<'_> {
    /// Returns the whole stacks seen of a row, commonest first, from column `indent` on. If none
    /// was kept, returns the frames that all of its stacks share.
    pub(super) fn stacks_of(&self, id: RowId, indent: usize) -> Vec<Line> {
        let Some(row) = row(self.rec, id) else { return vec![] };
        let context = || stack(self.rec, row.context).map_or(&[][..], |s| &s.frames).iter();
        let trunks = self.rec.trunks_of(id);
        // The interpreter's own frames between a script's lines are found only in windows' stacks.
        if row.lines.is_empty() && !trunks.is_empty() {
            let all = trunks.iter().fold(0u64, |sum, t| sum.saturating_add(t.weight));
            let mut trunks: Vec<&RowTrunk> = trunks.iter().collect();
            trunks.sort_by_key(|t| (Reverse(t.weight), t.stack));
            let told = |t: &&RowTrunk| {
                let above = stack(self.rec, t.stack);
                let frames = context().chain(above.map_or(&[][..], |s| &s.frames)).copied().collect();
                let rest = if above.is_some_and(|s| s.complete) { "" } else { "; others, not kept" };
                let share = percent_of(t.weight, Some(all)).unwrap_or_else(|| "some".into());
                Seen { frames, label: format!("{share} of its calls, by samples{rest}") }
            };
            return self.stacks_seen(row, trunks.iter().map(told).collect(), indent);
        }
        let mut seen: HashMap<StackId, u64> = HashMap::new();
        for call in self.looked_at(&[id]).filter(|_| !row.lines.is_empty()) {
            if let Some(stack) = call.stack {
                *seen.entry(stack).or_default() += 1;
            }
        }
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_by_key(|(stack, n)| (Reverse(*n), *stack));
        if seen.is_empty() {
            let outer = stack(self.rec, row.outer).map_or(&[][..], |s| &s.frames);
            let frames: Vec<FrameId> = context().chain(outer).copied().collect();
            return self.whole_stack(row, &frames, indent);
        }
        let all: u64 = seen.iter().map(|(_, n)| n).sum();
        let told = |(id, n): &(StackId, u64)| Seen {
            frames: stack(self.rec, *id).map_or_else(Vec::new, |s| s.frames.clone()),
            label: format!("{} of {} seen", grouped(*n), counted(all, "stack", "stacks")),
        };
        self.stacks_seen(row, seen.iter().map(told).collect(), indent)
    }

    fn stacks_seen(&self, row: &Row, seen: Vec<Seen>, indent: usize) -> Vec<Line> {
        let limit = if self.options.all { usize::MAX } else { TOLD };
        let faint = |text: String| Line::of(Role::Plain, " ".repeat(indent)).with(Role::Faint, text);
        let mut lines = vec![];
        for one in seen.iter().take(limit) {
            if seen.len() > 1 {
                lines.push(faint(one.label.clone()));
            }
            lines.extend(self.whole_stack(row, &one.frames, indent));
        }
        if let Some(more) = seen.len().checked_sub(limit).filter(|n| *n > 0) {
            lines.push(faint(format!("{} more: --all shows them", counted(more as u64, "stack", "stacks"))));
        }
        lines
    }

    /// Returns frames one a line, innermost first, with their modules and whole paths.
    fn whole_stack(&self, row: &Row, frames: &[FrameId], indent: usize) -> Vec<Line> {
        let mut lines = vec![];
        let limit = if self.options.all { usize::MAX } else { FRAMES };
        let mut api = row.api.as_deref().map(clean);
        let mut last: Option<&Frame> = None;
        for id in frames.iter().take(limit) {
            let Some(f) = frame(self.rec, *id) else { continue };
            // An API function that ended in a jump is on no stack, but the call instruction names
            // it.
            if row.user == Some(*id)
                && let Some(api) = api.take().filter(|api| last.is_none_or(|l| !is_called(l, api)))
            {
                let home = last.and_then(|l| module(self.rec, l.module)).map(|m| clean(m.file_name()));
                lines.extend(self.stack_line(Role::Name, &api, &home.unwrap_or_default(), indent));
            }
            last = Some(f);
            for l in &f.locations {
                let language = f.language.map_or("?", Language::name);
                let module = module(self.rec, f.module).map_or(language.into(), |m| clean(m.file_name()));
                let place = match (&l.file, l.line) {
                    (Some(file), Some(n)) => format!("{module} {}:{n}", clean(file)),
                    (Some(file), None) => format!("{module} {}", clean(file)),
                    _ => module,
                };
                lines.extend(self.stack_line(Role::Plain, &clean(&l.function), &place, indent));
            }
        }
        if let Some(more) = frames.len().checked_sub(limit).filter(|n| *n > 0) {
            let text = format!("{} more: --all shows them", counted(more as u64, "frame", "frames"));
            lines.push(Line::of(Role::Plain, " ".repeat(indent)).with(Role::Faint, text));
        }
        lines
    }

    fn stack_line(&self, role: Role, function: &str, place: &str, indent: usize) -> Vec<Line> {
        let width = self.style.columns().saturating_sub(indent + 2);
        let mut line = Line::of(Role::Plain, " ".repeat(indent));
        line.push_name(role, self.style.name(function, width));
        if place.is_empty() {
            return vec![line];
        }
        if line.width() + 2 + columns(place) <= self.style.columns() {
            line.push(Role::Faint, format!("  {place}"));
            return vec![line];
        }
        let mut below = Line::of(Role::Plain, " ".repeat(indent + 2));
        below.push(Role::Faint, self.style.name(place, width));
        vec![line, below]
    }

    /// Returns the files behind the descriptors of sampled calls, commonest first, as strace -y
    /// writes them.
    pub(super) fn fds_of(&self, rows: &[RowId]) -> Vec<Line> {
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        let mut all = 0;
        for call in self.looked_at(rows) {
            let Some(syscall) = row(self.rec, call.row).map(|r| r.syscall) else { continue };
            all += 1;
            if let Some(text) = descriptor(syscall, call) {
                *seen.entry(text).or_default() += 1;
            }
        }
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_by_key(|(_, n)| Reverse(*n));
        let limit = if self.options.all { usize::MAX } else { TOLD };
        let mut shown: Vec<Line> = vec![];
        for (text, n) in seen.iter().take(limit) {
            let mut line = Line::default();
            line.push_name(Role::Plain, text.clone());
            shown.push(line.with(Role::Faint, format!("   {} of {} sampled", grouped(*n), calls(all))));
        }
        if let Some(more) = seen.len().checked_sub(limit).filter(|n| *n > 0) {
            shown.push(Line::of(Role::Faint, format!("{} more: --all shows them", grouped(more as u64))));
        }
        let room = self.style.columns().saturating_sub(DETAIL_TEXT);
        self.beside(DETAIL, "fd", DETAIL_TEXT, shown.into_iter().map(|l| l.fit(room)).collect())
    }

    fn looked_at<'s>(&'s self, rows: &'s [RowId]) -> impl Iterator<Item = &'s WindowCall> {
        self.rec.windows.iter().flat_map(|w| &w.calls).filter(|c| rows.contains(&c.row))
    }
}

/// Returns true if the frame is the API's own function. The C library's internal names start with
/// underscores.
fn is_called(frame: &Frame, api: &str) -> bool {
    frame.function().trim_start_matches('_') == api.trim_start_matches('_')
}

/// Writes `3</etc/passwd>`. Returns `None` if the call has no descriptor or its file is not known.
fn descriptor(syscall: Sysno, call: &WindowCall) -> Option<String> {
    let fd = *call.args.get(syscall.signature()?.fd_arg()?)? as i32;
    let target = call.fd.as_deref()?;
    Some(match target.strip_suffix(" (deleted)") {
        Some(path) => format!("{fd}<{}>(deleted)", clean(path)),
        None => format!("{fd}<{}>", clean(target)),
    })
}
