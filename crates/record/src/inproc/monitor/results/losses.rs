//! Notes as problems the calls and figures that a program's counts lack.

use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::results::tally::Tally;
use crate::inproc::monitor::session::{DraftRecording, Provisioning, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::problems::Problems;
use systoll_hooks::layout::image;
use systoll_model::ProblemKind;

/// Notes the calls and figures that a program's counts lack.
pub(crate) fn note_losses(
    targets: &Targets,
    provisioning: &Provisioning,
    draft: &mut DraftRecording,
    program: &Program,
    tally: &Tally,
) {
    let exe = draft.table.images.get(program.image.index()).map(|i| i.exe.clone()).unwrap_or_default();
    let l = tally.losses;
    let all = [
        (l.homeless, ProblemKind::Lost, "threads beyond the room for counters shared one: calls may be missing"),
        (
            l.unheard,
            ProblemKind::Lost,
            "systoll could not hook new code or a new program in time: its calls are not counted",
        ),
        (l.astray, ProblemKind::Lost, "signal handlers ended in ways that systoll does not count"),
        (l.damaged, ProblemKind::Lost, "counts make no sense: the program wrote over them"),
        (l.errors, ProblemKind::Bounded, "failed calls are counted without their error"),
        (
            l.unanswered,
            ProblemKind::Bounded,
            "calls whose caller systoll could not look up in time are counted without it",
        ),
        (l.unasked, ProblemKind::Bounded, "calls that signal handlers made are counted without their caller"),
        (l.unmatched, ProblemKind::Note, "calls whose return could not be matched are counted, not timed"),
    ];
    for (n, kind, what) in all {
        if n > 0 {
            draft.problems.note(kind, format!("{exe}: {what} ({n})"));
        }
    }
    if tally.foreign > 0 {
        let n = tally.foreign;
        draft.problems.note(ProblemKind::Lost, format!("{exe}: x32 calls are counted, not what they start ({n})"));
    }
    for (syscall, n) in &tally.blind {
        draft.problems.note(
            ProblemKind::Lost,
            format!("{exe}: calls of {syscall} are counted whose errors could not be seen ({n})"),
        );
    }
    if tally.untold > 0 {
        let n = tally.untold;
        draft.problems.note(
            ProblemKind::Price,
            format!(
                "{exe}: of {n} calls it could not be measured how long they waited: what they cost is in no figure"
            ),
        );
    }
    if program.contexts.times_shortened > 0 {
        let text = "calls of rare callers are counted without some of them: looking up more would have cost too much";
        draft.problems.note(ProblemKind::Bounded, format!("{exe}: {text}"));
    }
    note_generated(&mut draft.problems, program, &exe);
    if provisioning.elided != 0
        && let Some(why) = why_unanswered(&targets.memory, program)
    {
        draft.problems.note(ProblemKind::Note, format!("{exe}: its calls are not answered in place: {why}"));
    }
    if program.hooks.starting.is_some() && targets.memory.could_not_be_mapped(program.id) {
        draft.problems.note(ProblemKind::Unwatched, format!("{exe} ran unwatched: it could not map the shared memory"));
    }
}

/// Returns why a program's calls are not answered in place, if so.
pub(crate) fn why_unanswered(memory: &Memory, program: &Program) -> Option<&'static str> {
    let unseen = memory.image(program.id).is_some_and(|a| a.get(image::UNSEEN) as u32 != 0);
    match (program.hooks.seen_whole, unseen) {
        (false, _) => Some("not every place in its files that makes calls is seen"),
        (true, true) => Some("it has made memory executable that is no file"),
        (true, false) => None,
    }
}

/// Notes which of a program's generated code was not counted, or not examined.
pub(crate) fn note_generated(problems: &mut Problems, program: &Program, exe: &str) {
    let generated = &program.hooks.generated;
    let all = [
        (
            generated.calls > 0,
            ProblemKind::Lost,
            "runs code that is in no file, with what looks like system calls: they are not counted",
        ),
        (
            generated.written_in_place && !generated.seen_at_end || generated.too_much,
            ProblemKind::Note,
            "runs code that is in no file: whether that makes system calls of its own is not looked at",
        ),
    ];
    for (is_so, kind, what) in all {
        if is_so {
            problems.note(kind, format!("{exe} {what}"));
        }
    }
}
