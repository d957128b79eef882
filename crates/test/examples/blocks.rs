//! Work whose calls are counted in two ways: by the crate (`count NAME`), or by strace between two
//! marks (`plain NAME`). tests/oracle.rs compares them.

use std::fs;
use std::io::{Read, Write};
use std::mem::zeroed;
use std::process::Command;
use std::ptr::{null, null_mut};

type Work = (&'static str, fn());

const WORK: &[Work] = &[
    ("nothing", || ()),
    ("files", files),
    ("folder", folder),
    ("process", process),
    ("threads", threads),
    ("forks", forks),
    ("popen", popen),
    ("signals", signals),
    ("masks", masks),
    ("interrupted", interrupted),
    ("sigsys", sigsys),
    ("sockets", sockets),
    ("panics", panics),
    ("unknown", unknown),
    ("altstack", altstack),
];

fn files() {
    for _ in 0..20 {
        fs::read("/proc/self/comm").unwrap_or_default();
        let _ = fs::metadata("/nowhere");
    }
}

fn folder() {
    assert!(fs::read_dir("/proc/self").into_iter().flatten().flatten().count() > 10);
}

fn process() {
    // The command has no pipes, whose number of reads depends on timing.
    assert!(Command::new("/bin/true").status().is_ok_and(|s| s.success()));
}

/// Makes calls in other threads, which belong to these threads. They end before they are joined, so
/// that joining makes no call.
fn threads() {
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| fs::read("/proc/self/comm").is_ok())).collect();
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        std::hint::spin_loop();
    }
    std::mem::forget(threads);
}

fn forks() {
    // SAFETY: the child makes calls and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::getppid();
            libc::_exit(7);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(libc::WEXITSTATUS(status), 7);
    }
}

/// Starts a child that shares memory and stack until it execs.
fn popen() {
    // SAFETY: texts that end with a zero; the pipe is closed once.
    unsafe {
        let pipe = libc::popen(c"exit 3".as_ptr(), c"r".as_ptr());
        assert_eq!(libc::WEXITSTATUS(libc::pclose(pipe)), 3);
    }
}

/// Installs a handler during which all signals are blocked.
fn handle(signal: i32, handler: extern "C" fn(i32)) -> libc::sigaction {
    // SAFETY: actions of this process only.
    unsafe {
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = (zeroed(), zeroed());
        action.sa_sigaction = handler as *const () as usize;
        libc::sigfillset(&raw mut action.sa_mask);
        assert_eq!(libc::sigaction(signal, &raw const action, &raw mut before), 0);
        before
    }
}

extern "C" fn calls_too(_: i32) {
    // SAFETY: a call that handlers may make.
    unsafe { libc::getppid() };
}

fn signals() {
    handle(libc::SIGUSR1, calls_too);
    for _ in 0..5 {
        // SAFETY: it is handled.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
}

fn masks() {
    // SAFETY: masks of this thread.
    unsafe {
        let (mut all, mut before, mut now): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
            (zeroed(), zeroed(), zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        libc::getppid();
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), &raw mut now);
        assert_eq!(libc::sigismember(&raw const now, libc::SIGTERM), 1);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, &raw mut now);
        assert_eq!(libc::sigismember(&raw const now, libc::SIGUSR2), 1);
        libc::pthread_sigmask(libc::SIG_BLOCK, null(), &raw mut now);
        assert_eq!(libc::sigismember(&raw const now, libc::SIGTERM), 0);
        // The kernel reports a bad pointer.
        assert_eq!(libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 8, 0, 8), -1);
        assert_eq!(*libc::__errno_location(), libc::EFAULT);
    }
}

extern "C" fn nothing(_: i32) {}

/// Waits until EINTR, since the handler has no SA_RESTART.
fn interrupted() {
    handle(libc::SIGALRM, nothing);
    // SAFETY: a timer of this process.
    unsafe {
        let mut soon: libc::itimerval = zeroed();
        soon.it_value.tv_usec = 20_000;
        libc::setitimer(libc::ITIMER_REAL, &raw const soon, null_mut());
        assert_eq!(libc::poll(null_mut(), 0, 5_000), -1);
        assert_eq!(*libc::__errno_location(), libc::EINTR);
    }
}

/// Installs the program's own handler of the signal that counting uses.
fn sigsys() {
    assert_eq!(handle(libc::SIGSYS, nothing).sa_sigaction, libc::SIG_DFL);
    assert_eq!(handle(libc::SIGSYS, nothing).sa_sigaction, nothing as *const () as usize);
    // SAFETY: it is handled.
    unsafe { libc::raise(libc::SIGSYS) };
}

fn sockets() {
    let Ok(listener) = std::net::TcpListener::bind("127.0.0.1:0") else { return };
    let address = listener.local_addr().map_or_else(|_| String::new(), |a| a.to_string());
    let child = Command::new("/bin/bash").args(["-c", r#"printf systoll >"/dev/tcp/${0/:/\/}""#, &address]).spawn();
    let mut text = String::new();
    let read = listener.accept().and_then(|(mut stream, _)| stream.read_to_string(&mut text));
    assert!(child.and_then(|mut c| c.wait()).is_ok_and(|s| s.success()) && read.is_ok());
    assert_eq!(text, "systoll");
    let _ = std::io::stdout().flush();
}

fn panics() {
    std::panic::set_hook(Box::new(|_| ()));
    assert!(std::panic::catch_unwind(|| std::panic::panic_any(fs::read("/proc/self/comm").is_ok())).is_err());
}

fn unknown() {
    // SAFETY: there are no such calls.
    unsafe {
        assert_eq!(libc::syscall(500), -1);
        assert_eq!(libc::syscall(9_999), -1);
    }
}

/// Reads the signal stack: counting leaves no trace that a program can see.
fn altstack() {
    // SAFETY: only reads.
    unsafe {
        let mut stack: libc::stack_t = zeroed();
        assert_eq!(libc::sigaltstack(null(), &raw mut stack), 0);
        assert_eq!(stack.ss_flags & libc::SS_ONSTACK, 0);
    }
}

#[expect(clippy::print_stdout, reason = "what the test reads")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, how, name] = arguments.as_slice() else { panic!("blocks count|plain|list NAME") };
    if how == "list" {
        WORK.iter().for_each(|(name, _)| println!("{name}"));
        return;
    }
    let work = WORK.iter().find(|(n, _)| n == name).expect("a name of the list").1;
    // This work is done once in a process: std checks for statx, and libgcc sets up its unwinder,
    // which counting uses too.
    let _ = fs::metadata("/");
    panics();
    if how == "plain" {
        let _ = fs::metadata("/systoll-mark");
        work();
        let _ = fs::metadata("/systoll-mark");
        return;
    }
    match systoll_test::calls(work).counts {
        Ok(counts) => {
            assert_eq!(counts.incomplete(), None);
            for (name, calls) in counts.by_name() {
                println!("{name} {calls}");
            }
        }
        Err(why) => println!("skipped: {why}"),
    }
}
