//! Enters a process that runs.
//!
//! ```text
//!   the process runs        the launcher
//!   ...                     plans its files, makes code, an image with roots and known contexts
//!   all threads stopped     checks that all is as it was planned, and where threads stand
//!   one makes calls         memory is mapped
//!   ...                     each thread gets a slot and its gs base; jumps are written
//!   all threads go on       ...
//! ```

use crate::backend::Running;
use crate::error::Error;
use crate::inproc::monitor::attach::answering;
use crate::inproc::monitor::attach::errands::NotMade;
use crate::inproc::monitor::attach::frames;
use crate::inproc::monitor::attach::leave;
use crate::inproc::monitor::attach::mapping::Process;
use crate::inproc::monitor::attach::places::Left;
use crate::inproc::monitor::attach::stop_all::{self, AllStopped, IfHalted, NotStopped, Stopped};
use crate::inproc::monitor::attach::target::{self, Refusal};
use crate::inproc::monitor::attach::threads;
use crate::inproc::monitor::exec::bootstrap::{self, Mapping};
use crate::inproc::monitor::exec::own_filters;
use crate::inproc::monitor::exec::provision;
use crate::inproc::monitor::exec::ready::{self, Ready, Taken};
use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::program::Programs;
use crate::inproc::monitor::program::{Patched, Program};
use crate::inproc::monitor::requests::late_code;
use crate::inproc::monitor::results::sites::Arrival;
use crate::inproc::monitor::root_process::Attached;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Session, Targets};
use crate::inproc::monitor::shared::maps::{Layout, Maps};
use crate::inproc::monitor::shared::remote::Mem;
use crate::inproc::monitor::sys;
use crate::problems::Problems;
use crate::procfs;
use crate::table::{Image, ImageId};
use std::rc::Rc;
use std::time::Duration;
use systoll_hooks::assemble::errand;
use systoll_hooks::numbers::{ARCH_PRCTL, CLONE, CLONE3, FORK, VFORK};
use systoll_model::ProblemKind;
use systoll_symbols::AddressSpace;
use systoll_symbols::Symbols;

/// The reason for not entering a 32-bit program.
const A_32_BIT_PROGRAM: &str = "it is a 32-bit program";
/// Code segment of 64-bit programs (kernel: __USER_CS).
const USER_CS: u64 = 0x33;
/// Number of attempts to enter a process, and the time by which the pause grows before each further one.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Time after which no further attempt is made.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of the first thread's slot that are kept as the counts of start-up, at most.
const MOST_BEFORE: u64 = 1 << 20;

/// A process that was just entered.
#[derive(Clone, Copy, Debug)]
struct Entered {
    /// Time for which the process's threads were stopped, ns.
    stopped_ns: u64,
    /// Number of calls that the threads were in and whose returns will be counted.
    under_way: usize,
}

/// The reason why an attempt to enter a process failed.
enum NotNow {
    /// The obstacle may pass: the same attempt is made again.
    Again(Refusal),
    /// The process no longer maps the code that was planned for: it is prepared anew.
    Changed,
    /// The obstacle stays: there is no further attempt.
    Never(Refusal),
}

/// Preparations that were made while the process ran.
struct Prepared {
    id: ProgramId,
    /// Lines of the process's `maps` that describe code in files.
    code: Vec<Vec<u8>>,
    mappings: (Vec<Mapping>, Mapping),
}

/// Enters process `pid`, whose image in the table is `image`.
///
/// # Errors
/// The reason why it can't be entered. Nothing of ours is in it then.
fn enter(session: &mut Session, pid: i32, image: ImageId) -> Result<Entered, Refusal> {
    if let Some(refusal) = target::obstacle(pid) {
        return Err(refusal);
    }
    errand::assemble_ahead().map_err(|e| Refusal::new(e.to_string()))?;
    let mut prepared = prepare(session, pid, image)?;
    let mut last = Refusal::new("it maps code all the time");
    let deadline = sys::now() + PATIENCE.as_nanos() as u64;
    for n in 0..TRIES {
        if n > 0 && sys::now() >= deadline {
            break;
        }
        if session.traced.root.attached.is_some_and(|attached| attached.processes == 0) {
            // What came before took time in which nothing was counted.
            session.draft.clock.restart();
        }
        if n > 0 {
            std::thread::sleep(PAUSE * n);
            stop_all::late::let_go();
        }
        let Session { targets, knowledge, draft, .. } = session;
        match stop_and_enter(targets, knowledge, &mut draft.problems, &prepared, pid) {
            Ok(entered) => {
                settle(targets, draft, prepared.id);
                return Ok(entered);
            }
            Err(NotNow::Again(refusal)) => last = refusal,
            Err(NotNow::Changed) => {
                discard(targets, prepared.id);
                prepared = prepare(session, pid, image)?;
            }
            Err(NotNow::Never(refusal)) => {
                last = refusal;
                break;
            }
        }
    }
    let stays = leave::take_back(&session.targets.memory, (prepared.id, pid), &prepared.mappings.0);
    discard(&mut session.targets, prepared.id);
    let reason = if stays { format!("{}; {}", last.reason, leave::what_stays(pid)) } else { last.reason };
    Err(Refusal { reason, ..last })
}

fn discard(targets: &mut Targets, id: ProgramId) {
    targets.programs.remove(&id);
    targets.memory.free_image(id);
}

/// Returns the lines of a `maps` file that describe code in files.
fn code_lines(text: &[u8]) -> Vec<Vec<u8>> {
    let is_code = |line: &&[u8]| {
        let mut fields = line.split(|b| *b == b' ').filter(|f| !f.is_empty());
        let executable = fields.nth(1).is_some_and(|flags| flags.get(2) == Some(&b'x'));
        // Three fields lie between flags and name: offset, device and inode.
        executable && fields.nth(3).is_some()
    };
    text.split(|b| *b == b'\n').filter(is_code).map(<[u8]>::to_vec).collect()
}

/// Refuses a process whose memory can't be read, has our memory already, or leaves no room for it. `elides` is true if
/// calls are to be answered in place.
fn check_memory(pid: i32, mem: &Mem, maps: &Maps, elides: bool) -> Result<(), Refusal> {
    if maps.all.is_empty() {
        return Err(target::denied(pid, nix::errno::Errno::EACCES));
    }
    if target::is_entered(maps) {
        return Err(target::entered_already(pid));
    }
    if target::is_in_the_way(maps) {
        return Err(Refusal::new("its own memory lies where that of systoll would have to"));
    }
    if target::is_32_bit(pid, mem, &maps.text) {
        return Err(Refusal::new(A_32_BIT_PROGRAM));
    }
    match answering::obstacle(&maps.text).filter(|_| elides) {
        Some(why) => Err(answering::refusal(pid, why)),
        None => Ok(()),
    }
}

/// Prepares a program's image, plans and code while its process runs.
fn prepare(session: &mut Session, pid: i32, image: ImageId) -> Result<Prepared, Refusal> {
    let denied = |e: std::io::Error| target::denied(pid, nix::errno::Errno::from_raw(e.raw_os_error().unwrap_or(0)));
    let mem = Mem::open(pid).map_err(denied)?;
    let maps = Maps::of(pid);
    let elides = session.knowledge.provisioning.elided != 0;
    check_memory(pid, &mem, &maps, elides)?;
    let mut space = AddressSpace::of_running();
    space.update_by(&mut session.knowledge.symbols, pid, &maps.text);
    let mut taken = Taken::by(Layout::Known(&maps.all));
    let (losses_before, mut files) = (session.draft.problems.losses, Vec::new());
    for file in space.files().collect::<Vec<_>>() {
        files.extend(
            ready::ready(&session.targets, &mut session.knowledge, &mut session.draft.problems, &file, &mut taken)
                .map_err(Refusal::new)?,
        );
    }
    if let Some(why) = answering::losses(&session.draft.problems, losses_before).filter(|_| elides) {
        return Err(answering::refusal(pid, &why));
    }
    if files.is_empty() {
        return Err(Refusal::new("nothing in it makes system calls that can be hooked"));
    }
    let near = files.iter().map(|f: &Ready| (f.at, f.patched.code.size(), f.patched.code.offset));
    let mappings = bootstrap::mappings(near);
    let id = provision::blank_image(&mut session.targets.memory, &session.knowledge.provisioning, &session.draft.stats)
        .ok_or_else(|| Refusal::new("there is no memory for it"))?;
    let exe = procfs::exe(pid).unwrap_or_default();
    let file = space.files().map(|f| f.module).find(|key| session.knowledge.symbols.path(*key).as_ref() == Some(&exe));
    let mut program = Program::new(id, pid, image, space, mem);
    program.file = file;
    let earlier = session.knowledge.reuse.by_file.entry(exe).or_default();
    (program.earlier, earlier.begun) = (earlier.begun, earlier.begun + 1);
    program.outlook = Rc::clone(&earlier.outlook);
    program.processes.only = session.traced.root.attached.filter(|attached| attached.no_children).map(|_| pid);
    program.native = procfs::has_our_credentials(pid) && procfs::has_our_namespaces(pid);
    program.hooks.seen_whole = session.draft.problems.losses == losses_before;
    program.hooks.starting = Some(files.into_iter().map(|f| f.patched).collect());
    // The program's `main` began long ago.
    program.contexts.main_seen = true;
    session.targets.programs.insert(id, program);
    provision::provision(&mut session.targets, &mut session.knowledge, &mut session.draft, id);
    if let Some(program) = session.targets.programs.get_mut(&id) {
        // Only a program's start shows which of its files load others, and we have not seen that start.
        program.hooks.mapped_at_start = 0;
    }
    threads::touch_slots(&mut session.targets.memory, id, pid);
    Ok(Prepared { id, code: code_lines(&maps.text), mappings })
}

/// Stops all threads of a process, and enters it if the places where they stopped allow it.
fn stop_and_enter(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    prepared: &Prepared,
    pid: i32,
) -> Result<Entered, NotNow> {
    let alone = target::Alone::of(pid).map_err(shares_memory)?;
    let has_own_filters = target::has_own_filters(pid);
    let stopped = AllStopped::of(pid, IfHalted::Refuse).map_err(|why| not_stopped(pid, why))?;
    if let Some(other) = alone.disturbed() {
        return Err(shares_memory(other));
    }
    let maps = Maps::of(pid);
    let (near, image) = &prepared.mappings;
    let is_free = |mapping: &Mapping| Layout::Known(&maps.all).is_free(&mapping.range());
    if code_lines(&maps.text) != prepared.code || !near.iter().chain([image]).all(is_free) {
        return Err(NotNow::Changed);
    }
    can_be_entered(pid, &stopped.threads)?;
    if has_own_filters && let Some(obstacle) = own_filters::obstacle(stopped.threads.iter().map(|thread| thread.tid)) {
        return Err(NotNow::Never(target::filtered(&obstacle)));
    }
    let left = places_left(&targets.programs, &knowledge.symbols, prepared.id, &stopped.threads, &maps)?;
    can_be_answered(&targets.programs, knowledge, prepared.id, (pid, &maps), &left)?;
    let mem = Mem::open(pid).map_err(|e| NotNow::Never(Refusal::new(e.to_string())))?;
    let process = Process { pid, threads: &stopped.threads, mem: &mem, maps: &maps };
    map_memory(targets, prepared, process)?;
    let entered = enter_stopped(targets, knowledge, problems, prepared.id, pid, (&stopped.threads, &left, &maps));
    match entered {
        Ok(under_way) => {
            let stopped_ns = stopped.let_go();
            note_left(&targets.programs, &knowledge.symbols, problems, prepared.id, &left);
            // The jumps are there: code that the process makes from now on is searched when it is made.
            late_code::look_at_earlier(targets, &mut knowledge.provisioning, (prepared.id, pid), &maps);
            Ok(Entered { stopped_ns, under_way })
        }
        Err(why) => {
            let ranges: Vec<_> = near.iter().chain([image]).map(Mapping::range).collect();
            // If unmapping fails, the memory stays mapped, unused.
            let _ = process.unmap(&ranges);
            Err(NotNow::Never(Refusal::new(why)))
        }
    }
}

fn not_stopped(pid: i32, why: NotStopped) -> NotNow {
    match why {
        NotStopped::Gone => NotNow::Never(Refusal::new("it has ended")),
        // Another tracer, such as a second systoll, may be gone in a moment.
        NotStopped::Denied(errno) => NotNow::Again(target::not_attached(pid, errno)),
        NotStopped::Halted => NotNow::Never(Refusal::new("it is stopped by a signal")),
        NotStopped::Busy(tid) => {
            let name = procfs::comm(tid);
            let what = "does not stop: it waits in the kernel (for a child of vfork, or for a device), or its control \
                        group is frozen, or is given no more processor time";
            NotNow::Again(Refusal::new(format!("its thread {tid} ({name}) {what}")))
        }
    }
}

/// Refuses a process that can't be entered now: its first thread has ended, it runs 32-bit code, it uses gs, or another
/// process shares its memory.
fn can_be_entered(pid: i32, threads: &[Stopped]) -> Result<(), NotNow> {
    let never = |why: &str| Err(NotNow::Never(Refusal::new(why)));
    if !threads.iter().any(|thread| thread.tid == pid) {
        return never("its first thread has ended");
    }
    if threads.iter().any(|thread| thread.regs.cs != USER_CS) {
        return never(A_32_BIT_PROGRAM);
    }
    if threads.iter().any(|thread| thread.regs.gs_base != 0 || thread.regs.gs != 0) {
        return never("it uses the gs segment for itself");
    }
    Ok(())
}

/// Refuses a process if its calls are to be answered in place, but can't be.
fn can_be_answered(
    programs: &Programs,
    knowledge: &FileKnowledge,
    id: ProgramId,
    (pid, maps): (i32, &Maps),
    left: &[Left],
) -> Result<(), NotNow> {
    if knowledge.provisioning.elided == 0 {
        return Ok(());
    }
    if let Some(why) = answering::obstacle(&maps.text) {
        return Err(NotNow::Never(answering::refusal(pid, why)));
    }
    let Some(program) = programs.get(&id) else { return Ok(()) };
    for (file, left) in program.hooks.files.iter().zip(left) {
        let why = |what: &str| {
            let path = knowledge.symbols.path(file.key).unwrap_or_default();
            answering::refusal(pid, &format!("{path}: a place that makes calls {what}"))
        };
        if answering::must_be_hooked(file, &left.across) {
            return Err(NotNow::Never(why("lies across two pages, and can't be hooked while the process runs")));
        }
        if answering::must_be_hooked(file, &left.stood_in) {
            return Err(NotNow::Again(why("can't be hooked, as a thread waits in the middle of it")));
        }
    }
    Ok(())
}

fn shares_memory(other: i32) -> NotNow {
    let name = procfs::comm(other);
    let reason = format!("process {other} ({name}) has all memory in common with it");
    let advice = "a child of vfork has, until its exec: try again".to_owned();
    NotNow::Again(Refusal { reason, advice: Some(advice) })
}

/// Returns the sites that can't be hooked now, one entry a file.
///
/// # Errors
/// If one of them would have to be hooked.
fn places_left(
    programs: &Programs,
    symbols: &Symbols,
    id: ProgramId,
    threads: &[Stopped],
    maps: &Maps,
) -> Result<Vec<Left>, NotNow> {
    let pointers: Vec<u64> = threads.iter().map(|thread| thread.regs.rsp).collect();
    let tid = threads.first().map_or(0, |thread| thread.tid);
    let addresses = frames::interrupted(tid, &pointers, &maps.all).map(|mut all| {
        all.extend(threads.iter().map(|thread| thread.regs.rip));
        all
    });
    let Some(program) = programs.get(&id) else { return Err(NotNow::Never(Refusal::new("it is gone"))) };
    let left: Vec<Left> = program.hooks.files.iter().map(|file| Left::of(file, addresses.as_deref())).collect();
    let file =
        program.hooks.files.iter().zip(&left).find(|(file, left)| !left.is_harmless() || leaves_maker(file, left));
    match file {
        None => Ok(left),
        Some((file, _)) => {
            let path = symbols.path(file.key).unwrap_or_default();
            let what = "a thread stands where a call that makes threads would be hooked";
            Err(NotNow::Again(Refusal::new(format!("{path}: {what}"))))
        }
    }
}

/// Returns true if a site that may make a thread or a process, or set the gs base, is among those that can't be hooked:
/// the new thread would count in its maker's slot.
fn leaves_maker(file: &Patched, left: &Left) -> bool {
    let makes = |number: Option<u32>| number.is_none_or(|n| [CLONE, CLONE3, FORK, VFORK, ARCH_PRCTL].contains(&n));
    file.known.plan.sites.iter().any(|site| makes(site.number) && left.has(site.address))
}

/// Makes one of the stopped threads map the shared code and the image.
fn map_memory(targets: &Targets, prepared: &Prepared, process: Process<'_>) -> Result<(), NotNow> {
    let files = targets.memory.to_hand_over(prepared.id);
    let files = files.ok_or_else(|| NotNow::Never(Refusal::new("there is no memory for it")))?;
    let (code, image) = &prepared.mappings;
    process.map(&files, (code, image)).map_err(|why| match why {
        NotMade::None(why) => NotNow::Never(Refusal::new(why)),
        NotMade::Later => NotNow::Again(Refusal::new("all of its threads are in the middle of restartable sequences")),
        NotMade::Away => NotNow::Never(Refusal::new("it was not to be held while memory was mapped")),
    })
}

/// Gives the threads their slots and writes the jumps, in a process that has mapped our memory. Returns the number of
/// calls under way whose returns will be counted.
///
/// # Errors
/// A text. The jumps and slots are taken back.
fn enter_stopped(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    id: ProgramId,
    pid: i32,
    (threads, left, maps): (&[Stopped], &[Left], &Maps),
) -> Result<usize, String> {
    let slots = threads::give_slots(targets, id, pid, threads)?;
    let take_back = || threads::take_slots(threads);
    // From here on a thread that takes a jump finds its slot.
    if !threads::tell_slots(threads, &slots) {
        take_back();
        return Err("its threads can't be given counters".into());
    }
    let losses_before = problems.losses;
    if let Err(why) = write_jumps(&targets.programs, knowledge, problems, id, (left, maps)) {
        take_back();
        return Err(why);
    }
    ready::note_users(targets, &knowledge.provisioning, id);
    ready::allow_elision(targets, &knowledge.provisioning, problems, id, losses_before);
    if let Some(program) = targets.programs.get_mut(&id) {
        program.processes.cpu_before = sys::process_cpu(pid).unwrap_or(0);
    }
    Ok(threads::note_calls(targets, &knowledge.provisioning, id, threads.iter().zip(slots), left))
}

/// Writes the jumps of all files except those at the sites in `left`. Notes the sites whose code differs from the file's.
///
/// # Errors
/// A text, if the jumps of one file can't be written. Then none is written.
fn write_jumps(
    programs: &Programs,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    id: ProgramId,
    (left, maps): (&[Left], &Maps),
) -> Result<(), String> {
    let Some(program) = programs.get(&id) else { return Err("it is gone".into()) };
    let layout = Layout::Known(&maps.all);
    let is_code = |at| layout.at(at).is_some_and(|m| m.executable && !m.shared);
    let mut not_written = Vec::new();
    for (file, left) in program.hooks.files.iter().zip(left) {
        let spared = left.stood_in.union(&left.across).copied().collect();
        match program.mem.patch_but(&file.code.jumps, file.bias, (&is_code, spared)) {
            Ok(left) => not_written.push(left),
            Err(why) => {
                for file in &program.hooks.files {
                    program.mem.restore(&file.code.jumps, file.bias);
                }
                let path = knowledge.symbols.path(file.key).unwrap_or_default();
                return Err(format!("{path}: {why}"));
            }
        }
    }
    for ((file, left), differs) in program.hooks.files.iter().zip(left).zip(not_written) {
        let changed = differs.sites.iter().filter(|site| !left.has(**site)).count();
        if changed > 0 {
            let path = knowledge.symbols.path(file.key).unwrap_or_default();
            provision::note_changed(problems, &path, (changed, file.known.plan.sites.len()), &differs);
        }
        knowledge.provisioning.sites.note(file, Some(differs.sites.len() as u64), Arrival::AtStart);
    }
    Ok(())
}

/// Reports the sites that were not hooked, with the reason.
fn note_left(programs: &Programs, symbols: &Symbols, problems: &mut Problems, id: ProgramId, left: &[Left]) {
    let Some(program) = programs.get(&id) else { return };
    let all: Vec<_> = program.hooks.files.iter().map(|f| (f.key, f.known.plan.sites.len())).zip(left).collect();
    for ((key, sites), left) in all {
        let path = symbols.path(key).unwrap_or_default();
        let reasons = [
            (left.stood_in.len(), "threads waited in the middle of them when they would have been hooked"),
            (left.across.len(), "they lie across two pages, and could be written half only"),
        ];
        for (n, why) in reasons.into_iter().filter(|(n, _)| *n > 0) {
            let text = format!("{path}: {n} of {sites} places that make system calls are not counted: {why}");
            problems.note(ProblemKind::Lost, text);
        }
    }
}

/// Notes the moment of entering as the end of start-up: the counts up to now belong to the time before.
fn settle(targets: &mut Targets, draft: &mut DraftRecording, id: ProgramId) {
    let now = draft.clock.at(sys::now());
    let before = targets.memory.counts(id.slot(0), MOST_BEFORE);
    let Some(program) = targets.programs.get_mut(&id) else { return };
    program.hooks.starting = None;
    program.contexts.at_main = Some(before);
    if let Some(image) = draft.table.images.get_mut(program.image.index()) {
        (image.start_ns, image.main_at_ns) = (now, Some(now));
    }
}

/// Checks before anything is prepared that at least one of the processes may be entered.
///
/// # Errors
/// The first process's obstacle, if each has one.
pub(crate) fn look_at(running: &Running) -> Result<(), Error> {
    let refusals: Vec<_> = running.pids.iter().map(|pid| (*pid, target::obstacle(*pid))).collect();
    match refusals.into_iter().map(|(pid, refusal)| refusal.map(|refusal| not_entered(pid, refusal))).collect() {
        Some::<Vec<Error>>(all) => Err(all.into_iter().next().unwrap_or(Error::NoCommand)),
        None => Ok(()),
    }
}

/// Enters running processes. Those that can't be entered become problems of the recording.
///
/// # Errors
/// The first process's obstacle, if none can be entered.
pub(crate) fn enter_all(session: &mut Session, running: &Running) -> Result<(), Error> {
    let mut attached = Attached {
        age_ns: running.pids.iter().filter_map(|pid| procfs::age_ns(*pid)).max().unwrap_or(0),
        in_turns: running.in_turns,
        no_children: running.no_children,
        ..Attached::default()
    };
    // `enter` reads this state.
    session.traced.root.attached = Some(attached);
    let (mut first, mut under_way, mut ended) = (None, 0, 0);
    for pid in &running.pids {
        let image = image(&mut session.draft, *pid);
        match enter(session, *pid, image) {
            Ok(entered) => {
                attached.processes += 1;
                under_way += entered.under_way;
                attached.longest_stop_ns = attached.longest_stop_ns.max(entered.stopped_ns);
                session.traced.root.attached = Some(attached);
            }
            Err(refusal) => {
                let error = not_entered(*pid, refusal);
                if target::has_ended(*pid) {
                    ended += 1;
                } else {
                    session.draft.problems.note(ProblemKind::Unwatched, error.to_string());
                }
                first.get_or_insert(error);
            }
        }
    }
    if attached.processes == 0 {
        return Err(first.unwrap_or(Error::NoCommand));
    }
    if ended > 0 {
        let text = format!("{ended} of {} processes ended before they could be entered", running.pids.len());
        session.draft.problems.note(ProblemKind::Unwatched, text);
    }
    if under_way > 0 {
        let text = match under_way {
            1 => "1 call was already in progress; its caller is unknown".to_owned(),
            n => format!("{n} calls were already in progress; their callers are unknown"),
        };
        session.draft.problems.note(ProblemKind::Note, text);
    }
    attached.deadline = running.limit.map(|limit| sys::now().saturating_add(limit.as_nanos() as u64));
    attached.calls = running.calls;
    session.traced.root.attached = Some(attached);
    Ok(())
}

fn not_entered(pid: i32, refusal: Refusal) -> Error {
    Error::NotEntered { pid, name: procfs::comm(pid), reason: refusal.reason, advice: refusal.advice }
}

/// Adds an image to the table for a process that is to be entered.
fn image(draft: &mut DraftRecording, pid: i32) -> ImageId {
    let now = draft.clock.at(sys::now());
    let exe = procfs::exe(pid).unwrap_or_default();
    draft.table.image(Image { pid, exe, start_ns: now, ..Image::default() })
}
