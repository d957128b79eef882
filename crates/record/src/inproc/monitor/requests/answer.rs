//! Answers the questions of threads.

use crate::inproc::monitor::exec::bootstrap::STARTING;
use crate::inproc::monitor::exec::{on_exec, preload, provision};
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::next_question::{Kind, LastWork};
use crate::inproc::monitor::polling::Polling;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::LastUnwound;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::requests::{
    awaited, context, doomed, end_of_watching, exec_asked, identity, late_code, leave, received, request, slots,
    stack_memory, unchanged_ids, windows,
};
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
    let question = Question::from_resume(resume);
    let problems = session.draft.problems.list.len();
    // Only the question of a window's first call may find the stack that was unwound last.
    let unwound = session.draft.windows.unwound.take();
    let place = session.targets.programs.get_mut(&thread.program).map(Program::next_question);
    session.polling.done = LastWork { kind: kind_of(&waiter, question), place };
    let mut answer = Answer { word: asked, is_released: false };
    if is_itself(&mut session.targets, &mut session.draft.problems, thread, (waiter.tid, question)) {
        match question {
            Some(
                question @ (Question::Context | Question::Number | Question::WindowEntry | Question::WindowReturn),
            ) => {
                let Session { targets, knowledge, draft, .. } = session;
                answer.word = on_call(targets, knowledge, draft, &waiter, question, asked, unwound);
            }
            Some(question @ (Question::Identity | Question::Confine | Question::Last)) => {
                answer.is_released = on_process(session, &mut waiter, question, NodeAddr(asked));
            }
            Some(Question::Mapped) => answer.is_released = on_code(session, &waiter, NodeAddr(asked)),
            Some(question) => on_note(session, &waiter, question),
            None => {}
        }
    }
    let Session { targets, knowledge, draft, .. } = session;
    if question == Some(Question::Mapped) {
        doomed::forget_what_doomed_lack(&targets.memory, &mut draft.problems, thread, problems);
    }
    if !answer.is_released {
        release(&targets.memory, waiter.slot, answer.word);
    }
    preload_new(targets, knowledge, draft);
    true
}

/// The answer to a thread's question.
struct Answer {
    /// The word that the thread finds in its slot.
    word: u64,
    /// True if the thread was released already.
    is_released: bool,
}

/// Writes the answer into the slot of a thread, and wakes the thread.
fn release(memory: &Memory, thread: SlotRef, answer: u64) {
    let Some(area) = memory.image(thread.program) else { return };
    area.set(thread.offset() + slot::ANSWER, answer);
    let Some(word) = area.half(thread.offset() + slot::STATE) else { return };
    // The thread may have stopped waiting meanwhile.
    let done = word.compare_exchange(state::WAITING, state::ANSWERED, Ordering::SeqCst, Ordering::SeqCst);
    if done.is_ok() {
        sys::futex_wake(word);
    }
}

/// Handles a question about a call: its context, or its place in a window. Returns the answer's word.
fn on_call(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    question: Question,
    asked: u64,
    unwound: Option<LastUnwound>,
) -> u64 {
    // The call is counted at this node.
    let node = NodeAddr(asked);
    match question {
        Question::Context => {
            let answer = context::on_context(targets, knowledge, draft, waiter, node);
            if let Some(area) = targets.memory.image(waiter.slot.program) {
                stack_memory::tell(area, waiter);
            }
            return answer.0;
        }
        Question::Number => return context::on_number(targets, knowledge, draft, waiter, asked).0,
        Question::WindowEntry => {
            let began = sys::now();
            context::look_for_main(targets, &knowledge.symbols, draft, waiter.slot, node);
            if awaited::on_entry(targets, draft, waiter, node) {
                return asked;
            }
            draft.windows.unwound = unwound.filter(|last| last.is_of(waiter, node));
            if !received::on_entry(targets, knowledge, draft, waiter, node, began) {
                windows::on_entry(targets, knowledge, draft, waiter, node, began);
            }
        }
        _ => {
            received::on_return(&mut draft.windows, waiter);
            windows::on_return(&targets.memory, draft, waiter);
        }
    }
    asked
}

/// Handles a question of a process that changes: it may be a copy now, or be confined, or end its watching. The slot
/// in `waiter` becomes that of the process's own image. Returns true if the thread was released.
fn on_process(session: &mut Session, waiter: &mut Waiter, question: Question, node: NodeAddr) -> bool {
    match question {
        Question::Last => {
            let Some(last) = end_of_watching::reason(&session.targets, waiter) else { return false };
            waiter.slot.program = identity::part_ways(session, waiter);
            let Session { targets, draft, traced, .. } = session;
            return leave::on_last(targets, &mut draft.problems, &traced.tracees, waiter, last);
        }
        Question::Identity if unchanged_ids::keeps_ids(&session.targets.programs, waiter, node) => {}
        _ => waiter.slot.program = identity::part_ways(session, waiter),
    }
    if question == Question::Confine {
        on_confine(&session.targets.memory, &mut session.polling, waiter.slot.program);
    }
    false
}

/// Handles a question that only tells the launcher something, or asks for slots.
fn on_note(session: &mut Session, waiter: &Waiter, question: Question) {
    let Session { targets, knowledge, draft, traced, .. } = session;
    match question {
        Question::Slots => slots::recycle(targets, draft, waiter.slot.program, true),
        Question::Ending => {
            late_code::on_ending(&mut targets.programs, knowledge, waiter.slot.program, waiter.tid);
        }
        Question::Exec => exec_asked::on_asked(targets, &mut draft.problems, traced, waiter),
        Question::ExecFailed => exec_asked::on_failed(&targets.programs, traced, waiter),
        // The thread finds the answers to the other questions by itself, or asks for the context.
        _ => {}
    }
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
    let Session { targets, knowledge, draft, .. } = session;
    if let Some(made) = request::undone(&targets.memory, waiter.slot) {
        provision::finish(targets, knowledge, &mut draft.problems, waiter.slot, made);
        return false;
    }
    match waiter.registers.ax {
        STARTING => on_exec::on_starting(targets, knowledge, draft, waiter.slot),
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
        problems.note(ProblemKind::Lost, "some threads could not be examined: contexts and new code are missing");
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
