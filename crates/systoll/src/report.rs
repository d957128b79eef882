//! Shows a recording as the user asked for it.

use crate::call_set::CallSet;
use crate::cli::{PlainArgs, Regroup, ReportArgs, ShowArgs};
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::{Output, ResultPath, keep, to_stderr, whole};
use crate::{page, tables};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_judge::{Catalogue, Finding, RoundClaimed, grouped, judge};
use systoll_model::{Counts, InertJson, Recording, Sysno};
use systoll_present::{
    ReportOptions, Style, TableColumn, TableOptions, box_json, report_json, write_box, write_grouping, write_report,
    write_requests, write_strace_table,
};

/// The output of a recording, in the form that the user chose.
pub(crate) struct Shown {
    args: ShowArgs,
    /// The file of a page that is opened after it was written.
    page: Option<PathBuf>,
    catalogue: Catalogue,
    style: Style,
}

impl Shown {
    /// Opens the output: the named file, else `stream`.
    pub(crate) fn open(args: &ShowArgs, stream: Output) -> Result<(Output, Self), Failure> {
        let terminal = args.output.is_none() && stream.is_terminal_or_stderr();
        if args.html && !args.open && terminal {
            return Err(Failure::Usage("a page is for a browser and not for a terminal: -o FILE.html, or --open"));
        }
        if (args.html || args.open) && args.by.is_some_and(|by| by != Regroup::Request) {
            return Err(Failure::Usage("a page regroups its table itself; of --by it takes request alone"));
        }
        if args.by == Some(Regroup::Request) && args.trace.is_some() {
            return Err(Failure::Usage("a request consists of all of its calls: leave -e away, or --by request"));
        }
        let page = args.open.then(|| page::place(args.output.as_deref())).transpose()?;
        let output = Output::open(page.as_deref().or(args.output.as_deref()), stream)?;
        let (catalogue, style) = (catalogue(args.causes.folder.as_deref())?, output.style(args.color.when));
        Ok((output, Self { args: args.clone(), page, catalogue, style }))
    }

    /// Writes the recording to its output as requested, and opens the page if that was requested.
    pub(crate) fn tell(&self, output: &mut Output, recording: &Recording) -> Result<(), Failure> {
        self.put(output, recording, false)?;
        self.page.as_deref().map_or(Ok(()), page::open)
    }

    /// Writes several recordings as requested, one after the other, each below its name; as JSON, a
    /// list of them.
    pub(crate) fn tell_each(&self, output: &mut Output, all: &[(PathBuf, Recording)]) -> Result<(), Failure> {
        if self.args.html || self.args.open {
            return Err(Failure::Usage("a page tells of one trace: name one, or --together"));
        }
        output.write("report", |w| {
            if self.args.json {
                write!(w, "[")?;
            }
            for (n, (path, recording)) in all.iter().enumerate() {
                match (self.args.json, n) {
                    (true, 0) => {}
                    (true, _) => write!(w, ",")?,
                    (false, _) => {
                        let space = if n > 0 { "\n" } else { "" };
                        writeln!(w, "{space}==> {} <==", path.display())?;
                    }
                }
                self.write(w, recording, false)?;
            }
            if self.args.json { writeln!(w, "]") } else { Ok(()) }
        })
    }

    fn put(&self, output: &mut Output, recording: &Recording, so_far: bool) -> Result<(), Failure> {
        if !self.args.html && !self.args.open {
            return output.write("report", |w| self.write(w, recording, so_far));
        }
        let judgement = judge(recording, &self.catalogue, &systoll_judge::Options::default());
        output.write_as_is("page", |w| page::write(w, recording, &judgement))
    }

    /// Writes the recording as requested: report, table, groups or JSON.
    fn write(&self, w: &mut dyn Write, recording: &Recording, so_far: bool) -> io::Result<()> {
        let only = self.args.trace.as_ref().map(CallSet::calls);
        if self.args.counts {
            return self.write_table(w, recording, only);
        }
        let by = self.args.by.and_then(Regroup::by);
        let grouping = by.map(|by| grouped(recording, by, only));
        let options = ReportOptions {
            all: self.args.all,
            rounds: self.args.patterns,
            waits: self.args.waits,
            longer_ns: self.args.longer.map(|d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
            stacks: self.args.stack_traces,
            fds: self.args.decode_fds > 0,
            only: self.args.trace.as_ref().map(|set| set.told_of(recording)),
            so_far,
        };
        if let Some(grouping) = grouping.as_ref().filter(|_| !self.args.json) {
            let narrowed = only.map(|only| narrowed(recording, only));
            let recording = narrowed.as_ref().unwrap_or(recording);
            return write_grouping(w, recording, grouping, self.args.limit, &options, &self.style);
        }
        let mut judgement = judge(recording, &self.catalogue, &systoll_judge::Options::default());
        if self.args.json {
            // A list of thousands of waits is for those who ask for it.
            judgement.wall_time.iter_mut().filter(|_| !self.args.waits).for_each(|wall| wall.ends.clear());
            serde_json::to_writer_pretty(InertJson(&mut *w), &report_json(recording, &judgement, grouping.as_ref()))?;
            return writeln!(w);
        }
        if self.args.by == Some(Regroup::Request) {
            return write_requests(w, recording, &judgement, self.args.limit, &options, &self.style);
        }
        match only {
            None => write_report(w, recording, &judgement, &options, &self.style),
            Some(only) => {
                let about = |f: &Finding| f.syscalls.iter().any(|s| only.contains(s));
                judgement.findings.retain(about);
                judgement.also.retain(about);
                judgement.rounds.retain(|round| round.has_call(|syscall| only.contains(&syscall)));
                // Findings that claim parts of a round may be about calls that are left out here.
                judgement.rounds.iter_mut().for_each(|round| round.claimed = RoundClaimed::default());
                write_report(w, &narrowed(recording, only), &judgement, &options, &self.style)
            }
        }
    }

    fn write_table(&self, w: &mut dyn Write, recording: &Recording, only: Option<&BTreeSet<Sysno>>) -> io::Result<()> {
        let columns = self.args.summary_columns.as_ref().map_or(TableColumn::USUAL.to_vec(), |c| c.0.clone());
        let overhead_ns = u64::try_from(self.args.summary_syscall_overhead.as_nanos()).unwrap_or(u64::MAX);
        let (sort, wall) = (self.args.summary_sort_by, self.args.summary_wall_clock);
        let told = self.args.trace.as_ref().map(|set| set.told_of(recording));
        let options = TableOptions { sort, columns, wall, overhead_ns, only: told };
        match only {
            None => write_strace_table(w, recording, &options, &self.style),
            Some(only) => write_strace_table(w, &narrowed(recording, only), &options, &self.style),
        }
    }

    /// Writes a report so far to the report's output, `stream` if it is no file; a file holds the latest one.
    pub(crate) fn so_far(&self, recording: &Recording, stream: Output) {
        let place = Output::open(self.page.as_deref().or(self.args.output.as_deref()), stream);
        if let Err(failure) = place.and_then(|mut output| self.put(&mut output, recording, true)) {
            failure.tell();
        }
    }
}

/// Returns the recording with figures of only these system calls. Rows keep their index: other
/// tables refer to it.
fn narrowed(recording: &Recording, only: &BTreeSet<Sysno>) -> Recording {
    let mut some = recording.clone();
    some.rows.iter_mut().filter(|r| !only.contains(&r.syscall)).for_each(|r| r.counts = Counts::default());
    some.longest.retain(|l| recording.rows.get(l.row.0 as usize).is_some_and(|r| only.contains(&r.syscall)));
    some.vdso.clear();
    some.header.vdso_calls = None;
    some
}

/// Implements `systoll report REC`.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let named = args.recording.clone().or_else(|| (!io::stdin().is_terminal()).then(|| "-".into()));
    let path = named.ok_or(Failure::Usage("which recording? systoll report REC, or - for standard input"))?;
    if let Some(folder) = &args.parquet {
        tables::prepare(folder)?;
        let (recording, catalogue) = (read(&path)?, catalogue(args.show.causes.folder.as_deref())?);
        tables::add(folder, &recording, &catalogue, &args.labels.labels(), true)?;
        return Ok(ExitCode::SUCCESS);
    }
    let recording = read(&path)?;
    let (mut output, shown) = Shown::open(&args.show, Output::Stdout)?;
    shown.tell(&mut output, &recording)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn read(path: &Path) -> Result<Recording, Failure> {
    let read = if path == Path::new("-") {
        Recording::read(io::stdin().lock())
    } else {
        Recording::read(systoll_files::input(path).map_err(|e| Failure::file("read", path, e))?)
    };
    read.map_err(|e| Failure::Recording(path.to_owned(), e))
}

/// Opens the place for a recording. Another kind of file there is not replaced, unless `forced`.
pub(crate) fn place_to_save(path: &Path, forced: bool) -> Result<ResultPath, Failure> {
    let place = ResultPath::open(path).map_err(|e| Failure::file("write", path, e))?;
    if !forced && place.holds_other(Recording::is_in) {
        return Err(Failure::NotOurs(path.to_owned()));
    }
    Ok(place)
}

/// Writes a recording to its place.
pub(crate) fn save(place: &mut ResultPath, recording: &Recording) -> Result<(), Failure> {
    let bytes = whole(|w| recording.write(w).map_err(io::Error::other));
    keep("recording", place, &bytes.map_err(|e| Failure::file("write", &place.path, e))?)
}

/// Implements `systoll box`.
pub(crate) fn survey(args: &PlainArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color.when);
    let mut survey = systoll_price::survey();
    for backend in systoll_record::backends() {
        match backend.cost() {
            Ok(spread) => survey.watch_ns.push((backend.kind().name().to_owned(), spread)),
            // Users have not asked for one that is not tried by itself: it takes rights that most of them lack, or is not
            // written for this machine.
            Err(_) if !systoll_record::automatic().iter().any(|tried| tried.kind() == backend.kind()) => {}
            Err(e) => to_stderr(&format!("systoll: watching with {} could not be timed: {e}\n", backend.kind().name())),
        }
    }
    output.write("report", |w| {
        if args.json {
            serde_json::to_writer_pretty(InertJson(&mut *w), &box_json(&survey))?;
            writeln!(w)
        } else {
            write_box(w, &survey, &style)
        }
    })?;
    Ok(ExitCode::SUCCESS)
}
