//! Tests of signal handlers that make calls of their own 5,000 times a second, at any instruction.

use crate::counts::{COUNT, EACH_LONG, TIMED, file};
use crate::lab::{File, Lab, apart};
use crate::server::Server;
use iced_x86::code_asm::*;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use systoll_hooks::assemble::{Losses, Options};

const GETPPID: u32 = 110;
const GETPGRP: u32 = 111;
const READ: u32 = 0;

static GETPGRP_AT: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Calls the hooked getpgrp twice.
extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, SeqCst);
    for _ in 0..2 {
        call_at(GETPGRP_AT.load(SeqCst));
    }
}

fn call_at(address: u64) {
    // SAFETY: the address is that of a generated function without arguments.
    let function = unsafe { std::mem::transmute::<u64, extern "C" fn() -> i64>(address) };
    function();
}

/// A timer that sends `signal` to this thread every `period`, until it is dropped.
pub(crate) struct Timer(libc::timer_t);

impl Timer {
    pub(crate) fn start(signal: i32, handler: *const (), flags: i32, period: Duration) -> Self {
        // SAFETY: plain structures, valid during the calls; the handler is a function of ours.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = flags;
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
            let period = libc::timespec { tv_sec: 0, tv_nsec: period.as_nanos() as i64 };
            let each = libc::itimerspec { it_interval: period, it_value: period };
            assert_eq!(libc::timer_settime(timer, 0, &raw const each, std::ptr::null_mut()), 0);
            Self(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was made by `start`.
        unsafe { libc::timer_delete(self.0) };
    }
}

const PERIOD: Duration = Duration::from_micros(200);

#[test]
fn counts_stay_exact_under_handlers_that_call() {
    apart("signals::counts_stay_exact_under_handlers_that_call", || {
        for options in [COUNT, Options { results: true, ..COUNT }, TIMED, EACH_LONG, Options { windows: true, ..TIMED }]
        {
            for flags in [libc::SA_RESTART, libc::SA_RESTART | libc::SA_ONSTACK | libc::SA_NODEFER] {
                crate::forked(|| exact_under_signals(options, flags));
            }
        }
    });
}

fn exact_under_signals(options: Options, flags: i32) {
    let lab = Lab::new(file(), options);
    lab.enter(0);
    GETPGRP_AT.store(lab.address("getpgrp"), SeqCst);
    let server = Server::start(&[]);
    // Handlers nest if the processors are busy with other work, which takes a large stack.
    let mut stack = vec![0u8; 4 << 20];
    let other = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack outlives the timer, whose handlers alone use it.
    assert_eq!(unsafe { libc::sigaltstack(&raw const other, std::ptr::null_mut()) }, 0);
    let timer = Timer::start(libc::SIGALRM, handler as *const (), flags, PERIOD);
    lab.call("getppid 1", &[1_500_000]);
    drop(timer);
    server.stop();
    let handled = HANDLED.load(SeqCst);
    assert!(handled > 100, "{handled}");
    let returned = |n| if options.results { n } else { 0 };
    assert_eq!(lab.total(GETPPID), (1_500_000, returned(1_500_000), 0, 0));
    assert_eq!(lab.total(GETPGRP), (2 * handled, returned(2 * handled), 0, 0));
    let reading = lab.read();
    assert_eq!(Losses { unasked: 0, ..reading.losses }, Losses::default());
    let timed: u64 = reading.rows.iter().flat_map(|r| &r.threads).flat_map(|(_, c)| c.histogram).sum();
    assert_eq!(timed, if options.time { 1_500_000 + 2 * handled } else { 0 });
}

#[test]
fn blocked_calls_restart_and_fail_as_they_should() {
    apart("signals::blocked_calls_restart_and_fail_as_they_should", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        GETPGRP_AT.store(lab.address("getpgrp"), SeqCst);
        let server = Server::start(&[]);
        let mut ends = [0; 2];
        // SAFETY: pipe writes two numbers into an array of two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [from, to] = ends;
        let mut byte = 0u8;
        let mut read = || lab.call("read", &[from as u64, (&raw mut byte) as u64, 1]);
        let writer = |after: u64| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(after));
                // SAFETY: the byte written is ours.
                assert_eq!(unsafe { libc::write(to, [7u8].as_ptr().cast(), 1) }, 1);
            })
        };
        let timer = Timer::start(libc::SIGALRM, handler as *const (), libc::SA_RESTART, PERIOD);
        let writing = writer(300);
        assert_eq!(read(), 1);
        writing.join().unwrap();
        assert_eq!(lab.total(READ), (1, 1, 0, 1));
        drop(timer);
        let timer = Timer::start(libc::SIGALRM, handler as *const (), 0, PERIOD);
        let writing = writer(200);
        let mut interrupted = 0;
        while read() == -i64::from(libc::EINTR) {
            interrupted += 1;
        }
        drop(timer);
        writing.join().unwrap();
        server.stop();
        assert!(interrupted > 20, "{interrupted}");
        assert_eq!(lab.total(READ), (2 + interrupted, 2 + interrupted, interrupted, 2));
        assert_eq!(Losses { unasked: 0, ..lab.read().losses }, Losses::default());
    });
}

#[test]
fn first_sights_under_signals_are_exact() {
    apart("signals::first_sights_under_signals_are_exact", || {
        let mut file = File::new();
        let getppid = file.wrapper("getppid", GETPPID);
        file.wrapper("getpgrp", GETPGRP);
        let names: Vec<&'static str> = (0..400).map(|i| &*Box::leak(format!("from {i}").into_boxed_str())).collect();
        for name in &names {
            file.repeat(name, getppid);
        }
        let lab = Lab::new(file, TIMED);
        lab.enter(0);
        GETPGRP_AT.store(lab.address("getpgrp"), SeqCst);
        let server = Server::start(&[]);
        let timer = Timer::start(libc::SIGALRM, handler as *const (), libc::SA_RESTART, Duration::from_micros(60));
        for _ in 0..50 {
            for name in &names {
                lab.call(name, &[1]);
            }
        }
        drop(timer);
        let asked = server.stop();
        assert_eq!(lab.total(GETPPID), (20_000, 20_000, 0, 0));
        let handled = HANDLED.load(SeqCst);
        assert_eq!(lab.total(GETPGRP), (2 * handled, 2 * handled, 0, 0));
        assert!(asked.questions.len() >= 401);
        let contexts = lab.read().rows.iter().filter(|r| r.number == Some(GETPPID) && !r.path.is_empty()).count();
        assert_eq!(contexts, 400);
        assert_eq!(Losses { unasked: 0, ..lab.read().losses }, Losses::default());
    });
}

static LANDING: AtomicU64 = AtomicU64::new(0);
static STACK: AtomicU64 = AtomicU64::new(0);
static JUMPS: AtomicU64 = AtomicU64::new(0);

/// Calls the hooked getpgrp. Every third time, jumps out to `LANDING`, as siglongjmp does.
extern "C" fn jumper(_: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    let n = HANDLED.fetch_add(1, SeqCst);
    call_at(GETPGRP_AT.load(SeqCst));
    if n.is_multiple_of(3) && STACK.load(SeqCst) != 0 {
        JUMPS.fetch_add(1, SeqCst);
        // SAFETY: the kernel passes this signal's context.
        let registers = unsafe { &mut (*context).uc_mcontext.gregs };
        registers[libc::REG_RIP as usize] = LANDING.load(SeqCst) as i64;
        registers[libc::REG_RSP as usize] = STACK.load(SeqCst) as i64;
    }
}

#[test]
fn handlers_that_jump_away_lose_only_their_own_call() {
    apart("signals::handlers_that_jump_away_lose_only_their_own_call", || {
        let mut file = File::new();
        let getppid = file.wrapper("getppid", GETPPID);
        file.wrapper("getpgrp", GETPGRP);
        // The generated jumped(n, stack, done) calls getppid n times; it stores its rsp at *stack
        // and counts at *done.
        file.function("jumped");
        let a = &mut file.a;
        a.push(rbx).unwrap();
        a.push(r12).unwrap();
        a.push(r13).unwrap();
        a.mov(rbx, rdi).unwrap();
        a.mov(r12, rdx).unwrap();
        a.mov(r13, rsi).unwrap();
        a.mov(qword_ptr(r13), rsp).unwrap();
        a.jmp(qword_ptr(rcx)).unwrap();
        file.function("landing");
        let a = &mut file.a;
        let mut again = a.create_label();
        a.set_label(&mut again).unwrap();
        a.call(getppid).unwrap();
        a.inc(qword_ptr(r12)).unwrap();
        a.cmp(qword_ptr(r12), rbx).unwrap();
        a.jb(again).unwrap();
        a.mov(qword_ptr(r13), 0).unwrap();
        a.pop(r13).unwrap();
        a.pop(r12).unwrap();
        a.pop(rbx).unwrap();
        a.ret().unwrap();
        let lab = Lab::new(file, TIMED);
        lab.enter(0);
        GETPGRP_AT.store(lab.address("getpgrp"), SeqCst);
        LANDING.store(lab.address("landing"), SeqCst);
        let done = AtomicU64::new(0);
        let server = Server::start(&[]);
        let flags = libc::SA_RESTART | libc::SA_SIGINFO;
        let timer = Timer::start(libc::SIGALRM, jumper as *const (), flags, PERIOD);
        let begun = Instant::now();
        lab.call("jumped", &[1_000_000, STACK.as_ptr() as u64, done.as_ptr() as u64, LANDING.as_ptr() as u64]);
        assert!(begun.elapsed() < Duration::from_secs(60));
        drop(timer);
        server.stop();
        let (entered, returned, ..) = lab.total(GETPPID);
        let (done, jumps) = (done.load(SeqCst), JUMPS.load(SeqCst));
        assert!(jumps > 20, "{jumps}");
        assert!(
            done <= returned && returned <= entered && entered <= done + jumps,
            "{done} {returned} {entered} {jumps}"
        );
        let handled = HANDLED.load(SeqCst);
        assert_eq!(lab.total(GETPGRP).0, handled);
        assert_eq!(lab.read().losses.unmatched, 0);
    });
}
