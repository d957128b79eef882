//! Writes a call of a window as strace would, as far as it was recorded.

use std::fmt::Write;
use systoll_model::{ArgKind, Moment, Sysno, WindowCall};

/// Bytes of a string argument that are shown, at most.
const STRING: usize = 64;
/// Bytes of the name of a descriptor's file that are shown, at most.
const TARGET: usize = 256;
/// Value of `AT_FDCWD` in a register's lower half (fcntl.h).
const AT_FDCWD: i32 = -100;

/// Writes `openat(AT_FDCWD, "/etc/localtime", 0x80000) = 3`. Printable ASCII only; everything else
/// is escaped.
pub fn call_text(call: &WindowCall, syscall: Sysno) -> String {
    let Some(signature) = syscall.signature() else {
        return format!("{syscall}(…) = {}", result(call));
    };
    let mut text = format!("{syscall}(");
    for (index, (_, value)) in signature.args.iter().zip(call.args).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&argument(call, signature.arg_kind(index, &call.args), index, value, syscall));
    }
    // Writing to a String can't fail.
    let _ = write!(text, ") = {}", result(call));
    text
}

fn argument(call: &WindowCall, kind: ArgKind, index: usize, value: u64, syscall: Sysno) -> String {
    let fd_arg = syscall.signature().and_then(|s| s.fd_arg());
    match kind {
        ArgKind::DirFd if value as i32 == AT_FDCWD => "AT_FDCWD".into(),
        ArgKind::Fd | ArgKind::DirFd => match &call.fd {
            Some(target) if fd_arg == Some(index) => {
                let target = target.as_bytes();
                format!("{}<{}>", value as i32, escaped(target.get(..TARGET).unwrap_or(target)))
            }
            _ => (value as i32).to_string(),
        },
        ArgKind::Path | ArgKind::Str => text(call, index, Moment::Entry, |_| true),
        ArgKind::In(_) => text(call, index, Moment::Entry, is_text),
        ArgKind::Out(_) | ArgKind::InOut(_) => text(call, index, Moment::Exit, is_text),
        ArgKind::Int | ArgKind::Address | ArgKind::StrArray | ArgKind::ByCommand => number(value),
    }
}

/// Writes the memory that an argument points to, if it was read and is text, otherwise the address.
fn text(call: &WindowCall, index: usize, at: Moment, is_text: fn(&[u8]) -> bool) -> String {
    let data = u8::try_from(index).ok().and_then(|arg| call.arg_data(arg, at)).filter(|data| is_text(&data.bytes));
    data.map_or_else(|| number(call.args.get(index).copied().unwrap_or(0)), |data| quoted(&data.bytes, data.cut))
}

/// Returns true if most bytes are printable: structs and compressed data say nothing when they are
/// spelt out.
fn is_text(bytes: &[u8]) -> bool {
    let plain = bytes.iter().filter(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()).count();
    !bytes.is_empty() && plain * 4 >= bytes.len() * 3
}

/// Writes small numbers in decimal, large ones (addresses and flags) in hexadecimal.
fn number(value: u64) -> String {
    match value as i64 {
        0 => "0".into(),
        n if (-4096..=65_536).contains(&n) => n.to_string(),
        _ => format!("{value:#x}"),
    }
}

fn quoted(bytes: &[u8], cut: bool) -> String {
    let shown = bytes.get(..STRING).unwrap_or(bytes);
    let more = if cut || shown.len() < bytes.len() { "…" } else { "" };
    format!("\"{}\"{more}", escaped(shown))
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|b| b.escape_ascii()).map(char::from).collect()
}

fn result(call: &WindowCall) -> String {
    match (call.result, call.errno()) {
        (None, _) => "?".into(),
        (Some(_), Some(errno)) => format!("-1 {errno}"),
        (Some(value), None) => number(value as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::ArgData;

    fn call(args: [u64; 6], result: i64, data: Vec<ArgData>) -> WindowCall {
        WindowCall { nth: 1, args, data, result: Some(result), ..WindowCall::default() }
    }

    fn at_entry(arg: u8, bytes: &[u8]) -> ArgData {
        ArgData { arg, at: Moment::Entry, bytes: bytes.to_vec(), cut: false }
    }

    #[test]
    fn calls_are_written_as_strace_does() {
        let openat = Sysno::from_name("openat").unwrap();
        let args = [-100i64 as u64, 0x7fff_0000, 0x80000, 0, 0, 0];
        let opened = call(args, 3, vec![at_entry(1, b"/etc/localtime")]);
        assert_eq!(call_text(&opened, openat), "openat(AT_FDCWD, \"/etc/localtime\", 0x80000, 0) = 3");
        let failed = call(args, -2, vec![at_entry(1, b"\x1b[31m\"</script>")]);
        assert_eq!(call_text(&failed, openat), "openat(AT_FDCWD, \"\\x1b[31m\\\"</script>\", 0x80000, 0) = -1 ENOENT");
    }

    #[test]
    fn structs_are_not_spelt_out() {
        let write = Sysno::from_name("write").unwrap();
        let args = [1, 0x7fff_0000, 24, 0, 0, 0];
        let text = |bytes: &[u8]| call_text(&call(args, 24, vec![at_entry(1, bytes)]), write);
        assert_eq!(text(b"hello\n"), "write(1, \"hello\\n\", 24) = 24");
        assert_eq!(text(&[0, 1, 2, 3, 200, 255, 65, 66]), "write(1, 0x7fff0000, 24) = 24");
    }
}
