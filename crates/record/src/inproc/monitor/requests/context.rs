//! Finds the context of a call that is seen for the first time, and the node that counts it from now on.

use crate::inproc::monitor::exec::context_reuse::{KnownContexts, Origin, SiteOfFile};
use crate::inproc::monitor::exec::no_calls;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SiteRef, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::LastUnwound;
use crate::inproc::monitor::requests::trunk::{self, SeenAbove};
use crate::inproc::monitor::requests::unwind::unwind_now;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::{received, windows};
use crate::inproc::monitor::results::ring_take;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Targets};
use crate::inproc::monitor::shared::memory::{Area, Memory};
use crate::inproc::monitor::sys;
use crate::sys::read_memory;
use std::rc::Rc;
use systoll_hooks::assemble::{self, CountedPlace, Step, TreeError, grow_known, grow_seen};
use systoll_hooks::layout::windows::{ASKED_ONCE, NONE, OWN};
use systoll_hooks::layout::{may_hold_node, node, record, slot};
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
pub(crate) fn on_context(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    root: NodeAddr,
) -> NodeAddr {
    let at = targets.programs.get(&waiter.slot.program).and_then(|program| program.site_of(root));
    let Some((site, (frames, complete))) = at.and_then(|at| Some((at, unwind_now(targets, knowledge, waiter, at)?)))
    else {
        return root;
    };
    no_calls::note_callers(&targets.programs, knowledge, &draft.table, waiter.slot.program, &frames);
    let Some(program) = targets.programs.get_mut(&waiter.slot.program) else { return root };
    let Some(area) = targets.memory.image(waiter.slot.program) else { return root };
    let before = program.contexts.nodes.len();
    let opens = !draft.windows.budget.is_overspent();
    let sighting = Sighting { thread: waiter, site, root, frames: &frames, complete, opens };
    let main = is_main_on(&mut knowledge.symbols, &frames);
    let node = sighting.node(program, &mut knowledge.symbols, &mut knowledge.reuse.contexts, area, main);
    // A thread that can't read its stack by itself asks at known contexts too.
    let reads = area.get(waiter.slot.offset() + slot::STACK_ASKED) == 0;
    if !reads && program.contexts.nodes.len() == before {
        return node;
    }
    if waiter.slot.index == 0 && !program.contexts.main_seen && main {
        on_main(targets, &knowledge.symbols, draft, waiter.slot.program);
        let known = targets.programs.get_mut(&waiter.slot.program).map(|p| std::mem::take(&mut p.contexts.main_nodes));
        look_no_more(targets, draft, waiter.slot, known.unwrap_or_default());
    }
    let affordable = draft.windows.budget.affordable(0, draft.clock.at(sys::now()));
    // If a window opens here, its first call is sampled.
    if !affordable || windows::opened_by(&targets.memory, waiter.slot.program) == NONE {
        windows::look_at_first(targets, &mut knowledge.symbols, draft, waiter, node, (&frames, complete));
    }
    draft.windows.unwound = Some(LastUnwound { tid: waiter.tid, sp: waiter.sp, node, frames, complete });
    on_first(targets, knowledge, draft, waiter, node);
    node
}

/// Opens a window at the first call at a node, if the budget allows it.
fn on_first(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    node: NodeAddr,
) {
    if received::on_first(targets, draft, waiter, node) {
        return;
    }
    let who = windows::opened_by(&targets.memory, waiter.slot.program);
    let affordable = draft.windows.budget.affordable(0, draft.clock.at(sys::now()));
    if matches!(who, ASKED_ONCE | OWN) && affordable {
        ring_take::make_room(targets, draft, waiter.slot);
        windows::on_first(targets, knowledge, draft, waiter, node);
    } else {
        ask_for_window(&targets.memory, draft, waiter.slot, node);
    }
}

/// Makes the thread ask for a window at this call, the first of its context, if the budget allows it.
fn ask_for_window(memory: &Memory, draft: &mut DraftRecording, thread: SlotRef, node: NodeAddr) {
    let affordable = draft.windows.budget.affordable(0, draft.clock.at(sys::now()));
    let Some(area) = memory.image(thread.program) else { return };
    let within = may_hold_node(node.offset());
    if !within || area.get(node.offset() + node::WINDOW_AT) != 0 {
        return;
    }
    if !affordable {
        draft.windows.budget.refused += 1;
        return area.set(node.offset() + node::WINDOW_AT, LATER_OCTAVE);
    }
    let base = thread.offset();
    if let Some(record) = area.record_of(node) {
        let entered = area.get(base + record + record::ENTERED);
        area.set(node.offset() + node::WINDOW_AT, entered + 1);
    }
}

/// Ends start-up if this is the first call below `main` at a context that was given to the program at its start.
pub(crate) fn look_for_main(
    targets: &mut Targets,
    symbols: &Symbols,
    draft: &mut DraftRecording,
    thread: SlotRef,
    node: NodeAddr,
) {
    let Some(program) =
        targets.programs.get_mut(&thread.program).filter(|p| thread.index == 0 && !p.contexts.main_seen)
    else {
        return;
    };
    if !program.contexts.main_nodes.contains(&node) {
        return;
    }
    let mut nodes = std::mem::take(&mut program.contexts.main_nodes);
    on_main(targets, symbols, draft, thread.program);
    if let Some(area) = targets.memory.image(thread.program) {
        let transfers = area.get(node.offset() + node::TRANSFERS);
        area.set(node.offset() + node::TRANSFERS, transfers & !node::ASKS);
    }
    nodes.retain(|other| *other != node);
    look_no_more(targets, draft, thread, nodes);
}

/// Stops asking at these preloaded nodes, since `main` has begun elsewhere.
fn look_no_more(targets: &mut Targets, draft: &DraftRecording, thread: SlotRef, nodes: Vec<NodeAddr>) {
    let affordable = draft.windows.budget.affordable(0, draft.clock.at(sys::now()));
    let (Some(area), Some(program)) = (targets.memory.image(thread.program), targets.programs.get_mut(&thread.program))
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
fn on_main(targets: &mut Targets, symbols: &Symbols, draft: &mut DraftRecording, id: ProgramId) {
    let now = draft.clock.at(sys::now());
    // The first thread itself asks right now, so its time is known.
    let (from, asked) = (targets.memory.asked_from(id.slot(0)), targets.memory.asked_before(id.slot(0)));
    let written = targets.memory.written_before(id.slot(0)) as f64 / draft.clock.ratio.cycles_per_ns();
    let asked = asked.saturating_add(written as u64);
    let Some(program) = targets.programs.get_mut(&id) else { return };
    if draft.table.images.first().is_some_and(|command| command.pid == program.pid) {
        draft.awaited.main_began(program.space.holds_interpreter(symbols));
    }
    program.contexts.main_seen = true;
    program.contexts.at_main = Some(targets.memory.counts(id.slot(0), MOST_AT_MAIN));
    let before = program.processes.thread_before;
    if let Some(image) = draft.table.images.get_mut(program.image.index())
        && image.main_at_ns.is_none()
    {
        image.main_at_ns = Some(now);
        image.startup_cpu_ns = from.map_or(0, |from| from.saturating_sub(before).saturating_sub(asked));
    }
}

/// Answers a question for the root that counts the calls of one number, asked at the site with the table at `table`.
pub(crate) fn on_number(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    table: u64,
) -> NodeAddr {
    let Some(program) = targets.programs.get_mut(&waiter.slot.program) else { return NodeAddr(table) };
    let Some(at) = program.site_of_table(table) else { return NodeAddr(table) };
    let Some(area) = targets.memory.image(waiter.slot.program) else { return NodeAddr(table) };
    // Numbers are 32 bits wide, as the kernel and the trampolines see them.
    let Some(root) = program.number_root(area, at, waiter.registers.ax as u32) else { return NodeAddr(table) };
    let site = program.hooks.files.get(at.file).and_then(|f| f.code.blob.sites.get(at.site));
    if site.is_some_and(|s| s.offset.is_some()) {
        on_context(targets, knowledge, draft, waiter, root)
    } else {
        on_first(targets, knowledge, draft, waiter, root);
        root
    }
}

/// A call of a thread, with the stack that was unwound for it.
struct Sighting<'a> {
    thread: &'a Waiter,
    /// The place that makes the call.
    site: SiteRef,
    /// Root of the tree of contexts of that place, or of that place and call.
    root: NodeAddr,
    /// The stack, from the call outwards.
    frames: &'a [PlacedFrame],
    /// True if the stack was unwound to its end.
    complete: bool,
    /// True if a new context gets a node of its own.
    opens: bool,
}

/// Part of a stack that tells a context from others, and the steps by which threads find it themselves.
struct ContextPath<'a> {
    /// Frames up to the innermost that belongs to the user's code.
    frames: &'a [PlacedFrame],
    /// Words that a thread compares, one for each frame beyond the first; ends early if a thread can't find the next
    /// frame.
    steps: Vec<Step>,
    /// True if the steps lead as far as the frames do; a thread may then compare the frames above, too.
    whole: bool,
}

/// Returns true if `main` is on a stack.
fn is_main_on(symbols: &mut Symbols, frames: &[PlacedFrame]) -> bool {
    let stack: Vec<RawFrame> = frames.iter().map(|f| f.frame).collect();
    symbols.reaches_main(&stack)
}

impl<'a> Sighting<'a> {
    /// Returns the node for this context; it is made if it is new, and kept in `seeds`. Returns the root if contexts
    /// can't be told apart. `main`: true if `main` is on the stack.
    fn node(
        &self,
        program: &mut Program,
        symbols: &mut Symbols,
        seeds: &mut KnownContexts,
        area: &Area,
        main: bool,
    ) -> NodeAddr {
        let (base, _) = trunk::base(program, self.thread, self.site);
        let offset = self.assembled(program).and_then(|site| site.offset);
        let path = self.path(symbols, base, offset);
        let above = self.frames.get(path.steps.len() + 1..).filter(|_| path.whole);
        let above = above.and_then(|above| SeenAbove::of(program, self.thread, self.site, (above, self.complete)));
        let trunk = above.as_ref().map(SeenAbove::trunk);
        let grown = if path.steps.is_empty() {
            Err(TreeError::Depth)
        } else if self.opens {
            grow_seen(area.words(), &mut program.hooks.room, self.root.0, &path.steps, trunk.as_ref()).map(NodeAddr)
        } else {
            grow_known(area.words(), &mut program.hooks.room, self.root.0, &path.steps).map(NodeAddr)
        };
        match grown {
            Ok(node) => {
                // Where Go's threads wait because no goroutine can go on, each program is asked for the line that lets time pass.
                let seeds = (!symbols.is_idle(self.frames)).then_some(seeds);
                self.keep(program, seeds, node, &path, above, main);
                node
            }
            Err(TreeError::Varies { node, callers }) => {
                let node = NodeAddr(node);
                if !self.opens {
                    program.contexts.shortened.push(node);
                    program.contexts.times_shortened += 1;
                }
                program.contexts.name(node, path.frames.iter().take(callers + 1).map(|f| f.frame).collect());
                node
            }
            // There is no stack to read at this call; other calls at the site do have one.
            Err(_) if path.steps.is_empty() && !has_word(self.thread.tid, base, offset) => self.root,
            Err(why) => {
                let failures = program.contexts.failures.entry(self.root).or_default();
                *failures += 1;
                if *failures >= MAX_FAILURES || path.steps.is_empty() || why == TreeError::Full {
                    // A damaged tree belongs to a program that writes over our memory.
                    let _ = assemble::close(area.words(), self.root.0);
                }
                self.root
            }
        }
    }

    /// Returns the assembled place that makes the call; `None` if its file is not hooked.
    fn assembled<'p>(&self, program: &'p Program) -> Option<&'p CountedPlace> {
        program.hooks.files.get(self.site.file).and_then(|f| f.code.blob.sites.get(self.site.site))
    }

    /// Returns the part of the stack that tells this context from others. `base`: address from which threads count
    /// places on the stack; `offset`: distance of the first return address from `base`, if the assembled code knows it.
    fn path(&self, symbols: &mut Symbols, base: u64, offset: Option<u32>) -> ContextPath<'a> {
        let is_users = |f: &PlacedFrame| matches!(symbols.class(f.frame), FrameClass::User | FrameClass::Unknown);
        let user = self.frames.iter().position(is_users);
        let frames = self.frames.get(..user.map_or(self.frames.len(), |u| u + 1)).unwrap_or_default();
        let steps = steps(frames, base, offset);
        // If the context ends before the user's frame, there is nothing above it that threads could compare.
        let whole = if user.is_some() { steps.len() + 1 == frames.len() } else { self.complete };
        ContextPath { frames, steps, whole }
    }

    /// Names a node that was found or made, and keeps its context in `seeds` for later programs.
    fn keep(
        &self,
        program: &mut Program,
        seeds: Option<&mut KnownContexts>,
        node: NodeAddr,
        path: &ContextPath<'_>,
        above: Option<SeenAbove>,
        main: bool,
    ) {
        let raw: Rc<[RawFrame]> = path.frames.iter().take(path.steps.len() + 1).map(|f| f.frame).collect();
        let by_number = program.contexts.number_roots.contains_key(&self.root);
        let number = by_number.then_some(self.thread.registers.ax as u32);
        let origin = if program.native { Origin::Native } else { Origin::Other };
        let address = self.assembled(program).map(|site| site.address);
        let known = program.hooks.files.get(self.site.file).zip(address).map(|(f, address)| (f.key, address));
        if let Some((file, address)) = known
            && let site = (SiteOfFile { file, site: self.site.site, address, number, origin, program: program.file })
            && let Some(seeds) = seeds
            && let Some(seed) = seeds.keep(site, &path.steps, (&raw, path.whole), main)
        {
            seed.note_trunk(above.as_ref().and_then(SeenAbove::known), program.native);
            program.contexts.known.insert(node, seed);
        }
        if let Some(above) = above.filter(|_| !program.contexts.nodes.contains_key(&node)) {
            program.contexts.trunks.insert(node, Rc::new(above.above()));
        }
        program.contexts.name(node, raw);
    }
}

/// Returns the steps by which a thread finds the context `frames`. Each step compares a word of the stack and tells
/// where the next word lies. The steps end early at a frame that a thread can't find.
fn steps(frames: &[PlacedFrame], base: u64, offset: Option<u32>) -> Vec<Step> {
    let from_base = |address: u64| address.wrapping_sub(base);
    let place = |f: &PlacedFrame| from_base(f.sp.wrapping_sub(8));
    let agrees = frames.get(1).is_some_and(|f| Some(place(f)) == offset.map(u64::from));
    let mut steps: Vec<Step> = Vec::new();
    for frame in frames.iter().skip(1) {
        if !agrees || !frame.frame.is_return {
            break;
        }
        if let Some(last) = steps.last_mut() {
            if !frame.constant && frame.pointer.is_none() {
                break;
            }
            last.next = place(frame);
            last.pointer = frame.pointer.filter(|_| !frame.constant).map(|pointer| assemble::FramePointer {
                saved: pointer.saved_at.map(from_base),
                distance: from_base(pointer.value),
            });
        }
        steps.push(Step { word: frame.ip, ..Step::default() });
    }
    steps
}

/// Returns true if a thread's first return address can be read.
fn has_word(tid: i32, base: u64, offset: Option<u32>) -> bool {
    offset.is_none_or(|offset| read_memory(tid, base.wrapping_add(offset.into()), &mut [0; 8]) == 8)
}
