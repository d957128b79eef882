//! The end of a report (remarks, other calls, the longest calls, problems), and the whole report of
//! a healthy program.

use super::finding::tag;
use super::flags::is_told_by_flags;
use super::header::HEAD;
use super::screen::{CLOSING_TEXT, Report};
use crate::access::{processes, row, rows_of};
use crate::sentences::{Most, subject};
use crate::spender::{Spender, spender};
use crate::style::{Line, Role};
use crate::text::{clean, sentence, shorten};
use crate::units::{calls, counted, grouped, percent, time};
use std::collections::BTreeMap;
use systoll_judge::{Doubt, Finding};
use systoll_model::{Counts, FrameId, Problem, ProblemKind, Row, RowId, Sysno, VdsoRow, WindowCall};

/// Remarks that are shown without `--all`.
const REMARKS: usize = 3;

/// Problems that are shown without `--all`.
const PROBLEMS: usize = 5;

/// Places of needless calls too cheap for a finding that `--all` lists, at most.
const BENEATH: usize = 50;

/// Places of needless calls that `--all` lists whatever they cost, at most.
const ALWAYS: usize = 3;

/// Part of the processor time, 0 to 1, below which a place of needless calls has no line of its own.
const CRUMB: f64 = 0.001;

/// Least number of calls of the place that is named for what no finding mentions.
const LEAST_NAMED: u64 = 100;

/// Least part of all calls, 0 to 1, that this place makes.
const NAMED: f64 = 0.05;

/// System calls outside findings that are shown, at most.
const PARTS: usize = 4;

impl Report<'_> {
    /// Returns the lines below the header of a program without findings.
    pub(super) fn healthy(&self) -> Vec<Line> {
        let nothing = self.sentences().nothing(self.options.only.as_ref());
        let role = if nothing.is_good { Role::Good } else { Role::Warn };
        let mut lines = self.labelled(HEAD, "", HEAD, role, &nothing.text);
        if nothing.is_good && self.options.all {
            lines.extend(self.untold(HEAD, "", HEAD));
            lines.extend(
                self.sentences().children().iter().flat_map(|text| self.labelled(HEAD, "", HEAD, Role::Plain, text)),
            );
        }
        if self.options.all || self.options.stacks || self.options.fds {
            lines.push(Line::default());
            lines.extend(self.largest_cost());
        }
        lines
    }

    /// Returns the lines about needless calls that no finding mentions, calls that may be needless,
    /// and calls that could not be judged.
    fn untold(&self, indent: usize, label: &str, column: usize) -> Vec<Line> {
        let mut beneath = self.sentences().beneath();
        beneath.extend(self.chief_place());
        if beneath.is_empty() { vec![] } else { self.labelled(indent, label, column, Role::Plain, &beneath.join("; ")) }
    }

    /// Names the place that makes most, or many, of the needless calls that no finding mentions, if these are a part of
    /// all calls that a reader would want to know.
    fn chief_place(&self) -> Option<String> {
        let untold = self.judgement.untold;
        let beneath = untold.calls.saturating_add(untold.unsure_calls);
        let chief = self.judgement.beneath.iter().max_by_key(|place| place.calls)?;
        let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        if chief.calls < LEAST_NAMED || share(chief.calls, self.rec.total().calls) < NAMED {
            return None;
        }
        let how_many = match share(chief.calls, beneath) {
            most if most > 0.5 => "most",
            many if many > 1.0 / 3.0 => "many",
            _ => return None,
        };
        let row = row(self.judgement.strands(self.rec), chief.row)?;
        let caller: String = self.caller(row).into_parts().into_iter().map(|(_, text)| text).collect();
        let caller = caller.split_whitespace().collect::<Vec<_>>().join(" ");
        let syscall = row.syscall.to_string();
        // `getsockname  <  utils.py:33` has the call's name twice.
        let caller = caller.strip_prefix(&syscall).map_or(&*caller, |rest| rest.trim_start_matches([' ', '<']));
        let named = !caller.is_empty();
        named.then(|| format!("{how_many} of these are {syscall} calls from {caller} ({})", calls(chief.calls)))
    }

    /// Lists the places of needless calls that no finding mentions.
    fn places_beneath(&self) -> Vec<Line> {
        let places = &self.judgement.beneath;
        let mut lines = vec![];
        let shown = places.iter().take(BENEATH).enumerate();
        let shown = shown.take_while(|(i, beneath)| *i < ALWAYS || !self.is_crumb(beneath.toll_ns));
        let mut told = 0;
        for (i, beneath) in shown {
            told = i + 1;
            let Some(r) = row(self.judgement.strands(self.rec), beneath.row) else { continue };
            let mut first = Line::of(Role::Plain, "  ");
            first.push(Role::Faint, if i == 0 { "of these" } else { "" });
            first.pad_to(CLOSING_TEXT);
            let mut name = Line::default();
            name.push_name(Role::Name, r.syscall.to_string());
            let count = match beneath.sure_calls {
                0 => format!("about {}, unsure", calls(beneath.calls)),
                _ => format!("about {}", calls(beneath.calls)),
            };
            let price = match beneath.toll_ns {
                0 => "at a price unknown".to_owned(),
                ns => format!("about {}{}", time(ns), self.share_of_cpu(ns)),
            };
            let reason = beneath.cause.as_deref().unwrap_or(beneath.kind.name());
            let mut segments = vec![name, Line::of(Role::Plain, count), Line::of(Role::Plain, price)];
            segments.push(Line::of(Role::Faint, sentence(reason)));
            segments.push(self.caller(r));
            lines.extend(crate::style::flow(first, segments, 3, CLOSING_TEXT, self.style.columns()));
            if let Some(cure) = beneath.cure.as_ref().filter(|_| !self.is_crumb(beneath.toll_ns)) {
                let fix = format!("fix: {}", sentence(cure));
                lines.extend(self.labelled(CLOSING_TEXT, "", CLOSING_TEXT, Role::Good, &fix));
            }
        }
        if let Some(rest) = places.get(told..).filter(|rest| !rest.is_empty()) {
            let n = rest.iter().fold(0u64, |sum, beneath| sum.saturating_add(beneath.calls));
            let ns = rest.iter().fold(0u64, |sum, beneath| sum.saturating_add(beneath.toll_ns));
            let price = if ns > 0 { format!(", {}{}", time(ns), self.share_of_cpu(ns)) } else { String::new() };
            let text = format!("{} more with about {}{price}", counted(rest.len() as u64, "place", "places"), calls(n));
            lines.extend(self.closing_line("", Role::Faint, &text));
        }
        lines
    }

    /// Returns true if a price is too small for a line of its own.
    fn is_crumb(&self, toll_ns: u64) -> bool {
        let all = self.sentences().own_cpu_ns().or(self.rec.total().toll_ns).unwrap_or(0);
        (toll_ns as f64) < CRUMB * all as f64
    }

    fn share_of_cpu(&self, ns: u64) -> String {
        self.sentences().share_of_cpu(ns)
    }

    /// Returns the calls that take most of the run and that no finding, remark or pattern above names.
    fn most(&self) -> Vec<Line> {
        let of_pattern = |row: RowId| self.shown_rounds().iter().any(|round| round.rows.iter().any(|r| r.row == row));
        let unnamed = |most: &Most<'_>| most.row.is_none_or(|(row, _)| !of_pattern(row));
        let cpu = self.sentences().most_cpu().filter(unnamed).map(|most| {
            let share = self.sentences().share_of_own_cpu(most.share).unwrap_or_default();
            (
                "most CPU",
                format!("{}{}, {share}", self.about(), time(most.ns)),
                most,
                processor_ns as fn(&WindowCall) -> u64,
            )
        });
        let untold = |_: &Most<'_>| !self.sentences().tells_wall();
        let waiting = self.sentences().most_waiting().filter(untold).map(|most| {
            let share = percent(most.share).unwrap_or_default();
            (
                "waiting",
                format!("waited {}, {share} of the time", time(most.ns)),
                most,
                waited_ns as fn(&WindowCall) -> u64,
            )
        });
        let mut lines = vec![];
        for (label, cost, most, spent) in waiting.into_iter().chain(cpu) {
            let mut name = Line::default();
            name.push_name(Role::Name, most.syscall.to_string());
            let mut segments = vec![name, Line::of(Role::Plain, calls(most.calls)), Line::of(Role::Plain, cost)];
            segments.extend(most.row.map(|(id, row)| self.spending_caller(id, row, spent)));
            let mut first = Line::of(Role::Plain, "  ");
            first.push(Role::Faint, label);
            first.pad_to(CLOSING_TEXT);
            lines.extend(crate::style::flow(first, segments, 3, CLOSING_TEXT, self.style.columns()));
        }
        lines
    }

    /// Returns the system call that a healthy program spent most time in, and its caller.
    fn largest_cost(&self) -> Vec<Line> {
        // In a program with several threads, most threads wait for work all the time, which says
        // nothing about the program.
        let alone = self.rec.header.threads <= processes(self.rec);
        // For a call that never waits, the time waited is time in which other threads had its processor: it does not
        // count.
        let waits = |syscall: Sysno| syscall.signature().is_none_or(|call| call.may_block || call.waits);
        let waited = |c: &Counts, of: Sysno| c.waited_ns.filter(|_| alone && waits(of)).unwrap_or(0);
        let spent = |c: &Counts, of: Sysno| c.toll_ns.unwrap_or(0).max(waited(c, of));
        let totals = self.rec.by_syscall().into_iter();
        let largest =
            totals.map(|t| (spent(&t.counts, t.syscall), t)).filter(|(ns, _)| *ns > 0).max_by_key(|(ns, _)| *ns);
        let Some((_, t)) = largest else { return vec![] };
        let (toll, waited) = (t.counts.toll_ns.unwrap_or(0), waited(&t.counts, t.syscall));
        let price = match waited > toll {
            true => format!("waited {}", time(waited)),
            false => format!("{}{}{}", self.about(), time(toll), self.share_of_cpu(toll)),
        };
        let mut name = Line::default();
        name.push_name(Role::Name, t.syscall.to_string());
        let mut segments = vec![name, Line::of(Role::Plain, calls(t.counts.calls)), Line::of(Role::Plain, price)];
        let rows = (0..).map(RowId).zip(&self.rec.rows).filter(|(_, r)| r.syscall == t.syscall);
        let costliest = rows.max_by_key(|(_, r)| spent(&r.counts, r.syscall));
        if let Some((id, costliest)) = costliest {
            let spent = if waited > toll { waited_ns } else { processor_ns };
            segments.push(self.spending_caller(id, costliest, spent));
        }
        let mut first = Line::of(Role::Plain, "  ");
        first.push(Role::Faint, "most time goes to");
        first.push(Role::Plain, "   ");
        let mut lines = crate::style::flow(first, segments, 3, CLOSING_TEXT, self.style.columns());
        lines.extend(costliest.into_iter().flat_map(|(id, _)| self.looked_into(&[id])));
        lines
    }

    /// Returns the stacks and descriptors of some rows, if they are requested.
    fn looked_into(&self, rows: &[RowId]) -> Vec<Line> {
        let mut lines = vec![];
        if let Some(first) = rows.first().filter(|_| self.options.stacks) {
            lines.extend(self.stacks_of(*first, CLOSING_TEXT + 2));
        }
        if self.options.fds {
            lines.extend(self.fds_of(rows));
        }
        lines
    }

    /// Returns the API and the caller of a row, as in `fgets  <  count wc.c:12`; an empty line if
    /// neither is known.
    pub(super) fn caller(&self, row: &Row) -> Line {
        let mut line = self.api_link(row).unwrap_or_default();
        // A script's line tells more than the interpreter's function does.
        let script = row.lines.first().and_then(|line| self.place_of(line.frame));
        if let Some(place) = script.or_else(|| self.place(row)) {
            if !line.is_empty() {
                line.push(Role::Faint, "  <  ");
            }
            line.append(place);
        }
        line
    }

    /// Returns the API of a row, and of its lines the one that takes most of the row's time, if that is known.
    pub(super) fn spending_caller(&self, id: RowId, row: &Row, spent: fn(&WindowCall) -> u64) -> Line {
        match spender(self.rec, id, spent) {
            Spender::Row => self.caller(row),
            Spender::Unknown => self.api_link(row).unwrap_or_default(),
            Spender::Line(frame) => self.waiting_line(row, frame).unwrap_or_default(),
        }
    }

    /// Returns the API of a row, and one of its lines.
    pub(super) fn waiting_line(&self, row: &Row, frame: FrameId) -> Option<Line> {
        let mut line = self.api_link(row).unwrap_or_default();
        line.push(Role::Faint, if line.is_empty() { "" } else { "  <  " });
        line.append(self.place_of(frame)?);
        Some(line)
    }

    pub(super) fn closing(&self) -> Vec<Line> {
        let healthy = self.judgement.findings.is_empty();
        let some = self.rec.calls() > 0;
        let all = self.options.all;
        let when = |wanted: bool, part: &dyn Fn() -> Vec<Line>| if wanted { part() } else { vec![] };
        // A reader of findings about waiting needs the long calls most.
        let waits = self.judgement.findings.iter().any(Finding::is_about_waiting);
        let parts = [
            when(some, &|| self.remarks("to consider", &self.considered(false))),
            when(some, &|| [self.wall(), self.start()].concat()),
            when(some, &|| self.most()),
            when(some, &|| self.rounds()),
            when(some && all, &|| self.remarks("also seen", &self.also())),
            when(some, &|| self.waits()),
            when(some, &|| self.tables()),
            when(all || waits || self.options.longer_ns.is_some(), &|| self.longest()),
            when(some, &|| self.flags()),
            self.problems(),
            when(some && all && !healthy, &|| [self.remaining(), self.untold(2, "beneath", CLOSING_TEXT)].concat()),
            when(some && all, &|| self.places_beneath()),
            when(some && all, &|| self.vdso()),
            when(all, &|| self.figures()),
            self.sites(),
            when(some && (all || !healthy), &|| self.counted_how()),
        ];
        let mut lines = vec![];
        for (i, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            // Each finding ends with an empty line of its own.
            if i > 0 || healthy {
                lines.push(Line::default());
            }
            lines.extend(part);
        }
        // In a report with findings, an empty line already precedes the first part.
        if !healthy && lines.first().is_some_and(Line::is_empty) {
            lines.remove(0);
        }
        lines
    }

    /// Returns the remarks to consider that are shown above the findings (`above`), as they win more than each of these, or
    /// below them.
    pub(super) fn considered(&self, above: bool) -> Vec<&Finding> {
        let most = self.judgement.findings.iter().map(Finding::time_to_win_ns).max().unwrap_or(u64::MAX);
        let considered = self.judgement.considered(self.rec).into_iter();
        considered.filter(|remark| (remark.time_to_win_ns() > most) == above).collect()
    }

    /// Returns the remarks that are not worth considering.
    fn also(&self) -> Vec<&Finding> {
        let considered = self.judgement.considered(self.rec);
        let is_considered = |remark: &Finding| considered.iter().any(|other| std::ptr::eq(*other, remark));
        self.judgement.also.iter().filter(|remark| !is_considered(remark)).collect()
    }

    pub(super) fn remarks(&self, label: &str, remarks: &[&Finding]) -> Vec<Line> {
        let limit = if self.options.all { usize::MAX } else { REMARKS };
        let mut lines = vec![];
        for (i, f) in remarks.iter().take(limit).enumerate() {
            let mut first = Line::of(Role::Plain, "  ");
            first.push(Role::Faint, if i == 0 { label } else { "" });
            first.pad_to(CLOSING_TEXT);
            lines.extend(crate::style::flow(first, self.remark(f), 3, CLOSING_TEXT, self.style.columns()));
            lines.extend(self.why_a_remark(f));
            lines.extend(self.looked_into(&f.rows));
        }
        if let Some(more) = remarks.len().checked_sub(limit).filter(|more| *more > 0) {
            lines.extend(self.closing_line("", Role::Faint, &format!("{more} more: --all shows them")));
        }
        lines
    }

    fn remark(&self, f: &Finding) -> Vec<Line> {
        let cost = self.sentences().cost(f);
        let about =
            if f.is_about_waiting() || cost.time.starts_with("about ") || !cost.is_known { "" } else { "about " };
        let share = if cost.share.is_empty() { String::new() } else { format!(", {}", cost.share) };
        let mut segments = vec![
            subject(f, self.style),
            Line::of(Role::Plain, self.sentences().count(f)),
            Line::of(Role::Plain, format!("{about}{}{share}", cost.time)),
        ];
        segments.push(Line::of(Role::Faint, tag(f)));
        let strands = self.of_strands();
        if let Some((first, r)) = f.strands.first().and_then(|id| Some((id, row(strands.rec, *id)?))) {
            let mut caller = strands.caller(r);
            let shown = r.lines.first().map(|line| line.frame).or(r.user);
            let outwards =
                shown.filter(|_| self.has_several_callers(f)).and_then(|id| strands.place_outwards(*first, id));
            if let Some(place) = outwards {
                caller.push(Role::Faint, "  <  ");
                caller.append(place);
            }
            segments.push(caller);
        }
        segments
    }

    /// Returns true if the place of a finding's first row is called from several others, so that it does not tell which of
    /// these makes the finding's calls.
    fn has_several_callers(&self, f: &Finding) -> bool {
        let several = |id: RowId| self.rec.trunks_of(id).len() > 1;
        f.rows.first().is_some_and(|id| several(*id) || row(self.rec, *id).is_some_and(|row| row.lines.len() > 1))
    }

    /// Returns the reason why a finding is only a remark, unless its price shows that, and the next step.
    fn why_a_remark(&self, f: &Finding) -> Vec<Line> {
        let findings = &self.judgement.findings;
        let costs_more = findings.iter().any(|finding| finding.time_to_win_ns() <= f.time_to_win_ns());
        let doubt = self.sentences().doubt(f).filter(|_| costs_more || f.doubt != Some(Doubt::Cheap));
        let below = |doubt: String| self.labelled(CLOSING_TEXT, "", CLOSING_TEXT, Role::Plain, &doubt);
        let later = self.sentences().later(f).map(|later| below(format!("plus {later}")));
        let mut lines = later.unwrap_or_default();
        lines.extend(doubt.map(below).unwrap_or_default());
        if let Some(cure) = f.cures.first() {
            let fix = format!("fix: {}", sentence(&cure.how));
            lines.extend(self.labelled(CLOSING_TEXT, "", CLOSING_TEXT, Role::Good, &fix));
        }
        lines
    }

    /// Returns the calls of no finding: their number, their cost, and the largest parts of them.
    fn remaining(&self) -> Vec<Line> {
        let found = rows_of(&self.judgement.findings);
        let rest = |i: usize| u32::try_from(i).is_ok_and(|i| !found.contains(&RowId(i)));
        let rows = self.rec.rows.iter().enumerate().filter(|(i, _)| rest(*i)).map(|(_, r)| r);
        let mut total = Counts::default();
        let mut parts: Vec<(Sysno, u64, u64)> = vec![];
        for r in rows {
            total.merge(&r.counts);
            let (n, ns) = (r.counts.calls, r.counts.toll_ns.unwrap_or(0));
            match parts.iter_mut().find(|(s, ..)| *s == r.syscall) {
                Some(part) => *part = (part.0, part.1.saturating_add(n), part.2.saturating_add(ns)),
                None => parts.push((r.syscall, n, ns)),
            }
        }
        if total.calls == 0 {
            return self.closing_line("the others", Role::Plain, "no call");
        }
        parts.sort_by_key(|(syscall, n, ns)| (std::cmp::Reverse((*ns, *n)), *syscall));
        let named: Vec<_> =
            parts.iter().take(PARTS).map(|(syscall, n, _)| format!("{syscall} {}", grouped(*n))).collect();
        let more = if parts.len() > PARTS { " …" } else { "" };
        let toll = match total.toll_ns {
            Some(ns) => format!(", {}{}{}", self.about(), time(ns), self.share_of_cpu(ns)),
            None => String::new(),
        };
        let start = match total.startup_calls {
            0 => String::new(),
            n => format!(" ({} before main)", grouped(n)),
        };
        let text = format!("{}{start}{toll}: {}{more}", calls(total.calls), named.join(", "));
        self.closing_line("the others", Role::Plain, &text)
    }

    /// Returns the calls into the vDSO, by function, with their main caller.
    fn vdso(&self) -> Vec<Line> {
        let mut by_function: BTreeMap<&str, u64> = BTreeMap::new();
        for v in &self.rec.vdso {
            let sum = by_function.entry(&v.function).or_default();
            *sum = sum.saturating_add(v.calls);
        }
        let mut by_function: Vec<_> = by_function.into_iter().filter(|(_, calls)| *calls > 0).collect();
        if by_function.is_empty() {
            return vec![];
        }
        by_function.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        let named: Vec<_> = by_function
            .iter()
            .map(|(name, calls)| format!("{} {}()", grouped(*calls), shorten(&clean(name), 40)))
            .collect();
        let mut first = Line::of(Role::Plain, "  ");
        first.push(Role::Faint, "vDSO");
        first.pad_to(CLOSING_TEXT);
        let text = format!("{} answered by the vDSO, no system calls", named.join(", "));
        let mut segments = vec![Line::of(Role::Plain, text)];
        if let Some(most) = self.rec.vdso.iter().max_by_key(|v| v.calls) {
            segments.push(self.vdso_caller(most));
        }
        crate::style::flow(first, segments, 3, CLOSING_TEXT, self.style.columns())
    }

    fn vdso_caller(&self, v: &VdsoRow) -> Line {
        let mut line = Line::default();
        if let Some(api) = &v.api {
            line.push_name(Role::Name, shorten(&clean(api), 56));
        }
        if let Some(place) = v.user.and_then(|id| self.place_of(id)) {
            line.push(Role::Faint, if line.is_empty() { "" } else { "  <  " });
            line.append(place);
        }
        line
    }

    /// Returns the numbers of system call sites by the way in which they were hooked, for `--all`.
    fn sites(&self) -> Vec<Line> {
        let Some(s) = self.rec.header.sites.filter(|_| self.options.all) else { return vec![] };
        let text = format!(
            "{} places make calls: {} timed, {} counted only, {} not covered; {} hooked as their files came",
            grouped(s.timed.saturating_add(s.counted).saturating_add(s.not_covered)),
            grouped(s.timed),
            grouped(s.counted),
            grouped(s.not_covered),
            grouped(s.on_arrival)
        );
        self.closing_line("sites", Role::Faint, &text)
    }

    /// Returns the problems, first those that put the counts in doubt.
    fn problems(&self) -> Vec<Line> {
        // Doubts about names matter only if names are shown, as in findings.
        let every = self.options.all || self.options.stacks;
        let matters = |p: &Problem| (every || self.sentences().matters(p)) && !is_told_by_flags(p);
        let problems = self.sentences().problems(matters, !self.options.all);
        let limit = if self.options.all { usize::MAX } else { PROBLEMS };
        let only_notes = self.rec.problems.iter().filter(|p| matters(p)).all(|p| p.kind == ProblemKind::Note);
        let mut lines = vec![];
        for (i, problem) in problems.iter().take(limit).enumerate() {
            let label = match (i, problems.len()) {
                (0, 1) if only_notes => "note",
                (0, _) if only_notes => "notes",
                (0, 1) => "problem",
                (0, _) => "problems",
                _ => "",
            };
            lines.extend(self.closing_line(label, Role::Warn, &sentence(problem)));
        }
        if let Some(more) = problems.len().checked_sub(limit).filter(|more| *more > 0) {
            lines.extend(self.closing_line("", Role::Faint, &format!("{more} more: --all shows them")));
        }
        lines
    }
}

pub(super) fn waited_ns(call: &WindowCall) -> u64 {
    call.waited_ns.unwrap_or(0)
}

fn processor_ns(call: &WindowCall) -> u64 {
    call.elapsed_ns.saturating_sub(waited_ns(call))
}
