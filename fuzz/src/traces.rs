//! Traces to start from: a few lines of each kind that tools write.

const STRACE: &str = r#"4882  1795321783.005657 execve("/bin/sh", ["sh", "-c", "ls | cat"], 0x7ffd /* 35 vars */) = 0 <0.000536>
4882  1795321783.005700 openat(AT_FDCWD</tmp>, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3</etc/passwd> <0.000016>
 > /usr/lib/libc.so.6(read+0x14) [0xf9a14]
 > /bin/sh(main+0x2) [0x1139] main.c:12
4882  1795321783.005800 newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=12, ...}, AT_EMPTY_PATH) = 0 <0.000009>
4882  1795321783.005900 read(3</etc/passwd>, "root:\0\n"..., 4096) = 512 <0.000010>
4882  1795321783.006000 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 4883 <0.000100>
4883  1795321783.006100 rt_sigprocmask(SIG_BLOCK, ~[KILL STOP], [], 8) = 0 <0.000009>
4883  1795321783.006200 poll([{fd=3, events=POLLIN}], 1, 0 <unfinished ...>
4882  1795321783.006300 wait4(-1,  <unfinished ...>
4883  1795321783.006400 <... poll resumed>) = 0 (Timeout) <0.000200>
4883  1795321783.006500 getsockname(4<TCP:[127.0.0.1:80->127.0.0.1:1]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, [128 => 16]) = 0 <0.000009>
4883  1795321783.006600 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER} ---
4883  1795321783.006700 exit_group(0) = ?
4883  1795321783.006800 +++ exited with 0 +++
4882  1795321783.006900 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 4883 <0.000600>
4882  1795321783.007000 +++ killed by SIGKILL +++
"#;

const TERMINAL: &str = r#"write(1, "hello\n", 6hello
)                  = 6
clone(child_stack=NULL, flags=CLONE_VM|CLONE_THREAD|SIGCHLDstrace: Process 12 attached
, child_tidptr=0x7f) = 12
[pid    12] 03:51:40.903650 getpid( <unfinished ...>
[pid    11] 03:51:41 (+     0.000025) close(3)                = -1 EBADF (Bad file descriptor)
[pid    12] <... getpid resumed>)       = 11
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000120           5        24         1 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000200           7        28         1 total
"#;

const PERF_TRACE: &str = r#"         ? (         ): ls/48  ... [continued]: execve())                         = 0
     0.067 ( 0.018 ms): ls/48 mmap(len: 8192, prot: READ|WRITE, flags: PRIVATE|ANONYMOUS) = 0x7f
     0.418 ( 0.018 ms): ls/48 openat(dfd: CWD, filename: "/etc", flags: RDONLY|CLOEXEC) = -1 ENOENT (No such file or directory)
     0.500 (         ): ls/48 poll(ufds: 0x7f, nfds: 1) ...
"#;

const PERF_SCRIPT: &str = r#"              ls 24329 [000] 53961.312635: raw_syscalls:sys_enter: NR 12 (0, 7ffe1796386c, 0, 37f, 0, 0)
	    7f3a read+0x14 (/usr/lib/libc.so.6)

              ls 24329 [000] 53961.312636:  raw_syscalls:sys_exit: NR 12 = 94668800401408
              ls 24329/24330 [000] 53961.4: syscalls:sys_enter_openat: dfd: 0xffffff9c, filename: 0x7f, flags: 0x80000
              ls 24329/24330 [000] 53961.5: syscalls:sys_exit_openat: 0x3
"#;

const LTRACE: &str = r#"26390 SYS_brk(0)                                 = 0x557296cbc000
26390 fopen("/etc/passwd", "r" <unfinished ...>
26390 SYS_openat(0xffffff9c, 0x7f85ab35a0b1, 0x80000, 0) = 3
26390 <... fopen resumed> )                      = 0x55
26390 read@SYS(3, "root", 4096)                  = -11
26390 +++ exited (status 0) +++
"#;

/// Returns one trace of each kind.
pub fn traces() -> Vec<Vec<u8>> {
    let text = [STRACE, TERMINAL, PERF_TRACE, PERF_SCRIPT, LTRACE].map(|text| text.as_bytes().to_vec());
    text.into_iter().chain(crate::packets::traces()).collect()
}
