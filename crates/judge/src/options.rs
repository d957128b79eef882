//! The thresholds from which on claims become a finding or a remark. A detector's own thresholds stand in its module, those
//! of excerpts in `excerpt`.

use crate::reasons::ReasonId;

/// The use of good reasons in a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseOfReasons {
    /// They hold.
    Hold,
    /// They hold, and [`crate::Judgement::silences`] names them.
    Explain,
    /// One is switched off, for the test of [`crate::REASONS`].
    #[doc(hidden)]
    Without(ReasonId),
}

/// Thresholds from which on a claim becomes a finding. The defaults were measured on programs with one known waste,
/// their cured twins and healthy programs; a comment names what breaks beyond its threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Least number of needless calls in a finding.
    pub min_calls: u64,
    /// Least number of needless calls in a finding whose price is waiting.
    pub min_waits: u64,
    /// Least share of a finding's rows' calls that is needless, 0 to 1. Above 0.48 real waste is lost; at 0.2
    /// event-driven servers are reported.
    pub min_row_share: f64,
    /// Least price, as a share of the phase's processor time (of its wall time for waits), 0 to 1.
    pub min_price: f64,
    /// Least price, ns; [`Options::small_share`] or [`Options::many_calls`] may take its place.
    pub min_ns: u64,
    /// Least share of processor time, 0 to 1, of polls that find nothing, unless they are [`Options::min_spin_share`]
    /// of all calls.
    pub dear_share: f64,
    /// Number of needless calls that makes up for a price below [`Options::min_ns`]. So many calls cost about that,
    /// and their number is the same in each run.
    pub many_calls: u64,
    /// Share of the phase's processor time with its doubt, 0 to 1, that makes up for a price below
    /// [`Options::min_ns`] if [`Options::low_calls`] calls are known to be alike. A total depends on how long the run
    /// was; a share does not. At 0.03 calls that accompany a costlier habit of the same loop are reported as a
    /// finding of their own.
    pub small_share: f64,
    /// Number of times that one process starts the same program from which on that is a habit.
    pub min_children: u64,
    /// Largest mean processor time of a program that a process starts by habit, ns. A program that
    /// takes more was started for its work.
    pub short_life_ns: u64,
    /// Least share of the run's processor time, 0 to 1, that the starts take. The known part of a start excludes the
    /// teardown of the memory before `execve` and the program's exit.
    pub min_start_share: f64,
    /// Least share of all calls, 0 to 1, of polls that find nothing; [`Options::dear_share`] may take its place. A
    /// spinning program's cost is the spinning itself.
    pub min_spin_share: f64,
    /// Least number of needless calls in a remark.
    pub low_calls: u64,
    /// Least price of a remark, ns: a program that reads its processor time 120 times in a run of a millisecond
    /// deserves none.
    pub low_ns: u64,
    /// Number of needless calls that makes up for a price below [`Options::low_ns`]. So many calls cost about that;
    /// their cost differs from run to run, their number does not.
    pub many_low_calls: u64,
    /// Least number of strongly claimed calls in windows, for a finding.
    pub min_agreeing: u64,
    /// Least number of strongly claimed calls in windows, for a finding whose price is waiting.
    pub min_agreeing_waits: u64,
    /// Least number of windows that hold strongly claimed calls, for a finding.
    pub min_windows: u64,
    /// Least number of octaves of a row's count whose windows hold strongly claimed calls.
    pub min_octaves: u64,
    /// Least share of the rows' calls that is needless, 0 to 1, two standard errors over windows subtracted.
    pub min_low_share: f64,
    /// Share of needless calls, 0 to 1, below which a row is left out of a finding that has a stronger row.
    pub faint_row: f64,
    /// Part of the needless calls of a finding's strongest row, 0 to 1, below which a row is left out of the finding.
    pub crumb: f64,
    /// Shortest single wait before `main` for a finding, ns: preemption may look like a shorter one.
    pub long_wait_ns: u64,
    /// The use of good reasons.
    pub reasons: UseOfReasons,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_calls: 200,
            min_waits: 20,
            min_row_share: 0.45,
            min_price: 0.01,
            min_ns: 1_000_000,
            dear_share: 0.10,
            many_calls: 5_000,
            small_share: 0.05,
            min_children: 20,
            short_life_ns: 10_000_000,
            min_start_share: 0.15,
            min_spin_share: 0.50,
            low_calls: 100,
            low_ns: 100_000,
            many_low_calls: 500,
            min_agreeing: 32,
            min_agreeing_waits: 8,
            min_windows: 4,
            min_octaves: 2,
            min_low_share: 0.40,
            faint_row: 0.15,
            crumb: 0.005,
            long_wait_ns: 10_000_000,
            reasons: UseOfReasons::Hold,
        }
    }
}
