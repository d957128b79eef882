// Small programs with one waste each, taken from the table of system calls class by class, and
// healthy ones that make the like for good reason: sick NAME ROUNDS.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static int ends[2], pipes[2], file, n;
static char buf[1 << 16];
static char *page;

static void connected(int kind) {
    if (socketpair(AF_UNIX, kind, 0, ends) || pipe(pipes)) exit(2);
}

#define ROUND(name) static void name(int i)
ROUND(s_getppid) { (void)i; getppid(); }
ROUND(s_sockname) { (void)i; socklen_t l = sizeof(struct sockaddr_un); getsockname(ends[0], (void *)buf, &l); }
ROUND(s_sockopt) { (void)i; int v; socklen_t l = sizeof v; getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &v, &l); }
ROUND(s_threadname) { (void)i; prctl(PR_SET_NAME, "worker"); }
ROUND(s_umask) { (void)i; mode_t old = umask(0); umask(old); }
ROUND(s_chdir) { (void)i; if (chdir("/usr") || chdir("/")) exit(2); }
ROUND(s_priority) { (void)i; getpriority(PRIO_PROCESS, 0); }
ROUND(s_rlimit) { (void)i; struct rlimit r; getrlimit(RLIMIT_NOFILE, &r); }
ROUND(s_uname) { (void)i; struct utsname u; uname(&u); }
ROUND(s_altstack) { (void)i; stack_t s; sigaltstack(NULL, &s); }
ROUND(s_sysinfo) { (void)i; struct sysinfo s; sysinfo(&s); }
ROUND(s_fionread) { (void)i; int k; if (write(pipes[1], buf, 600) < 0 || ioctl(pipes[0], FIONREAD, &k) || read(pipes[0], buf, k) < 0) exit(2); }
ROUND(s_peek) { (void)i; if (send(ends[0], buf, 600, 0) < 0 || recv(ends[1], buf, 4, MSG_PEEK) < 0 || recv(ends[1], buf, 600, 0) < 0) exit(2); }
ROUND(s_cloexec) { (void)i; int fd = open("/dev/null", O_RDONLY); fcntl(fd, F_SETFD, FD_CLOEXEC); close(fd); }
ROUND(s_cork) { static int s = -1; if (s < 0) s = socket(AF_INET, SOCK_STREAM, 0); int v = i & 1; setsockopt(s, IPPROTO_TCP, TCP_CORK, &v, sizeof v); }
ROUND(s_espipe) { (void)i; lseek(pipes[0], 0, SEEK_CUR); }
ROUND(s_enosys) { (void)i; syscall(SYS_nfsservctl); }
ROUND(s_unsupported) { (void)i; int v = 1; setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &v, sizeof v); }
ROUND(s_missing) { (void)i; open("/etc/no-such-configuration", O_RDONLY); }
ROUND(s_mkdir) { (void)i; mkdir("/tmp", 0777); }
ROUND(s_nobody) { (void)i; kill(0x3ffffffe, 0); }
ROUND(s_alarm) { (void)i; alarm(300); }
ROUND(s_itimer) { (void)i; struct itimerval t = {{0, 0}, {300, 0}}; setitimer(ITIMER_REAL, &t, NULL); }
ROUND(s_madvise) { (void)i; page[0] = page[8192] = 1; madvise(page, 1 << 16, MADV_DONTNEED); }
ROUND(s_mmap) { (void)i; char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); p[0] = 1; munmap(p, 1 << 20); }
ROUND(s_eventfd) { (void)i; close(eventfd(0, 0)); }
ROUND(s_inotify) { (void)i; close(inotify_init1(0)); }
ROUND(s_dup) { (void)i; close(dup(0)); }
ROUND(s_yield) { (void)i; sched_yield(); }
ROUND(s_again) { (void)i; recv(ends[0], buf, 100, MSG_DONTWAIT); }
ROUND(s_select0) { (void)i; struct timeval t = {0, 0}; fd_set set; FD_ZERO(&set); FD_SET(pipes[0], &set); select(pipes[0] + 1, &set, NULL, NULL, &t); }
ROUND(s_parts) { (void)i; if (send(ends[0], buf, 9, 0) < 0 || send(ends[0], buf, 12, 0) < 0 || send(ends[0], buf, 7, 0) < 0 || recv(ends[1], buf, 4096, 0) < 0) exit(2); }
ROUND(s_select) { (void)i; struct timeval t = {1, 0}; fd_set set; FD_ZERO(&set); FD_SET(pipes[1], &set); FD_SET(900, &set); select(901, NULL, &set, NULL, &t); }
ROUND(s_stat) { (void)i; struct stat st; stat("/etc/hosts", &st); }
ROUND(s_statfs) { (void)i; struct statfs st; statfs("/usr", &st); }
ROUND(s_xattr) { (void)i; getxattr("/etc/hosts", "user.none", buf, 100); }
ROUND(s_exe) { (void)i; if (readlink("/proc/self/exe", buf, 100) < 0) exit(2); }
ROUND(s_winsize) { (void)i; struct winsize w; ioctl(pipes[0], TIOCGWINSZ, &w); }
ROUND(s_pread) { if (pread(file, buf, 16, i * 16) < 0) exit(2); }
ROUND(s_writev) { (void)i; struct iovec v[2] = {{buf, 5}, {buf + 9, 4}}; if (writev(file, v, 2) < 0) exit(2); }
ROUND(s_ftruncate) { (void)i; if (ftruncate(file, 4096)) exit(2); }
ROUND(s_sigpending) { (void)i; struct sigaction a; sigaction(SIGUSR1, NULL, &a); }
ROUND(s_urandom) { (void)i; static int fd = -1; if (fd < 0) fd = open("/dev/urandom", O_RDONLY); if (read(fd, buf, 8) < 0) exit(2); }
ROUND(s_meminfo) { (void)i; int fd = open("/proc/self/stat", O_RDONLY); if (read(fd, buf, 4096) < 0) exit(2); close(fd); }

// Healthy.
ROUND(h_random_pread) { if (pread(file, buf, 64, (i * 7919) % 1000 * 64) < 0) exit(2); }
ROUND(h_blocks) { (void)i; if (write(file, buf, 4096) < 0) exit(2); }
ROUND(h_pool) { (void)i; if (getrandom(buf, 256, 0) < 0) exit(2); }
ROUND(h_files) { char name[40]; struct stat st; snprintf(name, sizeof name, "/usr/bin/no-%d", i); stat(name, &st); }
ROUND(h_pingpong) { (void)i; struct pollfd p = {ends[1], POLLIN, 0}; if (write(ends[0], buf, 16) < 0 || poll(&p, 1, -1) < 0 || read(ends[1], buf, 16) < 0) exit(2); }
ROUND(h_moving_alarm) { alarm(100000 - i); }
ROUND(h_modes) {
    int v = i;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &v, sizeof v);
    if (send(ends[0], buf, 40, 0) < 0 || recv(ends[1], buf, 4096, 0) < 0) exit(2);
}
ROUND(h_new_dirs) { char name[60]; snprintf(name, sizeof name, "%s/d%d", getenv("SICK_DIR"), i); mkdir(name, 0700); rmdir(name); }
ROUND(h_datagram_reply) { (void)i; if (send(ends[0], buf, 40, 0) < 0 || recv(ends[1], buf, 4096, 0) < 0) exit(2); }
ROUND(h_growing) { (void)i; struct stat st; if (write(file, buf, 4096) < 0 || fstat(file, &st)) exit(2); }
ROUND(h_pages_apart) { mprotect(page + i % 8 * 8192, 4096, i / 8 & 1 ? PROT_READ : PROT_READ | PROT_WRITE); }
ROUND(h_umask_real) { umask(i & 0777); }

struct program { const char *name; void (*round)(int); };
#define P(name) {#name, name}
static const struct program programs[] = {
    P(s_getppid), P(s_sockname), P(s_sockopt), P(s_threadname), P(s_umask), P(s_chdir), P(s_priority), P(s_rlimit),
    P(s_uname), P(s_altstack), P(s_sysinfo), P(s_fionread), P(s_peek), P(s_cloexec), P(s_cork), P(s_espipe),
    P(s_enosys), P(s_unsupported), P(s_missing), P(s_mkdir), P(s_nobody), P(s_alarm), P(s_itimer), P(s_madvise),
    P(s_mmap), P(s_eventfd), P(s_inotify), P(s_dup), P(s_yield), P(s_again), P(s_select0), P(s_parts), P(s_select),
    P(s_stat), P(s_statfs), P(s_xattr), P(s_exe), P(s_winsize), P(s_pread), P(s_writev), P(s_ftruncate),
    P(s_sigpending), P(s_urandom), P(s_meminfo),
    P(h_random_pread), P(h_blocks), P(h_pool), P(h_files), P(h_pingpong), P(h_moving_alarm), P(h_modes),
    P(h_new_dirs), P(h_datagram_reply), P(h_growing), P(h_pages_apart), P(h_umask_real),
};

int main(int argc, char **argv) {
    n = argc > 2 ? atoi(argv[2]) : 0;
    connected(SOCK_STREAM);
    if (!getenv("SICK_DIR") || chdir(getenv("SICK_DIR"))) return 2;
    file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct rlimit many = {1024, 1024};
    setrlimit(RLIMIT_NOFILE, &many);
    dup2(0, 900);
    page = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 16; i++)
        if (write(file, buf, sizeof buf) < 0) return 2;
    lseek(file, 0, SEEK_SET);
    for (unsigned p = 0; p < sizeof programs / sizeof *programs; p++) {
        if (argc < 2 || strcmp(programs[p].name, argv[1])) continue;
        for (int i = 0; i < n; i++) programs[p].round(i);
        return 0;
    }
    return 3;
}
