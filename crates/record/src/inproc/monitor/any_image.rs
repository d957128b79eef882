//! Runs the launcher's side on an image that its program has overwritten: for fuzzing.
//!
//! Invariant: no process is touched. The threads in the image claim this process's own number; this process has no
//! image mapped, so none is believed and no request is carried out.

use super::exec::files::Files;
use super::exec::place::Maker;
use super::exec::provision;
use super::exec::read_ahead::Ahead;
use super::exec::ready::{self, Taken};
use super::handles::ProgramId;
use super::polling::Polling;
use super::program::{Patched, Program};
use super::requests::{serve, slots};
use super::results::clock::Ratio;
use super::results::run_stats::Around;
use super::results::{collect, recording};
use super::session::Session;
use super::shared::maps::{Layout, Maps};
use super::shared::memory::Memory;
use super::shared::remote::Mem;
use super::{Cache, Closely, HowToWatch, options, watch};
use crate::table::{Image, Table};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use systoll_hooks::layout::{image, slot};
use systoll_symbols::{AddressSpace, Symbols};

/// A launcher without programs, and a file that each program has.
struct Launcher {
    session: Session,
    space: AddressSpace,
    file: Patched,
}

impl Launcher {
    /// Creates a launcher whose one file is this process's own dynamic loader.
    fn new() -> Option<Self> {
        let ahead = Ahead::default();
        let files = Files::new(Maker::new(options(Closely::All, true)), Arc::new(Cache::none()), ahead.clone());
        let symbols = Symbols::expecting(ahead.modules.clone());
        let around = Around { own_cycles: 10.0, added_ns: 5.0, ..Around::default() };
        let mut session = watch::new_session(
            &HowToWatch::default(),
            (Memory::new().ok()?, Polling::new()),
            (files, symbols),
            (crate::assemble::RunFacts::default(), around),
            Ratio::begin().settled(),
        );
        let (pid, mut space) = (std::process::id() as i32, AddressSpace::new());
        let maps = Maps::of(pid);
        space.update_by(&mut session.knowledge.symbols, pid, &maps.text);
        let is_loader = |path: Option<Arc<str>>| path.is_some_and(|path| path.contains("/ld-"));
        let file = space.files().find(|f| is_loader(session.knowledge.symbols.path(f.module)))?;
        let ready = ready::ready(
            &session.targets,
            &mut session.knowledge,
            &mut session.draft.problems,
            &file,
            &mut Taken::by(Layout::Known(&maps.all)),
        )
        .ok()??;
        Some(Self { session, space, file: ready.patched })
    }

    /// Adds a program with that file, in an image of its own.
    fn program(&mut self) -> Option<ProgramId> {
        let pid = std::process::id() as i32;
        let id = provision::blank_image(
            &mut self.session.targets.memory,
            &self.session.knowledge.provisioning,
            &self.session.draft.stats,
        )?;
        let image = self.session.draft.table.image(Image { pid, exe: "any".into(), ..Image::default() });
        let mut program = Program::new(id, pid, image, self.space.clone(), Mem::open(pid).ok()?);
        program.hooks.starting = Some(vec![self.file.clone()]);
        self.session.targets.programs.insert(id, program);
        provision::provision(&mut self.session.targets, &mut self.session.knowledge, &mut self.session.draft, id);
        self.session.targets.programs.get_mut(&id)?.hooks.starting = None;
        Some(id)
    }

    fn watch(&mut self, parts: &[Range<u64>], word: &dyn Fn(u64) -> u64) -> Option<()> {
        let id = self.program()?;
        let area = self.session.targets.memory.image(id)?;
        for at in parts.iter().flat_map(|part| part.clone().step_by(8)) {
            area.set(at, word(at));
        }
        for index in 0..image::SLOT_COUNT {
            let at = image::SLOTS + index * slot::SIZE;
            if parts.iter().any(|part| part.contains(&at)) {
                area.set(at + slot::TID, std::process::id().into());
            }
        }
        for _ in 0..3 {
            serve::serve(&mut self.session);
            slots::recycle_some(&mut self.session.targets, &mut self.session.draft);
        }
        slots::recycle(&mut self.session.targets, &mut self.session.draft, id, true);
        let so_far = recording::recording_so_far(&mut self.session);
        assert_eq!(so_far.check(), Ok(()), "a recording is whole");
        collect::find_ended(&self.session.targets, &mut self.session.chores);
        collect::collect_all(&mut self.session.targets, &mut self.session.knowledge, &mut self.session.draft);
        self.session.targets.memory.free_image(id);
        Some(())
    }

    /// Forgets all programs.
    fn forget(&mut self) {
        let session = &mut self.session;
        session.draft.table = Table::default();
        session.knowledge.reuse.by_file.clear();
        session.draft.problems.list.clear();
        session.draft.windows.open.clear();
        session.draft.windows.ordinals.clear();
    }
}

/// Answers questions, recycles slots and collects results, in an image whose `parts` hold the words that `word`
/// returns. Returns true if such an image could be set up.
pub(crate) fn use_image(parts: &[Range<u64>], word: &dyn Fn(u64) -> u64) -> bool {
    thread_local!(static LAUNCHER: RefCell<Option<Launcher>> = const { RefCell::new(None) });
    LAUNCHER.with(|kept| {
        // `kept` is empty meanwhile: if there is a panic, the launcher is dropped.
        let Some(mut launcher) = kept.take().or_else(Launcher::new) else { return false };
        let tried = launcher.watch(parts, word).is_some();
        launcher.forget();
        kept.replace(Some(launcher));
        tried
    })
}
