//! Handles a new program at its exec, before it has run an instruction.
//!
//! ```text
//!   the thread                 the kernel              the launcher
//!   execve: hook asks  ───────────────────────────►   seizes the thread (requests/exec_asked)
//!   makes the call     ──►  new program, stopped  ──►  on_exec: plans and code of its files, an image,
//!                                                      the bootstrap code in bytes of it that are not used
//!   runs the bootstrap ◄──  continued, detached   ◄──  lets go
//!   maps the memory         (both at the same time)    provision: roots and known contexts into the image
//!   asks                ───────────────────────────►   on_starting: jumps, written by the thread itself
//!   goes on at the program's first instruction    ◄──  answers; nothing traces the thread any more
//! ```

use crate::inproc::monitor::exec::bootstrap::{self, Source, Start};
use crate::inproc::monitor::exec::provision::FileOf;
use crate::inproc::monitor::exec::ready::{Ready, Taken};
use crate::inproc::monitor::exec::{hand_over, own_filters, provision, ready, rseq_areas, seccomp};
use crate::inproc::monitor::handles::{ProgramId, SlotRef};
use crate::inproc::monitor::polling::Polling;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::doomed::is_doomed;
use crate::inproc::monitor::requests::windows;
use crate::inproc::monitor::results::images;
use crate::inproc::monitor::results::sites::Arrival;
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Session, Targets};
use crate::inproc::monitor::shared::maps::{Layout, Mapped, Maps};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::shared::remote::{self, Mem};
use crate::inproc::monitor::sys;
use crate::problems::Problems;
use crate::table::{Image, ImageId};
use crate::{procfs, tracee};
use foldhash::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use systoll_hooks::layout::{image, slot};
use systoll_model::ProblemKind;
use systoll_symbols::AddressSpace;

/// Code segment of 64-bit programs (kernel: __USER_CS).
const USER_CS: u64 = 0x33;

/// Facts about where a new program comes from.
struct Origin {
    /// Slot of the thread that executed the program.
    from: Option<SlotRef>,
    /// Image in which that thread ran.
    parent: Option<ImageId>,
    /// True if this is the command's own program.
    first: bool,
    /// True if the process is known to be confined as the launcher is, from its program before.
    as_before: bool,
}

/// Handles a program that has taken over process `pid`, which is stopped; `from` is the program and slot it came from.
pub(crate) fn on_exec(session: &mut Session, pid: i32, from: Option<SlotRef>) {
    let parent = leave_by_exec(&mut session.targets, &mut session.draft, from, pid);
    let first =
        pid == session.traced.root.pid && session.targets.programs.is_empty() && session.traced.root.image.is_none();
    let as_before = from.is_some_and(|from| has_no_filter_of_its_own(&session.targets, from.program));
    let exe = procfs::exe(pid).unwrap_or_default();
    let prepared = prepare(session, pid, &Origin { from, parent, first, as_before }, &exe);
    if let Err(why) = &prepared {
        if first {
            // Nothing of the program has run, so the caller may choose another backend.
            session.traced.root.refused = Some(format!("{exe}: {why}"));
            sys::kill(pid);
        } else if !is_doomed(pid) {
            session.draft.problems.note(ProblemKind::Unwatched, format!("{exe} ran unwatched: {why}"));
        }
    }
    let _ = tracee::detach(pid, 0);
    if let Ok(id) = prepared {
        // The program maps our memory now, and does not need the launcher for that.
        provision::provision(&mut session.targets, &mut session.knowledge, &mut session.draft, id);
        windows::settle_who_opens(&mut session.targets, &session.knowledge.provisioning, &session.draft);
    }
}

/// Ends the slot of a thread that has left its program by an exec. Returns the image it ran in.
fn leave_by_exec(
    targets: &mut Targets,
    draft: &mut DraftRecording,
    from: Option<SlotRef>,
    pid: i32,
) -> Option<ImageId> {
    let from = from?;
    let image = images::image_of_slot(targets, draft, from);
    draft.windows.close(&mut draft.table, from);
    let program = targets.programs.get_mut(&from.program)?;
    program.note_exec_cpu(pid);
    program.threads.gone_by_exec.insert(from.index);
    image
}

/// State of a stopped process that has just become another program.
struct Newcomer {
    pid: i32,
    regs: crate::tracee::Regs,
    mem: Mem,
    maps: Maps,
    space: AddressSpace,
    /// Code for the files that the process has mapped.
    files: Vec<Ready>,
    /// True if the counts leave out nothing of these files.
    seen_whole: bool,
}

/// Prepares everything and lets the stopped process begin with the bootstrap code.
fn prepare(session: &mut Session, pid: i32, origin: &Origin, exe: &Arc<str>) -> Result<ProgramId, String> {
    let Session { targets, knowledge, draft, traced, .. } = session;
    let newcomer = inspect(targets, knowledge, &mut draft.problems, &traced.root, pid, origin.as_before)?;
    let id = session
        .knowledge
        .provisioning
        .spare
        .take()
        .or_else(|| {
            provision::blank_image(&mut session.targets.memory, &session.knowledge.provisioning, &session.draft.stats)
        })
        .ok_or("no memory for another program")?;
    let native = is_native(&session.targets.programs, pid, origin.from);
    if let Err(why) = start(&session.targets, &session.polling, id, &newcomer, origin, native) {
        session.targets.memory.free_image(id);
        return Err(why);
    }
    admit(session, id, newcomer, origin, native, exe);
    Ok(id)
}

/// Returns true if the stopped process descends from one that was entered under filters of its own, and its filters
/// allow our calls too.
fn is_allowed_like_its_maker(root: &RootProcess, pid: i32) -> bool {
    root.attached.is_some()
        && seccomp::is_in_our_namespace(pid)
        && seccomp::may_read_filters()
        && own_filters::obstacle([pid]).is_none()
}

/// Reads the state of the stopped process and plans the hooks of its files. Returns the reason if the process can't be
/// watched.
fn inspect(
    targets: &Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    root: &RootProcess,
    pid: i32,
    as_before: bool,
) -> Result<Newcomer, String> {
    if !as_before
        && let Some(obstacle) = seccomp::obstacle(pid)
        && !is_allowed_like_its_maker(root, pid)
    {
        return Err(obstacle);
    }
    let regs = tracee::registers(pid).map_err(|e| e.desc().to_owned())?;
    if regs.cs != USER_CS {
        return Err("it is a 32-bit program".into());
    }
    let mem = Mem::open(pid).map_err(|e| format!("its memory can't be opened: {e}"))?;
    let mut space = AddressSpace::new();
    let maps = Maps::of(pid);
    space.update_by(&mut knowledge.symbols, pid, &maps.text);
    let mut taken = Taken::by(Layout::Known(&maps.all));
    let mut files = Vec::new();
    let losses_before = problems.losses;
    for file in space.files().collect::<Vec<_>>() {
        if let Some(ready) = ready::ready(targets, knowledge, problems, &file, &mut taken)? {
            files.push(ready);
        }
    }
    let seen_whole = problems.losses == losses_before;
    Ok(Newcomer { pid, regs, mem, maps, space, files, seen_whole })
}

/// Gives the stopped process its image `id`, and sets it to begin with the bootstrap code.
fn start(
    targets: &Targets,
    polling: &Polling,
    id: ProgramId,
    newcomer: &Newcomer,
    origin: &Origin,
    native: bool,
) -> Result<(), String> {
    let (pid, mapped) = (newcomer.pid, newcomer.maps.all.as_slice());
    let stub = newcomer.files.first().map(|f| f.at).ok_or("nothing in it makes system calls that can be hooked")?;
    let [code_file, image_file] = if native {
        to_open(&targets.memory, id).ok_or("no memory for another program")?
    } else {
        handed_over(targets, id, pid, (&newcomer.mem, mapped), newcomer.regs)
            .map_err(|why| format!("it has another user or other rights than systoll, and {why}"))?
    };
    let code = newcomer.files.iter().map(|f| (f.at, f.patched.code.size(), f.patched.code.offset));
    let mappings = bootstrap::files(code_file, image_file, code);
    if !provision::enter(&targets.memory, id, pid) {
        return Err("the memory shared with it can't be written".into());
    }
    let asked_elsewhere = origin.from.filter(|from| asked_elsewhere(&targets.memory, polling, *from));
    let away = asked_elsewhere.and_then(|_| sys::Away::from_here(pid));
    let processors = away.as_ref().map_or(0, |_| sys::Away::EVERYWHERE);
    plant(pid, &newcomer.mem, mapped, &mappings, Start { stub, processors }, newcomer.regs)?;
    // The process frees itself again, even if we are killed.
    away.inspect(|away| away.keep(pid));
    Ok(())
}

/// Adds the program to the session, before its process goes on.
fn admit(session: &mut Session, id: ProgramId, newcomer: Newcomer, origin: &Origin, native: bool, exe: &Arc<str>) {
    let Newcomer { pid, mem, maps, space, files, seen_whole, .. } = newcomer;
    let start_ns = if origin.first { 0 } else { session.draft.clock.at(sys::now()) };
    let image = Image { pid, parent: origin.parent, exe: Arc::clone(exe), start_ns, ..Image::default() };
    let image = session.draft.table.image(image);
    let file = space.files().map(|f| f.module).find(|key| session.knowledge.symbols.path(*key).as_ref() == Some(exe));
    let mut program = Program::new(id, pid, image, space, mem);
    program.file = file;
    let earlier = session.knowledge.reuse.by_file.entry(Arc::clone(exe)).or_default();
    (program.earlier, earlier.begun) = (earlier.begun, earlier.begun + 1);
    program.outlook = Rc::clone(&earlier.outlook);
    // Calls that earlier programs of the file have shown are sampled more rarely; further calls are sampled as usual.
    let is_familiar = !program.is_looked_at() && !session.draft.windows.budget.tells_requests();
    if let Some(area) = session.targets.memory.image(id).filter(|_| is_familiar) {
        area.set(image::FAMILIAR, earlier.looked);
    }
    program.processes.only = session.traced.root.attached.filter(|attached| attached.no_children).map(|_| pid);
    program.native = native;
    program.processes.cpu_before = sys::process_cpu(pid).unwrap_or(0);
    program.processes.thread_before =
        if origin.from.is_some_and(|from| had_threads(&session.targets.memory, from.program)) {
            procfs::Schedstat::open(pid, pid).and_then(|s| s.read()).map_or(0, |r| r.cpu_ns)
        } else {
            // The first reading is the same value, at a twentieth of the cost.
            program.processes.cpu_before
        };
    program.hooks.seen_whole = seen_whole;
    program.hooks.maps = maps.all;
    program.hooks.starting = Some(files.into_iter().map(|f| f.patched).collect());
    session.targets.programs.insert(id, program);
    if origin.first {
        session.traced.root.image = Some(image);
        session.traced.root.audit_base = procfs::io_calls(pid);
    }
}

/// Returns true if a process of a program may have had other threads than its first.
fn had_threads(memory: &Memory, id: ProgramId) -> bool {
    memory.image(id).is_none_or(|area| area.get(image::THREADS) as u32 != 0)
}

/// Returns true if a program's processes are confined as we are.
pub(crate) fn has_no_filter_of_its_own(targets: &Targets, id: ProgramId) -> bool {
    let (area, program) = (targets.memory.image(id), targets.programs.get(&id));
    area.zip(program).is_some_and(|(area, program)| program.has_no_filter_of_its_own(area))
}

/// Returns true if the thread that is about to exec runs on another processor than ours and should stay there.
fn asked_elsewhere(memory: &Memory, polling: &Polling, from: SlotRef) -> bool {
    let patience = memory.image(from.program).map_or(0, |area| area.get(from.offset() + slot::PATIENCE));
    polling.asked_elsewhere(patience)
}

/// Returns true if a new program can open the files that this process can: it has the same user and groups, and no
/// program it descends from has changed its rights.
fn is_native(programs: &HashMap<ProgramId, Program>, pid: i32, from: Option<SlotRef>) -> bool {
    let as_before = |from: SlotRef| {
        programs.get(&from.program).is_some_and(|p| p.native && !p.threads.changed.contains(&from.index))
    };
    from.is_none_or(as_before) && procfs::has_our_credentials(pid)
}

/// Returns the files that a program opens by itself, as paths.
fn to_open(memory: &Memory, id: ProgramId) -> Option<[Source; 2]> {
    let [code, image] = memory.paths(id)?;
    let (read, both) = (libc::O_RDONLY | libc::O_CLOEXEC, libc::O_RDWR | libc::O_CLOEXEC);
    Some([Source::Open(code, read), Source::Open(image, both)])
}

/// Returns the files of a program that may not open them, as descriptors handed to its stopped process.
fn handed_over(
    targets: &Targets,
    id: ProgramId,
    pid: i32,
    (mem, mapped): (&Mem, &[Mapped]),
    regs: crate::tracee::Regs,
) -> Result<[Source; 2], String> {
    const INSTRUCTION: usize = 16;
    let at = remote::unused(mem, mapped, INSTRUCTION).ok_or("there is no room in it for an instruction")?;
    let files = targets.memory.to_hand_over(id).ok_or("there is no memory for it")?;
    Ok(hand_over::hand_over(&files, pid, (mem, at), regs)?.map(Source::Descriptor))
}

/// Writes the bootstrap code into the stopped process and sets its instruction pointer there.
fn plant(
    pid: i32,
    mem: &Mem,
    mapped: &[Mapped],
    files: &[bootstrap::Mapped],
    start: Start,
    regs: crate::tracee::Regs,
) -> Result<(), String> {
    // The code's length does not depend on its address.
    let len = bootstrap::code(0, files, start, &regs).len();
    let at = remote::unused(mem, mapped, len + 16).ok_or("no room in it for a few hundred bytes of code")?;
    let code = bootstrap::code(at, files, start, &regs);
    mem.write(at, &code).map_err(|e| format!("its code can't be written: {e}"))?;
    let mut regs = regs;
    regs.rip = at;
    // The kernel must not restart a call.
    regs.orig_rax = u64::MAX;
    tracee::set_registers(pid, &regs).map_err(|e| e.desc().to_owned())
}

/// Handles a new program that has mapped its memory and whose thread waits: its files' jumps are written. Returns true
/// if the thread was released to write them itself.
pub(crate) fn on_starting(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    thread: SlotRef,
) -> bool {
    let from = targets.memory.asked_from(thread);
    let Some(program) = targets.programs.get_mut(&thread.program) else { return false };
    // Mapping our memory was not the program's own work. From here until it goes on, its time counts as asking.
    let took = from.map_or(0, |from| from.saturating_sub(program.processes.thread_before));
    draft.stats.starts_ns = draft.stats.starts_ns.saturating_add(took);
    draft.stats.starts += 1;
    program.processes.cpu_before = program.processes.cpu_before.saturating_add(took);
    program.processes.thread_before = program.processes.thread_before.saturating_add(took);
    if program.hooks.starting.take().is_none() {
        return false;
    }
    let (losses_before, files) = (draft.problems.losses, program.hooks.files.len());
    let maps = std::mem::take(&mut program.hooks.maps);
    rseq_areas::give_areas(targets, &mut draft.stats, thread);
    if provision::let_write_all(targets, &mut knowledge.provisioning, thread, Layout::Known(&maps)) {
        return true;
    }
    for index in 0..files {
        provision::write_jumps(
            targets,
            knowledge,
            &mut draft.problems,
            FileOf { by: thread, index, arrival: Arrival::AtStart },
            Layout::Known(&maps),
        );
    }
    ready::note_users(targets, &knowledge.provisioning, thread.program);
    ready::allow_elision(targets, &knowledge.provisioning, &draft.problems, thread.program, losses_before);
    false
}
