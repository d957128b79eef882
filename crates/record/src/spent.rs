//! Time that windows have taken, by the octave of the calls at which they opened.

use std::time::Duration;

/// Shares of the budget that are reserved for later calls: windows of octaves below the first number may use at most
/// the second, a share. Otherwise a program that starts many others, or has many contexts, would spend the whole budget
/// before its most frequent calls begin.
const RESERVES: [(u8, f64); 2] = [(6, 0.4), (10, 0.75)];
/// Time spent on windows, by the classes of [`RESERVES`]; the last item is for windows beyond all classes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent([Duration; RESERVES.len() + 1]);

impl Spent {
    /// Returns the class that a window of `octave` belongs to.
    fn class(octave: u8) -> usize {
        RESERVES.iter().take_while(|(from, _)| octave >= *from).count()
    }

    pub(crate) fn allows(&self, octave: u8, budget: Duration) -> bool {
        let class = Self::class(octave);
        let sum = |classes: &[Duration]| classes.iter().sum::<Duration>();
        let share = RESERVES.get(class).map_or(1.0, |(_, share)| *share);
        sum(&self.0[..=class]) <= budget.mul_f64(share) && sum(&self.0) <= budget
    }

    pub(crate) fn add(&mut self, octave: u8, time: Duration) {
        self.0[Self::class(octave)] += time;
    }
}
