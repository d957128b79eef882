//! Answers the questions in the queues, program by program.

use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::next_question::Kind;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::answer;
use crate::inproc::monitor::requests::queue::Found;
use crate::inproc::monitor::session::{Session, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use std::time::Duration;
use systoll_hooks::layout::{image, state};

/// Returns true if any queue has a new question.
pub(crate) fn is_asked(targets: &Targets) -> bool {
    targets.programs.values().any(|p| has_new(&targets.memory, p))
}

fn has_new(memory: &Memory, program: &Program) -> bool {
    memory.image(program.id).is_some_and(|a| a.get(image::TICKET) != program.queue.tail)
}

/// Answers the questions in the queues. Returns true if there were any.
pub(crate) fn serve(session: &mut Session) -> bool {
    let asked = |p: &&Program| session.polling.quiet || has_new(&session.targets.memory, p);
    let ids: Vec<ProgramId> = session.targets.programs.values().filter(asked).map(|p| p.id).collect();
    let mut did = false;
    for id in ids {
        let answered = serve_program(session, id);
        let area = session.targets.memory.image(id).filter(|_| answered);
        if let Some(area) = area.filter(|a| a.get(image::DEAD) as u32 != 0) {
            // A thread stopped waiting while we worked on something long, and has marked us as dead; unmark us.
            area.set(image::DEAD, 0);
        }
        did |= answered;
    }
    did
}

/// Answers the questions in a program's queue, one round at most. Returns true if there were any.
fn serve_program(session: &mut Session, id: ProgramId) -> bool {
    let (mut did, mut all) = (false, session.polling.quiet);
    for _ in 0..image::RING_LEN {
        let next = match (session.targets.memory.image(id), session.targets.programs.get_mut(&id)) {
            (Some(area), Some(program)) => program.queue.next(area),
            _ => Found::Nothing,
        };
        match next {
            Found::Nothing => break,
            Found::Slot(index) => {
                session.polling.begin_item(session.targets.memory.global());
                let began = sys::now();
                // If the thread does not wait, it stopped waiting, or its entry has overwritten another thread's.
                all |= !answer::answer(session, id.slot(index));
                let elapsed = Duration::from_nanos(sys::now().saturating_sub(began));
                session.draft.windows.budget.note_answered(elapsed);
                session.chores.did_needed |= session.polling.done.kind != Kind::Call;
                did = true;
            }
            Found::Unfilled | Found::Overrun => {
                all = true;
                break;
            }
        }
    }
    did | (all && serve_slots(session, id))
}

/// Answers every slot of a program whose thread waits. Returns true if there were any.
fn serve_slots(session: &mut Session, id: ProgramId) -> bool {
    let mut did = false;
    for index in 0..session.targets.memory.slots_drawn(id) {
        if session.targets.memory.state(id.slot(index)) == state::WAITING {
            session.polling.begin_item(session.targets.memory.global());
            did |= answer::answer(session, id.slot(index));
        }
    }
    did
}
