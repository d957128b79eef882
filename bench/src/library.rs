//! Times the libraries: unwinding, naming, and reading and writing recordings.

use crate::Bench;
use crate::stats::{Summary, summary, time};
use anyhow::{Context, Result, ensure};
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use systoll_model::Recording;
use systoll_symbols::{AddressSpace, RawFrame, Registers, Symbols, Until};

/// Times writing the recording at `path` to memory and reading it again.
pub(crate) fn recording(path: &Path) -> Result<()> {
    let bytes = std::fs::read(path)?;
    let recording = Recording::read(bytes.as_slice())?;
    let read = repeated(30, || Recording::read(bytes.as_slice()).map(drop))?;
    let write = repeated(30, || recording.write(&mut Vec::with_capacity(bytes.len())))?;
    println!("\nthat recording: {} rows, {} windows", recording.rows.len(), recording.windows.len());
    println!("  write   {} fastest, {} median", time(write.fastest), time(write.median));
    println!("  read    {} fastest, {} median", time(read.fastest), time(read.median));
    Ok(())
}

/// Times unwinding and naming in programs that wait for input: a large one of ours, a small one
/// without debug files, and one with a deep stack.
pub(crate) fn symbols(bench: &Bench) -> Result<()> {
    println!("\nstacks and names");
    let mut seen = 0;
    for program in [bench.systoll.as_path(), Path::new("/usr/bin/cat"), Path::new("/usr/bin/python3")] {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let args: &[&str] = match name.as_str() {
            "systoll" => &["report", "-"],
            "python3" => &["-c", "input()"],
            _ => &[],
        };
        if program.is_file() {
            let stopped = Stopped::start(program, args)?;
            one(&name, &stopped)?;
            many(&name, &stopped)?;
            seen += 1;
        }
    }
    ensure!(seen > 0, "no program to look at");
    Ok(())
}

fn one(name: &str, stopped: &Stopped) -> Result<()> {
    let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
    let start = Instant::now();
    space.update(&mut symbols, stopped.pid.as_raw());
    let load = start.elapsed();
    let regs = stopped.registers()?;
    let words: Vec<u64> = (0..4096).map_while(|n| stopped.word(regs.sp.checked_add(8 * n)?)).collect();
    // Read the stack beforehand: the time that the kernel takes for it is measured elsewhere.
    let mut read = |at: u64| words.get(usize::try_from(at.checked_sub(regs.sp)? / 8).ok()?).copied();
    let mut frames: Vec<RawFrame> = Vec::new();
    let start = Instant::now();
    space.unwind(&mut symbols, &regs, &mut read, Until::Root, &mut frames);
    let cold = start.elapsed();
    let mut out = Vec::with_capacity(frames.len());
    let warm = repeated(200, || -> Result<()> {
        for _ in 0..100 {
            out.clear();
            space.unwind(&mut symbols, &regs, &mut read, Until::Root, &mut out);
        }
        Ok(())
    })?;
    let start = Instant::now();
    symbols.resolve(&frames);
    let named = start.elapsed();
    println!(
        "  {name:<8} load {}, stack of {} cold {}, warm {} fastest, {} median, names of it {}",
        ns(load),
        frames.len(),
        ns(cold),
        time(warm.fastest / 100.0),
        time(warm.median / 100.0),
        ns(named)
    );
    Ok(())
}

/// Number of distinct stacks named at once: as many as a run of a large server has.
const STACKS: u64 = 2000;

/// Number of calls that these stacks consist of.
const CALLS: usize = 2000;

/// Unwinds and names [`STACKS`] made-up stacks; each return address lies behind a call of the
/// program. Measures processor time, which other work on the machine changes less.
fn many(name: &str, stopped: &Stopped) -> Result<()> {
    let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
    space.update(&mut symbols, stopped.pid.as_raw());
    let file = space.files().next().context("nothing is mapped")?;
    let mut text = vec![0; usize::try_from(file.end - file.start)?];
    stopped.memory.read_exact_at(&mut text, file.start)?;
    let mut pool = returns(&text, file.start);
    let each = pool.len().div_ceil(CALLS).max(1);
    pool = pool.into_iter().step_by(each).collect();
    ensure!(!pool.is_empty(), "{name} calls nothing");
    let any = |at: u64| pool.get((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % pool.len()).copied();
    let start = cpu()?;
    let (mut frames, mut distinct) = (Vec::new(), HashSet::new());
    for n in 0..STACKS {
        let sp = 0x7000_0000_0000 + n * 0x10_0000;
        let regs = Registers { ip: any(sp).unwrap_or(0), sp, bp: sp + 0x800, ..Registers::default() };
        // Every 0x800 bytes lies a saved frame pointer; every other word below the stack's root is
        // a return address.
        let mut read = |at: u64| match at - sp {
            DEPTH.. => Some(0),
            frame if frame % 0x800 == 0 => Some(at + 0x800),
            _ => any(at),
        };
        frames.clear();
        space.unwind(&mut symbols, &regs, &mut read, Until::Root, &mut frames);
        distinct.extend(frames.iter().copied());
    }
    let unwound = cpu()? - start;
    let frames: Vec<RawFrame> = distinct.into_iter().collect();
    let resolved = symbols.resolve(&frames);
    let all = cpu()? - start;
    let lines = resolved.frames.iter().filter(|f| f.location().is_some_and(|l| l.line.is_some())).count();
    println!(
        "  {name:<8} {STACKS} stacks of {} addresses: unwound in {}, named too in {} ({lines} with lines), {} MB resident",
        frames.len(),
        ns(unwound),
        ns(all),
        resident()? / 1024
    );
    Ok(())
}

/// Size of a made-up stack in bytes: some 30 frames.
const DEPTH: u64 = 0x1000;

/// Returns the addresses right behind direct calls within `text`, which is mapped at `start`.
fn returns(text: &[u8], start: u64) -> Vec<u64> {
    const CALL: u8 = 0xe8;
    let end = start + text.len() as u64;
    let behind = |(at, code): (usize, &[u8])| {
        let [CALL, a, b, c, d] = *code else { return None };
        let next = start + at as u64 + 5;
        let to = next.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
        (start..end).contains(&to).then_some(next)
    };
    text.windows(5).enumerate().filter_map(behind).collect()
}

/// Returns the processor time that this thread has used.
fn cpu() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?))
}

/// Returns this process's peak resident memory, in KiB.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn ns(duration: Duration) -> String {
    time(duration.as_nanos() as f64)
}

fn repeated<E: Into<anyhow::Error>>(times: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Summary> {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        work().map_err(Into::into)?;
        taken.push(start.elapsed().as_nanos() as f64);
    }
    summary(taken).context("nothing was done")
}

/// A program stopped in the read in which it waits. Dropping this ends the program.
struct Stopped {
    child: Child,
    pid: Pid,
    memory: File,
}

impl Stopped {
    fn start(program: &Path, args: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("can't run {}", program.display()))?;
        let pid = Pid::from_raw(child.id().cast_signed());
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let stopped = Self { child, pid, memory };
        let waits = || std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|s| s.starts_with("0 0x0 "));
        for _ in 0..5000 {
            if waits() {
                ptrace::seize(pid, Options::PTRACE_O_EXITKILL)?;
                ptrace::interrupt(pid)?;
                waitpid(pid, Some(WaitPidFlag::__WALL))?;
                return Ok(stopped);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        anyhow::bail!("{} does not wait for its input", program.display())
    }

    fn registers(&self) -> Result<Registers> {
        let r = ptrace::getregs(self.pid)?;
        Ok(Registers {
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
        })
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, at).ok().map(|()| u64::from_le_bytes(bytes))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // The program may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
