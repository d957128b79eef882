//! Finds the frames above a context on a waiting thread's stack: the trunk that other threads compare with theirs
//! ([`systoll_hooks::layout::trunk`]).

use crate::inproc::monitor::exec::context_reuse::{KnownAbove, KnownTrunk};
use crate::inproc::monitor::handles::{NodeAddr, SiteRef};
use crate::inproc::monitor::program::{Above, Program};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::Targets;
use std::rc::Rc;
use systoll_hooks::assemble::{self, Base, Trunk};
use systoll_hooks::layout::{NODE_SIZE, may_hold_node, node, record, trunk};
use systoll_symbols::PlacedFrame;

/// Largest number of a program's slots that are searched for a thread that has found the known trunk.
const MOST_THREADS: u64 = 4;

/// Frames above a context, which begins at a site.
pub(crate) struct SeenAbove<'f> {
    frames: &'f [PlacedFrame],
    complete: bool,
    /// Address to which places are relative; `from_rbp` is true if this is the value of rbp.
    base: u64,
    from_rbp: bool,
}

/// Returns the address to which the places of a site's return addresses are relative, in a waiting thread, and true if
/// that is rbp.
pub(crate) fn base(program: &Program, thread: &Waiter, at: SiteRef) -> (u64, bool) {
    let site = program.hooks.files.get(at.file).and_then(|f| f.code.blob.sites.get(at.site));
    match site.map(|site| site.base) {
        Some(Base::Rbp) => (thread.registers.bp, true),
        _ => (thread.sp, false),
    }
}

impl<'f> SeenAbove<'f> {
    /// Returns the frames above a context in a thread that waits at the site `at`. Returns `None` if threads can't
    /// compare them: a signal has interrupted one of them, or the stack is too deep.
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

    /// Returns the place of a frame's return address.
    fn place(&self, frame: &PlacedFrame) -> u64 {
        frame.sp.wrapping_sub(8).wrapping_sub(self.base)
    }

    /// Returns the trunk that threads compare with.
    pub(crate) fn trunk(&self) -> Trunk {
        let above = self.frames.iter().map(|f| assemble::Above { place: self.place(f), word: f.ip });
        Trunk { from_rbp: self.from_rbp, above: above.collect() }
    }

    /// Returns the trunk for later programs; `None` if it contains code without a file, which belongs to this process
    /// only.
    pub(crate) fn known(&self) -> Option<KnownTrunk> {
        let place = |f: &PlacedFrame| {
            Some(KnownAbove { file: f.frame.module?, address: f.frame.address, place: self.place(f) })
        };
        let above = self.frames.iter().map(place).collect::<Option<_>>()?;
        Some(KnownTrunk { from_rbp: self.from_rbp, above, complete: self.complete })
    }

    /// Returns the frames of the trunk in the form in which the program keeps them.
    pub(crate) fn above(&self) -> Above {
        Above {
            frames: self.frames.iter().map(|f| f.frame).collect(),
            complete: self.complete,
            room: trunk::room(self.frames.len()),
        }
    }
}

/// Handles a thread whose trunk above `node`, at its first call there, differs from the known trunk. From now on
/// threads compare their stacks with this thread's trunk, unless one of them has found the known trunk. `stack` is the
/// thread's whole stack.
pub(crate) fn renew(
    targets: &mut Targets,
    thread: &Waiter,
    node: NodeAddr,
    at: SiteRef,
    stack: (&[PlacedFrame], bool),
) {
    let id = thread.slot.program;
    let (Some(area), Some(program)) = (targets.memory.image(id), targets.programs.get_mut(&id)) else { return };
    let Some(old) = program.contexts.trunks.get(&node).filter(|_| may_hold_node(node.offset())) else { return };
    let room = old.room;
    let context = program.contexts.nodes.get(&node).map_or(0, |frames| frames.len());
    let frames = stack.0.get(context..).unwrap_or_default();
    let Some(seen) = SeenAbove::of(program, thread, at, (frames, stack.1)) else { return };
    if let Some(known) = program.contexts.known.get(&node) {
        known.renew_trunk(seen.known(), program.native);
    }
    let looks = area.get(node.offset() + node::RECORD) + record::TRUNK_LOOKS;
    let threads = targets.memory.slots_drawn(id);
    let is_found = || (0..threads).any(|n| targets.memory.word(id.slot(n).offset() + looks, id) != 0);
    if frames.is_empty() || frames.len() > room || threads > MOST_THREADS || is_found() {
        return;
    }
    // No thread may compare while this changes.
    let transfers = area.get(node.offset() + node::TRANSFERS);
    area.set(node.offset() + node::TRANSFERS, transfers & !node::TRUNK);
    for (word, nth) in seen.trunk().words().zip(0..) {
        area.set(node.offset() + NODE_SIZE + 8 * nth, word);
    }
    area.set(node.offset() + node::TRANSFERS, transfers);
    program.contexts.trunks.insert(node, Rc::new(Above { room, ..seen.above() }));
}
