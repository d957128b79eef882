//! Compares two variants of a server: started, driven by a load and stopped in turns.

mod load;
mod server;

pub use load::LoadFigures;
pub use server::{Drive, Load, Ready, ServeError, Servers, Watching};

use crate::measure::estimate_of;
use crate::stats::Cuts;
use crate::{Answered, CallCounts, Change, Estimate, ProveError, turns};
use systoll_cure::Spec;
use systoll_model::Recording;

/// One life of a server: the figures of its load and of the kernel.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Number of requests a second, as the load printed it; of runs of the load if it prints
    /// nothing.
    pub per_second: f64,
    /// True if `per_second` counts requests.
    pub told: bool,
    /// Number of requests, or of the load's runs if it prints nothing; `None` if the load prints
    /// requests a second but not their number.
    pub work: Option<u64>,
    /// Latency of a request, ns, if it is printed.
    pub latency_ns: Option<f64>,
    /// Number of requests that failed.
    pub failed: u64,
    /// Processor time of the server from its start to its end, ns.
    pub cpu_ns: u64,
    /// True if the server ended when told to, false if it had to be killed.
    pub ended: bool,
    /// The server's recording, if it was watched.
    pub recording: Option<Recording>,
}

/// Runs servers. Tests replace it.
pub trait Turns {
    /// Runs one life of the server: starts, drives and stops it.
    ///
    /// # Errors
    /// The server does not start, dies, or its load fails.
    fn turn(&mut self, spec: &Spec, watching: Watching) -> Result<Turn, ServeError>;
}

/// Options of a comparison of two servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServeOptions {
    /// Number of turns of either side.
    pub turns: u32,
    /// Probability that an interval holds the true value.
    pub confidence: f64,
    /// Percentage below which a change is never called a difference.
    pub negligible_percent: f64,
    /// True to watch one more turn of either side, which counts its calls.
    pub counted: bool,
    /// Seed of the order of turns.
    pub seed: u64,
}

/// One side's figures over its turns.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSide {
    /// Number of requests (or runs of the load) a second.
    pub per_second: Estimate,
    /// Latency of a request, ns, if it is printed.
    pub latency_ns: Option<Estimate>,
    /// Processor time of the server for each request (or run of the load), ns, if these are
    /// counted.
    pub cpu_ns: Option<Estimate>,
    /// Number of turns after which the server had to be killed.
    pub killed: u32,
    /// Number of failed requests in all turns.
    pub failed: u64,
    /// Calls of the watched turn, and the number of its requests (or runs).
    pub calls: Option<(CallCounts, u64)>,
}

/// The comparison of two servers.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeComparison {
    /// Number of turns of either side.
    pub turns: u32,
    /// Confidence of all intervals.
    pub confidence: f64,
    /// True if figures are for each request, false if for each run of the load.
    pub told: bool,
    /// True if timed turns were watched, on both sides alike.
    pub watched: bool,
    /// The unchanged side.
    pub a: ServerSide,
    /// The changed side.
    pub b: ServerSide,
    /// Change of the requests a second; more is better.
    pub per_second: Change,
    /// Change of the latency; less is better.
    pub latency: Option<Change>,
    /// Change of the processor time for each request; less is better.
    pub cpu: Option<Change>,
}

impl ServeComparison {
    /// Returns true if the change improved something and worsened nothing.
    pub fn is_won(&self) -> bool {
        turns::is_won([Some(&self.per_second), self.latency.as_ref(), self.cpu.as_ref()])
    }
}

/// The result of a comparison of servers.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    /// Both sides served.
    Both(Box<ServeComparison>),
    /// The changed side did not serve as the other does: nothing is claimed. Holds the reason.
    Fails(String),
    /// Both serve, but too few calls were answered in place.
    Part(Answered),
}

/// Runs a turn of `a` to check that it serves, then turns of both in the order A B B A or B A A B,
/// and compares them. `progress` receives the number of finished turns and of all turns.
///
/// # Errors
/// The options make no sense, or `a` itself does not serve.
pub fn compare_servers(
    exec: &mut dyn Turns,
    a: &Spec,
    b: &Spec,
    options: &ServeOptions,
    progress: &mut dyn FnMut(u32, u32),
) -> Result<Served, ProveError> {
    let cuts = turns::cuts(options.turns, options.confidence)?;
    let watched = !(a.elisions.is_empty() && b.elisions.is_empty());
    let how = if watched { Watching::Alike } else { Watching::No };
    let mut of: [Vec<Turn>; 2] = Default::default();
    let mut calls = [None, None];
    let counted = if options.counted { [0, 1].as_slice() } else { &[] };
    // A failure of the unchanged side is not the change's fault.
    exec.turn(a, how)?;
    let timed = turns::order(options.turns, options.seed).into_iter().map(|changed| (usize::from(changed), how));
    let all: Vec<(usize, Watching)> = timed.chain(counted.iter().map(|side| (*side, Watching::Closely))).collect();
    for (n, (side, watching)) in (0..).zip(&all) {
        let spec = if *side == 0 { a } else { b };
        let turn = match exec.turn(spec, *watching) {
            Ok(turn) => turn,
            Err(why) if *side == 1 => return Ok(Served::Fails(why.to_string())),
            Err(why) => return Err(why.into()),
        };
        progress(n + 1, u32::try_from(all.len()).unwrap_or(u32::MAX));
        match (watching, &turn.recording, turn.work) {
            (Watching::Closely, Some(recording), Some(work)) if work > 0 => {
                calls[*side] = Some((CallCounts::of(std::slice::from_ref(recording)), work));
            }
            (Watching::Closely, ..) => {}
            _ => of[*side].push(turn),
        }
    }
    let [of_a, of_b] = &of;
    let failed = |turns: &[Turn]| turns.iter().fold(0u64, |sum, t| sum.saturating_add(t.failed));
    if failed(of_b) > failed(of_a) {
        let text = format!("{} requests failed, {} of the program as it is", failed(of_b), failed(of_a));
        return Ok(Served::Fails(text));
    }
    let mut answered = Answered::default();
    of_b.iter().filter_map(|turn| turn.recording.as_ref()).for_each(|recording| answered.add(recording));
    if !answered.is_enough() {
        return Ok(Served::Part(answered));
    }
    let told = of.iter().flatten().all(|t| t.told);
    let compared = Compared { turns: [of_a, of_b], cuts, negligible: options.negligible_percent };
    let [calls_a, calls_b] = calls;
    Ok(Served::Both(Box::new(ServeComparison {
        turns: options.turns,
        confidence: options.confidence,
        told,
        watched,
        a: compared.side(0, calls_a)?,
        b: compared.side(1, calls_b)?,
        per_second: compared.change(|t| Some(t.per_second), true)?.ok_or_else(crate::measure::too_few)?,
        latency: compared.change(|t| t.latency_ns, false)?,
        cpu: compared.change(cpu, false)?,
    })))
}

fn cpu(turn: &Turn) -> Option<f64> {
    turn.work.filter(|n| *n > 0).map(|n| turn.cpu_ns as f64 / n as f64)
}

struct Compared<'a> {
    turns: [&'a [Turn]; 2],
    cuts: Cuts,
    negligible: f64,
}

impl Compared<'_> {
    /// Returns both sides' values, if every turn has one.
    fn values(&self, of: fn(&Turn) -> Option<f64>) -> Option<[Vec<f64>; 2]> {
        let values = |turns: &[Turn]| turns.iter().map(of).collect::<Option<Vec<f64>>>();
        Some([values(self.turns[0])?, values(self.turns[1])?])
    }

    fn side(&self, side: usize, calls: Option<(CallCounts, u64)>) -> Result<ServerSide, ProveError> {
        let estimate = |of: fn(&Turn) -> Option<f64>| {
            self.values(of).map(|values| estimate_of(&values[side], self.cuts)).transpose()
        };
        let turns = self.turns[side];
        Ok(ServerSide {
            per_second: estimate(|t| Some(t.per_second))?.ok_or_else(crate::measure::too_few)?,
            latency_ns: estimate(|t| t.latency_ns)?,
            cpu_ns: estimate(cpu)?,
            killed: u32::try_from(turns.iter().filter(|t| !t.ended).count()).unwrap_or(u32::MAX),
            failed: turns.iter().fold(0, |sum, t| sum.saturating_add(t.failed)),
            calls,
        })
    }

    fn change(&self, of: fn(&Turn) -> Option<f64>, more: bool) -> Result<Option<Change>, ProveError> {
        let Some([a, b]) = self.values(of) else { return Ok(None) };
        turns::change(&a, &b, self.cuts, self.negligible, more).map(Some)
    }
}

#[cfg(test)]
mod tests;
