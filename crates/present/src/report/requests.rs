//! `--by request`: what each kind of request costs a server, one line a kind.

use super::screen::{Report, ReportOptions};
use crate::style::{LONGEST_NAME, Line, Role, Style};
use crate::text::{clean, columns};
use crate::units::{calls, counted, grouped, time};
use std::io;
use systoll_judge::{Judgement, Quantiles, RequestCall, RequestCost, Requests};
use systoll_model::{Recording, RequestProtocol};

/// Kinds shown without `--all`.
const KINDS: usize = 20;
/// Kinds whose calls are listed without `--all`.
const WITH_CALLS: usize = 5;
/// System calls listed of a kind without `--all`.
const CALLS: usize = 8;
/// Columns at which the calls of a kind start.
const INDENT: usize = 6;

/// Number of figures of a kind.
const COLUMNS: usize = 6;

const HEADINGS: [&str; COLUMNS] = ["requests", "between", "each: calls", "needless", "in calls", "waited"];

type Cells = [String; COLUMNS];

/// Writes what the recording's requests cost, most expensive kind first, at most `limit` kinds (20 if `None`, all with
/// `--all`).
///
/// # Errors
/// Those of `w`.
pub fn write_requests(
    w: &mut dyn io::Write,
    rec: &Recording,
    judgement: &Judgement,
    limit: Option<usize>,
    options: &ReportOptions,
    style: &Style,
) -> io::Result<()> {
    let report = Report { rec, judgement, options, style: *style };
    for line in report.requests(limit) {
        writeln!(w, "{}", line.render(style))?;
    }
    Ok(())
}

impl Report<'_> {
    fn requests(&self, limit: Option<usize>) -> Vec<Line> {
        let mut lines = self.header();
        lines.push(Line::default());
        match &self.judgement.requests {
            None => {
                let text = "this recording does not tell requests: `systoll run --by request` and `systoll attach --by \
                            request` record them";
                lines.extend(self.labelled(2, "", 2, Role::Warn, text));
            }
            Some(requests) if requests.costs.is_empty() => {
                lines.extend(self.labelled(2, "", 2, Role::Warn, &none_seen(requests)));
            }
            Some(requests) => lines.extend(self.kinds(requests, limit)),
        }
        lines.push(Line::default());
        lines.extend(self.counted_how());
        lines
    }

    fn kinds(&self, requests: &Requests, limit: Option<usize>) -> Vec<Line> {
        let all = self.options.all;
        let most = limit.unwrap_or(if all { usize::MAX } else { KINDS });
        let shown = requests.costs.get(..most).unwrap_or(&requests.costs);
        let cells: Vec<Cells> = shown.iter().map(|cost| self.cells_of(cost)).collect();
        let headings = HEADINGS.map(str::to_owned);
        let every = || cells.iter().chain([&headings]);
        let is_used = |at: usize| cells.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()));
        let width = |at: usize| every().filter_map(|row| row.get(at)).map(|cell| columns(cell)).max().unwrap_or(0);
        let widths: Vec<Option<usize>> = (0..COLUMNS).map(|at| is_used(at).then(|| width(at))).collect();
        let mut lines = vec![self.row_of(&headings, &widths, Line::of(Role::Strong, "request"), Role::Strong)];
        for (at, (cost, cells)) in shown.iter().zip(&cells).enumerate() {
            lines.push(self.row_of(cells, &widths, self.kind_of(cost), Role::Plain));
            if all || at < WITH_CALLS {
                lines.extend(
                    percentiles(cost).iter().flat_map(|text| self.labelled(INDENT, "", INDENT, Role::Faint, text)),
                );
                lines.extend(self.labelled(INDENT, "", INDENT, Role::Faint, &calls_of(cost, all)));
            }
        }
        if let Some(more) = requests.costs.len().checked_sub(shown.len()).filter(|more| *more > 0) {
            let text = format!("  {} more: --all shows them", counted(more as u64, "kind", "kinds"));
            lines.push(Line::of(Role::Faint, text));
        }
        lines.push(Line::default());
        for text in notes(requests) {
            lines.extend(self.labelled(2, "", 2, Role::Warn, &text));
        }
        lines
    }

    fn cells_of(&self, cost: &RequestCost) -> Cells {
        let requests = cost.requests;
        let is_exact = requests.low == requests.high;
        let least = if cost.at_least { "at least " } else { "" };
        [
            format!("{}{}", if is_exact { "" } else { "about " }, grouped(requests.estimate)),
            if is_exact { String::new() } else { format!("{} to {}", grouped(requests.low), grouped(requests.high)) },
            cost.calls.map_or("?".into(), |calls| format!("{least}{}", mean(calls.mean))),
            cost.needless.map_or("?".into(), |needless| mean(needless.mean)),
            cost.toll_ns.map_or("?".into(), |ns| format!("{least}{}{}", self.about(), time(ns.round() as u64))),
            cost.waited_ns.filter(|ns| *ns >= 1.0).map_or_else(String::new, |ns| time(ns.round() as u64)),
        ]
    }

    /// Returns the name of a kind and its protocol.
    fn kind_of(&self, cost: &RequestCost) -> Line {
        let mut line = Line::default();
        let Some(kind) = self.rec.request_kinds.get(cost.kind.0 as usize) else { return line };
        line.push_name(Role::Name, clean(&kind.name));
        line.push(Role::Faint, format!(" {}", kind.protocol.name()));
        line
    }

    /// Returns a line of the table: figures, then the name.
    fn row_of(&self, cells: &Cells, widths: &[Option<usize>], name: Line, role: Role) -> Line {
        let mut line = Line::default();
        for (cell, width) in cells.iter().zip(widths) {
            let Some(width) = width else { continue };
            line.push(Role::Plain, " ".repeat(2 + width.saturating_sub(columns(cell))));
            line.push(role, cell.clone());
        }
        line.push(Role::Plain, "  ");
        let room = self.style.columns().saturating_sub(line.width());
        line.joined(name.fit(if self.style.whole_names { LONGEST_NAME } else { room }))
    }
}

/// Returns a mean, with a decimal if it is small and no whole number.
fn mean(mean: f64) -> String {
    let is_whole = (mean - mean.round()).abs() < 0.05;
    if mean >= 100.0 || is_whole { grouped(mean.round() as u64) } else { format!("{mean:.1}") }
}

/// Returns the calls of a kind in words, most first.
fn calls_of(cost: &RequestCost, all: bool) -> String {
    let rare = |call: &&RequestCall| all || call.calls >= 0.05;
    let shown: Vec<String> = cost
        .by_call
        .iter()
        .filter(rare)
        .take(if all { usize::MAX } else { CALLS })
        .map(|call| match call.needless {
            needless if needless >= 0.05 => {
                format!("{} {} ({} needless)", mean(call.calls), call.syscall, mean(needless))
            }
            _ => format!("{} {}", mean(call.calls), call.syscall),
        })
        .collect();
    let more = cost.by_call.len().saturating_sub(shown.len());
    let others = if more > 0 { format!(", {more} others") } else { String::new() };
    format!("{}{others}", shown.join(", "))
}

/// Returns the percentiles of a kind in words: `p50 13, p95 13 calls; p50 57.9 µs, p95 91 µs in calls and waiting`.
fn percentiles(cost: &RequestCost) -> Option<String> {
    let words = |of: Quantiles, shown: &dyn Fn(f64) -> String| {
        let all = [("p50", of.p50), ("p95", of.p95), ("p99", of.p99)];
        let known: Vec<String> =
            all.iter().filter_map(|(name, value)| Some(format!("{name} {}", shown((*value)?)))).collect();
        (known.len() > 1).then(|| known.join(", "))
    };
    let calls = words(cost.calls_of, &mean).map(|text| format!("{text} calls"));
    let took = words(cost.took_ns, &|ns| time(ns.round() as u64)).map(|text| format!("{text} in calls and waiting"));
    let parts: Vec<String> = calls.into_iter().chain(took).collect();
    (!parts.is_empty()).then(|| format!("{}, of {} sampled", parts.join("; "), grouped(cost.looked_at)))
}

/// Returns remarks on the limits of the figures.
fn notes(requests: &Requests) -> Vec<String> {
    let looked_at: u64 = requests.costs.iter().map(|cost| cost.looked_at).sum();
    let mut notes = vec![format!(
        "each: means of {} that were sampled, from the receive that begins one to the next such receive of its \
         thread, and no more calls than were counted; time in calls: the mean of their place; waited: until it was \
         answered",
        counted(looked_at, "request", "requests")
    )];
    if requests.costs.iter().any(|cost| cost.calls.is_none()) {
        notes.push("each: calls is ? where no sample shows such a request".into());
    }
    if requests.costs.iter().any(|cost| cost.calls.is_some() && cost.toll_ns.is_none()) {
        notes.push(
            "in calls is ? where requests make calls that may wait, in a program that does not tell its threads' waiting \
             from their work (Go registers no rseq area)"
                .into(),
        );
    }
    if requests.costs.iter().any(|cost| cost.requests.low != cost.requests.high) {
        notes.push(format!(
            "about: {} were sampled, some of which stand for others; the bounds hold 19 times in 20",
            counted(requests.receives, "receive", "receives")
        ));
    }
    if requests.unseen > 0 {
        notes.push(format!(
            "{} not sampled; the bounds are those of all or none of them being requests",
            if requests.unseen == 1 {
                "1 receive was".into()
            } else {
                format!("{} receives were", grouped(requests.unseen))
            }
        ));
    }
    let overlapped: u64 = requests.costs.iter().map(|cost| cost.overlapped).sum();
    if overlapped > 0 {
        notes.push(format!(
            "{} of them {} not answered when their thread took up another: calls without a connection may be counted \
             with the other",
            grouped(overlapped),
            if overlapped == 1 { "was" } else { "were" }
        ));
    }
    let cut: u64 = requests.costs.iter().map(|cost| cost.cut).sum();
    if cut > 0 {
        let (what, are) = if cut == 1 { ("request", "is") } else { ("requests", "are") };
        notes.push(format!("{} more {what} {are} longer than a sample and not in the means", grouped(cut)));
    }
    if requests.moves {
        notes.push(
            "requests of one connection go from thread to thread: each has the calls of the thread that received it, until \
             that receives another; the means hold for all together"
                .into(),
        );
    }
    notes.extend(unreadable(requests));
    notes
}

/// Describes the receives whose requests can't be read; `None` if there are none.
fn unreadable(requests: &Requests) -> Option<String> {
    let of = |n: u64, protocol: RequestProtocol| (n > 0).then(|| format!("{} got {}", grouped(n), protocol.name()));
    let parts: Vec<String> = [of(requests.tls, RequestProtocol::Tls), of(requests.http2, RequestProtocol::Http2)]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "of {} from sockets sampled, {}: what is asked there can't be read",
            counted(requests.receives, "receive", "receives"),
            parts.join(" and ")
        )
    })
}

/// Returns the sentence for a run without a request that was recognised.
fn none_seen(requests: &Requests) -> String {
    match (requests.receives, unreadable(requests)) {
        (0, _) => "no call received from a socket".into(),
        (_, Some(unreadable)) => unreadable,
        (n, None) => format!(
            "no request was recognised in {} from sockets sampled: HTTP/1, Redis, PostgreSQL and memcached are",
            calls(n)
        ),
    }
}
