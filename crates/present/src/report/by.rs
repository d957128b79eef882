//! The report of `--by`: the calls regrouped, one line a group.

use super::screen::{DETAIL, Report};
use crate::narrowing::Narrowing;
use crate::style::{LONGEST_NAME, Line, Role, Style};
use crate::text::{clean, columns, shorten};
use crate::units::{calls, counted, grouped, percent_of, time};
use std::cmp::Reverse;
use std::io;
use systoll_judge::{By, Common, Group, Grouping, Judgement};
use systoll_model::{ProcessId, Recording, Row, RowId, short_file};

use super::screen::ReportOptions;
use crate::access::{frame, module, row};

/// Groups that are shown without `--all`.
const GROUPS: usize = 20;

/// Share of the processor time below which groups are summed up, unless `--all` is given.
const SMALL: f64 = 0.001;

/// Groups that are shown in any case, however small they are.
const LEAST_GROUPS: usize = 5;

/// Columns that a group's name needs beside its figures.
const NAME: usize = 24;

/// Columns that a path or a socket needs, since their ends distinguish them.
const LONG_NAME: usize = 36;

/// Least number of columns in which a name can be distinguished from others.
const LEAST_NAME: usize = 12;

/// Number of a group's figures.
const COLUMNS: usize = 7;

type Cells = [String; COLUMNS];

const HEADINGS: [&str; COLUMNS] = ["calls", "between", "sampled", "errors", "time", "of CPU", "waited"];

/// Figures that are left out, in this order, if a name would find no room: sampled calls, errors,
/// waiting, share.
const DROPPED: [usize; 4] = [2, 3, 6, 5];

/// Writes the recording's calls grouped by `grouping`: one line a group, most expensive first, at
/// most `limit` lines (20 if `None`, all with `--all`). Figures from windows have bounds and the
/// number of sampled calls.
///
/// # Errors
/// The errors of `w`.
pub fn write_grouping(
    w: &mut dyn io::Write,
    rec: &Recording,
    grouping: &Grouping,
    limit: Option<usize>,
    options: &ReportOptions,
    style: &Style,
) -> io::Result<()> {
    let judgement = Judgement::default();
    let report = Report { rec, judgement: &judgement, options, style: *style };
    for line in report.grouping(grouping, limit) {
        writeln!(w, "{}", line.render(style))?;
    }
    Ok(())
}

impl Report<'_> {
    fn grouping(&self, grouping: &Grouping, limit: Option<usize>) -> Vec<Line> {
        let mut lines = self.header();
        lines.push(Line::default());
        if grouping.groups.is_empty() {
            lines.push(self.no_groups(grouping));
            return self.with_problems(lines);
        }
        let own = self.sentences().own_cpu_ns();
        let most = limit.unwrap_or(if self.options.all { usize::MAX } else { telling(grouping, own).min(GROUPS) });
        let shown = &grouping.groups[..grouping.groups.len().min(most)];
        let cells: Vec<Cells> = shown.iter().map(|g| self.cells(grouping, own, g)).collect();
        let total = self.total_cells(grouping, own);
        let table = self.table(grouping.by, &cells, &total);
        lines.extend(table.lines(
            self,
            &HEADINGS.map(str::to_owned),
            Line::of(Role::Strong, grouping.by.name()),
            Role::Strong,
        ));
        for (group, cells) in shown.iter().zip(&cells) {
            lines.extend(table.lines(self, cells, self.group_name(grouping.by, &group.common), Role::Plain));
            lines.extend(self.beneath(grouping.by, group));
        }
        if let Some(more) = grouping.groups.len().checked_sub(shown.len()).filter(|n| *n > 0) {
            let rest = grouping.groups.iter().skip(shown.len()).fold(0u64, |sum, g| sum.saturating_add(g.calls));
            let what = counted(more as u64, "group", "groups");
            lines.push(Line::of(Role::Faint, format!("  {what} more with {}: --all shows them", calls(rest))));
        }
        lines.extend(table.lines(self, &total, Line::of(Role::Strong, "all"), Role::Strong));
        if grouping.sampled {
            lines.push(Line::default());
            let text = "sampled: calls are estimates from samples, between bounds that hold \
                        19 times in 20";
            lines.extend(self.labelled(2, "", 2, Role::Warn, text));
        }
        lines.push(Line::default());
        lines.extend(self.counted_how());
        self.with_problems(lines)
    }

    /// Returns the line that tells why there are no groups.
    fn no_groups(&self, grouping: &Grouping) -> Line {
        let none = self.options.only.as_ref().map(Narrowing::none_seen);
        let text = match (grouping.by, grouping.total.calls) {
            (_, 0) => none.as_deref().unwrap_or("no such system call was seen"),
            (By::Thread, _) => "this recording does not tell threads apart",
            _ => "nothing to group",
        };
        Line::of(Role::Warn, format!("  {text}"))
    }

    /// Returns the columns that have figures and for which there is room beside readable names.
    fn table(&self, by: By, cells: &[Cells], total: &Cells) -> GroupTable {
        let mut used: Vec<bool> = (0..COLUMNS)
            .map(|i| cells.iter().chain([total]).any(|c| c.get(i).is_some_and(|c| !c.is_empty())))
            .collect();
        let headings = HEADINGS.map(str::to_owned);
        let widths: Vec<usize> = (0..COLUMNS)
            .map(|i| cells.iter().chain([total, &headings]).map(|c| columns(&c[i])).max().unwrap_or(0))
            .collect();
        let name = if matches!(by, By::Fd | By::Library | By::Process) { LONG_NAME } else { NAME };
        for drop in DROPPED {
            let width: usize = used.iter().zip(&widths).filter(|(used, _)| **used).map(|(_, width)| width + 2).sum();
            if let Some(used) = used.get_mut(drop).filter(|_| width + 2 + name > self.style.columns()) {
                *used = false;
            }
        }
        GroupTable { used, widths }
    }

    fn with_problems(&self, mut lines: Vec<Line>) -> Vec<Line> {
        let spoiling: Vec<_> = self.rec.problems.iter().filter(|p| p.kind.spoils_exactness()).collect();
        if !spoiling.is_empty() {
            lines.push(Line::default());
        }
        for problem in spoiling {
            lines.extend(self.closing_line("problem", Role::Warn, &crate::text::sentence(&problem.text)));
        }
        lines
    }

    fn cells(&self, grouping: &Grouping, own: Option<u64>, g: &Group) -> Cells {
        let estimate = grouping.sampled && g.low != g.high;
        [
            grouped(g.calls),
            if estimate { format!("{} to {}", grouped(g.low), grouped(g.high)) } else { String::new() },
            g.looked_at.map_or_else(String::new, grouped),
            g.failed.filter(|n| *n > 0).map_or_else(String::new, grouped),
            g.toll_ns.map_or("?".into(), |ns| format!("{}{}", self.about(), time(ns))),
            g.toll_ns.and_then(|ns| percent_of(ns, own)).unwrap_or_default(),
            g.waited_ns.filter(|ns| *ns > 0).map_or_else(String::new, time),
        ]
    }

    fn total_cells(&self, grouping: &Grouping, own: Option<u64>) -> Cells {
        let t = &grouping.total;
        [
            grouped(t.calls),
            String::new(),
            String::new(),
            if t.failed() > 0 { grouped(t.failed()) } else { String::new() },
            t.toll_ns.map_or("?".into(), |ns| format!("{}{}", self.about(), time(ns))),
            t.toll_ns.and_then(|ns| percent_of(ns, own)).unwrap_or_default(),
            t.waited_ns.filter(|ns| *ns > 0).map_or_else(String::new, time),
        ]
    }

    /// Returns the name of a group.
    fn group_name(&self, by: By, common: &Common) -> Line {
        let mut line = Line::default();
        match common {
            Common::Line(id) => return self.place_of(*id).unwrap_or_default(),
            Common::Function(id) => return self.function_of(*id).unwrap_or_default(),
            Common::Api(api, id) => {
                line.push_name(Role::Name, clean(api));
                if let Some(module) = module(self.rec, *id) {
                    line.push_name(Role::Faint, format!(" {}", clean(module.file_name())));
                }
            }
            Common::Library(id) => {
                line.push_name(Role::Plain, module(self.rec, Some(*id)).map_or("?".into(), |m| clean(&m.path)))
            }
            Common::Process(id) => line = self.process_name(*id),
            Common::Thread { process, tid: 0, .. } => {
                line.push(Role::Plain, "threads not distinguished");
                line.append(self.of_process(*process));
            }
            Common::Thread { process, tid, name } => {
                line.push_name(Role::Plain, clean(name));
                line.push(Role::Plain, if name.is_empty() { format!("thread {tid}") } else { format!(" {tid}") });
                line.append(self.of_process(*process));
            }
            Common::File(target) => line.push_name(Role::Plain, clean(target)),
            Common::None => line.push_name(Role::Faint, "(no descriptor)"),
            Common::Unknown => line.push_name(
                Role::Faint,
                match by {
                    By::Api => "(no public function)",
                    By::Fd => "(not sampled, or closed)",
                    By::Process | By::Thread => "(unknown)",
                    By::Caller | By::Library | By::Line => "(no caller known)",
                },
            ),
        }
        line
    }

    /// Returns a frame's function and its file, without the line.
    fn function_of(&self, id: systoll_model::FrameId) -> Option<Line> {
        let frame = frame(self.rec, id)?;
        let place = frame.location()?;
        let mut line = Line::default();
        line.push_name(Role::Plain, clean(&place.function));
        let file = place.file.as_deref().map(short_file);
        // The placeholder of a function without a name already contains its module's name.
        let named = !place.function.contains("+0x");
        let home = file.or_else(|| module(self.rec, frame.module).map(|m| m.file_name()).filter(|_| named));
        if let Some(home) = home {
            line.push_name(Role::Faint, format!(" {}", clean(home)));
        }
        Some(line)
    }

    fn process_name(&self, id: ProcessId) -> Line {
        let Some(p) = self.rec.processes.get(id.0 as usize) else { return Line::of(Role::Faint, "(unknown)") };
        let mut line = Line::default();
        line.push_name(Role::Plain, clean(p.name()));
        line.push(Role::Plain, format!(" {}", p.pid));
        if p.instances > 1 {
            line.push(Role::Plain, format!(" and {} like it", grouped(p.instances - 1)));
        } else if p.argv.len() > 1 {
            let words = crate::text::shell_words(&p.argv);
            line.push_name(Role::Faint, format!("  {}", shorten(&words, 2 * NAME)));
        }
        line
    }

    /// Returns the process of a thread; an empty line if the recording has one process only.
    fn of_process(&self, id: ProcessId) -> Line {
        let mut line = Line::default();
        if let Some(p) = self.rec.processes.get(id.0 as usize).filter(|_| self.rec.processes.len() > 1) {
            line.push_name(Role::Faint, format!("  {}", clean(p.name())));
            line.push(Role::Faint, format!(" {}", p.pid));
        }
        line
    }

    /// Returns the most expensive row of a group.
    fn costliest(&self, rows: &[RowId]) -> Option<(RowId, &Row)> {
        let known = rows.iter().filter_map(|id| Some((*id, row(self.rec, *id)?)));
        known.max_by_key(|(id, r)| (r.counts.toll_ns, r.counts.calls, Reverse(*id)))
    }

    /// Returns the stacks and descriptors of a group, if they are requested.
    fn beneath(&self, by: By, group: &Group) -> Vec<Line> {
        let mut lines = vec![];
        if self.options.stacks
            && let Some((id, costliest)) = self.costliest(&group.rows)
        {
            let name = Line::of(Role::Name, format!("{:>3}{}", "", costliest.syscall));
            lines.push(name.with(Role::Faint, format!("   {}", calls(costliest.counts.calls))));
            lines.extend(self.stacks_of(id, DETAIL));
        }
        if self.options.fds && by != By::Fd {
            lines.extend(self.fds_of(&group.rows));
        }
        lines
    }
}

/// Returns the number of the most expensive groups that are worth a line: all others are below
/// [`SMALL`].
fn telling(grouping: &Grouping, own: Option<u64>) -> usize {
    let Some(own) = own else { return usize::MAX };
    let is_small = |g: &Group| g.toll_ns.is_some_and(|toll| (toll as f64) < own as f64 * SMALL);
    let small = grouping.groups.iter().rev().take_while(|g| is_small(g)).count();
    // A line that sums up a single group would be no shorter than the group's own.
    let small = if small < 2 { 0 } else { small };
    (grouping.groups.len() - small).max(LEAST_GROUPS)
}

/// The columns of a grouping's table.
struct GroupTable {
    used: Vec<bool>,
    widths: Vec<usize>,
}

impl GroupTable {
    /// Returns the lines of a row: figures, then the name with its middle left out if room is
    /// short. If there is no room at all, the name is on a line above.
    fn lines(&self, report: &Report<'_>, cells: &Cells, name: Line, role: Role) -> Vec<Line> {
        let mut line = Line::default();
        for (i, cell) in cells.iter().enumerate().filter(|(i, _)| self.used.get(*i).is_some_and(|u| *u)) {
            let width = self.widths.get(i).copied().unwrap_or(0);
            line.push(Role::Plain, " ".repeat(2 + width.saturating_sub(columns(cell))));
            line.push(role, cell.clone());
        }
        line.push(Role::Plain, "  ");
        let width = report.style.columns();
        let room = width.saturating_sub(line.width());
        if report.style.whole_names {
            return vec![line.joined(name.fit(LONGEST_NAME))];
        }
        if room >= LEAST_NAME {
            let mut name = name.fit(room);
            if name.width() > room {
                let plain = name.render(&Style { color: false, width: 0, whole_names: false });
                name = Line::of(role, shorten(&plain, room));
            }
            return vec![line.joined(name)];
        }
        let below = Line::of(Role::Plain, "      ").joined(name.fit(width.saturating_sub(6)));
        vec![below, line]
    }
}
