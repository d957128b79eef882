//! Answers the questions of threads.

use crate::inproc::monitor::exec::bootstrap::STARTING;
use crate::inproc::monitor::exec::on_exec;
use crate::inproc::monitor::exec::preload;
use crate::inproc::monitor::exec::provision;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::next_question::{Kind, LastWork};
use crate::inproc::monitor::polling::Polling;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::context;
use crate::inproc::monitor::requests::doomed;
use crate::inproc::monitor::requests::end_of_watching;
use crate::inproc::monitor::requests::exec_asked;
use crate::inproc::monitor::requests::identity;
use crate::inproc::monitor::requests::late_code;
use crate::inproc::monitor::requests::leave;
use crate::inproc::monitor::requests::received;
use crate::inproc::monitor::requests::request;
use crate::inproc::monitor::requests::slots;
use crate::inproc::monitor::requests::stack_memory;
use crate::inproc::monitor::requests::unchanged_ids;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::windows;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Session, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::problems::Problems;
use crate::served_pages;
use crate::sys::read_memory;
use std::sync::atomic::Ordering;
use systoll_hooks::layout::{IMAGE, Question, image, slot, state};
use systoll_model::ProblemKind;

/// Answers the thread of a slot, if it asks anything. Returns true if it was waiting.
pub(crate) fn answer(session: &mut Session, thread: SlotRef) -> bool {
    if thread.index >= image::SLOT_COUNT {
        return false;
    }
    session.targets.memory.see_slot(thread);
    let base = thread.offset();
    let Some(area) = session.targets.memory.image(thread.program) else { return false };
    if area.get(base + slot::STATE) as u32 != state::WAITING {
        return false;
    }
    let (resume, asked) = (area.get(base + slot::RESUME), area.get(base + slot::ANSWER));
    if area.get(image::SERVES_FAULTS) as u32 != 0 {
        served_pages::note_seen();
    }
    session.polling.asked_here = area.get(base + slot::PATIENCE) == 0;
    let mut waiter = Waiter::read(area, thread);
    // Most questions are about a call that is counted at this node.
    let (mut answer, node) = (asked, NodeAddr(asked));
    let problems = session.draft.problems.list.len();
    let unwound = session.draft.windows.unwound.take();
    let mut goes_on = false;
    let place = session.targets.programs.get_mut(&thread.program).map(Program::next_question);
    session.polling.done = LastWork { kind: kind_of(&waiter, Question::from_resume(resume)), place };
    if is_itself(&mut session.targets, &mut session.draft.problems, thread, (waiter.tid, Question::from_resume(resume)))
    {
        match Question::from_resume(resume) {
            Some(Question::Context) => {
                answer = context::on_context(
                    &mut session.targets,
                    &mut session.knowledge,
                    &mut session.draft,
                    &waiter,
                    node,
                )
                .0;
                if let Some(area) = session.targets.memory.image(thread.program) {
                    stack_memory::tell(area, &waiter);
                }
            }
            Some(Question::Number) => {
                answer =
                    context::on_number(&mut session.targets, &mut session.knowledge, &mut session.draft, &waiter, asked)
                        .0
            }
            Some(Question::Slots) => slots::recycle(&mut session.targets, &mut session.draft, thread.program, true),
            Some(Question::Ending) => {
                late_code::on_ending(&mut session.targets.programs, &mut session.knowledge, thread.program, waiter.tid)
            }
            Some(Question::Mapped) => goes_on = on_code(session, &waiter, node),
            Some(Question::Exec) => {
                exec_asked::on_asked(&session.targets, &mut session.draft.problems, &mut session.traced, &waiter)
            }
            Some(Question::ExecFailed) => {
                exec_asked::on_failed(&session.targets.programs, &mut session.traced, &waiter)
            }
            Some(Question::Last) => {
                if let Some(last) = end_of_watching::reason(&session.targets, &waiter) {
                    waiter.slot.program = identity::part_ways(session, &waiter);
                    goes_on = leave::on_last(
                        &mut session.targets,
                        &mut session.draft.problems,
                        &session.traced.tracees,
                        &waiter,
                        last,
                    );
                }
            }
            Some(Question::Identity) if unchanged_ids::keeps_ids(&session.targets.programs, &waiter, node) => {}
            Some(Question::Identity) => waiter.slot.program = identity::part_ways(session, &waiter),
            Some(Question::Confine) => {
                waiter.slot.program = identity::part_ways(session, &waiter);
                on_confine(&session.targets.memory, &mut session.polling, waiter.slot.program);
            }
            Some(Question::WindowEntry) => {
                let began = sys::now();
                context::look_for_main(&mut session.targets, &mut session.draft, thread, node);
                session.draft.windows.unwound = unwound.filter(|last| last.is_of(&waiter, node));
                if !received::on_entry(
                    &mut session.targets,
                    &mut session.knowledge,
                    &mut session.draft,
                    &waiter,
                    node,
                    began,
                ) {
                    windows::on_entry(
                        &mut session.targets,
                        &mut session.knowledge,
                        &mut session.draft,
                        &waiter,
                        node,
                        began,
                    );
                }
            }
            Some(Question::WindowReturn) => {
                received::on_return(&mut session.draft.windows, &waiter);
                windows::on_return(&session.targets.memory, &mut session.draft, &waiter);
            }
            // The thread finds the answers to these questions by itself, or asks for the context.
            Some(Question::Stack | Question::Frame | Question::LastStack) | None => {}
        }
    }
    if Question::from_resume(resume) == Some(Question::Mapped) {
        doomed::forget_what_doomed_lack(&session.targets.memory, &mut session.draft.problems, thread, problems);
    }
    if goes_on {
        preload_new(&mut session.targets, &mut session.knowledge, &session.draft);
        return true;
    }
    let Some(area) = session.targets.memory.image(waiter.slot.program) else { return true };
    area.set(base + slot::ANSWER, answer);
    let Some(word) = area.half(base + slot::STATE) else { return true };
    // The thread may have stopped waiting meanwhile.
    let done = word.compare_exchange(state::WAITING, state::ANSWERED, Ordering::SeqCst, Ordering::SeqCst);
    if done.is_ok() {
        sys::futex_wake(word);
    }
    preload_new(&mut session.targets, &mut session.knowledge, &session.draft);
    true
}

/// Returns the kind of work, by which the launcher predicts if another question comes soon.
fn kind_of(waiter: &Waiter, question: Option<Question>) -> Kind {
    match question {
        Some(Question::Mapped) if waiter.registers.ax == STARTING => Kind::Starting,
        Some(Question::Mapped) => Kind::Mapped,
        Some(Question::Exec) => Kind::BeforeExec,
        Some(Question::Context | Question::Number | Question::WindowEntry | Question::WindowReturn) => Kind::Call,
        _ => Kind::Other,
    }
}

/// Handles a question about code that was mapped or made executable in a program. Returns true if the thread was
/// released with its answer.
fn on_code(session: &mut Session, waiter: &Waiter, node: NodeAddr) -> bool {
    if let Some(made) = request::undone(&session.targets.memory, waiter.slot) {
        provision::finish(&mut session.targets, &mut session.knowledge, &mut session.draft.problems, waiter.slot, made);
        return false;
    }
    match waiter.registers.ax {
        STARTING => on_exec::on_starting(&mut session.targets, &mut session.knowledge, &mut session.draft, waiter.slot),
        _ => late_code::on_mapped(session, waiter, node),
    }
}

/// Gives contexts of earlier programs to the programs that have just mapped files, while their threads run on.
fn preload_new(targets: &mut Targets, knowledge: &mut FileKnowledge, draft: &DraftRecording) {
    for id in std::mem::take(&mut knowledge.reuse.to_preload) {
        preload::preload(targets, knowledge, draft, id);
    }
}

/// Returns true if the thread that claims the number `tid` is the one with that slot, and not one of another PID
/// namespace with the same number.
fn is_itself(
    targets: &mut Targets,
    problems: &mut Problems,
    thread: SlotRef,
    (tid, question): (i32, Option<Question>),
) -> bool {
    if tid <= 0 {
        if matches!(question, Some(Question::Exec | Question::Mapped | Question::Identity | Question::Last)) {
            let text = "a process that was made under a seccomp filter asked before its maker knew which it is: what it \
                        ran or mapped then is not counted";
            problems.note(ProblemKind::Lost, text);
        }
        return false;
    }
    // A slot belongs to one thread until it is recycled; the last slot is shared by all threads that found no free one.
    // For questions that cause more than reading, the slot's word is not enough: the thread may be gone, and its number
    // reused.
    let looks_only = matches!(question, Some(Question::WindowEntry | Question::WindowReturn));
    if looks_only && targets.programs.get(&thread.program).and_then(|p| p.threads.told.get(&thread.index)) == Some(&tid)
    {
        return true;
    }
    let mut word = [0; 8];
    let at = IMAGE + thread.offset() + slot::TAG;
    let sure = read_memory(tid, at, &mut word) == 8 && u64::from_ne_bytes(word) == thread.tag();
    if let Some(program) = targets.programs.get_mut(&thread.program).filter(|_| sure && !thread.is_last()) {
        program.threads.told.insert(thread.index, tid);
    }
    if !sure && !is_ending(&targets.memory, thread, tid) {
        problems.note(ProblemKind::Lost, "some threads could not be looked at: contexts and new code are missing");
    }
    sure
}

/// Returns true if the thread of a slot is about to end: another thread has ended its process while it waited, so
/// nothing that it asked for will happen. The thread must have the number that its maker noted; otherwise the number
/// may be that of a thread in another PID namespace.
fn is_ending(memory: &Memory, thread: SlotRef, tid: i32) -> bool {
    let same_number = thread.index == 0 || memory.head(thread).made_as as i32 == tid;
    same_number && crate::procfs::is_ending(tid)
}

/// Handles a new filter: from now on the program makes no system calls of ours.
fn on_confine(memory: &Memory, polling: &mut Polling, id: ProgramId) {
    if let Some(word) = memory.image(id).and_then(|a| a.half(image::QUIET)) {
        word.store(1, Ordering::SeqCst);
        polling.quiet = true;
    }
}
