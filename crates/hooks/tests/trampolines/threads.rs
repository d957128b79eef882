//! Tests that each thread and each process counts for itself.

use crate::counts::{TIMED, file};
use crate::lab::{File, Lab, apart, image_words, set_limits};
use crate::server::Server;
use crate::signals::Timer;
use iced_x86::code_asm::*;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use systoll_hooks::assemble::Losses;
use systoll_hooks::layout::image;

/// Flags of `clone` with which a library makes a thread, except those that need addresses of its own.
pub(crate) const THREAD_FLAGS: libc::c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_CHILD_CLEARTID;

const GETPPID: u32 = 110;
const CLONE: u32 = 56;
const FORK: u32 = 57;
const VFORK: u32 = 58;
const CLONE3: u32 = 435;

fn exact_in(threads: u64) {
    let lab = Lab::new(file(), TIMED);
    let server = Server::start(&[]);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let lab = &lab;
            scope.spawn(move || {
                lab.enter(thread);
                lab.call("getppid 1", &[200_000 + thread]);
                lab.call("anys", &[100_000, u64::from(GETPPID)]);
                lab.call("closes", &[50_000, u64::MAX]);
            });
        }
    });
    server.stop();
    let extra: u64 = (0..threads).sum();
    assert_eq!(lab.total(GETPPID), (300_000 * threads + extra, 300_000 * threads + extra, 0, 0));
    assert_eq!(lab.total(3), (50_000 * threads, 50_000 * threads, 50_000 * threads, 0));
    let reading = lab.read();
    assert_eq!(reading.losses, Losses::default());
    assert_eq!(reading.threads.iter().filter(|t| t.pid != 0).count() as u64, threads);
    for row in reading.rows.iter().filter(|r| r.site == Some(0)) {
        assert!(row.threads.iter().all(|(slot, c)| c.entered == 200_000 + slot));
    }
}

#[test]
fn two_threads_are_exact() {
    apart("threads::two_threads_are_exact", || exact_in(2));
}

#[test]
fn eight_threads_are_exact() {
    apart("threads::eight_threads_are_exact", || exact_in(8));
}

/// Returns a file of functions that make processes, and of one that a new process runs.
fn makers() -> File {
    let mut file = file();
    file.wrapped("fork", FORK);
    file.wrapper("fork in place", FORK);
    file.wrapped("clone", CLONE);
    file.wrapped("vfork", VFORK);
    file
}

/// Waits for a child and returns its status.
pub(crate) fn wait(child: i64) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of ours.
    assert_eq!(i64::from(unsafe { libc::waitpid(child as i32, &raw mut status, 0) }), child);
    status
}

#[test]
fn forked_children_count_apart() {
    apart("threads::forked_children_count_apart", || {
        let lab = Lab::new(makers(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        lab.call("getppid 1", &[100]);
        let forks: [(&str, Vec<u64>); 4] = [
            ("fork", vec![]),
            ("fork in place", vec![]),
            ("clone", vec![libc::SIGCHLD as u64]),
            ("any", vec![u64::from(CLONE), libc::SIGCHLD as u64]),
        ];
        let mut children = Vec::new();
        for (name, arguments) in &forks {
            let child = lab.call(name, arguments);
            if child == 0 {
                lab.call("getppid 1", &[1000]);
                lab.call("exit_group", &[9]);
            }
            assert!(child > 0, "{child}");
            lab.call("getppid 1", &[10]);
            assert_eq!(libc::WEXITSTATUS(wait(child)), 9);
            children.push(child as u32);
        }
        server.stop();
        let reading = lab.read();
        assert_eq!(lab.total(GETPPID), (140 + 4000, 140 + 4000, 0, 0));
        let made: Vec<_> = reading.threads.iter().filter(|t| t.parent.is_some()).collect();
        assert_eq!(made.len(), 4);
        for (thread, child) in made.iter().zip(&children) {
            assert_eq!((thread.parent, thread.pid, thread.tid, thread.made_as), (Some(0), *child, *child, *child));
            assert!(thread.leaving);
        }
        let of_child = |slot| {
            let rows = reading.rows.iter().filter(|r| r.number == Some(GETPPID)).flat_map(|r| &r.threads);
            rows.filter(|(s, _)| *s == slot).map(|(_, c)| c.entered).sum::<u64>()
        };
        assert!(made.iter().all(|t| of_child(t.slot) == 1000));
        assert_eq!((lab.total(FORK), lab.total(CLONE)), ((2, 2, 0, 0), (2, 2, 0, 0)));
        assert_eq!(lab.total(231), (4, 0, 0, 0));
        assert_eq!(Losses { unanswered: 0, ..reading.losses }, Losses::default());
    });
}

#[test]
fn a_fork_that_fails_is_an_error_like_others() {
    apart("threads::a_fork_that_fails_is_an_error_like_others", || {
        let lab = Lab::new(makers(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        // The flags are CLONE_THREAD without CLONE_VM, which the kernel refuses.
        assert_eq!(lab.call("clone", &[0x10000]), -i64::from(libc::EINVAL));
        server.stop();
        assert_eq!(lab.total(CLONE), (1, 1, 1, 0));
        assert!(lab.read().threads.iter().any(|t| t.leaving && t.made_as == 0 && t.parent == Some(0)));
    });
}

/// Adds the function `name`: it makes a thread by call `number`, which calls getppid *rbx times and ends.
pub(crate) fn spawner(file: &mut File, name: &'static str, number: u32, getppid: CodeLabel, exit: CodeLabel) {
    file.function(name);
    file.a.push(rbx).unwrap();
    file.a.mov(rbx, r9).unwrap();
    file.a.mov(r10, rcx).unwrap();
    file.site(Some(number), true, 16);
    let a = &mut file.a;
    let (mut parent, mut again) = (a.create_label(), a.create_label());
    a.test(rax, rax).unwrap();
    a.jne(parent).unwrap();
    a.set_label(&mut again).unwrap();
    a.call(getppid).unwrap();
    a.dec(rbx).unwrap();
    a.jne(again).unwrap();
    a.xor(edi, edi).unwrap();
    a.call(exit).unwrap();
    a.set_label(&mut parent).unwrap();
    a.pop(rbx).unwrap();
    a.ret().unwrap();
}

#[test]
fn new_threads_count_for_themselves() {
    apart("threads::new_threads_count_for_themselves", || {
        let mut file = File::new();
        let getppid = file.wrapper("getppid", GETPPID);
        let exit = file.wrapper("exit", 60);
        spawner(&mut file, "thread", CLONE, getppid, exit);
        spawner(&mut file, "thread 3", CLONE3, getppid, exit);
        let lab = Lab::new(file, TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        let mut stacks: Vec<Vec<u64>> = (0..20).map(|_| vec![0; 8192]).collect();
        let alive: Vec<_> = (0..20).map(|_| std::sync::atomic::AtomicU32::new(1)).collect();
        for (i, stack) in stacks.iter_mut().enumerate() {
            let (top, tid) = (stack.as_mut_ptr_range().end as u64 - 64, alive[i].as_ptr() as u64);
            let calls = 10_000 + i as u64;
            let made = if i % 2 == 0 {
                lab.call("thread", &[THREAD_FLAGS as u64, top, 0, tid, 0, calls])
            } else {
                let (bottom, size) = (stack.as_ptr() as u64, stack.len() as u64 * 8 - 64);
                let clone3 = [THREAD_FLAGS as u64, 0, tid, 0, 0, bottom, size, 0];
                lab.call("thread 3", &[clone3.as_ptr() as u64, 64, 0, 0, 0, calls])
            };
            assert!(made > 0, "{made}");
        }
        while alive.iter().any(|a| a.load(SeqCst) != 0) {
            std::thread::yield_now();
        }
        server.stop();
        let all = (0..20).map(|i| 10_000 + i).sum::<u64>();
        assert_eq!(lab.total(GETPPID), (all, all, 0, 0));
        let reading = lab.read();
        assert_eq!(reading.threads.iter().filter(|t| t.parent == Some(0) && t.leaving).count(), 20);
        assert!(reading.threads.iter().filter(|t| t.parent.is_some()).all(|t| t.pid == std::process::id()));
        assert_eq!(reading.losses, Losses::default());
        assert_eq!((lab.total(CLONE), lab.total(CLONE3)), ((10, 10, 0, 0), (10, 10, 0, 0)));
    });
}

#[test]
fn slots_are_drawn_again_and_their_end_is_noted() {
    apart("threads::slots_are_drawn_again_and_their_end_is_noted", || {
        let lab = Lab::new(makers(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        let words = image_words();
        // One slot is left. Once it is taken there is none, until a child returns its slot.
        words[image::NEXT_SLOT as usize / 8].store(image::FIRST_SLOTS - 1, SeqCst);
        let fork = || {
            let child = lab.call("fork", &[]);
            if child == 0 {
                lab.call("getppid 1", &[50]);
                lab.call("exit_group", &[0]);
            }
            assert_eq!(wait(child), 0);
        };
        fork();
        let homeless = || lab.read().losses.homeless;
        assert_eq!(homeless(), 0);
        assert!(lab.read().threads.iter().any(|t| t.slot == image::FIRST_SLOTS));
        fork();
        assert_eq!(homeless(), 1);
        let next = words[image::NEXT_SLOT as usize / 8].load(SeqCst);
        words[(image::TICKETS + 4 * next) as usize / 8].store((7 + 1) | (8 + 1) << 32, SeqCst);
        fork();
        assert_eq!(homeless(), 1);
        server.stop();
        assert_eq!(lab.total(GETPPID).0, 150);
    });
}

static FORK_AT: AtomicU64 = AtomicU64::new(0);

/// Forks if an address is in `FORK_AT`. Both processes then continue with what was interrupted.
extern "C" fn forker(_: i32) {
    let address = FORK_AT.swap(0, SeqCst);
    if address != 0 {
        // SAFETY: the address is that of the generated fork.
        let fork = unsafe { std::mem::transmute::<u64, extern "C" fn() -> i64>(address) };
        assert!(fork() >= 0);
    }
}

fn counts_of(lab: &Lab, number: u32, slot: u64) -> (u64, u64) {
    let rows = lab.read().rows;
    let of = rows.iter().filter(|r| r.number == Some(number)).flat_map(|r| &r.threads).filter(|(s, _)| *s == slot);
    of.fold((0, 0), |sum, (_, c)| (sum.0 + c.entered, sum.1 + c.returned))
}

/// Ends the calling process if it is a child; otherwise waits for a child's end.
fn join(lab: &Lab, me: u32) {
    // SAFETY: the call takes no arguments, and the C library's own getpid is not hooked.
    if unsafe { libc::getpid() } as u32 != me {
        lab.call("exit_group", &[0]);
    }
    let mut status = 0;
    // SAFETY: waits for any child of ours.
    assert!(unsafe { libc::wait(&raw mut status) } > 0);
    assert_eq!(status, 0);
}

#[test]
fn a_handler_that_forks_during_a_wait_leaves_both_well() {
    apart("threads::a_handler_that_forks_during_a_wait_leaves_both_well", || {
        let lab = Lab::new(makers(), TIMED);
        lab.enter(0);
        set_limits(Duration::from_millis(300));
        FORK_AT.store(lab.address("fork"), SeqCst);
        let me = std::process::id();
        let timer = Timer::start(libc::SIGALRM, forker as *const (), libc::SA_RESTART, Duration::from_millis(50));
        assert!(lab.call("getppid 1", &[100]) > 0);
        drop(timer);
        join(&lab, me);
        assert_eq!(counts_of(&lab, GETPPID, 0), (100, 100));
        assert_eq!(counts_of(&lab, GETPPID, 1), (100, 100));
        // The child finds the word on which it waited marked as answered, and may ask again before its parent has given
        // up.
        let losses = lab.read().losses;
        assert!((1..=2).contains(&losses.unanswered), "{losses:?}");
        assert_eq!(Losses { unanswered: 0, ..losses }, Losses { unasked: 1, ..Losses::default() });
    });
}

#[test]
fn a_handler_that_forks_during_a_call_leaves_both_well() {
    apart("threads::a_handler_that_forks_during_a_call_leaves_both_well", || {
        let lab = Lab::new(makers(), TIMED);
        lab.enter(0);
        let server = Server::start(&[]);
        FORK_AT.store(lab.address("fork"), SeqCst);
        let me = std::process::id();
        let mut ends = [0; 2];
        // SAFETY: pipe writes two numbers into an array of two.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let to = ends[1];
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            // SAFETY: the two bytes written are ours.
            assert_eq!(unsafe { libc::write(to, [7u8, 8].as_ptr().cast(), 2) }, 2);
        });
        let timer = Timer::start(libc::SIGALRM, forker as *const (), libc::SA_RESTART, Duration::from_millis(50));
        let mut byte = 0u8;
        assert_eq!(lab.call("read", &[ends[0] as u64, (&raw mut byte) as u64, 1]), 1);
        drop(timer);
        join(&lab, me);
        writer.join().unwrap();
        server.stop();
        // The call was entered once and returned twice: each process counted its own return.
        assert_eq!(counts_of(&lab, 0, 0), (1, 1));
        assert_eq!(counts_of(&lab, 0, 1), (0, 1));
        assert_eq!(lab.read().losses, Losses::default());
    });
}
