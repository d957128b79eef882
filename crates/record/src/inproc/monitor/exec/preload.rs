//! Gives a program the contexts that earlier programs with the same files had.

use crate::inproc::monitor::exec::context_reuse::{Context, KnownAbove, KnownContext, KnownStep, KnownTrunk, Pairs};
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SiteRef};
use crate::inproc::monitor::program::{Above, Program};
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Targets};
use crate::inproc::monitor::shared::memory::Area;
use crate::inproc::monitor::sys;
use crate::request_windows::is_receive;
use std::rc::Rc;
use systoll_hooks::assemble::{self, Due, Step, Trunk, grow_due};
use systoll_hooks::layout::{NODE_SIZE, slot, trunk};
use systoll_model::Sysno;
use systoll_symbols::ModuleKey;

/// Records left for contexts that the program itself finds: half of all.
const OWN_RECORDS: u64 = slot::RECORD_COUNT / 2;

/// Differences between a file's addresses in the program and those in the file, by file.
type Biases = foldhash::HashMap<ModuleKey, u64>;

/// A node made from a known context.
struct Preloaded {
    node: NodeAddr,
    known: Rc<KnownContext>,
    above: Option<Above>,
}

/// Gives a program the contexts of earlier ones that consist of the same files.
pub(crate) fn preload(targets: &mut Targets, knowledge: &mut FileKnowledge, draft: &DraftRecording, id: ProgramId) {
    let affordable = draft.windows.budget.affordable(0, draft.clock.at(sys::now()));
    let Some(program) = targets.programs.get_mut(&id) else { return };
    let modules: Vec<ModuleKey> = program.space.files().map(|f| f.module).collect();
    knowledge.reuse.kept.make_known(&modules, &knowledge.provisioning.files, &mut knowledge.reuse.contexts);
    let Some(area) = targets.memory.image(id) else { return };
    let is_early = program.is_looked_at();
    let looked_at = affordable && is_early;
    let main_seen = program.contexts.main_seen;
    // The first call below `main` asks in any case; a context that no program of this run has had yet is sampled.
    let due = |known: &KnownContext| {
        let asks = known.context.main && !main_seen;
        Due { at: if looked_at || asks || !known.is_seen() { 1 } else { known.later() }, asks }
    };
    // Frames of varying size include interpreters' own main functions, and a sample of the stack also tells the
    // script's line, so the thread asks there.
    let scripts = looked_at && program.space.holds_interpreter(&knowledge.symbols);
    let is_asked_about = |known: &Context| scripts && known.main && known.varies();
    // Frames of other sizes belong to other programs, and there is room for a few sizes only. A context that no program
    // with this executable has had yet may have any of them.
    let file = program.file.filter(|file| knowledge.reuse.contexts.knows_varying_of(*file));
    let may_come = |known: &KnownContext| file.is_none_or(|file| !known.context.varies() || known.was_had_by(file));
    let given = |known: &KnownContext, biases: &Biases| {
        if !may_come(known) || is_asked_about(&known.context) {
            return None;
        }
        // Only a whole stack tells the caller. In the first programs of a file, threads compare theirs with the known
        // one, or ask if they can't; later programs are not sampled where an earlier one was.
        let trunk = known.trunk().filter(|_| is_early && known.context.whole).and_then(|trunk| placed(&trunk, biases));
        let is_known = if is_early { trunk.is_some() } else { known.is_seen() };
        is_known.then(|| Given { due: due(known), trunk })
    };
    // Threads are to ask where they receive.
    let leaves_receives = draft.windows.budget.tells_requests();
    for Preloaded { node, known, above } in
        nodes_of_known(knowledge.reuse.contexts.pairs(), program, area, given, leaves_receives)
    {
        let main = known.context.main;
        if let Some(above) = above {
            program.contexts.trunks.insert(node, Rc::new(above));
        }
        program.contexts.known.insert(node, known);
        if main {
            program.contexts.main_nodes.push(node);
        } else if !looked_at {
            program.contexts.unopened.push(node);
        }
    }
}

/// Form in which a program gets a known context.
struct Given {
    due: Due,
    trunk: Option<Placed>,
}

/// The frames above a known context, at the addresses of a program.
struct Placed {
    trunk: Trunk,
    above: Above,
}

/// Places a trunk in a program; returns `None` if the program has not mapped one of its files.
fn placed(trunk: &KnownTrunk, biases: &Biases) -> Option<Placed> {
    let word = |known: &KnownAbove| Some(biases.get(&known.file)?.wrapping_add(known.address));
    let above = trunk.above.iter().map(|known| Some(assemble::Above { place: known.place, word: word(known)? }));
    let above = above.collect::<Option<Vec<_>>>()?;
    let (frames, room) = (trunk.frames().collect(), trunk::room(trunk.above.len()));
    Some(Placed {
        trunk: Trunk { from_rbp: trunk.from_rbp, above },
        above: Above { frames, complete: trunk.complete, room },
    })
}

/// Adds known contexts to the trees of `program`, for pairs of files that were not both mapped before. `given` decides
/// which, and how. Returns the new nodes.
fn nodes_of_known(
    pairs: &Pairs,
    program: &mut Program,
    area: &Area,
    given: impl Fn(&KnownContext, &Biases) -> Option<Given>,
    leaves_receives: bool,
) -> Vec<Preloaded> {
    let mut nodes = Vec::new();
    let biases: Biases = program.space.files().map(|f| (f.module, f.bias)).collect();
    // There are fewer known pairs than possible pairs of a program's hundreds of libraries.
    let both_there = pairs.iter().filter(|((_, outermost), _)| biases.contains_key(outermost));
    let mut new: Vec<(usize, ModuleKey, &[Rc<KnownContext>])> = Vec::new();
    for ((key, outermost), all) in both_there {
        let places = program.hooks.files.iter().enumerate().filter(|(_, f)| f.key == *key).map(|(file, _)| file);
        for file in places.filter(|file| program.contexts.preloaded.insert((*file, *outermost))) {
            new.push((file, *outermost, all));
        }
    }
    new.sort_by_key(|(file, outermost, _)| (*file, *outermost));
    let most = new.iter().map(|(.., all)| all.len()).sum();
    program.contexts.nodes.reserve(most);
    program.contexts.known.reserve(most);
    nodes.reserve(most);
    for (file, _, all) in new {
        let node = |known: &Rc<KnownContext>| {
            program.hooks.room.has(OWN_RECORDS).then_some(())?;
            let Some(Given { due, trunk }) = given(known, &biases) else { return Some(None) };
            let (trunk, above) = trunk.map(|placed| (placed.trunk, placed.above)).unzip();
            let node = grow_known(&known.context, program, area, (file, &biases), due, trunk.as_ref(), leaves_receives);
            Some(node.map(|node| Preloaded { node, known: Rc::clone(known), above }))
        };
        nodes.extend(all.iter().map_while(node).flatten());
    }
    nodes
}

/// Makes the node of a known context. Returns `None` if the node exists already, or if there is no room.
fn grow_known(
    context: &Context,
    program: &mut Program,
    area: &Area,
    (file, biases): (usize, &Biases),
    due: Due,
    trunk: Option<&Trunk>,
    leaves_receives: bool,
) -> Option<NodeAddr> {
    let patched = program.hooks.files.get(file)?;
    let (site, address) = context.site;
    let region = patched.known.region;
    let counted = patched.code.blob.sites.get(site).filter(|s| s.address == address)?;
    let number = counted.number.or(context.number);
    if leaves_receives && number.and_then(|n| Sysno::made(n).signature()).is_some_and(is_receive) {
        return None;
    }
    let root = match context.number {
        None => region + site as u64 * NODE_SIZE,
        Some(number) => {
            // If no return address is known at the site, it has no contexts: it counts all calls of a number at one
            // root.
            counted.offset?;
            program.number_root(area, SiteRef { file, site }, number)?.0
        }
    };
    let step = |step: &KnownStep| {
        let KnownStep { file, address, next, pointer } = *step;
        Some(Step { word: biases.get(&file)?.wrapping_add(address), next, pointer })
    };
    let steps: Vec<Step> = context.steps.iter().map(step).collect::<Option<_>>()?;
    let node = grow_due(area.words(), &mut program.hooks.room, root, &steps, due, trunk).map(NodeAddr).ok()?;
    program.contexts.name(node, Rc::clone(&context.frames)).then_some(node)
}
