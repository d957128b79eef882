//! A laboratory: generated functions with sites that are planned by hand, patched, and run in this process.
//!
//! The areas have fixed addresses, and gs belongs to a thread, so each test runs in a process of its own: [`apart`]
//! starts this program again for one test.

#![allow(dead_code, reason = "each of those who share this use a part of it")]

use crate::tree::{Reading, read};
use iced_x86::code_asm::*;
use iced_x86::{BlockEncoderOptions, Decoder, DecoderOptions};
use std::collections::HashMap;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use systoll_hooks::assemble::{Blob, Options, Refused, Room, Unhooked, assemble};
use systoll_hooks::layout::{self, GLOBAL, IMAGE, NUMBERS, global, image, slot};
use systoll_hooks::plan::{CfaOffset, Entry, Plan, Site, Span, VdsoFunction};

/// Load address of the generated file, and the distance from there to our code.
const LOAD: u64 = 0x3000_0000_0000;
const DELTA: i64 = -(16 << 20);
/// ELF address of the file's functions.
const TEXT: u64 = 0x1000;
const SIGNATURE: u32 = 0x5305_3053;
const REGION: u64 = IMAGE + image::ROOTS;

/// Runs `body` in a process of its own. Fails if the process fails. `name` is the test's name.
pub(crate) fn apart(name: &str, body: impl FnOnce()) {
    if std::env::var("SYSTOLL_LAB").is_ok_and(|n| n == name) {
        body();
        return;
    }
    let me = std::env::current_exe().unwrap();
    let mut child = Command::new(me)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("SYSTOLL_LAB", name)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            if !status.success()
                && let Some(stderr) = child.stderr.as_mut()
            {
                stderr.read_to_string(&mut said).unwrap();
            }
            assert!(status.success(), "{name}: {status}\n{said}");
            return;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("{name} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file under construction.
pub(crate) struct File {
    /// Assembler that writes the file's code.
    pub(crate) a: CodeAssembler,
    functions: Vec<(&'static str, CodeLabel)>,
    sites: Vec<Draft>,
    /// True if the plans of sites say that other code jumps to the places where their calls return.
    pub(crate) returns_are_targets: bool,
    entries: Vec<[CodeLabel; 2]>,
}

struct Draft {
    number: Option<u32>,
    labels: [CodeLabel; 4],
    wrapped: bool,
    keeps_flags: bool,
    cfa: u32,
}

impl File {
    pub(crate) fn new() -> Self {
        Self {
            a: CodeAssembler::new(64).unwrap(),
            functions: Vec::new(),
            sites: Vec::new(),
            returns_are_targets: false,
            entries: Vec::new(),
        }
    }

    /// Starts a function; its code is whatever follows.
    pub(crate) fn function(&mut self, name: &'static str) -> CodeLabel {
        let mut label = self.a.create_label();
        self.a.set_label(&mut label).unwrap();
        // The assembler needs an instruction between two labels; this one has no bytes.
        self.a.zero_bytes().unwrap();
        self.functions.push((name, label));
        label
    }

    /// Adds a site with all its windows. The code puts the call's number into eax right before the call, or, if
    /// `number` is `None`, has put it there already. `cfa` is the distance from rsp to the CFA. Returns the place
    /// behind the call.
    pub(crate) fn site(&mut self, number: Option<u32>, wrapped: bool, cfa: u32) -> CodeLabel {
        let mut labels = [0; 4].map(|_| self.a.create_label());
        let a = &mut self.a;
        a.set_label(&mut labels[0]).unwrap();
        match number {
            Some(number) => a.mov(eax, number).unwrap(),
            None => a.mov(r9, qword_ptr(rsp + 8)).unwrap(),
        }
        a.set_label(&mut labels[1]).unwrap();
        a.syscall().unwrap();
        a.set_label(&mut labels[2]).unwrap();
        a.cmp(rax, -4095).unwrap();
        a.set_label(&mut labels[3]).unwrap();
        self.sites.push(Draft { number, labels, wrapped, keeps_flags: false, cfa });
        labels[2]
    }

    /// Adds a site whose flags are read behind its call.
    pub(crate) fn site_that_keeps_flags(&mut self, number: u32, cfa: u32) {
        let mut labels = [0; 4].map(|_| self.a.create_label());
        let a = &mut self.a;
        a.set_label(&mut labels[0]).unwrap();
        a.mov(eax, number).unwrap();
        a.set_label(&mut labels[1]).unwrap();
        a.syscall().unwrap();
        a.set_label(&mut labels[2]).unwrap();
        a.nop().unwrap();
        a.set_label(&mut labels[3]).unwrap();
        a.zero_bytes().unwrap();
        self.sites.push(Draft { number: Some(number), labels, wrapped: false, keeps_flags: true, cfa });
    }

    /// Adds a function that is hooked at its entry, like those of the vDSO, and returns its fourth argument.
    pub(crate) fn entry(&mut self, name: &'static str) -> CodeLabel {
        let label = self.function(name);
        let mut labels = [0; 2].map(|_| self.a.create_label());
        self.a.set_label(&mut labels[0]).unwrap();
        self.a.mov(rax, rcx).unwrap();
        self.a.test(rax, rax).unwrap();
        self.a.set_label(&mut labels[1]).unwrap();
        self.a.ret().unwrap();
        self.entries.push(labels);
        label
    }

    /// Adds a function that makes one call.
    pub(crate) fn wrapper(&mut self, name: &'static str, number: u32) -> CodeLabel {
        let label = self.function(name);
        self.site(Some(number), false, 8);
        self.a.ret().unwrap();
        label
    }

    /// Adds a function that makes one call, and no plan for it.
    pub(crate) fn bare(&mut self, name: &'static str, number: u32) -> CodeLabel {
        let label = self.function(name);
        self.a.mov(eax, number).unwrap();
        self.a.syscall().unwrap();
        self.a.cmp(rax, -4095).unwrap();
        self.a.ret().unwrap();
        label
    }

    /// Adds a function that makes one call inside a wrapping window.
    pub(crate) fn wrapped(&mut self, name: &'static str, number: u32) -> CodeLabel {
        let label = self.function(name);
        self.site(Some(number), true, 8);
        self.a.ret().unwrap();
        label
    }

    /// Adds the function `name(number, arguments…)`, which makes any call, like syscall(2).
    pub(crate) fn any(&mut self, name: &'static str) -> CodeLabel {
        let label = self.function(name);
        let a = &mut self.a;
        for (to, from) in [(rax, rdi), (rdi, rsi), (rsi, rdx), (rdx, rcx), (r10, r8), (r8, r9)] {
            a.mov(to, from).unwrap();
        }
        self.site(None, false, 8);
        self.a.ret().unwrap();
        label
    }

    /// Adds the function `name(n, a, b, c)`, which calls `callee(a, b, c)` n times and returns the last result.
    pub(crate) fn repeat(&mut self, name: &'static str, callee: CodeLabel) -> CodeLabel {
        let label = self.function(name);
        let mut again = self.a.create_label();
        let a = &mut self.a;
        let kept = [(rbx, rdi), (r12, rsi), (r13, rdx), (r14, rcx)];
        for (register, _) in kept {
            a.push(register).unwrap();
        }
        for (register, argument) in kept {
            a.mov(register, argument).unwrap();
        }
        a.set_label(&mut again).unwrap();
        a.mov(rdi, r12).unwrap();
        a.mov(rsi, r13).unwrap();
        a.mov(rdx, r14).unwrap();
        a.call(callee).unwrap();
        a.dec(rbx).unwrap();
        a.jne(again).unwrap();
        for (register, _) in kept.into_iter().rev() {
            a.pop(register).unwrap();
        }
        a.ret().unwrap();
        label
    }

    /// Returns the file's bytes, the offsets of its functions, and its plan.
    fn finish(mut self) -> (Vec<u8>, HashMap<&'static str, u64>, Plan) {
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let done = self.a.assemble_options(TEXT, options).unwrap();
        let bytes = done.inner.code_buffer.clone();
        let functions = self.functions.iter().map(|(name, label)| (*name, done.label_ip(label).unwrap())).collect();
        let span = |from: &CodeLabel, to: &CodeLabel| {
            let (start, end) = (done.label_ip(from).unwrap(), done.label_ip(to).unwrap());
            let bytes = bytes[(start - TEXT) as usize..(end - TEXT) as usize].to_vec();
            let instructions = Decoder::with_ip(64, &bytes, start, DecoderOptions::NONE).into_iter().count();
            Some(Span { start, bytes, instructions, padding: 0 })
        };
        let site = |draft: &Draft| {
            let [head, call, behind, end] = &draft.labels;
            Site {
                entry_span: span(head, call).filter(|_| !draft.wrapped),
                return_span: span(behind, end).filter(|_| !draft.wrapped && !draft.keeps_flags),
                return_is_target: self.returns_are_targets,
                wrap_span: span(head, end).filter(|_| !draft.keeps_flags),
                cfa: Some(CfaOffset(draft.cfa)),
                hook_cfa: Some(CfaOffset(draft.cfa)),
                keeps_flags: draft.keeps_flags,
                ..Site::new(done.label_ip(call).unwrap(), draft.number)
            }
        };
        let entries = self.entries.iter().filter_map(|[start, end]| {
            let span = span(start, end)?;
            Some(Entry { function: VdsoFunction::Time, address: span.start, span })
        });
        let entries = entries.collect();
        let plan = Plan { sites: self.sites.iter().map(site).collect(), entries, ..Plan::default() };
        (bytes, functions, plan)
    }
}

/// A loaded and patched file, with the areas that it counts in.
pub(crate) struct Lab {
    pub(crate) blob: Blob,
    functions: HashMap<&'static str, u64>,
}

impl Lab {
    /// Loads `file` and patches it.
    pub(crate) fn new(file: File, options: Options) -> Self {
        let (text, functions, plan) = file.finish();
        let blob = assemble(&plan, &options, DELTA).unwrap();
        let flags = plan.sites.iter().filter(|s| s.keeps_flags);
        let no_return: Vec<_> = flags.map(|s| Refused { address: s.address, what: Unhooked::Return }).collect();
        assert_eq!(blob.refused, no_return);
        share_areas();
        let words =
            systoll_hooks::assemble::new_image(0, SIGNATURE).into_iter().chain(blob.roots(REGION, NUMBERS).unwrap());
        words.for_each(|(offset, word)| image_words()[offset as usize / 8].store(word, Ordering::Relaxed));
        let number_roots = systoll_hooks::assemble::number_roots();
        for (offset, word) in (global::NUMBER_ROOTS..).step_by(8).zip(number_roots.as_chunks::<8>().0) {
            global_word(offset).store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        for (offset, word) in layout::capture::words(true, options.receives, &|_| false) {
            global_word(offset).store(word, Ordering::Relaxed);
        }
        image_words()[image::ELIDE as usize / 8].store(u64::MAX >> 32, Ordering::Relaxed);
        global_word(global::ANSWERING).store(u64::MAX >> 32, Ordering::Relaxed);
        let mut code = blob.code_for(REGION).unwrap();
        code.resize(code.len().next_multiple_of(8), 0);
        code.extend(blob.eh_frame(code.len() as u32));
        place(LOAD.wrapping_add_signed(DELTA), &code);
        let mut text = text;
        for patch in &blob.patches {
            let at = (patch.vaddr - TEXT) as usize;
            text[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
        }
        place(LOAD + TEXT, &text);
        // Long enough for a server on a busy machine; tests without a server shorten it.
        set_limits(Duration::from_secs(10));
        Self { blob, functions }
    }

    /// Returns the address of a function in this process.
    pub(crate) fn address(&self, name: &str) -> u64 {
        LOAD + self.functions[name]
    }

    /// Returns the address and the size of the blob's code.
    pub(crate) fn ours(&self) -> (u64, u64) {
        (LOAD.wrapping_add_signed(DELTA), self.blob.code.len() as u64)
    }

    /// Returns the address of the blob's call frame information.
    pub(crate) fn eh_frame(&self) -> u64 {
        let (start, size) = self.ours();
        start + size.next_multiple_of(8)
    }

    /// Calls a function with up to six arguments. All calls come from here, so that they have one caller.
    #[inline(never)]
    pub(crate) fn call(&self, name: &str, arguments: &[u64]) -> i64 {
        let a: [u64; 7] = std::array::from_fn(|i| arguments.get(i).copied().unwrap_or(0));
        type Function = extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> i64;
        // SAFETY: the address is that of a generated function, which takes integers and keeps to the ABI.
        let function = unsafe { std::mem::transmute::<u64, Function>(self.address(name)) };
        function(a[0], a[1], a[2], a[3], a[4], a[5], a[6])
    }

    /// Makes the calling thread count in slot `index`.
    pub(crate) fn enter(&self, index: u64) {
        let at = (image::SLOTS + index * slot::SIZE) as usize;
        let tid = std::process::id();
        image_words()[(at + slot::SELF as usize) / 8].store(layout::slot_address(index), Ordering::Relaxed);
        image_words()[(at + slot::TAG as usize) / 8].store(index + 1, Ordering::Relaxed);
        image_words()[(at + slot::PID as usize) / 8].store(u64::from(tid), Ordering::Relaxed);
        image_words()[(at + slot::RSEQ as usize) / 8].store(rseq_area().unwrap_or(0), Ordering::Relaxed);
        // SAFETY: on x86-64 neither Rust nor the C library uses gs.
        unsafe { std::arch::asm!("wrgsbase {}", in(reg) layout::slot_address(index)) };
    }

    /// Reads all counts.
    pub(crate) fn read(&self) -> Reading {
        read(image_words(), REGION, &self.blob)
    }

    /// Returns the sums of a number over contexts and threads: (entered, returned, failed, bytes).
    pub(crate) fn total(&self, number: u32) -> (u64, u64, u64, u64) {
        let rows = self.read().rows;
        let counts = rows.iter().filter(|r| r.number == Some(number)).flat_map(|r| &r.threads);
        counts.fold((0, 0, 0, 0), |sum, (_, c)| {
            (sum.0 + c.entered, sum.1 + c.returned, sum.2 + c.failed, sum.3 + c.bytes)
        })
    }
}

/// Returns room for contexts in a small file, with its roots.
pub(crate) fn room() -> Room {
    let mut room = Room::default();
    room.give_roots(REGION, 1000);
    room
}

/// Returns the rseq area that the C library has registered for this thread (glibc since 2.35).
pub(crate) fn rseq_area() -> Option<u64> {
    // SAFETY: the symbol, looked up by name, holds the area's distance from the thread pointer, which lies at fs:0.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let thread: u64;
        std::arch::asm!("mov {}, fs:0", out(reg) thread);
        (!offset.is_null()).then(|| thread.wrapping_add_signed(*offset as i64))
    }
}

/// Returns the whole image as words.
pub(crate) fn image_words() -> &'static [AtomicU64] {
    // SAFETY: `share_areas` maps the image for the life of the process; all accesses are atomic.
    unsafe { std::slice::from_raw_parts(IMAGE as *const AtomicU64, image::SIZE as usize / 8) }
}

/// Returns a word of the global area.
pub(crate) fn global_word(offset: u64) -> &'static AtomicU64 {
    // SAFETY: the global area is mapped like the image; offsets are the layout's.
    unsafe { &*((GLOBAL + offset) as *const AtomicU64) }
}

/// Returns the half word at an address in the areas.
pub(crate) fn half(address: u64) -> &'static AtomicU32 {
    // SAFETY: the areas are mapped for the life of the process; all accesses are atomic.
    unsafe { &*(address as *const AtomicU32) }
}

/// Reads the time stamp counter.
pub(crate) fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Time that a thread waits when there is no server.
pub(crate) const SHORT: Duration = Duration::from_millis(20);

/// Sets the time that a thread waits for an answer.
pub(crate) fn set_limits(limit: Duration) {
    global_word(global::LIMIT).store(limit.as_secs(), Ordering::Relaxed);
    global_word(global::LIMIT + 8).store(u64::from(limit.subsec_nanos()), Ordering::Relaxed);
    for cycles in [global::LIMIT_CYCLES, global::LONG_LIMIT_CYCLES] {
        // Assume a clock of about 2.5 GHz; it need not be exact.
        global_word(cycles).store(limit.as_nanos() as u64 * 5 / 2, Ordering::Relaxed);
    }
}

fn share_areas() {
    let size = (global::SIZE + image::SIZE) as usize;
    // SAFETY: plain system calls that map new memory; the resulting address is checked.
    unsafe {
        let fd = libc::memfd_create(c"lab".as_ptr(), 0);
        assert!(fd >= 0 && libc::ftruncate(fd, size as i64) == 0);
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let at = libc::mmap(GLOBAL as *mut _, size, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0);
        assert_eq!(at as u64, GLOBAL, "{}", std::io::Error::last_os_error());
        libc::close(fd);
    }
}

/// Maps `bytes` as executable code at `address`.
fn place(address: u64, bytes: &[u8]) {
    let start = address & !0xfff;
    let size = (address - start) as usize + bytes.len();
    // SAFETY: a new mapping, whose address is checked; the copy fits in it.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let at = libc::mmap(start as *mut _, size, all, flags, -1, 0);
        assert_eq!(at as u64, start, "{}", std::io::Error::last_os_error());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
    }
}
