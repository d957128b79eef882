//! Sentences about a trace that shows a part of a run, or only its counts.

use super::Sentences;
use crate::access::row;
use crate::units::{calls, grouped, percent, rate, time};
use systoll_judge::{Counted, Finding, Wait};

impl Sentences<'_> {
    /// Describes the waits of calls: `ran out of time 12 times, 60.1 s of the 72.9 s shown, at most
    /// 5.01 s`.
    pub(crate) fn wait(&self, wait: &Wait) -> String {
        let shown = self.rec.header.wall_ns;
        let of = match wait.share {
            Some(share) if share <= 1.0 => format!(" of the {} shown", time(shown)),
            Some(_) => format!(", of several threads, in the {} shown", time(shown)),
            None => String::new(),
        };
        match (wait.ran_out, wait.calls) {
            (true, 1) => format!("ran out of time after {}{of}", time(wait.ns)),
            (true, n) => format!(
                "ran out of time {} times: {}{of}, at most {}",
                grouped(n),
                time(wait.ns),
                time(wait.longest_ns)
            ),
            (false, 1) => format!("waited {}{of}", time(wait.ns)),
            (false, n) => format!("{} waited {}{of}, at most {}", calls(n), time(wait.ns), time(wait.longest_ns)),
        }
    }

    /// Describes a row of a table, and a possible cause.
    pub(crate) fn counted(&self, counted: &Counted) -> String {
        let may_be =
            if counted.may_be.is_empty() { String::new() } else { format!("; it may be that it {}", counted.may_be) };
        format!("{}{may_be}", counted.text)
    }

    /// Returns the share of a finding's calls in an excerpt's calls, and their rate in the time
    /// shown.
    pub(crate) fn in_excerpt(&self, f: &Finding) -> Option<String> {
        if !self.judgement.is_excerpt || self.rec.calls() == 0 {
            return None;
        }
        let looked_at = f.evidence;
        let share = percent(f.calls as f64 / self.rec.calls() as f64).unwrap_or_default();
        let shown = self.rec.header.wall_ns;
        let rate = if shown > 0 { rate(f.calls, shown) } else { None };
        let rate = rate.map_or_else(String::new, |rate| format!(", {rate} over the {} shown", time(shown)));
        let priced = if f.needless_toll_ns > 0 && !f.is_about_waiting() { "; priced by this box" } else { "" };
        Some(format!(
            "an excerpt shows {} of them, {share} of all it shows{rate}; {} of the {} sampled {} needless{priced}",
            grouped(f.calls),
            grouped(looked_at.claimed),
            grouped(looked_at.calls),
            if looked_at.claimed == 1 { "is" } else { "are" }
        ))
    }

    /// Returns true if the recording is a table of counts.
    pub(crate) fn is_table(&self) -> bool {
        self.rec.header.backend.is_trace() && self.rec.windows.is_empty() && self.rec.calls() > 0
    }

    /// Returns the name of the table that contains a row; `None` if the file has only one table.
    pub(crate) fn table_name(&self, counted: &Counted) -> Option<&str> {
        let process = self.rec.processes.get(counted.process.0 as usize)?;
        (self.rec.processes.len() > 1 && !process.exe.is_empty()).then_some(&*process.exe)
    }

    /// Compares two tables of one file, rows that differ most first.
    pub(crate) fn two_tables(&self) -> Option<Vec<String>> {
        let [first, second] = self.rec.processes.as_slice() else { return None };
        if !self.is_table() || first.pid != 0 || second.pid != 0 {
            return None;
        }
        let mut both: std::collections::BTreeMap<_, [u64; 2]> = std::collections::BTreeMap::new();
        let mut sums = [(0u64, 0u64); 2];
        for row in &self.rec.rows {
            let side = usize::from(row.process.0 != 0);
            let counts = both.entry(row.syscall).or_default();
            if let (Some(n), Some(sum)) = (counts.get_mut(side), sums.get_mut(side)) {
                *n = n.saturating_add(row.counts.calls);
                *sum = (sum.0.saturating_add(row.counts.calls), sum.1.saturating_add(row.counts.elapsed_ns));
            }
        }
        let [(old_calls, old_ns), (new_calls, new_ns)] = sums;
        let times =
            if old_ns > 0 || new_ns > 0 { format!(", {} and {}", time(old_ns), time(new_ns)) } else { String::new() };
        let mut lines = vec![format!("{} and {} calls{times}", grouped(old_calls), grouped(new_calls))];
        let mut changed: Vec<_> = both.into_iter().filter(|(_, [old, new])| old != new).collect();
        changed.sort_by_key(|(syscall, [old, new])| (std::cmp::Reverse(old.abs_diff(*new)), *syscall));
        if changed.is_empty() {
            lines.push("each row has the same count in both".into());
        }
        let told = |(syscall, [old, new]): (systoll_model::Sysno, [u64; 2])| {
            format!("{syscall} {} → {}", grouped(old), grouped(new))
        };
        lines.extend(changed.into_iter().take(CHANGES).map(told));
        Some(lines)
    }

    /// Returns the command that shows what the calls of a table's row are about, with the program's
    /// own command if it is known.
    pub(crate) fn find_out(&self, counted: &Counted) -> Vec<String> {
        let command = &self.rec.header.command;
        let words = counted.find_out.iter();
        if command.is_empty() {
            return words.cloned().collect();
        }
        words.filter(|word| *word != "CMD").chain(command).cloned().collect()
    }

    /// Returns the row that waited, for a line that names its caller; `None` if no stack shows it.
    pub(crate) fn waits_in(&self, wait: &Wait) -> Option<&systoll_model::Row> {
        row(self.rec, wait.row)
    }
}

/// Rows of two tables that are listed as different, at most.
const CHANGES: usize = 6;
