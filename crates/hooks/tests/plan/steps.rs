//! Runs programs one instruction at a time and compares what they execute with the plans.
//!
//! No static analysis finds every jump; this test sees the jumps that are taken. Where a plan says that registers are
//! free, the test overwrites them: the program must not notice.

use crate::files::{HELLO_C, built, first_of, skip};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use systoll_hooks::plan::{Plan, Site, plan};

/// Maximum number of instructions that a run executes.
const MAX_STEPS: usize = 3_000_000;

/// The flags that arithmetic changes: carry, parity, adjust, zero, sign, overflow.
const STATUS: u64 = 0x8d5;
const RUBBISH: u64 = 0xdead_beef_dead_beef;

/// A child process, killed when this is dropped, also by a test that fails.
struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The role of one address in its file's plan.
#[derive(Clone, Copy)]
struct Role {
    /// Start of the span that contains this address behind its first byte; execution gets here only from within the
    /// span.
    inside_of: Option<u64>,
    /// Start of the hook that this address lies behind, before or at its call; execution gets here only from the
    /// hook.
    behind_hook: Option<u64>,
    site: Option<usize>,
    hook_end: Option<usize>,
    /// True if a plan says that rcx, r11 and the flags are free here.
    is_hook: bool,
    /// True if a plan says that rax, r11 and the flags are free here.
    is_entry: bool,
}

const NONE: Role =
    Role { inside_of: None, behind_hook: None, site: None, hook_end: None, is_hook: false, is_entry: false };

/// A mapped file and what its plan says, by address in memory.
struct Module {
    start: u64,
    end: u64,
    bias: u64,
    plan: Plan,
    roles: HashMap<u64, Role>,
}

fn roles(plan: &Plan) -> HashMap<u64, Role> {
    let mut roles: HashMap<u64, Role> = HashMap::new();
    for (n, site) in plan.sites.iter().enumerate() {
        for span in [&site.entry_span, &site.return_span].into_iter().flatten() {
            for address in span.start + 1..span.end() {
                roles.entry(address).or_insert(NONE).inside_of = Some(span.start);
            }
        }
        roles.entry(site.address).or_insert(NONE).site = Some(n);
        if let Some(before) = &site.entry_span {
            for address in before.end()..=site.address {
                roles.entry(address).or_insert(NONE).behind_hook = Some(before.start);
            }
            let end = roles.entry(before.end()).or_insert(NONE);
            (end.hook_end, end.is_hook) = (Some(n), true);
        }
        if let Some(after) = &site.return_span {
            roles.entry(after.start).or_insert(NONE).is_hook = true;
        }
        if site.wrap_span.is_some() {
            roles.entry(site.address).or_insert(NONE).is_hook = true;
        }
    }
    for entry in &plan.entries {
        roles.entry(entry.span.start).or_insert(NONE).is_entry = true;
        for address in entry.span.start + 1..entry.span.end() {
            roles.entry(address).or_insert(NONE).inside_of = Some(entry.span.start);
        }
    }
    roles
}

/// Results of a run.
#[derive(Default)]
struct Seen {
    calls: usize,
    numbers: usize,
    frames: usize,
    steps: usize,
    spoilt: usize,
    output: Vec<u8>,
}

struct Run {
    pid: Pid,
    modules: Vec<Module>,
    seen: Seen,
}

impl Run {
    fn module(&mut self, rip: u64) -> Option<usize> {
        let find = |modules: &[Module]| modules.iter().position(|m| (m.start..m.end).contains(&rip));
        if let Some(n) = find(&self.modules) {
            return Some(n);
        }
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).ok()?;
        for line in maps.lines() {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [range, flags, offset, _, _, path] = columns[..] else { continue };
            let (start, end) = range.split_once('-')?;
            let [start, end, offset] = [start, end, offset].map(|hex| u64::from_str_radix(hex, 16).unwrap());
            if !flags.contains('x') || !(start..end).contains(&rip) {
                continue;
            }
            let elf = if path == "[vdso]" { crate::files::vdso()? } else { std::fs::read(path).ok()? };
            let plan = plan(&elf).ok()?;
            let segment = plan.segments.iter().find(|s| s.executable && s.file_offset & !4095 == offset)?;
            let bias = start.wrapping_sub(segment.vaddr & !4095);
            let roles = roles(&plan);
            self.modules.push(Module { start, end, bias, plan, roles });
        }
        find(&self.modules)
    }

    fn word(&self, address: u64) -> Option<u64> {
        ptrace::read(self.pid, address as ptrace::AddressType).ok().map(|w| w as u64)
    }

    /// Returns true if `address` is behind a call instruction, as every return address is.
    fn is_return_address(&self, address: u64) -> bool {
        let Some(before) = address.checked_sub(8).and_then(|at| self.word(at)) else { return false };
        let bytes = before.to_le_bytes();
        let indirect = |n: usize| bytes[n] == 0xff && bytes[n + 1] & 0x38 == 0x10;
        bytes[3] == 0xe8 || (0..=6).any(indirect)
    }

    fn step(&mut self, before: u64, rip: u64, registers: &libc::user_regs_struct) {
        self.seen.steps += 1;
        let Some(n) = self.module(rip) else { return };
        let module = &self.modules[n];
        let at = rip.wrapping_sub(module.bias);
        let Some(role) = module.roles.get(&at).copied() else { return };
        let from = before.wrapping_sub(module.bias);
        for start in [role.inside_of, role.behind_hook].into_iter().flatten() {
            assert!((start..at).contains(&from), "{from:#x} leads into the hook at {start:#x}, to {at:#x}");
        }
        let site = |n: usize| -> Site { module.plan.sites[n].clone() };
        let (call, hook) = (role.site.map(site), role.hook_end.map(site));
        if let Some(site) = call {
            self.seen.calls += 1;
            if let Some(number) = site.number {
                assert_eq!(registers.rax as u32, number, "{at:#x}");
                self.seen.numbers += 1;
            }
            self.frame(site.cfa.map(|c| c.0), registers.rsp, at);
            self.frame(site.from_rbp.map(|c| c.0), registers.rbp, at);
        }
        if let Some(site) = hook {
            self.frame(site.hook_cfa.map(|c| c.0), registers.rsp, at);
            self.frame(site.from_rbp.map(|c| c.0), registers.rbp, at);
            if site.number.is_none() {
                assert!(registers.rax < 1024, "{at:#x}: {:#x} is no number of a call", registers.rax);
            }
        }
    }

    /// Overwrites the registers that a plan says are free at `rip`, as a hook would.
    fn spoil(&mut self, mut registers: libc::user_regs_struct) {
        let Some(n) = self.module(registers.rip) else { return };
        let module = &self.modules[n];
        let Some(role) = module.roles.get(&registers.rip.wrapping_sub(module.bias)) else { return };
        if !role.is_hook && !role.is_entry {
            return;
        }
        if role.is_entry {
            registers.rax = RUBBISH;
        } else {
            registers.rcx = RUBBISH;
        }
        registers.r11 = RUBBISH;
        registers.eflags ^= STATUS;
        ptrace::setregs(self.pid, registers).unwrap();
        self.seen.spoilt += 1;
    }

    fn frame(&mut self, offset: Option<u32>, base: u64, at: u64) {
        let Some(offset) = offset else { return };
        let Some(address) = self.word(base + u64::from(offset) - 8) else { return };
        assert!(self.is_return_address(address), "{at:#x}: {address:#x} is no return address");
        self.seen.frames += 1;
    }
}

/// Runs `program` step by step; `None` if that is not possible here.
fn run(program: &Path, arguments: &[&str]) -> Option<Seen> {
    let plain = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let mut command = Command::new(program);
    // The program writes little enough for the pipe to hold it.
    command.args(arguments).stdout(Stdio::piped()).stdin(Stdio::null());
    // SAFETY: between fork and exec only one system call is made.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(Into::into)) };
    let mut target = match command.spawn() {
        Ok(child) => Target(child),
        Err(error) => {
            skip(&format!("{}: {error}", program.display()));
            return None;
        }
    };
    let pid = Pid::from_raw(target.0.id() as i32);
    let mut run = Run { pid, modules: Vec::new(), seen: Seen::default() };
    let mut before = 0;
    let mut status = waitpid(pid, None).unwrap();
    while let WaitStatus::Stopped(_, Signal::SIGTRAP) = status {
        let registers = ptrace::getregs(pid).unwrap();
        run.step(before, registers.rip, &registers);
        assert!(run.seen.steps < MAX_STEPS, "{} takes its time", program.display());
        before = registers.rip;
        run.spoil(registers);
        ptrace::step(pid, None).unwrap();
        status = waitpid(pid, None).unwrap();
    }
    assert_eq!(status, WaitStatus::Exited(pid, 0), "{}", program.display());
    std::io::Read::read_to_end(target.0.stdout.as_mut().unwrap(), &mut run.seen.output).unwrap();
    assert_eq!(run.seen.output, plain.stdout, "{}", program.display());
    assert!(run.seen.spoilt > run.seen.calls, "{}: {} spoilt", program.display(), run.seen.spoilt);
    assert!(run.seen.calls > 3 && run.seen.numbers > 3, "{}: saw nothing", program.display());
    Some(run.seen)
}

#[test]
fn a_dynamic_program_moves_as_planned() {
    let Some(program) = first_of(&["/bin/true"]) else { return };
    if let Some(seen) = run(&program, &[]) {
        assert!(seen.frames > 10, "{} frames of {} calls", seen.frames, seen.calls);
    }
}

#[test]
fn a_program_that_reads_moves_as_planned() {
    let Some(program) = first_of(&["/bin/cat"]) else { return };
    run(&program, &["/proc/version"]);
}

#[test]
fn a_program_that_asks_for_the_time_moves_as_planned() {
    let Some(program) = first_of(&["/bin/date"]) else { return };
    run(&program, &["+%Y-%m"]);
}

#[test]
fn each_static_program_moves_as_planned() {
    let dir = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 3] =
        [&["gcc", "-O2", "-static"], &["gcc", "-O2", "-static-pie"], &["musl-gcc", "-O2", "-static"]];
    for (n, command) in commands.iter().enumerate() {
        let program: Option<PathBuf> = built(dir.path(), &format!("p{n}.c"), HELLO_C, command);
        if let Some(program) = program {
            run(&program, &[]);
        }
    }
}
