//! Finds the context of a call that is seen for the first time, and the node that counts it from now on.

use crate::inproc::monitor::exec::context_reuse::{KnownContexts, Origin, SiteOfFile};
use crate::inproc::monitor::exec::no_calls;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SiteRef, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::LastUnwound;
use crate::inproc::monitor::requests::trunk::{self, SeenAbove};
use crate::inproc::monitor::requests::unwind::unwind_now;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::windows;
use crate::inproc::monitor::results::ring_take;
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::shared::memory::Area;
use crate::inproc::monitor::sys;
use crate::sys::read_memory;
use std::rc::Rc;
use systoll_hooks::assemble::{self, Step, TreeError, grow_seen};
use systoll_hooks::layout::slot;
use systoll_hooks::layout::windows::{ASKED_ONCE, NONE, OWN};
use systoll_hooks::layout::{may_hold_node, node, record};
use systoll_model::FrameClass;
use systoll_symbols::{PlacedFrame, RawFrame, Symbols};

/// Number of the call at which a window may open if the budget allowed none at the first call. It is the beginning of
/// an octave, and not so small that most questions would be in vain.
const LATER_OCTAVE: u64 = 16;

/// Bytes of a first slot that are kept to tell start-up from the rest, at most.
const MOST_AT_MAIN: u64 = 8 << 20;

/// Failures to tell contexts apart at a site after which no thread asks there any more.
const MAX_FAILURES: u32 = 16;

/// Answers a question for the context of a call at a site with the root `root`. Returns the node that counts it.
pub(crate) fn on_context(session: &mut Session, waiter: &Waiter, root: NodeAddr) -> NodeAddr {
    let at = session.programs.get(&waiter.slot.program).and_then(|program| program.site_of(root));
    let Some((at, (frames, complete))) = at.and_then(|at| Some((at, unwind_now(session, waiter, at)?))) else {
        return root;
    };
    no_calls::note_callers(session, waiter.slot.program, &frames);
    let Some(program) = session.programs.get_mut(&waiter.slot.program) else { return root };
    let Some(area) = session.memory.image(waiter.slot.program) else { return root };
    let before = program.contexts.nodes.len();
    let (node, main) = context(
        program,
        (&mut session.symbols, &mut session.reuse.contexts),
        area,
        waiter,
        root,
        at,
        (&frames, complete),
    );
    // A thread that can't read its stack by itself asks at known contexts too.
    let reads = area.get(waiter.slot.offset() + slot::STACK_ASKED) == 0;
    if !reads && program.contexts.nodes.len() == before {
        return node;
    }
    if waiter.slot.index == 0 && !program.contexts.main_seen && main {
        on_main(session, waiter.slot.program);
        let known = session.programs.get_mut(&waiter.slot.program).map(|p| std::mem::take(&mut p.contexts.main_nodes));
        look_no_more(session, waiter.slot, known.unwrap_or_default());
    }
    let affordable = session.windows.budget.affordable(0, session.clock.at(sys::now()));
    // If a window opens here, its first call is sampled.
    if !affordable || windows::opened_by(session, waiter.slot.program) == NONE {
        windows::look_at_first(session, waiter, node, (&frames, complete));
    }
    session.windows.unwound = Some(LastUnwound { tid: waiter.tid, sp: waiter.sp, node, frames, complete });
    on_first(session, waiter, node);
    node
}

/// Opens a window at the first call at a node, if the budget allows it.
fn on_first(session: &mut Session, waiter: &Waiter, node: NodeAddr) {
    let who = windows::opened_by(session, waiter.slot.program);
    let affordable = session.windows.budget.affordable(0, session.clock.at(sys::now()));
    if matches!(who, ASKED_ONCE | OWN) && affordable {
        ring_take::make_room(session, waiter.slot);
        windows::on_first(session, waiter, node);
    } else {
        ask_for_window(session, waiter.slot, node);
    }
}

/// Makes the thread ask for a window at this call, the first of its context, if the budget allows it.
fn ask_for_window(session: &mut Session, thread: SlotRef, node: NodeAddr) {
    let affordable = session.windows.budget.affordable(0, session.clock.at(sys::now()));
    let Some(area) = session.memory.image(thread.program) else { return };
    let within = may_hold_node(node.offset());
    if !within || area.get(node.offset() + node::WINDOW_AT) != 0 {
        return;
    }
    if !affordable {
        session.windows.budget.refused += 1;
        return area.set(node.offset() + node::WINDOW_AT, LATER_OCTAVE);
    }
    let base = thread.offset();
    let record = area.get(node.offset() + node::RECORD);
    if (slot::RECORDS..slot::LONG_CALLS).contains(&record) {
        let entered = area.get(base + record + record::ENTERED);
        area.set(node.offset() + node::WINDOW_AT, entered + 1);
    }
}

/// Ends start-up if this is the first call below `main` at a context that was given to the program at its start.
pub(crate) fn look_for_main(session: &mut Session, thread: SlotRef, node: NodeAddr) {
    let Some(program) =
        session.programs.get_mut(&thread.program).filter(|p| thread.index == 0 && !p.contexts.main_seen)
    else {
        return;
    };
    if !program.contexts.main_nodes.contains(&node) {
        return;
    }
    let mut nodes = std::mem::take(&mut program.contexts.main_nodes);
    on_main(session, thread.program);
    if let Some(area) = session.memory.image(thread.program) {
        let transfers = area.get(node.offset() + node::TRANSFERS);
        area.set(node.offset() + node::TRANSFERS, transfers & !node::ASKS);
    }
    nodes.retain(|other| *other != node);
    look_no_more(session, thread, nodes);
}

/// Stops asking at these preloaded nodes, since `main` has begun elsewhere.
fn look_no_more(session: &mut Session, thread: SlotRef, nodes: Vec<NodeAddr>) {
    let affordable = session.windows.budget.affordable(0, session.clock.at(sys::now()));
    let (Some(area), Some(program)) = (session.memory.image(thread.program), session.programs.get_mut(&thread.program))
    else {
        return;
    };
    let open_by_themselves = affordable && program.is_looked_at();
    for node in nodes {
        let transfers = area.get(node.offset() + node::TRANSFERS);
        area.set(node.offset() + node::TRANSFERS, transfers & !node::ASKS);
        if !open_by_themselves {
            let later = program.contexts.known.get(&node).map_or(LATER_OCTAVE, |seed| seed.later());
            area.set(node.offset() + node::WINDOW_AT, later);
            program.contexts.unopened.push(node);
        }
    }
}

/// Ends start-up: `main` is on the stack of the program's first thread.
fn on_main(session: &mut Session, id: ProgramId) {
    let now = session.clock.at(sys::now());
    // The first thread itself asks right now, so its time is known.
    let (from, asked) = (session.memory.asked_from(id.slot(0)), session.memory.asked_before(id.slot(0)));
    let written = session.memory.written_before(id.slot(0)) as f64 / session.clock.ratio.cycles_per_ns();
    let asked = asked.saturating_add(written as u64);
    let Some(program) = session.programs.get_mut(&id) else { return };
    program.contexts.main_seen = true;
    program.contexts.at_main = Some(session.memory.counts(id.slot(0), MOST_AT_MAIN));
    let before = program.processes.thread_before;
    if let Some(image) = session.table.images.get_mut(program.image.index())
        && image.main_at_ns.is_none()
    {
        image.main_at_ns = Some(now);
        image.startup_cpu_ns = from.map_or(0, |from| from.saturating_sub(before).saturating_sub(asked));
    }
}

/// Answers a question for the root that counts the calls of one number, asked at the site with the table at `table`.
pub(crate) fn on_number(session: &mut Session, waiter: &Waiter, table: u64) -> NodeAddr {
    let Some(program) = session.programs.get_mut(&waiter.slot.program) else { return NodeAddr(table) };
    let Some(at) = program.site_of_table(table) else { return NodeAddr(table) };
    let Some(area) = session.memory.image(waiter.slot.program) else { return NodeAddr(table) };
    // Numbers are 32 bits wide, as the kernel and the trampolines see them.
    let Some(root) = program.number_root(area, at, waiter.registers.ax as u32) else { return NodeAddr(table) };
    let site = program.hooks.files.get(at.file).and_then(|f| f.code.blob.sites.get(at.site));
    if site.is_some_and(|s| s.offset.is_some()) {
        on_context(session, waiter, root)
    } else {
        on_first(session, waiter, root);
        root
    }
}

/// Returns the node for a context at a site, and true if `main` is on the stack. The node is made if it is new, and
/// kept in `seeds`. Returns the root if contexts can't be told apart.
fn context(
    program: &mut Program,
    (symbols, seeds): (&mut Symbols, &mut KnownContexts),
    area: &Area,
    thread: &Waiter,
    root: NodeAddr,
    at: SiteRef,
    (frames, complete): (&[PlacedFrame], bool),
) -> (NodeAddr, bool) {
    let user = frames.iter().position(|f| matches!(symbols.class(f.frame), FrameClass::User | FrameClass::Unknown));
    let context = frames.get(..user.map_or(frames.len(), |u| u + 1)).unwrap_or_default();
    let site = program.hooks.files.get(at.file).and_then(|f| f.code.blob.sites.get(at.site));
    let (offset, site_address) = (site.and_then(|s| s.offset), site.map(|s| s.address));
    let (base, _) = trunk::base(program, thread, at);
    let place = |f: &PlacedFrame| f.sp.wrapping_sub(8).wrapping_sub(base);
    let agrees = context.get(1).is_some_and(|f| Some(place(f)) == offset.map(u64::from));
    let mut steps: Vec<Step> = Vec::new();
    for frame in context.iter().skip(1) {
        if !agrees || !frame.frame.is_return {
            break;
        }
        if let Some(last) = steps.last_mut() {
            if !frame.constant && frame.pointer.is_none() {
                break;
            }
            last.next = place(frame);
            let from_base = |address: u64| address.wrapping_sub(base);
            last.pointer = frame.pointer.filter(|_| !frame.constant).map(|pointer| assemble::FramePointer {
                saved: pointer.saved_at.map(from_base),
                distance: from_base(pointer.value),
            });
        }
        steps.push(Step { word: frame.ip, ..Step::default() });
    }
    let stack: Vec<RawFrame> = frames.iter().map(|f| f.frame).collect();
    let main = symbols.reaches_main(&stack);
    // If the context ends before the user's frame, there is nothing above it that threads could compare.
    let whole = if user.is_some() { steps.len() + 1 == context.len() } else { complete };
    let above = frames.get(steps.len() + 1..).filter(|_| whole);
    let above = above.and_then(|above| SeenAbove::of(program, thread, at, (above, complete)));
    let trunk = above.as_ref().map(SeenAbove::trunk);
    let grown = if steps.is_empty() {
        Err(TreeError::Depth)
    } else {
        grow_seen(area.words(), &mut program.hooks.room, root.0, &steps, trunk.as_ref()).map(NodeAddr)
    };
    match grown {
        Ok(node) => {
            let raw: Rc<[RawFrame]> = context.iter().take(steps.len() + 1).map(|f| f.frame).collect();
            let number = program.contexts.number_roots.contains_key(&root).then_some(thread.registers.ax as u32);
            let origin = if program.native { Origin::Native } else { Origin::Other };
            let known = program.hooks.files.get(at.file).zip(site_address).map(|(f, address)| (f.key, address));
            if let Some((file, address)) = known
                && let site = (SiteOfFile { file, site: at.site, address, number, origin, program: program.file })
                && let Some(seed) = seeds.keep(site, &steps, (&raw, whole), main)
            {
                seed.note_trunk(above.as_ref().and_then(SeenAbove::known), program.native);
                program.contexts.known.insert(node, seed);
            }
            if let Some(above) = above.filter(|_| !program.contexts.nodes.contains_key(&node)) {
                program.contexts.trunks.insert(node, Rc::new(above.above()));
            }
            program.contexts.name(node, raw);
            (node, main)
        }
        Err(TreeError::Varies { node, callers }) => {
            let node = NodeAddr(node);
            program.contexts.name(node, context.iter().take(callers + 1).map(|f| f.frame).collect());
            (node, main)
        }
        // There is no stack to read at this call; other calls at the site do have one.
        Err(_) if steps.is_empty() && !has_word(thread.tid, base, offset) => (root, main),
        Err(why) => {
            let failures = program.contexts.failures.entry(root).or_default();
            *failures += 1;
            if *failures >= MAX_FAILURES || steps.is_empty() || why == TreeError::Full {
                close(area, root);
            }
            (root, main)
        }
    }
}

/// Returns true if a thread's first return address can be read.
fn has_word(tid: i32, base: u64, offset: Option<u32>) -> bool {
    offset.is_none_or(|offset| read_memory(tid, base.wrapping_add(offset.into()), &mut [0; 8]) == 8)
}

/// Stops asking for contexts at a root.
fn close(area: &Area, root: NodeAddr) {
    let mut at = NodeAddr(area.get(root.offset() + node::CHILD));
    for _ in 0..1 << 16 {
        if !may_hold_node(at.offset()) {
            return;
        }
        match area.get(at.offset() + node::SIBLING) {
            0 => return area.set(at.offset() + node::SIBLING, node::OTHERS),
            node::OTHERS => return,
            next => at = NodeAddr(next),
        }
    }
}
