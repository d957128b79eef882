//! Compiles small programs, stops them at each of their system calls, and returns their stacks.
#![allow(unreachable_pub, clippy::print_stderr, reason = "only tests use it, and skipped ones say so")]

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use systoll_model::Frame;
use systoll_symbols::{AddressSpace, RawFrame, Registers, Symbols, Until};

/// Start of every program: it waits until its standard input is closed, so that it can be seized before it does its
/// work.
pub const WAIT: &str =
    "#include <unistd.h>\nstatic inline void wait_for_us(void) { char c; while (read(0, &c, 1) > 0); }\n";

/// Prints what can't be tested here; fails if no test may be skipped.
pub fn skip(why: &str) {
    let strict = std::env::var_os("SYSTOLL_TEST_STRICT").is_some_and(|v| v == "1");
    assert!(!strict, "not to be skipped: {why}");
    eprintln!("skipped: {why}");
}

/// A temporary folder for one test's files.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Compiles `source` behind [`WAIT`] to `out`. Returns `None`, and says so, if the compiler is not installed.
    pub fn compile(&self, compiler: &str, args: &[&str], source: &str, out: &str) -> Option<PathBuf> {
        let ending = if compiler == "g++" { "cc" } else { "c" };
        let source = self.file(&format!("{out}.{ending}"), &format!("{WAIT}#line 1 \"{out}.{ending}\"\n{source}"));
        let exe = self.dir.path().join(out);
        let mut command = Command::new(compiler);
        command.arg(&source).args(args).arg("-o").arg(&exe).current_dir(self.dir.path());
        self.run(compiler, command).map(|()| exe)
    }

    /// Runs a tool that must succeed. Returns `None` if it is not installed.
    pub fn run(&self, tool: &str, mut command: Command) -> Option<()> {
        match command.status() {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                skip(&format!("{tool} is not installed"));
                None
            }
            status => {
                assert!(status.unwrap().success(), "{command:?} failed");
                Some(())
            }
        }
    }

    pub fn strip(&self, exe: &Path) {
        assert!(Command::new("strip").arg(exe).status().unwrap().success());
    }
}

/// One system call of the program, with the stack at its entry.
pub struct Call {
    pub nr: u64,
    pub context: Vec<RawFrame>,
    pub stack: Vec<RawFrame>,
    /// Addresses of the stack's frames in the program's memory.
    pub ips: Vec<u64>,
    pub complete: bool,
}

/// Results of a program that ran to its end.
pub struct Run {
    pub symbols: Symbols,
    pub calls: Vec<Call>,
}

impl Run {
    /// Returns the first call of this number that the program made after it was released.
    pub fn call(&self, nr: i64) -> &Call {
        self.calls.iter().find(|c| c.nr == nr as u64).unwrap_or_else(|| panic!("no system call {nr}"))
    }

    pub fn api(&mut self, nr: i64) -> Option<String> {
        let context = self.call(nr).context.clone();
        self.symbols.api(&context).map(|(name, _)| name.to_string())
    }

    pub fn frames(&mut self, raw: &[RawFrame]) -> Vec<Frame> {
        self.symbols.resolve(raw).frames
    }

    /// Returns the last frame of the call's context, which is the user's.
    pub fn user(&mut self, nr: i64) -> Frame {
        let last = *self.call(nr).context.last().unwrap();
        self.frames(&[last]).remove(0)
    }

    /// Returns the function names of the whole stack, leaf first.
    pub fn functions(&mut self, nr: i64) -> Vec<String> {
        let stack = self.call(nr).stack.clone();
        self.frames(&stack).iter().map(|f| f.function().to_string()).collect()
    }

    pub fn reaches_main(&mut self, nr: i64) -> bool {
        let stack = self.call(nr).stack.clone();
        self.symbols.reaches_main(&stack)
    }
}

/// A program stopped in the system call in which it waits.
pub struct Stopped {
    pub child: Child,
    pub pid: Pid,
    memory: File,
}

impl Stopped {
    /// Starts `exe`, waits until it sleeps in `read(0, …)` and seizes it.
    pub fn start(exe: &Path) -> Self {
        Self::start_by(&mut Command::new(exe))
    }

    /// Starts `command`, which becomes the program, waits until that sleeps in `read(0, …)`, and seizes it.
    pub fn start_by(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).env_remove("TZ").spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        let waits = || std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|s| s.starts_with("0 0x0 "));
        for _ in 0..5000 {
            if waits() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(waits(), "{command:?} does not wait for its input");
        ptrace::seize(pid, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL).unwrap();
        ptrace::interrupt(pid).unwrap();
        waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap();
        let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        Self { child, pid, memory }
    }

    pub fn registers(&self) -> Registers {
        registers(self.pid)
    }

    pub fn read(&self, addr: u64) -> Option<u64> {
        read(&self.memory, addr)
    }

    pub fn unwind(&self, space: &mut AddressSpace, symbols: &mut Symbols, until: Until) -> (Vec<RawFrame>, bool) {
        let mut out = Vec::new();
        let complete = space.unwind(symbols, &self.registers(), &mut |a| self.read(a), until, &mut out);
        (out, complete)
    }

    /// Lets the program run to its end and records each of its system calls.
    pub fn finish(self) -> Run {
        let mut calls = Vec::new();
        let symbols = self.each_call(|stopped, space, symbols| {
            let nr = ptrace::getregs(stopped.pid).unwrap().orig_rax;
            let (context, _) = stopped.unwind(space, symbols, Until::UserFrame);
            let mut placed = Vec::new();
            let read = &mut |a| stopped.read(a);
            let complete = space.unwind_placed(symbols, &stopped.registers(), read, Until::Root, &mut placed);
            let (stack, ips) = placed.iter().map(|p| (p.frame, p.ip)).unzip();
            calls.push(Call { nr, context, stack, ips, complete });
        });
        Run { symbols, calls }
    }

    /// Lets the program run to its end and calls `look` at the entry of each system call, with the mappings at that
    /// time.
    pub fn each_call(mut self, mut look: impl FnMut(&Self, &mut AddressSpace, &mut Symbols)) -> Symbols {
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        drop(self.child.stdin.take());
        let mut signal = None;
        loop {
            ptrace::syscall(self.pid, signal.take()).unwrap();
            match waitpid(self.pid, Some(WaitPidFlag::__WALL)).unwrap() {
                WaitStatus::Exited(_, 0) => break,
                WaitStatus::PtraceSyscall(_) => {}
                WaitStatus::Stopped(_, s) if s != Signal::SIGTRAP => {
                    signal = Some(s);
                    continue;
                }
                WaitStatus::PtraceEvent(..) => continue,
                other => panic!("the program ended badly: {other:?}"),
            }
            // At the entry, the kernel puts -ENOSYS into rax (PTRACE_SYSCALL in ptrace(2)).
            if ptrace::getregs(self.pid).unwrap().rax != (-38i64) as u64 {
                continue;
            }
            space.update(&mut symbols, self.pid.as_raw());
            look(&self, &mut space, &mut symbols);
        }
        let _ = self.child.wait();
        symbols
    }
}

/// Runs `exe` to its end and records its system calls.
pub fn run(exe: &Path) -> Run {
    Stopped::start(exe).finish()
}

pub const SYS_SIGPROCMASK: i64 = 14;
pub const SYS_GETPPID: i64 = 110;
pub const SYS_MEMBARRIER: i64 = 324;
pub const SYS_EXIT_GROUP: i64 = 231;
pub const SYS_NEWFSTATAT: i64 = 262;

fn registers(pid: Pid) -> Registers {
    let r = ptrace::getregs(pid).unwrap();
    Registers {
        ip: r.rip,
        sp: r.rsp,
        bp: r.rbp,
        ax: r.rax,
        bx: r.rbx,
        cx: r.rcx,
        dx: r.rdx,
        si: r.rsi,
        di: r.rdi,
        r8: r.r8,
        r9: r.r9,
        r10: r.r10,
        r11: r.r11,
        r12: r.r12,
        r13: r.r13,
        r14: r.r14,
        r15: r.r15,
    }
}

fn read(memory: &File, addr: u64) -> Option<u64> {
    let mut word = [0; 8];
    memory.read_exact_at(&mut word, addr).ok()?;
    Some(u64::from_le_bytes(word))
}

/// Returns the function names of the main thread's whole stack, leaf first and with inlined functions, and true if
/// the stack is complete.
pub fn stack_of(pid: i32) -> (Vec<String>, bool) {
    let pid = Pid::from_raw(pid);
    ptrace::seize(pid, Options::empty()).unwrap();
    ptrace::interrupt(pid).unwrap();
    waitpid(pid, Some(WaitPidFlag::__WALL)).unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let (mut symbols, mut space, mut stack) = (Symbols::new(), AddressSpace::new(), Vec::new());
    space.update(&mut symbols, pid.as_raw());
    let complete = space.unwind(&mut symbols, &registers(pid), &mut |a| read(&memory, a), Until::Root, &mut stack);
    ptrace::detach(pid, None).unwrap();
    let frames = symbols.resolve(&stack).frames;
    (frames.iter().flat_map(|f| &f.locations).map(|l| l.function.to_string()).collect(), complete)
}
