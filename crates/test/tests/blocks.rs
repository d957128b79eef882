//! Tests of blocks that are nested, in several threads, left by panics, or in places where they
//! can't count.
#![expect(clippy::print_stdout, reason = "a test that can't run says why")]

use std::panic::catch_unwind;
use systoll_test::{Counts, Incomplete, Unavailable, assert_calls, calls};

fn getppid() {
    // SAFETY: getppid takes no arguments and can't fail.
    unsafe { libc::getppid() };
}

/// Returns a block's value and counts. If this machine can't count, prints that and returns `None`.
fn counted<T>(block: impl FnOnce() -> T) -> Option<(T, Counts)> {
    let block = calls(block);
    match block.counts {
        Ok(counts) => Some((block.value, counts)),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

#[test]
fn nested_blocks_count_into_the_outer_one() {
    let Some((inner, outer)) = counted(|| {
        getppid();
        let inner = counted(|| (0..3).for_each(|_| getppid())).unwrap().1;
        getppid();
        inner
    }) else {
        return;
    };
    assert_eq!((inner.of("getppid"), outer.of("getppid"), outer.total()), (3, 5, 5));
    assert_eq!(outer.callers().iter().map(|c| c.calls).sum::<u64>(), 5);
    assert_eq!(inner.by_name().len(), 1);
}

fn too_deep(depth: usize) -> Option<Unavailable> {
    match calls(|| (depth > 0).then(|| too_deep(depth - 1)).flatten()) {
        systoll_test::Block { counts: Err(why), .. } => Some(why),
        block => block.value,
    }
}

#[test]
fn nesting_has_a_limit() {
    if counted(|| ()).is_some() {
        assert_eq!((too_deep(7), too_deep(8)), (None, Some(Unavailable::TooDeep)));
        assert_eq!(counted(getppid).unwrap().1.total(), 1);
    }
}

#[test]
fn each_thread_counts_its_own() {
    let count = |n: u64| move || counted(|| (0..n).for_each(|_| getppid())).map(|(_, c)| (c.of("getppid"), c.total()));
    let threads: Vec<_> = (1..=24).map(|n| (n * 50, std::thread::spawn(count(n * 50)))).collect();
    for (n, thread) in threads {
        assert!(thread.join().unwrap().is_none_or(|counts| counts == (n, n)), "{n}");
    }
}

#[test]
fn a_panic_ends_the_block() {
    let left = catch_unwind(|| calls(|| std::panic::resume_unwind(Box::new("left"))));
    assert!(left.is_err());
    if let Some((_, counts)) = counted(getppid) {
        // If the block were still open, this one would be nested, and one more would be too deep.
        assert_eq!(counts.total(), 1);
        assert_eq!(too_deep(7), None);
    }
}

extern "C" fn ends_in_a_block(id: *mut libc::c_void) -> *mut libc::c_void {
    assert!(systoll_test::abi::begin(None).is_ok());
    // SAFETY: the starter's own variable, which it reads after this thread has ended.
    unsafe { *id.cast::<i32>() = libc::gettid() };
    std::ptr::null_mut()
}

/// A thread that ends in a block leaves its state behind; a later thread with its id counts all the
/// same.
#[test]
fn a_thread_that_ended_in_a_block_is_not_mistaken_for_a_later_one() {
    if counted(|| ()).is_none() {
        return;
    }
    let mut same = 0;
    for _ in 0..200 {
        let mut id = 0i32;
        // SAFETY: a thread of ours, joined before its variable is dropped; it leaves nothing of
        // Rust's behind.
        unsafe {
            let mut thread = std::mem::zeroed();
            let argument = (&raw mut id).cast();
            assert_eq!(libc::pthread_create(&raw mut thread, std::ptr::null(), ends_in_a_block, argument), 0);
            libc::pthread_join(thread, std::ptr::null_mut());
        }
        if let Err(why) = std::fs::write("/proc/sys/kernel/ns_last_pid", (id - 1).to_string()) {
            println!("skipped: the next thread's id can't be chosen: {why}");
            return;
        }
        let next = std::thread::spawn(|| {
            let calls = counted(|| (0..9).for_each(|_| getppid())).unwrap().1.of("getppid");
            // SAFETY: gettid takes no arguments and can't fail.
            (unsafe { libc::gettid() }, calls)
        });
        let (now, calls) = next.join().unwrap();
        assert_eq!(calls, 9);
        same += u32::from(now == id);
        if same == 3 {
            return;
        }
    }
    println!("skipped: other processes were given the ids");
}

#[inline(never)]
fn asks_often(times: u64) {
    for _ in 0..times {
        getppid();
    }
    std::hint::black_box(times);
}

#[test]
fn only_callers_within_the_block_are_named() {
    let Some((_, counts)) = counted(|| asks_often(9)) else { return };
    let callers = counts.callers();
    assert_eq!(callers.iter().map(|c| c.calls).sum::<u64>(), 9);
    let frames = &callers[0].frames;
    assert!(frames.iter().any(|f| f.contains("asks_often") && f.contains("blocks.rs:")), "{frames:#?}");
    assert!(!frames.iter().any(|f| f.contains("test_main") || f.contains("counts::calls")), "{frames:#?}");
}

#[test]
fn a_broken_assertion_names_the_caller() {
    assert_eq!(
        assert_calls!(getppid <= 2, total == 2, {
            asks_often(2);
            7
        }),
        7
    );
    if counted(|| ()).is_none() {
        return;
    }
    let said = catch_unwind(|| assert_calls!(getppid <= 2, { asks_often(3) })).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.starts_with("getppid <= 2, but there were 3:\n"), "{said}");
    assert!(said.contains("3 x getppid: ") && said.contains("asks_often"), "{said}");
    assert!(catch_unwind(|| assert_calls!(getppid > 2, {})).is_err());
}

/// Makes calls from stacks of different depths: each is a context of its own.
#[inline(never)]
fn deeper(depth: u32) {
    getppid();
    if depth > 0 {
        deeper(std::hint::black_box(depth - 1));
    }
    std::hint::black_box(depth);
}

#[test]
fn calls_without_room_for_a_caller_are_counted() {
    let Some((_, counts)) = counted(|| deeper(2_999)) else { return };
    let with_caller: u64 = counts.callers().iter().map(|c| c.calls).sum();
    assert_eq!(counts.of("getppid"), 3_000);
    assert_eq!(with_caller + counts.without_caller(), 3_000);
    assert!((500..=1_024).contains(&with_caller), "{with_caller}");
    assert_eq!(counted(|| deeper(9)).unwrap().1.without_caller(), 0, "the tables are empty again");
}

/// Waits for no time with all signals blocked, between two calls.
fn waits_blocked() {
    getppid();
    // SAFETY: a mask of ours, and no descriptors.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(libc::ppoll(std::ptr::null_mut(), 0, &raw const now, &raw const all), 0);
    }
    getppid();
}

#[test]
fn a_wait_that_blocks_sigsys_is_reported_as_uncounted() {
    let Some((_, counts)) = counted(waits_blocked) else { return };
    assert_eq!((counts.of("getppid"), counts.incomplete()), (1, Some(Incomplete::WaitedWithSigsysBlocked)));
    assert!(
        catch_unwind(|| assert_calls!(getppid <= 9, { waits_blocked() })).is_err(),
        "too low a count keeps no limit"
    );
    assert_eq!(counted(getppid).unwrap().1.incomplete(), None);
}

/// Returns the kernel's action for SIGSYS.
fn sigsys() -> usize {
    // SAFETY: only reads.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGSYS, std::ptr::null(), &raw mut now);
        now.sa_sigaction
    }
}

/// Runs alone in its process, since other tests' blocks have the handler installed.
#[test]
#[ignore = "started by the test below"]
fn alone_sigsys_is_the_programs_again() {
    let before = sigsys();
    if counted(getppid).is_some() {
        assert_eq!(sigsys(), before);
    }
}

/// A filter refuses the prctl that counting needs, as in strict containers.
#[test]
#[ignore = "started by the test below"]
fn alone_a_refusing_filter_is_reported() {
    const PRCTL_DISPATCH: u32 = 59;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        line(load, 0, 0, 0),
        line(equal, 0, 3, libc::SYS_prctl as u32),
        line(load, 0, 0, 16),
        line(equal, 0, 1, PRCTL_DISPATCH),
        line(answer, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        line(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: 6, filter: program.as_mut_ptr() };
    // SAFETY: a filter of this thread.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
    let before = sigsys();
    let block = calls(|| 5);
    assert_eq!((block.value, block.counts), (5, Err(Unavailable::Refused(libc::EPERM))));
    assert_eq!(sigsys(), before);
    assert_eq!(assert_calls!(getppid == 3, { 8 }), 8, "the block runs, and nothing is asserted");
}

/// Runs an ignored test of this file in its own process. Returns true if it passed, and its output.
fn apart(test: &str, strict: bool) -> (bool, String) {
    let own = std::env::current_exe().unwrap();
    let mut run = std::process::Command::new(&own);
    run.args(["--ignored", "--exact", test, "--nocapture"]).env_remove("SYSTOLL_TEST_STRICT");
    if strict {
        run.env("SYSTOLL_TEST_STRICT", "1");
    }
    let run = run.output().unwrap();
    let said = [run.stdout, run.stderr].map(|out| String::from_utf8_lossy(&out).into_owned()).concat();
    (run.status.success() && said.contains("1 passed"), said)
}

#[test]
fn in_processes_of_their_own() {
    for test in ["alone_sigsys_is_the_programs_again", "alone_a_refusing_filter_is_reported"] {
        let (passes, said) = apart(test, false);
        assert!(passes, "{said}");
    }
}

#[test]
fn strict_mode_fails_tests_that_do_not_count() {
    let (passes, said) = apart("alone_a_refusing_filter_is_reported", true);
    assert!(!passes && said.contains("system calls can't be counted"), "{said}");
}

/// A program that valgrind or qemu translates runs its blocks and says that it has not counted.
#[test]
fn translators_are_reported() {
    let example =
        std::env::current_exe().unwrap().parent().and_then(|deps| deps.parent()).unwrap().join("examples/blocks");
    for translator in ["valgrind", "qemu-x86_64"] {
        let Ok(run) = std::process::Command::new(translator).arg(&example).args(["count", "files"]).output() else {
            println!("skipped: no {translator}");
            continue;
        };
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success() && said.starts_with("skipped: "),
            "{translator}: {said}{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }
}
