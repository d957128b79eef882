//! Calls that no table has a line for, each with the reason: a call that is new to the kernel, or was
//! forgotten, fails the test below. What fails hopelessly is told of any call ([`super::errors`]).

use super::registry::Semantics;
use std::collections::BTreeSet;
use systoll_model::signatures;

/// Reasons, and the calls they hold for.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "says or does something that others see: what looks the same need not be",
        &[
            "shutdown",
            "bind",
            "listen",
            "mq_notify",
            "mq_unlink",
            "semctl",
            "shmctl",
            "msgctl",
            "futex_requeue",
            "fanotify_mark",
            "vhangup",
            "quotactl",
            "quotactl_fd",
            "syslog",
            "process_mrelease",
        ],
    ),
    (
        "asks for what moves by itself or by others, and tells nothing that could have been kept",
        &[
            "mincore",
            "getitimer",
            "timer_gettime",
            "timer_getoverrun",
            "timerfd_gettime",
            "rt_sigpending",
            "cachestat",
            "mq_getsetattr",
            "get_mempolicy",
            "statmount",
            "listmount",
            "listns",
            "ustat",
        ],
    ),
    (
        "makes a thing whose handle is not the result, or that is not the caller's to keep",
        &["timer_create", "timer_delete", "io_setup", "io_destroy", "semget", "shmget", "msgget", "map_shadow_stack"],
    ),
    (
        "is work, whose amount nothing here tells",
        &[
            "io_submit",
            "io_cancel",
            "readahead",
            "fadvise64",
            "msync",
            "sync_file_range",
            "mbind",
            "migrate_pages",
            "move_pages",
            "munlock",
            "munlockall",
            "mseal",
            "lookup_dcookie",
            "kcmp",
            "set_mempolicy_home_node",
            "set_mempolicy",
            "io_uring_register",
            "file_getattr",
        ],
    ),
    (
        "made once a thread or a process, by the C library or the loader",
        &[
            "set_tid_address",
            "get_robust_list",
            "rseq_slice_yield",
            "arch_prctl",
            "set_thread_area",
            "get_thread_area",
            "modify_ldt",
            "seccomp",
            "landlock_add_rule",
            "landlock_restrict_self",
            "lsm_get_self_attr",
            "lsm_set_self_attr",
            "lsm_list_modules",
            "fsconfig",
        ],
    ),
    (
        "ends the caller, or is made by the kernel for it",
        &["exit", "exit_group", "restart_syscall", "uretprobe", "uprobe"],
    ),
    (
        "is an administrator's",
        &[
            "adjtimex",
            "clock_adjtime",
            "clock_settime",
            "settimeofday",
            "reboot",
            "sethostname",
            "setdomainname",
            "iopl",
            "ioperm",
            "init_module",
            "finit_module",
            "delete_module",
            "kexec_load",
            "kexec_file_load",
        ],
    ),
    (
        "not there any more, or never was: it fails with ENOSYS",
        &[
            "uselib",
            "sysfs",
            "_sysctl",
            "create_module",
            "get_kernel_syms",
            "query_module",
            "nfsservctl",
            "getpmsg",
            "putpmsg",
            "afs_syscall",
            "tuxcall",
            "security",
            "epoll_ctl_old",
            "epoll_wait_old",
            "vserver",
        ],
    ),
];

#[test]
fn every_call_has_a_line_or_a_reason() {
    let semantics = Semantics::new();
    let reasons: Vec<&str> = LEFT_OUT.iter().flat_map(|(_, calls)| calls.iter().copied()).collect();
    let named: BTreeSet<&str> = reasons.iter().copied().collect();
    assert_eq!(named.len(), reasons.len(), "one is named twice");
    for signature in signatures() {
        let lines = semantics.of(signature.sysno);
        assert!(
            lines.say_anything() || named.contains(signature.name),
            "{}: no line, and no reason to leave it out",
            signature.name
        );
        assert!(!(lines.say_anything() && named.contains(signature.name)), "{}: it has a line", signature.name);
    }
    for name in named {
        assert!(signatures().iter().any(|s| s.name == name), "{name}: no such call");
    }
}
