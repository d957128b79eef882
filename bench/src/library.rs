//! The libraries' own share: stacks, names, files.

use crate::Bench;
use crate::stats::{Summary, summary, time};
use anyhow::{Context, Result, ensure};
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use systoll_model::Recording;
use systoll_symbols::{AddressSpace, RawFrame, Registers, Symbols, Until};

/// Writes the recording at `path` to memory and reads it again.
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

/// Programs that wait for their input: a large one of ours, a small one without debug files, and one
/// with a deep stack.
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
            one(&name, &Stopped::start(program, args)?)?;
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
    // Memory is read beforehand: the kernel's share is another matter.
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

/// A program stopped in the read it waits in. Ends with this value.
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
        // It may be gone already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
