//! Makes room behind a call by moving the hook of the next call, which has taken it.

use super::patch_span::Block;
use super::planner::Planner;
use super::sites::may_move;

impl Planner<'_> {
    /// Hooks the returns of calls that are closely followed by another call which may be made elsewhere, and so needs
    /// no room before it. `calls` are the positions of calls in the block, in the order of the plan's sites from
    /// `first` on.
    pub(super) fn make_room(&mut self, block: &Block<'_>, first: usize, calls: &[usize]) {
        for (at, pair) in (first..).zip(calls.windows(2)) {
            let (&[n, next], Some([site, other])) = (pair, self.plan.sites.get_mut(at..at + 2)) else { return };
            let Some(before) = other.entry_span.clone() else { continue };
            if site.return_span.is_some() || other.wrap_span.is_some() || !may_move(self.image, other) {
                continue;
            }
            self.reserved.release(&before);
            let behind = block.return_span(n, &self.reserved).filter(|behind| behind.overlaps(&before));
            if let Some(behind) = behind {
                self.reserved.add(&behind, site.address);
                if let Some(whole) = block.wrap_span(next, &self.reserved) {
                    self.reserved.add(&whole, other.address);
                    (other.entry_span, other.hook_cfa, other.wrap_span) = (None, None, Some(whole));
                    site.return_span = Some(behind);
                    continue;
                }
                self.reserved.release(&behind);
            }
            self.reserved.add(&before, other.address);
        }
    }
}
