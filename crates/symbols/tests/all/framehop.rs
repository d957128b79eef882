//! Compares stacks with those of framehop, an independent unwinder for profilers.
//!
//! Both must find the same return addresses. If they differ, the frame at which they part must have a rule that
//! framehop does not support ([`Reason`]): framehop keeps only rsp, rbp and the instruction pointer, and its
//! expressions read no memory. The documentation of src/unwind/mod.rs says why that does not suffice here.

#![expect(clippy::print_stdout, reason = "how many stacks differ, and why, is what it is run for")]

use crate::common::*;
use framehop::Unwinder;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use gimli::{CfaRule, EhFrame, LittleEndian, UnwindSection, X86_64};
use object::{Object, ObjectSection};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use systoll_symbols::{AddressSpace, ModuleKey, RawFrame, Symbols, Until};

/// The reason why framehop goes another way from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The frame is a signal's: its rule reads the interrupted code's registers from memory.
    SignalFrame,
    /// The file has no call frame information for the code, so framehop takes rbp for a frame pointer.
    NoTable,
    /// The frame's address is an expression that reads memory, or relative to a register other than rsp and rbp, as
    /// in code that realigns its stack.
    OtherRule,
    /// A return enters a function at its first byte, as at the end of a coroutine. framehop looks up the byte before
    /// it, which belongs to another function.
    EnteredByReturn,
    /// The word in the return address's place points to data, as below a coroutine's first function. framehop accepts
    /// it as a caller and continues by the frame pointer.
    NoCode,
}

/// A file's call frame information, which only gimli reads here.
struct Table {
    bytes: Vec<u8>,
    bases: gimli::BaseAddresses,
}

type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;

impl Table {
    fn of(file: &[u8]) -> Option<Self> {
        let file = object::File::parse(file).ok()?;
        let section = file.section_by_name(".eh_frame")?;
        let text = file.section_by_name(".text").map_or(0, |s| s.address());
        let bases = gimli::BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        Some(Self { bytes: section.data().ok()?.to_vec(), bases })
    }

    /// Returns the reason why framehop does not support a frame's rule; `None` if it does.
    fn reason(&self, frame: RawFrame) -> Option<Reason> {
        let section = EhFrame::new(&self.bytes, LittleEndian);
        let starts = section.fde_for_address(&self.bases, frame.address, EhFrame::cie_from_offset);
        if frame.is_return && starts.is_ok_and(|fde| fde.initial_address() == frame.address) {
            return Some(Reason::EnteredByReturn);
        }
        let address = frame.address - u64::from(frame.is_return);
        let Ok(fde) = section.fde_for_address(&self.bases, address, EhFrame::cie_from_offset) else {
            return Some(Reason::NoTable);
        };
        if fde.is_signal_trampoline() {
            return Some(Reason::SignalFrame);
        }
        let mut context = gimli::UnwindContext::new();
        let Ok(row) = fde.unwind_info_for_address(&section, &self.bases, &mut context, address) else {
            return Some(Reason::NoTable);
        };
        match row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RSP | X86_64::RBP, .. } => None,
            CfaRule::RegisterAndOffset { .. } => Some(Reason::OtherRule),
            CfaRule::Expression(expression) => {
                reads_memory(expression.get(&section).ok()?, fde.cie().encoding()).then_some(Reason::OtherRule)
            }
        }
    }
}

fn reads_memory(expression: gimli::Expression<Slice<'_>>, encoding: gimli::Encoding) -> bool {
    let mut operations = expression.operations(encoding);
    std::iter::from_fn(|| operations.next().ok().flatten()).any(|o| matches!(o, gimli::Operation::Deref { .. }))
}

/// framehop's data about one process.
struct Framehop {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    /// File of each mapping that framehop has been given, by the mapping's start.
    known: HashMap<u64, ModuleKey>,
    tables: HashMap<ModuleKey, Option<Table>>,
}

impl Framehop {
    fn new() -> Self {
        Self {
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            known: HashMap::new(),
            tables: HashMap::new(),
        }
    }

    fn update(&mut self, space: &AddressSpace, symbols: &Symbols) {
        let gone: Vec<u64> = self.known.keys().copied().filter(|s| space.files().all(|f| f.start != *s)).collect();
        for start in gone {
            self.unwinder.remove_module(start);
            self.known.remove(&start);
        }
        for file in space.files().filter(|f| !self.known.contains_key(&f.start)).collect::<Vec<_>>() {
            let Some(bytes) = symbols.bytes(file.module) else { continue };
            let name = symbols.path(file.module).unwrap_or_default().to_string();
            let module = framehop::Module::new(name, file.start..file.end, file.bias, sections(&bytes));
            self.unwinder.add_module(module);
            self.known.insert(file.start, file.module);
            self.tables.entry(file.module).or_insert_with(|| Table::of(&bytes));
        }
    }

    fn addresses(&mut self, stopped: &Stopped) -> Vec<u64> {
        let registers = stopped.registers();
        let start = UnwindRegsX86_64::new(registers.ip, registers.sp, registers.bp);
        let mut read = |address| stopped.read(address).ok_or(());
        let mut frames = self.unwinder.iter_frames(registers.ip, start, &mut self.cache, &mut read);
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            found.push(frame.address());
            if found.len() == systoll_symbols::MAX_FRAMES {
                break;
            }
        }
        found
    }

    fn reason(&self, frame: RawFrame) -> Option<Reason> {
        match self.tables.get(&frame.module?)? {
            Some(table) => table.reason(frame),
            None => Some(Reason::NoTable),
        }
    }
}

fn sections(file: &[u8]) -> framehop::ExplicitModuleSectionInfo<Vec<u8>> {
    let mut info = framehop::ExplicitModuleSectionInfo { base_svma: 0, ..Default::default() };
    let Ok(file) = object::File::parse(file) else { return info };
    let section = |name| file.section_by_name(name);
    let data = |name| section(name).and_then(|s| s.data().ok().map(<[u8]>::to_vec));
    let range = |name| section(name).map(|s| s.address()..s.address() + s.size());
    info.text_svma = range(".text");
    info.got_svma = range(".got");
    (info.eh_frame_svma, info.eh_frame) = (range(".eh_frame"), data(".eh_frame"));
    (info.eh_frame_hdr_svma, info.eh_frame_hdr) = (range(".eh_frame_hdr"), data(".eh_frame_hdr"));
    info.debug_frame = data(".debug_frame");
    info
}

/// Results of the comparison for a program's stacks.
#[derive(Debug, Default)]
struct Seen {
    stacks: usize,
    same: usize,
    reasons: BTreeMap<Reason, usize>,
    unexplained: Vec<String>,
}

fn compare(exe: &Path) -> Seen {
    let mut seen = Seen::default();
    let mut framehop = Framehop::new();
    Stopped::start(exe).each_call(|stopped, space, symbols| {
        framehop.update(space, symbols);
        let mut ours = Vec::new();
        space.unwind_placed(symbols, &stopped.registers(), &mut |a| stopped.read(a), Until::Root, &mut ours);
        let theirs = framehop.addresses(stopped);
        seen.stacks += 1;
        let ips: Vec<u64> = ours.iter().map(|p| p.ip).collect();
        if ips == theirs {
            seen.same += 1;
            return;
        }
        let agreed = ips.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        // A wrong stack pointer may show only at a frame further up, so look for a rule below.
        let rule = || ours.iter().take(agreed).rev().find_map(|placed| framehop.reason(placed.frame));
        let next = theirs.get(agreed).filter(|ip| !space.maps_executable(**ip));
        // With a wrong stack pointer, framehop reads an arbitrary word as an address. So a rule is the better reason.
        match rule().or_else(|| next.map(|_| Reason::NoCode)) {
            Some(reason) => *seen.reasons.entry(reason).or_default() += 1,
            None => seen.unexplained.push(format!("after {agreed} frames\nours     {ips:x?}\nframehop {theirs:x?}")),
        }
    });
    println!("{}: {} stacks, {} the same, others: {:?}", exe.display(), seen.stacks, seen.same, seen.reasons);
    seen
}

fn names(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/names").join(file).canonicalize().unwrap()
}

/// Builds a source of tests/programs/names as a program that waits until its input ends before it begins.
fn build(bench: &Bench, compiler: &str, flags: &[&str], out: &str) -> Option<PathBuf> {
    let file = if compiler == "g++" { "calls.cpp" } else { "calls.c" };
    let text = format!(
        "#define main watched\n#include \"{}\"\n#undef main\nint main(void) {{ wait_for_us(); return watched(); }}",
        names(file).display()
    );
    bench.compile(compiler, &[flags, &["-pthread", "-w", "-D_GNU_SOURCE"]].concat(), &text, out)
}

/// Compares both unwinders in C with and without frame pointers, in static C, and in C++ during exceptions.
#[test]
fn both_unwinders_give_the_same_return_addresses() {
    let bench = Bench::new();
    let programs: &[(&str, &[&str])] = &[
        ("gcc", &["-O0"]),
        ("gcc", &["-O2", "-fomit-frame-pointer"]),
        ("gcc", &["-O3", "-fno-omit-frame-pointer"]),
        ("gcc", &["-O2", "-static"]),
        ("g++", &["-O0", "-std=c++20"]),
        ("g++", &["-O2", "-std=c++20"]),
    ];
    for (n, (compiler, flags)) in programs.iter().enumerate() {
        let Some(exe) = build(&bench, compiler, flags, &format!("prog{n}")) else { continue };
        let seen = compare(&exe);
        assert!(seen.stacks > 15, "{compiler} {flags:?}: {seen:?}");
        assert!(seen.unexplained.is_empty(), "{compiler} {flags:?}:\n{}", seen.unexplained.join("\n"));
        // Rules that framehop does not support are rare in compiled code.
        assert!(seen.same * 10 >= seen.stacks * 8, "{compiler} {flags:?}: {seen:?}");
    }
}

/// Compares stacks of calls made in the search for an exception's handler, in destructors on the way, and in the
/// handler.
#[test]
fn exceptions_are_unwound_alike() {
    const SOURCE: &str = "
#include <sys/syscall.h>
#include <stdexcept>
struct Guard { int n; ~Guard() { syscall(SYS_getppid); } };
__attribute__((noinline)) void deep(int n) {
    Guard guard{n};
    if (n == 0) throw std::runtime_error(\"up\");
    deep(n - 1);
    syscall(SYS_getuid);
}
int main() {
    wait_for_us();
    for (int n = 0; n < 3; n++)
        try { deep(n + 2); } catch (const std::exception &) { syscall(SYS_getgid); }
    return 0;
}";
    let bench = Bench::new();
    for flags in [&["-O0"][..], &["-O2", "-fomit-frame-pointer"], &["-O2", "-static"]] {
        let Some(exe) = bench.compile("g++", flags, SOURCE, "thrown") else { return };
        let seen = compare(&exe);
        assert!(seen.same == seen.stacks && seen.stacks > 15, "{flags:?}: {seen:?}");
    }
}

/// Runs one program for each rule that framehop does not support. The test fails once framehop supports one.
#[test]
fn where_framehop_goes_another_way() {
    const SIGNAL: &str = "
#include <signal.h>
#include <sys/syscall.h>
static void handler(int n) { syscall(SYS_getppid); }
int main() { wait_for_us(); signal(SIGUSR1, handler); raise(SIGUSR1); return 0; }";
    const CALLS: &str = "
#include <sys/syscall.h>
__attribute__((noinline)) int inner(int n) { volatile char room[40]; room[0] = n; return syscall(SYS_getppid) + room[0]; }
__attribute__((noinline)) int outer(int n) { return inner(n) * 3 + n; }
int main() { wait_for_us(); return outer(3) == 0; }";
    const REALIGNED: &str = "
#include <stdarg.h>
#include <sys/syscall.h>
__attribute__((noinline)) int inner(void *at) { return syscall(SYS_getppid, at) + 1; }
__attribute__((noinline, force_align_arg_pointer)) int outer(int n, int a, int b, int c, int d, int e, int f) {
    _Alignas(64) volatile char room[n + 64]; room[0] = f; return inner((void *)room) + room[0]; }
int main() { wait_for_us(); return outer(3, 1, 1, 1, 1, 1, 1) == 0; }";
    let bench = Bench::new();
    let bare: &[&str] = &["-O2", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables"];
    let programs: &[(&str, &[&str], &str, Reason)] = &[
        ("gcc", &["-O1"], SIGNAL, Reason::SignalFrame),
        ("gcc", bare, CALLS, Reason::NoTable),
        ("gcc", &["-O2", "-fomit-frame-pointer"], REALIGNED, Reason::OtherRule),
        ("musl-gcc", &["-O2", "-static"], CALLS, Reason::NoTable),
    ];
    for (n, (compiler, flags, source, reason)) in programs.iter().enumerate() {
        let Some(exe) = bench.compile(compiler, flags, source, &format!("other{n}")) else { continue };
        let seen = compare(&exe);
        assert!(seen.unexplained.is_empty(), "{compiler} {flags:?}:\n{}", seen.unexplained.join("\n"));
        assert!(seen.reasons.contains_key(reason), "{compiler} {flags:?}: {seen:?}");
        // This crate's stacks reach the root all the same.
        let mut run = run(&exe);
        assert!(run.reaches_main(SYS_GETPPID), "{compiler} {flags:?}: {:?}", run.functions(SYS_GETPPID));
    }
}
