//! Takes out of a process the jumps, code and memory that a killed systoll has left there.
//!
//! The process itself is the only source. Our memory is known by its name in `maps`. A jump is ours if it differs from
//! the program's file and leads into that memory.

use crate::error::Error;
use crate::inproc::monitor::attach::remove_hooks::{Ours, Written};
use crate::inproc::monitor::attach::target::{self, Refusal};
use crate::inproc::monitor::shared::maps::{FILE_NAME, Maps};
use crate::inproc::monitor::shared::remote::Mem;
use crate::procfs;
use nix::errno::Errno;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;
use systoll_binfile::maps::{Line, lines};
use systoll_files::Links;
use systoll_hooks::assemble::errand;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, GLOBAL, IMAGE, global, image};

/// First byte of a jump with a 32-bit distance.
const JUMP: u8 = 0xe9;
const JUMP_LEN: usize = 5;
const FILLING: u8 = 0x90;
/// Bytes of filling behind a jump, at most.
const MOST: usize = 64;
/// Bytes at a mapping's end where code of an errand may have been left.
const TAIL: usize = 4096;
/// Bytes of code that are searched for jumps, at most. In a process with more we refuse: a jump that was overlooked
/// would lead into unmapped memory.
const MOST_CODE: u64 = 1 << 30;
/// Number of further looks at a process whose mappings change meanwhile, and the pause before each.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Name of the kernel's mapping that holds code in every process and can't be read.
const VSYSCALL: &[u8] = b"[vsyscall]";

/// Takes out of process `pid` the jumps, code and memory that a killed systoll has left there. Returns false if there
/// was nothing.
///
/// # Errors
/// If it can't be taken out, or if a systoll watches the process.
pub fn clean(pid: i32) -> Result<bool, Error> {
    let refuse = |refusal: Refusal| Error::NotEntered {
        pid,
        name: procfs::comm(pid),
        reason: refusal.reason,
        advice: refusal.advice,
    };
    let denied = |e: std::io::Error| refuse(target::denied(pid, Errno::from_raw(e.raw_os_error().unwrap_or(0))));
    let maps = Maps::of(pid);
    if maps.all.is_empty() {
        return Err(match std::fs::exists(format!("/proc/{pid}")) {
            Ok(true) => refuse(target::denied(pid, Errno::EACCES)),
            _ => refuse(Refusal::new("there is no such process")),
        });
    }
    let mut looked = find_ours(pid, &maps, Mem::open(pid).map_err(denied)?);
    for _ in 0..LOOKS {
        if !matches!(looked, Err(Unseen { passing: true, .. })) {
            break;
        }
        // A mapping was gone when we read it, such as that of a library that was just unloaded.
        std::thread::sleep(PAUSE);
        looked = find_ours(pid, &Maps::of(pid), Mem::open(pid).map_err(denied)?);
    }
    let ours = looked.map_err(|unseen| refuse(Refusal::new(unseen.why)))?;
    let nothing = ours.near.is_empty() && ours.written.is_empty() && ours.errands.is_empty();
    if nothing && !target::is_entered(&maps) {
        return Ok(false);
    }
    match ours.take_out(&|| ()) {
        None => Err(refuse(Refusal::new("it has ended"))),
        Some(outcome) if outcome.clean => Ok(true),
        Some(outcome) if !outcome.restored => {
            Err(refuse(Refusal::new("it could not be stopped: nothing was taken out")))
        }
        Some(_) => Err(refuse(Refusal::new(
            "a thread of it may still come back to code of systoll's; its own code is as it was",
        ))),
    }
}

/// The reason why a process's code can't be searched.
struct Unseen {
    why: String,
    /// True if another look may succeed.
    passing: bool,
}

impl<T: Into<String>> From<T> for Unseen {
    fn from(why: T) -> Self {
        Self { why: why.into(), passing: false }
    }
}

fn is_ours(line: &Line<'_>) -> bool {
    line.path.starts_with(FILE_NAME)
}

/// Searches a process for the jumps, code and memory of systoll, and returns them.
fn find_ours(pid: i32, maps: &Maps, mem: Mem) -> Result<Ours, Unseen> {
    let word = |at: u64| {
        let mut bytes = [0; 8];
        mem.read(at, &mut bytes).map(|()| u64::from_le_bytes(bytes)).unwrap_or(0)
    };
    if word(IMAGE + image::NAME) == image::NAME_WORD {
        let (dead, owner) = (word(GLOBAL + global::DEAD) as u32, word(GLOBAL + global::OWNER) as u32);
        if dead == 0 && owner != 0 && owner & global::OWNER_DIED == 0 {
            return Err(format!("systoll watches it (its thread {owner})").into());
        }
    }
    let fixed = GLOBAL..BLOBS_AT + BLOBS_SIZE;
    let near: Vec<Range<u64>> = lines(&maps.text)
        .filter(|line| line.executable && is_ours(line) && !fixed.contains(&line.range.start))
        .map(|line| line.range.clone())
        .collect();
    let (mut written, mut errands, mut left) = (Vec::new(), Vec::new(), MOST_CODE);
    let is_code = |line: &Line<'_>| line.executable && !is_ours(line) && !line.shared && line.path != VSYSCALL;
    for line in lines(&maps.text).filter(is_code) {
        let range = &line.range;
        let size = range.end.saturating_sub(range.start);
        left = left.checked_sub(size).ok_or("it has more code than is looked through")?;
        let mut there = vec![0; size as usize];
        mem.read(range.start, &mut there)
            .map_err(|e| Unseen { why: format!("its code at {:#x} can't be read: {e}", range.start), passing: true })?;
        let jumps = jumps(&there, range.start, &near);
        let tail = there.len().saturating_sub(TAIL);
        let errand = errand::find(there.get(tail..).unwrap_or_default()).map(|at| at + tail);
        if jumps.is_empty() && errand.is_none() {
            continue;
        }
        let whole = original(pid, &line, there.len()).ok_or_else(|| {
            let path = String::from_utf8_lossy(line.path).into_owned();
            format!("{path}: what its code was is not known any more, as its file is not there")
        })?;
        if let Some((at, (new, was))) = errand.and_then(|at| Some((at, (there.get(at..)?, whole.get(at..)?)))) {
            errands.push(Written { at: range.start + at as u64, was: was.to_vec(), new: new.to_vec() });
        }
        written.extend(jumps.into_iter().filter_map(|at| written_at(&there, &whole, at, range.start)));
    }
    written.sort_by_key(|written: &Written| written.at);
    Ok(Ours { pid, mem, near, written, errands })
}

/// Returns the indexes in `code`, which lies at `start`, of the jumps that lead into one of the ranges.
fn jumps(code: &[u8], start: u64, into: &[Range<u64>]) -> Vec<usize> {
    let leads = |at: usize| {
        let distance = code.get(at + 1..at + JUMP_LEN).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        let next = start + (at + JUMP_LEN) as u64;
        distance.is_some_and(|distance| {
            let target = next.wrapping_add_signed(i64::from(i32::from_le_bytes(distance)));
            into.iter().any(|range| range.contains(&target))
        })
    };
    (0..code.len()).filter(|at| code.get(*at) == Some(&JUMP) && leads(*at)).collect()
}

/// Returns the bytes at index `at` of code that begins at `start`, where there is a jump, and those of the file; `None`
/// if they are the same.
fn written_at(there: &[u8], was: &[u8], at: usize, start: u64) -> Option<Written> {
    let filled = there.iter().skip(at + JUMP_LEN).take(MOST).take_while(|byte| **byte == FILLING).count();
    let range = at..(at + JUMP_LEN + filled).min(there.len());
    let (new, was) = (there.get(range.clone())?, was.get(range)?);
    // The program's file may have such a jump itself.
    (new != was).then(|| Written { at: start + at as u64, was: was.to_vec(), new: new.to_vec() })
}

/// Returns the first `len` bytes that the mapping's file has, from the mapping's offset on; `None` if the file can't be
/// opened or read.
fn original(pid: i32, line: &Line<'_>, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    if line.path == b"[vdso]" {
        // The vDSO is the same in all processes.
        let own = Maps::of(std::process::id() as i32);
        let here = lines(&own.text).find(|own| own.path == b"[vdso]")?.range.start;
        let mem = systoll_files::kernel("/proc/self/mem").ok()?;
        return mem.read_exact_at(&mut bytes, here).is_ok().then_some(bytes);
    }
    let path = String::from_utf8_lossy(line.path).into_owned();
    let range = format!("/proc/{pid}/map_files/{:x}-{:x}", line.range.start, line.range.end);
    let file = [range, format!("/proc/{pid}/root{path}")].into_iter().find_map(|path| {
        let (file, metadata) = systoll_files::open(path, Links::Follow).ok()?;
        (metadata.ino() == line.inode).then_some(file)
    })?;
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, line.offset + filled as u64) {
            // Bytes behind the file's end are zero in its last page.
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(_) => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_into_ours_is_found_and_taken_back_with_its_filling() {
        let was = [0x48, 0xc7, 0xc0, 1, 0, 0, 0, 0x0f, 0x05, 0xe9, 1, 0, 0, 0, 0x90];
        let mut there = was;
        // The jump leads to 0x1000 + 5 + 0x100.
        there[..7].copy_from_slice(&[0xe9, 0, 1, 0, 0, 0x90, 0x90]);
        let found = jumps(&there, 0x1000, std::slice::from_ref(&(0x1100..0x1200)));
        assert_eq!(found, [0]);
        let written = written_at(&there, &was, 0, 0x1000).unwrap();
        assert_eq!((written.at, &*written.was, written.new.len()), (0x1000, &was[..7], 7));
        assert!(written_at(&was, &was, 9, 0x1000).is_none());
    }
}
