//! Tests that time of waiting is told apart from time of working.

use crate::counts::TIMED;
use crate::lab::{File, Lab, apart, half, image_words, rseq_area};
use crate::server::Server;
use crate::signals::Timer;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, image, slot};

const NANOSLEEP: u32 = 35;
const GETPPID: u32 = 110;
const RSEQ: u32 = 334;

fn file() -> File {
    let mut file = File::new();
    let getppid = file.wrapper("getppid", GETPPID);
    file.repeat("getppids", getppid);
    file.wrapper("nanosleep", NANOSLEEP);
    file.function("rseq");
    file.a.mov(iced_x86::code_asm::r10, iced_x86::code_asm::rcx).unwrap();
    file.site(Some(RSEQ), false, 8);
    file.a.ret().unwrap();
    file
}

/// Returns the calls of a number that returned, their cycles, and the cycles of those that were waiting.
pub(crate) fn times(lab: &Lab, number: u32) -> (u64, u64, u64) {
    let rows = lab.read().rows;
    let counts = rows.iter().filter(|r| r.number == Some(number)).flat_map(|r| &r.threads);
    counts.fold((0, 0, 0), |sum, (_, c)| (sum.0 + c.returned, sum.1 + c.cycles, sum.2 + c.waited))
}

/// Runs `body` on a thread of its own, whose rseq area is not the C library's but one registered through a hooked
/// site.
fn with_rseq(body: impl FnOnce(&Lab) + Send + 'static) {
    #[repr(align(32))]
    struct Area([u64; 8]);
    std::thread::spawn(move || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        let area = Box::leak(Box::new(Area([0; 8])));
        let at = area.0.as_mut_ptr() as u64;
        // glibc since 2.35 has registered an area already.
        give_back_glibcs();
        let signature = u64::from(half(IMAGE + image::RSEQ_SIGNATURE).load(SeqCst));
        assert_eq!(lab.call("rseq", &[at, 32, 0, signature]), 0);
        assert_eq!(image_words()[(image::SLOTS + slot::RSEQ) as usize / 8].load(SeqCst), at);
        body(&lab);
        assert_eq!(lab.call("rseq", &[at, 32, 1, signature]), 0);
        assert_eq!(image_words()[(image::SLOTS + slot::RSEQ) as usize / 8].load(SeqCst), 0);
        server.stop();
    })
    .join()
    .unwrap();
}

pub(crate) fn give_back_glibcs() {
    let Some(area) = rseq_area() else { return };
    let give_back = |size: &i32| {
        // SAFETY: gives the area back to the kernel; the C library works without it.
        unsafe { libc::syscall(i64::from(RSEQ), area, *size, 1, 0x5305_3053u32) == 0 }
    };
    assert!([32, 33, 64].iter().any(give_back), "{}", std::io::Error::last_os_error());
}

#[test]
fn sleeping_is_waiting() {
    apart("waiting::sleeping_is_waiting", || {
        with_rseq(|lab| {
            let millisecond = [0u64, 1_000_000];
            for _ in 0..200 {
                assert_eq!(lab.call("nanosleep", &[millisecond.as_ptr() as u64, 0]), 0);
            }
            let (returned, cycles, waited) = times(lab, NANOSLEEP);
            assert_eq!(returned, 200);
            assert!(waited <= cycles && waited as f64 > 0.99 * cycles as f64, "{waited} of {cycles}");
        });
    });
}

#[test]
fn working_is_not_waiting() {
    apart("waiting::working_is_not_waiting", || {
        with_rseq(|lab| {
            lab.call("getppids", &[10]);
            let before = involuntary();
            lab.call("getppids", &[1_000_000]);
            let switches = involuntary() - before;
            let (returned, cycles, waited) = times(lab, GETPPID);
            assert_eq!(returned, 1_000_010);
            // Only calls during which the processor was taken away count as waiting, and these are few.
            assert!(waited == 0 || switches > 0, "{waited} of {cycles}, {switches} switches");
        });
    });
}

static GETPPID_AT: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    // SAFETY: the address is that of the generated getppid.
    let getppid = unsafe { std::mem::transmute::<u64, extern "C" fn() -> i64>(GETPPID_AT.load(SeqCst)) };
    getppid();
}

#[test]
fn sleep_cut_short_by_a_handler_that_calls_is_waiting() {
    apart("waiting::sleep_cut_short_by_a_handler_that_calls_is_waiting", || {
        with_rseq(|lab| {
            GETPPID_AT.store(lab.address("getppid"), SeqCst);
            let timer = Timer::start(libc::SIGALRM, handler as *const (), 0, Duration::from_millis(2));
            let second = [1u64, 0];
            for _ in 0..50 {
                assert_eq!(lab.call("nanosleep", &[second.as_ptr() as u64, 0]), -i64::from(libc::EINTR));
            }
            drop(timer);
            let (returned, cycles, waited) = times(lab, NANOSLEEP);
            assert_eq!(returned, 50);
            assert!(waited <= cycles && waited as f64 > 0.95 * cycles as f64, "{waited} of {cycles}");
        });
    });
}

fn involuntary() -> i64 {
    // SAFETY: the call fills a plain structure.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

#[test]
fn a_foreign_signature_is_not_trusted() {
    apart("waiting::a_foreign_signature_is_not_trusted", || {
        std::thread::spawn(|| {
            let lab = Lab::new(file(), TIMED);
            lab.enter(0);
            let server = Server::start(&[]);
            give_back_glibcs();
            #[repr(align(32))]
            struct Area([u64; 8]);
            let area = Box::leak(Box::new(Area([0; 8])));
            assert_eq!(lab.call("rseq", &[area.0.as_ptr() as u64, 32, 0, 0x1234_5678]), 0);
            assert_eq!(image_words()[(image::SLOTS + slot::RSEQ) as usize / 8].load(SeqCst), 0);
            lab.call("getppids", &[1000]);
            assert_eq!(area.0[1], 0);
            server.stop();
        })
        .join()
        .unwrap();
    });
}
