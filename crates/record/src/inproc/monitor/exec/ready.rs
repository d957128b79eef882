//! Makes a file's code ready to be mapped into a process.

use crate::inproc::monitor::exec::files::{PlannedFile, Unwatchable};
use crate::inproc::monitor::handles::ProgramId;
use crate::inproc::monitor::program::Patched;
use crate::inproc::monitor::session::{FileKnowledge, Provisioning, Targets};
use crate::inproc::monitor::shared::maps::Layout;
use crate::problems::Problems;
use crate::procfs;
use std::ops::Range;
use std::rc::Rc;
use systoll_hooks::layout::image;
use systoll_hooks::plan::UnpatchableReason;
use systoll_model::ProblemKind;
use systoll_symbols::MappedFile;

/// Ranges in which a process has no room for code: its mappings, and the mappings that it is about to make.
pub(crate) struct Taken<'a> {
    mapped: Layout<'a>,
    ours: Vec<Range<u64>>,
}

impl<'a> Taken<'a> {
    pub(crate) fn by(mapped: Layout<'a>) -> Self {
        Self { mapped, ours: Vec::new() }
    }

    fn is_free(&self, range: &Range<u64>) -> bool {
        self.mapped.is_free(range) && !self.ours.iter().any(|r| r.start < range.end && range.start < r.end)
    }
}

/// A file's code, and the address at which it will be mapped.
pub(crate) struct Ready {
    pub(crate) patched: Patched,
    pub(crate) at: u64,
}

/// Makes a file's code ready at a free address; returns `None` if the file has nothing to hook.
///
/// # Errors
/// If the whole process can't be watched in this way.
pub(crate) fn ready(
    targets: &Targets,
    knowledge: &mut FileKnowledge,
    problems: &mut Problems,
    file: &MappedFile,
    taken: &mut Taken<'_>,
) -> Result<Option<Ready>, String> {
    let path = knowledge.symbols.path(file.module).unwrap_or_default();
    let known = match knowledge.provisioning.files.known(&mut knowledge.symbols, file.module) {
        Ok(Some(known)) => known,
        Ok(None) => return Ok(None),
        Err(Unwatchable::GuardsMemory) => {
            return Err(format!("{path} is built with a sanitizer that knows where all its memory lies"));
        }
        Err(Unwatchable::UsesGs(by)) => return Err(format!("{path} uses the gs segment for itself: {by}")),
        Err(Unwatchable::Other(why)) => {
            problems.note(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
            return Ok(None);
        }
    };
    let is_free = |range: &Range<u64>| taken.is_free(range);
    match knowledge.provisioning.files.code(targets.memory.codes(), file.module, &known, file.bias, &is_free) {
        Ok((code, at)) => {
            taken.ours.push(at..at + code.size());
            note_uncounted(problems, &path, &known, code.uncounted);
            let patched = Patched { key: file.module, known, code, bias: file.bias };
            Ok(Some(Ready { patched, at }))
        }
        Err(why) => {
            problems.note(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
            Ok(None)
        }
    }
}

fn note_uncounted(problems: &mut Problems, path: &str, known: &Rc<PlannedFile>, places: usize) {
    if places > 0 {
        let interrupts = known.plan.unplanned.iter().filter(|u| u.why == UnpatchableReason::Int80).count();
        let all = known.plan.sites.len() + interrupts;
        problems.note(
            ProblemKind::Lost,
            format!("{path}: {places} of {all} places that make system calls can't be counted; whether they did is not known"),
        );
    }
}

/// Notes if the users of a program that begins have their names: a process's user namespace gets them once
/// (user_namespaces(7)), and shows a user without one as 65534 until then.
pub(crate) fn note_users(targets: &Targets, provisioning: &Provisioning, id: ProgramId) {
    let Some(program) = targets.programs.get(&id).filter(|_| provisioning.elided != 0) else { return };
    if let Some(area) = targets.memory.image(id) {
        area.set(image::USERS_NAMED, u64::from(procfs::has_user_names(program.pid)));
    }
}

/// Allows calls to be answered in place if every call of the program is seen: since `losses_before` no site was found
/// whose calls are not counted, and no code runs that could not be examined.
pub(crate) fn allow_elision(
    targets: &mut Targets,
    provisioning: &Provisioning,
    problems: &Problems,
    id: ProgramId,
    losses_before: u64,
) {
    let Some(program) = targets.programs.get_mut(&id) else { return };
    program.hooks.seen_whole &= problems.losses == losses_before;
    let Some(area) = targets.memory.image(id).filter(|_| program.hooks.seen_whole && provisioning.elided != 0) else {
        return;
    };
    area.set(image::ELIDE, u64::from(provisioning.elided));
    // Set `ELIDE` first and check then: a thread that sets `UNSEEN` in between sees `ELIDE` taken back.
    if area.get(image::UNSEEN) as u32 != 0 {
        area.set(image::ELIDE, 0);
    }
}
