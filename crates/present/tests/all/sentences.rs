//! Checks each sentence that reports, the page and JSON can contain about a run or a finding
//! against the fact it needs. The sentence appears if the fact holds, and not otherwise.

use crate::common::{report, stories};
use systoll_judge::*;
use systoll_model::{
    Attached, BackendKind, Exit, Phase, Problem, ProblemKind, ProcessId, Recording, Sysno, Thread, ThreadCalls,
};
use systoll_present::{ReportOptions, Style, report_json};

type Story = (Recording, Judgement);

/// A sentence, or a part of one, that needs a fact.
struct Sentence {
    says: &'static str,
    needs: &'static str,
    /// A story in which the fact holds; the next field is a story in which it does not.
    holds: fn() -> Story,
    fails: fn() -> Story,
}

/// Returns a story without findings, with this change.
fn healthy(change: fn(&mut Recording, &mut Judgement)) -> Story {
    let (mut rec, mut judgement) = stories::healthy();
    change(&mut rec, &mut judgement);
    (rec, judgement)
}

/// Returns the story of a program that ran before it was watched.
fn attached(left_running: bool) -> Story {
    let (mut rec, judgement) = stories::healthy();
    rec.header.exit = None;
    rec.header.attached = Some(Attached { age_ns: 9_000_000_000_000, longest_stop_ns: 300_000, left_running });
    (rec, judgement)
}

/// Returns a story of one finding, with this change.
fn found(change: fn(&mut Finding)) -> Story {
    let (rec, mut judgement) = stories::ruby();
    change(&mut judgement.findings[0]);
    (rec, judgement)
}

fn unsure(f: &mut Finding) {
    f.doubt = Some(Doubt::Unsure);
}

/// Returns the story of a program of 2 s without findings, of which `openat` takes this time.
fn costly(toll_ns: u64) -> Story {
    let (mut rec, judgement) = stories::healthy();
    (rec.header.own_cpu_ns, rec.header.user_ns) = (Some(2_000_000_000), 2_000_000_000);
    rec.header.wall_ns = 3_000_000_000;
    rec.rows[0].syscall = Sysno::named("openat");
    rec.rows[0].counts.toll_ns = Some(toll_ns);
    (rec, judgement)
}

/// Returns the story of a program without findings whose main thread waits in a call for three seconds of four.
fn sleeps(syscall: &'static str) -> Story {
    let (mut rec, judgement) = costly(0);
    rec.header.wall_ns = 4_000_000_000;
    rec.header.backend = BackendKind::Inproc;
    let (process, tid) = (ProcessId(0), rec.processes[0].pid);
    let calls = ThreadCalls {
        syscall: Sysno::named(syscall),
        calls: 3,
        failed: 0,
        toll_ns: Some(3_000),
        waited_ns: Some(3_000_000_000),
    };
    rec.threads = vec![Thread { process, tid, name: "app".into(), calls: vec![calls] }];
    (rec, judgement)
}

/// Returns a story of one remark, with this change.
fn remark(change: fn(&mut Finding)) -> Story {
    let (rec, mut judgement) = found(change);
    let mut also = std::mem::take(&mut judgement.findings);
    also.iter_mut().for_each(|f| f.confidence = Confidence::Low);
    (rec, Judgement { also, ..judgement })
}

fn same(_: &mut Finding) {}

fn started(f: &mut Finding) {
    (f.starts, f.basis) = (true, Basis::Counts);
}

fn gain(f: &mut Finding, around_ns: u64) {
    f.expected_gain = Some(ExpectedGain { low: 1_700_000_000, high: 2_100_000_000, around_ns, with_work: false });
}

fn per(f: &mut Finding, per: WorkUnit, calls: u64) {
    f.per_unit = Some(PerUnit { per, rounds: 8_000, calls, needless: 1, looked_at: 40, agree: 40 });
}

/// Returns a story of waits whose phase may be changed.
fn waits(change: fn(&mut Finding)) -> Story {
    let (rec, mut judgement) = stories::lttng();
    judgement.findings.iter_mut().for_each(change);
    (rec, judgement)
}

/// Returns a story of waits, some of which come after `main` has begun.
fn late() -> Story {
    let (mut rec, judgement) = stories::lttng();
    rec.rows.iter_mut().for_each(|row| row.counts.startup_calls = row.counts.calls * 3 / 4);
    (rec, judgement)
}

/// Returns a story without findings that has a round of two calls, with this change.
fn round(change: fn(&mut Round)) -> Story {
    let (rec, mut judgement) = stories::healthy();
    let call = |name: &str| RoundCall {
        syscall: Sysno::from_name(name).unwrap(),
        calls: 4_000,
        share: 1.0,
        times: Times { least: 1, most: 1, mean: 1.0 },
        object: None,
        size: None,
        offset: None,
        option: None,
        errno: None,
        data: None,
    };
    let mut round = Round {
        count: Estimate { estimate: 4_000, low: 4_000, high: 4_000 },
        steps: vec![RoundStep::Call(call("openat")), RoundStep::Call(call("pwrite64"))],
        place: None,
        rows: vec![],
        calls: 8_000,
        toll_ns: 40_000_000,
        waited_ns: None,
        share_of_cpu: Some(0.4),
        share_of_wall: None,
        claimed: RoundClaimed::default(),
        looked_at: 40,
        agree: 40,
        threads: 1,
        startup: false,
        images: vec![0],
        are_all_processes: true,
        is_of_rest: true,
    };
    change(&mut round);
    judgement.rounds = vec![round];
    (rec, judgement)
}

fn step(round: &mut Round, at: usize) -> &mut RoundCall {
    let Some(RoundStep::Call(call)) = round.steps.get_mut(at) else { panic!("a call") };
    call
}

fn paths(different: u64) -> Option<Objects> {
    Some(Objects { pattern: "/srv/segment?".into(), variety: Variety { looks: 64, different } })
}

const SENTENCES: &[Sentence] = &[
    Sentence {
        says: "nothing found worth your time",
        needs: "that it was looked for: samples, or a trace that tells what calls were about",
        holds: || healthy(|_, _| {}),
        fails: || healthy(|rec, _| rec.problems.push(Problem::new(ProblemKind::Stripped, "rewritten"))),
    },
    Sentence {
        says: "1 thing to consider: 32 % of CPU",
        needs: "a remark that costs much, and that the reader can act on",
        holds: || remark(unsure),
        fails: || remark(|f| f.doubt = Some(Doubt::Excerpt)),
    },
    Sentence {
        says: "no needless calls found; 40 % of CPU goes to openat",
        needs: "a call that takes much of the run, and is in no finding",
        holds: || costly(800_000_000),
        fails: || costly(9_000_000),
    },
    Sentence {
        says: "no needless calls found; 75 % of the time is spent waiting in clock_nanosleep",
        needs: "a main thread that waits long, for no work",
        holds: || sleeps("clock_nanosleep"),
        fails: || sleeps("wait4"),
    },
    Sentence {
        says: "the trace does not show which were needless",
        needs: "a trace of counts alone",
        holds: || {
            healthy(|rec, _| {
                rec.header.backend = BackendKind::Import;
                rec.windows.clear();
            })
        },
        fails: || healthy(|_, _| {}),
    },
    Sentence {
        says: "93 system calls, exact",
        needs: "that every call was counted",
        holds: || healthy(|_, _| {}),
        fails: || healthy(|rec, _| rec.header.lost = 3),
    },
    Sentence {
        says: "(3 calls lost)",
        needs: "that so many were lost",
        holds: || healthy(|rec, _| rec.header.lost = 3),
        fails: || healthy(|_, _| {}),
    },
    Sentence {
        says: "12 calls may be unnecessary (",
        needs: "calls that are claimed and told nowhere else",
        holds: || healthy(|_, j| (j.untold.calls, j.untold.unsure_calls, j.untold.toll_ns) = (7, 5, 900)),
        fails: || healthy(|_, j| j.untold.unsure_calls = 11),
    },
    Sentence {
        says: "could not be judged",
        needs: "calls of which nothing can be said",
        holds: || healthy(|_, j| j.unjudged = Unjudged { calls: 7, toll_ns: 9_000 }),
        fails: || healthy(|_, _| {}),
    },
    Sentence {
        says: "of its CPU time goes to needless system calls",
        needs: "needless calls with a price, and the program's own processor time",
        holds: || found(same),
        fails: || found(started),
    },
    Sentence {
        says: "of its CPU time goes to starting programs",
        needs: "that what is paid for is starts of programs",
        holds: || found(started),
        fails: || found(same),
    },
    Sentence {
        says: "is waited for nothing",
        needs: "a finding about waiting",
        holds: || waits(same),
        fails: || found(same),
    },
    Sentence {
        says: "before main begins",
        needs: "that all that is waited for is before main",
        holds: || waits(same),
        fails: || waits(|f| f.phase = Phase::Steady),
    },
    Sentence {
        says: "69 % of wall, before main",
        needs: "that all of its calls are made before main",
        holds: || waits(same),
        fails: late,
    },
    Sentence { says: "mostly before main", needs: "that some are made later", holds: late, fails: || waits(same) },
    Sentence {
        says: "69 % of the run",
        needs: "that one thread after another holds the program up, and the run's own length",
        holds: || waits(same),
        fails: || waits(|f| f.share_of_wall = None),
    },
    Sentence {
        says: "what they cost is not known",
        needs: "findings without a price",
        holds: || found(|f| f.needless_toll_ns = 0),
        fails: || found(same),
    },
    Sentence {
        says: "still running",
        needs: "a program that was watched and has not ended",
        holds: || healthy(|rec, _| rec.header.exit = None),
        fails: || {
            healthy(|rec, _| {
                (rec.header.exit, rec.header.backend) = (None, BackendKind::Import);
            })
        },
    },
    Sentence {
        says: "ran for 2 h 30 min before, runs on",
        needs: "a program that ran before, and was left running",
        holds: || attached(true),
        fails: || attached(false),
    },
    Sentence {
        says: "ran for 2 h 30 min before, has ended",
        needs: "a program that ran before, and ended while it was watched",
        holds: || attached(false),
        fails: || attached(true),
    },
    Sentence {
        says: "the trace does not show how it ended",
        needs: "a trace without the end",
        holds: || healthy(|rec, _| (rec.header.exit, rec.header.backend) = (None, BackendKind::Import)),
        fails: || healthy(|rec, _| rec.header.exit = None),
    },
    Sentence {
        says: "killed by SIGSEGV",
        needs: "that this ended it",
        holds: || healthy(|rec, _| rec.header.exit = Some(Exit::Signal(11))),
        fails: || healthy(|rec, _| rec.header.exit = Some(Exit::Code(11))),
    },
    Sentence {
        says: "about 5,003 calls",
        needs: "that the place makes other calls too, and how many are the finding's is an estimate",
        holds: || found(|f| f.calls_about = Some(Estimate { estimate: 5_003, low: 4_900, high: 5_100 })),
        fails: || found(|f| f.calls_about = Some(Estimate { estimate: 5_003, low: 5_003, high: 5_003 })),
    },
    Sentence {
        says: "rt_sigprocmask 20,033,022 calls",
        needs: "that all calls of its rows are the finding's",
        holds: || found(same),
        fails: || found(|f| f.calls_about = Some(Estimate { estimate: 5_003, low: 5_003, high: 5_003 })),
    },
    Sentence {
        says: "of it 10 of the 20,033,022 calls are needless",
        needs: "that more than a tenth of them are not",
        holds: || found(|f| f.needless = Estimate { estimate: 10, low: 10, high: 10 }),
        fails: || found(|f| f.needless = Estimate { estimate: f.calls - 10, low: f.calls - 10, high: f.calls - 10 }),
    },
    Sentence {
        says: "(9 to 12) are needless",
        needs: "that how many are is an estimate",
        holds: || found(|f| f.needless = Estimate { estimate: 10, low: 9, high: 12 }),
        fails: || found(|f| f.needless = Estimate { estimate: 10, low: 10, high: 10 }),
    },
    Sentence {
        says: "1 needless call per write; 8,000 writes",
        needs: "that round after round of writes was seen to hold one",
        holds: || found(|f| per(f, WorkUnit::Write, 1)),
        fails: || found(same),
    },
    Sentence {
        says: "per file; 8,000 files",
        needs: "that each opening was of another file",
        holds: || found(|f| per(f, WorkUnit::File, 1)),
        fails: || found(|f| per(f, WorkUnit::Opening, 1)),
    },
    Sentence {
        says: "1 of the 3 calls per request is needless",
        needs: "that a round has calls that are of use",
        holds: || found(|f| per(f, WorkUnit::Request, 3)),
        fails: || found(|f| per(f, WorkUnit::Request, 1)),
    },
    Sentence {
        says: "beside the calls themselves: 40 page faults",
        needs: "faults that were seen to follow",
        holds: || {
            found(|f| {
                let of = |n| Estimate { estimate: n, low: n, high: n };
                f.later = Some(Later { faults: of(40), ns: of(4_000), ..Later::default() });
            })
        },
        fails: || {
            found(|f| {
                f.later = Some(Later { switches: Estimate { estimate: 40, low: 40, high: 40 }, ..Later::default() })
            })
        },
    },
    Sentence {
        says: "expected gain: at least 1.70 s",
        needs: "more work around the calls than the bounds are apart",
        holds: || found(|f| gain(f, 900_000_000)),
        fails: || found(|f| gain(f, 1_000)),
    },
    Sentence {
        says: "expected gain: 1.70 s to 2.10 s",
        needs: "that little else can go with them",
        holds: || found(|f| gain(f, 1_000)),
        fails: || found(|f| gain(f, 900_000_000)),
    },
    Sentence {
        says: "the calls alone take 1.95 s",
        needs: "a price, and no gain that can be told",
        holds: || found(same),
        fails: || found(|f| gain(f, 1_000)),
    },
    Sentence {
        says: "24 of 24 samples agree",
        needs: "that it rests on samples",
        holds: || found(same),
        fails: || found(|f| f.basis = Basis::Looks),
    },
    Sentence {
        says: "single calls sampled from the run's start to its end",
        needs: "that it rests on looks at single calls",
        holds: || found(|f| f.basis = Basis::Looks),
        fails: || found(same),
    },
    Sentence {
        says: "every start was counted",
        needs: "that it counts starts",
        holds: || found(started),
        fails: || found(|f| f.basis = Basis::Counts),
    },
    Sentence {
        says: "every wait before main was counted",
        needs: "that it counts waits",
        holds: || found(|f| f.basis = Basis::Counts),
        fails: || found(started),
    },
    Sentence {
        says: "the same calls of the same program in other processes",
        needs: "that none of its own calls was looked at",
        holds: || found(|f| f.evidence = Evidence::default()),
        fails: || found(same),
    },
    Sentence {
        says: "samples were incomplete",
        needs: "medium confidence, which a problem of the recording brings",
        holds: || found(|f| f.confidence = Confidence::Medium),
        fails: || found(same),
    },
    Sentence {
        says: "they cost too little, or are too few, for a finding",
        needs: "a remark that is one for its price",
        holds: || remark(|f| f.doubt = Some(Doubt::Cheap)),
        fails: || remark(|f| f.doubt = Some(Doubt::Unsure)),
    },
    Sentence {
        says: "optional, because the fix has a price: a context no longer",
        needs: "a remark of calls that may have a reason, and a cure that gives something up",
        holds: || remark(|f| f.doubt = Some(Doubt::Unsure)),
        fails: || remark(|f| f.doubt = Some(Doubt::FewSamples)),
    },
    Sentence {
        says: "the program may have a reason for each of them",
        needs: "the same, and a cure that gives nothing up",
        holds: || {
            remark(|f| {
                f.doubt = Some(Doubt::Unsure);
                f.cures.remove(0);
            })
        },
        fails: || remark(|f| f.doubt = Some(Doubt::Unsure)),
    },
    Sentence {
        says: "most calls from this place may be necessary",
        needs: "a remark of a part of its rows' calls",
        holds: || remark(|f| f.doubt = Some(Doubt::PartOfRow)),
        fails: || remark(|f| f.doubt = Some(Doubt::Unsure)),
    },
    Sentence {
        says: "too few of them were sampled, or the samples differ: 700 of 20,033,022 calls",
        needs: "a remark that few looks stand for",
        holds: || remark(|f| f.doubt = Some(Doubt::FewSamples)),
        fails: || remark(|f| f.doubt = Some(Doubt::PartOfRow)),
    },
    Sentence {
        says: "most of the time 4,000 × (openat, pwrite64)",
        needs: "rounds that most of the run goes to, and no finding",
        holds: || round(|_| {}),
        fails: || round(|round| round.is_of_rest = false),
    },
    Sentence {
        says: "most of the rest",
        needs: "such rounds beside findings",
        holds: || {
            let ((_, Judgement { rounds, .. }), (rec, judgement)) = (round(|_| {}), stories::ruby());
            (rec, Judgement { rounds, ..judgement })
        },
        fails: || round(|_| {}),
    },
    Sentence {
        says: "about 4,000 × (openat",
        needs: "a count that only windows tell",
        holds: || round(|round| round.count.high = 4_100),
        fails: || round(|_| {}),
    },
    Sentence {
        says: "pwrite64 in 40 %",
        needs: "a call that not all rounds have",
        holds: || round(|round| step(round, 1).share = 0.4),
        fails: || round(|_| {}),
    },
    Sentence {
        says: "pwrite64 ×24 on average",
        needs: "a number that windows and counts tell together",
        holds: || round(|round| step(round, 1).times = Times { least: 8, most: 32, mean: 24.1 }),
        fails: || round(|round| step(round, 1).times = Times { least: 24, most: 24, mean: 24.0 }),
    },
    Sentence {
        says: "openat segment?",
        needs: "names that have something in common",
        holds: || round(|round| step(round, 0).object = paths(4)),
        fails: || round(|_| {}),
    },
    Sentence {
        says: "of 64 openat calls sampled, all were for one of 4 paths",
        needs: "looks at some paths, again and again",
        holds: || round(|round| step(round, 0).object = paths(4)),
        fails: || round(|round| step(round, 0).object = paths(1)),
    },
    Sentence {
        says: "no two calls of openat (64 sampled) named the same path",
        needs: "looks that all differ",
        holds: || round(|round| step(round, 0).object = paths(64)),
        fails: || round(|round| step(round, 0).object = paths(63)),
    },
    Sentence {
        says: "no two calls of pwrite64 (64 sampled) moved the same data, byte for byte",
        needs: "bytes that all differ",
        holds: || round(|round| step(round, 1).data = Some(Variety { looks: 64, different: 64 })),
        fails: || round(|round| step(round, 1).data = Some(Variety { looks: 64, different: 60 })),
    },
    Sentence {
        says: "pwrite64 4 KiB at the next place",
        needs: "offsets that grow by just the size",
        holds: || {
            round(|round| {
                (step(round, 1).size, step(round, 1).offset) = (Some(Numbers::Same(4096)), Some(Numbers::Steps(4096)))
            })
        },
        fails: || {
            round(|round| {
                (step(round, 1).size, step(round, 1).offset) = (Some(Numbers::Same(4096)), Some(Numbers::Steps(8192)))
            })
        },
    },
    Sentence {
        says: "the findings above account for 25 % of this",
        needs: "findings that claim a part of its price",
        holds: || round(|round| round.claimed.toll_ns = 10_000_000),
        fails: || round(|round| round.claimed.toll_ns = 10_000),
    },
    Sentence {
        says: "in 4 threads at least",
        needs: "windows of several threads that show it",
        holds: || round(|round| round.threads = 4),
        fails: || round(|round| round.images = vec![0, 1, 2, 3]),
    },
    Sentence {
        says: "waited 0.900 s (90 % of the run), 225 µs each",
        needs: "waiting that is longer than the calls' price, of one thread",
        holds: || round(|round| (round.waited_ns, round.share_of_wall) = (Some(900_000_000), Some(0.9))),
        fails: || round(|round| round.waited_ns = Some(900_000_000)),
    },
];

/// Returns all text about a story, on one line: the report, and the sentences of JSON and the page.
fn said((rec, judgement): &Story) -> String {
    let style = Style { color: false, width: 160, whole_names: true };
    let mut text = report(rec, judgement, &ReportOptions::default(), &style);
    let json = report_json(rec, judgement, None);
    let mut told = vec![json["told"].clone()];
    let findings = ["findings", "also", "rounds"].into_iter().filter_map(|list| json[list].as_array());
    told.extend(findings.flatten().map(|f| f["told"].clone()));
    told.iter().filter_map(|told| told.as_object()).flat_map(|told| told.values()).for_each(|value| {
        text += " ";
        text += value.as_str().unwrap_or_default();
        text += &value.as_array().into_iter().flatten().filter_map(|v| v.as_str()).collect::<Vec<_>>().join(" ");
    });
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_sentence_appears_only_with_its_fact() {
    for Sentence { says, needs, holds, fails } in SENTENCES {
        let (told, silent) = (said(&holds()), said(&fails()));
        assert!(told.contains(says), "where there is {needs}, it is told: {says}\n{told}");
        assert!(!silent.contains(says), "without {needs}, it is not told: {says}\n{silent}");
    }
}

/// Checks that terminal, JSON and page have the same sentence about a figure.
#[test]
fn a_figure_is_worked_out_once() {
    for story in [stories::ruby(), stories::lttng(), stories::localtime(), found(started)] {
        let style = Style { color: false, width: 400, whole_names: true };
        let text = report(&story.0, &story.1, &ReportOptions::default(), &style);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let json = report_json(&story.0, &story.1, None);
        assert!(text.contains(json["told"]["verdict"].as_str().unwrap()), "{text}\n{}", json["told"]);
        for finding in json["findings"].as_array().unwrap() {
            let told = &finding["told"];
            let cost = told["cost"].as_str().unwrap().split_once(", ").map_or("", |(time, _)| time);
            for part in [told["calls"].as_str().unwrap(), cost] {
                assert!(text.contains(part), "{part} is not in {text}");
            }
        }
    }
}
