//! The JSON of reports (`--json`): the contract on which scripts rely (docs/reference/json.md,
//! docs/reference/report.schema.json).
//!
//! Invariants: fields are added, never renamed or removed; times are in ns; no NaN. The types are
//! the contract's own: a change of a domain type does not change the JSON.

mod common;
mod diff;
mod groups;
mod ledger;
mod parts;
mod proof;
mod requests;
mod rounds;
mod wire;

pub use common::SCHEMA_VERSION;
pub use diff::diff_json;
pub use proof::{SideCommand, prove_json};

use crate::access::{frame, module, row, stack};
use crate::sentences::Sentences;
use common::{exit, user};
use parts::{estimate, finite};
use serde_json::Value;
use std::collections::BTreeMap;
use systoll_judge::{
    Advice, Confidence, Counted, CureKind, EndedWait, Finding, Grouping, Judgement, Searched, Searcher, StartWork,
    Wait, WallPart, WallTime,
};
use systoll_model::{
    Counts, FrameId, Language, Ledger, LongCall, Phase, Price, Recording, Row, RowId, StackId, VdsoRow, WaitSpan,
};
use wire::*;

/// Converts the report of `rec`, judged by `judgement`, to one JSON object, with its calls
/// regrouped by `grouping`.
pub fn report_json(rec: &Recording, judgement: &Judgement, grouping: Option<&Grouping>) -> Value {
    // This can't fail: the structs are plain and have string keys.
    serde_json::to_value(report(rec, judgement, grouping)).unwrap_or_default()
}

fn report<'a>(rec: &'a Recording, judgement: &'a Judgement, grouping: Option<&'a Grouping>) -> Report<'a> {
    let h = &rec.header;
    let (total, span) = (rec.total(), judgement.own_cpu_span_ns(rec));
    let ledgers = ledger::by_row(rec);
    let sentences = Sentences { rec, judgement };
    let claimed = sentences.claimed();
    let needless = judgement.findings.iter().fold(0u64, |sum, f| sum.saturating_add(f.needless_toll_ns));
    Report {
        systoll: Version { version: &h.version, schema: SCHEMA_VERSION },
        command: &h.command,
        exit: h.exit.map(exit),
        attached: h.attached.map(attached),
        until: h.until.as_ref().map(|until| Until { sign: &until.sign, seen: until.seen }),
        backend: h.backend.name(),
        exact: rec.exact(),
        lost: h.lost,
        uncounted: sentences.uncounted(),
        wall_ns: h.wall_ns,
        watching_ns: h.watching_ns.min(h.wall_ns),
        user_ns: h.user_ns,
        sys_ns: h.sys_ns,
        own_cpu_ns: judgement.own_cpu_ns(rec),
        own_cpu_least_ns: span.as_ref().map(|span| *span.start()),
        own_cpu_most_ns: span.as_ref().map(|span| *span.end()),
        crossing_ns: Crossing {
            before: positive(rec.prices.crossing_before.min),
            after: positive(rec.prices.crossing_after.min),
        },
        observer_ns_per_call: finite(h.observer_ns_per_call),
        observer_wall_ns_per_call: finite(h.observer_wall_ns_per_call),
        started_unix: h.started_unix,
        host: host(&h.host),
        threads: h.threads,
        windows: Windows { opened: h.windows_opened, refused: h.windows_refused, kept: rec.windows.len() as u64 },
        sites: h.sites.map(sites),
        calls: total.calls,
        unreturned: total.unreturned,
        elided: total.elided,
        vdso_calls: h.vdso_calls,
        toll_ns: total.toll_ns,
        toll_estimated: h.toll_estimated,
        waited_ns: total.waited_ns,
        needless_toll_ns: needless,
        starting_ns: claimed.starts.saturating_add(claimed.copies),
        forking_ns: claimed.copies,
        processes: processes(rec),
        prices: rec.prices.calls.iter().map(|(syscall, p)| (syscall.to_string(), price(p))).collect(),
        by_syscall: by_syscall(rec),
        rows: (0..).map(RowId).zip(&rec.rows).map(|(id, r)| wire_row(rec, r, ledgers.get(&id).copied())).collect(),
        vdso: rec.vdso.iter().map(|v| wire_vdso(rec, v)).collect(),
        grouped: grouping.map(|g| groups::grouped(sentences, g)),
        requests: judgement.requests.as_ref().map(|requests| requests::wire_requests(rec, requests)),
        findings: judgement.findings.iter().map(|f| finding(sentences, f)).collect(),
        also: judgement.also.iter().map(|f| finding(sentences, f)).collect(),
        rounds: judgement.rounds.iter().map(|round| rounds::wire_round(sentences, round)).collect(),
        untold: untold(judgement),
        unjudged: unjudged(sentences),
        waits: judgement.waits.iter().map(|wait| wire_wait(sentences, wait)).collect(),
        wall: judgement.wall_time.as_ref().map(|wall| wire_wall(sentences, wall)),
        start: judgement.start_work.as_ref().map(|work| wire_start(sentences, work)),
        counted: judgement.counted.iter().map(|counted| wire_counted(sentences, counted)).collect(),
        excerpt: judgement.is_excerpt,
        told: run_told(sentences),
        longest: rec.longest.iter().filter_map(|l| long_call(rec, l)).collect(),
        problems: rec.problems.iter().map(|p| p.text.as_str()).collect(),
    }
}

fn attached(a: systoll_model::Attached) -> Attached {
    Attached { age_ns: a.age_ns, longest_stop_ns: a.longest_stop_ns, left_running: a.left_running }
}

fn host(host: &systoll_model::Host) -> Host<'_> {
    Host {
        cpu: &host.cpu,
        cpus: host.cpus,
        kernel: &host.kernel,
        clock_source: &host.clock_source,
        virtualization: host.virtualization.as_deref(),
    }
}

fn sites(s: systoll_model::Sites) -> Sites {
    Sites { timed: s.timed, counted: s.counted, on_arrival: s.on_arrival, not_covered: s.not_covered }
}

fn untold(judgement: &Judgement) -> WireUntold {
    let untold = &judgement.untold;
    WireUntold {
        calls: untold.calls,
        toll_ns: untold.toll_ns,
        unsure_calls: untold.unsure_calls,
        unsure_toll_ns: untold.unsure_toll_ns,
    }
}

fn unjudged(sentences: Sentences<'_>) -> WireUnjudged {
    let (calls, toll_ns) = (sentences.judgement.unjudged.calls, sentences.judgement.unjudged.toll_ns);
    WireUnjudged { calls, toll_ns, share_of_cpu: of_own_cpu(sentences, toll_ns) }
}

/// Returns a measured figure; `None` for zero, which means that nothing was measured.
fn positive(f: f64) -> Option<f64> {
    finite(f).filter(|f| *f > 0.0)
}

fn price(p: &Price) -> WirePrice {
    use systoll_model::PriceSource::{CrossingOnly, InCall, Measured};
    let source = match p.source {
        Measured => "measured",
        InCall => "in-call",
        CrossingOnly => "crossing-only",
    };
    WirePrice { ns: finite(p.ns), low: finite(p.low), high: finite(p.high), source }
}

fn processes(rec: &Recording) -> Vec<Process<'_>> {
    rec.processes.iter().enumerate().map(|(i, p)| process(i, p)).collect()
}

fn process(i: usize, p: &systoll_model::Process) -> Process<'_> {
    Process {
        process: i as u64 + 1,
        parent: p.parent.map(|p| u64::from(p.0) + 1),
        pid: p.pid,
        exe: &p.exe,
        argv: p.argv.iter().map(|a| &**a).collect(),
        service: &p.service,
        instances: p.instances,
        threads: p.threads,
        start_ns: p.start_ns,
        end_ns: (p.end_ns > 0).then_some(p.end_ns),
        cpu_ns: p.cpu_ns,
        main_at_ns: p.main_at_ns,
        exit: p.exit.map(exit),
    }
}

fn errors(counts: &Counts) -> BTreeMap<String, u64> {
    counts.errors.iter().map(|(errno, calls)| (errno.to_string(), *calls)).collect()
}

fn by_syscall(rec: &Recording) -> Vec<BySyscall> {
    let wire = |t: systoll_model::SyscallTotal| BySyscall {
        syscall: t.syscall.to_string(),
        calls: t.counts.calls,
        unreturned: t.counts.unreturned,
        elided: t.counts.elided,
        errors: errors(&t.counts),
        toll_ns: t.counts.toll_ns,
        waited_ns: t.counts.waited_ns,
        max_ns: t.counts.max_ns,
        min_ns: t.counts.min_ns,
        bytes: t.counts.bytes,
    };
    rec.by_syscall().into_iter().map(wire).collect()
}

fn wire_row<'a>(rec: &'a Recording, r: &'a Row, ledger: Option<&'a Ledger>) -> WireRow<'a> {
    let c = &r.counts;
    WireRow {
        syscall: r.syscall.to_string(),
        calls: c.calls,
        unreturned: c.unreturned,
        elided: c.elided,
        errors: errors(c),
        toll_ns: c.toll_ns,
        waited_ns: c.waited_ns,
        elapsed_ns: c.elapsed_ns,
        elapsed_low_ns: *c.elapsed_between().start(),
        elapsed_high_ns: *c.elapsed_between().end(),
        timed: c.timed(),
        max_ns: c.max_ns,
        min_ns: c.min_ns,
        bytes: c.bytes,
        startup_calls: c.startup_calls,
        histogram_log2_ns: c.histogram.buckets(),
        process: u64::from(r.process.0) + 1,
        api: r.api.as_deref(),
        module: module(rec, r.api_module).map(|m| m.file_name()),
        user: r.user.and_then(|id| user(rec, id)),
        lines: lines(rec, &[r]),
        stack: [r.context, r.outer].into_iter().flat_map(|id| functions(rec, id)).collect(),
        ledger: ledger.map(|l| ledger::wire_ledger(l, c.calls)),
    }
}

fn wire_vdso<'a>(rec: &'a Recording, v: &'a VdsoRow) -> WireVdso<'a> {
    WireVdso {
        function: &v.function,
        calls: v.calls,
        process: u64::from(v.process.0) + 1,
        api: v.api.as_deref(),
        user: v.user.and_then(|id| user(rec, id)),
        stack: functions(rec, v.context).collect(),
    }
}

fn functions(rec: &Recording, id: StackId) -> impl Iterator<Item = &str> {
    let frames = stack(rec, id).map_or(&[][..], |s| &s.frames);
    frames.iter().filter_map(|id| frame(rec, *id)).flat_map(|f| f.locations.iter().map(|l| &*l.function))
}

/// Returns the scripts' lines that make the calls of `rows`, largest share first. Each row's lines
/// are weighted by the row's calls.
fn lines<'a>(rec: &'a Recording, rows: &[&'a Row]) -> Vec<WireLine<'a>> {
    let mut calls: BTreeMap<FrameId, (f64, u64)> = BTreeMap::new();
    let mut all = 0.0;
    for row in rows {
        for line in &row.lines {
            let part = row.share(line) * row.counts.calls as f64;
            let entry = calls.entry(line.frame).or_default();
            *entry = (entry.0 + part, entry.1.saturating_add(line.looks));
            all += part;
        }
    }
    let mut lines: Vec<_> = calls.into_iter().collect();
    lines.sort_by(|(a, (x, _)), (b, (y, _))| y.total_cmp(x).then(a.cmp(b)));
    let of = |part: f64| if all > 0.0 { part / all } else { 0.0 };
    lines.into_iter().filter_map(|(id, (part, looks))| line(rec, id, looks, of(part))).collect()
}

/// Returns the line of a script's frame, which `looks` samples met and which has a `share` of the calls.
fn line(rec: &Recording, id: FrameId, looks: u64, share: f64) -> Option<WireLine<'_>> {
    let frame = frame(rec, id)?;
    let place = frame.location()?;
    Some(WireLine {
        function: &place.function,
        file: place.file.as_deref(),
        line: place.line,
        language: frame.language.map(Language::name),
        looks,
        share,
    })
}

/// Returns the lines that asked a pool of threads for a finding's calls; `None` if no pool made the calls.
fn requested<'a>(rec: &'a Recording, f: &Finding) -> Option<WireRequested<'a>> {
    let told = systoll_judge::requested(rec, &f.rows)?;
    let lines = told.lines.iter().filter_map(|asks| line(rec, asks.frame, asks.looks, asks.share));
    Some(WireRequested {
        pool: told.pool,
        operations: told.operations,
        lines: lines.collect(),
        by_waits: told.by_waits,
        work_calls: told.work_calls,
        hand_over_calls: told.hand_over_calls,
        hand_over_ns: told.hand_over_ns,
    })
}

fn wire_wait<'a>(sentences: Sentences<'a>, wait: &'a Wait) -> WireWait<'a> {
    WireWait {
        syscall: wait.syscall.to_string(),
        about: &wait.about,
        calls: wait.calls,
        ran_out: wait.ran_out,
        ns: wait.ns,
        longest_ns: wait.longest_ns,
        share_of_shown: wait.share.and_then(finite),
        told: sentences.wait(wait),
    }
}

fn wire_wall(sentences: Sentences<'_>, wall: &WallTime) -> WireWall {
    let part = |part: &WallPart| {
        Some(WireWallPart {
            waits_for: part.class.name(),
            syscall: sentences.wall_row(part)?.syscall.to_string(),
            row: u64::from(part.row.0) + 1,
            calls: part.calls,
            ns: part.ns,
            longest_ns: part.longest_ns,
            shared: part.shared,
            corrected: part.corrected,
            told: sentences.wall_part(wall, part),
        })
    };
    let spans = &sentences.rec.wait_spans.spans;
    let each = |(span, end): (&WaitSpan, &EndedWait)| WireEachWait {
        row: u64::from(span.row.0) + 1,
        pid: span.pid,
        tid: span.tid,
        begin_ns: span.begin_ns,
        ns: span.ns,
        waits_for: end.class.name(),
        by: end.by.map(|(pid, tid)| WireThreadId { pid, tid }),
    };
    WireWall {
        each: spans.iter().zip(&wall.ends).map(each).collect(),
        other_ns: wall.other_ns,
        running_ns: wall.running_ns,
        systoll_ns: wall.systoll_ns,
        queued_ns: wall.queued_ns,
        complete: wall.is_complete,
        waits: wall.parts.iter().filter_map(part).collect(),
        told: sentences.wall_classes(wall),
    }
}

fn wire_start(sentences: Sentences<'_>, work: &StartWork) -> WireStart {
    let searched = |one: &Searched| WireSearched {
        by: match one.by {
            Searcher::Loader => "loader",
            Searcher::Language(language) => language.name(),
            Searcher::Program => "program",
        },
        asked: one.asked,
        missing: one.missing,
        ns: one.ns,
    };
    WireStart {
        searched: work.searched.iter().map(searched).collect(),
        opened: work.opened,
        read_ns: work.read_ns,
        told: sentences.start_work().unwrap_or_default(),
    }
}

fn wire_counted<'a>(sentences: Sentences<'a>, counted: &'a Counted) -> WireCounted<'a> {
    WireCounted {
        syscalls: counted.syscalls.iter().map(ToString::to_string).collect(),
        process: u64::from(counted.process.0) + 1,
        shows: &counted.text,
        may_be: counted.may_be,
        causes: counted.causes,
        find_out: sentences.find_out(counted),
        told: sentences.counted(counted),
    }
}

fn run_told(sentences: Sentences<'_>) -> WireRunTold {
    let named = !sentences.judgement.findings.is_empty();
    let (verdict, good) = if sentences.rec.calls() == 0 {
        ("no system call was seen".to_owned(), false)
    } else if named {
        (format!("{}: {}", sentences.findings(), sentences.verdict()), false)
    } else {
        let nothing = sentences.nothing(None);
        (nothing.text, nothing.is_good)
    };
    WireRunTold {
        verdict,
        good,
        ended: sentences.ended().unwrap_or_else(|| "not known".into()),
        beneath: if good || named { sentences.beneath() } else { Vec::new() },
        problems: sentences.problems(|p| sentences.matters(p), true),
        tables: sentences.two_tables().unwrap_or_default(),
    }
}

fn finding_told(sentences: Sentences<'_>, f: &Finding) -> WireTold {
    WireTold {
        calls: sentences.count(f),
        cost: sentences.cost(f).text(),
        needless: sentences.needless(f),
        each: sentences.per_unit(f),
        plus: sentences.later(f),
        gain: sentences.gain(f),
        evidence: sentences.evidence(f),
        doubt: sentences.doubt(f),
        shown: sentences.in_excerpt(f),
    }
}

fn finding<'a>(sentences: Sentences<'a>, f: &'a Finding) -> WireFinding<'a> {
    let rec = sentences.rec;
    let strands = sentences.judgement.strands(rec);
    WireFinding {
        cause: f.cause.as_deref(),
        kind: f.kind.name(),
        confidence: confidence(f.confidence),
        syscalls: f.syscalls.iter().map(ToString::to_string).collect(),
        apis: f.apis.iter().map(|a| &**a).collect(),
        user: f.user.and_then(|id| user(rec, id)),
        lines: lines(rec, &f.strands.iter().filter_map(|id| row(strands, *id)).collect::<Vec<_>>()),
        requested: requested(rec, f),
        what: f.what.as_deref(),
        calls: f.calls,
        calls_about: f.calls_about.map(estimate),
        starts: f.starts,
        copies: f.copies,
        needless_calls: estimate(f.needless),
        toll_ns: f.toll_ns,
        needless_toll_ns: f.needless_toll_ns,
        rhythm: f.per_unit.map(rhythm),
        later: f.later.map(later),
        expected_gain: f.expected_gain.map(|g| gain(sentences, g)),
        waited_ns: f.waited_ns,
        share_of_cpu: f.share_of_cpu.and_then(finite),
        share_of_wall: f.share_of_wall.and_then(finite),
        share_of_calls: finite(f.share_of_calls),
        phase: phase(f.phase),
        evidence: evidence(f),
        why: &f.why,
        objects: f.objects.iter().map(|o| WireObject { name: &o.name, share: o.share }).collect(),
        objects_seen: f.objects_seen,
        language_api: f.language_api.as_deref(),
        stop: f.stop(),
        language: f.language.map(systoll_judge::CodeLanguage::name),
        cures: f.cures.iter().map(cure).collect(),
        gives_up: f.gives_up(),
        prove: &f.prove,
        rows: f.rows.iter().map(|r| r.0).collect(),
        basis: f.basis.name(),
        doubt: f.doubt.map(systoll_judge::Doubt::name),
        told: finding_told(sentences, f),
    }
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::StartUp => "start-up",
        Phase::Steady => "steady",
        Phase::Exit => "exit",
    }
}

fn rhythm(r: systoll_judge::PerUnit) -> WireRhythm {
    WireRhythm {
        per: r.per.name(),
        rounds: r.rounds,
        calls: r.calls,
        needless: r.needless,
        looked_at: r.looked_at,
        agree: r.agree,
    }
}

fn later(l: systoll_judge::Later) -> WireLater {
    WireLater {
        faults: estimate(l.faults),
        switches: estimate(l.switches),
        ns: estimate(l.ns),
        share_of_cpu: l.share_of_cpu.and_then(finite),
    }
}

fn gain(sentences: Sentences<'_>, g: systoll_judge::ExpectedGain) -> WireGain {
    WireGain {
        low_ns: g.low,
        high_ns: g.high,
        around_ns: g.around_ns,
        share_low: of_own_cpu(sentences, g.low),
        share_high: of_own_cpu(sentences, g.high),
    }
}

fn evidence(f: &Finding) -> Evidence {
    let e = &f.evidence;
    Evidence { windows: e.windows, agree: e.agree, calls: e.calls, claimed: e.claimed }
}

/// Returns `ns` as a share of the run's own processor time.
fn of_own_cpu(sentences: Sentences<'_>, ns: u64) -> Option<f64> {
    let own = sentences.own_cpu_ns().filter(|own| *own > 0)?;
    finite(ns as f64 / own as f64)
}

fn cure(cure: &Advice) -> WireCure<'_> {
    WireCure {
        how: &cure.how,
        kind: cure.kind.map(CureKind::name),
        gives_up: &cure.gives_up,
        language: cure.language.map(systoll_judge::CodeLanguage::name),
        applied: cure.is_applied,
    }
}

fn long_call<'a>(rec: &'a Recording, l: &'a LongCall) -> Option<Longest<'a>> {
    let row = row(rec, l.row)?;
    // This is the module that contains the caller: before `main`, the library whose constructor it is.
    let caller = row.user.and_then(|id| frame(rec, id)).and_then(|f| f.module);
    Some(Longest {
        syscall: row.syscall.to_string(),
        ns: l.ns,
        at_ns: l.at_ns,
        thread: &l.thread,
        api: row.api.as_deref(),
        module: module(rec, caller.or(row.api_module)).map(|m| m.file_name()),
        startup: l.startup,
        user: row.user.and_then(|id| user(rec, id)),
    })
}
