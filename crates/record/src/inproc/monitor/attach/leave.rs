//! Leaves watched processes, which run on unwatched.

use crate::inproc::monitor::attach::errands::unfinished;
use crate::inproc::monitor::attach::remove_hooks::{Ours, Written};
use crate::inproc::monitor::exec::bootstrap::Mapping;
use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::program::{Patched, Programs};
use crate::inproc::monitor::session::Targets;
use crate::inproc::monitor::shared::maps::Maps;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::sys;
use crate::problems::Problems;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{Ordering, fence};
use systoll_hooks::layout::{global, slot, state};
use systoll_model::ProblemKind;

/// Number of searches, at most, for new processes that are copies of the processes being left.
const ROUNDS: usize = 16;

/// Leaves all watched processes. Returns the longest time for which threads were stopped at once, ns.
pub(crate) fn leave_all(targets: &Targets, problems: &mut Problems) -> u64 {
    // From here on no thread begins to wait for an answer.
    targets.memory.global().set(global::DEAD, 1);
    targets.memory.global().set(global::ANSWERING, 0);
    let (mut done, mut longest) = (BTreeSet::new(), 0);
    for _ in 0..ROUNDS {
        let all: Vec<(ProgramId, i32)> =
            processes(targets).into_iter().filter(|(_, pid)| !done.contains(pid)).collect();
        if all.is_empty() {
            break;
        }
        for (id, pid) in all {
            done.insert(pid);
            let Some(ours) = ours(&targets.programs, id, pid) else { continue };
            let Some(outcome) = ours.take_out(&|| answer_all(targets)) else { continue };
            longest = longest.max(outcome.stopped_ns);
            if !outcome.restored {
                let exe = crate::procfs::exe(pid).unwrap_or_default();
                let text = format!(
                    "{exe} (process {pid}): it could not be stopped, and goes on counting: systoll attach --clean {pid} tries again"
                );
                problems.note(ProblemKind::Note, text);
            } else if !outcome.clean {
                let exe = crate::procfs::exe(pid).unwrap_or_default();
                let text = format!(
                    "{exe} (process {pid}): memory of systoll's remains mapped in it, as a thread may still come back there: \
                     systoll attach --clean {pid} looks again"
                );
                problems.note(ProblemKind::Note, text);
            }
        }
    }
    longest
}

/// Takes back everything that attempts to enter process `pid` have left there: a thread that was to map memory, and gets
/// hardly any of the processor, may do so when nobody waits for it any more. `code` are the mappings of the code, which
/// no jump leads to. Returns true if something stays.
pub(crate) fn take_back(memory: &Memory, (id, pid): (ProgramId, i32), code: &[Mapping]) -> bool {
    let code_stays = unfinished::finish().contains(&pid);
    let image = memory.to_hand_over(id).and_then(|[_, image]| image.metadata().ok());
    let maps = Maps::of(pid);
    if !image.is_some_and(|image| maps.have_ours(image.ino())) {
        return code_stays;
    }
    let Ok(mem) = Mem::open(pid) else { return true };
    let near = code.iter().map(Mapping::range).filter(|range| maps.are_ours(range)).collect();
    let ours = Ours { pid, mem, near, written: Vec::new(), errands: Vec::new() };
    code_stays || ours.take_out(&|| ()).is_some_and(|outcome| !outcome.clean)
}

/// Returns the words for a process in which something stays ([`take_back`]).
pub(crate) fn what_stays(pid: i32) -> String {
    format!("some of what systoll brings stays in it, unused: systoll attach --clean {pid} takes it out")
}

/// Returns the processes that have an image of ours mapped, with their programs.
fn processes(targets: &Targets) -> Vec<(ProgramId, i32)> {
    let mut all = BTreeSet::new();
    for id in targets.programs.keys() {
        let pids: BTreeSet<i32> =
            (0..targets.memory.slots_drawn(*id)).map(|n| targets.memory.head(id.slot(n)).pid as i32).collect();
        all.extend(pids.into_iter().filter(|pid| *pid > 0 && peer::maps_image(*pid, *id)).map(|pid| (*id, pid)));
    }
    all.into_iter().collect()
}

/// Returns the jumps, code and memory of systoll in a process of a program.
fn ours(programs: &Programs, id: ProgramId, pid: i32) -> Option<Ours> {
    let files = &programs.get(&id)?.hooks.files;
    let mut written: Vec<Written> = files.iter().flat_map(written_in).collect();
    written.sort_by_key(|written| written.at);
    let maps = Maps::of(pid);
    Some(Ours {
        pid,
        mem: Mem::open(pid).ok()?,
        near: files.iter().map(Patched::code_range).filter(|near| maps.are_ours(near)).collect(),
        written,
        errands: Vec::new(),
    })
}

fn written_in(file: &Patched) -> impl Iterator<Item = Written> {
    let jumps = &file.code.jumps;
    jumps.changes.iter().map(|change| {
        let (was, new) = jumps.bytes_of(change);
        Written { at: file.bias.wrapping_add(change.vaddr), was: was.to_vec(), new: new.to_vec() }
    })
}

/// Lets threads go on that wait for the launcher, with what they have as the answer: of all processes, as a child of
/// `vfork` keeps the process waiting that is to be left.
pub(crate) fn answer_all(targets: &Targets) {
    // A thread that begins to wait now sees what was stored before (`hooks::assemble::handshake`).
    fence(Ordering::SeqCst);
    for id in targets.programs.keys() {
        let Some(area) = targets.memory.image(*id) else { continue };
        for index in 0..targets.memory.slots_drawn(*id) {
            let thread = id.slot(index);
            let waits = targets.memory.state(thread) == state::WAITING;
            if let Some(word) = area.half(thread.offset() + slot::STATE).filter(|_| waits)
                && word.compare_exchange(state::WAITING, state::ANSWERED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            {
                sys::futex_wake(word);
            }
        }
    }
}
