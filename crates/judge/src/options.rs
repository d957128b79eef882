//! The thresholds, in one place.

/// Where a claim becomes a finding. The defaults were measured on programs with one known waste,
/// their cured twins and healthy programs; each comment says what breaks beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Needless calls a finding has at least.
    pub min_calls: u64,
    /// The same where the price is waiting.
    pub min_waits: u64,
    /// Least share of its rows' calls that is needless: above 0.48 real waste is lost, at 0.2
    /// event-driven servers turn sick.
    pub min_row_share: f64,
    /// Least share of the phase's processor time (or wall time, for waits).
    pub min_price: f64,
    /// Least price in ns; alternatively [`Options::small_share`] or [`Options::many_calls`].
    pub min_ns: u64,
    /// Share of processor time that looks which find nothing have at least, unless they are [`Options::min_spin_share`] of
    /// all calls.
    pub dear_share: f64,
    /// Needless calls that make up for a price under [`Options::min_ns`]: they cost about that, and their number is the
    /// same in each run.
    pub many_calls: u64,
    /// Share of the phase's processor time, its doubt added, that makes up for a short run, of [`Options::low_calls`] calls
    /// that are known to be alike: what a run costs hangs on how long somebody let it go, a share does not. At 0.03 what
    /// goes with a dearer habit of the same loop is told as a finding of its own.
    pub small_share: f64,
    /// Times that one process starts the same program before that is a habit.
    pub min_children: u64,
    /// Mean processor time of such a program, ns, at most: one that takes more was started for its work.
    pub short_life_ns: u64,
    /// Share of the run's processor time that starting it takes at least. What is known of a start is less than
    /// it takes: neither the end of what was there before, nor that of the program.
    pub min_start_share: f64,
    /// Share of all calls that looks which find nothing have at least, alternatively to
    /// [`Options::dear_share`] of processor time: what a spin costs is the spinning.
    pub min_spin_share: f64,
    /// Needless calls a remark has at least.
    pub low_calls: u64,
    /// Price in ns a remark has at least: a program that reads its processor time 120 times in a
    /// millisecond's run is none.
    pub low_ns: u64,
    /// Needless calls that make up for a price under [`Options::low_ns`]: they cost about that, and what they cost differs
    /// from run to run, while their number does not.
    pub many_low_calls: u64,
    /// Calls seen in windows that must agree.
    pub min_agreeing: u64,
    /// The same where the price is waiting.
    pub min_agreeing_waits: u64,
    /// Windows that must hold agreeing calls.
    pub min_windows: u64,
    /// Octaves of a row's count these windows must lie in.
    pub min_octaves: u64,
    /// Least share of the rows' calls that is needless, two standard errors over windows taken off.
    pub min_low_share: f64,
    /// Rows with a smaller share than this are left out of a finding that has a stronger one.
    pub faint_row: f64,
    /// Rows with less than this share of the needless calls of a finding's strongest row are left
    /// out of it.
    pub crumb: f64,
    /// A single wait before `main` worth a finding, in ns: below it, preemption looks the same.
    pub long_wait_ns: u64,
    /// Two waits of one row before `main` worth a finding, in ns each.
    pub paired_wait_ns: u64,
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
            paired_wait_ns: 5_000_000,
        }
    }
}
