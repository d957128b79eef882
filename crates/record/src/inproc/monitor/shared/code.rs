//! A file's trampolines in the shared memory, ready to be mapped and jumped to.

use crate::inproc::cache::Entry;
use crate::inproc::monitor::shared::memory::{Area, CodeRoom, Runs};
use crate::inproc::monitor::shared::remote::Jumps;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use systoll_hooks::assemble::{AssembleError, Blob, CODE_SIZE_LEN, Unhooked, code_size, origins_table};
use systoll_hooks::layout::{IMAGE, NODE_SIZE, code, image, node};
use systoll_hooks::plan::{Plan, SIGNAL_RETURN_LEN};

/// Sets of initial roots that are kept for a file, at most: there is one for each combination with other files.
const MOST_ROOTS: usize = 16;

/// Bytes of code that are read at once: few enough to stay in the processor's cache.
const PIECE: usize = 64 << 10;

/// A file's trampolines in the shared memory.
pub(crate) struct Code {
    /// Description of the trampolines, without their bytes and the data for placing them.
    pub(crate) blob: Blob,
    /// Bytes of the trampolines.
    len: u64,
    /// The region of roots at which the trampolines count.
    pub(crate) region: u64,
    pub(crate) jumps: Jumps,
    /// Number of sites in the file whose calls are not counted.
    pub(crate) uncounted: usize,
    /// Initial words of the file's roots in an image, by the number of their first record, which depends on the files
    /// before it.
    roots: RefCell<HashMap<u64, Arc<Runs>>>,
    /// Offset of the trampolines in the shared file.
    pub(crate) offset: u64,
    /// Offset in the shared file of the data by which a program writes over the file's code.
    pub(crate) writing: u64,
    /// Number of entries of the table behind the trampolines, see [`origins_table`].
    origins: u64,
    /// Address of a signal return in the file, see [`Plan::signal_return`].
    signal_return: Option<u64>,
}

impl Code {
    /// Stores `blob`, made for a file with this plan, whose roots lie in `region`.
    ///
    /// # Errors
    /// A text, if there is no room for it.
    pub(crate) fn store(mut blob: Blob, plan: &Plan, region: u64, room: &CodeRoom) -> Result<Self, String> {
        let mut bytes = std::mem::take(&mut blob.code);
        let len = bytes.len() as u64;
        blob.settle(&mut bytes, region).map_err(|e| e.to_string())?;
        let (table, origins) = origins_table(&blob);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(table);
        let offset = room.add(&bytes).ok_or("no room for more code")?;
        Self::of(blob, (offset, len, origins), plan, region, room)
    }

    /// Reads the code that an earlier run kept for a file at this distance directly into its place: allocating memory
    /// for another copy of a megabyte takes longer than reading it.
    pub(crate) fn kept(mut entry: Entry<'_>, delta: i64, plan: &Plan, region: u64, room: &CodeRoom) -> Option<Self> {
        let behind_rest = entry.len().checked_sub(CODE_SIZE_LEN as u64)?;
        let mut last = [0; CODE_SIZE_LEN];
        entry.peek(behind_rest, &mut last)?;
        let len = code_size(last)?;
        let mut rest = vec![0; usize::try_from(behind_rest.checked_sub(u64::from(len))?).ok()?];
        entry.peek(u64::from(len), &mut rest)?;
        let blob = Blob::from_rest(&rest, len).filter(|blob| blob.delta == delta)?;
        let (table, origins) = origins_table(&blob);
        let table_at = u64::from(len).next_multiple_of(8);
        let offset = room.reserve(table_at + table.len() as u64)?;
        let (mut start, len) = (0, len as usize);
        let mut buffer = vec![0; PIECE.min(len)];
        while start < len {
            // The entry may be damaged or forged until its last byte has been read and checked.
            let end = Some(blob.piece(start, PIECE, len)).filter(|end| *end > start)?;
            let piece = buffer.get_mut(..end - start)?;
            entry.read(start as u64, piece)?;
            blob.settle_piece(piece, start, region).ok()?;
            room.write(offset + start as u64, piece).then_some(())?;
            start = end;
        }
        room.write(offset + table_at, &table).then_some(())?;
        entry.take(&rest);
        entry.take(&last);
        entry.ends_as_kept().then_some(())?;
        Self::of(blob, (offset, len as u64, origins), plan, region, room).ok()
    }

    /// Describes `blob`, whose code of `len` bytes lies at `offset`, followed by a table of `origins` entries.
    fn of(
        mut blob: Blob,
        (offset, len, origins): (u64, u64, u64),
        plan: &Plan,
        region: u64,
        room: &CodeRoom,
    ) -> Result<Self, String> {
        let jumps = Jumps::new(plan, &blob)?;
        let writing = room.add(&jumps.for_writing()).ok_or("no room for more code")?;
        let uncounted = uncounted(plan, &blob);
        // These thousands of small allocations are not needed any more.
        (blob.patches, blob.references, blob.origins) = (Vec::new(), Vec::new(), Vec::new());
        let signal_return = plan.signal_return;
        let roots = RefCell::default();
        Ok(Self { blob, len, region, jumps, uncounted, roots, offset, writing, origins, signal_return })
    }

    /// Returns the bytes that trampolines and table take, in whole pages.
    pub(crate) fn size(&self) -> u64 {
        (self.table_at() + 8 * self.origins).next_multiple_of(4096)
    }

    fn table_at(&self) -> u64 {
        self.len.next_multiple_of(8)
    }

    /// Returns the initial words of the file's roots in an image where `first` records are assigned to other files.
    ///
    /// # Errors
    /// The errors of [`Blob::roots`].
    pub(crate) fn roots(&self, first: u64) -> Result<Arc<Runs>, AssembleError> {
        // The words depend on `first` alone.
        if let Some(known) = self.roots.borrow().get(&first) {
            return Ok(Arc::clone(known));
        }
        let mut words = self.blob.roots(self.region, first)?;
        // The launcher sets the first window of a context when a thread asks it about the context. These sites tell no
        // contexts apart, so no thread asks, and their roots begin with a window at the first call.
        let unasked = (0u64..).zip(&self.blob.sites).filter(|(_, s)| s.offset.is_none() && s.results && !s.vdso);
        words.extend(unasked.map(|(i, _)| (self.region + i * NODE_SIZE - IMAGE + node::WINDOW_AT, 1)));
        // If there are two words for one place, which are now adjacent, the second one holds.
        words.sort_by_key(|(at, _)| *at);
        words.dedup_by(|second, first| (second.0 == first.0).then(|| first.1 = second.1).is_some());
        let roots = Arc::new(Runs::new(words));
        let mut known = self.roots.borrow_mut();
        if known.len() < MOST_ROOTS {
            known.insert(first, Arc::clone(&roots));
        }
        Ok(roots)
    }

    /// Returns the place where a thread that is `bytes` behind the code's start would be without our code, as a
    /// distance from that start; `None` if it depends on the thread. `room` is the shared memory in which the code
    /// lies.
    pub(crate) fn stands_for(&self, room: &CodeRoom, bytes: u64) -> Option<i64> {
        let entry = |n: u64| room.global().get(self.offset + self.table_at() + 8 * n);
        let (mut first, mut end) = (0, self.origins);
        while first < end {
            let middle = first.midpoint(end);
            match u64::from(entry(middle) as u32) <= bytes {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        let value = (entry(first.checked_sub(1).filter(|_| bytes < self.len)?) >> 32) as i32;
        (![code::IN_RCX, code::IN_SLOT, code::IN_SIGNAL].contains(&value)).then_some(i64::from(value))
    }

    /// Tells unwinders in the process with image `area` which program code corresponds to this code, mapped at `at`. If
    /// the table in the image has no room, unwinders find nothing.
    pub(crate) fn announce(&self, area: &Area, at: u64) {
        if self.origins != 0 {
            announce(area, at..at + self.len, (at + self.table_at(), self.origins));
        }
        if let Some(start) = self.signal_return {
            // Unwinders look up the byte before a return address.
            let start = at.wrapping_add_signed(-self.blob.delta).wrapping_add(start);
            announce(area, start - 1..start + SIGNAL_RETURN_LEN, (IMAGE + image::SIGNAL_TABLE, 1));
        }
    }
}

/// Adds an entry to [`image::CODES`]: the code's range, and the address and length of its table.
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

/// Returns the number of sites in a file whose calls are not counted.
fn uncounted(plan: &Plan, blob: &Blob) -> usize {
    let refused = blob.refused.iter().filter(|r| r.what != Unhooked::Return);
    let addresses: HashSet<u64> = refused.map(|r| r.address).chain(plan.unplanned.iter().map(|u| u.address)).collect();
    addresses.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::cache::{Cache, Kind};
    use crate::inproc::monitor::shared::memory::Memory;
    use systoll_hooks::assemble::{Options, Origin, assemble};

    const KIND: Kind = Kind::Code;
    const DELTA: i64 = -(64 << 20);
    const REGION: u64 = IMAGE + image::ROOTS + (1 << 16);

    /// Returns the bytes of the C library that this process has mapped.
    fn c_library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
        let of_c = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libc."));
        std::fs::read(paths.find(of_c).expect("tests are linked dynamically")).unwrap()
    }

    /// Returns the plan and the code of the C library.
    fn made() -> (Plan, Blob) {
        let plan = systoll_hooks::plan::plan(&c_library()).unwrap();
        let options = Options { results: true, time: true, windows: true, ..Options::default() };
        let blob = assemble(&plan, &options, DELTA).unwrap();
        assert!(blob.code.len() > 2 * PIECE && !blob.code.len().is_multiple_of(PIECE));
        (plan, blob)
    }

    /// Returns the words of the memory that `code` lies in.
    fn words(room: &CodeRoom, code: &Code) -> Vec<u64> {
        (code.offset..code.offset + code.size()).step_by(8).map(|at| room.global().get(at)).collect()
    }

    #[test]
    fn kept_code_equals_the_stored_code() {
        let (dir, memory) = (tempfile::tempdir().unwrap(), Memory::new().unwrap());
        let (room, cache) = (memory.codes(), Cache::at(dir.path(), 1 << 26));
        let (plan, blob) = made();
        let key = Cache::key_named("a");
        assert!(cache.put(KIND, &key, &blob.to_bytes()));
        let entry = || cache.entry(KIND, &key);
        let kept = Code::kept(entry().unwrap(), DELTA, &plan, REGION, room).unwrap();
        let stored = Code::store(blob, &plan, REGION, room).unwrap();
        assert_eq!(words(room, &kept), words(room, &stored));
        assert_eq!((kept.len, kept.origins, kept.uncounted), (stored.len, stored.origins, stored.uncounted));
        assert_eq!(kept.blob, stored.blob);
        assert!(Code::kept(entry().unwrap(), DELTA + 4096, &plan, REGION, room).is_none());
        assert!(entry().is_some(), "it is good at its own distance");
    }

    #[test]
    fn origins_of_code_match_its_blob() {
        let memory = Memory::new().unwrap();
        let (plan, blob) = made();
        let origins = blob.origins.clone();
        let code = Code::store(blob, &plan, REGION, memory.codes()).unwrap();
        let stands_for = |at: u32| code.stands_for(memory.codes(), u64::from(at));
        for (range, origin) in &origins {
            let wanted = match origin {
                Origin::Address(address) => Some(*address as i64 - DELTA),
                Origin::InRcx | Origin::InSlot => None,
            };
            for at in [range.start, range.end - 1] {
                assert_eq!(stands_for(at), wanted, "{at:#x}");
            }
        }
        assert!(origins.len() > 1000 && stands_for(code.len as u32).is_none());
    }

    #[test]
    fn damaged_code_is_dropped() {
        let memory = Memory::new().unwrap();
        let (plan, blob) = made();
        let bytes = blob.to_bytes();
        for place in [0, PIECE, blob.code.len() - 1, blob.code.len() + 2, bytes.len() - 1, bytes.len() + 3] {
            let dir = tempfile::tempdir().unwrap();
            let (cache, key) = (Cache::at(dir.path(), 1 << 26), Cache::key_named("a"));
            assert!(cache.put(KIND, &key, &bytes));
            let entries = std::fs::read_dir(dir.path().join("systoll")).unwrap().map(|entry| entry.unwrap().path());
            let file = entries.into_iter().find(|path| !path.ends_with("secret")).unwrap();
            let mut damaged = std::fs::read(&file).unwrap();
            damaged[place] ^= 1;
            std::fs::write(&file, damaged).unwrap();
            let kept = Code::kept(cache.entry(KIND, &key).unwrap(), DELTA, &plan, REGION, memory.codes());
            assert!(kept.is_none(), "{place}");
        }
    }
}
