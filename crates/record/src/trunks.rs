//! The whole stacks by which the calls of a row came, each with its weight.

/// Different whole stacks remembered of a row: those seen first, as most calls come by few.
const MAX_TRUNKS: usize = 16;

/// One of the whole stacks by which a row's calls came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawTrunk {
    /// Without an interpreter's own frames, as [`Line::whole`].
    pub(crate) whole: u32,
    /// Calls for which the looks stand that saw it.
    pub(crate) weight: u64,
}

/// The whole stacks of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trunks {
    pub(crate) all: Vec<RawTrunk>,
    /// Calls for which those looks stand that saw others: beyond [`MAX_TRUNKS`], or they found no more than that.
    pub(crate) others: u64,
}

impl Trunks {
    /// Notes a whole stack that stands for so many calls.
    pub(crate) fn note(&mut self, whole: u32, weight: u64) {
        let room = self.all.len() < MAX_TRUNKS;
        match self.all.iter_mut().find(|trunk| trunk.whole == whole) {
            Some(known) => known.weight = known.weight.saturating_add(weight),
            None if room => self.all.push(RawTrunk { whole, weight }),
            None => self.others = self.others.saturating_add(weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_beyond_the_limit_are_counted_only() {
        let mut trunks = Trunks::default();
        (0..MAX_TRUNKS as u32 + 5).for_each(|whole| trunks.note(whole, 2));
        assert_eq!((trunks.all.len(), trunks.others), (MAX_TRUNKS, 10));
    }
}
