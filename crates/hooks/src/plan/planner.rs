//! The state of planning one file: the file, facts about its code, and the plan so far.

use super::addresses::{Set, Targets};
use super::cfi::Cfi;
use super::effects::Effects;
use super::image::Image;
use super::labels::Numbers;
use super::patch_span::ReservedSpans;
use super::types::Plan;
use std::cell::OnceCell;
use std::collections::HashSet;

/// Plans the sites of one file, extent after extent.
pub(super) struct Planner<'a> {
    pub(super) image: &'a Image<'a>,
    pub(super) cfi: Cfi<'a>,
    pub(super) targets: &'a Targets,
    /// Starts of functions that may contain data.
    pub(super) doubtful: &'a HashSet<u64>,
    /// Starts of instructions that control flow reaches, if there are such functions.
    pub(super) reached: Option<&'a Set>,
    /// True if the file contains GHC's run-time system.
    pub(super) has_ghcs_runtime: bool,
    /// Numbers in the file's data, collected when a function that jumps by labels needs them.
    pub(super) numbers: OnceCell<Numbers>,
    pub(super) effects: Effects,
    pub(super) reserved: ReservedSpans,
    /// Sites whose results can only be seen at the place to which their function returns.
    pub(super) returning: Vec<EndCall>,
    pub(super) plan: Plan,
}

/// A call at the end of its function.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndCall {
    /// Address of the call.
    pub(super) site: u64,
    /// Start of its function.
    pub(super) function: u64,
}
