//! Makes findings from a recording: which system calls were needless, what they cost, why they are made, and how to
//! stop them. The crate does no I/O and gives the same findings for the same recording (clippy.toml holds it).
//!
//! Windows are replayed, and detectors claim calls. The claims become a share of each row, rows with one disease
//! become a group, and a group that costs enough becomes a finding. Causes are data: no detector knows one.
//!
//! ```
//! use systoll_judge::{Catalogue, Options, judge};
//! use systoll_model::*;
//!
//! // A program that asked for its process id 16,384 times and spent 10 ms of processor time.
//! let mut recording = Recording::default();
//! recording.header.own_cpu_ns = Some(10_000_000);
//! recording.processes.push(Process { exe: "/bin/app".into(), instances: 1, main_at_ns: Some(1), ..Process::default() });
//! recording.stacks.push(Stack::default());
//! let counts = Counts { calls: 16_384, toll_ns: Some(2_000_000), ..Counts::default() };
//! let syscall = Sysno::from_name("getpid").unwrap();
//! let (process, row, stack) = (ProcessId(0), RowId(0), StackId(0));
//! let api = Some("getpid".into());
//! let (context, outer) = (stack, stack);
//! recording.rows.push(Row { context, outer, api, ..Row::new(process, syscall, counts) });
//! // Sixteen consecutive calls of it were recorded whole in each octave of its count: the answer was 4711.
//! for octave in 4..14 {
//!     let call = |n: u64| WindowCall {
//!         row, nth: (1 << octave) + n, args: [0; 6], data: vec![], fd: None, result: Some(4711), entry_ns: n,
//!         elapsed_ns: 100, waited_ns: None, signals_before: 0, faults: None, stack: None, before: Before::Unknown, request: None,
//!     };
//!     recording.windows.push(Window { process, thread: 0, row, octave, calls: (0..16).map(call).collect() });
//! }
//! let judgement = judge(&recording, &Catalogue::builtin(), &Options::default());
//! let finding = &judgement.findings[0];
//! assert_eq!(finding.cause.as_deref(), Some("identity-per-op"));
//! // All ten windows agree: nearly all calls are needless, and at least 74 % of them.
//! assert!(finding.needless.estimate > 15_000 && finding.needless.low > 11_000);
//! ```

#![forbid(unsafe_code)]

mod causes;
mod code;
mod collections;
mod detect;
mod evidence;
mod excerpt;
mod grouping;
mod groups;
mod judgement;
mod names;
mod options;
mod pool;
mod price;
mod reasons;
mod requests;
mod results;
mod rounds;
mod semantics;
mod time;
mod verdict;
mod words;
mod world;

pub use causes::catalogue::{Apply, Catalogue, Cause, CauseError, Cure, FileUse};
pub use causes::fact::{AskedFacts, Fact};
pub use causes::pattern::{ArgValues, List, Pattern};
pub use causes::target::Target;
pub use causes::upgrade::Upgrade;
pub use code::language::{CodeLanguage, Version};
pub use code::owner::Actor;
pub use grouping::{By, Common, Group, Grouping, caller_bounds, grouped, line_bounds, unseen_share};
pub use judgement::Judgement;
pub use options::{Options, UseOfReasons};
pub use pool::{AskingLine, Requested, requested};
pub use reasons::{Plain, REASONS, Reason, ReasonId, Then, Why};
pub use requests::{Figure, Quantiles, RequestCall, RequestCost, Requests};
pub use results::cure_kind::CureKind;
pub use results::finding::{
    Advice, Basis, Beneath, Confidence, Counted, Doubt, Estimate, Evidence, ExpectedGain, Finding, Kind, Later,
    ObjectShare, PerUnit, RowNeedless, Unjudged, Untold, Wait, WorkUnit,
};
pub use rounds::{Numbers, Objects, Round, RoundCall, RoundClaimed, RoundPlace, RoundRow, RoundStep, Times, Variety};
pub use semantics::Sleep;
pub use time::{EndedWait, Searched, Searcher, StartWork, WaitClass, WallPart, WallTime, only_sleeps};
pub use verdict::silences::Silence;
pub use words::language_api::node_function;

use evidence::{extrapolate, phases, survey};
use groups::program_facts::ProgramFacts;
use groups::{by_object, group, judged_view, late_waits};
use price::joint_bounds;
use semantics::Semantics;
use std::cmp::Reverse;
use systoll_model::Recording;
use verdict::{joined, silences, unreported};

/// Judges a recording for which [`Recording::check`] holds.
pub fn judge(recording: &Recording, catalogue: &Catalogue, options: &Options) -> Judgement {
    let semantics = Semantics::new();
    let claims = detect::claims(recording, &semantics, options);
    let mut views = survey::survey(recording, &claims);
    extrapolate::lend_ledgers(recording, &mut views);
    extrapolate::extrapolate(recording, &mut views);
    let waits = detect::startup_waits(recording, &semantics, options);
    let time = time::judged(recording, &semantics);
    let mut children = detect::children(recording, &semantics, options);
    let copies = detect::copies(recording, &semantics, &mut children);
    children.extend(copies);
    children.iter_mut().for_each(|children| children.note_lines(recording, &time.awaited_at));
    let phases = phases::Phases::of(recording);
    let (programs, of_parts) = (ProgramFacts::default(), ProgramFacts::default());
    let shown = judged_view::JudgedView {
        recording,
        views: &views,
        claims: &claims,
        semantics: &semantics,
        programs: &programs,
    };
    let verdicts = |groups: &[group::Group<'_>], shown| joined::verdicts(groups, shown, &phases, options);
    // These rows are counted as a whole, so they are not split by object.
    let sure = time.needless.iter().filter(|late| late.kind.doubt().is_none());
    let late = sure.flat_map(|late| late.rows.clone());
    let whole = waits.iter().map(|wait| wait.row).chain(late).chain(children.iter().flat_map(|c| c.rows.clone()));
    let whole: Vec<_> = whole.collect();
    let started: Vec<_> = children.into_iter().map(|c| group::started(c, recording, catalogue)).collect();
    let mut all = verdicts(&started, shown);
    let late: Vec<_> = time.needless.iter().map(|late| late_waits::group(late, recording, &views, catalogue)).collect();
    all.extend(verdicts(&late, shown));
    let parts = by_object::split(shown, catalogue, &whole, options);
    let of_strands = parts.as_ref().map(|parts| parts.views(shown));
    let strands = match (&parts, &of_strands) {
        (Some(parts), Some(views)) => {
            judged_view::JudgedView { recording: &parts.recording, views, programs: &of_parts, ..shown }
        }
        _ => shown,
    };
    let groups = group::groups(strands.recording, strands.views, &waits, catalogue, options);
    let mut found = verdicts(&groups, strands);
    if let Some(parts) = &parts {
        found.iter_mut().for_each(|finding| parts.restore(finding, recording));
    }
    found.iter_mut().for_each(|finding| by_object::note_shared(finding, recording));
    all.extend(found);
    let claimed_cpu_ns = joint_bounds::hold_together(&mut all, recording);
    all.sort_by_key(|f| (Reverse(f.confidence), Reverse(f.time_to_win_ns()), f.rows.first().copied()));
    joined::leave_explained_waits(&mut all);
    joined::leave_one_end(&mut all, recording);
    all.sort_by_key(|f| (Reverse(f.time_to_win_ns()), f.rows.first().copied()));
    let (untold, beneath) = unreported::untold(strands, all.iter(), catalogue);
    let unjudged = unreported::unjudged(shown);
    let mut of_lines = parts.map(|parts| Box::new(parts.recording));
    for finding in &mut all {
        if late_waits::needs_lines(finding, recording) {
            late_waits::narrow(finding, of_lines.get_or_insert_with(|| Box::new(recording.clone())));
        }
        if finding.starts && finding.doubt == Some(Doubt::Unsure) && time.keeps_pace() {
            finding.doubt = Some(Doubt::Pace);
        }
        if let Some(senders) = late_waits::senders(finding, &time.needless) {
            let strands = of_lines.get_or_insert_with(|| Box::new(recording.clone()));
            late_waits::lead_with(senders, finding, recording, strands);
        }
    }
    let (findings, also): (Vec<Finding>, Vec<Finding>) = all.into_iter().partition(|f| f.confidence != Confidence::Low);
    let mut rounds = rounds::rounds(recording, &semantics, &phases, &findings);
    let requests = requests::requests(recording, &claims, &findings);
    let (waits, counted) = (excerpt::waits(recording), excerpt::counted(recording));
    let is_excerpt = excerpt::Excerpt::of(recording).is_some();
    let mut judgement = Judgement {
        findings,
        also,
        untold,
        beneath,
        unjudged,
        rounds: Vec::new(),
        requests,
        waits,
        wall_time: time.wall,
        start_work: time.start,
        counted,
        is_excerpt,
        claimed_cpu_ns,
        silences: silences::silences(recording, &claims, options),
        strands: of_lines,
    };
    // Rounds and findings have shares of the same time.
    if let Some((own, whole)) = recording.own_cpu_ns().zip(judgement.own_cpu_ns(recording)) {
        let scaled = |share: f64| share * own as f64 / whole as f64;
        rounds.iter_mut().for_each(|round| round.share_of_cpu = round.share_of_cpu.map(scaled));
    }
    judgement.rounds = rounds;
    judgement
}
