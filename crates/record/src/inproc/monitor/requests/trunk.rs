//! What lies above a context on a waiting thread's stack, which threads compare with theirs
//! ([`systoll_hooks::layout::trunk`]).

use crate::inproc::monitor::exec::context_reuse::{KnownAbove, KnownTrunk};
use crate::inproc::monitor::handles::{NodeAddr, SiteRef};
use crate::inproc::monitor::program::{Above, Program};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::Session;
use std::rc::Rc;
use systoll_hooks::assemble::{self, Base, Trunk};
use systoll_hooks::layout::{NODE_SIZE, may_hold_node, node, record, trunk};
use systoll_symbols::PlacedFrame;

/// Threads of a program among which it is looked for one that has found what was known: one look each.
const MOST_THREADS: u64 = 4;

/// Frames above a context, which begins at a site.
pub(crate) struct SeenAbove<'f> {
    frames: &'f [PlacedFrame],
    complete: bool,
    /// What places are told from, and whether that is rbp.
    base: u64,
    from_rbp: bool,
}

/// What return addresses of a site lie at constant places from, in a waiting thread, and whether that is rbp.
pub(crate) fn base(program: &Program, thread: &Waiter, at: SiteRef) -> (u64, bool) {
    let site = program.hooks.files.get(at.file).and_then(|f| f.code.blob.sites.get(at.site));
    match site.map(|site| site.base) {
        Some(Base::Rbp) => (thread.registers.bp, true),
        _ => (thread.sp, false),
    }
}

impl<'f> SeenAbove<'f> {
    /// Those of a thread that waits at the site `at`; `None` where threads can't compare theirs: where a signal has
    /// interrupted one of them, and of stacks that are too deep.
    pub(crate) fn of(
        program: &Program,
        thread: &Waiter,
        at: SiteRef,
        (frames, complete): (&'f [PlacedFrame], bool),
    ) -> Option<Self> {
        let (base, from_rbp) = base(program, thread, at);
        let seen = Self { frames, complete, base, from_rbp };
        let furthest = frames.last().map(|f| seen.place(f));
        let can_be = frames.iter().all(|f| f.frame.is_return) && KnownTrunk::can_be_compared(frames.len(), furthest);
        can_be.then_some(seen)
    }

    /// Where a frame's return address lies.
    fn place(&self, frame: &PlacedFrame) -> u64 {
        frame.sp.wrapping_sub(8).wrapping_sub(self.base)
    }

    /// For threads to compare.
    pub(crate) fn trunk(&self) -> Trunk {
        let above = self.frames.iter().map(|f| assemble::Above { place: self.place(f), word: f.ip });
        Trunk { from_rbp: self.from_rbp, above: above.collect() }
    }

    /// For later programs. `None` where code without a file is among it, which is no other program's.
    pub(crate) fn known(&self) -> Option<KnownTrunk> {
        let place = |f: &PlacedFrame| {
            Some(KnownAbove { file: f.frame.module?, address: f.frame.address, place: self.place(f) })
        };
        let above = self.frames.iter().map(place).collect::<Option<_>>()?;
        Some(KnownTrunk { from_rbp: self.from_rbp, above, complete: self.complete })
    }

    /// For the program.
    pub(crate) fn above(&self) -> Above {
        Above {
            frames: self.frames.iter().map(|f| f.frame).collect(),
            complete: self.complete,
            room: trunk::room(self.frames.len()),
        }
    }
}

/// A thread has found another stack above `node` than the one that was known from elsewhere, at its first call there: what it
/// has is compared with from now on, as long as no thread has found the other. `stack` is its whole stack.
pub(crate) fn renew(
    session: &mut Session,
    thread: &Waiter,
    node: NodeAddr,
    at: SiteRef,
    stack: (&[PlacedFrame], bool),
) {
    let id = thread.slot.program;
    let (Some(area), Some(program)) = (session.memory.image(id), session.programs.get_mut(&id)) else { return };
    let Some(old) = program.contexts.trunks.get(&node).filter(|_| may_hold_node(node.offset())) else { return };
    let room = old.room;
    let context = program.contexts.nodes.get(&node).map_or(0, |frames| frames.len());
    let frames = stack.0.get(context..).unwrap_or_default();
    let Some(seen) = SeenAbove::of(program, thread, at, (frames, stack.1)) else { return };
    if let Some(known) = program.contexts.known.get(&node) {
        known.renew_trunk(seen.known(), program.native);
    }
    let looks = area.get(node.offset() + node::RECORD) + record::TRUNK_LOOKS;
    let threads = session.memory.slots_drawn(id);
    let is_found = || (0..threads).any(|n| session.memory.word(id.slot(n).offset() + looks, id) != 0);
    if frames.is_empty() || frames.len() > room || threads > MOST_THREADS || is_found() {
        return;
    }
    // Not while a thread may compare.
    let transfers = area.get(node.offset() + node::TRANSFERS);
    area.set(node.offset() + node::TRANSFERS, transfers & !node::TRUNK);
    for (word, nth) in seen.trunk().words().zip(0..) {
        area.set(node.offset() + NODE_SIZE + 8 * nth, word);
    }
    area.set(node.offset() + node::TRANSFERS, transfers);
    program.contexts.trunks.insert(node, Rc::new(Above { room, ..seen.above() }));
}
