//! A finding's words: the mechanism with its evidence, the cures, the next command.

use crate::causes::catalogue::{Cause, Cure, FileUse, Fit, Suspect};
use crate::causes::fact::Facts;
use crate::causes::pattern::{Pattern, Symptoms, glob};
use crate::code::author::Author;
use crate::code::language::CodeLanguage;
use crate::code::owner::{Actor, Owner};
use crate::evidence::survey::RowView;
use crate::groups::group::{Group, common_target, facts_of, symptoms};
use crate::groups::judged_view::JudgedView;
use crate::groups::program_facts::{ProgramFacts, is_given_files};
use crate::results::cure_kind::CureKind;
use crate::results::finding::{Advice, Basis, Evidence, Finding, Kind};
use crate::semantics::Semantics;
use crate::words::language_api::{api_shares, language_api};
use crate::words::next_command::next_command;
use std::sync::Arc;
use systoll_model::{Frame, FrameClass, Machine, ProcessId, Recording, RowId, WindowCall};

/// Least share of the stacks of single calls, 0 to 1, that have one owner, for it to be that of all.
const BY_STACKS: f64 = 0.75;

/// Least share of a finding's calls, 0 to 1, that go to an object of the type for which a cure is: a few lines that a
/// program prints at its end do not make a cure for its log one for standard output.
const OFTEN: f64 = 0.125;

/// Fills in the finding's words. Returns true if the first cure leaves out the library function that makes the calls.
pub(crate) fn put(finding: &mut Finding, group: &Group<'_>, shown: JudgedView<'_>, api: Option<&str>) -> bool {
    let JudgedView { recording, views, .. } = shown;
    let mut author = finding.rows.first().map(|id| Author::of(recording, recording.row(*id))).unwrap_or_default();
    if author.owner == Owner::Reader
        && let Some(owner) = owner_by_stacks(finding, shown)
    {
        author.owner = owner;
    }
    finding.language = author.language;
    finding.language_api = finding.rows.first().and_then(|id| {
        let target = views.get(id.0 as usize).and_then(|view| common_target(recording.row(*id), view));
        language_api(recording, *id, author.language, target)
    });
    // In C and C++ the functions of the C library are called by their names.
    let is_c = matches!(author.language, Some(CodeLanguage::C | CodeLanguage::Cpp));
    author.called = finding.language_api.clone().or_else(|| api.filter(|_| is_c).map(str::to_owned));
    author.shares = finding.rows.first().map(|id| api_shares(recording, *id)).unwrap_or_default();
    let (mut applied, mut whole) = (None, false);
    let cause = group.cause.and_then(Suspect::cause);
    let calls = ClaimedCalls { rows: &finding.rows, kind: finding.kind, ..ClaimedCalls::of(group, shown) };
    leave_to_interpreter(&mut author, cause, &calls, finding, recording);
    match cause {
        Some(cause) => {
            // The finding has the mechanism of its first row; other rows may have another.
            let lead = ClaimedCalls { rows: finding.rows.get(..1).unwrap_or_default(), ..calls };
            let matched = lead.mostly(&cause.matches).or_else(|| calls.mostly(&cause.matches));
            let why = matched.and_then(|m| m.why.as_deref()).unwrap_or(&cause.why);
            let about = subjects(finding, group);
            let cures = offered(cause, [&lead, &calls], &author, &about, finding.starts);
            // Environment variables are applied only if they are the first cure: a variable that is
            // right in some situations is no cure in others.
            let first = cures.first().filter(|c| !c.env.is_empty());
            whole = cures.first().is_some_and(|c| c.whole);
            applied = first.or_else(|| cures.iter().find(|c| c.shim.is_some())).map(|cure| asked_as(cause, cure));
            let why = fill(why, finding, api);
            let upgrades = cause.upgrades.iter().filter(|u| u.concerns(&finding.rows, recording));
            let upgrades = upgrades.filter_map(|u| u.advice(&author, recording));
            let (older, unknown): (Vec<_>, Vec<_>) = upgrades.partition(|(is_older, _)| *is_older);
            let advised = |upgrades: Vec<(bool, Advice)>| upgrades.into_iter().map(|(_, advice)| advice);
            let for_each = cures_for_each(&cures, &about, finding.starts);
            let known = cures.iter().enumerate();
            let known = known.map(|(at, cure)| Advice { is_for_one: at < for_each, ..advice(cure, &author) });
            let call_less = call_less(cause, &cures, &calls, &author, &about).map(Advice::general);
            finding.cures = advised(older).chain(call_less).chain(known).chain(advised(unknown)).collect();
            let only_in_code = cures.iter().all(|cure| cure.changes_the_code());
            let left = author.owner.else_to_do().filter(|_| only_in_code && finding.cures.len() == cures.len());
            finding.cures.extend(left.map(Advice::to_others));
            finding.why = why;
        }
        None => generic(finding, group, &author),
    }
    if finding.cures.is_empty() {
        finding.cures = vec![Advice::general("leave the calls out")];
    }
    finding.prove = next_command(cause, applied, (finding, group.late.as_ref()), recording);
    whole
}

/// Returns the owner of the code that makes most calls of a finding's first row, by the stacks of single calls: those that a
/// logging module makes may have no function of it in common.
fn owner_by_stacks(finding: &Finding, shown: JudgedView<'_>) -> Option<Owner> {
    let recording = shown.recording;
    let lead = finding.rows.first()?;
    let program = recording.process(recording.row(*lead).process);
    let windows = shown.views.get(lead.0 as usize)?.windows.iter();
    let calls = windows.filter_map(|(at, _)| recording.windows.get(*at)).flat_map(|window| &window.calls);
    let owners = calls.filter(|call| call.row == *lead).filter_map(|call| {
        let frames = recording.stack(call.stack?).frames.iter().map(|id| recording.frame(*id));
        Owner::of_script_frames(frames, program)
    });
    let mut counts: Vec<(Owner, usize)> = Vec::new();
    for owner in owners {
        match counts.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, count)) => *count += 1,
            None => counts.push((owner, 1)),
        }
    }
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    counts.into_iter().find(|(_, count)| *count as f64 >= BY_STACKS * all as f64).map(|(owner, _)| owner)
}

/// Returns the advice to call a library function less often, if that function makes the calls
/// inside, and the cures in the language are for other functions, which the code does not call.
fn call_less(
    cause: &Cause,
    offered: &[&Cure],
    calls: &ClaimedCalls<'_>,
    author: &Author,
    about: &[&str],
) -> Option<String> {
    let called = author.called.as_deref().filter(|_| author.owner == Owner::Reader)?;
    let for_others = |cure: &Cure| {
        cure.fit_of_any_call(author, about).is_some() && !cure.is_for_called(author) && calls.ask_for(cure)
    };
    let is_particular = |cure: &Cure| cure.fit(author, about) == Some(Fit::Particular);
    let is_for_it = |cure: &&Cure| {
        cure.is_special() || !cure.called.is_empty() || cure.kind != CureKind::Code || is_particular(cure)
    };
    // A function that is called for another thing each time has nothing to keep.
    let again = matches!(calls.kind, Kind::Repeat | Kind::NoOp | Kind::Failing | Kind::Toggle);
    let left = again && cause.cures.iter().any(for_others) && !offered.iter().any(is_for_it);
    left.then(|| format!("call {called} less often: keep what it returned, or that it was done"))
}

/// Makes the interpreter's authors the owner of the calls if its scripts can't ask for them and no
/// cure is known in their language.
fn leave_to_interpreter(
    author: &mut Author,
    cause: Option<&Cause>,
    calls: &ClaimedCalls<'_>,
    finding: &Finding,
    recording: &Recording,
) {
    let (Some(language), Some(lead)) = (author.language, finding.rows.first()) else { return };
    let in_language =
        |cure: &Cure| cure.is_for_language(language) && cure.fit(author, &[]).is_some() && calls.ask_for(cure);
    if author.owner != Owner::Reader || cause.is_some_and(|cause| cause.cures.iter().any(in_language)) {
        return;
    }
    let program = recording.process(recording.row(*lead).process);
    if let Some(owner) = Owner::of_interpreter(language, program, &finding.syscalls, finding.language_api.as_deref()) {
        author.owner = owner;
    }
}

/// Returns the name by which `systoll prove --cure` finds a cure: its cause's id, with the cure's
/// number unless it is the first that can be applied.
fn asked_as(cause: &Cause, cure: &Cure) -> String {
    let first = cause.cures.iter().find(|c| c.is_applied());
    match cause.cures.iter().position(|c| std::ptr::eq(c, cure)) {
        Some(at) if !first.is_some_and(|first| std::ptr::eq(first, cure)) => format!("{}:{}", cause.id, at + 1),
        _ => cause.id.to_string(),
    }
}

/// Returns the names that a finding is about: if it starts shells, the programs these run; otherwise its object and
/// the programs it starts, or the objects that half of its calls are about.
fn subjects<'a>(finding: &'a Finding, group: &'a Group<'_>) -> Vec<&'a str> {
    if let Some(children) = group.children.as_ref().filter(|children| !children.within.is_empty()) {
        return children.within.iter().map(|program| &**program).collect();
    }
    if finding.starts || finding.what.is_some() {
        let programs = finding.objects.iter().filter(|_| finding.starts).map(|o| o.name.as_str());
        return finding.what.as_deref().into_iter().chain(programs).collect();
    }
    let mut share = 0.0;
    let most = finding.objects.iter().take_while(|o| {
        let before = share;
        share += o.share;
        before < 0.5
    });
    most.map(|o| o.name.as_str()).collect()
}

/// Returns the cures that fit the program, best first: those for its files or for the finding's objects, then the
/// others in the cause's order. If a cure is in the program's language, those in general words are left out. The cure
/// that the next command tries is among the first two, since a short report shows only these. A cure for other functions
/// than the one in the finding's first line, whose calls are `lead`, comes after those for it.
fn offered<'a>(
    cause: &'a Cause,
    [lead, calls]: [&ClaimedCalls<'_>; 2],
    author: &Author,
    about: &[&str],
    starts: bool,
) -> Vec<&'a Cure> {
    let fits = |cure: &'a Cure| Some((cure.fit(author, about)?, cure)).filter(|_| calls.ask_for(cure));
    let mut fitting: Vec<_> = cause.cures.iter().filter_map(fits).collect();
    if fitting.iter().any(|(_, cure)| cure.is_special()) {
        fitting.retain(|(_, cure)| cure.is_special());
    }
    if fitting.iter().any(|(_, cure)| cure.kind == CureKind::Language) {
        fitting.retain(|(_, cure)| cure.kind == CureKind::Language);
    }
    let names_functions = |cure: &Cure| cure.when.as_ref().is_some_and(|when| !when.apis.is_empty());
    let for_lead = |cure: &Cure| !names_functions(cure) || lead.ask_for(cure);
    for kind in [CureKind::Code, CureKind::Configuration] {
        let of_language = || fitting.iter().filter(|(_, cure)| cure.kind == kind && !cure.languages.is_empty());
        let (any, any_for_lead) = (of_language().next().is_some(), of_language().any(|(_, cure)| for_lead(cure)));
        if any {
            let is_left = |cure: &Cure| !any_for_lead && names_functions(cure) && for_lead(cure);
            fitting.retain(|(_, cure)| cure.kind != kind || !cure.is_general() || is_left(cure));
        }
    }
    // If each program has a cure of its own, cures for programs in general are left out.
    let known = |what: &&str| fitting.iter().any(|(_, cure)| cure.is_about(what));
    if starts && about.iter().all(known) {
        fitting.retain(|(fit, _)| *fit == Fit::Particular);
    }
    // A reader who only runs the program has a setting to change: a change of its code is no cure for them then.
    let by_others = author.owner.reader() != Actor::Author;
    if by_others && fitting.iter().any(|(fit, cure)| *fit == Fit::Particular && !cure.changes_the_code()) {
        fitting.retain(|(_, cure)| !cure.changes_the_code());
    }
    fitting.sort_by_key(|(fit, cure)| (*fit, by_others && cure.changes_the_code(), !for_lead(cure)));
    let cures: Vec<&Cure> = fitting.into_iter().map(|(_, cure)| cure).collect();
    let mut cures = one_for_each(cures, about);
    if let Some(at) = cures.iter().position(|c| c.shim.is_some()).filter(|at| *at > 1) {
        let shim = cures.remove(at);
        cures.insert(1, shim);
    }
    cures
}

/// Returns the cures with one for each named object moved to the front, in the objects' order.
fn one_for_each<'a>(mut cures: Vec<&'a Cure>, about: &[&str]) -> Vec<&'a Cure> {
    let mut first = Vec::new();
    for what in about {
        // A cure for this object alone says more than one for several.
        let others = |cure: &Cure| about.iter().filter(|other| cure.is_about(other)).count();
        let best =
            cures.iter().enumerate().filter(|(_, cure)| cure.is_about(what)).min_by_key(|(_, cure)| others(cure));
        if let Some(at) = best.map(|(at, _)| at).filter(|_| !first.iter().any(|cure: &&Cure| cure.is_about(what))) {
            first.push(cures.remove(at));
        }
    }
    first.extend(cures);
    first
}

/// Returns the number of cures at the front that are each for another one of the started programs.
fn cures_for_each(cures: &[&Cure], about: &[&str], starts: bool) -> usize {
    let mut told: Vec<&str> = Vec::new();
    let is_for_another = |cure: &&&Cure| {
        let before = told.len();
        told.extend(about.iter().filter(|what| cure.is_about(what)));
        told.len() > before && !told.get(..before).unwrap_or_default().iter().any(|what| cure.is_about(what))
    };
    if starts { cures.iter().take_while(is_for_another).count() } else { 0 }
}

fn advice(cure: &Cure, author: &Author) -> Advice {
    Advice {
        how: if cure.changes_the_code() { author.owner.in_its_code(&line(cure)) } else { line(cure) },
        kind: Some(cure.kind),
        gives_up: cure.gives_up.clone(),
        language: author.language.filter(|_| !cure.languages.is_empty()),
        is_applied: cure.is_applied(),
        is_for_one: false,
        by_others: cure.kind == CureKind::Language || cure.changes_the_code() && author.owner.reader() != Actor::Author,
    }
}

/// Returns true if a cure that fits the group needs no change of code or build.
pub(crate) fn offers_free_cure(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    let recording = shown.recording;
    let calls = ClaimedCalls::of(group, shown);
    let Some(lead) = group.rows.first().map(|id| recording.row(*id)) else { return false };
    let mut cures =
        group.cause.and_then(Suspect::cause).into_iter().flat_map(|c| &c.cures).filter(|c| c.kind.is_free()).peekable();
    if cures.peek().is_none() {
        return false;
    }
    let author = Author::of(recording, lead);
    cures.any(|cure| cure.fit(&author, &[]).is_some() && calls.ask_for(cure))
}

/// Returns true if the cause's pattern for these calls makes a remark at most.
pub(crate) fn makes_a_remark(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    let calls = ClaimedCalls::of(group, shown);
    let matches = group.cause.map(|cause| cause.matches).filter(|matches| matches.iter().any(|m| m.remark));
    matches.and_then(|matches| calls.mostly(matches)).is_some_and(|matched| matched.remark)
}

/// Parts of the names of files in which languages load modules. Calls made while a module is loaded do not count as
/// those of the line that loads it.
const LOADERS: [&str; 2] = ["importlib", "kernel_require"];

/// Returns true if a line of the reader's own makes the calls of the group's first row.
pub(crate) fn is_of_reader(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    is_of(group, shown, |owner| *owner == Owner::Reader)
}

/// Returns true if the reader's code, or a package that it calls, makes the group's calls.
pub(crate) fn is_of_reader_or_package(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    is_of(group, shown, |owner| matches!(owner, Owner::Reader | Owner::Package { .. }))
}

fn is_of(group: &Group<'_>, shown: JudgedView<'_>, may_own: impl Fn(&Owner) -> bool) -> bool {
    let recording = shown.recording;
    let Some(lead) = group.rows.first().map(|id| recording.row(*id)) else { return false };
    let Author { language, owner, .. } = Author::of(recording, lead);
    let program = recording.process(lead.process);
    let frames = || recording.row_frames(lead).chain(lead.lines.iter().map(|line| recording.frame(line.frame)));
    let file = |frame: &Frame| frame.location().and_then(|place| place.file.clone());
    let loads = |frame: &Frame| file(frame).is_some_and(|file| LOADERS.iter().any(|loader| file.contains(loader)));
    let is_own = |frame: &Frame| frame.language.is_some() && frame.class == FrameClass::User;
    let its_own = language.and_then(|language| Owner::of_interpreter(language, program, &[lead.syscall], None));
    let by_own_line = CodeLanguage::of_program(program).is_none() || frames().any(is_own);
    may_own(&owner) && its_own.is_none() && by_own_line && !frames().any(loads)
}

/// Returns true if the group starts programs, and no cure names most of them or the program that starts them. Each
/// start may then do another job: a compressor for each file, a test, a handler for each connection.
pub(crate) fn may_have_other_jobs(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    let Some(children) = group.children.as_ref().filter(|children| children.copies.is_none()) else { return false };
    let author = group.rows.first().map(|id| Author::of(shown.recording, shown.recording.row(*id))).unwrap_or_default();
    let cures = || group.cause.and_then(Suspect::cause).into_iter().flat_map(|cause| &cause.cures);
    let is_named = |program: &str| cures().any(|cure| cure.fit(&author, &[program]) == Some(Fit::Particular));
    let within = || children.within.iter().any(|program| is_named(program));
    let named: u64 = children.programs.iter().filter(|s| is_named(&s.program)).map(|started| started.count).sum();
    2 * named < children.count && !within()
}

/// The claimed calls of a finding, which patterns are compared with.
#[derive(Clone, Copy)]
struct ClaimedCalls<'a> {
    rows: &'a [RowId],
    kind: Kind,
    /// Facts of the calls that make children; empty if they make none.
    started: Facts,
    shown: JudgedView<'a>,
}

impl<'a> ClaimedCalls<'a> {
    fn of(group: &'a Group<'_>, shown: JudgedView<'a>) -> Self {
        Self { rows: &group.rows, kind: group.kind, started: facts_of(group.children.as_ref()), shown }
    }

    /// Returns true if the cure's conditions hold for these calls.
    fn ask_for(&self, cure: &Cure) -> bool {
        let of_kind = |when: &Pattern| when.is_of_kind(&[self.kind]);
        cure.when.as_ref().is_none_or(|when| {
            of_kind(when) && self.any(when) && self.mostly_lacks(when) && self.are_often_on(when)
        })
            && cure.several.is_none_or(|several| several == self.are_of_several_places())
            && cure.program.is_none_or(|uses| match uses {
                FileUse::Lists => self.is_listed(),
                FileUse::SeeksFreeName => self.any_row(ProgramFacts::seeks_free_name),
                FileUse::ChangesInPlace => self.any_row(ProgramFacts::is_in_place),
            })
            && cure.files.is_none_or(|files| files == self.are_given_files(cure))
            && (cure.program_sources.is_empty() || self.are_in_program(&cure.program_sources))
            // The libraries that are loaded before libc are written for x86-64.
            && (cure.shim.is_none() || self.shown.recording.header.machine != Some(Machine::Aarch64))
    }

    /// Returns true if at least half of the started programs that the cure names are given files by name.
    fn are_given_files(&self, cure: &Cure) -> bool {
        let started = self.shown.recording.processes.iter().filter(|image| cure.is_about(&image.exe));
        let (given, all) =
            started.fold((0, 0), |(given, all), image| (given + i32::from(is_given_files(image)), all + 1));
        2 * given >= all
    }

    /// Returns true if the fact holds for a row of the calls.
    fn any_row(&self, fact: impl Fn(&ProgramFacts, RowId, &Recording, &Semantics) -> bool) -> bool {
        let JudgedView { recording, semantics, programs, .. } = self.shown;
        self.rows.iter().any(|row| fact(programs, *row, recording, semantics))
    }

    /// Returns true if a source file of the recording's stacks is one of these.
    fn are_in_program(&self, sources: &[String]) -> bool {
        let places = self.shown.recording.frames.iter().flat_map(|frame| &frame.locations);
        let mut files = places.filter_map(|place| place.file.as_deref());
        files.any(|file| sources.iter().any(|pattern| glob(pattern, file)))
    }

    /// Returns true if a window shows the program listing a folder that holds a name of the calls.
    fn is_listed(&self) -> bool {
        let JudgedView { recording, semantics, programs, .. } = self.shown;
        self.any_object(|process, object| {
            let folder = object.rsplit_once('/').map(|(folder, _)| folder);
            folder.is_some_and(|folder| programs.is_listed((process, folder), recording, semantics))
        })
    }

    /// Returns true if two or more contexts or lines of the program ask about the same object. Another finding may be about
    /// another of these.
    fn are_of_several_places(&self) -> bool {
        let JudgedView { recording, views, programs, .. } = self.shown;
        self.any_object(|process, object| programs.is_of_several_places((process, object), recording, views))
    }

    /// Returns true if `is` returns true for an object of the claimed calls, given the process of the finding's first
    /// row.
    fn any_object(&self, is: impl Fn(ProcessId, &str) -> bool) -> bool {
        let Some(process) = self.rows.first().map(|id| self.shown.recording.row(*id).process) else { return false };
        let views = self.rows.iter().filter_map(|id| self.shown.views.get(id.0 as usize));
        let mut objects = views.flat_map(|view| &view.claimed).filter_map(|claimed| claimed.claim.object.as_ref());
        let mut last: Option<&Arc<str>> = None;
        objects.any(|object| {
            // Most claims are about the object of the one before.
            let told = last.is_some_and(|last| Arc::ptr_eq(last, object));
            last = Some(object);
            !told && is(process, object)
        })
    }

    /// Returns true if the object behind the descriptor is as asked for in at least [`OFTEN`] of the calls.
    fn are_often_on(&self, pattern: &Pattern) -> bool {
        let anywhere = || Pattern { on: Vec::new().into(), ..pattern.clone() };
        pattern.on.is_empty() || self.count(pattern) as f64 >= OFTEN * self.count(&anywhere()) as f64
    }

    /// Returns true if at least half of the calls for which the pattern could hold lack the facts that must be absent.
    fn mostly_lacks(&self, pattern: &Pattern) -> bool {
        let Some(facts) = pattern.facts.without_lacking() else { return true };
        let all = self.count(&Pattern { facts, ..pattern.clone() });
        2 * self.count(pattern) >= all
    }

    /// Returns the pattern that holds for most of the claimed calls, of equals the most specific, and of these the
    /// first; `None` if none holds for any.
    fn mostly<'p>(&self, patterns: &'p [Pattern]) -> Option<&'p Pattern> {
        let holds = |pattern: &&Pattern| self.count(pattern);
        let held = patterns.iter().rev().map(|pattern| (holds(&pattern), pattern)).filter(|(n, _)| *n > 0);
        held.max_by_key(|(n, pattern)| (*n, pattern.weight())).map(|(_, pattern)| pattern)
    }

    /// Returns the number of claimed calls for which the pattern holds.
    fn count(&self, pattern: &Pattern) -> usize {
        let of_row = |id: &RowId| {
            let Some(view) = self.shown.views.get(id.0 as usize) else { return 0 };
            let of_row = self.symptoms(*id, Some(view), pattern);
            if !pattern.could_match(&of_row) {
                return 0;
            }
            let claimed = view.claimed.iter().filter(|claimed| pattern.matches(&of_row.with(claimed))).count();
            let waits = self.waited(Some(view)).is_some() && pattern.matches(&of_row);
            claimed.max(usize::from(waits))
        };
        self.rows.iter().map(of_row).sum()
    }

    /// Returns true if the pattern holds for a claimed call of the finding, or for one that makes children.
    fn any(&self, pattern: &Pattern) -> bool {
        let makes = |id: &RowId| {
            let of_row = self.symptoms(*id, self.shown.views.get(id.0 as usize), pattern);
            pattern.matches(&Symptoms { kind: self.kind, facts: of_row.facts.and(self.started), ..of_row })
        };
        self.count(pattern) > 0 || self.started != Facts::default() && self.rows.iter().any(makes)
    }

    /// Returns the call that represents a row whose only claim is that it waits.
    fn waited(&self, view: Option<&RowView<'a>>) -> Option<&'a WindowCall> {
        view?.sample.filter(|_| self.kind == Kind::Blocking)
    }

    /// Returns the symptoms of a row's calls for comparison with the pattern.
    fn symptoms(&self, id: RowId, view: Option<&RowView<'a>>, pattern: &Pattern) -> Symptoms<'a> {
        let (recording, row) = (self.shown.recording, self.shown.recording.row(id));
        let of_row = symptoms(recording, row, Kind::Blocking, None, self.waited(view));
        of_row.spoken(recording, row, !pattern.languages.is_empty())
    }
}

fn line(cure: &Cure) -> String {
    if cure.situation.is_empty() { cure.how.clone() } else { format!("{} ({})", cure.how, cure.situation) }
}

/// Returns the windows that agree, in words: `in all 24 samples`, `in 20 of 24 samples`.
fn samples(finding: &Finding) -> String {
    let Evidence { agree, windows, .. } = finding.evidence;
    match (agree, windows) {
        _ if finding.basis == Basis::Counts => "each time, by count".to_owned(),
        _ if finding.basis == Basis::Looks => "in samples of single calls, from the first to the last".to_owned(),
        (_, 0) => "in calls like them".to_owned(),
        (0, _) => "in some of their calls".to_owned(),
        (1, 1) => "in the one sample".to_owned(),
        (agree, windows) if agree == windows => format!("in all {windows} samples"),
        (agree, windows) => format!("in {agree} of {windows} samples"),
    }
}

fn fill(text: &str, finding: &Finding, api: Option<&str>) -> String {
    let syscall = finding.syscalls.first().map_or_else(|| "the call".to_owned(), ToString::to_string);
    let mut out = String::with_capacity(text.len() + 32);
    let samples = samples(finding); // Causes' texts say windows, which readers know as samples.
    let text = text.replace("so it was in {agree} of {windows} windows", &format!("seen {samples}"));
    let text = text.replace("so in {agree} of {windows} windows", &format!("seen {samples}"));
    let text = text.replace("in {agree} of {windows} windows", &samples);
    for (at, part) in text.split('{').enumerate() {
        let Some((name, rest)) = part.split_once('}').filter(|_| at > 0) else {
            out.push_str(part);
            continue;
        };
        match name {
            // `syscall(SYS_statx, …)` is named after the system call: statx is the function that it
            // stands for.
            "api" => out.push_str(api.filter(|a| *a != "syscall").unwrap_or(&syscall)),
            "syscall" => out.push_str(&syscall),
            "what" if finding.starts && finding.what.is_none() => {
                out.push_str(&format!("each of {} programs", finding.objects_seen));
            }
            "what" => out.push_str(finding.what.as_deref().unwrap_or("the file")),
            "agree" => out.push_str(&finding.evidence.agree.to_string()),
            "windows" => out.push_str(&finding.evidence.windows.to_string()),
            other => out.push_str(other),
        }
        out.push_str(rest);
    }
    out
}

/// Returns the sentence about small writes to standard output or error if no line shows their reader.
pub(crate) fn handed_to_somebody(finding: &Finding) -> String {
    let syscall = finding.syscalls.first().map_or_else(|| "the call".to_owned(), ToString::to_string);
    format!(
        "{syscall} hands a few bytes at a time to standard output or error; who reads them the lines do not show: of a file \
         or a pipe they could go together"
    )
}

/// Fills in the words for waste that no cause names.
fn generic(finding: &mut Finding, group: &Group<'_>, author: &Author) {
    let windows = samples(finding);
    let about = group.claim.as_ref().map_or("the same", |c| c.about);
    let (why, stop) = match finding.kind {
        Kind::Repeat => (
            format!("asks for {about} again and again; {windows} the answer was known"),
            "ask once and keep the answer",
        ),
        Kind::NoOp => {
            (format!("sets {about} to what it is; {windows} nothing had changed"), "leave it out where nothing changes")
        }
        Kind::Toggle => (
            format!("sets or makes {about} and takes it back; {windows} the calls cancelled each other"),
            "set it once around the whole loop",
        ),
        Kind::Blocking if group.startup.is_none() => (format!("{about}; seen {windows}"), "do it less often"),
        Kind::SlowPath if group.children.is_some() => (about.to_owned(), "start it less often"),
        Kind::Blocking => (
            format!("waits {} before main", group.startup.unwrap_or("for something")),
            "do it later, or not at all, unless the program can't begin without it",
        ),
        Kind::SlowPath => (format!("{about}; seen {windows}"), "take the cheaper way"),
        Kind::Failing | Kind::SmallIo | Kind::BusyPoll => (format!("{about}; seen {windows}"), "leave it out"),
    };
    finding.why = why;
    let instead = group.claim.as_ref().and_then(|c| c.instead);
    let gives_up = group.claim.as_ref().map(|c| c.gives_up.to_owned()).unwrap_or_default();
    let how = author.owner.in_its_code(instead.unwrap_or(stop));
    let by_others = author.owner.reader() != Actor::Author;
    finding.cures = vec![Advice { gives_up, by_others, ..Advice::general(how) }];
    finding.cures.extend(author.owner.else_to_do().map(Advice::to_others));
}

#[cfg(test)]
mod tests {
    use super::Finding;
    use crate::causes::catalogue::PLACEHOLDERS;

    #[test]
    fn every_placeholder_is_filled() {
        let finding = Finding::default();
        for name in PLACEHOLDERS {
            let text = super::fill(&format!("a {{{name}}} b"), &finding, Some("localtime"));
            assert!(!text.contains(name) || *name == "what", "{text}");
            assert!(text.starts_with("a ") && text.ends_with(" b") && !text.contains('{'), "{text}");
        }
    }
}
