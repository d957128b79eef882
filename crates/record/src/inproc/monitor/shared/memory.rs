//! The memory shared with watched processes: a file for our code, and one for each image.
//!
//! ```text
//! code file   | global area | code …                  the launcher writes, targets read and run
//! image file  | header, trees, queue | slots          one program's processes write, the launcher too
//! ```
//!
//! Invariants: no target can write the code file in any way (it is sealed against that, and targets map it from a
//! read-only descriptor); no file changes its size; an image file is mapped by the launcher and by processes of one
//! program only. Everything here is accessed by checked offsets; what targets write is only ever read as plain numbers.

use crate::error::Error;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::shared::peer;
use crate::inproc::monitor::shared::slot_pages::{GoneSlot, KEPT, SlotPages};
use crate::inproc::monitor::shared::snapshot::Snapshot;
use crate::inproc::monitor::sys;
use foldhash::HashMap;
use nix::fcntl::SealFlag;
use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use systoll_hooks::assemble::number_roots;
use systoll_hooks::layout::{BLOBS_SIZE, global, image, is_record, may_hold_node, node, slot, slots_used};

/// Offset of the code in the code file, behind the global area.
pub(crate) const BLOBS: u64 = 1 << 17;
/// Mode that a program gives its image's file if it cannot open it.
pub(crate) const NOT_MAPPED: u32 = 0o400;
/// Largest distance, in bytes, of two words of a new image that are written by one call.
const GAP: u64 = 1024;
/// Bytes of an image beside its slots that are read, at most. Only the program itself could fill more.
const MOST_OF_TREES: u64 = 64 << 20;
/// Bytes behind the used part of an image that threads may use soon.
const NEAR: u64 = 1 << 18;

/// Bytes of an image that are mapped here at first: up to slot 4,096. The address space has room for 8,000 such images
/// at once, but only for a thousand whole ones.
const SEEN_AT_FIRST: u64 = image::SLOTS + 4096 * slot::SIZE;

const _: () = assert!(image::SIZE <= 1 << 37 && SEEN_AT_FIRST < image::SIZE && global::SIZE <= BLOBS);

/// A range of a file, mapped here.
pub(crate) struct Area {
    at: NonNull<c_void>,
    len: usize,
}

impl Area {
    fn map(file: &File, offset: u64, len: u64) -> std::io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| std::io::ErrorKind::InvalidInput)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, file.as_raw_fd(), offset as i64) };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        NonNull::new(at).map(|at| Self { at, len }).ok_or_else(|| std::io::ErrorKind::AddrInUse.into())
    }

    /// Returns the whole area as words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, `len` bytes long and lives as long as `self`; the file never shrinks.
        // Others write it at any time, which atomics allow.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len / 8) }
    }

    /// Returns the word at `offset`; zero if that is outside the area.
    pub(crate) fn get(&self, offset: u64) -> u64 {
        self.cell(offset).map_or(0, |c| c.load(Ordering::Acquire))
    }

    /// Returns the offset in every slot of the record in which a node counts; `None` if it counts nothing, or if the
    /// program has written something else there.
    pub(crate) fn record_of(&self, node: NodeAddr) -> Option<u64> {
        may_hold_node(node.offset()).then(|| self.get(node.offset() + node::RECORD)).filter(|at| is_record(*at))
    }

    /// Sets the word at `offset`; does nothing if that is outside the area.
    pub(crate) fn set(&self, offset: u64, value: u64) {
        if let Some(cell) = self.cell(offset) {
            cell.store(value, Ordering::Release);
        }
    }

    fn cell(&self, offset: u64) -> Option<&AtomicU64> {
        self.words().get(usize::try_from(offset / 8).ok()?)
    }

    /// Copies `bytes` to `offset`, after allocating all their pages at once if the kernel supports that. Returns false
    /// if there is no room.
    fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(start) =
            usize::try_from(offset).ok().filter(|o| o.checked_add(bytes.len()).is_some_and(|e| e <= self.len))
        else {
            return false;
        };
        // SAFETY: within the mapping.
        sys::populate(unsafe { self.at.as_ptr().byte_add(start) }, bytes.len());
        let (whole, rest) = bytes.as_chunks::<8>();
        let words = self.words().get(start / 8..).unwrap_or_default();
        words.iter().zip(whole).for_each(|(word, bytes)| word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed));
        if let Some(word) = words.get(whole.len()).filter(|_| !rest.is_empty()) {
            let bytes = std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0));
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        true
    }

    /// Returns true if no slot of this image was ever drawn, so that the program has only had its first thread.
    pub(crate) fn no_slot_drawn(&self) -> bool {
        self.get(image::NEXT_SLOT) == 0
    }

    /// Returns the half word at `offset`, a multiple of 4.
    pub(crate) fn half(&self, offset: u64) -> Option<&AtomicU32> {
        let index = usize::try_from(offset / 4).ok().filter(|i| *i < self.len / 4)?;
        // SAFETY: see `words`; the index is within the mapping. The protocol with the target's code uses mixed sizes.
        Some(unsafe { &*self.at.as_ptr().cast::<AtomicU32>().add(index) })
    }
}

// SAFETY: an area is plain memory that is accessed by atomics only, from any thread.
unsafe impl Send for Area {}
// SAFETY: an area is plain memory that is accessed by atomics only, from any thread.
unsafe impl Sync for Area {}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: our own mapping; all references into it borrow `self`.
        unsafe { libc::munmap(self.at.as_ptr(), self.len) };
    }
}

/// The code file, and the images that are still in use.
pub(crate) struct Memory {
    code: CodeRoom,
    /// The code file, opened read-only. Other processes get this descriptor.
    code_to_read: File,
    images: HashMap<ProgramId, Image>,
    next_image: u32,
}

/// The file of an image, and our mapping of it.
struct Image {
    file: File,
    /// The image as mapped here; `None` once no process maps it any more.
    area: Option<Area>,
    /// True if the kernel has confirmed that no process maps the image.
    deserted: bool,
    /// The pages of its slots.
    pages: SlotPages,
}

/// Room for code in the code file. Any thread can use it.
#[derive(Clone)]
pub(crate) struct CodeRoom {
    area: Arc<Area>,
    next: Arc<AtomicU64>,
}

impl CodeRoom {
    /// Stores code, page-aligned. Returns its offset in the file; `None` if there is no room.
    pub(crate) fn add(&self, code: &[u8]) -> Option<u64> {
        self.reserve(code.len() as u64).filter(|offset| self.write(*offset, code))
    }

    /// Reserves `len` bytes, page-aligned. Returns their offset in the file; `None` if there is no room.
    pub(crate) fn reserve(&self, len: u64) -> Option<u64> {
        let size = len.checked_next_multiple_of(4096)?;
        let behind = |at: u64| at.checked_add(size).filter(|end| *end <= BLOBS + BLOBS_SIZE);
        self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok()
    }

    /// Writes into reserved bytes, at a multiple of 8. Returns false if they lie outside the file.
    pub(crate) fn write(&self, offset: u64, code: &[u8]) -> bool {
        self.area.write(offset, code)
    }

    /// Returns the global area: the beginning of the file.
    pub(crate) fn global(&self) -> &Area {
        &self.area
    }
}

impl Memory {
    /// Creates a code file without code, and no image.
    ///
    /// # Errors
    /// If the kernel can't create it or can't seal it (before Linux 5.1).
    pub(crate) fn new() -> Result<Self, Error> {
        let make = || {
            let file = sys::memory_file(BLOBS + BLOBS_SIZE)?;
            file.write_all_at(&number_roots(), global::NUMBER_ROOTS)?;
            // Map the file first: the seal allows existing writable mappings, but no new ones.
            let area = Arc::new(Area::map(&file, 0, BLOBS + BLOBS_SIZE)?);
            sys::seal(&file, sys::FIXED_SIZE | SealFlag::F_SEAL_FUTURE_WRITE | SealFlag::F_SEAL_SEAL)?;
            let code_to_read = File::open(own_path(&file))?;
            Ok((CodeRoom { area, next: Arc::new(AtomicU64::new(BLOBS)) }, code_to_read))
        };
        let made = make().map_err(|e: std::io::Error| Error::own("can't share memory with programs", e));
        made.map(|(code, code_to_read)| Self { code, code_to_read, images: HashMap::default(), next_image: 1 })
    }

    /// Returns the global area of the code file.
    pub(crate) fn global(&self) -> &Area {
        self.code.global()
    }

    /// Returns the room for code in the code file.
    pub(crate) fn codes(&self) -> &CodeRoom {
        &self.code
    }

    /// Returns the metadata of the code file.
    ///
    /// # Errors
    /// If the kernel can't tell.
    pub(crate) fn metadata(&self) -> std::io::Result<std::fs::Metadata> {
        self.code_to_read.metadata()
    }

    /// Returns the paths by which processes like this one open the code file, to read it, and an image's file.
    pub(crate) fn paths(&self, id: ProgramId) -> Option<[String; 2]> {
        let path = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Some([path(&self.code_to_read), path(&self.images.get(&id)?.file)])
    }

    /// Returns the code file, to be read, and an image's file, for another process. Both are opened anew, so that their
    /// positions are independent of ours.
    pub(crate) fn to_hand_over(&self, id: ProgramId) -> Option<[File; 2]> {
        let image = &self.images.get(&id)?.file;
        let again = File::options().read(true).write(true).open(own_path(image)).ok()?;
        Some([File::open(own_path(&self.code_to_read)).ok()?, again])
    }

    /// Creates an image of zeroes. Returns its id.
    pub(crate) fn new_image(&mut self) -> Option<ProgramId> {
        let file = sys::memory_file(image::SIZE).ok()?;
        self.adopt(file)
    }

    /// Makes an image of `file`, which another process has made and which is empty. Returns its id.
    pub(crate) fn adopt_image(&mut self, file: File) -> Option<ProgramId> {
        file.set_len(image::SIZE).ok()?;
        self.adopt(file)
    }

    fn adopt(&mut self, file: File) -> Option<ProgramId> {
        sys::seal(&file, sys::FIXED_SIZE).ok()?;
        // The process that made the file may have written to it before it was sealed.
        (file.metadata().ok()?.len() == image::SIZE).then_some(())?;
        let area = Some(Area::map(&file, 0, SEEN_AT_FIRST).ok()?);
        let id = ProgramId(self.next_image);
        self.next_image = id.0.checked_add(1)?;
        self.images.insert(id, Image { file, area, deserted: false, pages: SlotPages::default() });
        Some(id)
    }

    /// Maps all slots of an image up to one that a thread uses, or may use soon.
    pub(crate) fn see_slot(&mut self, thread: SlotRef) {
        let Some(image) = self.images.get_mut(&thread.program) else { return };
        let end = thread.offset().saturating_add(slot::SIZE);
        if end <= image::SIZE && image.area.as_ref().is_some_and(|area| (area.len as u64) < end) {
            // If there is no room for the mapping, the thread waits in vain, which is reported.
            image.area = Area::map(&image.file, 0, image::SIZE).ok().or(image.area.take());
        }
    }

    pub(crate) fn image(&self, id: ProgramId) -> Option<&Area> {
        self.images.get(&id)?.area.as_ref()
    }

    fn file(&self, id: ProgramId) -> Option<&File> {
        self.images.get(&id).map(|image| &image.file)
    }

    /// Writes words of an image through its file, because mapping pages in costs more. Returns false if there is no
    /// memory, or if another process has sealed the file.
    #[must_use]
    pub(crate) fn write(&self, id: ProgramId, words: &Runs) -> bool {
        self.file(id).is_some_and(|file| words.0.iter().all(|(at, bytes)| file.write_all_at(bytes, *at).is_ok()))
    }

    /// Frees an image's memory.
    pub(crate) fn free_image(&mut self, id: ProgramId) {
        if let Some(Image { file, area, .. }) = self.images.remove(&id) {
            // Unmap the area first, or the kernel would search this mapping for its pages. A process that was left
            // alone may still map it.
            drop(area);
            sys::punch_hole(&file, 0, image::SIZE);
        }
    }

    /// Returns true if another process has sealed an image, so that we can't write to it or ask about it: its counts
    /// can't be trusted.
    pub(crate) fn is_sealed_off(&self, id: ProgramId) -> bool {
        // A deserted image was sealed by the launcher.
        self.images.get(&id).is_some_and(|image| !image.deserted && sys::forbids_writing(&image.file))
    }

    /// Returns true if descriptor `fd` of process `pid` is the one by which the file of image `id` was taken over.
    pub(crate) fn is_file_of(&self, id: ProgramId, pid: i32, fd: i32) -> bool {
        self.file(id).is_some_and(|file| peer::same_file(file, pid, fd))
    }

    /// Returns true if a new program has reported that it could not map the shared memory (`bootstrap`).
    pub(crate) fn could_not_be_mapped(&self, id: ProgramId) -> bool {
        let Some(Image { file, .. }) = self.images.get(&id) else { return false };
        self.word(image::NOT_MAPPED, id) != 0
            || file.metadata().is_ok_and(|m| m.permissions().mode() & 0o7777 == NOT_MAPPED)
    }

    /// Returns an image's header.
    pub(crate) fn header(&self, id: ProgramId) -> Snapshot {
        let mut bytes = vec![0; image::HEEDED as usize];
        let there = self.read(0, id, &mut bytes);
        Snapshot::of(there.then_some((0, bytes)).into_iter().collect())
    }

    /// Returns the contents of an image beside its slots, by offset.
    pub(crate) fn trees(&self, id: ProgramId) -> Vec<(u64, Vec<u8>)> {
        self.data(id, 0..image::SLOTS, MOST_OF_TREES)
    }

    /// Copies bytes of an image from an offset on. Returns false if the image ends before.
    pub(crate) fn read(&self, at: u64, id: ProgramId, to: &mut [u8]) -> bool {
        self.file(id).is_some_and(|file| file.read_exact_at(to, at).is_ok())
    }

    /// Returns `count` words of an image from an offset on; none if there are fewer.
    fn words(&self, at: u64, id: ProgramId, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; 8 * count];
        let there = self.read(at, id, &mut bytes);
        let words = bytes.as_chunks::<8>().0.iter().filter(|_| there);
        words.map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// Returns the word at an offset of an image; zero if there is none.
    pub(crate) fn word(&self, at: u64, id: ProgramId) -> u64 {
        let mut word = [0; 8];
        if self.read(at, id, &mut word) { u64::from_le_bytes(word) } else { 0 }
    }

    /// Returns the counts in a slot so far.
    pub(crate) fn slot(&self, thread: SlotRef) -> Snapshot {
        Snapshot::of(self.counts(thread, u64::MAX))
    }

    /// Returns the contents of a slot except windows, as bytes by offset; at most `most` bytes.
    pub(crate) fn counts(&self, thread: SlotRef, most: u64) -> Vec<(u64, Vec<u8>)> {
        let start = thread.offset();
        self.data(thread.program, start..start + slot::RINGS, most)
    }

    /// Returns the identity of a slot's thread; all zero if no thread has the slot. Reading it allocates no page.
    pub(crate) fn head(&self, thread: SlotRef) -> Head {
        Head::new(&self.words(thread.offset() + slot::SELF, thread.program, Head::WORDS))
    }

    /// Returns the state of a thread's hand-shake. Reading it allocates no page: a program may claim as many slots as there
    /// are.
    pub(crate) fn state(&self, thread: SlotRef) -> u32 {
        self.word(thread.offset() + slot::STATE, thread.program) as u32
    }

    /// Returns the number of a program's slots that may be in use: the first ones.
    pub(crate) fn slots_drawn(&self, id: ProgramId) -> u64 {
        let (drawn, given) = self.image(id).map_or((0, 0), |a| (a.get(image::NEXT_SLOT), a.get(image::GIVEN)));
        slots_used(drawn, given)
    }

    /// Returns the number of a program's slots that may be in use, for an image that may be deserted.
    pub(crate) fn slots_drawn_at_last(&self, id: ProgramId) -> u64 {
        slots_used(self.word(image::NEXT_SLOT, id), self.word(image::GIVEN, id))
    }

    /// Returns the processor time of a thread, by its own clock, when it began to ask, ns; `None` if it could not read
    /// the clock.
    pub(crate) fn asked_from(&self, thread: SlotRef) -> Option<u64> {
        let area = self.image(thread.program)?;
        let at = thread.offset() + slot::ASKED_FROM;
        let ns = area.get(at).saturating_mul(1_000_000_000).saturating_add(area.get(at + 8));
        (ns > 1).then_some(ns)
    }

    /// Returns the cycles that a thread has spent on writing windows.
    pub(crate) fn written_before(&self, thread: SlotRef) -> u64 {
        self.image(thread.program).map_or(0, |area| area.get(thread.offset() + slot::RING_CYCLES))
    }

    /// Returns the time that a thread has spent on earlier questions, ns.
    pub(crate) fn asked_before(&self, thread: SlotRef) -> u64 {
        self.image(thread.program).map_or(0, |area| area.get(thread.offset() + slot::ASKED_NS))
    }

    /// Returns the memory of a slot whose thread is gone, if it is mapped here.
    pub(crate) fn gone(&self, thread: SlotRef) -> Option<GoneSlot<'_>> {
        let image = self.images.get(&thread.program)?;
        let at = thread.offset()..thread.offset() + slot::SIZE;
        image
            .pages
            .gone((&image.file, image.area.as_ref()?.words()), at, |at| self.data_ranges(thread.program, at).collect())
    }

    /// Zeroes a slot whose thread is gone.
    pub(crate) fn clean_slot(&self, thread: SlotRef) {
        match (self.gone(thread), self.file(thread.program)) {
            (Some(slot), _) => slot.clean(),
            (None, Some(file)) => sys::punch_hole(file, thread.offset(), slot::SIZE),
            (None, None) => {}
        }
    }

    /// Returns the contents of a slot, by offset in the image; at most `most` bytes.
    pub(crate) fn slot_data(&self, thread: SlotRef, most: u64) -> Vec<(u64, Vec<u8>)> {
        let start = thread.offset();
        self.data(thread.program, start..start + slot::SIZE, most)
    }

    fn data(&self, id: ProgramId, within: Range<u64>, most: u64) -> Vec<(u64, Vec<u8>)> {
        let (mut left, mut ranges) = (most, Vec::new());
        let Some(file) = self.file(id) else { return ranges };
        for range in self.data_ranges(id, within) {
            let mut bytes = vec![0; (range.end - range.start).min(left) as usize];
            if bytes.is_empty() || file.read_exact_at(&mut bytes, range.start).is_err() {
                break;
            }
            left -= bytes.len() as u64;
            ranges.push((range.start, bytes));
        }
        ranges
    }

    /// Returns the ranges within `within` in which an image has memory.
    fn data_ranges(&self, id: ProgramId, within: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let (file, mut at, end) = (self.file(id), within.start, within.end);
        std::iter::from_fn(move || {
            let (from, to) = sys::data_range(file?, at).filter(|(from, _)| *from < end)?;
            at = to;
            Some(from..to.min(end))
        })
    }

    /// Returns the whole pages of an image that its threads neither use now nor will use soon. `idle` is the part of
    /// each slot between the records of contexts and the records of roots. The last slot is unused as long as nothing
    /// was counted there.
    pub(crate) fn unused(&self, id: ProgramId, idle: Range<u64>) -> Vec<Range<u64>> {
        let trees = self.data_ranges(id, 0..image::SLOTS).map(|r| r.start..r.end.saturating_add(NEAR));
        let last = image::SLOTS + (image::SLOT_COUNT - 1) * slot::SIZE;
        let owned = self.data_ranges(id, image::SLOTS..image::SIZE).flat_map(|r| {
            let index = |at: u64| (at - image::SLOTS) / slot::SIZE;
            index(r.start)..=index(r.end - 1)
        });
        let counted = |n: &u64| {
            *n + 1 < image::SLOT_COUNT || self.data_ranges(id, last + slot::RECORDS..image::SIZE).next().is_some()
        };
        let slots = owned.filter(counted).map(|n| image::SLOTS + n * slot::SIZE).flat_map(|start| {
            let behind = (idle.start + KEPT).min(slot::SIZE);
            [start..start + behind, start + idle.end.saturating_sub(KEPT).max(behind)..start + slot::SIZE]
        });
        gaps(trees.chain(slots), image::SIZE)
    }

    /// Returns true if no other process maps an image any more; then none ever will again. Returns `None` if the
    /// program has sealed the image itself, so that the kernel can't be asked.
    ///
    /// # Errors
    /// If the file can't be mapped again after the check.
    pub(crate) fn is_deserted(&mut self, id: ProgramId) -> std::io::Result<Option<bool>> {
        let Some(image) = self.images.get_mut(&id) else { return Ok(Some(true)) };
        // The kernel refuses to seal a file against writing while it is mapped writable, so our own mapping must go
        // before we ask.
        if image.area.is_none() {
            return Ok(Some(true));
        }
        if sys::forbids_writing(&image.file) {
            return Ok(None);
        }
        let len = image.area.take().map_or(SEEN_AT_FIRST, |area| area.len as u64);
        if sys::seal(&image.file, SealFlag::F_SEAL_WRITE).is_ok() {
            image.deserted = true;
            return Ok(Some(true));
        }
        image.area = Some(Area::map(&image.file, 0, len)?);
        Ok(Some(false))
    }
}

fn own_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Returns the gaps that ascending ranges leave in the bytes up to `end`, in whole pages.
fn gaps(used: impl Iterator<Item = Range<u64>>, end: u64) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut at: u64 = 0;
    for range in used.chain(std::iter::once(end..end)) {
        let gap = at.next_multiple_of(4096)..range.start & !4095;
        if !gap.is_empty() {
            gaps.push(gap);
        }
        at = at.max(range.end);
    }
    gaps
}

/// Words of an image as bytes; nearby words form one run, with zeroes between them.
#[derive(Clone, Debug)]
pub(crate) struct Runs(Vec<(u64, Vec<u8>)>);

impl Runs {
    /// Creates one run of contiguous bytes.
    pub(crate) fn of(at: u64, bytes: Vec<u8>) -> Self {
        Self(vec![(at, bytes)])
    }

    /// Creates runs from (offset, word) pairs, mostly ascending, for memory that was not written before.
    pub(crate) fn new(words: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, word) in words.into_iter().filter(|(at, _)| at + 8 <= image::SIZE) {
            let end = runs.last().map_or(0, |(start, bytes)| start + bytes.len() as u64);
            if runs.is_empty() || at < end || at - end > GAP {
                runs.push((at, Vec::new()));
            }
            if let Some((start, bytes)) = runs.last_mut() {
                bytes.resize((at - *start) as usize, 0);
                bytes.extend(word.to_le_bytes());
            }
        }
        Self(runs)
    }

    /// Sets words that lie within the runs.
    pub(crate) fn set(&mut self, words: impl IntoIterator<Item = (u64, u64)>) {
        for (at, word) in words {
            let run = self.0.iter_mut().rfind(|(start, _)| *start <= at);
            let place = run.and_then(|(start, bytes)| bytes.get_mut((at - *start) as usize..)?.first_chunk_mut());
            if let Some(place) = place {
                *place = word.to_le_bytes();
            }
        }
    }
}

/// Identity of a slot's thread, according to the slot's words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// Address of the slot itself; zero if no thread has it.
    pub(crate) own: u64,
    /// Slot of the thread's maker, if known.
    pub(crate) parent: Option<u64>,
    /// True if the thread is about to end, or was never made.
    pub(crate) leaving: bool,
    /// Thread id as the thread's maker noted it; zero if unknown, as for the next two fields.
    pub(crate) made_as: u32,
    pub(crate) tid: u32,
    pub(crate) pid: u32,
}

impl Head {
    /// Reads the words of a slot from [`slot::SELF`] on.
    pub(crate) fn new(words: &[u64]) -> Self {
        let word = |offset: u64| words.get(((offset - slot::SELF) / 8) as usize).copied().unwrap_or(0);
        Self {
            own: word(slot::SELF),
            parent: systoll_hooks::layout::slot_index(word(slot::PARENT)),
            leaving: word(slot::LEAVING) != 0,
            made_as: word(slot::MADE_AS) as u32,
            tid: word(slot::TID) as u32,
            pid: word(slot::PID) as u32,
        }
    }

    /// Number of words that [`Head::new`] reads.
    pub(crate) const WORDS: usize = ((slot::CLEARED - slot::SELF) / 8) as usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_whole_unused_pages() {
        let left = |used: &[Range<u64>]| -> Vec<_> {
            gaps(used.iter().cloned(), 0x8000).into_iter().map(|r| (r.start, r.end)).collect()
        };
        assert_eq!(left(&[]), [(0, 0x8000)]);
        assert_eq!(left(&[0x10..0x1001, 0x4fff..0x5000]), [(0x2000, 0x4000), (0x5000, 0x8000)]);
        assert_eq!(left(&[0..0x3000, 0x1000..0x2000, 0x2fff..0x4001]), [(0x5000, 0x8000)]);
        assert_eq!(left(&[0..0x1000, 0x1800..0x9000]), [(0x1000, 0x1000); 0]);
    }
}
