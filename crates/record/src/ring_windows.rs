//! Turns the windows that threads write into their rings into calls of the table's windows.

use crate::arguments::{string, strings};
use crate::raw_window::RawCall;
use crate::request_windows::Receive;
use foldhash::{HashMap, HashMapExt};
use std::borrow::Cow;
use std::sync::Arc;
use systoll_hooks::layout::capture::{self, FdsChanged};
use systoll_hooks::layout::ring;
use systoll_hooks::ring_reader::{Piece, Read, WrittenCall};
use systoll_model::{ArgData, ArgKind, Moment, Question, Signature};

/// Ending of the name that the kernel gives a deleted file.
const DELETED: &str = " (deleted)";
/// Bytes of a descriptor's name, at most, as in the kernel.
const LONGEST_NAME: usize = libc::PATH_MAX as usize;
/// Bytes of a memory page.
const PAGE: u64 = 4096;
/// Index of the buffer among the arguments of calls that receive.
const BUFFER: u8 = 1;

/// The names of one thread's descriptors, kept from call to call of a window.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<i32, Arc<str>>,
    /// True if other threads may close or reuse descriptors at any time.
    shared: bool,
}

impl Names {
    /// Creates an empty set of names. `shared` is true if the process has several threads.
    pub(crate) fn new(shared: bool) -> Self {
        Self { known: HashMap::new(), shared }
    }

    /// Returns the name of a call's descriptor before the call, and updates the names by the call's effect.
    pub(crate) fn name_of(&mut self, call: &WrittenCall<'_>, signature: &Signature) -> Option<Arc<str>> {
        let argument = signature.fd_arg();
        let fd = argument.and_then(|at| call.args.get(at)).map(|word| *word as i32);
        let name = match written_name(call, argument) {
            Some(name) => Some(Arc::from(name)),
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

/// Returns what a written call may have received from a socket, with the bytes that its thread copied; `None` if the
/// call has not returned, or its bytes are missing, as they are of calls that receive into several buffers.
pub(crate) fn receive<'c>(
    call: &'c WrittenCall<'_>,
    signature: &'c Signature,
    is_socket: &'c dyn Fn() -> Option<bool>,
) -> Option<Receive<'c>> {
    let result = call.result?;
    let is_one = matches!(signature.name, "read" | "recvfrom");
    let is_copied = |p: &&Piece<'_>| is_one && p.read == Read::Return && p.argument == BUFFER;
    let bytes = call.pieces().find(is_copied).map(|piece| piece.bytes);
    (result <= 0 || bytes.is_some()).then_some(Receive { signature, args: &call.args, result, bytes, is_socket })
}

/// Returns the name that a thread wrote for a call's descriptor.
pub(crate) fn descriptor_name<'b>(call: &WrittenCall<'b>, signature: &Signature) -> Option<Cow<'b, str>> {
    written_name(call, signature.fd_arg())
}

/// Returns the name of the descriptor in an argument, if the thread wrote it beside the call.
fn written_name<'b>(call: &WrittenCall<'b>, argument: Option<usize>) -> Option<Cow<'b, str>> {
    let piece = call.pieces().find(|p| p.read == Read::Name && Some(usize::from(p.argument)) == argument)?;
    Some(String::from_utf8_lossy(piece.bytes))
}

/// Returns the name of the descriptor that a call returned, if it follows from the name of its first argument.
fn named_by(call: &WrittenCall<'_>, signature: &Signature, first: &str) -> Option<Arc<str>> {
    if signature.name != "openat" {
        return Some(Arc::from(first));
    }
    let path = call.pieces().find(|p| p.read == Read::Entry && p.argument == 1)?;
    let name = path.bytes.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    let folder = Some(first).filter(|f| f.starts_with('/') && !f.ends_with(DELETED))?;
    let whole = format!("{}/{}", folder.trim_end_matches('/'), String::from_utf8_lossy(name));
    (whole.len() < LONGEST_NAME).then(|| Arc::from(whole))
}

/// Returns the question that a call outside windows asked, see [`Question::of`]; at most `bound` bytes of an answer are
/// kept.
pub(crate) fn question<'b>(call: &WrittenCall<'b>, signature: &Signature, bound: usize) -> Option<Question<'b>> {
    let given = |arg: u8, at: Moment| {
        let (address, kind) = (*call.args.get(usize::from(arg))?, signature.arg_kind(arg.into(), &call.args));
        let there = address != 0 && kind.read_at(at);
        let (bytes, cut) = there.then(|| pointed_to(call, (signature, arg, kind), at, bound))??;
        (!cut).then_some(bytes)
    };
    let folder = written_name(call, signature.fd_arg());
    Question::by(signature, &call.args, given, folder.as_deref(), call.result)
}

/// Returns the data to which a call's arguments pointed, at most `bound` bytes each.
pub(crate) fn data(call: &WrittenCall<'_>, signature: &Signature, bound: usize) -> Vec<ArgData> {
    let at = |at: Moment| {
        signature.memory(at, &call.args).filter_map(move |(arg, kind)| {
            let (bytes, cut) = pointed_to(call, (signature, arg, kind), at, bound)?;
            Some(ArgData { arg, at, bytes: bytes.into_owned(), cut })
        })
    };
    at(Moment::Entry).chain(at(Moment::Exit)).collect()
}

/// Returns the data that an argument of a call pointed to, by its kind, and true if some of it is missing. Does the
/// same as [`crate::arguments::argument_data`], but does not copy data that lies in one piece. Returns `None` if there
/// is nothing, or its length is unknown.
fn pointed_to<'b>(
    call: &WrittenCall<'b>,
    (signature, arg, kind): (&Signature, u8, ArgKind),
    at: Moment,
    bound: usize,
) -> Option<(Cow<'b, [u8]>, bool)> {
    let address = *call.args.get(usize::from(arg))?;
    // Data that a command makes the kernel only read is unchanged after the call.
    let by_command = signature.args.get(usize::from(arg)).is_some_and(|a| a.kind == ArgKind::ByCommand);
    let stays = by_command && !matches!(kind, ArgKind::InOut(_));
    let (read, result) = match at {
        Moment::Entry if stays && held(call, Read::Entry, address).is_empty() => (Read::Return, None),
        Moment::Entry => (Read::Entry, None),
        Moment::Exit => (Read::Return, Some(call.result?)),
    };
    let held = held(call, read, address);
    let copied = |address: u64, buffer: &mut [u8]| copied(call, read, address, buffer);
    let owned = |(bytes, cut): (Vec<u8>, bool)| (Cow::from(bytes), cut);
    Some(match kind {
        ArgKind::Path | ArgKind::Str => match ends_in_page(held, address) {
            Some(whole) => (whole.into(), false),
            None => owned(string(address, &copied)),
        },
        ArgKind::StrArray => owned(strings(address, &copied)),
        _ => {
            let word = |address| self::held(call, read, address).first_chunk().map(|word| u32::from_ne_bytes(*word));
            let there = kind.bytes(&call.args, result, word)?;
            let most = usize::try_from(there).unwrap_or(bound).min(bound);
            let bytes = held.get(..most).unwrap_or(held);
            (bytes.into(), (bytes.len() as u64) < there)
        }
    })
}

/// Returns a string without its NUL if it ends in the page it begins in, and the piece holds all of it: nearly all
/// strings do. Others are assembled piece by piece.
fn ends_in_page(held: &[u8], address: u64) -> Option<&[u8]> {
    let most = (PAGE - address % PAGE).min(ring::MOST) as usize;
    let end = memchr::memchr(0, held.get(..most).unwrap_or(held))?;
    held.get(..end)
}

/// Copies the bytes that the thread captured from `address` on into `buffer`. Returns the number of bytes copied.
fn copied(call: &WrittenCall<'_>, read: Read, address: u64, buffer: &mut [u8]) -> usize {
    let bytes = held(call, read, address);
    let n = bytes.len().min(buffer.len());
    if let Some((to, from)) = buffer.get_mut(..n).zip(bytes.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// Returns the bytes copied from an address on: those of the longest piece that holds them, since a piece may have been
/// cut short.
fn held<'b>(call: &WrittenCall<'b>, read: Read, address: u64) -> &'b [u8] {
    let pieces = call.pieces().filter(|p| p.read == read);
    pieces.filter_map(|p| rest(call, p, address)).max_by_key(|rest| rest.len()).unwrap_or_default()
}

/// Returns the bytes of a piece from an address on.
fn rest<'b>(call: &WrittenCall<'b>, piece: &Piece<'b>, address: u64) -> Option<&'b [u8]> {
    let start = call.args.get(usize::from(piece.argument))?;
    let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
    piece.bytes.get(offset..).filter(|rest| !rest.is_empty())
}

/// The time at which a ring call was made, and its duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) entry_ns: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) waited_ns: Option<u64>,
}

/// Converts a call from a ring, which belongs to `row`, into a call of a window.
pub(crate) fn raw_call(
    row: u32,
    call: &WrittenCall<'_>,
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
        asked: None,
        request: None,
        begins_request: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::argument_data;
    use proptest::prelude::*;
    use systoll_hooks::layout::look;
    use systoll_hooks::ring_reader::{read_used, written_calls};
    use systoll_model::Sysno;

    fn call<'b>(number: u32, args: [u64; 6], result: Option<i64>, pieces: Vec<Piece<'b>>) -> WrittenCall<'b> {
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
            pieces: std::array::from_fn(|i| pieces.get(i).copied()),
        }
    }

    fn piece(argument: u8, read: Read, bytes: &[u8]) -> Piece<'_> {
        Piece { argument, read, bytes }
    }

    /// Reads the copied bytes as if they were another process's memory.
    fn as_of_a_process(call: &WrittenCall<'_>, signature: &Signature) -> Vec<ArgData> {
        let memory = |read: Read| move |address: u64, buffer: &mut [u8]| copied(call, read, address, buffer);
        let (before, after) = (memory(Read::Entry), memory(Read::Return));
        let mut all = argument_data(signature, Moment::Entry, &call.args, None, 256, &before);
        if call.result.is_some() {
            all.extend(argument_data(signature, Moment::Exit, &call.args, call.result, 256, &after));
        }
        all
    }

    #[test]
    fn strings_are_copied_whole_from_any_start() {
        let readlink = Sysno(89).signature().unwrap();
        for at in (0x7000 - 40..0x7000 + 4).chain([0x8000 - 300]) {
            for len in [1, 20, 38, 255, 256] {
                let path = vec![b'p'; len];
                let bytes = [&path[..], b"\0more"].concat();
                let bytes = &bytes[..bytes.len().min(256)];
                let asks = call(89, [at, 0x9000, 9, 0, 0, 0], Some(-22), vec![piece(0, Read::Entry, bytes)]);
                let told = data(&asks, readlink, 256);
                assert_eq!((&told[0].bytes, told[0].cut), (&path, len == 256), "{at:x} {len}");
                assert_eq!(told, as_of_a_process(&asks, readlink));
                let asked = question(&asks, readlink, 256);
                assert_eq!(asked, Question::of(readlink, &asks.args, &told, None, asks.result));
                assert_eq!(asked.is_some(), len < 256);
            }
        }
    }

    #[test]
    fn copied_arguments_follow_the_signature() {
        let read = Sysno(0).signature().unwrap();
        // More was copied than the call moved, and the descriptor's name is not part of its data.
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
        // Memory that could not be copied is missing.
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
            names.name_of(&plain, read),
            names.name_of(&named, read),
            names.name_of(&plain, read),
            names.name_of(&closes, close),
            names.name_of(&plain, read),
        ];
        assert_eq!(
            seen.map(|n| n.as_deref().map(str::to_owned)),
            [None, Some("/a"), Some("/a"), Some("/a"), None].map(|n| n.map(str::to_owned))
        );
        let mut names = Names::new(true);
        assert!(names.name_of(&named, read).is_some() && names.name_of(&plain, read).is_none());
    }

    #[test]
    fn a_folder_s_name_holds_while_files_in_it_come_and_go() {
        let signature = |number| Sysno(number).signature().unwrap();
        let (read, open, close, rename) = (signature(0), signature(257), signature(3), signature(82));
        let opens = |result, pieces| call(257, [4, 0x7000, 0, 0, 0, 0], Some(result), pieces);
        let reads = |fd, pieces| call(0, [fd, 0, 0, 0, 0, 0], Some(0), pieces);
        let closes = |fd| call(3, [fd, 0, 0, 0, 0, 0], Some(0), vec![]);
        let mut names = Names::new(false);
        let mut seen = |call: &WrittenCall, signature| names.name_of(call, signature).as_deref().map(str::to_owned);
        assert_eq!(seen(&opens(5, vec![piece(0, Read::Name, b"/d")]), open).as_deref(), Some("/d"));
        assert_eq!(seen(&reads(5, vec![piece(0, Read::Name, b"/d/a")]), read).as_deref(), Some("/d/a"));
        assert_eq!(seen(&opens(-2, vec![]), open).as_deref(), Some("/d"));
        assert_eq!(seen(&reads(5, vec![]), read).as_deref(), Some("/d/a"));
        // The same descriptor number may mean another file, though nobody has seen the first one closed.
        assert_eq!(seen(&opens(5, vec![]), open).as_deref(), Some("/d"));
        assert_eq!(seen(&reads(5, vec![]), read), None);
        assert_eq!(seen(&closes(4), close).as_deref(), Some("/d"));
        assert_eq!(seen(&opens(5, vec![]), open), None);
        // A rename may change any name.
        assert_eq!(seen(&reads(6, vec![piece(0, Read::Name, b"/e")]), read).as_deref(), Some("/e"));
        seen(&call(82, [0x7000, 0x8000, 0, 0, 0, 0], Some(0), vec![]), rename);
        assert_eq!(seen(&reads(6, vec![]), read), None);
    }

    #[test]
    fn names_follow_from_names() {
        fn follows(mut call: WrittenCall<'_>) -> WrittenCall<'_> {
            call.names = true;
            call
        }
        fn opens(folder: u64, result: i64, name: &[u8]) -> WrittenCall<'_> {
            follows(call(257, [folder, 0x7000, 0, 0, 0, 0], Some(result), vec![piece(1, Read::Entry, name)]))
        }
        let signature = |number| Sysno(number).signature().unwrap();
        let (read, dup, open) = (signature(0), signature(32), signature(257));
        let reads = |fd, pieces| call(0, [fd, 0, 0, 0, 0, 0], Some(0), pieces);
        let mut names = Names::new(false);
        let mut seen = |call: &WrittenCall, signature| names.name_of(call, signature).as_deref().map(str::to_owned);
        // A folder without a known name gives no names.
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
        // A deleted folder, a descriptor that is no folder, and a name longer than any path give no names.
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
        fn any_bytes_decode_without_panic(seed in any::<u64>(), len in any::<u64>(), dense in any::<bool>()) {
            let mut random = systoll_model::Random::new(seed);
            let words: Vec<u64> = (0..ring::BUFFER / 8).map(|_| {
                let word = random.below(u64::MAX);
                if dense { word } else { (word % 512) | ((word >> 60) << 32) }
            }).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let index = seed % ring::COUNT;
            let calls: Vec<WrittenCall<'_>> = written_calls(&bytes, index, len).collect();
            prop_assert!(calls.len() as u64 <= look::CALLS.min(len));
            // Bytes outside the used part may hold anything.
            let mut used = vec![0xee; bytes.len()];
            let end = read_used(index, len, &mut used, |at, to| {
                to.copy_from_slice(&bytes[at as usize..][..to.len()]);
                true
            });
            prop_assert_eq!(&written_calls(&used[..end], index, len).collect::<Vec<_>>(), &calls);
            let mut names = Names::new(seed.is_multiple_of(2));
            for call in &calls {
                prop_assert!(call.pieces().all(|p| p.bytes.len() as u64 <= ring::MOST && p.argument < 6));
                for number in [0, 1, 4, 16, 45, 54, 59, 232, 257, call.number] {
                    let Some(signature) = Sysno::made(number).signature() else { continue };
                    let told = data(call, signature, 256);
                    prop_assert!(told.iter().all(|d| d.bytes.len() <= 4096));
                    prop_assert_eq!(&told, &as_of_a_process(call, signature));
                    let folder = Names::new(true).name_of(call, signature);
                    let asked = Question::of(signature, &call.args, &told, folder.as_deref(), call.result);
                    prop_assert_eq!(question(call, signature, 256), asked);
                    names.name_of(call, signature);
                }
            }
        }
    }
}
