//! One finding: its calls, price, caller, mechanism, cures, and the next command.

use super::screen::{DETAIL, DETAIL_TEXT, Report, SHOWN};
use crate::access::row;
use crate::sentences::{OBJECT, subject};
use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, sentence, shell_lines, shorten};
use crate::units::{calls, counted, grouped, percent, time};
use std::collections::BTreeMap;
use systoll_judge::{AskingLine, Finding, ObjectShare, line_bounds, requested};
use systoll_model::{Row, RowId, RowLine};

/// Cures that are shown without `--all`.
const CURES: usize = 2;

/// Largest number of lines of a command to type next, without `--all`: a command that names many files is as long as
/// their list.
const COMMAND_LINES: usize = 8;

/// Share of calls below which a script's line is shown only with `--all`.
const FAINT_LINE: f64 = 0.01;

/// Name of a place of which neither the API nor the line is known; with fewer calls than [`FAINT_LINE`] it is shown only
/// with `--all`.
const NOWHERE: &str = "an unknown place";

/// Width of the 95 % interval of a line's share, 0 to 1, above which no line's share is shown.
///
/// At 0.5, a line was shown with 62 % that could have 37 to 87 %.
pub(super) const VAGUE: f64 = 0.3;

/// Programs that are shown without `--all`.
const PROGRAMS: usize = 8;

/// Other places that are shown without `--all`.
const PLACES: usize = 3;

impl Report<'_> {
    /// Returns the report of the calls as findings see them: each row's lines and callers are those of a finding's objects.
    pub(super) fn of_strands(&self) -> Report<'_> {
        Report { rec: self.judgement.strands(self.rec), ..*self }
    }

    pub(super) fn finding(&self, number: usize, f: &Finding) -> Vec<Line> {
        let mut lines = self.finding_head(number, f);
        let strands = self.of_strands();
        if let Some(id) = f.strands.first() {
            lines.extend(strands.chain(*id, f.phase));
        }
        lines.extend(strands.script_lines(f));
        lines.extend(self.asked(f));
        if self.options.fds {
            lines.extend(self.fds_of(&f.rows));
        }
        lines.extend(self.programs(f));
        lines.extend(strands.other_places(f));
        lines.extend(self.needless_part(f));
        lines.extend(self.per_unit(f));
        lines.extend(
            self.sentences().in_excerpt(f).map_or_else(Vec::new, |text| self.detail("shown", Role::Plain, &text)),
        );
        lines.extend(self.later(f));
        if !f.why.is_empty() {
            lines.extend(self.detail("why", Role::Plain, &sentence(&f.why)));
        }
        lines.extend(self.cures(f));
        lines.extend(self.next_command(f));
        lines
    }

    /// Returns a line about the findings that `shown` leaves out.
    pub(super) fn hidden(&self) -> Vec<Line> {
        let findings = &self.judgement.findings;
        if self.options.all || findings.len() <= SHOWN {
            return vec![];
        }
        let rest = findings[SHOWN..].iter();
        let toll = rest.fold(0u64, |sum, f| sum.saturating_add(f.needless_toll_ns));
        let text = format!("{} findings, about {}: --all shows them", findings.len() - SHOWN, time(toll));
        self.closing_line("and", Role::Plain, &text)
    }

    fn finding_head(&self, number: usize, f: &Finding) -> Vec<Line> {
        let first = Line::of(Role::Strong, format!("{number:>3}  "));
        let count = Line::of(Role::Plain, self.sentences().count_and_rate(f));
        let segments = [vec![subject(f, self.style), count], self.price(f)].concat();
        let width = self.style.columns();
        let mut lines = crate::style::flow(first, segments, 3, DETAIL, width);
        let tag = tag(f);
        if let Some(last) = lines.last_mut() {
            if last.width() + 3 + columns(&tag) <= width {
                last.pad_to(width - columns(&tag));
                last.push(tag_role(f), tag);
            } else {
                lines.extend(self.detail(if f.cause.is_some() { "cause" } else { "kind" }, tag_role(f), &tag));
            }
        }
        lines
    }

    /// Returns the cost of a finding.
    fn price(&self, f: &Finding) -> Vec<Line> {
        let cost = self.sentences().cost(f);
        let share = if cost.has_share { Role::Bad } else { Role::Plain };
        vec![Line::of(if cost.is_known { Role::Bad } else { Role::Warn }, cost.time), Line::of(share, cost.share)]
    }

    /// Returns the other places of a finding, one for each API and user line.
    fn other_places(&self, f: &Finding) -> Vec<Line> {
        let rows: Vec<(RowId, &Row)> = f.strands.iter().filter_map(|id| Some((*id, row(self.rec, *id)?))).collect();
        let Some((_, first)) = rows.first() else { return vec![] };
        // Places are grouped by their text: several places in code without lines look the same.
        let plain = Style { color: false, width: 0, whole_names: false };
        let named = |r: &Row| self.place_and_api(r).render(&plain);
        let shown = named(first);
        let mut calls_from: BTreeMap<String, CallingPlace> = BTreeMap::new();
        // If the rows also have useful calls, only the needless ones are counted.
        let of_part = f.calls_about.is_some();
        for (at, (id, row)) in rows.into_iter().enumerate() {
            let needless = f.by_row.get(at).filter(|_| of_part).map(|part| part.calls);
            let place = calls_from.entry(named(row)).or_insert(CallingPlace { calls: 0, id, row });
            place.calls = place.calls.saturating_add(needless.unwrap_or(row.counts.calls));
        }
        calls_from.remove(&shown);
        let all = calls_from.values().fold(0u64, |sum, place| sum.saturating_add(place.calls));
        let tells = |name: &str, place: &CallingPlace| name != NOWHERE || place.calls as f64 >= FAINT_LINE * all as f64;
        calls_from.retain(|name, place| self.options.all || tells(name, place));
        let mut places: Vec<(String, CallingPlace)> = calls_from.into_iter().collect();
        places.sort_by(|(a, one), (b, other)| other.calls.cmp(&one.calls).then_with(|| a.cmp(b)));
        let limit = if self.options.all { usize::MAX } else { PLACES };
        let about = if of_part { "about " } else { "" };
        let segment = |p: &CallingPlace| match f.starts {
            // Samples show who starts programs, and too few of them how many.
            true => self.place_and_api(p.row),
            false => {
                let lines = p.row.lines.iter().filter(|line| p.row.share(line) >= FAINT_LINE).count() as u64;
                let others = lines.checked_sub(1).filter(|others| *others > 0);
                let others = others.map(|others| format!(" and {}", counted(others, "more line", "more lines")));
                let number = format!("{}, {about}{}", others.unwrap_or_default(), calls(p.calls));
                self.place_and_api(p.row).with(Role::Faint, number)
            }
        };
        let more = places.len().checked_sub(limit).filter(|more| *more > 0);
        let more = more.map(|more| Line::of(Role::Faint, counted(more as u64, "more place", "more places")));
        let mut label = Line::of(Role::Plain, " ".repeat(DETAIL));
        label.push(Role::Faint, "also");
        label.pad_to(DETAIL_TEXT);
        places.truncate(limit);
        if self.options.stacks {
            let of = |(_, p): &(String, CallingPlace)| {
                let head = self.segments(label.clone(), vec![segment(p)], DETAIL_TEXT);
                [head, self.stacks_of(p.id, DETAIL_TEXT)].concat()
            };
            let rest = more.map(|more| self.segments(label.clone(), vec![more], DETAIL_TEXT));
            return places.iter().flat_map(of).chain(rest.into_iter().flatten()).collect();
        }
        let segments: Vec<Line> = places.iter().map(|(_, p)| segment(p)).chain(more).collect();
        if segments.is_empty() {
            return vec![];
        }
        self.segments(label, segments, DETAIL_TEXT)
    }

    /// Returns the lines of a script that make the calls of a finding's most expensive row, with
    /// their shares, if there are several.
    fn script_lines(&self, f: &Finding) -> Vec<Line> {
        let Some(row) = f.strands.first().and_then(|id| row(self.rec, *id)) else { return vec![] };
        let tells = |l: &&RowLine| self.options.all || row.share(l) >= FAINT_LINE;
        let reported: Vec<&RowLine> = row.lines.iter().filter(tells).collect();
        if reported.len() < 2 {
            return vec![];
        }
        let looks = row.lines.iter().fold(0u64, |sum, l| sum.saturating_add(l.looks));
        let limit = if self.options.all { usize::MAX } else { PLACES };
        let is_vague = |l: &&RowLine| line_bounds(row, l).is_none_or(|(low, high)| high - low > VAGUE);
        let vague = reported.iter().any(is_vague);
        let segment = |l: &&RowLine| {
            let share = percent(row.share(l)).filter(|_| !vague).map_or_else(String::new, |share| format!(" {share}"));
            self.place_of(l.frame).unwrap_or_default().with(Role::Faint, share)
        };
        let mut segments: Vec<Line> = reported.iter().take(limit).map(segment).collect();
        if let Some(more) = reported.len().checked_sub(limit).filter(|more| *more > 0) {
            segments.push(Line::of(Role::Faint, format!("{more} more")));
        }
        // Samples are of all calls of a line, also of those about other objects.
        let has_others = !f.starts && f.calls_about.is_some_and(|about| about.high < f.calls);
        let others = if has_others { ", calls about others among them" } else { "" };
        let too_few = if vague { ", too few for shares" } else { "" };
        segments.push(Line::of(Role::Faint, format!("{}{too_few}{others}", counted(looks, "sample", "samples"))));
        let mut label = Line::of(Role::Plain, " ".repeat(DETAIL));
        label.push(Role::Faint, "lines");
        label.pad_to(DETAIL_TEXT);
        self.segments(label, segments, DETAIL_TEXT)
    }

    /// Returns the lines that asked a pool of threads for the calls, and the price of handing the work over.
    fn asked(&self, f: &Finding) -> Vec<Line> {
        let Some(told) = requested(self.rec, &f.rows) else { return vec![] };
        let all = told.lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.looks));
        let limit = if self.options.all { usize::MAX } else { PLACES };
        let segment = |line: &AskingLine| {
            let share = percent(line.share).unwrap_or_default();
            self.place_of(line.frame).unwrap_or_default().with(Role::Faint, format!(" {share}"))
        };
        let mut segments: Vec<Line> = told.lines.iter().take(limit).map(segment).collect();
        let operations = told.operations.iter().map(|o| clean(o)).collect::<Vec<_>>().join(", ");
        let by = if operations.is_empty() { String::new() } else { format!(", by {operations}") };
        let seen = match all {
            0 => format!("of {}{by}: no caller was seen", told.pool),
            _ => format!("of {}{by}; {} {}", told.pool, counted(all, "sample", "samples"), told.asked_at),
        };
        segments.push(Line::of(Role::Faint, seen));
        if told.hand_over_calls > 0 {
            let (number, toll) = (calls(told.hand_over_calls), time(told.hand_over_ns));
            segments.push(Line::of(
                Role::Plain,
                format!("handing over all of its work took at least {number} more, {toll}"),
            ));
        }
        let mut label = Line::of(Role::Plain, " ".repeat(DETAIL));
        label.push(Role::Faint, "asked");
        label.pad_to(DETAIL_TEXT);
        self.segments(label, segments, DETAIL_TEXT)
    }

    /// Returns the API and its caller: `mktime < rotate log.c:80`.
    fn place_and_api(&self, row: &Row) -> Line {
        let mut line = Line::default();
        let api = self.api_link(row);
        let place = self.place(row).filter(|_| api.is_none() || !is_by_chance(row));
        for link in [api, place].into_iter().flatten() {
            if !line.is_empty() {
                line.push(Role::Faint, " < ");
            }
            line.append(link);
        }
        if line.is_empty() {
            line.push(Role::Faint, NOWHERE);
        }
        line
    }

    /// Returns the programs that are started, each with its number.
    fn programs(&self, f: &Finding) -> Vec<Line> {
        let limit = if self.options.all { usize::MAX } else { PROGRAMS };
        let times = |share: f64| grouped((share * f.needless.estimate as f64).round() as u64);
        let of = |program: &ObjectShare| {
            let name = clean(&program.name);
            let name = name.rsplit('/').next().unwrap_or(&name);
            format!("{} {}×", shorten(name, OBJECT), times(program.share))
        };
        let mut programs: Vec<String> = f.objects.iter().filter(|_| f.starts).take(limit).map(of).collect();
        if programs.is_empty() {
            return vec![];
        }
        if let Some(more) = f.objects.len().checked_sub(limit).filter(|more| *more > 0) {
            programs.push(format!("{more} more"));
        }
        self.detail("which", Role::Plain, &programs.join(", "))
    }

    /// Returns the number of needless calls, if not all are needless.
    fn needless_part(&self, f: &Finding) -> Vec<Line> {
        if self.sentences().all_needless(f) {
            return vec![];
        }
        self.detail(if f.starts { "calls" } else { "of it" }, Role::Plain, &self.sentences().needless(f))
    }

    /// Returns the number of needless calls for each request, connection, ….
    fn per_unit(&self, f: &Finding) -> Vec<Line> {
        self.sentences().per_unit(f).map_or_else(Vec::new, |text| self.detail("each", Role::Plain, &text))
    }

    /// Returns the costs that the needless calls cause after they have returned.
    fn later(&self, f: &Finding) -> Vec<Line> {
        self.sentences().later(f).map_or_else(Vec::new, |text| self.detail("plus", Role::Warn, &text))
    }

    fn cures(&self, f: &Finding) -> Vec<Line> {
        let mut lines = vec![];
        // Each listed program gets a cure, as far as cures are for one program.
        let for_each = f.cures.iter().take(PROGRAMS).take_while(|cure| cure.is_for_one).count();
        let limit = if self.options.all { usize::MAX } else { CURES.max(for_each) };
        for (i, cure) in f.cures.iter().take(limit).enumerate() {
            lines.extend(self.detail(if i == 0 { "fix" } else { "or" }, Role::Good, &sentence(&cure.how)));
            // Further cures show what they give up only with `--all`: a first look needs one cure
            // and its price.
            if !cure.gives_up.is_empty() && (i == 0 || self.options.all) {
                lines.extend(self.detail("", Role::Plain, &format!("gives up: {}", sentence(&cure.gives_up))));
            }
        }
        lines
    }

    /// Returns the command to type next, with the expected gain beside it or before it.
    fn next_command(&self, f: &Finding) -> Vec<Line> {
        let words: Vec<&str> = f.prove.iter().map(String::as_str).take(2).collect();
        let label = match words.as_slice() {
            [] => return self.gain(f),
            ["systoll", "explain"] => "more",
            _ => "try",
        };
        let width = self.style.columns();
        let mut commands = shell_lines(&f.prove, width.saturating_sub(DETAIL_TEXT));
        let beyond = commands.len().saturating_sub(COMMAND_LINES);
        if beyond > 0 && !self.options.all {
            commands.truncate(COMMAND_LINES);
            commands.push(format!("… ({} more lines; --all shows them)", grouped(beyond as u64)));
        }
        let commands = commands.into_iter().map(|c| Line::of(Role::Good, c)).collect();
        let mut lines = self.beside(DETAIL, label, DETAIL_TEXT, commands);
        let gain = self.sentences().gain(f);
        // Without an expected gain, this is a lower bound and no promise: work around the calls may
        // come on top.
        let told = gain.as_ref().map_or_else(
            || format!("the calls alone take {}", time(f.needless_toll_ns)),
            |gain| format!("expected gain: {gain}"),
        );
        let promising = label == "try" && !f.is_about_waiting() && f.needless_toll_ns > 0;
        let fits = |line: &&mut Line| line.width() + 4 + columns(&told) <= width;
        if let Some(line) = lines.last_mut().filter(|_| promising).filter(fits) {
            line.pad_to(width - columns(&told));
            line.push(Role::Faint, told);
            return lines;
        }
        [self.gain(f), lines].concat()
    }

    fn gain(&self, f: &Finding) -> Vec<Line> {
        // Calls that a pool no longer makes are no longer handed to it.
        let of_hand_over = requested(self.rec, &f.rows).filter(|told| told.hand_over_ns > 0 && told.work_calls > 0);
        let of_hand_over = of_hand_over.map_or_else(String::new, |told| {
            let share = (f.needless.estimate as f64 / told.work_calls as f64).min(1.0);
            format!(", and up to {} of handing them over", time((told.hand_over_ns as f64 * share) as u64))
        });
        let told = self.sentences().gain(f).map(|gain| format!("expected: {gain} of CPU{of_hand_over}"));
        told.map_or_else(Vec::new, |told| self.detail("gain", Role::Plain, &told))
    }
}

/// Returns true if a script's line may be any of several: one sample stands for many calls, or the only line known is that of
/// other processes.
fn is_by_chance(row: &Row) -> bool {
    /// Least number of calls that one sample does not speak for.
    const MANY: u64 = 100;
    match (row.lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.looks)), row.lines.len()) {
        (0, 1) => true,
        (looks, _) => looks == 1 && row.counts.calls >= MANY,
    }
}

/// A place in the source that makes calls of a finding.
struct CallingPlace<'r> {
    /// Number of calls of all places with the same text.
    calls: u64,
    /// Id of one of these places' rows.
    id: RowId,
    row: &'r Row,
}

/// Returns the cause's id; if there is no cause, the name of the kind of waste.
pub(super) fn tag(f: &Finding) -> String {
    f.cause.as_ref().map_or_else(|| f.kind.name().to_owned(), |id| clean(id))
}

fn tag_role(f: &Finding) -> Role {
    if f.cause.is_some() { Role::Strong } else { Role::Faint }
}
