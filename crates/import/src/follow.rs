//! Follows calls that change the files behind descriptors.

use crate::call::{Call, Calls};
use crate::decode::{file_name, number_at, string_at};
use crate::descriptors::Descriptors;
use crate::lex::{behind, within};
use crate::literal::number;
use std::sync::Arc;
use systoll_model::constants::{F_DUPFD, F_DUPFD_CLOEXEC};

/// Names of calls that make a child, begin a program, or change the file behind a descriptor.
const CONCERN: &[&str] = &[
    "accept",
    "accept4",
    "clone",
    "clone3",
    "close",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "execve",
    "execveat",
    "fcntl",
    "fork",
    "inotify_init",
    "inotify_init1",
    "memfd_create",
    "open",
    "openat",
    "openat2",
    "pipe",
    "pipe2",
    "signalfd",
    "signalfd4",
    "socket",
    "socketpair",
    "timerfd_create",
    "vfork",
];

/// Name for the working directory, which a trace does not tell.
const SOMEWHERE: &str = "/…";

/// Returns the calls that have to be followed.
pub(crate) fn concerned() -> Calls {
    Calls::those(|signature| CONCERN.contains(&signature.name))
}

/// Notes the descriptors that a call which returned has opened or closed.
pub(crate) fn descriptors(all: &mut Descriptors, process: u32, name: &str, call: &Call) {
    let Some(result) = call.result.and_then(|r| i32::try_from(r).ok()).filter(|r| *r >= 0) else { return };
    let argument = |at: usize| number_at(call, at).and_then(|n| i32::try_from(n).ok());
    if name == "close" {
        if let Some(fd) = argument(0) {
            all.close(process, fd);
        }
        return;
    }
    let stays_over_exec = memchr::memmem::find(&call.text, b"CLOEXEC").is_none();
    let told = behind(&call.told).1.map(file_name);
    if let Some(kind) = unnamed_kind(name) {
        all.open(process, result, told.unwrap_or_else(|| Arc::from(kind)), !stays_over_exec);
        return;
    }
    match name {
        "open" | "creat" | "openat" | "openat2" => {
            match told.or_else(|| opened_path(all, process, name, call).map(Arc::from)) {
                Some(name) => all.open(process, result, name, !stays_over_exec),
                None => all.close(process, result),
            }
        }
        "dup" => {
            if let Some(from) = argument(0) {
                all.duplicate(process, from, result, false);
            }
        }
        "dup2" | "dup3" => {
            if let Some((from, to)) = argument(0).zip(argument(1)) {
                all.duplicate(process, from, to, !stays_over_exec);
            }
        }
        "fcntl" => {
            let command = argument(1).and_then(|c| u32::try_from(c).ok());
            if let Some(from) = argument(0).filter(|_| matches!(command, Some(F_DUPFD | F_DUPFD_CLOEXEC))) {
                all.duplicate(process, from, result, command == Some(F_DUPFD_CLOEXEC));
            }
        }
        "pipe" | "pipe2" | "socketpair" => {
            let kind = if name == "socketpair" { "socket:[?]" } else { "pipe:[?]" };
            pair(all, process, &call.text, kind, !stays_over_exec);
        }
        "memfd_create" => {
            let name = told.or_else(|| string_at(call, 0).map(|n| Arc::from(format!("/memfd:{n} (deleted)"))));
            all.open(process, result, name.unwrap_or_default(), !stays_over_exec);
        }
        _ => {}
    }
}

/// Returns the name of the files that a call makes which have no names.
fn unnamed_kind(call: &str) -> Option<&'static str> {
    Some(match call {
        "socket" | "accept" | "accept4" => "socket:[?]",
        "eventfd" | "eventfd2" => "anon_inode:[eventfd]",
        "epoll_create" | "epoll_create1" => "anon_inode:[eventpoll]",
        "timerfd_create" => "anon_inode:[timerfd]",
        "signalfd" | "signalfd4" => "anon_inode:[signalfd]",
        "inotify_init" | "inotify_init1" => "anon_inode:inotify",
        _ => return None,
    })
}

/// Returns the path of the file that a call has opened. A file in an unknown folder is still known to be a file.
fn opened_path(all: &Descriptors, process: u32, name: &str, call: &Call) -> Option<String> {
    let at = usize::from(name.starts_with("openat"));
    let path = string_at(call, at)?;
    if path.starts_with('/') {
        return Some(path);
    }
    let folder = number_at(call, 0).filter(|_| at == 1).and_then(|fd| all.name(process, i32::try_from(fd).ok()?));
    let folder = folder.unwrap_or_else(|| Arc::from(SOMEWHERE));
    Some(format!("{}/{path}", folder.trim_end_matches('/')))
}

/// Notes the two descriptors of a list such as `[3, 4]`, in whichever argument it stands.
fn pair(all: &mut Descriptors, process: u32, text: &[u8], kind: &str, closed_by_exec: bool) {
    let found = crate::lex::arguments(text);
    let Some(inner) = found.iter().find_map(|argument| within(argument, b'[', b']')) else { return };
    for member in crate::lex::members(inner, 2) {
        let name = behind(member).1.map_or_else(|| Arc::from(kind), file_name);
        if let Some(fd) = number(member).and_then(|n| i32::try_from(n).ok()) {
            all.open(process, fd, name, closed_by_exec);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Syscall;
    use systoll_model::Sysno;

    #[test]
    fn descriptors_are_followed_through_calls() {
        let mut all = Descriptors::default();
        let mut go = |name: &str, text: &str, result: i64, told: &str| {
            let syscall = Syscall(Sysno::from_name(name).unwrap());
            let call = Call { syscall, text: text.into(), result: Some(result), told: told.into(), ..Call::default() };
            descriptors(&mut all, 1, name, &call);
        };
        go("openat", r#"AT_FDCWD, "/etc", O_RDONLY|O_DIRECTORY)"#, 3, "3");
        go("openat", r#"3, "passwd", O_RDONLY)"#, 4, "4");
        go("open", r#""a", O_RDONLY)"#, 5, "5</tmp/a>");
        go("dup2", "4, 0)", 0, "0");
        go("pipe2", "[6, 7], O_CLOEXEC)", 0, "0");
        go("close", "3)", 0, "0");
        go("openat", r#"AT_FDCWD, "data/in", O_RDONLY)"#, 8, "8");
        go("openat", r#"AT_FDCWD, "/none", O_RDONLY)"#, -2, "");
        let names = [0, 3, 4, 5, 7, 8].map(|fd| all.name(1, fd).map(|n| n.to_string()).unwrap_or_default());
        assert_eq!(names, ["/etc/passwd", "", "/etc/passwd", "/tmp/a", "pipe:[?]", "/…/data/in"]);
    }
}
