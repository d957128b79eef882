//! Answers the questions of threads.

use crate::inproc::monitor::exec::bootstrap::STARTING;
use crate::inproc::monitor::exec::on_exec;
use crate::inproc::monitor::exec::preload;
use crate::inproc::monitor::exec::provision;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::next_question::{Kind, LastWork};
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
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::sys;
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
    session.memory.see_slot(thread);
    let base = thread.offset();
    let Some(area) = session.memory.image(thread.program) else { return false };
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
    let problems = session.problems.list.len();
    let unwound = session.windows.unwound.take();
    let mut goes_on = false;
    let place = session.programs.get_mut(&thread.program).map(Program::next_question);
    session.polling.done = LastWork { kind: kind_of(&waiter, Question::from_resume(resume)), place };
    if is_itself(session, thread, (waiter.tid, Question::from_resume(resume))) {
        match Question::from_resume(resume) {
            Some(Question::Context) => {
                answer = context::on_context(session, &waiter, node).0;
                if let Some(area) = session.memory.image(thread.program) {
                    stack_memory::tell(area, &waiter);
                }
            }
            Some(Question::Number) => answer = context::on_number(session, &waiter, asked).0,
            Some(Question::Slots) => slots::recycle(session, thread.program, true),
            Some(Question::Ending) => late_code::on_ending(session, thread.program, waiter.tid),
            Some(Question::Mapped) => goes_on = on_code(session, &waiter, node),
            Some(Question::Exec) => exec_asked::on_asked(session, &waiter),
            Some(Question::ExecFailed) => exec_asked::on_failed(session, &waiter),
            Some(Question::Last) => {
                if let Some(last) = end_of_watching::reason(session, &waiter) {
                    waiter.slot.program = identity::part_ways(session, &waiter);
                    goes_on = leave::on_last(session, &waiter, last);
                }
            }
            Some(Question::Identity) if unchanged_ids::keeps_ids(session, &waiter, node) => {}
            Some(Question::Identity) => waiter.slot.program = identity::part_ways(session, &waiter),
            Some(Question::Confine) => {
                waiter.slot.program = identity::part_ways(session, &waiter);
                on_confine(session, waiter.slot.program);
            }
            Some(Question::WindowEntry) => {
                let began = sys::now();
                context::look_for_main(session, thread, node);
                session.windows.unwound = unwound.filter(|last| last.is_of(&waiter, node));
                if !received::on_entry(session, &waiter, node, began) {
                    windows::on_entry(session, &waiter, node, began);
                }
            }
            Some(Question::WindowReturn) => {
                received::on_return(session, &waiter);
                windows::on_return(session, &waiter);
            }
            // The thread finds the answers to these questions by itself, or asks for the context.
            Some(Question::Stack | Question::Frame | Question::LastStack) | None => {}
        }
    }
    if Question::from_resume(resume) == Some(Question::Mapped) {
        doomed::forget_what_doomed_lack(session, thread, problems);
    }
    if goes_on {
        preload_new(session);
        return true;
    }
    let Some(area) = session.memory.image(waiter.slot.program) else { return true };
    area.set(base + slot::ANSWER, answer);
    let Some(word) = area.half(base + slot::STATE) else { return true };
    // The thread may have stopped waiting meanwhile.
    let done = word.compare_exchange(state::WAITING, state::ANSWERED, Ordering::SeqCst, Ordering::SeqCst);
    if done.is_ok() {
        sys::futex_wake(word);
    }
    preload_new(session);
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
    if let Some(made) = request::undone(session, waiter.slot) {
        provision::finish(session, waiter.slot, made);
        return false;
    }
    match waiter.registers.ax {
        STARTING => on_exec::on_starting(session, waiter.slot),
        _ => late_code::on_mapped(session, waiter, node),
    }
}

/// Gives contexts of earlier programs to the programs that have just mapped files, while their threads run on.
fn preload_new(session: &mut Session) {
    for id in std::mem::take(&mut session.reuse.to_preload) {
        preload::preload(session, id);
    }
}

/// Returns true if the thread that claims the number `tid` is the one with that slot, and not one of another PID
/// namespace with the same number.
fn is_itself(session: &mut Session, thread: SlotRef, (tid, question): (i32, Option<Question>)) -> bool {
    if tid <= 0 {
        if matches!(question, Some(Question::Exec | Question::Mapped | Question::Identity | Question::Last)) {
            let text = "a process that was made under a seccomp filter asked before its maker knew which it is: what it \
                        ran or mapped then is not counted";
            session.problems.note(ProblemKind::Lost, text);
        }
        return false;
    }
    // A slot belongs to one thread until it is recycled; the last slot is shared by all threads that found no free one.
    // For questions that cause more than reading, the slot's word is not enough: the thread may be gone, and its number
    // reused.
    let looks_only = matches!(question, Some(Question::WindowEntry | Question::WindowReturn));
    if looks_only && session.programs.get(&thread.program).and_then(|p| p.threads.told.get(&thread.index)) == Some(&tid)
    {
        return true;
    }
    let mut word = [0; 8];
    let at = IMAGE + thread.offset() + slot::TAG;
    let sure = read_memory(tid, at, &mut word) == 8 && u64::from_ne_bytes(word) == thread.tag();
    if let Some(program) = session.programs.get_mut(&thread.program).filter(|_| sure && !thread.is_last()) {
        program.threads.told.insert(thread.index, tid);
    }
    if !sure && !is_ending(session, thread, tid) {
        session
            .problems
            .note(ProblemKind::Lost, "some threads could not be looked at: contexts and new code are missing");
    }
    sure
}

/// Returns true if the thread of a slot is about to end: another thread has ended its process while it waited, so
/// nothing that it asked for will happen. The thread must have the number that its maker noted; otherwise the number
/// may be that of a thread in another PID namespace.
fn is_ending(session: &Session, thread: SlotRef, tid: i32) -> bool {
    let same_number = thread.index == 0 || session.memory.head(thread).made_as as i32 == tid;
    same_number && crate::procfs::is_ending(tid)
}

/// Handles a new filter: from now on the program makes no system calls of ours.
fn on_confine(session: &mut Session, id: ProgramId) {
    if let Some(word) = session.memory.image(id).and_then(|a| a.half(image::QUIET)) {
        word.store(1, Ordering::SeqCst);
        session.polling.quiet = true;
    }
}
