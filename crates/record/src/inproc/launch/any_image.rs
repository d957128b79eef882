//! The launcher's side of an image that its program has written over: for fuzzing.
//!
//! Invariant: no process is touched. Threads call themselves by this process's own number, and it has no
//! image mapped, so that none is believed and nothing is done for what they ask.

use super::super::layout::{image, slot};
use super::ahead::Ahead;
use super::birth::Taken;
use super::clock::Ratio;
use super::engine::Engine;
use super::files::{Files, Maker};
use super::finish::Around;
use super::maps::{Layout, Maps};
use super::program::{Patched, Program};
use super::target::Mem;
use super::{Cache, Closely, Launch, options};
use crate::table::{Image, Table};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use systoll_symbols::{AddressSpace, Symbols};

/// A launcher without programs, and a file that each program has.
struct Launcher {
    engine: Engine,
    space: AddressSpace,
    file: Patched,
}

impl Launcher {
    /// With this process's own dynamic loader.
    fn new() -> Option<Self> {
        let ahead = Ahead::default();
        let files = Files::new(Maker::new(options(Closely::All, true)), Arc::new(Cache::none()), ahead.clone());
        let symbols = Symbols::expecting(ahead.modules.clone());
        let around = Around { own_cycles: 10.0, added_ns: 5.0, ..Around::default() };
        let mut engine = Engine::new(&Launch::default(), (files, symbols), around, Ratio::begin().settled()).ok()?;
        let (pid, mut space) = (std::process::id() as i32, AddressSpace::new());
        let maps = Maps::of(pid);
        space.update_by(&mut engine.symbols, pid, &maps.text);
        let is_loader = |path: Option<Arc<str>>| path.is_some_and(|path| path.contains("/ld-"));
        let file = space.files().find(|f| is_loader(engine.symbols.path(f.module)))?;
        let ready = engine.ready(&file, &mut Taken::by(Layout::Known(&maps.all))).ok()??;
        Some(Self { engine, space, file: ready.patched })
    }

    /// A program with that file, in an image of its own.
    fn program(&mut self) -> Option<u32> {
        let pid = std::process::id() as i32;
        let id = self.engine.blank_image()?;
        let image = self.engine.table.image(Image { pid, exe: "any".into(), ..Image::default() });
        let mut program = Program::new(id, pid, image, self.space.clone(), Mem::open(pid).ok()?);
        program.newborn = Some(vec![self.file.clone()]);
        self.engine.programs.insert(id, program);
        self.engine.furnish(id);
        self.engine.programs.get_mut(&id)?.newborn = None;
        Some(id)
    }

    fn watch(&mut self, parts: &[Range<u64>], word: &dyn Fn(u64) -> u64) -> Option<()> {
        let id = self.program()?;
        let area = self.engine.memory.image(id)?;
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
            self.engine.serve();
            self.engine.recycle_some();
        }
        self.engine.recycle(id, true);
        let so_far = self.engine.recording_so_far();
        assert_eq!(so_far.check(), Ok(()), "a recording is whole");
        self.engine.find_ended();
        self.engine.harvest_all();
        self.engine.memory.free_image(id);
        Some(())
    }

    /// Forgets all programs.
    fn forget(&mut self) {
        let engine = &mut self.engine;
        engine.table = Table::default();
        engine.alike.clear();
        engine.problems.clear();
        engine.open.clear();
        engine.ordinals.clear();
    }
}

/// Answers, gives slots back, and harvests, in an image whose `parts` hold what `word` says. Whether it could
/// be tried at all.
pub(crate) fn use_image(parts: &[Range<u64>], word: &dyn Fn(u64) -> u64) -> bool {
    thread_local!(static LAUNCHER: RefCell<Option<Launcher>> = const { RefCell::new(None) });
    LAUNCHER.with(|kept| {
        // Gone if there is a panic in between.
        let Some(mut launcher) = kept.take().or_else(Launcher::new) else { return false };
        let tried = launcher.watch(parts, word).is_some();
        launcher.forget();
        kept.replace(Some(launcher));
        tried
    })
}
