//! Makes the columns that CSV does not have: the finding of a row, and facts about the run, the
//! same in all its rows.

use super::folders::{Labels, run_id};
use crate::comma_separated::{Cell, Column};
use crate::judged_recording::{JudgedRecording, JudgedRow, short};
use systoll_model::{Recording, TimeZone};

/// The columns of a row's finding. New ones come last.
pub(super) const OF_ROWS: [Column; 3] = [Column::text("kind"), Column::text("object"), Column::text("cure")];

/// The columns of the run. New ones come last.
pub(super) const OF_RUNS: [Column; 21] = [
    Column::text("run"),
    Column::number("started_unix"),
    Column::text("release"),
    Column::text("command"),
    Column::text("node"),
    Column::text("time_zone"),
    Column::text("libc"),
    Column::text("kernel"),
    Column::text("clock_source"),
    Column::text("cpu"),
    Column::number("cpus"),
    Column::text("virtualization"),
    Column::number("wall_ns"),
    Column::number("user_ns"),
    Column::number("sys_ns"),
    Column::number("own_cpu_ns"),
    Column::number("vdso_calls"),
    Column::number("lost"),
    Column::number("exact"),
    Column::text("backend"),
    Column::text("systoll"),
];

/// Returns the cells of [`OF_ROWS`].
pub(super) fn of_row(told: &JudgedRow<'_>) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(short(text).to_owned());
    let Some(finding) = told.finding else { return vec![text(""), text(""), text("")] };
    let cure = finding.cures.first().map_or("", |cure| &cure.how);
    vec![text(finding.kind.name()), text(finding.what.as_deref().unwrap_or_default()), text(cure)]
}

/// Returns the cells of [`OF_RUNS`].
pub(super) fn of_run(judged: &JudgedRecording<'_>, labels: &Labels) -> Vec<Cell> {
    let (rec, h) = (judged.recording, &judged.recording.header);
    let text = |text: &str| Cell::Text(short(text).to_owned());
    let number = |number: u64| Cell::Number(Some(number));
    vec![
        text(&run_id(rec)),
        number(h.started_unix),
        text(&labels.release),
        Cell::Text(judged.command()),
        text(&h.node),
        text(time_zone(&h.time_zone)),
        text(&libc(rec)),
        text(&h.host.kernel),
        text(&h.host.clock_source),
        text(&h.host.cpu),
        number(h.host.cpus.into()),
        text(h.host.virtualization.as_deref().unwrap_or_default()),
        number(h.wall_ns),
        number(h.user_ns),
        number(h.sys_ns),
        Cell::Number(rec.own_cpu_ns()),
        Cell::Number(h.vdso_calls),
        number(h.lost),
        number(rec.exact().into()),
        text(h.backend.name()),
        text(&h.version),
    ]
}

/// Returns the value of `TZ`, or words that are no time zone if `TZ` is unset or empty.
fn time_zone(zone: &TimeZone) -> &str {
    match zone {
        TimeZone::Unknown => "",
        TimeZone::Unset => "(unset)",
        TimeZone::Set(name) if name.is_empty() => "(empty)",
        TimeZone::Set(name) => name,
    }
}

/// Number of a build-id's digits that are kept, enough to distinguish two builds.
const BUILD: usize = 12;

/// Returns the C library's file and build: a version alone would not distinguish two builds.
fn libc(rec: &Recording) -> String {
    let is_libc = |name: &str| ["libc.so", "libc-2.", "ld-musl", "libc.musl"].iter().any(|n| name.starts_with(n));
    let Some(module) = rec.modules.iter().find(|m| is_libc(m.file_name())) else { return String::new() };
    let build = module.build_id.as_deref().unwrap_or_default();
    format!("{} {}", module.file_name(), build.get(..BUILD).unwrap_or(build)).trim_end().to_owned()
}
