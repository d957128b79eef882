//! Room behind a call that the next one has taken for its hook before.

use super::sites::{Planner, may_move};
use super::window::Block;

impl Planner<'_> {
    /// Lets calls that are closely followed by another be seen to return, where the other may be
    /// made elsewhere and so needs no room of its own before it. `calls` are the places of calls in
    /// the block, in the order of the plan's sites from `first` on.
    pub(super) fn make_room(&mut self, block: &Block<'_>, first: usize, calls: &[usize]) {
        for (at, pair) in (first..).zip(calls.windows(2)) {
            let (&[n, next], Some([site, other])) = (pair, self.plan.sites.get_mut(at..at + 2)) else { return };
            let Some(before) = other.before.clone() else { continue };
            if site.after.is_some() || other.whole.is_some() || !may_move(self.image, other) {
                continue;
            }
            self.taken.release(&before);
            let behind = block.after(n, &self.taken).filter(|behind| behind.overlaps(&before));
            if let Some(behind) = behind {
                self.taken.add(&behind, site.address);
                if let Some(whole) = block.whole(next, &self.taken) {
                    self.taken.add(&whole, other.address);
                    (other.before, other.hook_cfa, other.whole) = (None, None, Some(whole));
                    site.after = Some(behind);
                    continue;
                }
                self.taken.release(&behind);
            }
            self.taken.add(&before, other.address);
        }
    }
}
