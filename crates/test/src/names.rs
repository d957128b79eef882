//! Names of system calls. A test compares them with those of `systoll-model`.

/// Name of a call whose number has no name.
pub(crate) const UNKNOWN: &str = "unknown";

/// Returns the name of the call with this number; `unknown` if there is none.
pub fn name(number: u32) -> &'static str {
    NAMES.iter().find(|n| n.number == number).map_or(UNKNOWN, |n| n.name)
}

/// Returns the number of the call with this name.
pub fn number(name: &str) -> Option<u32> {
    NAMES.iter().find(|n| n.name == name).map(|n| n.number)
}

/// The calls that C libraries and runtimes make today for a function named like an older call: a
/// limit on `open` means `openat`. From glibc 2.31 to 2.41 and musl 1.2 for x86-64; `systoll run
/// -e` reads names in the same way.
const MADE_AS: &[(&str, &[&str])] = &[
    ("open", &["openat", "openat2"]),
    ("creat", &["open", "openat"]),
    ("stat", &["newfstatat", "statx"]),
    ("lstat", &["newfstatat", "statx"]),
    ("fork", &["clone", "clone3"]),
    ("getdents", &["getdents64"]),
    ("select", &["pselect6"]),
    ("nanosleep", &["clock_nanosleep"]),
    ("getrlimit", &["prlimit64"]),
    ("setrlimit", &["prlimit64"]),
    ("eventfd", &["eventfd2"]),
    ("signalfd", &["signalfd4"]),
    ("epoll_create", &["epoll_create1"]),
    ("inotify_init", &["inotify_init1"]),
];

/// Returns the calls that a name means beside the call of that name; none for most.
pub fn made_as(name: &str) -> &'static [&'static str] {
    MADE_AS.iter().find(|(older, _)| *older == name).map_or(&[], |(_, calls)| calls)
}

/// Returns all names that mean other calls, with those calls.
pub fn all_made_as() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    MADE_AS.iter().copied()
}

/// Returns all names of calls.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|n| n.name)
}

/// Returns true if there is a call of this name, at compile time.
pub(crate) const fn is_name(name: &str) -> bool {
    let mut at = 0;
    while at < NAMES.len() {
        if same(NAMES[at].name.as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

pub(crate) const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

struct Name {
    number: u32,
    name: &'static str,
}

const fn call(number: u32, name: &'static str) -> Name {
    Name { number, name }
}

#[rustfmt::skip]
const NAMES: &[Name] = &[
    call(0, "read"), call(1, "write"), call(2, "open"), call(3, "close"),
    call(4, "stat"), call(5, "fstat"), call(6, "lstat"), call(7, "poll"),
    call(8, "lseek"), call(9, "mmap"), call(10, "mprotect"), call(11, "munmap"),
    call(12, "brk"), call(13, "rt_sigaction"), call(14, "rt_sigprocmask"), call(15, "rt_sigreturn"),
    call(16, "ioctl"), call(17, "pread64"), call(18, "pwrite64"), call(19, "readv"),
    call(20, "writev"), call(21, "access"), call(22, "pipe"), call(23, "select"),
    call(24, "sched_yield"), call(25, "mremap"), call(26, "msync"), call(27, "mincore"),
    call(28, "madvise"), call(29, "shmget"), call(30, "shmat"), call(31, "shmctl"),
    call(32, "dup"), call(33, "dup2"), call(34, "pause"), call(35, "nanosleep"),
    call(36, "getitimer"), call(37, "alarm"), call(38, "setitimer"), call(39, "getpid"),
    call(40, "sendfile"), call(41, "socket"), call(42, "connect"), call(43, "accept"),
    call(44, "sendto"), call(45, "recvfrom"), call(46, "sendmsg"), call(47, "recvmsg"),
    call(48, "shutdown"), call(49, "bind"), call(50, "listen"), call(51, "getsockname"),
    call(52, "getpeername"), call(53, "socketpair"), call(54, "setsockopt"), call(55, "getsockopt"),
    call(56, "clone"), call(57, "fork"), call(58, "vfork"), call(59, "execve"),
    call(60, "exit"), call(61, "wait4"), call(62, "kill"), call(63, "uname"),
    call(64, "semget"), call(65, "semop"), call(66, "semctl"), call(67, "shmdt"),
    call(68, "msgget"), call(69, "msgsnd"), call(70, "msgrcv"), call(71, "msgctl"),
    call(72, "fcntl"), call(73, "flock"), call(74, "fsync"), call(75, "fdatasync"),
    call(76, "truncate"), call(77, "ftruncate"), call(78, "getdents"), call(79, "getcwd"),
    call(80, "chdir"), call(81, "fchdir"), call(82, "rename"), call(83, "mkdir"),
    call(84, "rmdir"), call(85, "creat"), call(86, "link"), call(87, "unlink"),
    call(88, "symlink"), call(89, "readlink"), call(90, "chmod"), call(91, "fchmod"),
    call(92, "chown"), call(93, "fchown"), call(94, "lchown"), call(95, "umask"),
    call(96, "gettimeofday"), call(97, "getrlimit"), call(98, "getrusage"), call(99, "sysinfo"),
    call(100, "times"), call(101, "ptrace"), call(102, "getuid"), call(103, "syslog"),
    call(104, "getgid"), call(105, "setuid"), call(106, "setgid"), call(107, "geteuid"),
    call(108, "getegid"), call(109, "setpgid"), call(110, "getppid"), call(111, "getpgrp"),
    call(112, "setsid"), call(113, "setreuid"), call(114, "setregid"), call(115, "getgroups"),
    call(116, "setgroups"), call(117, "setresuid"), call(118, "getresuid"), call(119, "setresgid"),
    call(120, "getresgid"), call(121, "getpgid"), call(122, "setfsuid"), call(123, "setfsgid"),
    call(124, "getsid"), call(125, "capget"), call(126, "capset"), call(127, "rt_sigpending"),
    call(128, "rt_sigtimedwait"), call(129, "rt_sigqueueinfo"), call(130, "rt_sigsuspend"), call(131, "sigaltstack"),
    call(132, "utime"), call(133, "mknod"), call(134, "uselib"), call(135, "personality"),
    call(136, "ustat"), call(137, "statfs"), call(138, "fstatfs"), call(139, "sysfs"),
    call(140, "getpriority"), call(141, "setpriority"), call(142, "sched_setparam"), call(143, "sched_getparam"),
    call(144, "sched_setscheduler"), call(145, "sched_getscheduler"), call(146, "sched_get_priority_max"), call(147, "sched_get_priority_min"),
    call(148, "sched_rr_get_interval"), call(149, "mlock"), call(150, "munlock"), call(151, "mlockall"),
    call(152, "munlockall"), call(153, "vhangup"), call(154, "modify_ldt"), call(155, "pivot_root"),
    call(156, "_sysctl"), call(157, "prctl"), call(158, "arch_prctl"), call(159, "adjtimex"),
    call(160, "setrlimit"), call(161, "chroot"), call(162, "sync"), call(163, "acct"),
    call(164, "settimeofday"), call(165, "mount"), call(166, "umount2"), call(167, "swapon"),
    call(168, "swapoff"), call(169, "reboot"), call(170, "sethostname"), call(171, "setdomainname"),
    call(172, "iopl"), call(173, "ioperm"), call(174, "create_module"), call(175, "init_module"),
    call(176, "delete_module"), call(177, "get_kernel_syms"), call(178, "query_module"), call(179, "quotactl"),
    call(180, "nfsservctl"), call(181, "getpmsg"), call(182, "putpmsg"), call(183, "afs_syscall"),
    call(184, "tuxcall"), call(185, "security"), call(186, "gettid"), call(187, "readahead"),
    call(188, "setxattr"), call(189, "lsetxattr"), call(190, "fsetxattr"), call(191, "getxattr"),
    call(192, "lgetxattr"), call(193, "fgetxattr"), call(194, "listxattr"), call(195, "llistxattr"),
    call(196, "flistxattr"), call(197, "removexattr"), call(198, "lremovexattr"), call(199, "fremovexattr"),
    call(200, "tkill"), call(201, "time"), call(202, "futex"), call(203, "sched_setaffinity"),
    call(204, "sched_getaffinity"), call(205, "set_thread_area"), call(206, "io_setup"), call(207, "io_destroy"),
    call(208, "io_getevents"), call(209, "io_submit"), call(210, "io_cancel"), call(211, "get_thread_area"),
    call(212, "lookup_dcookie"), call(213, "epoll_create"), call(214, "epoll_ctl_old"), call(215, "epoll_wait_old"),
    call(216, "remap_file_pages"), call(217, "getdents64"), call(218, "set_tid_address"), call(219, "restart_syscall"),
    call(220, "semtimedop"), call(221, "fadvise64"), call(222, "timer_create"), call(223, "timer_settime"),
    call(224, "timer_gettime"), call(225, "timer_getoverrun"), call(226, "timer_delete"), call(227, "clock_settime"),
    call(228, "clock_gettime"), call(229, "clock_getres"), call(230, "clock_nanosleep"), call(231, "exit_group"),
    call(232, "epoll_wait"), call(233, "epoll_ctl"), call(234, "tgkill"), call(235, "utimes"),
    call(236, "vserver"), call(237, "mbind"), call(238, "set_mempolicy"), call(239, "get_mempolicy"),
    call(240, "mq_open"), call(241, "mq_unlink"), call(242, "mq_timedsend"), call(243, "mq_timedreceive"),
    call(244, "mq_notify"), call(245, "mq_getsetattr"), call(246, "kexec_load"), call(247, "waitid"),
    call(248, "add_key"), call(249, "request_key"), call(250, "keyctl"), call(251, "ioprio_set"),
    call(252, "ioprio_get"), call(253, "inotify_init"), call(254, "inotify_add_watch"), call(255, "inotify_rm_watch"),
    call(256, "migrate_pages"), call(257, "openat"), call(258, "mkdirat"), call(259, "mknodat"),
    call(260, "fchownat"), call(261, "futimesat"), call(262, "newfstatat"), call(263, "unlinkat"),
    call(264, "renameat"), call(265, "linkat"), call(266, "symlinkat"), call(267, "readlinkat"),
    call(268, "fchmodat"), call(269, "faccessat"), call(270, "pselect6"), call(271, "ppoll"),
    call(272, "unshare"), call(273, "set_robust_list"), call(274, "get_robust_list"), call(275, "splice"),
    call(276, "tee"), call(277, "sync_file_range"), call(278, "vmsplice"), call(279, "move_pages"),
    call(280, "utimensat"), call(281, "epoll_pwait"), call(282, "signalfd"), call(283, "timerfd_create"),
    call(284, "eventfd"), call(285, "fallocate"), call(286, "timerfd_settime"), call(287, "timerfd_gettime"),
    call(288, "accept4"), call(289, "signalfd4"), call(290, "eventfd2"), call(291, "epoll_create1"),
    call(292, "dup3"), call(293, "pipe2"), call(294, "inotify_init1"), call(295, "preadv"),
    call(296, "pwritev"), call(297, "rt_tgsigqueueinfo"), call(298, "perf_event_open"), call(299, "recvmmsg"),
    call(300, "fanotify_init"), call(301, "fanotify_mark"), call(302, "prlimit64"), call(303, "name_to_handle_at"),
    call(304, "open_by_handle_at"), call(305, "clock_adjtime"), call(306, "syncfs"), call(307, "sendmmsg"),
    call(308, "setns"), call(309, "getcpu"), call(310, "process_vm_readv"), call(311, "process_vm_writev"),
    call(312, "kcmp"), call(313, "finit_module"), call(314, "sched_setattr"), call(315, "sched_getattr"),
    call(316, "renameat2"), call(317, "seccomp"), call(318, "getrandom"), call(319, "memfd_create"),
    call(320, "kexec_file_load"), call(321, "bpf"), call(322, "execveat"), call(323, "userfaultfd"),
    call(324, "membarrier"), call(325, "mlock2"), call(326, "copy_file_range"), call(327, "preadv2"),
    call(328, "pwritev2"), call(329, "pkey_mprotect"), call(330, "pkey_alloc"), call(331, "pkey_free"),
    call(332, "statx"), call(333, "io_pgetevents"), call(334, "rseq"), call(335, "uretprobe"),
    call(336, "uprobe"), call(424, "pidfd_send_signal"), call(425, "io_uring_setup"), call(426, "io_uring_enter"),
    call(427, "io_uring_register"), call(428, "open_tree"), call(429, "move_mount"), call(430, "fsopen"),
    call(431, "fsconfig"), call(432, "fsmount"), call(433, "fspick"), call(434, "pidfd_open"),
    call(435, "clone3"), call(436, "close_range"), call(437, "openat2"), call(438, "pidfd_getfd"),
    call(439, "faccessat2"), call(440, "process_madvise"), call(441, "epoll_pwait2"), call(442, "mount_setattr"),
    call(443, "quotactl_fd"), call(444, "landlock_create_ruleset"), call(445, "landlock_add_rule"), call(446, "landlock_restrict_self"),
    call(447, "memfd_secret"), call(448, "process_mrelease"), call(449, "futex_waitv"), call(450, "set_mempolicy_home_node"),
    call(451, "cachestat"), call(452, "fchmodat2"), call(453, "map_shadow_stack"), call(454, "futex_wake"),
    call(455, "futex_wait"), call(456, "futex_requeue"), call(457, "statmount"), call(458, "listmount"),
    call(459, "lsm_get_self_attr"), call(460, "lsm_set_self_attr"), call(461, "lsm_list_modules"), call(462, "mseal"),
    call(463, "setxattrat"), call(464, "getxattrat"), call(465, "listxattrat"), call(466, "removexattrat"),
    call(467, "open_tree_attr"), call(468, "file_getattr"), call(469, "file_setattr"), call(470, "listns"),
    call(471, "rseq_slice_yield"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::signatures;

    #[test]
    fn names_are_the_models() {
        let ours: Vec<_> = NAMES.iter().map(|n| (n.number, n.name)).collect();
        let models: Vec<_> = signatures().iter().map(|s| (s.sysno.0, s.name)).collect();
        assert_eq!(ours, models);
    }

    #[test]
    fn the_compiler_knows_names() {
        const { assert!(is_name("openat") && !is_name("opena") && !is_name("openatt") && !is_name("")) };
        assert_eq!((number("write"), name(1), name(9999)), (Some(1), "write", UNKNOWN));
    }
}
