//! A call of a window as strace would write it, as far as it was recorded.

use std::fmt::Write;
use systoll_model::{ArgKind, Moment, Sysno, WindowCall};

/// Characters of one string argument that are shown.
const STRING: usize = 64;
/// Bytes of what a descriptor is behind that are shown.
const TARGET: usize = 256;
/// `AT_FDCWD` in a register's lower half (fcntl.h).
const AT_FDCWD: i32 = -100;

/// `openat(AT_FDCWD, "/etc/localtime", 0x80000) = 3`. Printable ASCII only: all else is escaped.
pub(crate) fn call_text(call: &WindowCall, syscall: Sysno) -> String {
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
    // Writing to a string can't fail.
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
        ArgKind::Path | ArgKind::Str | ArgKind::In(_) => {
            let data = u8::try_from(index).ok().and_then(|i| call.arg_data(i, Moment::Entry));
            data.map_or_else(|| number(value), |d| quoted(&d.bytes, d.cut))
        }
        ArgKind::Out(_) | ArgKind::InOut(_) => {
            let data = u8::try_from(index).ok().and_then(|i| call.arg_data(i, Moment::Exit));
            data.filter(|d| d.bytes.iter().any(u8::is_ascii_graphic))
                .map_or_else(|| number(value), |d| quoted(&d.bytes, d.cut))
        }
        ArgKind::Int | ArgKind::Address | ArgKind::StrArray | ArgKind::ByCommand => number(value),
    }
}

/// Small numbers as people count, large ones as addresses and flags are written.
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
