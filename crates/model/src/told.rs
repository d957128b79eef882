//! Which frames of a row are told to people: not those inside the API that was called.

use crate::names::{FrameClass, FrameId};
use crate::recording::Recording;
use crate::row::{Row, RowId, RowTrunk};

/// A whole stack of a row, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldStack {
    /// As [`Recording::told_frames`] has them.
    pub frames: Vec<FrameId>,
    /// The row's share, beside those of its other stacks.
    pub weight: u64,
}

/// Shares of `value`, in proportion to `weights`, that add up to it. All of it is the first one's where no weight says more.
pub fn shares(value: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    if all == 0 {
        return weights.iter().enumerate().map(|(at, _)| if at == 0 { value } else { 0 }).collect();
    }
    // So that a product with a u64 has 128 bits.
    let shift = (u128::BITS - all.leading_zeros()).saturating_sub(u64::BITS);
    let (mut sum, mut given) = (0u128, 0u64);
    let share = |weight: &u64| {
        sum += u128::from(*weight);
        let up_to = u128::from(value) * (sum >> shift) / (all >> shift);
        let up_to = u64::try_from(up_to).unwrap_or(value).min(value);
        let share = up_to - given;
        given = up_to;
        share
    };
    weights.iter().map(share).collect()
}

impl Recording {
    /// The whole stacks seen of a row, where there are several.
    pub fn trunks_of(&self, row: RowId) -> &[RowTrunk] {
        let start = self.trunks.partition_point(|t| t.row < row);
        let end = self.trunks.partition_point(|t| t.row <= row);
        self.trunks.get(start..end).unwrap_or_default()
    }

    /// The stacks by which a row's calls came, each with its share. They are exact up to the user's frame, and drawn from looks
    /// above it. One stands for all where no two differ. Panics as [`Recording::row`] does.
    pub fn told_stacks(&self, id: RowId) -> Vec<ToldStack> {
        let row = self.row(id);
        let trunks = self.trunks_of(id);
        if trunks.is_empty() {
            return vec![ToldStack { frames: self.told_frames(row), weight: 1 }];
        }
        let told =
            |t: &RowTrunk| ToldStack { frames: self.told_above(row, &self.stack(t.stack).frames), weight: t.weight };
        trunks.iter().map(told).collect()
    }

    /// The frames from the one that called the row's API outwards; without an API, all frames there are. Where
    /// scripts' lines are among them, the interpreter's own functions between them are left out.
    /// Panics as [`Recording::row`] does.
    pub fn told_frames(&self, row: &Row) -> Vec<FrameId> {
        self.told_above(row, &self.stack(row.outer).frames)
    }

    fn told_above(&self, row: &Row, outer: &[FrameId]) -> Vec<FrameId> {
        let context = &self.stack(row.context).frames;
        let inside = if row.api.is_some() { self.inside_api(context, row.user) } else { 0 };
        let frames: Vec<FrameId> = context.iter().skip(inside).chain(outer).copied().collect();
        // A script's lines say what the interpreter's own functions between them do.
        let script = frames.iter().any(|f| self.frame(*f).language.is_some());
        let shown = |f: &FrameId| {
            let frame = self.frame(*f);
            !script || frame.language.is_some() || frame.class == FrameClass::User
        };
        frames.into_iter().filter(shown).collect()
    }

    /// How many of the context's frames lie inside the API: those below the user's, or, where
    /// that is not known, the C library's own at the leaf.
    fn inside_api(&self, context: &[FrameId], user: Option<FrameId>) -> usize {
        let at_user = user.and_then(|user| context.iter().position(|f| *f == user));
        let of_libc = |f: &&FrameId| matches!(self.frame(**f).class, FrameClass::Libc | FrameClass::Vdso);
        at_user.unwrap_or_else(|| context.iter().take_while(of_libc).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        for (value, weights, wanted) in [
            (10, &[1, 1, 1][..], vec![3, 3, 4]),
            (1, &[5, 5], vec![0, 1]),
            (7, &[0, 0], vec![7, 0]),
            (0, &[3], vec![0]),
            (u64::MAX, &[u64::MAX, u64::MAX, 0], vec![u64::MAX / 2, u64::MAX / 2 + 1, 0]),
        ] {
            let shares = shares(value, weights);
            assert_eq!(shares, wanted);
            assert_eq!(shares.iter().sum::<u64>(), value);
        }
        assert!(shares(5, &[]).is_empty());
    }
}
