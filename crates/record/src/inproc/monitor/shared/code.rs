//! A file's trampolines as they lie in the shared memory, ready to be mapped and jumped to.

use crate::inproc::monitor::shared::memory::{Area, CodeRoom, Runs};
use crate::inproc::monitor::shared::remote::Jumps;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use systoll_hooks::assemble::{AssembleError, Blob, Room, Unhooked, origins_table};
use systoll_hooks::layout::{IMAGE, NODE_SIZE, code, image, node};
use systoll_hooks::plan::{Plan, SIGNAL_RETURN_LEN};

/// Ways to begin a file's records that are kept: there are as many as programs with other files.
const MOST_ROOTS: usize = 16;

/// A file's trampolines, in the shared memory.
pub(crate) struct Code {
    /// What it counts; its bytes, and what they were fitted by, are no longer there.
    pub(crate) blob: Blob,
    /// How many they are.
    len: u64,
    /// The region of roots that they count at.
    pub(crate) region: u64,
    pub(crate) jumps: Jumps,
    /// Places of the file whose calls are not counted.
    pub(crate) uncounted: usize,
    /// What its roots are in an image, by their first record: it depends on the files before it.
    roots: RefCell<HashMap<u64, Arc<Runs>>>,
    /// Where it lies in the shared file.
    pub(crate) offset: u64,
    /// Where what a program writes over the file's code lies there.
    pub(crate) writing: u64,
    /// Entries of the table behind it, see [`origins_table`].
    origins: u64,
    /// See [`Plan::signal_return`].
    signal_return: Option<u64>,
}

impl Code {
    /// Stores `blob`, made for a file with this plan whose roots lie in `region`.
    ///
    /// # Errors
    /// In words, where there is no room for it.
    pub(crate) fn store(mut blob: Blob, plan: &Plan, region: u64, room: &CodeRoom) -> Result<Self, String> {
        let mut bytes = std::mem::take(&mut blob.code);
        let len = bytes.len() as u64;
        blob.settle(&mut bytes, region).map_err(|e| e.to_string())?;
        let (table, origins) = origins_table(&blob);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(table);
        let offset = room.add(&bytes).ok_or("no room for more code")?;
        let jumps = Jumps::new(plan, &blob)?;
        let writing = room.add(&jumps.for_writing()).ok_or("no room for more code")?;
        let uncounted = uncounted(plan, &blob);
        // Thousands of small pieces that are not needed any more.
        (blob.patches, blob.references, blob.origins) = (Vec::new(), Vec::new(), Vec::new());
        let signal_return = plan.signal_return;
        let roots = RefCell::default();
        Ok(Self { blob, len, region, jumps, uncounted, roots, offset, writing, origins, signal_return })
    }

    /// Bytes it takes, in whole pages.
    pub(crate) fn size(&self) -> u64 {
        (self.table_at() + 8 * self.origins).next_multiple_of(4096)
    }

    fn table_at(&self) -> u64 {
        self.len.next_multiple_of(8)
    }

    /// The roots in the file's region of an image that has `room`.
    ///
    /// # Errors
    /// Those of [`Blob::roots`].
    pub(crate) fn roots(&self, room: &Room) -> Result<Arc<Runs>, AssembleError> {
        let (first, sites) = (room.roots, self.blob.sites.len() as u64);
        room.has(sites).then_some(()).ok_or(AssembleError::Records(sites))?;
        if let Some(known) = self.roots.borrow().get(&first) {
            return Ok(Arc::clone(known));
        }
        let mut words = self.blob.roots(self.region, first)?;
        // Sites that tell no contexts apart: no thread asks there before a window is due.
        let unasked = (0u64..).zip(&self.blob.sites).filter(|(_, s)| s.offset.is_none() && s.results && !s.vdso);
        words.extend(unasked.map(|(i, _)| (self.region + i * NODE_SIZE - IMAGE + node::WINDOW_AT, 1)));
        // Of two words for one place, which lie side by side then, the second one holds.
        words.sort_by_key(|(at, _)| *at);
        words.dedup_by(|second, first| (second.0 == first.0).then(|| first.1 = second.1).is_some());
        let roots = Arc::new(Runs::new(words));
        let mut known = self.roots.borrow_mut();
        if known.len() < MOST_ROOTS {
            known.insert(first, Arc::clone(&roots));
        }
        Ok(roots)
    }

    /// Has unwinders of the process whose image `area` is find what the code stands for, where it
    /// is mapped `at`. Beyond what there is room for they find nothing.
    pub(crate) fn announce(&self, area: &Area, at: u64) {
        if self.origins != 0 {
            announce(area, at..at + self.len, (at + self.table_at(), self.origins));
        }
        if let Some(start) = self.signal_return {
            // Unwinders look for the byte before a return address.
            let start = at.wrapping_add_signed(-self.blob.delta).wrapping_add(start);
            announce(area, start - 1..start + SIGNAL_RETURN_LEN, (IMAGE + image::SIGNAL_TABLE, 1));
        }
    }
}

/// Adds an entry to [`image::CODES`]: code, and where its table lies and how long it is.
fn announce(area: &Area, code: Range<u64>, (table, len): (u64, u64)) {
    let n = area.get(image::CODE_COUNT);
    if n >= image::CODES_LEN {
        return;
    }
    let size = code.end - code.start;
    let fields = [(code::START, code.start), (code::SIZE, size), (code::TABLE, table), (code::LEN, len)];
    for (field, word) in fields {
        area.set(image::CODES + n * image::CODE_ENTRY + field, word);
    }
    area.set(image::CODE_COUNT, n + 1);
}

/// Places of a file whose calls are not counted.
fn uncounted(plan: &Plan, blob: &Blob) -> usize {
    let refused = blob.refused.iter().filter(|r| r.what != Unhooked::Return);
    let addresses: HashSet<u64> = refused.map(|r| r.address).chain(plan.unplanned.iter().map(|u| u.address)).collect();
    addresses.len()
}
