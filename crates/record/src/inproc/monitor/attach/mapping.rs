//! Maps the shared memory into a stopped process, and unmaps it again.

use crate::inproc::monitor::attach::errands::{Errands, NotMade, Word, checked};
use crate::inproc::monitor::attach::stop_all::Stopped;
use crate::inproc::monitor::exec::bootstrap::Mapping;
use crate::inproc::monitor::exec::hand_over::{self, CONTROL, CONTROL_HEADER, DATA, MESSAGE, VECTOR};
use crate::inproc::monitor::shared::maps::Maps;
use crate::inproc::monitor::shared::peer::take_descriptor;
use crate::inproc::monitor::shared::remote::Mem;
use crate::tracee;
use std::fs::File;
use std::ops::Range;
use systoll_hooks::layout::{IMAGE, image};

/// Offsets in the errand's data of a pair of descriptors and of a `struct timeval`; those of a message follow
/// ([`hand_over::MESSAGE`]).
const FDS: u64 = 0;
const TIME: u64 = 16;
/// Two descriptors of -1, the initial value: calls with them fail if no socket could be made.
const NO_FDS: [u8; 8] = [0xff; 8];
/// Ranges that one errand unmaps, at most.
const AT_ONCE: usize = 32;
/// Time for which the process waits to be handed files, microseconds.
const PATIENCE_US: u64 = 500_000;

/// A process whose threads are all stopped.
#[derive(Clone, Copy)]
pub(crate) struct Process<'a> {
    pub(crate) pid: i32,
    pub(crate) threads: &'a [Stopped],
    pub(crate) mem: &'a Mem,
    pub(crate) maps: &'a Maps,
}

impl Process<'_> {
    /// Returns the thread that shall make calls: one that is in a system call, otherwise one outside of restartable
    /// sequences.
    ///
    /// # Errors
    /// If all threads may be in restartable sequences.
    fn caller(&self) -> Result<&Stopped, NotMade> {
        let waiting = self.threads.iter().find(|thread| thread.in_call());
        waiting.or_else(|| self.threads.iter().find(|thread| !self.is_in_sequence(thread))).ok_or(NotMade::Later)
    }

    /// Returns true if a thread may be in a restartable sequence of its program: the kernel would no longer abort the
    /// sequence once the thread has been elsewhere.
    fn is_in_sequence(&self, thread: &Stopped) -> bool {
        const SEQUENCE: u64 = 8;
        let Some(area) = tracee::rseq_area(thread.tid).filter(|area| area.at != 0) else { return false };
        let mut word = [0; 8];
        let read = self.mem.read(area.at + SEQUENCE, &mut word).is_ok();
        !read || ![0, IMAGE + image::RSEQ_CS].contains(&u64::from_le_bytes(word))
    }

    /// Hands the process the code file and the image file, and makes it map the ranges `code` of the first and `image`
    /// of the second.
    ///
    /// # Errors
    /// If the process has not mapped all of them. Then none is mapped, unless the error is [`NotMade::Away`].
    pub(crate) fn map(&self, files: &[File; 2], (code, image): (&[Mapping], &Mapping)) -> Result<(), NotMade> {
        let mut errands = Errands::new(self.maps)?;
        let fds = errands.data(FDS, NO_FDS.to_vec());
        let received = prepare(&mut errands, fds);
        let of = |n: u64| Word::At(received + 4 * n);
        let all: Vec<(&Mapping, Word)> = code.iter().map(|m| (m, of(0))).chain([(image, of(1))]).collect();
        let mut placed = Vec::new();
        for (mapping, fd) in &all {
            let [at, size, protection, flags, _, offset] = mapping.arguments(0).map(Word::Is);
            placed.push((errands.add(libc::SYS_mmap, [at, size, protection, flags, *fd, offset]), *mapping));
        }
        // Excludes our memory from core dumps. Nothing else lies between the two mappings.
        let (start, end) = (code.first().map_or(0, |m| m.range().start), code.get(1).map_or(0, |m| m.range().end));
        errands.plain(libc::SYS_madvise, [start, end - start, libc::MADV_DONTDUMP as u64, 0, 0, 0]);
        for fd in [Word::At(fds), Word::At(fds + 4), of(0), of(1)] {
            errands.add(libc::SYS_close, [fd; 6]);
        }
        let mut sent = false;
        let mut hand = || {
            let mut there = NO_FDS;
            if !sent && self.mem.read(fds, &mut there).is_ok() && there != NO_FDS {
                let ours = i32::from_le_bytes([there[4], there[5], there[6], there[7]]);
                // If the files can't be sent, the process's own wait for them times out.
                sent = take_descriptor(self.pid, ours).is_some_and(|socket| hand_over::send(&socket, files).is_ok());
            }
        };
        let results = errands.run(self.caller()?, (self.mem, self.maps), &mut hand)?;
        let at = |call: usize| results.get(call).copied().unwrap_or(0);
        let missing = placed.iter().find(|(call, mapping)| at(*call) as u64 != mapping.range().start);
        let Some((call, _)) = missing else { return Ok(()) };
        let why = why_not(&results, *call);
        let done = placed.iter().filter_map(|(call, mapping)| {
            let at = checked(at(*call)).ok()?;
            Some(at..at + (mapping.range().end - mapping.range().start))
        });
        self.unmap(&done.collect::<Vec<_>>())?;
        Err(NotMade::None(format!("it can't map what watching takes: {why}")))
    }

    /// Makes the process unmap these ranges.
    ///
    /// # Errors
    /// If it has not unmapped all of them.
    pub(crate) fn unmap(&self, ranges: &[Range<u64>]) -> Result<(), NotMade> {
        for some in ranges.chunks(AT_ONCE) {
            let mut errands = Errands::new(self.maps)?;
            for range in some {
                errands.plain(libc::SYS_munmap, [range.start, range.end - range.start, 0, 0, 0, 0]);
            }
            let results = errands.run(self.caller()?, (self.mem, self.maps), &mut || ())?;
            if let Some(why) = results.into_iter().find_map(|result| checked(result).err()) {
                return Err(NotMade::None(why));
            }
        }
        Ok(())
    }
}

/// Returns why call `missing` has mapped nothing, given the results of all calls: the first of them that failed is the
/// reason for the others.
fn why_not(results: &[i64], missing: usize) -> String {
    let failed = results.iter().take(missing + 1).find(|result| checked(**result).is_err());
    let result = match failed {
        // The process received no descriptors, for which it has no room.
        Some(result) if *result == -i64::from(libc::EBADF) => -i64::from(libc::EMFILE),
        Some(result) => *result,
        None => return "there is no room for it".into(),
    };
    checked(result).err().unwrap_or_default()
}

/// Adds calls that make a pair of sockets at `fds` and receive two descriptors over it. Returns the address at which
/// the received descriptors will be.
fn prepare(errands: &mut Errands, fds: u64) -> u64 {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let time = errands.data(TIME, words(&[0, PATIENCE_US]));
    let byte = errands.data(DATA, vec![0; 8]);
    let vector = errands.data(VECTOR, words(&[byte, 1]));
    let mut control = vec![0; CONTROL_HEADER];
    control.extend(NO_FDS);
    let control = errands.data(CONTROL, control);
    let message = errands.data(MESSAGE, words(&hand_over::message(vector, control)));
    let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
    errands.plain(libc::SYS_socketpair, [libc::AF_UNIX as u64, kind, 0, fds, 0, 0]);
    let (level, option) = (Word::Is(libc::SOL_SOCKET as u64), Word::Is(libc::SO_RCVTIMEO as u64));
    let theirs = Word::At(fds);
    errands.add(libc::SYS_setsockopt, [theirs, level, option, Word::Is(time), Word::Is(16), Word::Is(0)]);
    let flags = Word::Is(libc::MSG_CMSG_CLOEXEC as u64);
    errands.add(libc::SYS_recvmsg, [theirs, Word::Is(message), flags, Word::Is(0), Word::Is(0), Word::Is(0)]);
    control + CONTROL_HEADER as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_that_failed_is_the_reason() {
        let (full, bad, none) = (-i64::from(libc::EMFILE), -i64::from(libc::EBADF), -i64::from(libc::ENOMEM));
        let full_text = checked(full).unwrap_err();
        assert_eq!(why_not(&[full, bad, bad, bad], 3), full_text);
        assert_eq!(why_not(&[0, 0, 1, bad], 3), full_text, "descriptors that did not arrive");
        assert_eq!(why_not(&[0, 0, 1, none, bad], 3), checked(none).unwrap_err());
        assert_eq!(why_not(&[0, 0, 1, 4096], 3), "there is no room for it");
    }
}
