//! Compares turns of a running program in which calls are made with turns in which they are answered in place.

mod work;

pub use work::Work;

use crate::measure::{estimate_of, too_few};
use crate::serve::Turn;
use crate::stats::Cuts;
use crate::{Answered, Change, Estimate, ProveError, turns};
use std::collections::BTreeMap;
use systoll_cure::interrupted;
use systoll_model::{InPlace, Sysno};

/// A turn of the program: its length, and the calls and work done in it.
#[derive(Clone, Debug, Default)]
pub struct LiveTurn {
    /// True if the calls were answered in place.
    pub answered: bool,
    /// Length of the turn, s.
    pub seconds: f64,
    /// Processor time of the program's processes, ns.
    pub cpu_ns: u64,
    /// Calls that were made, by system call.
    pub made: BTreeMap<Sysno, u64>,
    /// The calls that may be answered in place.
    pub in_place: Vec<InPlace>,
    /// The load's figures, if there is a load.
    pub load: Option<Turn>,
}

impl LiveTurn {
    /// Returns the number of calls that were made.
    pub fn calls(&self) -> u64 {
        self.made.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Returns the number of calls of the kinds that may be answered, made or answered.
    fn asked(&self) -> u64 {
        let of = |p: &InPlace| p.answered.saturating_add(self.made.get(&p.syscall).copied().unwrap_or(0));
        self.in_place.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// The reason why a comparison ended before all turns were over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A signal told systoll to end.
    Interrupted,
    /// The program has ended, or is not watched any more. Holds the reason.
    Gone(String),
}

/// Makes turns of a running program. Tests replace it.
pub trait LiveTurns {
    /// Makes one turn, in which calls are answered in place or made.
    ///
    /// # Errors
    /// The comparison ends: the program has ended, its load fails, or systoll is told to end.
    fn turn(&mut self, answered: bool) -> Result<LiveTurn, LiveError>;
}

/// The reason why a turn gave no figures.
#[derive(Debug)]
pub enum LiveError {
    /// The comparison ends here; the turns before stay valid.
    Ended(Ended),
    /// An error that leaves no result, whatever turns came before.
    Failed(ProveError),
}

/// Converts the error for a comparison that has no earlier turns to report.
impl From<LiveError> for ProveError {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Failed(error) => error,
            LiveError::Ended(Ended::Interrupted) => Self::Interrupted { signal: interrupted().unwrap_or(0) },
            LiveError::Ended(Ended::Gone(why)) => Self::Gone(why),
        }
    }
}

/// Options of a comparison of turns.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveOptions {
    /// Turns of either side.
    pub turns: u32,
    /// Probability that an interval holds the true value.
    pub confidence: f64,
    /// Percentage below which a change is never called a difference.
    pub negligible_percent: f64,
    /// The system call whose number tells how much work was done; the program's most frequent one if `None`.
    pub per: Option<Sysno>,
    /// Seed of the order of turns.
    pub seed: u64,
}

/// One side's figures over its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSide {
    /// Units of work a second.
    pub per_second: Estimate,
    /// Latency of a request, ns, if the load prints it.
    pub latency_ns: Option<Estimate>,
    /// Processor time of a unit of work, ns.
    pub cpu_ns: Option<Estimate>,
    /// Processors that the program kept busy.
    pub processors: Estimate,
    /// Calls that were made, a second.
    pub calls: Estimate,
    /// Calls made a second, of the kinds that may be answered.
    pub asked: Estimate,
    /// Failed requests in all turns.
    pub failed: u64,
}

/// The comparison of both kinds of turns.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveComparison {
    /// Turns of either side.
    pub turns: u32,
    /// Length of a turn, s.
    pub seconds: Estimate,
    /// Confidence of all intervals.
    pub confidence: f64,
    /// The unit of work.
    pub work: Work,
    /// The turns in which calls were made.
    pub a: LiveSide,
    /// The turns in which these calls were answered.
    pub b: LiveSide,
    /// Change of the work done in a second; more is better.
    pub per_second: Change,
    /// Change of the latency; less is better.
    pub latency: Option<Change>,
    /// Change of the processor time of a unit of work; less is better.
    pub cpu: Option<Change>,
    /// Change of the processors that were busy; less is better where as much was done.
    pub processors: Change,
    /// Counts of the calls that were answered, over all turns of `b`.
    pub answered: Answered,
    /// The reason why there were no more turns, if the comparison ended early.
    pub ended: Option<Ended>,
}

impl LiveComparison {
    /// Returns true if answering the calls improved something and worsened nothing.
    pub fn is_won(&self) -> bool {
        turns::is_won([Some(&self.per_second), self.latency.as_ref(), self.cpu.as_ref()])
    }
}

/// The result of a comparison of turns.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveResult {
    /// Both kinds of turns were measured.
    Both(Box<LiveComparison>),
    /// More requests failed in turns in which calls were answered: nothing is claimed. Holds the figures.
    Fails(String),
    /// Too few calls were answered in place.
    Part(Answered),
    /// The program made none of the calls in a turn of this many seconds.
    NoCalls(f64),
}

/// Makes a turn as the program is, then turns of both kinds in the order A B B A or B A A B, and compares them.
/// `progress` receives the number of finished turns and of all turns. Returns the turns in their order as well.
///
/// # Errors
/// The options make no sense, the load fails, or the comparison ended before it could tell anything.
pub fn compare_live(
    exec: &mut dyn LiveTurns,
    options: &LiveOptions,
    progress: &mut dyn FnMut(u32, u32),
) -> Result<(LiveResult, Vec<LiveTurn>), ProveError> {
    turns::cuts(options.turns, options.confidence)?;
    let cuts_of = |turns: usize| Cuts::new(turns, 1.0 - options.confidence);
    let first = exec.turn(false)?;
    if first.asked() == 0 {
        return Ok((LiveResult::NoCalls(first.seconds), vec![first]));
    }
    let work = Work::of(&first, options.per)?;
    let order = turns::order(options.turns, options.seed);
    let all = u32::try_from(order.len()).unwrap_or(u32::MAX);
    let (mut made, mut ended) = (Vec::new(), None);
    for (n, answered) in (1..).zip(order) {
        match exec.turn(answered) {
            Ok(turn) => made.push(LiveTurn { answered, ..turn }),
            Err(LiveError::Failed(error)) => return Err(error),
            Err(LiveError::Ended(why)) => {
                let pairs = made.len() / 2;
                if cuts_of(pairs).is_none() {
                    return Err(LiveError::Ended(why).into());
                }
                made.truncate(2 * pairs);
                ended = Some(why);
                break;
            }
        }
        progress(n, all);
    }
    let cuts = cuts_of(made.len() / 2).ok_or_else(too_few)?;
    let result = result(&made, (work, ended), cuts, options)?;
    Ok((result, made))
}

fn result(
    turns: &[LiveTurn],
    (work, ended): (Work, Option<Ended>),
    cuts: Cuts,
    options: &LiveOptions,
) -> Result<LiveResult, ProveError> {
    let of = |answered: bool| turns.iter().filter(|t| t.answered == answered).collect::<Vec<_>>();
    let sides = [of(false), of(true)];
    let failed = |turns: &[&LiveTurn]| {
        turns.iter().filter_map(|t| t.load.as_ref()).fold(0u64, |sum, t| sum.saturating_add(t.failed))
    };
    let [failed_a, failed_b] = [failed(&sides[0]), failed(&sides[1])];
    if failed_b > failed_a {
        return Ok(LiveResult::Fails(format!("{failed_b} requests failed, {failed_a} as the program is")));
    }
    let mut answered = Answered::default();
    sides[1].iter().for_each(|turn| answered.add_calls(&turn.in_place));
    if !answered.is_enough() {
        return Ok(LiveResult::Part(answered));
    }
    let compared = Compared { sides: &sides, work: &work, cuts, negligible: options.negligible_percent };
    let lengths: Vec<f64> = sides[0].iter().map(|turn| turn.seconds).collect();
    Ok(LiveResult::Both(Box::new(LiveComparison {
        turns: u32::try_from(sides[0].len()).unwrap_or(u32::MAX),
        seconds: estimate_of(&lengths, cuts)?,
        confidence: options.confidence,
        a: compared.side(0, failed_a)?,
        b: compared.side(1, failed_b)?,
        per_second: compared.change(&Work::per_second, true)?.ok_or_else(too_few)?,
        latency: compared.change(&|_, turn| turn.load.as_ref()?.latency_ns, false)?,
        cpu: compared.change(&Work::cpu_ns, false)?,
        processors: compared.change(&|_, turn| processors(turn), false)?.ok_or_else(too_few)?,
        work,
        answered,
        ended,
    })))
}

fn processors(turn: &LiveTurn) -> Option<f64> {
    Some(turn.cpu_ns as f64 / 1e9 / turn.seconds.max(1e-9))
}

/// A figure of a turn.
type Figure<'a> = &'a dyn Fn(&Work, &LiveTurn) -> Option<f64>;

struct Compared<'a> {
    sides: &'a [Vec<&'a LiveTurn>; 2],
    work: &'a Work,
    cuts: Cuts,
    negligible: f64,
}

impl Compared<'_> {
    /// Returns a side's values, if every turn has one.
    fn values(&self, side: usize, of: Figure<'_>) -> Option<Vec<f64>> {
        self.sides[side].iter().map(|turn| of(self.work, turn)).collect()
    }

    fn side(&self, side: usize, failed: u64) -> Result<LiveSide, ProveError> {
        let estimate = |of: Figure<'_>| self.values(side, of).map(|v| estimate_of(&v, self.cuts)).transpose();
        let always = |of: Figure<'_>| estimate(of)?.ok_or_else(too_few);
        let a_second = |n: u64, turn: &LiveTurn| Some(n as f64 / turn.seconds.max(1e-9));
        let asked = |turn: &LiveTurn| {
            let made = turn.in_place.iter().filter_map(|p| turn.made.get(&p.syscall));
            made.fold(0u64, |sum, n| sum.saturating_add(*n))
        };
        Ok(LiveSide {
            per_second: always(&Work::per_second)?,
            latency_ns: estimate(&|_, turn| turn.load.as_ref()?.latency_ns)?,
            cpu_ns: estimate(&Work::cpu_ns)?,
            processors: always(&|_, turn| processors(turn))?,
            calls: always(&|_, turn| a_second(turn.calls(), turn))?,
            asked: always(&|_, turn| a_second(asked(turn), turn))?,
            failed,
        })
    }

    fn change(&self, of: Figure<'_>, more: bool) -> Result<Option<Change>, ProveError> {
        let (Some(a), Some(b)) = (self.values(0, of), self.values(1, of)) else { return Ok(None) };
        turns::change(&a, &b, self.cuts, self.negligible, more).map(Some)
    }
}

#[cfg(test)]
mod tests;
