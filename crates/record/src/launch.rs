//! Finds the program and starts it as a child that is held until the watcher is ready.

use crate::backend::Launch;
use crate::error::{Error, reason};
use crate::setid::{self, Nature, World};
use crate::signals::OriginalMask;
use crate::{limits, startup};
use nix::unistd::{AccessFlags, access};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use systoll_model::{EnvChange, Exit, TimeZone};

/// A program that was found and may be watched, ready to be started.
#[derive(Debug)]
pub(crate) struct Prepared {
    program: CString,
    argv: Vec<CString>,
    envp: Vec<CString>,
    cwd: Option<CString>,
    discard_output: bool,
    streams: [Option<Arc<File>>; 3],
}

/// A started child that waits to be released.
pub(crate) struct Held {
    pub(crate) pid: i32,
    line: File,
}

/// Finds the program as a shell would. Refuses a program that can't be watched, before anything starts.
///
/// # Errors
/// See [`Error`]; nothing was started.
pub(crate) fn prepare(launch: &Launch) -> Result<Prepared, Error> {
    let name = launch.command.first().ok_or(Error::NoCommand)?;
    let env = environment(&launch.env);
    let program = find(name, value(&env, "PATH"), launch.cwd.as_deref())?;
    let looked_at = match &launch.cwd {
        Some(cwd) => cwd.join(&program),
        None => std::path::absolute(&program).unwrap_or_else(|_| program.clone()),
    };
    let world = World { root: PathBuf::new(), euid: nix::unistd::geteuid().as_raw() };
    match setid::nature(&looked_at, &world) {
        Nature::Foreign(what) => return Err(Error::Architecture { program, what }),
        Nature::Privileged(what) if !setid::can_trace_privileged() => return Err(Error::SetId { program, what }),
        _ => {}
    }
    let envp = env.into_iter().map(|(mut k, v)| {
        k.push("=");
        k.push(v);
        k
    });
    Ok(Prepared {
        program: c_string(program.into_os_string())?,
        argv: launch.command.iter().cloned().map(c_string).collect::<Result<_, _>>()?,
        envp: envp.map(c_string).collect::<Result<_, _>>()?,
        discard_output: launch.discard_output,
        streams: launch.streams.clone(),
        cwd: launch.cwd.clone().map(|d| c_string(d.into_os_string())).transpose()?,
    })
}

fn c_string(text: OsString) -> Result<CString, Error> {
    CString::new(text.into_vec()).map_err(|e| Error::own("an argument holds a NUL byte", e))
}

/// Returns the `TZ` that the command will have.
pub(crate) fn time_zone(launch: &Launch) -> TimeZone {
    let env = environment(&launch.env);
    value(&env, "TZ").map_or(TimeZone::Unset, |name| TimeZone::Set(name.to_string_lossy().into_owned()))
}

/// Variables and their values, in the order in which the command gets them.
type Environment = Vec<(OsString, OsString)>;

/// Returns our environment with the changes, in the order that it has: a program may print it, or take the first of two
/// variables of one name.
fn environment(changes: &[EnvChange]) -> Environment {
    changed(std::env::vars_os().collect(), changes)
}

fn changed(mut env: Environment, changes: &[EnvChange]) -> Environment {
    for change in changes {
        let (EnvChange::Set(name, _) | EnvChange::Remove(name)) = change;
        let at = env.iter().position(|(other, _)| other == name);
        env.retain(|(other, _)| other != name);
        if let EnvChange::Set(name, value) = change {
            env.insert(at.unwrap_or(env.len()).min(env.len()), (name.clone(), value.clone()));
        }
    }
    env
}

/// Returns the value of a variable of the environment.
fn value<'a>(env: &'a Environment, name: &str) -> Option<&'a OsString> {
    env.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

fn find(name: &OsStr, path: Option<&OsString>, cwd: Option<&Path>) -> Result<PathBuf, Error> {
    let here = |p: &Path| cwd.map_or_else(|| p.to_owned(), |d| d.join(p));
    if name.as_bytes().contains(&b'/') {
        let program = PathBuf::from(name);
        return executable(&here(&program), &program).map(|()| program);
    }
    if name.is_empty() {
        return Err(Error::NotFound(name.into()));
    }
    let default = OsString::from("/usr/local/bin:/usr/bin:/bin");
    let mut denied = None;
    for dir in std::env::split_paths(path.unwrap_or(&default)) {
        let program = if dir.as_os_str().is_empty() { Path::new(".").join(name) } else { dir.join(name) };
        match executable(&here(&program), &program) {
            Ok(()) => return Ok(program),
            // We can't see into a folder that may not be searched.
            Err(e @ Error::NotExecutable { .. }) if here(&program).symlink_metadata().is_ok() => {
                denied = denied.or(Some(e));
            }
            Err(_) => {}
        }
    }
    Err(denied.unwrap_or_else(|| Error::NotFound(name.into())))
}

fn executable(at: &Path, program: &Path) -> Result<(), Error> {
    let not = |e: std::io::Error| Error::NotExecutable { program: program.to_owned(), reason: reason(&e) };
    let meta = std::fs::metadata(at).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Error::NotFound(program.to_owned()),
        _ => not(e),
    })?;
    if meta.is_dir() {
        return Err(Error::Directory(program.to_owned()));
    }
    access(at, AccessFlags::X_OK).map_err(|e| not(e.into()))
}

impl Prepared {
    /// Returns the path of the program as it will be given to `execve`.
    pub(crate) fn program(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(self.program.as_bytes()))
    }

    /// Forks a child that waits to be released and then becomes the program.
    ///
    /// # Errors
    /// If no pipe or no process can be made.
    pub(crate) fn start(&self, mask: &OriginalMask) -> Result<Held, Error> {
        let (ours, its) = pair()?;
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv, envp) = (pointers(&self.argv), pointers(&self.envp));
        let child =
            Child { prepared: self, argv: &argv, envp: &envp, line: its.as_raw_fd(), watchers: ours.as_raw_fd(), mask };
        // Signals sent to the child before its exec stay pending until it is about to become the program: it then dies
        // of them as the program would have, and not half-way.
        let blocked = AllBlocked::new();
        // SAFETY: the child only makes async-signal-safe calls on memory prepared above until it
        // execs or exits, as fork in a process with threads demands.
        let forked = match unsafe { libc::fork() } {
            -1 => Err(Error::own("can't start a process", std::io::Error::last_os_error())),
            // SAFETY: this is the forked child, see above.
            0 => unsafe { child.become_program() },
            pid => Ok(Held { pid, line: ours.into() }),
        };
        drop(blocked);
        forked
    }
}

/// Makes one socket pair for both directions: if descriptors are scarce, two pipes are too many.
fn pair() -> Result<(OwnedFd, OwnedFd), Error> {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for both descriptors, which are ours alone from here on.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()) != 0 {
            return Err(Error::own("can't make a pair of sockets", std::io::Error::last_os_error()));
        }
        Ok((high(OwnedFd::from_raw_fd(fds[0]))?, high(OwnedFd::from_raw_fd(fds[1]))?))
    }
}

/// Moves a descriptor out of 0 to 2, where it would be mistaken for a standard stream.
fn high(fd: OwnedFd) -> Result<OwnedFd, Error> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    // SAFETY: F_DUPFD_CLOEXEC on a descriptor we own gives another that is ours alone.
    unsafe {
        let new = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3);
        if new < 0 {
            return Err(Error::own("can't duplicate a descriptor", std::io::Error::last_os_error()));
        }
        Ok(OwnedFd::from_raw_fd(new))
    }
}

impl Held {
    /// Lets the child go on to its exec.
    ///
    /// # Errors
    /// If the child is gone.
    pub(crate) fn release(&mut self) -> std::io::Result<()> {
        self.line.write_all(b"g")
    }

    /// Returns the reason why the child, which ended with `exit`, has not executed `program`.
    pub(crate) fn not_begun(mut self, program: PathBuf, exit: Option<Exit>) -> Error {
        if let Some(Exit::Signal(signal)) = exit {
            return Error::Ended { program, signal };
        }
        let mut errno = [0; 4];
        let errno = self.line.read_exact(&mut errno).map_or(libc::ECHILD, |()| i32::from_ne_bytes(errno));
        let reason = match errno {
            libc::ENOENT => "its interpreter does not exist".into(),
            _ => reason(&std::io::Error::from_raw_os_error(errno)),
        };
        Error::NotExecutable { program, reason }
    }
}

/// Signal mask of this thread before all signals were blocked; restored when dropped.
struct AllBlocked(libc::sigset_t);

impl AllBlocked {
    fn new() -> Self {
        // SAFETY: both sets are valid, the first filled before it is used.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
            Self(before)
        }
    }
}

impl Drop for AllBlocked {
    fn drop(&mut self) {
        // SAFETY: sets a mask that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

struct Child<'a> {
    prepared: &'a Prepared,
    argv: &'a [*const libc::c_char],
    envp: &'a [*const libc::c_char],
    /// Connection to the watcher: the word to go on arrives here, and the errno of a failed exec is sent back.
    line: i32,
    /// The watcher's end of the connection; a copy held here would hide the watcher's death, so the child closes it.
    watchers: i32,
    mask: &'a OriginalMask,
}

impl Child<'_> {
    /// Restores the state that systoll's own start changed, waits for the word to go on, and execs.
    ///
    /// # Safety
    /// Must run in a forked child, which it never leaves.
    unsafe fn become_program(&self) -> ! {
        // SAFETY: only async-signal-safe calls, on memory that was prepared before the fork.
        unsafe {
            libc::close(self.watchers);
            let pipe_action = if startup::sigpipe_was_ignored() { libc::SIG_IGN } else { libc::SIG_DFL };
            libc::signal(libc::SIGPIPE, pipe_action);
            for fd in 0..3 {
                if startup::was_closed(fd) {
                    libc::close(fd);
                }
            }
            if self.prepared.discard_output {
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                if null < 0 || libc::dup2(null, 1) < 0 || libc::dup2(null, 2) < 0 {
                    self.fail();
                }
            }
            for (stream, fd) in self.prepared.streams.iter().zip(0..) {
                if let Some(file) = stream
                    && libc::dup2(file.as_raw_fd(), fd) < 0
                {
                    self.fail();
                }
            }
            if let Some(cwd) = &self.prepared.cwd
                && libc::chdir(cwd.as_ptr()) != 0
            {
                self.fail();
            }
            let mut byte = 0u8;
            // A short read means the watcher is gone: never run unwatched without being asked to.
            if libc::read(self.line, (&raw mut byte).cast(), 1) != 1 {
                libc::_exit(125);
            }
            limits::restore();
            self.mask.restore();
            libc::execve(self.prepared.program.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
            self.fail()
        }
    }

    /// # Safety
    /// As [`Child::become_program`].
    unsafe fn fail(&self) -> ! {
        // SAFETY: async-signal-safe calls only.
        unsafe {
            let errno = *libc::__errno_location();
            libc::send(self.line, (&raw const errno).cast(), 4, libc::MSG_NOSIGNAL);
            libc::_exit(127)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare_one(name: &str) -> Result<Prepared, Error> {
        prepare(&Launch { command: vec![name.into()], ..Launch::default() })
    }

    #[test]
    fn programs_are_found_as_a_shell_does() {
        assert!(prepare_one("true").unwrap().program().is_absolute());
        assert_eq!(prepare_one("no-such-program-here").unwrap_err().exit_code(), 127);
        assert_eq!(prepare_one("/no/such/program").unwrap_err().exit_code(), 127);
        assert_eq!(prepare_one("").unwrap_err().exit_code(), 127);
        assert_eq!(prepare_one("/tmp").unwrap_err().exit_code(), 126);
        assert_eq!(prepare_one("/etc/passwd").unwrap_err().exit_code(), 126);
        assert!(matches!(prepare(&Launch::default()), Err(Error::NoCommand)));
    }

    #[test]
    fn what_is_in_a_folder_that_may_not_be_searched_is_not_known() {
        let open = tempfile::tempdir().unwrap();
        std::fs::write(open.path().join("plain"), "").unwrap();
        // The folder's name is longer than any can be, so that root can't search it either.
        let closed = open.path().join("x".repeat(300));
        let status = |folders: &[&Path]| {
            let path = std::env::join_paths(folders).unwrap();
            find(OsStr::new("plain"), Some(&path), None).unwrap_err().exit_code()
        };
        assert_eq!(status(&[open.path()]), 126);
        assert_eq!(status(&[&closed]), 127);
        assert_eq!(status(&[&closed, open.path()]), 126);
    }

    #[test]
    fn environment_changes_come_on_top() {
        let env = environment(&[EnvChange::Set("SYSTOLL_A".into(), "1".into()), EnvChange::Remove("PATH".into())]);
        assert_eq!(value(&env, "SYSTOLL_A"), Some(&"1".into()));
        assert_eq!(value(&env, "PATH"), None);
    }

    #[test]
    fn the_environment_keeps_its_order() {
        let of = |names: &[&str]| names.iter().map(|name| (name.into(), "1".into())).collect::<Environment>();
        let env = of(&["SHELL", "HOME", "A", "TZ", "A"]);
        assert_eq!(changed(env.clone(), &[]), env);
        let changes = [EnvChange::Set("A".into(), "1".into()), EnvChange::Remove("HOME".into())];
        assert_eq!(changed(env, &changes), of(&["SHELL", "A", "TZ"]));
    }
}
