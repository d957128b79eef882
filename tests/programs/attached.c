/* A program that is watched while it runs. It does what lines on standard input say, and answers each by a line:
 *   ppid N     N calls of getppid by the first thread        done
 *   stat N     N stats of /, each succeeds                   done
 *   fail N     N opens of a file that is not there           done
 *   all N      N calls of getppid by each worker             done
 *   thread N   N threads, one after the other, one call each done
 *   fork N     N children, one call of getppid each          done
 *   check      what has gone wrong so far                    fine, or what has
 * attached WORKERS [timer HZ] [sleepers] [killed]: workers are threads; timer: a signal so often, whose handler looks whether what
 * it interrupts is as it should be; sleepers: threads in calls that wait, and look whether they waited as long as asked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static char wrong[400];
static atomic_long wanted[64], made[64], ticks, rounds;
static int workers, killed;

static void complain(const char *what, long by) {
    if (!wrong[0])
        snprintf(wrong, sizeof wrong, "%s (%ld, errno %d)", what, by, errno);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* Keeps words below the stack pointer, in vector registers and in flags across a system call, as leaf functions do; on aarch64
 * in registers other than x0 instead of below the stack pointer, where handlers of signals may write there. */
static long across_a_call(long a, long b) {
    long got_a, got_b, lost;
#ifdef __aarch64__
    __asm__ volatile(
        "mov x9, %3\n mov x17, %4\n fmov d13, %3\n mov x8, #173\n svc #0\n"
        "mov %0, x9\n mov %1, x17\n fmov %2, d13\n sub %2, %2, %3\n"
        : "=&r"(got_a), "=&r"(got_b), "=&r"(lost)
        : "r"(a), "r"(b)
        : "x0", "x8", "x9", "x17", "memory", "v13", "cc");
#else
    __asm__ volatile(
        "mov %3, -8(%%rsp)\n mov %4, -128(%%rsp)\n movq %3, %%xmm13\n"
        "mov $110, %%eax\n syscall\n nop\n nop\n nop\n nop\n nop\n"
        "mov -8(%%rsp), %0\n mov -128(%%rsp), %1\n movq %%xmm13, %2\n sub %3, %2\n"
        : "=&r"(got_a), "=&r"(got_b), "=&r"(lost)
        : "r"(a), "r"(b)
        : "rax", "rcx", "r11", "memory", "xmm13", "cc");
#endif
    return (got_a != a) + (got_b != b) * 2 + (lost != 0) * 4;
}

static void *work(void *number) {
    long n = (long)number;
    unsigned long x = 88172645463325252ul + n;
    for (;;) {
        while (made[n] < wanted[n]) {
            if (syscall(SYS_getppid) <= 0)
                complain("getppid", n);
            made[n]++;
        }
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        long bad = across_a_call(x, ~x);
        if (bad)
            complain("what a call must leave has changed", bad);
        rounds++;
        if (x % 8 == 0)
            usleep(50);
    }
    return 0;
}

static void tick(int signal, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    int kept = errno;
#ifdef __aarch64__
    int empty = u->uc_mcontext.sp == 0 || u->uc_mcontext.pc == 0;
#else
    int empty = u->uc_mcontext.gregs[REG_RSP] == 0 || u->uc_mcontext.gregs[REG_RIP] == 0;
#endif
    if (empty)
        complain("a handler's context", signal);
    syscall(SYS_getuid);
    ticks++;
    errno = kept;
}

static void waited(const char *what, double since, double wanted, double more) {
    double took = now() - since;
    if (took < wanted - 0.01 || took > wanted + more)
        complain(what, (long)(took * 1000));
}

static int quiet[2];

static void *sleeper(void *which) {
    /* A signal for the process may come to any thread that is not stopped. */
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &timer, 0);
    for (;;) {
        double since = now(), more = 5;
        const double t = 1.5;
        struct timespec time = {1, 500000000}, left;
        struct timeval tv = {1, 500000};
        struct pollfd p = {quiet[0], POLLIN, 0};
        int word = 0, epoll;
        fd_set set;
        char c;
        switch ((long)which) {
        case 0:
            if (nanosleep(&time, &left))
                complain("nanosleep", 0);
            break;
        case 1:
            if (poll(&p, 1, 1500))
                complain("poll", 0);
            break;
        case 2:
            if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, 0, 0) != -1 || errno != ETIMEDOUT)
                complain("futex", 0);
            break;
        case 3:
            FD_ZERO(&set);
            FD_SET(quiet[0], &set);
            if (select(quiet[0] + 1, &set, 0, 0, &tv))
                complain("select", 0);
            break;
        case 4:
            epoll = epoll_create1(0);
            if (epoll_wait(epoll, &(struct epoll_event){0}, 1, 1500)) {
                /* So Linux ends it where who has stopped the thread is killed. */
                int ended = killed && errno == EINTR;
                if (!ended)
                    complain("epoll_wait", 0);
                close(epoll);
                if (ended)
                    continue;
                break;
            }
            close(epoll);
            /* Its time begins anew whenever its thread is stopped. */
            more = 600;
            break;
        case 5:
            if (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left))
                complain("clock_nanosleep", 0);
            break;
        case 6: {
            if (ppoll(&p, 1, &time, &timer))
                complain("ppoll", 0);
            break;
        }
        default:
            /* Nobody ever writes there. */
            if (read(quiet[0], &c, 1) != 1)
                complain("read", 0);
        }
        waited("a wait", since, t, more);
    }
    return 0;
}

static void *one(void *_) {
    syscall(SYS_getppid);
    return 0;
}

int main(int argc, char **argv) {
    char line[100], what[20];
    workers = atoi(argv[1]);
    if (pipe(quiet))
        return 1;
    pthread_t thread;
    for (long i = 0; i < workers; i++)
        pthread_create(&thread, 0, work, (void *)i);
    for (int i = 2; i < argc; i++)
        killed |= !strcmp(argv[i], "killed");
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "sleepers"))
            for (long k = 0; k < 8; k++)
                pthread_create(&thread, 0, sleeper, (void *)k);
        if (!strcmp(argv[i], "timer")) {
            struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART};
            sigaction(SIGALRM, &action, 0);
            long us = 1000000 / atoi(argv[i + 1]);
            struct itimerval often = {{0, us}, {0, us}};
            setitimer(ITIMER_REAL, &often, 0);
        }
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long n = 0;
        struct stat st;
        if (sscanf(line, "%19s %ld", what, &n) < 1)
            break;
        if (!strcmp(what, "ppid"))
            for (long i = 0; i < n; i++)
                syscall(SYS_getppid);
        if (!strcmp(what, "stat"))
            for (long i = 0; i < n; i++)
                if (stat("/", &st))
                    complain("stat", i);
        if (!strcmp(what, "fail"))
            for (long i = 0; i < n; i++)
                if (open("/no/such/file", O_RDONLY) != -1 || errno != ENOENT)
                    complain("open", i);
        if (!strcmp(what, "all")) {
            for (int i = 0; i < workers; i++)
                wanted[i] += n;
            for (int i = 0; i < workers; i++)
                while (made[i] < wanted[i])
                    usleep(1000);
        }
        if (!strcmp(what, "thread"))
            for (long i = 0; i < n; i++) {
                pthread_create(&thread, 0, one, 0);
                pthread_join(thread, 0);
            }
        if (!strcmp(what, "fork"))
            for (long i = 0; i < n; i++) {
                pid_t child = fork();
                if (child == 0) {
                    syscall(SYS_getppid);
                    _exit(0);
                }
                int status;
                if (waitpid(child, &status, 0) != child || status)
                    complain("a child", status);
            }
        if (!strcmp(what, "check")) {
            printf("%s\n", wrong[0] ? wrong : "fine");
        } else {
            printf("done\n");
        }
        fflush(stdout);
    }
    return 0;
}
