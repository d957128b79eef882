//! All system calls by the eight kinds of waste: what a compiler could leave out of a sequence of them, or replace by
//! something cheaper.
//!
//! Calls of one shape are one row. A cell tells that each of its calls has a line in a table ([`Cell::All`]), that
//! some have, and the reason why the others have none ([`Cell::Part`]), or the reason why none has ([`Cell::No`]).
//! The test below walks all cells: it fails for a call that is new in the kernel, a line without its cell, or a
//! reason that a line contradicts. `detect/each_line.rs` makes sequences of calls from each line, which a detector
//! must claim, and neighbours of them, which it must not. Errors that come again are reported for any call
//! ([`super::errors`]).

use super::registry::{Lines, Semantics};
use super::vocabulary::Eight;
use std::collections::BTreeMap;
use systoll_model::{Sysno, signatures};

/// The lines that the tables have for the calls of one shape.
#[derive(Clone, Copy, Debug)]
enum Cell {
    /// Each call has a line.
    All,
    /// Some calls have a line; the text is the reason why the others have none.
    Part(&'static str),
    /// No call has a line, for this reason.
    No(&'static str),
}
use Cell::{All, No, Part};

/// System calls that have the same kinds of waste.
#[derive(Debug)]
struct Shape {
    /// The property that the system calls share; a verb with its object, for "a call that …".
    does: &'static str,
    /// The calls' names, separated by spaces.
    calls: &'static str,
    /// The cells, in the order of [`Eight::ALL`].
    cells: [Cell; 8],
}

/// The table of shapes.
#[rustfmt::skip]
static SHAPES: &[Shape] = &[
    Shape {
        does: "asks what is so of a process, a thread, the kernel",
        calls: "getpid getppid getuid geteuid getgid getegid getpgrp getpgid getsid getgroups getresuid getresgid \
             gettid uname getcwd getrlimit sched_getaffinity sched_getscheduler sched_getparam sched_getattr \
             sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority ioprio_get capget \
             clock_getres get_robust_list lsm_get_self_attr lsm_list_modules get_thread_area kcmp",
        cells: [
            /* same question */ Part("asked by debuggers and at a thread's end, of others"),
            /* contained     */ No("no other call tells it"),
            /* no change     */ No("a question sets nothing"),
            /* dead store    */ No("it stores nothing"),
            /* undone        */ No("a question changes nothing"),
            /* made again    */ No("a question makes nothing"),
            /* in pieces     */ No("each answers one question"),
            /* dearer road   */ No("no other call gives the same for less"),
        ],
    },
    Shape {
        does: "asks what a path or a descriptor leads to",
        calls: "stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat getxattr lgetxattr \
             fgetxattr listxattr llistxattr flistxattr getxattrat listxattrat statfs fstatfs getsockname \
             getpeername getsockopt name_to_handle_at file_getattr ustat",
        cells: [
            /* same question */ Part("hardly any program makes it"),
            /* contained     */ Part("what it tells, no opening tells"),
            /* no change     */ No("a question sets nothing"),
            /* dead store    */ No("it stores nothing"),
            /* undone        */ No("a question changes nothing"),
            /* made again    */ No("a question makes nothing"),
            /* in pieces     */ No("it asks about one thing, and has no form for several"),
            /* dearer road   */ No("no other call gives the same for less"),
        ],
    },
    Shape {
        does: "asks for what moves by itself",
        calls: "getitimer timer_gettime timer_getoverrun timerfd_gettime rt_sigpending mincore cachestat \
             mq_getsetattr get_mempolicy statmount listmount listns lookup_dcookie getrusage times sysinfo \
             gettimeofday time clock_gettime getcpu",
        cells: [
            /* same question */ No("the answer is another each time"),
            /* contained     */ No("no other call tells it"),
            /* no change     */ No("a question sets nothing"),
            /* dead store    */ No("it stores nothing"),
            /* undone        */ No("a question changes nothing"),
            /* made again    */ No("a question makes nothing"),
            /* in pieces     */ Part("it tells of one thing"),
            /* dearer road   */ Part("what it tells, only the kernel knows"),
        ],
    },
    Shape {
        does: "sets what is so of a process or a thread",
        calls: "rt_sigprocmask rt_sigaction sigaltstack prctl setrlimit prlimit64 setpriority sched_setaffinity \
             sched_setscheduler sched_setparam sched_setattr ioprio_set umask chdir setresuid setresgid brk \
             fchdir setuid setgid setreuid setregid setgroups setfsuid setfsgid setpgid setsid capset personality \
             set_mempolicy set_mempolicy_home_node arch_prctl set_tid_address set_robust_list rseq \
             set_thread_area modify_ldt lsm_set_self_attr unshare setns chroot pivot_root",
        cells: [
            /* same question */ Part("what it set, another call tells"),
            /* contained     */ No("it asks nothing"),
            /* no change     */ Part("made once, by a launcher or the C library"),
            /* dead store    */ Part("the kernel, or a signal, uses it at any time"),
            /* undone        */ Part("made once, by a launcher or the C library, or no call tells what was before"),
            /* made again    */ No("it makes nothing"),
            /* in pieces     */ No("it sets one thing"),
            /* dearer road   */ No("no other call gives the same for less"),
        ],
    },
    Shape {
        does: "sets what is so of a descriptor",
        calls: "fcntl ioctl setsockopt lseek epoll_ctl timerfd_settime timer_settime setitimer alarm \
             inotify_add_watch inotify_rm_watch fanotify_mark mq_notify io_uring_register",
        cells: [
            /* same question */ Part("another call tells it, or none does"),
            /* contained     */ Part("it says nothing beforehand"),
            /* no change     */ Part("what is registered, no call tells"),
            /* dead store    */ Part("events come by themselves, and what a flag or a position is used for, the calls beside it tell"),
            /* undone        */ Part("it adds up, and no call tells what was before"),
            /* made again    */ Part("what it sets has no handle, or what comes until it is taken off is what it is for"),
            /* in pieces     */ No("it has no form for several, or its entries lie in memory that is not read"),
            /* dearer road   */ Part("no other call gives the same for less"),
        ],
    },
    Shape {
        does: "brings a file to the disk, or sets its size",
        calls: "fsync fdatasync ftruncate sync syncfs truncate fallocate sync_file_range msync fadvise64 readahead",
        cells: [
            /* same question */ Part("it asks nothing"),
            /* contained     */ No("it asks nothing"),
            /* no change     */ Part("what others wrote is flushed too, or how it is now is not known"),
            /* dead store    */ Part("what it does is at once so"),
            /* undone        */ Part("what is on the disk stays there"),
            /* made again    */ No("it makes nothing"),
            /* in pieces     */ Part("it takes the whole file"),
            /* dearer road   */ Part("no other call gives the same for less"),
        ],
    },
    Shape {
        does: "changes a name, or what stands beside a file",
        calls: "rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir mknod \
             mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat \
             utimensat setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr \
             removexattrat file_setattr mq_unlink",
        cells: [
            /* same question */ Part("it asks nothing; that it fails again is told of any call that names a path"),
            /* contained     */ No("it asks nothing"),
            /* no change     */ Part("it makes, moves or takes away a name, or is of a link itself"),
            /* dead store    */ Part("others see names and rights at once"),
            /* undone        */ Part("a name that comes and goes says something to others"),
            /* made again    */ No("it makes a name, which others see"),
            /* in pieces     */ No("it takes one name"),
            /* dearer road   */ No("no other call does it"),
        ],
    },
    Shape {
        does: "opens a file, a folder, a socket",
        calls: "open openat openat2 creat socket accept accept4 mq_open open_by_handle_at open_tree open_tree_attr \
             fsopen fsmount fspick connect bind listen shutdown execve execveat",
        cells: [
            /* same question */ Part("what it leads to, only it tells"),
            /* contained     */ Part("no other call tells beforehand what it tells"),
            /* no change     */ No("it sets nothing that could be so before"),
            /* dead store    */ Part("others are told at once"),
            /* undone        */ Part("its end is told of with what is made again"),
            /* made again    */ Part("it is a session or a program, which says something to others, or it waits for those"),
            /* in pieces     */ Part("it takes one at a time"),
            /* dearer road   */ Part("no other call gives the same for less"),
        ],
    },
    Shape {
        does: "makes what another call gives up",
        calls: "dup eventfd eventfd2 signalfd signalfd4 timerfd_create timer_create epoll_create epoll_create1 \
             inotify_init inotify_init1 fanotify_init memfd_create perf_event_open io_setup io_uring_setup pipe \
             pipe2 socketpair shmget shmat semget msgget pkey_alloc mmap mlock mlock2 pidfd_open pidfd_getfd \
             userfaultfd landlock_create_ruleset memfd_secret dup2 dup3 mlockall mremap map_shadow_stack \
             remap_file_pages",
        cells: [
            /* same question */ Part("it asks nothing"),
            /* contained     */ Part("no other call makes it on the way"),
            /* no change     */ No("a new one is another"),
            /* dead store    */ No("what it makes is used by what follows"),
            /* undone        */ Part("its number or its place is what others go by"),
            /* made again    */ Part("what it is of is another process, or it stays to the end"),
            /* in pieces     */ Part("it makes one at a time"),
            /* dearer road   */ No("no other call makes it"),
        ],
    },
    Shape {
        does: "gives up what was made",
        calls: "close shmdt shmctl semctl msgctl pkey_free munmap munlock io_destroy timer_delete",
        cells: [
            /* same question */ No("it asks nothing; that it fails hopelessly is told of any call"),
            /* contained     */ No("it asks nothing"),
            /* no change     */ No("a second end fails"),
            /* dead store    */ No("it stores nothing"),
            /* undone        */ All,
            /* made again    */ All,
            /* in pieces     */ Part("it gives one thing up"),
            /* dearer road   */ No("no other call gives it up"),
        ],
    },
    Shape {
        does: "starts a process, a thread, or ends one",
        calls: "clone clone3 fork vfork wait4 waitid exit exit_group kill tkill tgkill rt_sigqueueinfo \
             rt_tgsigqueueinfo pidfd_send_signal process_mrelease ptrace",
        cells: [
            /* same question */ Part("each answer is another event"),
            /* contained     */ Part("no other call tells it"),
            /* no change     */ No("it sets nothing"),
            /* dead store    */ No("a signal is delivered at once"),
            /* undone        */ No("nothing undoes it"),
            /* made again    */ Part("it makes nothing"),
            /* in pieces     */ No("it is of one process, or of a group already"),
            /* dearer road   */ Part("no other call does it"),
        ],
    },
    Shape {
        does: "moves bytes or messages",
        calls: "read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 recvfrom recvmsg recvmmsg \
             sendto sendmsg sendmmsg sendfile splice vmsplice tee copy_file_range mq_timedsend mq_timedreceive \
             msgsnd msgrcv process_vm_readv process_vm_writev getrandom getdents getdents64 io_submit \
             io_uring_enter",
        cells: [
            /* same question */ No("what it brings is new, or is told of as a file read again"),
            /* contained     */ Part("what it brings, no other call told"),
            /* no change     */ No("what was written may be read: the same bytes again are another message"),
            /* dead store    */ Part("it brings something"),
            /* undone        */ No("what was moved is moved"),
            /* made again    */ No("it moves what is there"),
            /* in pieces     */ Part("it takes many at once already"),
            /* dearer road   */ Part("no call does it for less"),
        ],
    },
    Shape {
        does: "works on a range of memory",
        calls: "madvise mprotect pkey_mprotect process_madvise mbind mseal migrate_pages move_pages",
        cells: [
            /* same question */ No("it asks nothing"),
            /* contained     */ No("it asks nothing"),
            /* no change     */ Part("what it did to pages wears off as they are used"),
            /* dead store    */ No("memory is used by no call, so that nothing tells when"),
            /* undone        */ Part("pages moved or given back come back by themselves"),
            /* made again    */ No("it makes nothing"),
            /* in pieces     */ Part("it takes many ranges at once already"),
            /* dearer road   */ No("no other call does it"),
        ],
    },
    Shape {
        does: "waits, or wakes who waits",
        calls: "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 nanosleep clock_nanosleep pause \
             sched_yield rt_sigtimedwait rt_sigsuspend futex futex_wait futex_wake futex_waitv futex_requeue \
             io_getevents io_pgetevents flock semop semtimedop membarrier rseq_slice_yield",
        cells: [
            /* same question */ No("each time may bring something else"),
            /* contained     */ No("what is ready, no other call tells beforehand"),
            /* no change     */ No("it sets nothing"),
            /* dead store    */ No("who is woken runs at once"),
            /* undone        */ Part("a wait is over when it is over; a semaphore may be another thread's to give back"),
            /* made again    */ No("it makes nothing"),
            /* in pieces     */ No("it waits for many at once already, or for one word"),
            /* dearer road   */ Part("it waits for something"),
        ],
    },
    Shape {
        does: "is an administrator's, a debugger's or a loader's",
        calls: "acct swapon swapoff mount umount2 move_mount mount_setattr fsconfig quotactl quotactl_fd syslog \
             vhangup reboot sethostname setdomainname iopl ioperm settimeofday clock_settime adjtimex \
             clock_adjtime init_module finit_module delete_module kexec_load kexec_file_load bpf seccomp \
             landlock_add_rule landlock_restrict_self add_key request_key keyctl io_cancel close_range munlockall",
        cells: [
            /* same question */ Part("made once, for its effect on the whole machine or for good"),
            /* contained     */ No("it asks nothing"),
            /* no change     */ No("made once, for its effect on the whole machine or for good"),
            /* dead store    */ No("it is seen at once"),
            /* undone        */ No("it is made once"),
            /* made again    */ No("it is made once"),
            /* in pieces     */ No("it takes one at a time"),
            /* dearer road   */ No("no other call does it"),
        ],
    },
    Shape {
        does: "is made by the kernel, or is not there any more",
        calls: "rt_sigreturn restart_syscall uretprobe uprobe uselib sysfs _sysctl create_module get_kernel_syms \
             query_module nfsservctl getpmsg putpmsg afs_syscall tuxcall security epoll_ctl_old epoll_wait_old \
             vserver",
        cells: [
            /* same question */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* contained     */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* no change     */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* dead store    */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* undone        */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* made again    */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* in pieces     */ No("no program makes it on purpose, or it always fails, which is told of any call"),
            /* dearer road   */ No("no program makes it on purpose, or it always fails, which is told of any call"),
        ],
    },
];

/// Returns the contradictions between a shape's cells and the lines of its calls.
fn faults(shape: &Shape, semantics: &Semantics) -> Vec<String> {
    let calls: Vec<(&str, &Lines)> = shape
        .calls
        .split_whitespace()
        .map(|name| {
            (name, semantics.lines_of(Sysno::from_name(name).unwrap_or_else(|| panic!("{name}: no such call"))))
        })
        .collect();
    let mut faults = Vec::new();
    for (eight, cell) in Eight::ALL.into_iter().zip(&shape.cells) {
        let (with, without): (Vec<_>, Vec<_>) = calls.iter().partition(|(_, lines)| lines.answer(eight));
        let names = |calls: &[&(&str, &Lines)]| calls.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
        let (with, without) = (names(&with), names(&without));
        let fault = match cell {
            All if !without.is_empty() => format!("no line of {without}"),
            No(reason) if !with.is_empty() => format!("there is a line of {with}, though {reason}"),
            Part(_) if with.is_empty() || without.is_empty() => format!("lines of {with:?}, none of {without:?}"),
            All | Part(_) | No(_) => continue,
        };
        faults.push(format!("what {}, {eight:?}: {fault}", shape.does));
    }
    faults
}

#[test]
fn each_call_has_a_line_or_a_reason_for_each_of_the_eight() {
    let semantics = Semantics::new();
    let faults: Vec<String> = SHAPES.iter().flat_map(|shape| faults(shape, &semantics)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_call_has_one_shape() {
    let mut shapes: BTreeMap<&str, usize> = BTreeMap::new();
    for name in SHAPES.iter().flat_map(|shape| shape.calls.split_whitespace()) {
        *shapes.entry(name).or_default() += 1;
    }
    for signature in signatures() {
        assert_eq!(shapes.remove(signature.name), Some(1), "{}: in so many rows of the table", signature.name);
    }
    assert!(shapes.is_empty(), "no such calls: {shapes:?}");
}

#[test]
fn each_reason_says_something() {
    let reasons = SHAPES.iter().flat_map(|shape| &shape.cells).filter_map(|cell| match cell {
        All => None,
        No(reason) | Part(reason) => Some(*reason),
    });
    for reason in reasons {
        assert!(reason.split(' ').count() >= 3, "{reason}");
    }
}
