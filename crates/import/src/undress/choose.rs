//! Chooses the decorations to take off the lines of a file, by its head.

use super::front::Front;
use super::join::{Printable, Wrapped};
use super::step::{Step, numbered};
use super::{Undress, html, run};
use crate::format::Format;

/// Largest number of lines, and of their bytes, that are looked at.
const LOOKED_AT: (usize, usize) = (400, 256 << 10);
/// Largest number of decorations around each other.
const MOST_STEPS: usize = 6;

/// The first lines of a file.
#[derive(Debug, Default)]
pub(crate) struct Head {
    lines: Vec<Vec<u8>>,
    bytes: usize,
}

impl Head {
    /// Adds a line. Returns true if enough lines were seen to choose.
    pub(crate) fn push(&mut self, line: &[u8]) -> bool {
        self.bytes += line.len();
        self.lines.push(line.to_vec());
        self.lines.len() >= LOOKED_AT.0 || self.bytes >= LOOKED_AT.1
    }

    /// Returns true if there are at least as many lines, or bytes of them.
    pub(crate) fn is_beyond(&self, (lines, bytes): (usize, usize)) -> bool {
        self.lines.len() >= lines || self.bytes >= bytes
    }

    /// Returns the lines of the head.
    pub(crate) fn lines(&self) -> &[Vec<u8>] {
        &self.lines
    }
}

/// Chooses the steps that make the lines of a file's head readable, one after the other: each time
/// the one that gains most.
pub(crate) fn choose(head: &[Vec<u8>]) -> Undress {
    let mut undress = Undress::default();
    let mut lines = head.to_vec();
    while undress.steps.len() < MOST_STEPS {
        let before = Score::of(&lines);
        let candidates = candidates(&lines, &undress.steps);
        let tried = candidates.into_iter().map(|step| {
            let after = applied(&step, &lines);
            (Score::of(&after), after, step)
        });
        // The first of equals is taken: the others would take the decoration for something that it
        // is not.
        let best = tried.reduce(|best, next| if next.0.sum() > best.0.sum() { next } else { best });
        let Some((gained, after, step)) = best else { break };
        if !(is_worth(before, gained, &step) || matches!(step, Step::Numbers | Step::Colours | Step::Html)) {
            break;
        }
        undress.steps.push(step);
        lines = after;
    }
    undress
}

/// Returns true if a step gains too many readable lines for chance. A program may print text that
/// looks like a call, and then most lines are readable without the step.
fn is_worth(before: Score, after: Score, step: &Step) -> bool {
    let by_chance = match step {
        // These steps have evidence of their own in each line.
        Step::Printable(_) | Step::Wrapped(_) | Step::Several => 0,
        _ => before.readable / 2,
    };
    after.sum() > before.sum() && after.readable.saturating_sub(before.readable) >= by_chance
}

/// Number of lines that a tracer wrote, and of other lines.
#[derive(Clone, Copy, Debug)]
struct Score {
    readable: usize,
    others: usize,
}

impl Score {
    fn of(lines: &[Vec<u8>]) -> Self {
        let readable = lines.iter().filter(|line| Format::of_line(line).is_some()).count();
        let filled = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count();
        Self { readable, others: filled.saturating_sub(readable) }
    }

    /// Returns the score: the more the better. A line left over counts less than one that is read,
    /// since prose is left over in any case.
    fn sum(self) -> isize {
        2 * self.readable as isize - self.others as isize
    }
}

/// Returns the steps for which the lines have any evidence and that were not taken yet.
fn candidates(lines: &[Vec<u8>], taken: &[Step]) -> Vec<Step> {
    let any = |test: &dyn Fn(&[u8]) -> bool| lines.iter().any(|line| test(line));
    let is_new = |step: &Step| !taken.iter().any(|t| std::mem::discriminant(t) == std::mem::discriminant(step));
    let mut all = Vec::new();
    let mut add = |step: Option<Step>| all.extend(step.filter(is_new));
    // Colours and tags mean nothing in a trace, and are undone before all others.
    if any(&|line| line.contains(&0x1b) || line.contains(&b'\r')) {
        add(Some(Step::Colours));
    }
    if any(&html::is_in) {
        add(Some(Step::Html));
    }
    if are_numbered(lines) {
        add(Some(Step::Numbers));
    }
    if !all.is_empty() {
        return all;
    }
    let mut add = |step: Option<Step>| all.extend(step.filter(is_new));
    add(any(&|line| matches!(line.trim_ascii_start().first(), Some(b'>' | b'|'))).then_some(Step::Quotes));
    add(any(&Printable::is_in).then(|| Step::Printable(Printable::default())));
    add(Front::of(lines).map(Step::Front));
    add(Wrapped::of(lines).map(Step::Wrapped));
    add(Some(Step::Several));
    all
}

/// Returns true if the lines are numbered consecutively, as thread ids are not.
fn are_numbered(lines: &[Vec<u8>]) -> bool {
    let filled = lines.iter().filter(|line| !line.trim_ascii().is_empty());
    let numbers: Vec<Option<u64>> = filled.map(|line| numbered(line).map(|(number, _)| number)).collect();
    let follows = |pair: &&[Option<u64>]| matches!(pair, [Some(a), Some(b)] if b.checked_sub(1) == Some(*a));
    numbers.len() >= 3 && numbers.windows(2).filter(follows).count() * 10 >= (numbers.len() - 1) * 9
}

/// Returns the lines after a step.
fn applied(step: &Step, lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut steps = [step.fresh()];
    let mut after = Vec::with_capacity(lines.len());
    lines.iter().for_each(|line| run(&mut steps, line, &mut |line| after.push(line.to_vec())));
    let [step] = &mut steps;
    step.finish(&mut |line| after.push(line.to_vec()));
    after
}
