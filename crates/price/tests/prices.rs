//! Prices on the test box. No test is strict about time: another program may run at any moment, so
//! comparisons are retried and have slack.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use systoll_model::{Errno, Figure, PriceSource, Probe, Spread, Sysno};
use systoll_price as price;

/// Lock of the tests that time something or examine the whole process, so that they run one at a
/// time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Returns true if `holds` does in one of several tries, further and further apart: other tests may
/// keep the box busy for seconds.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    (0..5).any(|i| {
        std::thread::sleep(Duration::from_millis(100 * i * i));
        holds()
    })
}

fn sysno(name: &str) -> Sysno {
    Sysno::from_name(name).unwrap()
}

fn ordered(s: Spread) -> bool {
    s.min > 0.0 && s.min <= s.median && s.median <= s.high
}

/// Returns the visible state of a process, without parts that change with time.
fn state() -> Vec<String> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let kept =
        ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd", "Cpus_allowed", "Seccomp", "NoNewPrivs", "Umask", "Uid"];
    let mut state: Vec<_> =
        status.lines().filter(|l| kept.iter().any(|k| l.starts_with(k))).map(str::to_owned).collect();
    let mut fds: Vec<_> = fs::read_dir("/proc/self/fd").unwrap().map(|e| e.unwrap().file_name()).collect();
    fds.sort();
    state.push(format!("{fds:?}"));
    state.push(std::env::current_dir().unwrap().display().to_string());
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    state.push(format!("children {children}"));
    // SAFETY: neither takes a pointer; the query of a registration changes nothing.
    let registered = unsafe { (libc::syscall(libc::SYS_membarrier, 512, 0, 0), libc::getpriority(0, 0)) };
    state.push(format!("{registered:?}"));
    state
}

#[test]
fn the_crossing_is_that_of_a_plain_loop() {
    let _alone = alone();
    let plain = || {
        let batch = || {
            let start = Instant::now();
            for _ in 0..200 {
                // SAFETY: takes no arguments.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
            start.elapsed().as_nanos() as f64 / 200.0
        };
        (0..100).map(|_| batch()).fold(f64::INFINITY, f64::min)
    };
    let mut seen = vec![];
    let alike = soon(|| {
        let (ours, theirs) = (price::crossing(price::CROSSING_BUDGET), plain());
        seen.push((ours, theirs));
        ordered(ours) && ours.min < 1.5 * theirs && theirs < 1.5 * ours.min
    });
    assert!(alike, "{seen:?}");
}

#[test]
fn the_crossing_keeps_to_its_budget() {
    let _alone = alone();
    assert!(soon(|| {
        let start = Instant::now();
        price::crossing(price::CROSSING_BUDGET);
        start.elapsed() < Duration::from_millis(6)
    }));
}

#[test]
fn the_commonest_calls_have_prices() {
    let _alone = alone();
    let names = "getpid getppid gettid getuid rt_sigprocmask rt_sigaction newfstatat stat lstat access readlink statx \
                 fstat open openat close read pread64 write pwrite64 readv writev lseek fcntl ioctl clock_gettime \
                 gettimeofday time getrusage times getrandom futex poll ppoll select epoll_wait epoll_ctl sched_yield \
                 mmap munmap mprotect brk madvise getcwd uname sysinfo sched_getaffinity prctl setsockopt getsockopt \
                 sendto recvfrom sendmsg recvmsg timerfd_settime dup dup2 pipe2 sigaltstack set_robust_list umask";
    let wanted: BTreeSet<Sysno> = names.split_whitespace().map(sysno).collect();
    let (mut prices, mut missing) = (BTreeMap::new(), wanted);
    let all = soon(|| {
        prices.extend(price::prices_of(missing.iter().copied()));
        // On a busy box a sched_yield gives the processor away, which is no price.
        missing.retain(|s| !prices.contains_key(s) && *s != sysno("sched_yield"));
        missing.is_empty()
    });
    let missing: Vec<_> = missing.iter().map(|s| s.to_string()).collect();
    assert!(all, "no price for {missing:?}");
    for (sysno, price) in &prices {
        // No call crosses the kernel in 10 ns; none of these works for half a second.
        assert!(price.low > 10.0 && price.high < 5e8, "{sysno}: {price:?}");
        assert!(price.low <= price.ns && price.ns <= price.high, "{sysno}: {price:?}");
        assert_eq!(price.source, PriceSource::Measured);
    }
}

#[test]
fn nobody_waits_long_for_prices() {
    let _alone = alone();
    assert!(soon(|| {
        let start = Instant::now();
        let prices = price::prices_of((0..512).chain(0..512).map(Sysno));
        prices.len() > 20 && start.elapsed() < Duration::from_millis(500)
    }));
}

#[test]
fn calls_that_are_unsafe_to_try_have_no_price() {
    for name in ["exit_group", "execve", "fork", "pause", "fsync", "reboot", "kexec_load"] {
        assert_eq!(price::price_of(sysno(name)), None, "{name}");
    }
    assert_eq!(price::price_of(Sysno(9_999)), None);
    assert_eq!(price::price_of_failing(sysno("getpid"), Errno(2)), None);
}

#[test]
fn dearer_calls_are_dearer() {
    let _alone = alone();
    let ns = |name| price::price_of(sysno(name)).unwrap().ns;
    assert!(soon(|| ns("newfstatat") > 1.3 * ns("getpid")));
    assert!(soon(|| ns("openat") > ns("newfstatat")));
    assert!(soon(|| ns("getppid") < 1.5 * price::crossing(price::CROSSING_BUDGET).min));
    let missing = || price::price_of_failing(sysno("newfstatat"), Errno::from_name("ENOENT").unwrap()).unwrap().ns;
    assert!(soon(|| missing() > ns("getpid")));
}

#[test]
fn a_path_has_its_own_price() {
    let _alone = alone();
    let stat = |path: &str| price::price_path_stat(Path::new(path));
    assert!(soon(|| stat("/proc/self/task/../task/../status").unwrap().ns > stat("/").unwrap().ns));
    assert!(stat("/systoll/is/not/here").is_some());
    assert_eq!(stat("/proc/version/not-a-folder"), None);
    assert_eq!(stat("nul\0inside"), None);
}

#[test]
fn the_survey_measures_this_box() {
    let _alone = alone();
    let mut took = Duration::MAX;
    assert!(soon(|| {
        let start = Instant::now();
        let report = price::survey();
        took = start.elapsed();
        assert!(report.figures.iter().map(|f| f.probe).eq(Probe::ALL));
        for figure in &report.figures {
            match &figure.figure {
                Figure::Measured(spread) => assert!(ordered(*spread), "{figure:?}"),
                Figure::NotMeasured(why) => assert!(!why.is_empty(), "{figure:?}"),
            }
        }
        let ns = |probe| report.spread(probe).unwrap().min;
        took < Duration::from_secs(2)
            && ns(Probe::FunctionCall) < ns(Probe::Crossing)
            && ns(Probe::Crossing) < ns(Probe::StatPlain)
            && ns(Probe::ReadByte) < ns(Probe::ReadBulk)
            // If the clock source has no vDSO path, both are the same.
            && ns(Probe::ClockVdso) < 1.3 * ns(Probe::ClockKernel)
    }));
}

#[test]
fn nothing_of_the_caller_changes() {
    let _alone = alone();
    let before = state();
    price::crossing(price::CROSSING_BUDGET);
    price::price_of(sysno("openat"));
    price::price_path_stat(Path::new("/etc/localtime"));
    price::prices_of((0..512).map(Sysno));
    price::survey();
    assert_eq!(state(), before);
}

#[test]
fn no_child_signal_reaches_the_caller() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static SEEN: AtomicU32 = AtomicU32::new(0);
    extern "C" fn note(_: libc::c_int) {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }
    let _alone = alone();
    // SAFETY: the handler only adds to an atomic; the default is restored.
    unsafe { libc::signal(libc::SIGCHLD, note as *const () as libc::sighandler_t) };
    price::price_of(sysno("getpid"));
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    assert_eq!(SEEN.load(Ordering::Relaxed), 0);
}
