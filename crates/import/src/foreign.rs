//! Recognises traces of other tools and systems. They look like strace's and are not read: their
//! numbers and names are not those of x86-64 Linux.

use crate::error::ImportError;
use crate::lex::name_end;
use crate::strace::named;

/// A tool whose traces are not read.
struct Tool {
    name: &'static str,
    /// The way to a trace that is read, as advice to the user.
    instead: &'static str,
    /// Returns true if the tool wrote a line.
    wrote: fn(&[u8]) -> bool,
}

const ON_LINUX: &str = "its calls are another system's: trace the program on Linux with strace -f -ttt -T -v";
const WITH_STRACE: &str = "trace the program with strace -f -ttt -T -v, or run it with systoll run";

/// The tools, in the order in which they are tried.
static TOOLS: &[Tool] = &[
    Tool { name: "dtruss (macOS)", instead: ON_LINUX, wrote: is_dtruss },
    Tool { name: "truss (FreeBSD)", instead: ON_LINUX, wrote: is_bsd_truss },
    Tool { name: "truss (Solaris, illumos, AIX)", instead: ON_LINUX, wrote: is_unix_truss },
    Tool { name: "kdump (BSD, macOS)", instead: ON_LINUX, wrote: is_kdump },
    Tool { name: "Process Monitor (Windows)", instead: ON_LINUX, wrote: is_procmon },
    Tool { name: "gVisor (runsc --strace)", instead: WITH_STRACE, wrote: |line| has(line, b" strace.go:") },
    Tool { name: "sysdig", instead: WITH_STRACE, wrote: is_sysdig },
    Tool { name: "traceloop", instead: WITH_STRACE, wrote: is_traceloop },
    Tool { name: "valgrind --trace-syscalls", instead: WITH_STRACE, wrote: |line| line.starts_with(b"SYSCALL[") },
    Tool { name: "gdb (catch syscall)", instead: WITH_STRACE, wrote: is_gdb },
    Tool { name: "ctrace", instead: WITH_STRACE, wrote: is_ctrace },
    Tool {
        name: "the Shadow simulator",
        instead: WITH_STRACE,
        wrote: |line| has(line, b"SysCallReg {") || has(line, b" = <native>"),
    },
];

/// Returns an error that names the tool which wrote the lines, if it is one whose traces are not
/// read.
pub(crate) fn refused(lines: &[Vec<u8>]) -> Option<ImportError> {
    let count = |tool: &Tool| lines.iter().filter(|line| (tool.wrote)(line.trim_ascii())).count();
    // The traced program may print a line that looks like one, but several do not come by chance.
    let filled = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count();
    let enough = (filled / 4).clamp(1, 3);
    let tool = TOOLS.iter().find(|tool| count(tool) >= enough)?;
    Some(ImportError::Foreign { tool: tool.name, instead: tool.instead })
}

fn has(line: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(line, text).is_some()
}

/// Returns the text behind the last equals sign.
fn result(line: &[u8]) -> Option<&[u8]> {
    line.get(memchr::memmem::rfind(line, b" = ")? + 3..)
}

/// Returns true for a line such as `getpid(0x0, 0x0, 0x0)\t\t = 3734 0`, which ends with result and
/// errno.
fn is_dtruss(line: &[u8]) -> bool {
    let words = |text: &[u8]| text.split(|b| *b == b' ').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let both = |text| matches!(words(text).as_slice(), [a, b] if number(a.strip_prefix(b"-").unwrap_or(a)) && number(b.strip_prefix(b"Err#").unwrap_or(b)));
    line.starts_with(b"SYSCALL(args)") || has(line, b"\t\t = ") && result(line).is_some_and(both)
}

/// Returns true for a line such as `open("/etc",O_RDONLY,0666) = 24 (0x18)`, or one with `ERR#2 'No
/// such file or directory'`.
fn is_bsd_truss(line: &[u8]) -> bool {
    let twice = |text: &[u8]| {
        let (number, hex) = text.split_at_checked(memchr::memmem::find(text, b" (0x")?)?;
        let hex = hex.get(4..)?.strip_suffix(b")")?;
        let number: u64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some(u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()? == number)
    };
    has(line, b" ERR#") || !has(line, b"strace.go") && result(line).and_then(twice).unwrap_or(false)
}

/// Returns true for a line such as `/1:     open("/etc", O_RDONLY)  Err#2 ENOENT`, which truss writes on several systems, or
/// one of a call that AIX alone has.
fn is_unix_truss(line: &[u8]) -> bool {
    const OF_AIX: [&[u8]; 5] = [b"kread(", b"kwrite(", b"kioctl(", b"kfcntl(", b"__loadx("];
    if OF_AIX.iter().any(|call| line.starts_with(call)) {
        return true;
    }
    let thread = || {
        let rest = line.strip_prefix(b"/")?;
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        (digits > 0).then(|| rest.get(digits) == Some(&b':'))
    };
    thread().unwrap_or(false) || has(line, b") Err#") || has(line, b"  Err#")
}

/// Returns true for a line such as ` 4411 app      CALL  open(0x800,0x1,0)`.
fn is_kdump(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let numbered = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    numbered
        && words.nth(1).is_some_and(|word| [&b"CALL"[..], b"RET", b"NAMI", b"GIO", b"STRU", b"PSIG"].contains(&word))
}

fn is_procmon(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.starts_with(b"\"Time of Day\",\"Process Name\"")
        || has(line, b"\",\"CreateFile\",\"")
        || has(line, b"\",\"RegOpenKey\",\"")
}

/// Returns true for a line such as `12 08:52:00.310 1 cat (4411) > open`, or one of sysdig's
/// tables.
fn is_sysdig(line: &[u8]) -> bool {
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let event = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    let stamped = words.next().is_some_and(|word| word.len() > 8 && word.get(2) == Some(&b':'));
    let directed = words.clone().nth(3).is_some_and(|word| word == b">" || word == b"<");
    let table: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    event && stamped && directed || matches!(table.as_slice(), [time, b"Syscall"] if time.ends_with(b"Time"))
}

/// Returns true for a line such as `[cat] read(3, "(Pointer deref failed!)", 131072) = 0`.
fn is_traceloop(line: &[u8]) -> bool {
    let call = || {
        let close = memchr::memchr(b']', line.strip_prefix(b"[")?)?;
        let (name, rest) = (line.get(1..close + 1)?, line.get(close + 2..)?.trim_ascii_start());
        let word = name.first().is_some_and(u8::is_ascii_alphabetic)
            && !name.starts_with(b"pid ")
            && !name.starts_with(b"tid ");
        Some(word && named(rest.get(..name_end(rest)?)?).is_some())
    };
    call().unwrap_or(false) || has(line, b"(Pointer deref failed!)")
}

fn is_gdb(line: &[u8]) -> bool {
    line.starts_with(b"Catchpoint ") && (has(line, b"(call to syscall") || has(line, b"(returned from syscall"))
}

/// Returns true for a line such as `futex, 202 -- fast user-space locking (0x1df27c4, ...`.
fn is_ctrace(line: &[u8]) -> bool {
    let described = || {
        let comma = memchr::memmem::find(line, b", ")?;
        let name = line.get(..comma)?.rsplit(|b| *b == b' ').next()?;
        let rest = line.get(comma + 2..)?;
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        Some(digits > 0 && rest.get(digits..)?.starts_with(b" -- ") && named(name).is_some())
    };
    described().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(text: &str) -> Option<&'static str> {
        let lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
        TOOLS.iter().find(|tool| lines.iter().any(|line| (tool.wrote)(line.trim_ascii()))).map(|tool| tool.name)
    }

    #[test]
    fn each_tool_is_known_by_its_lines() {
        for (line, name) in [
            ("stat64(\"x\\0\", 0x7FFF, 0x0)\t\t = -1 Err#2", "dtruss (macOS)"),
            ("5.52 open(\"/usr/x\",O_RDONLY,0666) = 24 (0x18)", "truss (FreeBSD)"),
            ("/1:     fstat(14, 0xFFFF80FF)   = 0", "truss (Solaris, illumos, AIX)"),
            ("kread(3, \" #   L i c e n s e d\".., 4096)\t= 1024", "truss (Solaris, illumos, AIX)"),
            (" 4411 ls       NAMI  \"/etc/passwd\"", "kdump (BSD, macOS)"),
            ("SYSCALL[4411,1](257) sys_openat ( -100 )", "valgrind --trace-syscalls"),
            ("Catchpoint 1 (call to syscall openat), 0x7f in openat ()", "gdb (catch syscall)"),
            ("12 08:52:00.310123456 1 cat (4411) > openat dirfd=-100", "sysdig"),
        ] {
            assert_eq!(tool(line), Some(name), "{line}");
        }
    }

    #[test]
    fn what_strace_writes_is_none_of_them() {
        for line in [
            "close(3)                                = 0",
            "fcntl(3, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)",
            "select(5, [4], NULL, NULL, {tv_sec=1}) = 1 (in [4], left {tv_sec=0})",
            "[pid    17] read(3, \"\", 1) = 0",
            "17 08:52:00.310123 read(3, \"a > b\", 5) = 5",
            "openat(AT_FDCWD, \"/x\", O_RDONLY) = -1 ENOENT (No such file or directory)",
        ] {
            assert_eq!(tool(line), None, "{line}");
        }
    }
}
