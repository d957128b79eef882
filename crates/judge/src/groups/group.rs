//! Groups of rows with one disease. Rows join that share a cause or, without a cause, rows of one program that share
//! a system call or an object.

use crate::causes::catalogue::{Catalogue, Cause, Suspect};
use crate::causes::fact::{Fact, Facts};
use crate::causes::pattern::{LooksAt, Pattern, Symptoms};
use crate::causes::target::Target;
use crate::code::author::Author;
use crate::code::language::CodeLanguage;
use crate::collections::hash::Map;
use crate::detect::{Children, StartupWait};
use crate::evidence::claim::Claim;
use crate::evidence::survey::{Claimed, RowView};
use crate::options::Options;
use crate::results::finding::Kind;
use crate::time::NeedlessWaits;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use systoll_model::{FrameClass, FrameId, Machine, Recording, Row, RowId, Sysno, WindowCall};

/// Rows with one disease.
#[derive(Default)]
pub(crate) struct Group<'a> {
    /// The cause, if one is known.
    pub cause: Option<Suspect<'a>>,
    /// Rows of the group.
    pub rows: Vec<RowId>,
    /// The kind of most of the rows' claims.
    pub kind: Kind,
    /// The claim that represents the claims of all rows.
    pub claim: Option<Claim>,
    /// True if the price of the calls is the time that they wait.
    pub by_wait: bool,
    /// The awaited thing before `main`, if that is the finding.
    pub startup: Option<&'static str>,
    /// The programs started, if they are the finding.
    pub children: Option<Children>,
    /// The needless waits by exact times, if they are the finding.
    pub late: Option<NeedlessWaits>,
}

impl<'a> Group<'a> {
    /// Returns the group with other rows, and without children.
    pub(crate) fn with_rows(&self, rows: Vec<RowId>) -> Group<'a> {
        Group {
            cause: self.cause,
            rows,
            kind: self.kind,
            claim: self.claim.clone(),
            by_wait: self.by_wait,
            startup: self.startup,
            ..Group::default()
        }
    }
}

/// Key of a group: the cause, object and target that its rows have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CauseAndObject<'a> {
    cause: &'a str,
    object: Option<Arc<str>>,
    /// The target of the descriptors, if the cause's cures depend on it.
    target: Option<Target>,
    /// The language of the code, if it searches for programs and the cause tells such searches from others: each language
    /// has its own way to avoid them.
    seeks_program: Option<Option<CodeLanguage>>,
}

/// Returns all groups, in a fixed order without a meaning.
pub(crate) fn groups<'a>(
    recording: &Recording,
    views: &[RowView<'_>],
    waits: &[StartupWait],
    catalogue: &'a Catalogue,
    options: &Options,
) -> Vec<Group<'a>> {
    let mut known: BTreeMap<CauseAndObject<'a>, (Suspect<'a>, Vec<RowId>)> = BTreeMap::new();
    let mut objects: Map<(&str, FrameId), Option<Arc<str>>> = Map::default();
    let mut generic: Vec<RowId> = Vec::new();
    let mut patterns = Patterns::of(catalogue, views);
    for (at, view) in views.iter().enumerate().filter(|(_, v)| !v.claimed.is_empty()) {
        let Some(row) = recording.rows.get(at) else { continue };
        let id = RowId(at as u32);
        match cause_of(recording, row, view.claimed.iter(), &mut patterns) {
            Some(cause) => {
                let object = cause.matches.iter().any(|m| !m.objects.is_empty()).then(|| common_object(&[view]));
                let object = object.flatten().map(|o| of_itself(o, recording.process(row.process).pid));
                // Calls of one line of the program about several files are one disease.
                let object = match row.user {
                    Some(user) => objects.entry((cause.id, user)).or_insert(object).clone(),
                    None => object,
                };
                let by_target = cause.cause().is_some_and(Cause::is_told_by_target);
                let target = if by_target { common_target(row, view) } else { None };
                let tells = cause.matches.iter().any(|of| of.facts.expects(Fact::Program).is_some());
                let seeks_program = (tells && mostly(view, Fact::Program)).then(|| Author::of(recording, row).language);
                let key = CauseAndObject { cause: cause.id, object, target, seeks_program };
                known.entry(key).or_insert((cause, Vec::new())).1.push(id);
            }
            None => generic.push(id),
        }
    }
    join_nameless(&mut known);
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (cause, rows) in known.into_values() {
        groups.push(group(Some(cause), strong_rows(rows, recording, views, options), views));
    }
    for rows in related(&generic, recording, views) {
        groups.push(group(None, strong_rows(rows, recording, views, options), views));
    }
    add_unseen(&mut groups, views);
    for wait in waits {
        add_wait(&mut groups, wait, recording, views, catalogue);
    }
    groups
}

/// Adds rows without windows to the groups of the rows that they are like.
fn add_unseen(groups: &mut [Group<'_>], views: &[RowView<'_>]) {
    let mut places: Map<RowId, Vec<usize>> = Map::default();
    for (at, group) in groups.iter().enumerate() {
        group.rows.iter().for_each(|row| places.entry(*row).or_default().push(at));
    }
    for (row, like) in (0..).map(RowId).zip(views).filter_map(|(row, view)| Some((row, view.like?))) {
        for at in places.get(&like.row).into_iter().flatten() {
            if let Some(group) = groups.get_mut(*at) {
                group.rows.push(row);
            }
        }
    }
}

/// Joins the rows of a cause that have no common object, or no descriptor, to the cause's only group that has one.
fn join_nameless<'a>(known: &mut BTreeMap<CauseAndObject<'a>, (Suspect<'a>, Vec<RowId>)>) {
    let nameless = |key: &&CauseAndObject<'a>| key.object.is_none() || key.target.is_none();
    let keys: Vec<CauseAndObject<'a>> = known.keys().filter(nameless).cloned().collect();
    for key in keys {
        let may_be = |other: &&CauseAndObject<'a>| {
            **other != key
                && (other.cause, other.seeks_program) == (key.cause, key.seeks_program)
                && (key.object.is_none() || key.object == other.object)
                && (key.target.is_none() || key.target == other.target)
        };
        let mut named = known.keys().filter(may_be);
        if let (Some(only), None) = (named.next().cloned(), named.next())
            && let Some((suspect, rows)) = known.remove(&key)
        {
            let (_, all) = known.entry(only).or_insert((suspect, Vec::new()));
            all.extend(rows);
            all.sort();
        }
    }
}

/// Returns the target that most descriptors of a row's claimed calls have; `None` if no target has most.
pub(crate) fn common_target(row: &Row, view: &RowView<'_>) -> Option<Target> {
    let mut counts = [0usize; Target::ALL.len()];
    for target in view.claimed.iter().filter_map(|claimed| Target::of(row.syscall, claimed.call)) {
        if let Some(n) = counts.get_mut(target as usize) {
            *n += 1;
        }
    }
    let (most, n) = Target::ALL.into_iter().zip(counts).max_by_key(|(_, n)| *n)?;
    (2 * n > view.claimed.len()).then_some(most)
}

/// Returns true if a fact holds for most of a row's claimed calls.
fn mostly(view: &RowView<'_>, fact: Fact) -> bool {
    2 * view.claimed.iter().filter(|claimed| claimed.claim.facts.contains(fact)).count() > view.claimed.len()
}

/// Returns the path with a process's own folder in /proc written as `/proc/self`.
fn of_itself(path: Arc<str>, pid: u32) -> Arc<str> {
    match path.strip_prefix(&format!("/proc/{pid}/")) {
        Some(rest) => format!("/proc/self/{rest}").into(),
        None => path,
    }
}

/// A pattern and its cause.
type Candidate<'a> = (&'a Pattern, Suspect<'a>);

/// The patterns that may hold for calls of a row, and the properties of a call that they look at.
#[derive(Clone)]
struct Possible<'a> {
    known: Rc<[Candidate<'a>]>,
    looks: LooksAt,
}

/// The properties that all calls of a row share.
#[derive(PartialEq, Eq, Hash)]
struct RowKey {
    syscall: Sysno,
    api: Option<Arc<str>>,
    facts: Facts,
    language: Option<CodeLanguage>,
}

/// The catalogue's patterns, looked up once for each [`RowKey`].
pub(crate) struct Patterns<'a> {
    catalogue: &'a Catalogue,
    /// True if a pattern is for certain languages only.
    asks_language: bool,
    /// The kinds of all claims.
    kinds: Vec<Kind>,
    possible: Map<RowKey, Possible<'a>>,
}

impl<'a> Patterns<'a> {
    pub(crate) fn of(catalogue: &'a Catalogue, views: &[RowView<'_>]) -> Self {
        let mut kinds = Vec::new();
        for kind in views.iter().flat_map(|view| &view.claimed).map(|claimed| claimed.claim.kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let asks_language = catalogue.suspects().any(|suspect| asks_language(suspect.matches));
        Self { catalogue, asks_language, kinds, possible: Map::default() }
    }

    fn of_row(&mut self, row: &Row, call: &Symptoms<'_>) -> Possible<'a> {
        let key = RowKey { syscall: row.syscall, api: row.api.clone(), facts: call.facts, language: call.language };
        let of = || {
            let known = possible(self.catalogue, call, &self.kinds);
            let looks = known.iter().fold(LooksAt::default(), |all, (pattern, _)| all.and(pattern.looks_at()));
            Possible { looks, known: known.into() }
        };
        self.possible.entry(key).or_insert_with(of).clone()
    }
}

/// The patterns that may hold for claims with one pair of kind and facts. A row has claims with few
/// such pairs, so the patterns of the last pair are kept.
#[derive(Default)]
struct ClaimCandidates<'a> {
    of: Option<(Kind, Facts)>,
    known: Vec<Candidate<'a>>,
}

impl<'a> ClaimCandidates<'a> {
    /// Returns the possible patterns that may hold for the call.
    fn among(&mut self, possible: &[Candidate<'a>], call: &Symptoms<'_>) -> &[Candidate<'a>] {
        let of = (call.kind, call.facts);
        if self.of != Some(of) {
            self.known.clear();
            self.known.extend(possible.iter().filter(|(pattern, _)| pattern.is_of_claim(of.0, of.1)));
            self.of = Some(of);
        }
        &self.known
    }
}

/// Returns the cause that explains most of these claims of a row. A weak claim counts half as much
/// as another: where a program asks about each object in two ways, two causes explain equally many
/// calls, and without this it would depend on where windows begin and end which of them is named.
/// Claims without a cause count by kind: all of them together may be more than a cause explains,
/// and still have no reason in common.
pub(crate) fn cause_of<'a, 'c>(
    recording: &Recording,
    row: &Row,
    claimed: impl Iterator<Item = &'c Claimed<'c>>,
    patterns: &mut Patterns<'a>,
) -> Option<Suspect<'a>> {
    let of_row = symptoms(recording, row, Kind::Repeat, None, None).spoken(recording, row, patterns.asks_language);
    let possible = patterns.of_row(row, &of_row);
    // Suspects of one group are few: a list is quicker than a table.
    let mut votes: Vec<(Option<Suspect<'a>>, Kind, usize)> = Vec::new();
    let mut last: Option<(&Claimed<'_>, Option<Suspect<'a>>)> = None;
    let mut of_claim = ClaimCandidates::default();
    for claimed in claimed {
        let alike =
            |of: &Claimed<'_>| std::ptr::eq(of.claim, claimed.claim) && possible.looks.alike(of.call, claimed.call);
        // Most claims are like the one before.
        let cause = match last {
            Some((before, cause)) if alike(before) => cause,
            _ => {
                let call = of_row.with(claimed);
                most_telling(of_claim.among(&possible.known, &call), &call)
            }
        };
        last = Some((claimed, cause));
        let kind = claimed.claim.kind;
        let vote = claimed.claim.votes();
        let is = |(other, of, _): &&mut (Option<Suspect<'a>>, Kind, usize)| match (other, &cause) {
            (Some(a), Some(b)) => a.id == b.id,
            (None, None) => *of == kind,
            _ => false,
        };
        match votes.iter_mut().find(is) {
            Some((_, _, n)) => *n += vote,
            None => votes.push((cause, kind, vote)),
        }
    }
    votes.into_iter().max_by_key(|(cause, kind, n)| (*n, cause.is_some(), cause.map(|c| c.id), *kind))?.0
}

/// Returns true if any of these patterns is for certain languages only.
pub(crate) fn asks_language(patterns: &[Pattern]) -> bool {
    patterns.iter().any(|pattern| !pattern.languages.is_empty())
}

impl<'a> Symptoms<'a> {
    /// Returns the symptoms with the language of the row's code, if it is `asked` for: finding it
    /// takes the row's whole stack.
    pub(crate) fn spoken(self, recording: &Recording, row: &Row, asked: bool) -> Self {
        let language = if asked { Author::of(recording, row).language } else { None };
        Self { language, ..self }
    }

    /// Returns the row's symptoms with those of one claimed call.
    pub(crate) fn with(&self, claimed: &'a Claimed<'a>) -> Symptoms<'a> {
        Symptoms {
            kind: claimed.claim.kind,
            object: claimed.claim.object.as_deref(),
            args: Some(claimed.call.args),
            result: claimed.call.result,
            target: Target::of(self.syscall, claimed.call),
            facts: self.facts.and(claimed.claim.facts),
            ..*self
        }
    }
}

/// Returns the symptoms of a row and of one of its calls.
pub(crate) fn symptoms<'a>(
    recording: &Recording,
    row: &'a Row,
    kind: Kind,
    object: Option<&'a str>,
    call: Option<&WindowCall>,
) -> Symptoms<'a> {
    let frames = &recording.stack(row.context).frames;
    let is = |at: usize, class| frames.get(at).is_some_and(|f| recording.frame(*f).class == class);
    Symptoms {
        kind,
        syscall: row.syscall,
        api: row.api.as_deref(),
        object,
        args: call.map(|c| c.args),
        result: call.and_then(|c| c.result),
        target: call.and_then(|c| Target::of(row.syscall, c)),
        language: None,
        facts: Facts::default()
            .with(Fact::Vdso, is(0, FrameClass::Vdso))
            .with(Fact::Aarch64, recording.header.machine == Some(Machine::Aarch64))
            .with(Fact::InsideLibc, is(0, FrameClass::Libc) && is(1, FrameClass::Libc))
            .with(Fact::UnknownCaller, recording.row_frames(row).next().is_none()),
    }
}

pub(crate) fn explain<'a>(catalogue: &'a Catalogue, call: &Symptoms<'_>) -> Option<Suspect<'a>> {
    most_telling(&possible(catalogue, call, &[call.kind]), call)
}

/// Returns the patterns that could hold for calls of a row with claims of these kinds, each with its cause. The
/// pattern that asks for most comes first; equals are ordered by id.
fn possible<'a>(catalogue: &'a Catalogue, row: &Symptoms<'_>, kinds: &[Kind]) -> Vec<Candidate<'a>> {
    let may = |pattern: &&Pattern| pattern.could_match(row) && pattern.is_of_kind(kinds);
    let of = |suspect: Suspect<'a>| suspect.matches.iter().filter(may).map(move |pattern| (pattern, suspect));
    let mut known: Vec<Candidate<'a>> = catalogue.suspects().flat_map(of).collect();
    known.sort_by_cached_key(|(pattern, suspect)| (Reverse(pattern.weight()), suspect.id));
    known
}

/// Returns the cause whose pattern holds and asks for most; among equals the first by id.
fn most_telling<'a>(possible: &[Candidate<'a>], call: &Symptoms<'_>) -> Option<Suspect<'a>> {
    possible.iter().find(|(pattern, _)| pattern.matches(call)).map(|(_, cause)| *cause)
}

/// Returns the object that nine claims in ten share.
pub(crate) fn common_object(views: &[&RowView<'_>]) -> Option<Arc<str>> {
    let objects = || views.iter().flat_map(|v| &v.claimed).map(|c| c.claim.object.as_ref());
    // In most cases all claims have the same object, or none has any.
    let first = objects().next()?;
    if objects().all(|object| object == first) {
        return first.cloned();
    }
    let mut counts: Map<Option<&Arc<str>>, usize> = Map::default();
    objects().for_each(|object| *counts.entry(object).or_default() += 1);
    let all: usize = counts.values().sum();
    let (object, _) = counts.into_iter().find(|(_, n)| 10 * n >= 9 * all)?;
    object.cloned()
}

/// Leaves out rows with a small needless share, and rows with few needless calls beside a row with many. They would
/// only blur the share and the names.
fn strong_rows(rows: Vec<RowId>, recording: &Recording, views: &[RowView<'_>], options: &Options) -> Vec<RowId> {
    // Needless calls, and their share of the row's calls.
    let needless = |id: &RowId| {
        let calls = recording.row(*id).counts.calls;
        let any = views.get(id.0 as usize).map_or(0.0, |v| v.needless(calls).any);
        (any, any / calls.max(1) as f64)
    };
    let of_rows: Vec<(f64, f64)> = rows.iter().map(needless).collect();
    let strong = of_rows.iter().filter(|(_, share)| *share >= options.min_row_share);
    let most = strong.map(|(any, _)| *any).fold(0.0, f64::max);
    if most <= 0.0 {
        return rows;
    }
    let least = options.faint_row.min(options.min_row_share);
    let counts = |(any, share): &(f64, f64)| *share >= least && *any >= most * options.crumb;
    let leads = |id: &RowId| views.get(id.0 as usize).is_some_and(RowView::leads);
    rows.into_iter().zip(&of_rows).filter(|(id, row)| counts(row) || leads(id)).map(|(id, _)| id).collect()
}

/// A property that ties rows of one program together.
#[derive(PartialEq, Eq, Hash)]
enum Tied {
    Call(Sysno),
    Object(Arc<str>),
    Toggle(&'static str),
}

/// Returns groups of rows of one program that share a system call or an object, directly or through other rows.
fn related(rows: &[RowId], recording: &Recording, views: &[RowView<'_>]) -> Vec<Vec<RowId>> {
    // Union-find: for each row the next row on the way to its group's root.
    let mut above: Vec<usize> = (0..rows.len()).collect();
    let mut first: Map<(&str, Tied), usize> = Map::default();
    for (at, id) in rows.iter().enumerate() {
        let row = recording.row(*id);
        let program = recording.process(row.process).name();
        let mut ties = vec![Tied::Call(row.syscall)];
        ties.extend(views.get(id.0 as usize).and_then(|v| common_object(&[v])).map(Tied::Object));
        let toggles = views.get(id.0 as usize).into_iter().flat_map(|v| &v.claimed);
        // Making a thing and undoing it are two calls of one disease.
        let toggle = toggles.map(|c| c.claim).find(|c| c.kind == Kind::Toggle);
        ties.extend(toggle.map(|t| Tied::Toggle(t.about)));
        for tie in ties {
            let other = *first.entry((program, tie)).or_insert(at);
            let (from, to) = (top(&mut above, at), top(&mut above, other));
            if let Some(above) = above.get_mut(from.max(to)) {
                *above = from.min(to);
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<RowId>> = BTreeMap::new();
    for (at, id) in rows.iter().enumerate() {
        groups.entry(top(&mut above, at)).or_default().push(*id);
    }
    groups.into_values().collect()
}

/// Returns the root of a row's group and shortens the way to it.
fn top(above: &mut [usize], mut at: usize) -> usize {
    while let Some(next) = above.get(at).copied().filter(|next| *next != at) {
        let after = above.get(next).copied().unwrap_or(next);
        if let Some(way) = above.get_mut(at) {
            *way = after;
        }
        at = after;
    }
    at
}

fn group<'a>(cause: Option<Suspect<'a>>, rows: Vec<RowId>, views: &[RowView<'_>]) -> Group<'a> {
    let views: Vec<&RowView<'_>> = rows.iter().filter_map(|id| views.get(id.0 as usize)).collect();
    // The claims by kind and reason, with their number; they are few, and most claims are like the one before.
    let mut reasons: Vec<(usize, &Claim)> = Vec::new();
    let (mut waits, mut all) = (0, 0);
    for Claimed { claim, .. } in views.iter().flat_map(|v| &v.claimed) {
        let like = |of: &(usize, &Claim)| of.1.kind == claim.kind && std::ptr::eq(of.1.about, claim.about);
        match reasons.iter_mut().find(|of| like(of)) {
            Some((n, _)) => *n += 1,
            None => reasons.push((1, claim)),
        }
        waits += usize::from(claim.by_wait);
        all += 1;
    }
    let of_kind = |kind: Kind| reasons.iter().filter(move |(_, claim)| claim.kind == kind);
    let kind = Kind::ALL.into_iter().max_by_key(|kind| of_kind(*kind).map(|(n, _)| n).sum::<usize>());
    let kind = kind.filter(|_| all > 0);
    // Among equally frequent claims, the first one represents the group.
    let claim = kind.and_then(|kind| of_kind(kind).rev().max_by_key(|(n, _)| *n)).map(|(_, claim)| *claim);
    Group {
        cause,
        kind: kind.unwrap_or(Kind::Repeat),
        claim: claim.cloned(),
        by_wait: 2 * waits > all,
        rows,
        ..Group::default()
    }
}

/// Returns the group of programs that are started, or of processes that are forked, for each item.
pub(crate) fn started<'a>(children: Children, recording: &Recording, catalogue: &'a Catalogue) -> Group<'a> {
    let rows = children.rows.iter().map(|id| recording.row(*id));
    let program = children.programs.first().map(|started| started.program.clone());
    let facts = facts_of(Some(&children));
    let of_row = |row| {
        let plain = symptoms(recording, row, Kind::SlowPath, program.as_deref(), None);
        Symptoms { facts: plain.facts.and(facts), ..plain }.spoken(recording, row, true)
    };
    let rows = rows.map(of_row);
    let cause = rows.filter_map(|row| explain(catalogue, &row)).next();
    let (about, instead) = match children.copies {
        None if children.works => (
            "starts a program for each item; its own work costs more than its start",
            "start it once for many items, where it takes several",
        ),
        None => (
            "starts a program for each item; most of what it costs is the starting",
            "start it once for many items, or call what it does from the program itself",
        ),
        Some(_) => (
            "forks a process for each item, which ends after a little work; most of what it costs is the forking",
            "do the work in the process itself, or give many items to one child",
        ),
    };
    let claim = Claim { object: program.clone(), facts, ..Claim::of(Kind::SlowPath, about, instead) };
    Group {
        cause,
        rows: children.rows.clone(),
        kind: Kind::SlowPath,
        claim: Some(claim),
        children: Some(children),
        ..Group::default()
    }
}

/// Returns the facts of the calls that make children.
pub(crate) fn facts_of(children: Option<&Children>) -> Facts {
    let copies = children.and_then(|children| children.copies);
    let works = children.is_some_and(|children| children.works);
    let facts = Facts::default().with(Fact::Copies, copies.is_some()).with(Fact::Works, works);
    let facts = facts.with(Fact::Piped, copies.is_some_and(|copies| copies.is_piped));
    facts.with(Fact::Pipeline, copies.is_some_and(|copies| copies.is_pipeline))
}

/// Adds a row that waited before `main` to the group of its cause, or as a group of its own.
fn add_wait<'a>(
    groups: &mut Vec<Group<'a>>,
    wait: &StartupWait,
    recording: &Recording,
    views: &[RowView<'_>],
    catalogue: &'a Catalogue,
) {
    let row = recording.row(wait.row);
    let call = views.get(wait.row.0 as usize).and_then(|v| v.sample);
    let waits = symptoms(recording, row, Kind::Blocking, None, call).spoken(recording, row, true);
    let cause = explain(catalogue, &waits);
    let mostly_startup = |g: &Group<'a>| {
        let rows = g.rows.iter().map(|id| &recording.row(*id).counts);
        let (startup, all) =
            rows.fold((0u64, 0u64), |(s, a), c| (s.saturating_add(c.startup_calls), a.saturating_add(c.calls)));
        startup > all / 2
    };
    let joins = |g: &Group<'a>| {
        g.by_wait
            && (g.rows.contains(&wait.row)
                || (cause.is_some() && g.cause.map(|c| c.id) == cause.map(|c| c.id))
                || (cause.is_none()
                    && g.cause.is_none()
                    && g.rows.iter().any(|r| recording.row(*r).syscall == row.syscall)))
    };
    if let Some(group) = groups.iter_mut().find(|g| joins(g)) {
        if !group.rows.contains(&wait.row) {
            group.rows.push(wait.row);
        }
        if mostly_startup(group) {
            group.kind = Kind::Blocking;
            group.startup = Some(wait.waits_for);
        }
        return;
    }
    groups.push(Group {
        cause,
        rows: vec![wait.row],
        kind: Kind::Blocking,
        by_wait: true,
        startup: Some(wait.waits_for),
        ..Group::default()
    });
}
