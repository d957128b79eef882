//! Tests of rseq areas. A thread whose program registers none gets one of ours, which gives way to the program's own.

use crate::counts::TIMED;
use crate::lab::{File, Lab, apart, half, image_words};
use crate::server::Server;
use crate::threads::{THREAD_FLAGS, spawner, wait};
use crate::waiting::{give_back_glibcs, times};
use iced_x86::code_asm::{r10, rcx};
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::layout::areas::{AREA, AT, SIZE, area_address};
use systoll_hooks::layout::{IMAGE, image, slot};

const NANOSLEEP: u32 = 35;
const GETPPID: u32 = 110;
const CLONE: u32 = 56;
const FORK: u32 = 57;
const CLONE3: u32 = 435;
const RSEQ: u32 = 334;
const SIGNATURE: u64 = 0x5305_3053;
const UNREGISTER: u64 = 1;

fn file() -> File {
    let mut file = File::new();
    let getppid = file.wrapper("getppid", GETPPID);
    let nanosleep = file.wrapper("nanosleep", NANOSLEEP);
    file.repeat("getppids", getppid);
    file.wrapped("fork", FORK);
    file.wrapped("clone3", CLONE3);
    let exit = file.wrapper("exit", 60);
    file.wrapper("exit_group", 231);
    spawner(&mut file, "thread", CLONE, nanosleep, exit);
    file.any("any");
    file.function("rseq");
    file.a.mov(r10, rcx).unwrap();
    file.site(Some(RSEQ), false, 8);
    file.a.ret().unwrap();
    file
}

/// Runs `body` on a thread without an area of the C library's, in an image that provides areas.
fn with_areas(body: impl FnOnce(&Lab) + Send + 'static) {
    std::thread::spawn(move || {
        let lab = Lab::new(file(), TIMED);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping of this process; the result is checked to be the address asked for.
        let at = unsafe { libc::mmap(AT as *mut _, SIZE as usize, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        assert_eq!(at as u64, AT);
        lab.enter(0);
        give_back_glibcs();
        set_rseq(0, 0);
        half(IMAGE + image::GIVES_AREAS).store(1, SeqCst);
        let server = Server::start(&[]);
        // The call fails, and gives a thread without an area one of ours.
        assert_eq!(lab.call("rseq", &[0, 0, 0, 0]), -i64::from(libc::EINVAL));
        assert_eq!(rseq_of(0), area_address(0));
        body(&lab);
        server.stop();
    })
    .join()
    .unwrap();
}

fn rseq_of(index: u64) -> u64 {
    image_words()[(image::SLOTS + index * slot::SIZE + slot::RSEQ) as usize / 8].load(SeqCst)
}

fn set_rseq(index: u64, area: u64) {
    image_words()[(image::SLOTS + index * slot::SIZE + slot::RSEQ) as usize / 8].store(area, SeqCst);
}

/// Returns true if `area` is the one that the kernel has for the calling thread.
fn is_registered(area: u64) -> bool {
    // SAFETY: the kernel refuses the call if the thread has an area; if it has none, the test fails.
    let result = unsafe { libc::syscall(i64::from(RSEQ), area, AREA, 0, SIGNATURE) };
    result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
}

/// Sleeps 20 times a millisecond.
fn sleep(lab: &Lab) {
    let millisecond = [0u64, 1_000_000];
    for _ in 0..20 {
        assert_eq!(lab.call("nanosleep", &[millisecond.as_ptr() as u64, 0]), 0);
    }
}

/// Asserts that the calls of nanosleep number `returned`, and that nearly all of their time was waiting.
fn all_waited(lab: &Lab, returned: u64) {
    let (calls, cycles, waited) = times(lab, NANOSLEEP);
    assert_eq!(calls, returned);
    assert!(waited <= cycles && waited as f64 > 0.99 * cycles as f64, "{waited} of {cycles}");
}

#[repr(align(32))]
struct Area([u64; 4]);

fn area() -> u64 {
    Box::leak(Box::new(Area([0; 4]))).0.as_mut_ptr() as u64
}

#[test]
fn sleeping_is_waiting_by_ours() {
    apart("areas::sleeping_is_waiting_by_ours", || {
        with_areas(|lab| {
            assert!(is_registered(area_address(0)));
            sleep(lab);
            all_waited(lab, 20);
        });
    });
}

#[test]
fn the_programs_own_come_out_as_without_us() {
    apart("areas::the_programs_own_come_out_as_without_us", || {
        with_areas(|lab| {
            let (one, other) = (area(), area());
            for by_number in [false, true] {
                let rseq = |a: &[u64; 4]| match by_number {
                    true => lab.call("any", &[u64::from(RSEQ), a[0], a[1], a[2], a[3]]),
                    false => lab.call("rseq", a),
                };
                let fails = |call: [u64; 4], why: i32| assert_eq!(rseq(&call), -i64::from(why), "{call:x?}");
                let works = |call: [u64; 4]| assert_eq!(rseq(&call), 0, "{call:x?}");
                fails([one, 32, UNREGISTER, SIGNATURE], libc::EINVAL);
                fails([one, 16, 0, SIGNATURE], libc::EINVAL);
                fails([area_address(0), 32, UNREGISTER, SIGNATURE], libc::EINVAL);
                assert!(is_registered(area_address(0)) && rseq_of(0) == area_address(0));
                works([one, 32, 0, SIGNATURE]);
                assert!(is_registered(one) && rseq_of(0) == one);
                fails([one, 32, 0, SIGNATURE], libc::EBUSY);
                fails([one, 32, 0, 1], libc::EPERM);
                fails([other, 32, 0, SIGNATURE], libc::EINVAL);
                fails([other, 32, UNREGISTER, SIGNATURE], libc::EINVAL);
                assert!(is_registered(one) && rseq_of(0) == one);
                works([one, 32, UNREGISTER, SIGNATURE]);
                assert!(is_registered(area_address(0)) && rseq_of(0) == area_address(0));
                works([other, 32, 0, SIGNATURE]);
                works([other, 32, UNREGISTER, SIGNATURE]);
            }
            // The program registers an area with another signature, which can't be used: the thread is no longer
            // observed through one.
            assert_eq!(lab.call("rseq", &[one, 32, 0, 1]), 0);
            assert_eq!(rseq_of(0), 0);
            assert_eq!(lab.call("rseq", &[one, 32, UNREGISTER, 1]), 0);
            assert_eq!(lab.call("rseq", &[one, 32, 0, SIGNATURE]), 0);
            assert_eq!(rseq_of(0), 0);
        });
    });
}

#[test]
fn areas_left_half_registered_by_a_handler_are_replaced_too() {
    apart("areas::areas_left_half_registered_by_a_handler_are_replaced_too", || {
        with_areas(|lab| {
            // The kernel has our area, but the slot does not say so.
            set_rseq(0, 0);
            let one = area();
            assert_eq!(lab.call("rseq", &[one, 32, 0, SIGNATURE]), 0);
            assert!(is_registered(one) && rseq_of(0) == one);
        });
    });
}

/// Forks by `function`, runs `body` in the child, and waits for its end.
fn forked(lab: &Lab, function: &str, arguments: &[u64], body: impl FnOnce()) {
    let child = lab.call(function, arguments);
    if child == 0 {
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
        lab.call("exit_group", &[u64::from(!good)]);
    }
    assert!(child > 0, "{child}");
    assert_eq!(wait(child), 0);
}

#[test]
fn forked_children_have_their_own_slots() {
    apart("areas::forked_children_have_their_own_slots", || {
        with_areas(|lab| {
            forked(lab, "fork", &[], || {
                assert!(rseq_of(1) == area_address(1) && is_registered(area_address(1)));
                sleep(lab);
                forked(lab, "fork", &[], || {
                    assert!(rseq_of(2) == area_address(2) && is_registered(area_address(2)));
                    sleep(lab);
                });
            });
            // A child by `clone3` gets an area too, although the call's arguments are not examined.
            let clone3 = [0, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
            forked(lab, "clone3", &[clone3.as_ptr() as u64, 64], || {
                assert!(rseq_of(3) == area_address(3) && is_registered(area_address(3)));
                sleep(lab);
            });
            assert!(rseq_of(0) == area_address(0) && is_registered(area_address(0)));
            all_waited(lab, 60);
        });
    });
}

#[test]
fn forks_that_may_make_no_call_keep_their_makers_area() {
    apart("areas::forks_that_may_make_no_call_keep_their_makers_area", || {
        with_areas(|lab| {
            half(IMAGE + image::QUIET).store(1, SeqCst);
            forked(lab, "fork", &[], || {
                assert!(rseq_of(1) == area_address(0) && is_registered(area_address(0)));
                sleep(lab);
            });
            all_waited(lab, 20);
        });
    });
}

#[test]
fn a_forks_own_area_stays_with_it() {
    apart("areas::a_forks_own_area_stays_with_it", || {
        with_areas(|lab| {
            let one = area();
            assert_eq!(lab.call("rseq", &[one, 32, 0, SIGNATURE]), 0);
            forked(lab, "fork", &[], || {
                assert!(rseq_of(1) == one && is_registered(one));
                assert_eq!(lab.call("rseq", &[one, 32, UNREGISTER, SIGNATURE]), 0);
                assert!(rseq_of(1) == area_address(1) && is_registered(area_address(1)));
            });
        });
    });
}

#[test]
fn threads_have_areas_of_their_own() {
    apart("areas::threads_have_areas_of_their_own", || {
        with_areas(|lab| {
            let alive: Vec<_> = (0..4).map(|_| std::sync::atomic::AtomicU32::new(1)).collect();
            let mut stacks: Vec<Vec<u64>> = (0..4).map(|_| vec![0; 8192]).collect();
            for (stack, alive) in stacks.iter_mut().zip(&alive) {
                let (top, tid) = (stack.as_mut_ptr_range().end as u64 - 64, alive.as_ptr() as u64);
                // The thread calls nanosleep with an unreadable address, which fails at once.
                assert!(lab.call("thread", &[THREAD_FLAGS as u64, top, 0, tid, 0, 10]) > 0);
            }
            while alive.iter().any(|a| a.load(SeqCst) != 0) {
                std::thread::yield_now();
            }
            assert!((1..=4).all(|index| rseq_of(index) == area_address(index)));
            assert!(rseq_of(0) == area_address(0) && is_registered(area_address(0)));
        });
    });
}
