//! Chooses where a file's code and roots lie, and names both in the cache.

use crate::inproc::cache::{Cache, Entry, Key, Kind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use systoll_hooks::assemble::Options;
use systoll_hooks::layout::{IMAGE, NODE_SIZE, image};
use systoll_hooks::plan::Plan;

/// Distances that are tried between a file and its code, bytes, so that neither a heap nor a neighbour is in the way.
const DISTANCES: [u64; 7] = [16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20, 1 << 30];

/// Step of the further search if all those distances are taken, bytes.
const STEP: u64 = 2 << 20;

/// Bytes that jumps may span: they reach two GiB, minus a reserve of 64 MiB.
const REACH: u64 = (2 << 30) - (64 << 20);

/// Lowest address a program may map (vm.mmap_min_addr as distributions set it).
const LOWEST: u64 = 0x1_0000;

/// Highest address used. Above it, without ASLR right above the loader, there is room for the stack only (the kernel:
/// MIN_GAP).
const HIGHEST: u64 = 0x7fff_f800_0000;

/// The regions of files' roots, the same in every image. The thread that has a file's plan first assigns its region.
#[derive(Clone, Debug)]
pub(crate) struct Regions(Arc<AtomicU64>);

impl Default for Regions {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(IMAGE + image::ROOTS)))
    }
}

impl Regions {
    /// Assigns a region to a file with this plan; returns `None` if there is no more room.
    pub(crate) fn give(&self, plan: &Plan) -> Option<u64> {
        // Tables take more than roots, and only the assembler knows where they are needed: reserve the maximum.
        let tables = plan.sites.iter().filter(|s| s.number.is_none()).count() as u64;
        let size = (plan.sites.len() + plan.entries.len()) as u64 * NODE_SIZE + tables * TABLE;
        // Each file needs a region of its own, even if it has no sites.
        let behind = |region: u64| {
            let fits = region + size <= IMAGE + image::SLOTS;
            fits.then(|| (region + size.max(NODE_SIZE)).next_multiple_of(4096))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok()
    }
}

/// A maker of code by fixed options.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) options: Options,
}

impl Maker {
    pub(crate) fn new(options: Options) -> Self {
        Self { options }
    }

    /// Returns the key of the code for the file `id` at a distance from it.
    pub(crate) fn key(&self, id: &Key, delta: i64) -> Key {
        id.with(&format!("{delta:x}-{:x}", self.options.bits()))
    }

    /// Returns the code that the cache holds.
    pub(crate) fn kept<'a>(&self, cache: &'a Cache, key: &Key) -> Option<Entry<'a>> {
        cache.entry(Kind::Code, key)
    }
}

/// Returns the lowest address of a file.
fn lowest(plan: &Plan) -> u64 {
    plan.segments.iter().map(|s| s.vaddr & !4095).min().unwrap_or(0)
}

/// Estimates the bytes of a file's code before it is made. Code that turns out larger needs another place, so it is made
/// or read a second time, which took a quarter of the start of a small program; the estimate is therefore an upper bound
/// for the files that a test looks at. It costs addresses only.
pub(crate) fn first_room(plan: &Plan) -> u64 {
    let by_number = plan.sites.iter().filter(|s| s.number.is_none()).count();
    let others = plan.sites.len() + plan.entries.len() - by_number;
    ROOM_FOR_HAND_SHAKE + others as u64 * ROOM_PER_SITE + by_number as u64 * ROOM_PER_UNKNOWN_NUMBER
}

/// Returns an address where `room` bytes are free within reach of a file.
pub(crate) fn place(plan: &Plan, bias: u64, room: u64, is_free: &dyn Fn(&Range<u64>) -> bool) -> Option<u64> {
    let lowest = lowest(plan);
    let extent = plan.segments.iter().map(|s| s.vaddr.saturating_add(s.memory_size)).max().unwrap_or(0);
    let room = room.next_multiple_of(4096);
    let first = bias.wrapping_add(lowest);
    let below = DISTANCES.iter().filter_map(|d| first.checked_sub(d + room.next_multiple_of(1 << 20)));
    let bottom = first.checked_sub(room).map(|_| LOWEST);
    let above = bias.wrapping_add(extent).next_multiple_of(4096).checked_add(1 << 30);
    let step = |n: u64| [first.checked_sub(n * STEP + room), bias.wrapping_add(extent).checked_add(n * STEP)];
    let steps = (1..REACH / STEP).flat_map(step).flatten().map(|at| at & !4095);
    below.chain(bottom).chain(above).chain(steps).find(|at| {
        let (at, end) = (*at, at.saturating_add(room));
        let reach = bias.wrapping_add(extent).max(end).saturating_sub(first.min(at));
        let fits = at >= LOWEST && end <= HIGHEST && reach <= REACH && (at >= first || end <= first);
        fits && is_free(&(at..end))
    })
}

/// Bytes of the hand-shake's code, which each file's code begins with, estimated: 18,737 with its part of the table behind
/// the code.
const ROOM_FOR_HAND_SHAKE: u64 = 32 << 10;

/// Bytes of code for a site, and of its part of the table, estimated: those of glibc 2.36 take 1,291 in a usual run and
/// 2,437 with every option, on average.
const ROOM_PER_SITE: u64 = 2600;

/// Bytes of code for a site where any system call may be made, estimated: it holds the code for all that need more than
/// counting, 11,703 bytes in a usual run and 16,220 with every option.
const ROOM_PER_UNKNOWN_NUMBER: u64 = 20 << 10;

/// Bytes of a table that has a root for each system call number.
const TABLE: u64 = systoll_hooks::layout::TABLE_LEN * 8;

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_hooks::assemble::{assemble, origins_table};

    /// Returns the plans of the C library and the loader that this process has mapped.
    fn plans() -> Vec<Plan> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths: Vec<&str> = maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).collect();
        paths.dedup();
        let is_wanted = |path: &&str| ["libc.", "ld-"].iter().any(|name| path.contains(&format!("/{name}")));
        let wanted = paths.into_iter().filter(is_wanted);
        wanted.map(|path| systoll_hooks::plan::plan(&std::fs::read(path).unwrap()).unwrap()).collect()
    }

    #[test]
    fn code_fits_its_first_room_with_every_option() {
        let usual = Options { results: true, time: true, waited: true, windows: true, ..Options::COUNT };
        let every = Options { elide: true, sampled: true, receives: true, long: Some(19), ..usual };
        let all = [usual, Options { elide: true, ..usual }, Options { long: Some(19), ..usual }, every];
        let plans = plans();
        assert!(plans.iter().any(|plan| plan.sites.len() > 300), "the C library is among {}", plans.len());
        for options in all {
            for plan in &plans {
                let blob = assemble(plan, &options, -(64 << 20)).unwrap();
                let size = (blob.code.len() + origins_table(&blob).0.len()) as u64;
                assert!(size <= first_room(plan), "{size} of {} with {options:?}", first_room(plan));
            }
        }
    }
}
