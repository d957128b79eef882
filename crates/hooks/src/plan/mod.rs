//! Finds where a file's system calls can be hooked, by analysing its machine code.
//!
//! The `syscall` instruction stays where it is. A hook is a jump of five bytes over whole instructions before it (to
//! count) and behind it (to time), to code that runs the displaced instructions elsewhere. Invariant: a [`Span`] has no
//! known branch target strictly inside, and no two sites' spans share a byte.

mod addresses;
mod branch_targets;
mod calls;
mod cfi;
mod effects;
mod encoding;
mod extents;
mod file_kind;
mod frame_depth;
mod ghc;
mod go;
mod gs;
mod image;
mod labels;
mod make_room;
mod pairs;
mod patch_span;
mod planner;
mod quick;
mod reachable;
mod signal_return;
mod sites;
mod tail_calls;
mod types;
mod vdso;

pub use file_kind::Kind;
pub use signal_return::{SIGNAL_NUMBER_LEN, SIGNAL_RETURN, SIGNAL_RETURN_LEN};
pub use types::{
    CfaOffset, Entry, Evidence, Plan, PlanError, Segment, Site, Span, UnpatchableReason, Unplanned, VdsoFunction,
};

use std::cell::OnceCell;
use std::ops::Range;

/// Returns the build-id of the ELF file `elf` (the linker's note), if it has one.
#[must_use]
pub fn build_id(elf: &[u8]) -> Option<&[u8]> {
    image::build_id(elf)
}

/// Finds what can be hooked in the ELF file `elf`: a program, a shared object, or the vDSO as it is mapped. Takes time
/// and memory in proportion to the file, and analyses only functions with a `syscall` in detail.
///
/// # Errors
///
/// If it is no ELF file for x86-64, is damaged where hooks depend on it, or is absurdly large.
pub fn plan(elf: &[u8]) -> Result<Plan, PlanError> {
    let image = image::Image::parse(elf)?;
    let segments = image.segments.clone();
    let nothing = Plan { segments, has_shadow_memory: image.has_shadow_memory, ..Plan::default() };
    // In a large file, this function alone is not worth decoding everything.
    let unwinder = image.unwinder.filter(|_| image.is_small());
    if unwinder.is_none() && !image.code.iter().any(|region| pairs::has_bytes(region.bytes)) {
        return Ok(Plan { uses_gs: sets_gs(&image), ..nothing });
    }
    let cfi = cfi::Cfi::read(&image);
    if unwinder.is_none() && ghc::makes_no_calls(&image, &cfi) {
        return Ok(Plan { uses_gs: sets_gs(&image), ..nothing });
    }
    let mut extents = extents::extents(&image, &cfi);
    sites::join(&image, &mut extents);
    let with_calls: Vec<_> = extents.iter().filter(|e| calls::has_call(&image, e)).copied().collect();
    if unwinder.is_none() && with_calls.is_empty() {
        return Ok(Plan { uses_gs: sets_gs(&image), ..nothing });
    }
    let survey = branch_targets::survey(&image, &cfi, (&extents, &with_calls))?;
    let has_ghcs_runtime = ghc::has_runtime(&image, &cfi);
    let mut planner = planner::Planner {
        image: &image,
        cfi,
        targets: &survey.targets,
        doubtful: &survey.doubtful,
        reached: survey.reached.as_ref(),
        has_ghcs_runtime,
        numbers: OnceCell::new(),
        effects: effects::Effects::new(),
        reserved: patch_span::ReservedSpans::default(),
        returning: Vec::new(),
        plan: Plan { uses_gs: survey.uses_gs, ..nothing },
    };
    for extent in &with_calls {
        planner.extent(extent);
    }
    planner.note_out_of_step();
    planner.look_where_returned(&extents);
    planner.spare_signals_returns();
    let mut plan = planner.plan;
    plan.entries = vdso::entries(&image, &survey.targets);
    plan.unwinder = image.unwinder.and_then(|address| vdso::entry(&image, &survey.targets, address));
    plan.sites.sort_unstable_by_key(|s| s.address);
    plan.unplanned.sort_unstable_by_key(|u| u.address);
    Ok(plan)
}

/// Returns the functions of the ELF file `elf`, as far as its tables tell them, extended by the code into which a
/// call in them continues, ascending. [`plan`] decodes each from its start.
///
/// # Errors
///
/// The errors of [`plan`].
pub fn functions(elf: &[u8]) -> Result<Vec<Range<u64>>, PlanError> {
    let image = image::Image::parse(elf)?;
    let mut extents = extents::extents(&image, &cfi::Cfi::read(&image));
    sites::join(&image, &mut extents);
    Ok(extents.iter().filter(|e| e.known).map(|e| e.start..e.end).collect())
}

/// Returns the instruction by which a file that makes no calls sets the gs base.
fn sets_gs(image: &image::Image<'_>) -> Option<Evidence> {
    gs::evidence(image, image.sets_gs()?)
}
