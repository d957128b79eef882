//! Compares two programs: first whether they do the same, then how long they take.

use crate::executor::timed_out;
use crate::measure::measure;
use crate::outcome::{Compared, compare_outcomes};
use crate::{
    Agreement, Comparison, Difference, Executor, Measured, Options, Outcome, Output, Pairs, ProveError, Stopped,
};
use std::time::{Duration, Instant};
use systoll_cure::{Spec, Usage};
use systoll_model::{EnvChange, Random};

/// A variable of random length, set in timed runs only. The stack's size changes a program's speed
/// a little, in the same direction for all runs of one size.
const OFFSET_VARIABLE: &str = "SYSTOLL_STACK_OFFSET";

/// The progress of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of pairs run so far.
    pub pairs: u32,
    /// Number of pairs at the next look.
    pub wanted: u32,
    /// Average time of a pair so far.
    pub pair: Duration,
}

impl Progress {
    /// Returns the time until the next look.
    pub fn left(&self) -> Duration {
        self.pair.saturating_mul(self.wanted.saturating_sub(self.pairs))
    }
}

/// Runs `a` against itself and against `b` to check that they do the same, then both in interleaved
/// pairs with their output discarded. `progress` is called before the first pair and after each.
///
/// Pairs come in twos, as A B B A or B A A B (drawn from the seed): a box that grows slower or
/// faster favours neither. Both runs of a pair get a stack of the same size.
///
/// # Errors
/// The options make no sense, or a program can't be run.
pub fn compare(
    exec: &mut dyn Executor,
    a: &Spec,
    b: &Spec,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Comparison, ProveError> {
    options.check()?;
    let began = Instant::now();
    let watched = exec.watches();
    let Compared { outcome, differs_at, patience, pair } = compare_outcomes(exec, a, b, options)?;
    let unmeasured = Comparison { outcome, differs_at, measured: None, watched, answered: exec.answered() };
    if !matches!(outcome, Outcome::Same(_)) || unmeasured.is_part() {
        return Ok(unmeasured);
    }
    let sizes = (a.stack_bytes(), b.stack_bytes());
    let padding = (sizes.1.saturating_sub(sizes.0), sizes.0.saturating_sub(sizes.1));
    let mut timing = Timing {
        exec,
        sides: [(a, padding.0), (b, padding.1)],
        outcome,
        patience,
        pair,
        end: match options.pairs {
            Pairs::Within(limit) => began.checked_add(limit),
            Pairs::Fixed(_) | Pairs::Decisive(_) => None,
        },
        random: Random::new(options.seed),
        runs: [Vec::new(), Vec::new()],
    };
    let timed = timing.warm_up(options.warmup).and_then(|()| timing.until_told(options, began, progress));
    let so_far = match &timed {
        Err(Halt::Error(ProveError::Interrupted { .. })) => timing.so_far(options),
        _ => None,
    };
    let unmeasured = Comparison { answered: exec.answered(), ..unmeasured };
    match timed {
        Ok(_) if unmeasured.is_part() => Ok(unmeasured),
        Ok(measured) => Ok(Comparison { measured: Some(measured), ..unmeasured }),
        Err(Halt::Differs(difference)) => Ok(Comparison { outcome: Outcome::Differs(difference), ..unmeasured }),
        // The pairs so far are a valid result: no figures were shown, so that the user can't have
        // waited for good ones.
        Err(Halt::Error(error)) => match so_far.filter(|_| !unmeasured.is_part()) {
            Some(measured) => Ok(Comparison { measured: Some(measured), ..unmeasured }),
            None => Err(error),
        },
    }
}

/// The reason why timing ends early.
enum Halt {
    Differs(Difference),
    Error(ProveError),
}

impl From<ProveError> for Halt {
    fn from(error: ProveError) -> Self {
        Self::Error(error)
    }
}

struct Timing<'a> {
    exec: &'a mut dyn Executor,
    /// The two programs, each with the bytes by which its stack is smaller than the other's.
    sides: [(&'a Spec, usize); 2],
    outcome: Outcome,
    patience: Duration,
    /// Time of a pair, from the first runs of both.
    pair: Duration,
    /// Time after which no pair begins.
    end: Option<Instant>,
    random: Random,
    runs: [Vec<Usage>; 2],
}

impl Timing<'_> {
    fn warm_up(&mut self, runs: u32) -> Result<(), Halt> {
        for _ in 0..runs {
            for side in [0, 1] {
                self.run(side, 0)?;
            }
        }
        Ok(())
    }

    /// Runs pairs from look to look until one of them decides.
    fn until_told(
        &mut self,
        options: &Options,
        began: Instant,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Measured, Halt> {
        let looks = options.looks();
        self.check_room(options, began)?;
        let mut told = None;
        for look in &looks {
            self.pairs(*look, options.min_pairs(), progress)?;
            let last = look == looks.last().unwrap_or(look);
            let stopped = match options.pairs {
                Pairs::Fixed(_) => Stopped::Asked,
                Pairs::Decisive(limit) | Pairs::Within(limit) if began.elapsed() >= limit => Stopped::Time,
                Pairs::Decisive(_) | Pairs::Within(_) => Stopped::LastLook,
            };
            let mut measured = measure(&self.runs[0], &self.runs[1], stopped, options)?;
            if !matches!(options.pairs, Pairs::Fixed(_)) && measured.wall.is_decided() && measured.cpu.is_decided() {
                measured.stopped = Stopped::Decided;
            }
            if last || measured.stopped != Stopped::LastLook {
                return Ok(measured);
            }
            told = Some(measured);
        }
        told.ok_or_else(|| ProveError::Options("no number of pairs can show anything at this confidence".into()).into())
    }

    /// Fails if the fewest useful pairs do not fit into the time allowed.
    fn check_room(&self, options: &Options, began: Instant) -> Result<(), Halt> {
        let Pairs::Within(allowed) = options.pairs else { return Ok(()) };
        let least = options.min_pairs();
        let needed = began.elapsed().saturating_add(self.pair.saturating_mul(least));
        if needed <= allowed {
            return Ok(());
        }
        Err(ProveError::TooLong { pair: self.pair, least, needed, allowed }.into())
    }

    /// Returns the progress, with `wanted` pairs at the next look.
    fn progress(&self, wanted: u32) -> Progress {
        let pairs = u32::try_from(self.runs[0].len().min(self.runs[1].len())).unwrap_or(u32::MAX);
        let all = self.runs.iter().flatten().fold(0u64, |sum, run| sum.saturating_add(run.wall_ns));
        let pair = all.checked_div(u64::from(pairs)).map_or(self.pair, Duration::from_nanos);
        Progress { pairs, wanted, pair }
    }

    /// Returns the result of the complete pairs so far, if they are enough for intervals.
    fn so_far(&self, options: &Options) -> Option<Measured> {
        let pairs = self.runs[0].len().min(self.runs[1].len());
        measure(&self.runs[0][..pairs], &self.runs[1][..pairs], Stopped::Interrupted, options).ok()
    }

    /// Runs pairs until there are `wanted`, or at least `least` when the time is up.
    fn pairs(&mut self, wanted: u32, least: u32, progress: &mut dyn FnMut(Progress)) -> Result<(), Halt> {
        let enough = wanted as usize;
        progress(self.progress(wanted));
        while self.runs.iter().any(|runs| runs.len() < enough) {
            let is_late = self.end.is_some_and(|end| Instant::now() >= end);
            if is_late && self.runs[0].len() >= least as usize {
                break;
            }
            let first = usize::from(self.random.draw().is_multiple_of(2));
            for pair in [[first, 1 - first], [1 - first, first]] {
                if self.runs[0].len() >= enough {
                    break;
                }
                let offset = usize::try_from(self.random.draw() % 4096).unwrap_or(0);
                for side in pair {
                    let usage = self.run(side, offset)?;
                    self.runs[side].push(usage);
                }
                progress(self.progress(wanted));
            }
        }
        Ok(())
    }

    /// Runs one side once, timed.
    fn run(&mut self, side: usize, offset: usize) -> Result<Usage, Halt> {
        let (spec, padding) = self.sides[side];
        let value = "x".repeat(offset + padding);
        let spec = spec.clone().env(EnvChange::Set(OFFSET_VARIABLE.into(), value.into()));
        // Both sides have a limit, since watching for it is a part of a short program's time.
        let usage = match self.exec.run(&spec, &Output::Discarded, Some(self.patience)) {
            Ok(run) => run.usage,
            Err(error) => {
                return Err(match timed_out(&error) {
                    Some(limit) if side == 1 && limit == self.patience => Halt::Differs(Difference::Hangs(limit)),
                    _ => Halt::Error(error),
                });
            }
        };
        let Outcome::Same(Agreement { exit: Some(exit), .. }) = self.outcome else { return Ok(usage) };
        if usage.exit != exit {
            let (a, b) = if side == 0 { (usage.exit, exit) } else { (exit, usage.exit) };
            return Err(Halt::Differs(Difference::Exit { a, b }));
        }
        Ok(usage)
    }
}

#[cfg(test)]
mod tests;
