//! All files ever seen in a run, and what their addresses are called.

use crate::{ModuleKey, RawFrame};
use std::sync::Arc;
use systoll_model::{Frame, FrameClass, Location, Module, Problem};

/// Frames with names.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The files the frames lie in.
    pub modules: Vec<Module>,
    /// In the order they were asked for.
    pub frames: Vec<Frame>,
    /// What could not be named, and why.
    pub problems: Vec<Problem>,
}

/// All files ever seen mapped in a run. One per run.
#[derive(Debug, Default)]
pub struct Symbols {}

impl Symbols {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whose code `frame` runs. Cached; fast.
    pub fn class(&mut self, _frame: RawFrame) -> FrameClass {
        FrameClass::Unknown
    }

    /// Whether the executable's `main` is one of the frames.
    pub fn reaches_main(&mut self, _stack: &[RawFrame]) -> bool {
        false
    }

    /// Names for `frames`; modules are numbered as in [`Resolved::modules`].
    pub fn resolve(&mut self, frames: &[RawFrame]) -> Resolved {
        let name = |f: &RawFrame| Location { function: format!("{:#x}", f.address).into(), ..Location::default() };
        let frames = frames
            .iter()
            .map(|f| Frame {
                address: f.address,
                class: FrameClass::Unknown,
                locations: vec![name(f)],
                ..Frame::default()
            })
            .collect();
        Resolved { frames, ..Resolved::default() }
    }

    /// The public API that the user's frame, the last of `context`, called, and the module it
    /// lives in. `None` where the user's code made the system call itself, or nobody can tell.
    pub fn api(&mut self, _context: &[RawFrame]) -> Option<(Arc<str>, Option<ModuleKey>)> {
        None
    }
}
