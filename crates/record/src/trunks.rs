//! The whole stacks of a row's calls, each with its weight.

/// Different whole stacks remembered for a row: the first ones, since most calls come by few stacks.
const MAX_TRUNKS: usize = 16;

/// One whole stack of a row's calls, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawTrunk {
    /// Id of the stack, without the interpreter's own frames, as in [`Line::whole`].
    pub(crate) whole: u32,
    /// Number of calls that the sampled calls with this stack stand for.
    pub(crate) weight: u64,
    /// Id of the first sampled stack of these, with the interpreter's own frames.
    pub(crate) full: u32,
    /// Number of samples.
    pub(crate) looks: u64,
}

/// The different whole stacks of a row's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trunks {
    pub(crate) all: Vec<RawTrunk>,
    /// Number of calls that the remaining samples stand for. Their stack was not one of the remembered ones, or was
    /// only found to differ from one.
    pub(crate) others: u64,
}

impl Trunks {
    /// Adds a sampled whole stack that stands for `weight` calls; `full` is the same with the interpreter's own frames.
    pub(crate) fn note(&mut self, whole: u32, weight: u64, full: u32) {
        let room = self.all.len() < MAX_TRUNKS;
        match self.all.iter_mut().find(|trunk| trunk.whole == whole) {
            Some(known) => known.add(weight, 1),
            None if room => self.all.push(RawTrunk { whole, weight, full, looks: 1 }),
            None => self.others = self.others.saturating_add(weight),
        }
    }

    /// Returns true if the row's calls came by several stacks.
    pub(crate) fn differ(&self) -> bool {
        self.all.len() > 1 || self.others > 0
    }
}

impl RawTrunk {
    /// Adds samples that stand for `weight` calls.
    pub(crate) fn add(&mut self, weight: u64, looks: u64) {
        self.weight = self.weight.saturating_add(weight);
        self.looks = self.looks.saturating_add(looks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_beyond_the_limit_are_counted_only() {
        let mut trunks = Trunks::default();
        (0..MAX_TRUNKS as u32 + 5).for_each(|whole| trunks.note(whole, 2, whole));
        assert_eq!((trunks.all.len(), trunks.others), (MAX_TRUNKS, 10));
    }
}
