//! Windows that threads have written by themselves, as calls of the table's windows.

use crate::arguments::argument_data;
use crate::windows::RawCall;
use std::collections::HashMap;
use std::sync::Arc;
use systoll_hooks::assemble::{Piece, Read, WrittenCall};
use systoll_hooks::layout::capture::{self, FdsChanged};
use systoll_model::{Moment, Signature};

/// How the kernel's name of a file ends that is no longer in its folder.
const DELETED: &str = " (deleted)";
/// Names end here, as the kernel's do.
const LONGEST_NAME: usize = libc::PATH_MAX as usize;

/// What descriptors of one thread are behind, from call to call of a window.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<i32, Arc<str>>,
    /// Whether other threads may give descriptors another meaning at any time.
    shared: bool,
}

impl Names {
    /// None is known. `shared`: of a process that has several threads.
    pub(crate) fn new(shared: bool) -> Self {
        Self { known: HashMap::new(), shared }
    }

    /// What the descriptor of a call was behind before it, and what is known after it.
    pub(crate) fn of(&mut self, call: &WrittenCall, signature: &Signature) -> Option<Arc<str>> {
        let argument = signature.fd_arg();
        let fd = argument.and_then(|at| call.args.get(at)).map(|word| *word as i32);
        let written = call.pieces.iter().find(|p| p.read == Read::Name && Some(usize::from(p.argument)) == argument);
        let name = match written {
            Some(piece) => Some(Arc::from(String::from_utf8_lossy(&piece.bytes))),
            None if self.shared => None,
            None => fd.and_then(|fd| self.known.get(&fd)).cloned(),
        };
        if let (Some(fd), Some(name)) = (fd, &name) {
            self.known.insert(fd, Arc::clone(name));
        }
        match capture::fds_changed(signature, &call.args, call.result) {
            FdsChanged::None => {}
            FdsChanged::One(fd) => {
                let follows =
                    if call.names { name.as_deref().and_then(|of| named_by(call, signature, of)) } else { None };
                match follows {
                    Some(name) => drop(self.known.insert(fd, name)),
                    None => drop(self.known.remove(&fd)),
                }
            }
            FdsChanged::Any => self.known.clear(),
        }
        name
    }
}

/// What the descriptor that a call returned is behind, where that follows from what its first argument is behind.
fn named_by(call: &WrittenCall, signature: &Signature, first: &str) -> Option<Arc<str>> {
    if signature.name != "openat" {
        return Some(Arc::from(first));
    }
    let path = call.pieces.iter().find(|p| p.read == Read::Entry && p.argument == 1)?;
    let name = path.bytes.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    let folder = Some(first).filter(|f| f.starts_with('/') && !f.ends_with(DELETED))?;
    let whole = format!("{}/{}", folder.trim_end_matches('/'), String::from_utf8_lossy(name));
    (whole.len() < LONGEST_NAME).then(|| Arc::from(whole))
}

/// What a call's arguments pointed to, at most `bound` bytes each.
pub(crate) fn data(call: &WrittenCall, signature: &Signature, bound: usize) -> Vec<systoll_model::ArgData> {
    let memory = |read: Read| move |address: u64, buffer: &mut [u8]| copied(call, read, address, buffer);
    let mut data = argument_data(signature, Moment::Entry, &call.args, None, bound, &memory(Read::Entry));
    if call.result.is_some() {
        let after = memory(Read::Return);
        data.extend(argument_data(signature, Moment::Exit, &call.args, call.result, bound, &after));
    }
    data
}

/// Fills a buffer with what was copied from an address on; how much of it there is.
fn copied(call: &WrittenCall, read: Read, address: u64, buffer: &mut [u8]) -> usize {
    // Of pieces that hold the place the longest: one may have been cut short.
    let pieces = call.pieces.iter().filter(|p| p.read == read);
    let bytes = pieces.filter_map(|p| rest(call, p, address)).max_by_key(|rest| rest.len()).unwrap_or_default();
    let n = bytes.len().min(buffer.len());
    if let Some((to, from)) = buffer.get_mut(..n).zip(bytes.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// What of a piece lies at an address and behind it.
fn rest<'p>(call: &WrittenCall, piece: &'p Piece, address: u64) -> Option<&'p [u8]> {
    let start = call.args.get(usize::from(piece.argument))?;
    let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
    piece.bytes.get(offset..).filter(|rest| !rest.is_empty())
}

/// When a written call was, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) entry_ns: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) waited_ns: Option<u64>,
}

/// A written call of a row as a call of a window.
pub(crate) fn raw_call(
    row: u32,
    call: &WrittenCall,
    signature: Option<&Signature>,
    (times, fd, bound): (Times, Option<Arc<str>>, usize),
) -> RawCall {
    RawCall {
        row,
        nth: call.nth.max(1),
        args: call.args,
        data: signature.map_or_else(Vec::new, |s| data(call, s, bound)),
        fd,
        result: call.result,
        entry_ns: times.entry_ns,
        elapsed_ns: times.elapsed_ns,
        waited_ns: times.waited_ns,
        signals_before: 0,
        faults: call.faults,
        stack: None,
        stands_for: call.stands_for,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use systoll_hooks::assemble::written_calls;
    use systoll_hooks::layout::{look, ring};
    use systoll_model::Sysno;

    fn call(number: u32, args: [u64; 6], result: Option<i64>, pieces: Vec<Piece>) -> WrittenCall {
        WrittenCall {
            node: 0,
            nth: 1,
            args,
            number,
            time: 0,
            result,
            cycles: 0,
            waited: None,
            faults: None,
            after_gap: false,
            stands_for: 0,
            alone: false,
            names: false,
            pieces,
        }
    }

    fn piece(argument: u8, read: Read, bytes: &[u8]) -> Piece {
        Piece { argument, read, bytes: bytes.to_vec() }
    }

    #[test]
    fn what_was_copied_is_what_the_signature_says() {
        let read = Sysno(0).signature().unwrap();
        // More was copied than the call moved, and the name is none of its data.
        let pieces = vec![piece(0, Read::Name, b"/etc/passwd"), piece(1, Read::Return, b"rootxxxx")];
        let all = data(&call(0, [3, 0x7000, 100, 0, 0, 0], Some(4), pieces), read, 256);
        assert_eq!(
            all.iter().map(|d| (d.arg, d.at, &d.bytes[..], d.cut)).collect::<Vec<_>>(),
            [(1, Moment::Exit, &b"root"[..], false)]
        );
        let stat = Sysno(4).signature().unwrap();
        let pieces = vec![piece(0, Read::Entry, b"/etc\0more")];
        let all = data(&call(4, [0x7000, 0x8000, 0, 0, 0, 0], Some(-2), pieces), stat, 256);
        assert_eq!((all.len(), &all[0].bytes[..], all[0].cut), (1, &b"/etc"[..], false));
        // What could not be copied is not there.
        let all = data(&call(4, [0x7000, 0x8000, 0, 0, 0, 0], Some(-14), Vec::new()), stat, 256);
        assert_eq!((all.len(), &all[0].bytes[..], all[0].cut), (1, &b""[..], true));
    }

    #[test]
    fn a_name_holds_until_its_descriptor_may_be_another() {
        let (read, close) = (Sysno(0).signature().unwrap(), Sysno(3).signature().unwrap());
        let named = call(0, [3, 0, 0, 0, 0, 0], Some(0), vec![piece(0, Read::Name, b"/a")]);
        let (plain, closes) =
            (call(0, [3, 0, 0, 0, 0, 0], Some(0), vec![]), call(3, [3, 0, 0, 0, 0, 0], Some(0), vec![]));
        let mut names = Names::new(false);
        let seen = [
            names.of(&plain, read),
            names.of(&named, read),
            names.of(&plain, read),
            names.of(&closes, close),
            names.of(&plain, read),
        ];
        assert_eq!(
            seen.map(|n| n.as_deref().map(str::to_owned)),
            [None, Some("/a"), Some("/a"), Some("/a"), None].map(|n| n.map(str::to_owned))
        );
        let mut names = Names::new(true);
        assert!(names.of(&named, read).is_some() && names.of(&plain, read).is_none());
    }

    #[test]
    fn a_folder_s_name_holds_while_files_in_it_come_and_go() {
        let signature = |number| Sysno(number).signature().unwrap();
        let (read, open, close, rename) = (signature(0), signature(257), signature(3), signature(82));
        let opens = |result, pieces| call(257, [4, 0x7000, 0, 0, 0, 0], Some(result), pieces);
        let reads = |fd, pieces| call(0, [fd, 0, 0, 0, 0, 0], Some(0), pieces);
        let closes = |fd| call(3, [fd, 0, 0, 0, 0, 0], Some(0), vec![]);
        let mut names = Names::new(false);
        let mut seen = |call: &WrittenCall, signature| names.of(call, signature).as_deref().map(str::to_owned);
        assert_eq!(seen(&opens(5, vec![piece(0, Read::Name, b"/d")]), open).as_deref(), Some("/d"));
        assert_eq!(seen(&reads(5, vec![piece(0, Read::Name, b"/d/a")]), read).as_deref(), Some("/d/a"));
        assert_eq!(seen(&opens(-2, vec![]), open).as_deref(), Some("/d"));
        assert_eq!(seen(&reads(5, vec![]), read).as_deref(), Some("/d/a"));
        // Another file of the same number, though nobody has seen the first one closed.
        assert_eq!(seen(&opens(5, vec![]), open).as_deref(), Some("/d"));
        assert_eq!(seen(&reads(5, vec![]), read), None);
        assert_eq!(seen(&closes(4), close).as_deref(), Some("/d"));
        assert_eq!(seen(&opens(5, vec![]), open), None);
        // What is renamed is called otherwise, whatever it is.
        assert_eq!(seen(&reads(6, vec![piece(0, Read::Name, b"/e")]), read).as_deref(), Some("/e"));
        seen(&call(82, [0x7000, 0x8000, 0, 0, 0, 0], Some(0), vec![]), rename);
        assert_eq!(seen(&reads(6, vec![]), read), None);
    }

    #[test]
    fn names_follow_from_names() {
        let signature = |number| Sysno(number).signature().unwrap();
        let (read, dup, open) = (signature(0), signature(32), signature(257));
        let follows = |mut call: WrittenCall| {
            call.names = true;
            call
        };
        let opens = |folder, result, name: &[u8]| {
            follows(call(257, [folder, 0x7000, 0, 0, 0, 0], Some(result), vec![piece(1, Read::Entry, name)]))
        };
        let reads = |fd, pieces| call(0, [fd, 0, 0, 0, 0, 0], Some(0), pieces);
        let mut names = Names::new(false);
        let mut seen = |call: &WrittenCall, signature| names.of(call, signature).as_deref().map(str::to_owned);
        // Of a folder whose name is not known nothing follows.
        seen(&opens(4, 5, b"a\0more"), open);
        assert_eq!(seen(&reads(5, vec![]), read), None);
        seen(&reads(4, vec![piece(0, Read::Name, b"/")]), read);
        seen(&opens(4, 5, b"usr\0more"), open);
        seen(&opens(5, 6, b"lib\0"), open);
        assert_eq!(seen(&reads(6, vec![]), read).as_deref(), Some("/usr/lib"));
        seen(&follows(call(32, [6, 0, 0, 0, 0, 0], Some(7), vec![])), dup);
        assert_eq!(seen(&reads(7, vec![]), read).as_deref(), Some("/usr/lib"));
        seen(&call(32, [6, 0, 0, 0, 0, 0], Some(7), vec![]), dup);
        assert_eq!(seen(&reads(7, vec![]), read), None);
        // A folder that is gone, what is none, and a name that no path has room for.
        for (folder, name) in
            [(&b"/a (deleted)"[..], &b"b\0"[..]), (b"pipe:[1]", b"b\0"), (&[b'/'; 4096], b"b\0"), (b"/a", b"")]
        {
            seen(&reads(8, vec![piece(0, Read::Name, folder)]), read);
            let long = [b'b'; 4096];
            seen(&opens(8, 9, if folder.len() > 99 { &long } else { name }), open);
            assert_eq!(seen(&reads(9, vec![]), read), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_some_calls_or_none(seed in any::<u64>(), len in any::<u64>(), dense in any::<bool>()) {
            let mut random = systoll_model::Random::new(seed);
            let words: Vec<u64> = (0..ring::BUFFER / 8).map(|_| {
                let word = random.below(u64::MAX);
                if dense { word } else { (word % 512) | ((word >> 60) << 32) }
            }).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let calls = written_calls(&bytes, seed % ring::COUNT, len);
            prop_assert!(calls.len() as u64 <= look::CALLS.min(len));
            let mut names = Names::new(seed.is_multiple_of(2));
            for call in &calls {
                prop_assert!(call.pieces.iter().all(|p| p.bytes.len() as u64 <= ring::MOST && p.argument < 6));
                for number in [0, 1, 4, 16, 45, 54, 59, 232, 257, call.number] {
                    let Some(signature) = Sysno::made(number).signature() else { continue };
                    prop_assert!(data(call, signature, 256).iter().all(|d| d.bytes.len() <= 4096));
                    names.of(call, signature);
                }
            }
        }
    }
}
