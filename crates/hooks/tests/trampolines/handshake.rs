//! Tests of questions, of waiting for answers, and of giving up.

use crate::counts::{COUNT, TIMED, file};
use crate::lab::{File, Lab, SHORT, apart, global_word, half, image_words, set_limits};
use crate::server::{Server, futex};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use systoll_hooks::assemble::{Losses, Options};
use systoll_hooks::layout::{GLOBAL, IMAGE, Question, global, image, slot, slot_address, state};

const GETPPID: u32 = 110;

#[test]
fn a_missing_launcher_costs_one_wait() {
    apart("handshake::a_missing_launcher_costs_one_wait", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        set_limits(SHORT);
        let begun = Instant::now();
        lab.call("getppid 1", &[1]);
        let waited = begun.elapsed();
        assert!(waited > Duration::from_millis(15) && waited < Duration::from_secs(20), "{waited:?}");
        assert_ne!(half(IMAGE + image::DEAD).load(SeqCst), 0);
        // No further call waits: the wait would be counted as unanswered.
        lab.call("getppid 2", &[1000]);
        assert_eq!(lab.total(GETPPID), (1001, 1001, 0, 0));
        assert_eq!(lab.read().losses, Losses { unanswered: 1, ..Losses::default() });
    });
}

#[test]
fn signals_do_not_stretch_the_wait() {
    apart("handshake::signals_do_not_stretch_the_wait", || {
        extern "C" fn nothing(_: i32) {}
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        set_limits(SHORT);
        let timer = crate::signals::Timer::start(libc::SIGALRM, nothing as *const (), 0, Duration::from_millis(1));
        let begun = Instant::now();
        lab.call("getppid 1", &[1]);
        let waited = begun.elapsed();
        drop(timer);
        assert!(waited > Duration::from_millis(10) && waited < Duration::from_secs(20), "{waited:?}");
    });
}

#[test]
fn a_launcher_that_recovers_is_asked_again() {
    apart("handshake::a_launcher_that_recovers_is_asked_again", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        set_limits(SHORT);
        lab.call("getppid 1", &[5]);
        set_limits(Duration::from_secs(10));
        half(IMAGE + image::DEAD).store(0, SeqCst);
        let server = Server::start(&[]);
        lab.call("getppid 1", &[7]);
        server.stop();
        let rows = lab.read().rows;
        let mut counts: Vec<_> = rows.iter().map(|r| (r.path.len(), r.threads[0].1.entered)).collect();
        counts.sort_unstable();
        assert_eq!(counts, [(0, 5), (1, 7)]);
    });
}

#[test]
fn spinning_is_answered_too() {
    apart("handshake::spinning_is_answered_too", || {
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        global_word(global::SPINS).store(2000, SeqCst);
        let server = Server::start(&[]);
        for name in ["getppid 1", "getppid 2", "getppid 3"] {
            lab.call(name, &[3]);
        }
        assert_eq!(server.stop().count(Question::Context), 3);
        assert_eq!(lab.total(GETPPID), (9, 9, 0, 0));
    });
}

#[test]
fn under_a_strict_filter_nothing_is_called() {
    apart("handshake::under_a_strict_filter_nothing_is_called", || {
        for answered in [true, false] {
            crate::forked(|| {
                let mut file = file();
                file.wrapped("fork", 57);
                let lab = Lab::new(file, TIMED);
                lab.enter(0);
                half(IMAGE + image::QUIET).store(1, SeqCst);
                let server = answered.then(|| Server::start(&[]));
                if !answered {
                    set_limits(SHORT);
                }
                std::thread::sleep(Duration::from_millis(20));
                // This reading allocates memory now; under the filter it can't be requested.
                lab.read();
                only_getppid_and_exit();
                lab.call("getppid 1", &[100]);
                let total = lab.total(GETPPID);
                let good = total == (100, 100, 0, 0) && lab.read().losses.unanswered == u64::from(!answered);
                lab.call("exit_group", &[u64::from(!good)]);
                drop(server);
            });
        }
    });
}

/// Installs a filter that kills this process when this thread makes another call than getppid and exit_group.
fn only_getppid_and_exit() {
    let allow = [GETPPID, 231];
    let statement = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut filter = vec![statement(0x20, 0, 0, 0)];
    for (i, number) in allow.iter().enumerate() {
        filter.push(statement(0x15, *number, (allow.len() - i) as u8, 0));
    }
    filter.push(statement(0x06, libc::SECCOMP_RET_KILL_PROCESS, 0, 0));
    filter.push(statement(0x06, libc::SECCOMP_RET_ALLOW, 0, 0));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `program` is a valid filter for as long as the calls take.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn required_questions_are_asked() {
    apart("handshake::required_questions_are_asked", || {
        for options in [COUNT, TIMED] {
            let mut file = File::new();
            file.wrapper("execve", 59);
            file.wrapper("prctl", 157);
            file.any("any");
            file.function("mmap");
            file.a.mov(iced_x86::code_asm::r10, iced_x86::code_asm::rcx).unwrap();
            file.site(Some(9), false, 8);
            file.a.ret().unwrap();
            crate::forked(|| {
                let lab = Lab::new(file, options);
                lab.enter(0);
                let server = Server::start(&[]);
                let program = std::fs::File::open("/proc/self/exe").unwrap();
                let fd = std::os::fd::AsRawFd::as_raw_fd(&program) as u64;
                let private = libc::MAP_PRIVATE as u64;
                let text = lab.call("mmap", &[0, 4096, 5, private, fd, 0]);
                assert!(text > 0);
                assert!(lab.call("mmap", &[0, 4096, 1, private, fd, 0]) > 0);
                assert!(lab.call("mmap", &[0, 4096, 5, private, 9999, 0]) < 0);
                assert!(lab.call("any", &[9, 0, 4096, 5, private, fd, 0]) > 0);
                let folder = c"/".as_ptr() as u64;
                assert_eq!(lab.call("execve", &[folder, 0, 0]), -i64::from(libc::EACCES));
                assert_eq!(lab.call("any", &[59, folder, 0, 0]), -i64::from(libc::EACCES));
                assert!(lab.call("prctl", &[22, 99, 0]) < 0);
                assert!(lab.call("prctl", &[3, 0, 0]) >= 0);
                assert!(lab.call("any", &[157, 22, 99, 0]) < 0);
                let asked = server.stop();
                let kinds = [Question::Mapped, Question::Exec, Question::ExecFailed, Question::Confine];
                assert_eq!(kinds.map(|k| asked.count(k)), [2, 2, 2, 2]);
                assert!(asked.questions.iter().any(|(q, rax, _)| *q == Question::Mapped && *rax == text as u64));
                assert_eq!(lab.total(9).0, 4);
                assert_eq!(lab.total(59).0, 2);
                assert_eq!(lab.total(157).0, 3);
            });
        }
    });
}

#[test]
fn a_missing_program_is_not_asked_about() {
    apart("handshake::a_missing_program_is_not_asked_about", || {
        for options in [COUNT, TIMED] {
            let mut file = File::new();
            file.wrapper("execve", 59);
            file.any("any");
            crate::forked(|| {
                let lab = Lab::new(file, options);
                lab.enter(0);
                let server = Server::start(&[]);
                let none = [(c"/nowhere", libc::ENOENT), (c"/etc/passwd/nowhere", libc::ENOTDIR)];
                for (path, errno) in none {
                    assert_eq!(lab.call("execve", &[path.as_ptr() as u64, 0, 0]), -i64::from(errno));
                    assert_eq!(lab.call("any", &[59, path.as_ptr() as u64, 0, 0]), -i64::from(errno));
                }
                assert_eq!(lab.call("execve", &[c"/".as_ptr() as u64, 0, 0]), -i64::from(libc::EACCES));
                // A thread that is to make no calls of its own can't look whether the file exists.
                half(IMAGE + image::QUIET).store(1, SeqCst);
                assert_eq!(lab.call("execve", &[none[0].0.as_ptr() as u64, 0, 0]), -i64::from(libc::ENOENT));
                half(IMAGE + image::QUIET).store(0, SeqCst);
                // An invalid address holds no name.
                assert_eq!(lab.call("execve", &[8, 0, 0]), -i64::from(libc::EFAULT));
                let asked = server.stop();
                assert_eq!([Question::Exec, Question::ExecFailed].map(|k| asked.count(k)), [3, 3]);
                assert_eq!(lab.total(59).0, 7);
                assert_eq!(lab.read().losses.unheard, 0);
                // During the call, its program counts as one that was not heard of: the call may start it.
                trap_execve();
                lab.call("execve", &[none[0].0.as_ptr() as u64, 0, 0]);
                assert_eq!(UNHEARD_MEANWHILE.load(SeqCst), 1);
                assert_eq!(lab.read().losses.unheard, 0);
            });
        }
    });
}

/// The image's count of unheard programs at the time `execve` was trapped.
static UNHEARD_MEANWHILE: AtomicU64 = AtomicU64::new(0);

/// Installs a filter that sends a signal at each `execve` of this thread. Its handler stores [`UNHEARD_MEANWHILE`].
fn trap_execve() {
    extern "C" fn look(_: libc::c_int) {
        UNHEARD_MEANWHILE.store(image_words()[image::UNHEARD as usize / 8].load(SeqCst), SeqCst);
    }
    let statement = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        statement(0x20, 0, 0, 0),
        statement(0x15, 59, 0, 1),
        statement(0x06, libc::SECCOMP_RET_TRAP, 0, 0),
        statement(0x06, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the handler only reads and stores words; `program` is a valid filter for as long as the calls take.
    unsafe {
        assert_ne!(libc::signal(libc::SIGSYS, look as *const () as usize), libc::SIG_ERR);
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn windows_show_calls_on_both_sides() {
    apart("handshake::windows_show_calls_on_both_sides", || {
        let lab = Lab::new(file(), Options { windows: true, ..TIMED });
        lab.enter(0);
        let server = Server::start(&[]);
        lab.call("closes", &[10, 1_000_000]);
        let want = &image_words()[(image::SLOTS + slot::WANT) as usize / 8];
        want.store(1, SeqCst);
        lab.call("closes", &[32, 1_000_000]);
        want.store(0, SeqCst);
        lab.call("closes", &[10, 1_000_000]);
        let asked = server.stop();
        assert_eq!((asked.count(Question::WindowEntry), asked.count(Question::WindowReturn)), (32, 32));
        let of = |kind| asked.questions.iter().filter(move |q| q.0 == kind);
        assert!(of(Question::WindowEntry).all(|q| (q.1, q.2) == (3, 1_000_000)));
        assert!(of(Question::WindowReturn).all(|q| q.1 as i64 == -i64::from(libc::EBADF)));
        assert_eq!(lab.total(3), (52, 52, 52, 0));
    });
}

/// Waits until the thread of the first slot waits, has it write single bytes to descriptors, and releases it.
fn have_written(bytes: &[(u64, &'static u8)]) {
    let at = slot_address(0);
    let word = |offset: u64| &image_words()[(at - IMAGE + offset) as usize / 8];
    while half(at + slot::STATE).load(SeqCst) != state::WAITING {
        std::hint::spin_loop();
    }
    for (n, (fd, byte)) in bytes.iter().enumerate() {
        let to = if n == 0 { slot::REQUEST } else { slot::REQUESTS + (n as u64 - 1) * slot::REQUEST_LEN };
        let call = [libc::SYS_write as u64, *fd, std::ptr::from_ref(*byte) as u64, 1, 0, 0, 0];
        (0..).zip(call).for_each(|(i, value)| word(to + 8 * i).store(value, SeqCst));
    }
    word(slot::REQUESTS_NEXT).store(slot::REQUESTS, SeqCst);
    word(slot::REQUESTS_END).store(slot::REQUESTS + (bytes.len() as u64 - 1) * slot::REQUEST_LEN, SeqCst);
    word(slot::REQUESTS_LET_GO).store(1, SeqCst);
    half(at + slot::STATE).store(state::REQUEST, SeqCst);
    futex(at + slot::STATE, libc::FUTEX_WAKE, 1);
}

/// Makes calls that a thread asks about first, at sites with a fixed number and without, while every answer takes
/// long.
fn asked_about_for_long(options: Options) {
    const SETRESUID: u32 = 117;
    const PRCTL: u32 = 157;
    const SECCOMP: u32 = 317;
    const DELAY: Duration = Duration::from_millis(50);
    let mut file = File::new();
    file.wrapper("setresuid", SETRESUID);
    file.wrapper("prctl", PRCTL);
    file.wrapper("seccomp", SECCOMP);
    file.any("any");
    let lab = Lab::new(file, options);
    lab.enter(0);
    set_limits(Duration::from_secs(20));
    half(GLOBAL + global::AWAKE).store(1, SeqCst);
    std::thread::spawn(|| {
        loop {
            let state = half(slot_address(0) + slot::STATE);
            while state.load(SeqCst) != state::WAITING {
                std::hint::spin_loop();
            }
            std::thread::sleep(DELAY);
            state.store(state::ANSWERED, SeqCst);
            futex(slot_address(0) + slot::STATE, libc::FUTEX_WAKE, 1);
        }
    });
    let none = u64::MAX;
    // The calls fail: at address 1 there is no filter.
    let (by_prctl, by_seccomp) = ([libc::PR_SET_SECCOMP as u64, 2, 1, 0, 0], [1, 0, 1]);
    let by_number = |number: u32, arguments: &[u64]| [&[u64::from(number)], arguments].concat();
    let (changes, fails) = ([none; 3], -i64::from(libc::EFAULT));
    let (begun, from) = (Instant::now(), crate::lab::tsc());
    assert_eq!(lab.call("setresuid", &changes), 0);
    assert_eq!(lab.call("any", &by_number(SETRESUID, &changes)), 0);
    assert_eq!(lab.call("prctl", &by_prctl), fails);
    assert_eq!(lab.call("any", &by_number(PRCTL, &by_prctl)), fails);
    assert_eq!(lab.call("seccomp", &by_seccomp), fails);
    assert_eq!(lab.call("any", &by_number(SECCOMP, &by_seccomp)), fails);
    let passed = crate::lab::tsc() - from;
    assert!(begun.elapsed() >= 6 * DELAY, "each was asked about: {:?}", begun.elapsed());
    for number in [SETRESUID, PRCTL, SECCOMP] {
        assert_eq!(lab.total(number).1, 2, "{number}");
    }
    let rows = lab.read().rows;
    let cycles: u64 = rows.iter().flat_map(|r| &r.threads).map(|(_, c)| c.cycles).sum();
    assert!((1..passed / 12).contains(&cycles), "{cycles} of {passed} cycles");
}

#[test]
fn asking_does_not_count_as_the_calls_time() {
    apart("handshake::asking_does_not_count_as_the_calls_time", || asked_about_for_long(TIMED));
}

#[test]
fn asking_does_not_count_as_the_time_of_sampled_calls() {
    apart("handshake::asking_does_not_count_as_the_time_of_sampled_calls", || {
        asked_about_for_long(Options { sampled: true, ..TIMED });
    });
}

#[test]
fn a_released_thread_returns_if_its_call_fails() {
    apart("handshake::a_released_thread_returns_if_its_call_fails", || {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let lab = Lab::new(file(), TIMED);
        lab.enter(0);
        set_limits(Duration::from_secs(20));
        half(GLOBAL + global::AWAKE).store(1, SeqCst);
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fd = writer.as_raw_fd() as u64;
        let launcher = std::thread::spawn(move || {
            have_written(&[(fd, &b'a'), (fd, &b'b'), (fd, &b'c')]);
            let word = |offset: u64| image_words()[(slot_address(0) - IMAGE + offset) as usize / 8].load(SeqCst);
            while word(slot::REQUESTS_LET_GO) != 0 {
                std::hint::spin_loop();
            }
            have_written(&[(fd, &b'd'), (9999, &b'x'), (fd, &b'y')]);
            while half(slot_address(0) + slot::STATE).load(SeqCst) != state::WAITING {
                std::hint::spin_loop();
            }
            let left = [slot::REPLY, slot::REQUESTS_NEXT, slot::REQUESTS_LET_GO].map(word);
            half(slot_address(0) + slot::STATE).store(state::ANSWERED, SeqCst);
            futex(slot_address(0) + slot::STATE, libc::FUTEX_WAKE, 1);
            left
        });
        let parent = std::os::unix::process::parent_id();
        assert_eq!(lab.call("getppid 1", &[1]), i64::from(parent));
        assert_eq!(lab.call("getppid 2", &[1]), i64::from(parent));
        let failed = -i64::from(libc::EBADF);
        assert_eq!(launcher.join().unwrap(), [failed as u64, slot::REQUESTS + slot::REQUEST_LEN, 1]);
        drop(writer);
        let mut written = String::new();
        reader.read_to_string(&mut written).unwrap();
        assert_eq!(written, "abcd");
        assert_eq!(lab.total(GETPPID), (2, 2, 0, 0));
    });
}
