//! Sentences about rounds.

use super::Sentences;
use crate::access::{frame, module};
use crate::text::clean;
use crate::units::{bytes, counted, grouped, percent, time};
use systoll_judge::{Numbers, Round, RoundCall, RoundStep, Times, Variety};
use systoll_model::{Class, Location, short_file};

/// Number of samples that suffice to say that no two of them are alike.
const LOOKS: u64 = 8;
/// Share of the rounds with a call from which on the share is not mentioned.
const NEARLY_ALL: f64 = 0.99;
/// Share of a round's price below which the part that findings explain is not mentioned.
const FAINT: f64 = 0.01;
/// Width of an object's name, in columns, at most.
const OBJECT: usize = 44;
/// Number of a round's calls that are listed.
const CALLS: usize = 14;
/// Prefix of descriptors' targets that add nothing to the call, such as an epoll set.
const NAMELESS: &str = "anon_inode:";

/// The sentences about a round.
pub(crate) struct RoundTold {
    /// The number of rounds and their calls: `4,000 × (openat segment?, fstat, mmap 512 KiB,
    /// munmap, close)`.
    pub(crate) motif: String,
    /// The cost of the rounds: `9.43 ms, 59 % of CPU, 1.57 µs each`.
    pub(crate) cost: String,
    /// The place of the round: `load app.c:12`; `None` if its calls have no function in common.
    pub(crate) place: Option<String>,
    /// Other processes that make the round, and findings about it.
    pub(crate) notes: Vec<String>,
    /// Facts from the samples that support the round: it could not be ruled out.
    pub(crate) seen: Vec<String>,
}

impl Sentences<'_> {
    /// Returns all sentences about a round.
    pub(crate) fn round(&self, round: &Round) -> RoundTold {
        RoundTold {
            motif: motif(round),
            cost: self.round_cost(round),
            place: self.round_location(round).map(|(location, is_script)| self.place_text(round, location, is_script)),
            notes: self.notes(round),
            seen: seen(round),
        }
    }

    /// Returns the function that a round's calls come from, and true if it is a script's.
    pub(crate) fn round_location(&self, round: &Round) -> Option<(&Location, bool)> {
        let place = round.place?;
        let frame = frame(self.rec, place.frame)?;
        Some((frame.locations.get(place.location)?, frame.language.is_some()))
    }

    fn place_text(&self, round: &Round, location: &Location, is_script: bool) -> String {
        let function = clean(&location.function);
        let line = location.line.map_or_else(String::new, |line| format!(":{line}"));
        let name = |file: &str| clean(short_file(file));
        match (&location.file, is_script) {
            (Some(file), true) => format!("{}{line} in {function}", name(file)),
            (Some(file), false) => format!("{function} {}{line}", name(file)),
            (None, _) => {
                let of = round.place.and_then(|place| frame(self.rec, place.frame)).and_then(|f| f.module);
                // The placeholder of a function without a name already contains its module's name.
                let of = module(self.rec, of).filter(|_| !function.contains("+0x"));
                of.map_or(function.clone(), |module| format!("{function} {}", clean(module.file_name())))
            }
        }
    }

    fn round_cost(&self, round: &Round) -> String {
        let about = if round.count.low == round.count.high { self.about() } else { "about " };
        let mut parts = vec![format!("{about}{}", time(round.toll_ns))];
        if let Some(share) = round.share_of_cpu.and_then(|share| self.share_of_own_cpu(share)) {
            parts.push(format!("{share} of CPU"));
        }
        let each = |ns: u64| time(ns / round.count.estimate.max(1));
        parts.push(format!("{} each", each(round.toll_ns)));
        if let Some(waited) = round.waited_ns.filter(|waited| *waited > round.toll_ns) {
            let share =
                round.share_of_wall.and_then(percent).map_or_else(String::new, |p| format!(" ({p} of the run)"));
            parts.push(format!("waited {}{share}, {} each", time(waited), each(waited)));
        }
        parts.join(", ")
    }

    fn notes(&self, round: &Round) -> Vec<String> {
        let mut notes = vec![];
        if round.startup {
            notes.push("before main".to_owned());
        }
        let processes = round.processes(self.rec);
        if processes > 1 {
            let least = if round.are_all_processes { "" } else { " at least" };
            notes.push(format!("in {}{least}", counted(processes, "process", "processes")));
        } else if round.threads > 1 {
            notes.push(format!("in {} threads at least", grouped(round.threads)));
        }
        let claimed = round.claimed;
        let of = |part: u64, all: u64| if all == 0 { 0.0 } else { (part as f64 / all as f64).min(1.0) };
        let (paid, waited) = (of(claimed.toll_ns, round.toll_ns), of(claimed.waited_ns, round.waited_ns.unwrap_or(0)));
        // Where nearly all of the time is waited, the calls' own says little.
        if let Some(share) = percent(paid).filter(|_| paid >= FAINT.max(waited)) {
            notes.push(format!("the findings above account for {share} of this"));
        } else if let Some(share) = percent(waited).filter(|_| waited >= FAINT) {
            notes.push(format!("the findings above account for {share} of this waiting"));
        }
        notes
    }
}

/// Returns the number of rounds and their calls.
fn motif(round: &Round) -> String {
    let about = if round.count.low == round.count.high { "" } else { "about " };
    let mut before = Before::default();
    let mut steps = joined(round.steps.iter().map(|step| step_text(step, &mut before)));
    if let Some(more) = steps.len().checked_sub(CALLS).filter(|more| *more > 0) {
        steps.truncate(CALLS);
        steps.push(format!("{more} more"));
    }
    format!("{about}{} × ({})", grouped(round.count.estimate), steps.join(", "))
}

/// Joins equal texts that follow each other: `fcntl F_SETLK ×6`.
fn joined(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<(String, u64)> = vec![];
    for text in texts {
        match all.last_mut() {
            Some((last, times)) if *last == text && !text.contains('×') => *times += 1,
            _ => all.push((text, 1)),
        }
    }
    let text = |(text, times): (String, u64)| if times > 1 { format!("{text} ×{}", grouped(times)) } else { text };
    all.into_iter().map(text).collect()
}

/// The object and the size that were mentioned last, and are not repeated.
#[derive(Default)]
struct Before {
    object: Option<String>,
    size: Option<Numbers>,
}

fn step_text(step: &RoundStep, before: &mut Before) -> String {
    match step {
        RoundStep::Call(call) => call_text(call, before),
        RoundStep::Inner { calls, times } => {
            let inner = joined(calls.iter().map(|call| call_text(call, before)));
            format!("{} × ({})", number(*times), inner.join(", "))
        }
    }
}

fn call_text(call: &RoundCall, before: &mut Before) -> String {
    let mut words = vec![clean(&call.syscall.to_string())];
    if let Some(object) = &call.object {
        let says = object.pattern.contains(|c: char| c.is_alphanumeric()) && !object.pattern.starts_with(NAMELESS);
        if says && before.object.as_ref() != Some(&object.pattern) {
            words.push(short(&clean(&object.pattern)));
        }
        before.object = Some(object.pattern.clone());
    }
    let unmaps = call.syscall.name() == Some("munmap");
    if let Some(size) = call.size.filter(|size| !(unmaps && before.size == Some(*size))) {
        words.push(size_text(size));
    }
    before.size = call.size;
    if is_other_place(call) {
        words.push("at the next place".into());
    }
    let moves = call.syscall.signature().is_some_and(|s| s.transfers);
    words.extend(call.option.as_deref().filter(|_| !moves).map(clean));
    words.extend(call.errno.map(|errno| errno.to_string()));
    let times = number(call.times);
    if times != "1" {
        words.push(format!("×{times}"));
    }
    if let Some(share) = percent(call.share).filter(|_| call.share < NEARLY_ALL) {
        words.push(format!("in {share}"));
    }
    words.join(" ")
}

/// Returns true if each such call begins at the offset where the previous one ended.
fn is_other_place(call: &RoundCall) -> bool {
    matches!((call.offset, call.size), (Some(Numbers::Steps(step)), Some(Numbers::Same(size))) if step == size)
}

/// Formats a number of times: `3`, `2 to 5`, `24 on average`.
fn number(times: Times) -> String {
    let mean = times.mean;
    let near = |n: u64| (mean - n as f64).abs() < 0.05 * mean.max(1.0);
    if times.least == times.most && near(times.most) {
        return grouped(times.most);
    }
    let seen = mean >= times.least as f64 && mean <= times.most as f64;
    if seen && times.most <= 9 {
        return format!("{} to {}", times.least, times.most);
    }
    let mean = if mean < 10.0 { format!("{mean:.1}") } else { grouped(mean.round() as u64) };
    format!("{mean} on average")
}

fn size_text(size: Numbers) -> String {
    match size {
        Numbers::Same(n) => bytes(n),
        Numbers::Steps(n) => format!("+{}", bytes(n)),
        Numbers::Between(low, high) => format!("{} to {}", bytes(low), bytes(high)),
    }
}

/// Returns the shortest end of an absolute path that begins behind a slash and holds a letter or digit, and a `?` if
/// the path does. Returns other names whole. Shortens either to [`OBJECT`].
fn short(pattern: &str) -> String {
    // If a part of the pattern varies, the end must contain it.
    let varies = pattern.contains('?');
    let known = |end: &&str| end.chars().any(|c| c.is_alphanumeric()) && (!varies || end.contains('?'));
    let end = match pattern.strip_prefix('/') {
        Some(path) => path
            .rmatch_indices('/')
            .filter_map(|(at, _)| path.get(at + 1..))
            .find(known)
            .map_or_else(|| pattern.to_owned(), str::to_owned),
        None => pattern.to_owned(),
    };
    crate::text::shorten(&end, OBJECT)
}

/// Describes how the round's calls differ, according to the samples.
fn seen(round: &Round) -> Vec<String> {
    let calls: Vec<&RoundCall> = round.steps.iter().flat_map(RoundStep::calls).collect();
    let path = |call: &RoundCall| {
        let names_path = call.syscall.signature().is_some_and(|s| s.classes.contains(Class::File));
        call.object.as_ref().map(|object| object.variety).filter(|v| names_path && v.looks >= LOOKS)
    };
    let mut told = vec![];
    told.extend(all_differ(&calls, "named the same path", path));
    told.extend(all_differ(&calls, "moved the same data, byte for byte", |call| {
        call.data.filter(|data| data.looks >= LOOKS)
    }));
    let next: Vec<String> = names(calls.iter().copied().filter(|call| is_other_place(call)));
    if !next.is_empty() {
        told.push(format!("each {} begins where the one before ended", next.join(", each ")));
    }
    // The first call that names several paths shows the objects of the round.
    let some = calls.iter().find_map(|call| Some((call, path(call)?)));
    if let Some((call, variety)) = some.filter(|(_, v)| v.different > 1 && !v.all_differ()) {
        let name = clean(&call.syscall.to_string());
        let (sampled, paths) = (grouped(variety.looks), grouped(variety.different));
        told.push(format!("of {sampled} {name} calls sampled, all were for one of {paths} paths"));
    }
    told
}

/// Returns a sentence such as `no two calls of openat, newfstatat (128 looked at) named the same
/// path`, with those system calls that differ. Leaves out a system call that the round makes in several ways: nothing
/// compares the calls of one way with those of another.
fn all_differ(calls: &[&RoundCall], what: &str, of: impl Fn(&RoundCall) -> Option<Variety>) -> Option<String> {
    let differs = |call: &&RoundCall| of(call).is_some_and(Variety::all_differ);
    let is_only = |call: &&RoundCall| calls.iter().filter(|other| other.syscall == call.syscall).count() == 1;
    let of_these: Vec<&RoundCall> = calls.iter().copied().filter(is_only).filter(differs).collect();
    let looks = of_these.iter().filter_map(|call| of(call)).fold(0u64, |sum, v| sum.saturating_add(v.looks));
    let names = names(of_these.into_iter());
    (!names.is_empty())
        .then(|| format!("no two calls of {} ({} sampled) {what}", names.join(", no two of "), grouped(looks)))
}

/// Returns the names of the calls' system calls, each once.
fn names<'a>(calls: impl Iterator<Item = &'a RoundCall>) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for name in calls.map(|call| clean(&call.syscall.to_string())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
