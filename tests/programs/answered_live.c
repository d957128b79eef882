/* Calls that may be answered in place, made all the time by several threads and by a handler of signals, each answer held
   against what it was at the start. Threads change their masks for real now and then. One line is written for each wrong
   answer; "fine" at the end if there was none. Children in a user namespace of their own have no name there until they write
   it, then they are its root. argv: threads, signals a second. Standard input's end ends it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t process;
static uid_t user;
static volatile int over;
static volatile long wrong;
static __thread pid_t thread;

static void is(long got, long wanted, const char *what) {
    if (got != wanted) {
        __sync_fetch_and_add(&wrong, 1);
        dprintf(1, "%s: %ld instead of %ld\n", what, got, wanted);
    }
}

static void ids(void) {
    is(getpid(), process, "getpid");
    is(syscall(SYS_getpid), process, "getpid by number");
    is(getuid(), user, "getuid");
    is(geteuid(), user, "geteuid");
    if (thread) {
        is(syscall(SYS_gettid), thread, "gettid");
    }
}

static void handler(int signal) {
    (void)signal;
    ids();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, &none, 0);
}

/* Makes a process with a user namespace of its own by `clone3`; `clone` and `unshare` are libc's. */
static pid_t begin_clone3(void) {
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long made;
    __asm__ volatile("syscall" : "=a"(made) : "0"(SYS_clone3), "D"(&args), "S"(sizeof args) : "rcx", "r11", "memory");
    return made;
}

static pid_t begin_clone(void) {
    return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}

static pid_t begin_unshare(void) {
    pid_t child = fork();
    if (child == 0 && unshare(CLONE_NEWUSER)) {
        _exit(0);
    }
    return child;
}

static int is_named_late(void) {
    for (int n = 0; n < 3; n++) {
        if (getuid() != 65534 || geteuid() != 65534) {
            return 0;
        }
    }
    char names[64];
    int length = snprintf(names, sizeof names, "0 %d 1\n", (int)user), file = open("/proc/self/uid_map", O_WRONLY);
    return write(file, names, length) != length || (getuid() == 0 && geteuid() == 0 && getuid() == 0);
}

static void begin_namespaces(void) {
    pid_t (*all[])(void) = {begin_clone3, begin_clone, begin_unshare};
    for (unsigned n = 0; n < sizeof all / sizeof *all; n++) {
        pid_t child = all[n]();
        if (child == 0) {
            _exit(!is_named_late());
        }
        int status = 0;
        is(child > 0 ? waitpid(child, &status, 0) : child, child, "a child in a namespace");
        is(status, 0, "the answers of a child in a namespace");
    }
}

static int blocked(int signal) {
    sigset_t now;
    is(pthread_sigmask(SIG_BLOCK, 0, &now), 0, "pthread_sigmask");
    return sigismember(&now, signal);
}

static void *work(void *unused) {
    (void)unused;
    thread = syscall(SYS_gettid);
    int null = open("/dev/null", O_WRONLY);
    sigset_t hup, usr;
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &usr, 0);
    for (long n = 0; !over; n++) {
        ids();
        is(blocked(SIGUSR2), 1, "SIGUSR2 blocked");
        pthread_sigmask(SIG_BLOCK, &usr, 0);
        pthread_sigmask(SIG_BLOCK, &usr, 0);
        is(write(null, "x", 1), 1, "write");
        if (n % 64 == 0) {
            pthread_sigmask(SIG_BLOCK, &hup, 0);
            is(blocked(SIGHUP), 1, "SIGHUP blocked");
            pthread_sigmask(SIG_UNBLOCK, &hup, 0);
            is(blocked(SIGHUP), 0, "SIGHUP not blocked");
        }
        if (n % 8192 == 8191) {
            pid_t child = fork();
            if (child == 0) {
                _exit(getpid() == process || getpid() != syscall(SYS_getpid) || getppid() != process);
            }
            int status = -1;
            is(waitpid(child, &status, 0), child, "waitpid");
            is(status, 0, "a child's own answers");
            begin_namespaces();
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    process = getpid();
    user = getuid();
    long threads = atol(argv[1]), rate = argc > 2 ? atol(argv[2]) : 0;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    pthread_t all[16];
    for (long n = 0; n < threads; n++) {
        pthread_create(&all[n], 0, work, 0);
    }
    if (rate) {
        struct itimerval timer = {{0, 1000000 / rate}, {0, 1000000 / rate}};
        setitimer(ITIMER_REAL, &timer, 0);
    }
    dprintf(1, "ready\n");
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    over = 1;
    for (long n = 0; n < threads; n++) {
        pthread_join(all[n], 0);
    }
    if (!wrong) {
        dprintf(1, "fine\n");
    }
    return wrong != 0;
}
