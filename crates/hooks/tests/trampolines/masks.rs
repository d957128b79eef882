//! Tests that signal masks answered in place equal the kernel's, whatever handlers do.

use crate::counts::TIMED;
use crate::lab::{File, Lab, apart, global_word, half};
use crate::server::Server;
use crate::signals::Timer;
use iced_x86::code_asm::{r10, rcx};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use systoll_hooks::assemble::{Losses, Options};
use systoll_hooks::layout::{IMAGE, elide, global, image};

const SIGPROCMASK: u32 = 14;
const RSEQ: u32 = 334;

static MASK_AT: AtomicU64 = AtomicU64::new(0);
static RESTORER: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
static CHECKED: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(1);

/// Address of the pages that masks are read from and written to. There are so many that some share a place in the
/// tables of pages.
static PAGES: AtomicU64 = AtomicU64::new(0);
const PAGE: u64 = 4096;
const PAGES_LEN: u64 = 200;

/// Makes the call; each mask lies at a random place on a page of its own.
fn elsewhere(how: i32, set: Option<u64>, old: Option<&mut u64>) {
    type Call = extern "C" fn(u64, *const u64, *mut u64, u64) -> i64;
    // SAFETY: the address is that of the generated rt_sigprocmask.
    let call = unsafe { std::mem::transmute::<u64, Call>(MASK_AT.load(SeqCst)) };
    let place = || (PAGES.load(SeqCst) + random(PAGES_LEN) * PAGE + 8 * random(PAGE / 8)) as *mut u64;
    let (from, to) = (place(), place());
    if let Some(set) = set {
        // SAFETY: the eight bytes lie in memory that only this thread and its handlers use.
        unsafe { from.write_volatile(set) };
    }
    let arguments =
        (set.map_or(std::ptr::null(), |_| from.cast_const()), old.as_ref().map_or(std::ptr::null_mut(), |_| to));
    let handled = HANDLED.load(SeqCst);
    assert_eq!(call(how as u64, arguments.0, arguments.1, 8), 0);
    if let (Some(old), true) = (old, handled == HANDLED.load(SeqCst)) {
        // SAFETY: the eight bytes lie in memory that only this thread and its handlers use.
        *old = unsafe { to.read_volatile() };
    }
}

fn hooked(how: i32, set: Option<u64>, old: Option<&mut u64>) {
    type Call = extern "C" fn(u64, *const u64, *mut u64, u64) -> i64;
    // SAFETY: the address is that of the generated rt_sigprocmask.
    let call = unsafe { std::mem::transmute::<u64, Call>(MASK_AT.load(SeqCst)) };
    let set = set.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    assert_eq!(call(how as u64, set, old.map_or(std::ptr::null_mut(), std::ptr::from_mut), 8), 0);
}

/// Compares the mask that the hooked call returns with the kernel's.
fn check() {
    let (mut ours, mut kernels) = (0u64, 0u64);
    let handled = HANDLED.load(SeqCst);
    hooked(libc::SIG_BLOCK, None, Some(&mut ours));
    // SAFETY: the call writes the 8 bytes of `kernels`.
    unsafe { libc::syscall(i64::from(SIGPROCMASK), 0, 0, &raw mut kernels, 8) };
    if handled != HANDLED.load(SeqCst) {
        // A handler ran between the two calls, and may have changed the mask for good.
        return;
    }
    CHECKED.fetch_add(1, SeqCst);
    WRONG.fetch_add(u64::from(ours != kernels), SeqCst);
}

fn random(below: u64) -> u64 {
    let next = SEED.load(SeqCst).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    SEED.store(next, SeqCst);
    (next >> 33) % below
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

extern "C" fn handler(_: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    HANDLED.fetch_add(1, SeqCst);
    check();
    match random(6) {
        0 => hooked(libc::SIG_BLOCK, Some(bit(libc::SIGUSR2)), None),
        1 => hooked(libc::SIG_UNBLOCK, Some(bit(libc::SIGUSR2)), None),
        2 | 3 => {
            // SAFETY: the kernel passes the signal's context; the mask is its first 8 bytes.
            unsafe { *(&raw mut (*context).uc_sigmask).cast::<u64>() ^= bit(libc::SIGUSR1) };
        }
        _ => {}
    }
    if random(2) == 0 {
        check();
    }
}

/// The kernel's `struct sigaction`; its restorer makes a hooked call.
#[repr(C)]
struct Action {
    handler: *const (),
    flags: u64,
    restorer: u64,
    mask: u64,
}

#[test]
fn masks_are_the_kernels() {
    apart("masks::masks_are_the_kernels", || {
        std::thread::spawn(oracle).join().unwrap();
    });
}

fn oracle() {
    let mut file = File::new();
    for (name, number) in [("mask", SIGPROCMASK), ("rseq", RSEQ)] {
        file.function(name);
        file.a.mov(r10, rcx).unwrap();
        file.site(Some(number), false, 8);
        file.a.ret().unwrap();
    }
    file.wrapper("restorer", 15);
    let lab = Lab::new(file, Options { elide: true, ..TIMED });
    lab.enter(0);
    let server = Server::start(&[]);
    MASK_AT.store(lab.address("mask"), SeqCst);
    RESTORER.store(lab.address("restorer"), SeqCst);
    PAGES.store(Box::leak(vec![0u64; (PAGES_LEN * PAGE / 8) as usize].into_boxed_slice()).as_ptr() as u64, SeqCst);
    crate::waiting::give_back_glibcs();
    #[repr(align(32))]
    struct Area([u64; 8]);
    let area = Box::leak(Box::new(Area([0; 8])));
    let signature = u64::from(half(IMAGE + image::RSEQ_SIGNATURE).load(SeqCst));
    assert_eq!(lab.call("rseq", &[area.0.as_mut_ptr() as u64, 32, 0, signature]), 0);
    let timer = Timer::start(libc::SIGALRM, handler as *const (), libc::SA_SIGINFO, Duration::from_micros(150));
    const SA_RESTORER: u64 = 0x0400_0000;
    let action = Action {
        handler: handler as *const (),
        flags: libc::SA_SIGINFO as u64 | libc::SA_RESTART as u64 | SA_RESTORER,
        restorer: RESTORER.load(SeqCst),
        mask: bit(libc::SIGHUP),
    };
    // SAFETY: `action` is the kernel's structure, with all fields.
    assert_eq!(unsafe { libc::syscall(libc::SYS_rt_sigaction, libc::SIGALRM, &raw const action, 0, 8) }, 0);
    let mut old = 0;
    for i in 0..150_000u64 {
        // The launcher lets calls be made for a while, now and then.
        global_word(global::ANSWERING).store(if i % 1_024 < 64 { 0 } else { elide::MASK.into() }, SeqCst);
        check();
        if i % 2 == 0 {
            let (mut ours, handled) = (0, HANDLED.load(SeqCst));
            elsewhere(libc::SIG_BLOCK, Some(0), Some(&mut ours));
            let mut kernels = 0u64;
            // SAFETY: the call writes the 8 bytes of `kernels`.
            unsafe { libc::syscall(i64::from(SIGPROCMASK), 0, 0, &raw mut kernels, 8) };
            if handled == HANDLED.load(SeqCst) {
                WRONG.fetch_add(u64::from(ours != kernels), SeqCst);
            }
            elsewhere(libc::SIG_UNBLOCK, Some(bit(libc::SIGUSR2)), None);
        }
        hooked(libc::SIG_BLOCK, Some(bit(libc::SIGUSR2)), Some(&mut old));
        check();
        hooked(if i % 2 == 0 { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK }, Some(bit(libc::SIGHUP)), None);
        hooked(libc::SIG_SETMASK, Some(if i % 4 == 0 { 0 } else { old }), None);
        check();
    }
    drop(timer);
    server.stop();
    let (rows, in_place) = (lab.read().rows, lab.read().in_place);
    let elided: u64 = rows.iter().flat_map(|r| &r.threads).map(|(_, c)| c.elided).sum();
    let (wrong, checked) = (WRONG.load(SeqCst), CHECKED.load(SeqCst));
    assert_eq!(wrong, 0, "of {checked}, {elided} answered in place");
    assert!(elided > checked / 4, "{elided} of {checked} answered in place");
    // Each call that was made counts as needed, or has a reason why it was not answered in place, except for less than
    // a tenth.
    let made: u64 =
        rows.iter().filter(|r| r.number == Some(SIGPROCMASK)).flat_map(|r| &r.threads).map(|(_, c)| c.entered).sum();
    let told = in_place.needed[4] + in_place.missed.iter().sum::<u64>();
    assert!(told <= made && made - told < made / 10, "{told} of {made} are told: {in_place:?}");
    assert!(in_place.needed[4] > 0 && in_place.missed[1] > 0 && in_place.missed[3] > 0, "{in_place:?}");
    assert_eq!(Losses { unasked: 0, ..lab.read().losses }, Losses::default());
}
