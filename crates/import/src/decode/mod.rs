//! Turns the text of a trace's call into what a recording holds of a call: registers, and the
//! memory they point to.
//!
//! Addresses that a trace does not tell are made up, one for each argument; the memory there is the
//! one that the trace shows. A struct of unknown layout keeps its text in place of its bytes: it
//! can be compared, and no more.

mod layout;
mod named;
mod sets;
mod socket;

use crate::call::{Call, Written};
use crate::lex::{Arguments, arguments, behind, find, members, within};
use crate::literal::{Text, number, string};
use std::sync::Arc;
use systoll_model::{ArgData, ArgKind, Moment, Signature, Size};

/// Largest number of bytes kept of one argument, as for a program that is watched.
const MOST_BYTES: usize = 256;
/// Largest number of words kept of a command line.
const MOST_WORDS: usize = 16;
/// Length of the longest path that Linux knows, bytes.
const MOST_PATH: usize = 4096;
/// Largest number of strings kept of an array.
const MOST_STRINGS: usize = 8;
/// Made-up address of memory whose address the trace does not tell; each argument has a page behind
/// it.
const SOMEWHERE: u64 = 0x6000_0000_0000;

/// A call in the form in which a window keeps it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoded {
    /// The argument registers.
    pub(crate) args: [u64; 6],
    /// The memory that the registers point to.
    pub(crate) data: Vec<ArgData>,
    /// The file of the call's descriptor as the trace names it.
    pub(crate) fd: Option<Arc<str>>,
    /// True if structs were abbreviated, or kept as text.
    pub(crate) vague: bool,
    /// True if the trace has cut a struct short.
    pub(crate) abbreviated: bool,
}

/// Decodes a call.
pub(crate) fn decode(call: &Call, signature: Option<&Signature>) -> Decoded {
    if call.written == Written::Registers {
        return Decoded { args: registers(&call.text), ..Decoded::default() };
    }
    let plain = named::plain(call);
    let found = arguments(plain.as_deref().unwrap_or(&call.text));
    let Some(signature) = signature else {
        let mut args = [0; 6];
        args.iter_mut().zip(found.iter()).for_each(|(word, text)| *word = number(text).unwrap_or(0) as u64);
        return Decoded { args, ..Decoded::default() };
    };
    if signature.name == "clone" {
        return Decoded { args: clone(&found), ..Decoded::default() };
    }
    let mut decoded = Decoded { args: words(&found), ..Decoded::default() };
    let fd = signature.fd_arg().map(|at| behind(found.get(at)));
    decoded.fd = fd.filter(|(number, _)| *number != b"AT_FDCWD").and_then(|(_, name)| name).map(file_name);
    for index in 0..6u8 {
        let text = found.get(index.into());
        let kind = signature.arg_kind(index.into(), &decoded.args);
        let there = decoded.args.get(usize::from(index)).is_some_and(|word| *word != 0);
        if there {
            let place =
                ArgumentPlace { signature, index, kind, args: &decoded.args, result: call.result, others: &found };
            let (data, vague) = place.memory(text);
            decoded.data.extend(data);
            decoded.vague |= vague;
            decoded.abbreviated |= vague && memchr::memmem::find(text, b"...").is_some();
        }
    }
    decoded
}

/// Returns the number in an argument, such as a descriptor's, without decoding the other arguments.
pub(crate) fn number_at(call: &Call, index: usize) -> Option<i64> {
    match call.written {
        Written::Registers => registers(&call.text).get(index).map(|word| i64::from(*word as i32)),
        Written::Decoded => number(arguments(&call.text).get(index)),
        Written::Named => {
            let plain = named::plain(call)?;
            number(arguments(&plain).get(index))
        }
    }
}

/// Returns the string in an argument, without decoding the other arguments.
pub(crate) fn string_at(call: &Call, index: usize) -> Option<String> {
    let plain = named::plain(call);
    let found = arguments(plain.as_deref().unwrap_or(&call.text));
    string(found.get(index), MOST_PATH).map(|text| String::from_utf8_lossy(&text.bytes).into_owned())
}

/// Returns the strings of an array, at most 16 of them and 1,024 bytes. A string or list that the
/// trace or this function cut off ends in `…`.
pub(crate) fn strings_at(call: &Call, index: usize) -> Vec<Arc<str>> {
    let found = arguments(&call.text);
    let inner = within(found.get(index), b'[', b']').unwrap_or_default();
    let mut left = 1_024usize;
    let mut all = Vec::new();
    let of_array = members(inner, MOST_WORDS + 1);
    for member in of_array.iter().take(MOST_WORDS) {
        // strace marks an array that it cuts short with three dots.
        if *member == b"..." {
            all.push(Arc::from("…"));
        }
        let Some(text) = string(member, left) else { continue };
        left = left.saturating_sub(text.bytes.len());
        let more = if text.cut { "…" } else { "" };
        all.push(Arc::from(format!("{}{more}", String::from_utf8_lossy(&text.bytes))));
    }
    if of_array.len() > MOST_WORDS {
        all.push(Arc::from("…"));
    }
    all
}

/// Returns the name of a descriptor's file as recordings have it, without the kind of device.
pub(crate) fn file_name(told: &[u8]) -> Arc<str> {
    let bare = memchr::memchr(b'<', told).filter(|at| *at > 0).and_then(|at| told.get(..at)).unwrap_or(told);
    let bare = if bare.contains(&b'[') { told } else { bare };
    let quoted = [b"\"", bare, b"\""].concat();
    let text = if bare.contains(&b'\\') { string(&quoted, MOST_PATH).map(|t| t.bytes) } else { None };
    let text = text.as_deref().unwrap_or(bare);
    Arc::from(String::from_utf8_lossy(text.get(..text.len().min(MOST_PATH)).unwrap_or(text)))
}

fn registers(text: &[u8]) -> [u64; 6] {
    let mut args = [0; 6];
    let parts = text.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    for (word, part) in args.iter_mut().zip(parts) {
        let digits = part.strip_prefix(b"0x").unwrap_or(part);
        *word = std::str::from_utf8(digits).ok().and_then(|d| u64::from_str_radix(d, 16).ok()).unwrap_or(0);
    }
    args
}

/// Returns the registers of a clone, whose arguments strace writes in another order:
/// `child_stack=NULL, flags=CLONE_VM|SIGCHLD, …`.
fn clone(found: &Arguments<'_>) -> [u64; 6] {
    let mut args = [0; 6];
    for text in found.iter() {
        let (at, value) = match text.iter().position(|b| *b == b'=').map(|at| text.split_at(at)) {
            Some((b"flags", value)) => (0, value),
            Some((b"child_stack", value)) => (1, value),
            Some((b"parent_tid", value)) => (2, value),
            Some((b"child_tidptr", value)) => (3, value),
            Some((b"tls", value)) => (4, value),
            _ => continue,
        };
        if let Some(word) = args.get_mut(at) {
            *word = value.get(1..).and_then(number).unwrap_or(0) as u64;
        }
    }
    args
}

/// Returns true if the flags of a clone or clone3 make a thread of the same process.
pub(crate) fn shares_process(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"CLONE_THREAD").is_some()
}

fn words(found: &Arguments<'_>) -> [u64; 6] {
    let mut args = [0u64; 6];
    for ((index, word), text) in (0u64..).zip(&mut args).zip(found.iter()) {
        *word = match number(text) {
            Some(number) => number as u64,
            // A struct, a string or a set lies at a made-up address.
            None if text.iter().any(|b| b"\"{[~".contains(b)) => SOMEWHERE + 0x1000 * index,
            None => 0,
        };
    }
    args
}

/// A piece of memory that a trace shows.
struct Shown {
    bytes: Vec<u8>,
    /// True if the trace shows only the beginning of the piece.
    cut: bool,
    /// True if parts of the piece were abbreviated, or kept as text.
    vague: bool,
}

impl Shown {
    fn whole(bytes: Vec<u8>) -> Self {
        Self { bytes, cut: false, vague: false }
    }

    fn string(text: Text) -> Self {
        Self { bytes: text.bytes, cut: text.cut, vague: false }
    }
}

/// An argument of a call.
struct ArgumentPlace<'a> {
    signature: &'a Signature,
    index: u8,
    kind: ArgKind,
    args: &'a [u64; 6],
    result: Option<i64>,
    others: &'a Arguments<'a>,
}

impl ArgumentPlace<'_> {
    /// Returns the memory that the argument points to before and after the call, and true if the trace shows less than
    /// was there.
    fn memory(&self, text: &[u8]) -> (Vec<ArgData>, bool) {
        let (mut all, mut vague) = (Vec::new(), false);
        let arrow = find(text, b" => ", 1);
        for at in [Moment::Entry, Moment::Exit].into_iter().filter(|at| self.kind.read_at(*at)) {
            let (from, to) = match (arrow, at) {
                (Some(arrow), Moment::Entry) => (0, arrow),
                (Some(arrow), Moment::Exit) => (arrow + 4, text.len()),
                (None, _) => (0, text.len()),
            };
            let shown = text.get(from..to).unwrap_or_default();
            // One value for both moments is that of the entry. Numbers are an exception: the call
            // did not change them.
            let only_entry = arrow.is_none() && at == Moment::Exit && matches!(self.kind, ArgKind::InOut(_));
            if only_entry && !shown.starts_with(b"[") {
                continue;
            }
            if let Some(shown) = self.bytes(shown.trim_ascii(), at) {
                vague |= shown.vague;
                all.push(ArgData { arg: self.index, at, bytes: shown.bytes, cut: shown.cut });
            }
        }
        (all, vague)
    }

    fn bytes(&self, text: &[u8], at: Moment) -> Option<Shown> {
        match self.kind {
            ArgKind::Path | ArgKind::Str => string(text, MOST_PATH).map(Shown::string),
            ArgKind::StrArray => Some(Shown::whole(strings(within(text, b'[', b']')?))),
            _ => {
                let result = if at == Moment::Exit { self.result } else { None };
                let there = self.there(result, at)?;
                let bound = there.min(MOST_BYTES as u64) as usize;
                let mut shown = self.shown(text, bound)?;
                let ends = self.signature.name == "getcwd" && shown.bytes.len() as u64 + 1 == there;
                if ends {
                    shown.bytes.push(0);
                }
                shown.cut |= (shown.bytes.len() as u64) < there;
                shown.bytes.truncate(bound);
                Some(shown)
            }
        }
    }

    /// Returns the number of bytes that the kernel read or wrote at the argument's address.
    fn there(&self, result: Option<i64>, at: Moment) -> Option<u64> {
        let size = self.kind.size()?;
        if at == Moment::Exit
            && matches!(self.kind, ArgKind::Out(_))
            && self.result.is_none_or(|r| (-4095..0).contains(&r))
        {
            return None;
        }
        match size {
            Size::AtArg(arg) => {
                let text = self.others.get(arg.into());
                let inner = within(text, b'[', b']').unwrap_or(text);
                let last = memchr::memmem::rfind(inner, b"=>").map_or(inner, |at| inner.get(at + 2..).unwrap_or(inner));
                number(last.trim_ascii()).and_then(|n| u64::try_from(n).ok())
            }
            _ => size.bytes(self.args, result, |_| None),
        }
    }

    fn shown(&self, text: &[u8], bound: usize) -> Option<Shown> {
        let name = self.signature.args.get(usize::from(self.index)).map_or("", |a| a.name);
        if let Some(text) = string(text, bound) {
            return Some(Shown::string(text));
        }
        if sets::is_signals(self.signature.name, name) && (text.starts_with(b"[") || text.starts_with(b"~[")) {
            return sets::signals(text).map(|set| Shown::whole(set.to_le_bytes().to_vec()));
        }
        if sets::is_processors(self.signature.name) {
            return sets::processors(text, bound).map(Shown::whole);
        }
        if let Some(inner) = within(text, b'[', b']') {
            let all = members(inner, 64);
            if all.iter().any(|m| m.starts_with(b"{")) {
                return layout::structs(&all, bound).map(|(bytes, vague)| Shown { bytes, cut: false, vague });
            }
            return numbers(&all, bound).map(Shown::whole);
        }
        if text.starts_with(b"{") {
            let (bytes, vague) = socket::address(text)
                .map(|bytes| (socket::filled(bytes, bound), false))
                .or_else(|| layout::bytes(text, bound))
                .unwrap_or_else(|| (as_text(text, bound), true));
            return Some(Shown { bytes, cut: false, vague });
        }
        None
    }
}

/// Returns the text of a struct of unknown layout, in place of its bytes.
fn as_text(text: &[u8], bound: usize) -> Vec<u8> {
    let mut bytes = text.to_vec();
    bytes.resize(bound, 0);
    bytes
}

/// Returns the bytes of an array of numbers: 8 bytes for a single one that has as much room, else 4
/// for each.
fn numbers(all: &[&[u8]], bound: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let width = if all.len() == 1 && bound == 8 { 8 } else { 4 };
    for text in all {
        let number = number(text)? as u64;
        bytes.extend_from_slice(number.to_le_bytes().get(..width)?);
    }
    bytes.truncate(bound);
    Some(bytes)
}

fn strings(inner: &[u8]) -> Vec<u8> {
    let all = members(inner, MOST_STRINGS).into_iter().filter_map(|member| string(member, MOST_BYTES));
    all.map(|text| text.bytes).collect::<Vec<_>>().join(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Syscall;
    use proptest::prelude::*;
    use systoll_model::Sysno;

    pub(super) fn call(name: &str, text: &str, result: i64) -> Call {
        let syscall = Syscall(Sysno::from_name(name).unwrap());
        Call { syscall, text: text.as_bytes().to_vec(), result: Some(result), ..Call::default() }
    }

    fn decoded(name: &str, text: &str, result: i64) -> Decoded {
        let call = call(name, text, result);
        decode(&call, call.syscall.0.signature())
    }

    fn data(decoded: &Decoded, arg: u8, at: Moment) -> Option<(&[u8], bool)> {
        decoded.data.iter().find(|d| d.arg == arg && d.at == at).map(|d| (&d.bytes[..], d.cut))
    }

    #[test]
    fn paths_flags_and_descriptors() {
        let d = decoded("openat", r#"AT_FDCWD</tmp>, "/etc/passwd", O_RDONLY|O_CLOEXEC)"#, 3);
        assert_eq!((d.args[0] as i64, d.args[2], d.fd.clone()), (-100, 0o200_0000, None));
        assert_eq!(data(&d, 1, Moment::Entry), Some((&b"/etc/passwd"[..], false)));
        let d = decoded("read", r#"3</etc/passwd>, "root:"..., 4096)"#, 100);
        assert_eq!((d.args[0], d.args[2], d.fd.as_deref()), (3, 4096, Some("/etc/passwd")));
        assert_eq!(data(&d, 1, Moment::Exit), Some((&b"root:"[..], true)));
        let d = decoded("fcntl", "3, F_SETFL, O_RDONLY|O_NONBLOCK)", 0);
        assert_eq!(d.args[1..3], [4, 0o4000]);
        let d = decoded("stat", r#""/etc/localtime", 0x7ffe1234)"#, -2);
        assert_eq!((data(&d, 1, Moment::Exit), d.args[1]), (None, 0x7ffe_1234));
    }

    #[test]
    fn structs_are_as_the_kernel_lays_them_out() {
        let d = decoded("newfstatat", r#"3, "", {st_mode=S_IFREG|0644, st_size=3519, ...}, AT_EMPTY_PATH)"#, 0);
        let (stat, cut) = data(&d, 2, Moment::Exit).unwrap();
        assert_eq!((stat.len(), cut, d.vague), (144, false, true));
        assert_eq!((&stat[24..28], &stat[48..52]), (&0o10_0644u32.to_le_bytes()[..], &3519u32.to_le_bytes()[..]));
        let d = decoded("rt_sigprocmask", "SIG_BLOCK, ~[KILL STOP RTMIN RT_1], [], 8)", 0);
        let set = data(&d, 1, Moment::Entry).unwrap().0;
        assert_eq!(u64::from_le_bytes(set.try_into().unwrap()), !(1 << 8 | 1 << 18 | 1 << 31 | 1 << 32));
        assert_eq!(data(&d, 2, Moment::Exit), Some((&[0u8; 8][..], false)));
        let d = decoded("clock_nanosleep", "CLOCK_REALTIME, 0, {tv_sec=0, tv_nsec=100000}, NULL)", 0);
        assert_eq!(data(&d, 2, Moment::Entry).unwrap().0[8..12], 100_000u32.to_le_bytes());
        let d = decoded("setsockopt", "3, SOL_TCP, TCP_NODELAY, [1], 4)", 0);
        assert_eq!(data(&d, 3, Moment::Entry), Some((&[1, 0, 0, 0][..], false)));
        let d = decoded("getsockopt", "3, SOL_SOCKET, SO_TYPE, [1], [4])", 0);
        assert_eq!(data(&d, 3, Moment::Exit), Some((&[1, 0, 0, 0][..], false)));
        let d = decoded("connect", r#"3, {sa_family=AF_UNIX, sun_path="/dev/log"}, 110)"#, -2);
        assert_eq!(data(&d, 1, Moment::Entry).map(|(bytes, cut)| (bytes.len(), cut)), Some((110, false)));
        let d = decoded("ppoll", "[{fd=3, events=POLLIN}], 1, {tv_sec=0, tv_nsec=0}, NULL, 8)", 0);
        assert_eq!(data(&d, 0, Moment::Entry), Some((&[3, 0, 0, 0, 1, 0, 0, 0][..], false)));
        let d = decoded("getcwd", r#""/tmp", 4096)"#, 5);
        assert_eq!(data(&d, 0, Moment::Exit), Some((&b"/tmp\0"[..], false)));
        let d = decoded("sched_getaffinity", "0, 128, [0, 1])", 8);
        assert_eq!(data(&d, 2, Moment::Exit), Some((&[3, 0, 0, 0, 0, 0, 0, 0][..], false)));
        let d = decoded("clone", "child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f)", 9);
        assert_eq!(d.args[..4], [0x100_0011, 0, 0, 0x7f]);
    }

    #[test]
    fn what_is_kept_as_text_can_be_compared() {
        let one = decoded("ioctl", "1, TCGETS, {B38400 opost isig icanon echo ...})", 0);
        let two = decoded("ioctl", "1, TCGETS, {B38400 opost isig icanon -echo ...})", 0);
        assert!(one.vague && one.args[1] == 0x5401);
        assert_ne!(data(&one, 2, Moment::Exit), data(&two, 2, Moment::Exit));
        assert_eq!(data(&one, 2, Moment::Exit).map(|(bytes, _)| bytes.len()), Some(36));
    }

    #[test]
    fn devices_are_called_by_their_path() {
        assert_eq!(&*file_name(b"/dev/pts/0<char 136:0>"), "/dev/pts/0");
        assert_eq!(&*file_name(b"TCP:[1.2.3.4:5->6.7.8.9:10]"), "TCP:[1.2.3.4:5->6.7.8.9:10]");
        assert_eq!(&*file_name(br"/tmp/a\76b"), "/tmp/a>b");
    }

    proptest! {
        #[test]
        fn any_text_is_decoded_within_bounds(
            number in 0u32..470,
            text in r#"(AT_FDCWD|[0-9]{1,3}|"[a-z/]{0,9}"|\{st_mode=[0-9]{1,9}, ...\}|\[[0-9, ]{0,9}\]|NULL|, |\)|[\[\]{}()~=<>"|\\a-z0-9_ ]{1,3}){0,24}"#,
            result in any::<i64>(),
        ) {
            for written in [Written::Decoded, Written::Registers, Written::Named] {
                let call = Call {
                    syscall: Syscall(Sysno(number)), text: text.clone().into_bytes(), result: Some(result), written, ..Call::default()
                };
                let decoded = decode(&call, call.syscall.0.signature());
                prop_assert!(decoded.data.iter().all(|d| d.bytes.len() <= MOST_PATH));
                number_at(&call, 0);
                string_at(&call, 1);
                prop_assert!(strings_at(&call, 1).len() <= 17);
            }
        }
    }
}
