//! The system calls that today's C libraries and runtimes make for a function: `openat` for `open`.

use crate::sysno::Sysno;

/// Functions, and the calls that implement them in addition to the call of the same name.
struct MadeAs {
    names: &'static [&'static str],
    calls: &'static [&'static str],
}

const fn made_as(names: &'static [&'static str], calls: &'static [&'static str]) -> MadeAs {
    MadeAs { names, calls }
}

/// Functions that make another call than the one of their name, by the sources of glibc 2.31 to
/// 2.41, musl 1.2 and Go 1.19 to 1.24 for x86-64; and calls that do the same with more arguments
/// (`openat2`, `statx`, `clone3`).
const TABLE: &[MadeAs] = &[
    made_as(&["open", "open64"], &["openat", "openat2"]),
    made_as(&["creat", "creat64", "fopen", "opendir"], &["open", "openat"]),
    made_as(&["stat", "stat64", "lstat", "lstat64", "fstatat", "fstatat64"], &["newfstatat", "statx"]),
    made_as(&["fstat", "fstat64"], &["fstat", "newfstatat", "statx"]),
    made_as(&["access", "eaccess"], &["faccessat", "faccessat2"]),
    made_as(&["mkdir"], &["mkdirat"]),
    made_as(&["rmdir", "unlink"], &["unlinkat"]),
    made_as(&["remove"], &["unlink", "rmdir", "unlinkat"]),
    made_as(&["rename"], &["renameat", "renameat2"]),
    made_as(&["link"], &["linkat"]),
    made_as(&["symlink"], &["symlinkat"]),
    made_as(&["readlink"], &["readlinkat"]),
    made_as(&["chmod"], &["fchmodat", "fchmodat2"]),
    made_as(&["chown", "lchown"], &["fchownat"]),
    made_as(&["mknod"], &["mknodat"]),
    made_as(&["utime", "utimes", "futimesat", "futimens", "futimes", "lutimes"], &["utimensat"]),
    made_as(&["getdents", "readdir"], &["getdents64"]),
    made_as(&["umount"], &["umount2"]),
    made_as(&["mmap2", "mmap64"], &["mmap"]),
    made_as(&["pread"], &["pread64"]),
    made_as(&["pwrite"], &["pwrite64"]),
    made_as(&["preadv64"], &["preadv"]),
    made_as(&["pwritev64"], &["pwritev"]),
    made_as(&["_llseek", "llseek", "lseek64"], &["lseek"]),
    made_as(&["sendfile64"], &["sendfile"]),
    made_as(&["fcntl64"], &["fcntl"]),
    made_as(&["truncate64"], &["truncate"]),
    made_as(&["ftruncate64"], &["ftruncate"]),
    made_as(&["statfs64"], &["statfs"]),
    made_as(&["fstatfs64"], &["fstatfs"]),
    made_as(&["fadvise", "posix_fadvise"], &["fadvise64"]),
    made_as(&["dup2"], &["dup3"]),
    made_as(&["pipe"], &["pipe2"]),
    made_as(&["poll"], &["ppoll"]),
    made_as(&["select", "pselect", "_newselect"], &["pselect6"]),
    made_as(&["epoll_create"], &["epoll_create1"]),
    made_as(&["epoll_wait"], &["epoll_pwait", "epoll_pwait2"]),
    made_as(&["eventfd"], &["eventfd2"]),
    made_as(&["signalfd"], &["signalfd4"]),
    made_as(&["inotify_init"], &["inotify_init1"]),
    made_as(&["accept"], &["accept4"]),
    made_as(&["send"], &["sendto"]),
    made_as(&["recv"], &["recvfrom"]),
    made_as(&["fork"], &["clone", "clone3"]),
    made_as(&["clone", "pthread_create"], &["clone", "clone3"]),
    made_as(&["posix_spawn"], &["clone", "clone3", "vfork"]),
    made_as(&["exec", "execv", "execvp", "execvpe", "execl", "execlp"], &["execve", "execveat"]),
    made_as(&["wait", "waitpid", "wait3"], &["wait4"]),
    made_as(&["exit", "_exit"], &["exit_group"]),
    made_as(&["signal", "sigaction"], &["rt_sigaction"]),
    made_as(&["sigprocmask", "pthread_sigmask"], &["rt_sigprocmask"]),
    made_as(&["sigsuspend"], &["rt_sigsuspend"]),
    made_as(&["sigreturn"], &["rt_sigreturn"]),
    made_as(&["sigpending"], &["rt_sigpending"]),
    made_as(&["sigwait", "sigwaitinfo", "sigtimedwait"], &["rt_sigtimedwait"]),
    made_as(&["sleep", "usleep", "nanosleep"], &["clock_nanosleep", "nanosleep"]),
    made_as(&["getrlimit", "setrlimit", "prlimit"], &["prlimit64"]),
    made_as(&["raise"], &["tgkill"]),
    made_as(&["sbrk"], &["brk"]),
];

impl Sysno {
    /// Returns the calls that a person means by `name`, other than the call of that name. Returns
    /// none if `name` means only itself.
    pub fn made_as(name: &str) -> impl Iterator<Item = Self> + use<> {
        let calls = TABLE.iter().find(|entry| entry.names.contains(&name)).map_or(&[][..], |entry| entry.calls);
        let own = Self::from_name(name);
        calls.iter().filter_map(|call| Self::from_name(call)).filter(move |call| Some(*call) != own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_names_calls_that_there_are_and_each_name_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        for entry in TABLE {
            for call in entry.calls {
                assert!(Sysno::from_name(call).is_some(), "{call}");
            }
            for name in entry.names {
                assert!(seen.insert(*name), "{name} twice");
                assert!(Sysno::made_as(name).next().is_some(), "{name} stands for itself alone");
            }
        }
    }

    #[test]
    fn typed_names_select_the_calls_that_libc_makes() {
        let made = |name: &str| Sysno::made_as(name).map(|call| call.to_string()).collect::<Vec<_>>();
        assert_eq!(made("open"), ["openat", "openat2"]);
        assert_eq!(made("stat"), ["newfstatat", "statx"]);
        assert_eq!(made("waitpid"), ["wait4"]);
        assert_eq!(made("read"), [""; 0]);
    }
}
