//! Tests of signal handlers that unwind 5,000 times a second: from our code they must get to the caller, as without
//! it.

use crate::counts::TIMED;
use crate::lab::{File, Lab, apart, set_limits};
use crate::server::Server;
use crate::signals::Timer;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use systoll_hooks::assemble::Options;

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut c_void, *mut c_void) -> i32, data: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> u64;
    fn __register_frame(section: *const u8);
}

static CALLER: AtomicU64 = AtomicU64::new(0);
static CALLER_END: AtomicU64 = AtomicU64::new(0);
static OURS: AtomicU64 = AtomicU64::new(0);
static OURS_END: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static IN_OURS: AtomicU64 = AtomicU64::new(0);
static SHORT: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Seen {
    ours: bool,
    caller: bool,
    rust: u64,
}

extern "C" fn frame(context: *mut c_void, seen: *mut c_void) -> i32 {
    // SAFETY: `seen` is the pointer that `handler` passed, and `context` is the unwinder's.
    let (seen, ip) = unsafe { (&mut *seen.cast::<Seen>(), _Unwind_GetIP(context)) };
    seen.ours |= (OURS.load(SeqCst)..OURS_END.load(SeqCst)).contains(&ip);
    if seen.caller {
        seen.rust += 1;
    }
    seen.caller |= (CALLER.load(SeqCst)..=CALLER_END.load(SeqCst)).contains(&ip);
    0
}

extern "C" fn handler(_: i32) {
    let mut seen = Seen::default();
    // SAFETY: the callback takes the pointer that is passed here.
    unsafe { _Unwind_Backtrace(frame, (&raw mut seen).cast()) };
    HANDLED.fetch_add(1, SeqCst);
    IN_OURS.fetch_add(u64::from(seen.ours), SeqCst);
    // Above the generated caller there must be frames of Rust, up to the thread's start.
    SHORT.fetch_add(u64::from(!seen.caller || seen.rust < 3), SeqCst);
}

/// Builds an `.eh_frame` for functions whose CFA lies at a fixed distance from rsp.
fn frames(functions: &[(u64, u64, u8)]) -> Vec<u8> {
    // The CIE: version 1, augmentation "zR", code alignment 1, data alignment -8, return address register 16,
    // absolute addresses; DW_CFA_def_cfa rsp 8; DW_CFA_offset rip 1.
    let mut out = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0];
    for (start, end, cfa) in functions {
        let here = out.len() as u32 + 4;
        out.extend(28u32.to_le_bytes());
        out.extend(here.to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend((end - start).to_le_bytes());
        // DW_CFA_def_cfa_offset alone: rbx needs no rule, because nothing here uses it.
        out.extend([0, 0x0e, *cfa, 0, 0, 0, 0, 0]);
    }
    out.extend([0; 4]);
    out
}

fn backtraces(calls: u64, options: Options, serve: bool) {
    let mut file = File::new();
    let getppid = file.wrapper("getppid", 110);
    file.function("end of getppid");
    file.a.int3().unwrap();
    // The generated caller saves no registers: it makes n calls, and keeps n in memory at rdi.
    file.function("caller");
    let a = &mut file.a;
    let mut again = a.create_label();
    a.sub(iced_x86::code_asm::rsp, 8).unwrap();
    a.set_label(&mut again).unwrap();
    a.call(getppid).unwrap();
    a.dec(iced_x86::code_asm::qword_ptr(iced_x86::code_asm::rdi)).unwrap();
    a.jne(again).unwrap();
    file.function("end of caller");
    a_tail(&mut file);
    let lab = Lab::new(file, options);
    lab.enter(0);
    CALLER.store(lab.address("caller"), SeqCst);
    CALLER_END.store(lab.address("end of caller"), SeqCst);
    let (start, bytes) = lab.ours();
    OURS.store(start, SeqCst);
    OURS_END.store(start + bytes, SeqCst);
    // The first instruction of caller runs before the timer starts, so one CFA describes it throughout.
    let of_file = frames(&[
        (lab.address("getppid"), lab.address("end of getppid"), 8),
        (lab.address("caller"), lab.address("end of caller") + 4, 16),
    ])
    .leak();
    // SAFETY: both sections are complete, and stay in memory.
    unsafe {
        __register_frame(of_file.as_ptr());
        __register_frame(lab.eh_frame() as *const u8);
    }
    let server = serve.then(|| Server::start(&[]));
    if !serve {
        set_limits(Duration::from_millis(500));
    }
    handler(0);
    HANDLED.store(0, SeqCst);
    SHORT.store(0, SeqCst);
    let mut left = calls;
    let timer = Timer::start(libc::SIGPROF, handler as *const (), libc::SA_RESTART, Duration::from_micros(200));
    lab.call("caller", &[(&raw mut left) as u64]);
    drop(timer);
    drop(server.map(Server::stop));
    assert!(HANDLED.load(SeqCst) > 50);
    assert!(IN_OURS.load(SeqCst) > 0, "the signal never hit our code");
    // A handler may also have interrupted Rust's code before or after the generated code.
    assert!(SHORT.load(SeqCst) <= 2, "{} short of {}", SHORT.load(SeqCst), HANDLED.load(SeqCst));
}

fn a_tail(file: &mut File) {
    file.a.add(iced_x86::code_asm::rsp, 8).unwrap();
    file.a.ret().unwrap();
}

#[test]
fn a_profiler_sees_whole_stacks() {
    apart("unwinding::a_profiler_sees_whole_stacks", || backtraces(10_000_000, TIMED, true));
}

#[test]
fn a_profiler_sees_whole_stacks_while_the_thread_waits() {
    apart("unwinding::a_profiler_sees_whole_stacks_while_the_thread_waits", || {
        // The first question gets no answer, so handlers run throughout the wait.
        backtraces(1_000_000, Options { windows: true, ..TIMED }, false);
    });
}
