/* What is answered in place of the kernel is what the kernel would have said: signal masks and ids,
 * by several threads under two timers each, with handlers that change masks, edit the mask they go
 * back to, or jump away, and with forks. The truth comes from calls that are never answered in
 * place: signal masks by number, other calls that tell ids.
 * Usage: elided ROUNDS. Prints how many answers were compared; fails on the first wrong one. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS 4
#define OPS 12

static __thread sigjmp_buf away;
static __thread volatile sig_atomic_t may_jump, handled;
static __thread unsigned seed;
static long compared[THREADS], rounds;

static unsigned any(unsigned below) { return (seed = seed * 1103515245u + 12345u) / 65536u % below; }

static void wrong(const char *what, unsigned long ours, unsigned long truth) {
    fprintf(stderr, "%s: %lx, in truth %lx\n", what, ours, truth);
    _exit(1);
}

static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    handled++;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    switch (any(6)) {
    case 0: pthread_sigmask(SIG_BLOCK, &set, NULL); break;
    case 1: pthread_sigmask(SIG_UNBLOCK, &set, NULL); break;
    case 2: *(unsigned long *)&((ucontext_t *)context)->uc_sigmask ^= 1UL << (SIGUSR1 - 1); break;
    case 3:
        if (may_jump) siglongjmp(away, 1);
        break;
    default: break;
    }
}

static void masks(void) {
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, any(2) ? SIGHUP : SIGUSR1);
    if (any(8) == 0) sigfillset(&set);
    int how = (int[]){SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK}[any(3)];
    for (int i = 0; i < OPS; i++) pthread_sigmask(how, &set, any(2) ? &old : NULL);
}

static void compare_mask(int me) {
    sigset_t ours;
    unsigned long truth = 0;
    int before = handled;
    /* The second of the two is answered in place if anything is. */
    pthread_sigmask(SIG_BLOCK, NULL, &ours);
    pthread_sigmask(SIG_BLOCK, NULL, &ours);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &truth, 8);
    if (handled != before) return;
    if (*(unsigned long *)&ours != truth) wrong("mask", *(unsigned long *)&ours, truth);
    compared[me]++;
}

static void compare_id(const char *what, long by_name, int number, long truth) {
    if (by_name != truth) wrong(what, by_name, truth);
    long by_number = syscall(number);
    if (by_number != truth) wrong(what, by_number, truth);
}

static void compare_ids(int me) {
    char link[64] = {0};
    int pid = 0, tid = 0;
    uid_t user, effective, saved;
    if (readlink("/proc/thread-self", link, sizeof link - 1) < 0 || sscanf(link, "%d/task/%d", &pid, &tid) != 2) _exit(2);
    if (getresuid(&user, &effective, &saved)) _exit(3);
    for (int i = 0; i < 2; i++) {
        compare_id("getpid", getpid(), SYS_getpid, pid);
        compare_id("gettid", gettid(), SYS_gettid, tid);
        compare_id("getuid", getuid(), SYS_getuid, user);
        compare_id("geteuid", geteuid(), SYS_geteuid, effective);
        if (getppid() != syscall(SYS_getppid)) wrong("getppid", getppid(), syscall(SYS_getppid));
    }
    compared[me] += 2;
}

static void child_of(int me) {
    pid_t pid = fork();
    if (pid < 0) return;
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(60);
        compare_mask(me);
        compare_ids(me);
        if (geteuid() == 0 && syscall(SYS_setresuid, -1, 1234, -1) == 0) compare_ids(me);
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) wrong("a child ended with", status, 0);
}

static void timer(int signal, long ns) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec every = {{0, ns}, {0, ns}};
    timer_t id;
    if (timer_create(CLOCK_MONOTONIC, &event, &id) == 0) timer_settime(id, 0, &every, NULL);
}

static void *work(void *number) {
    int me = (int)(long)number;
    seed = 12345u + (unsigned)me;
    timer(SIGALRM, 400000);
    timer(SIGPROF, 630000);
    for (volatile long round = 0; round < rounds; round++) {
        if (sigsetjmp(away, 1) == 0) {
            may_jump = 1;
            masks();
        }
        may_jump = 0;
        compare_mask(me);
        if (round % 64 == 0) compare_ids(me);
        if (round % (rounds / 4 + 1) == 1) child_of(me);
    }
    return NULL;
}

/* The C library looks at masks itself before it asks the kernel. */
__attribute__((noinline)) static long raw_mask(long how, const void *set, void *old) {
    register long size __asm__("r10") = 8;
    long result;
    __asm__ volatile("movl $14, %%eax\n\tsyscall\n\tcmpq $-4095, %%rax"
                     : "=&a"(result)
                     : "D"(how), "S"(set), "d"(old), "r"(size)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

/* Pointers the kernel would refuse. */
static void pointers(void) {
    sigset_t set, old;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) raw_mask(SIG_BLOCK, &set, &old);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) wrong("mmap", 0, 1);
    for (int i = 0; i < 3; i++)
        if (raw_mask(SIG_BLOCK, pages, pages + 64) != 0) wrong("rt_sigprocmask", 1, 0);
    munmap(pages, 4096);
    void *bad[] = {(void *)8, pages, pages + 4092, (void *)-4096L};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int round = 0; round < 2; round++) {
            long with_set = raw_mask(SIG_BLOCK, bad[i], NULL), with_old = raw_mask(SIG_BLOCK, NULL, bad[i]);
            if (with_set != -EFAULT) wrong("a bad set", i, with_set);
            if (with_old != -EFAULT) wrong("a bad old set", i, with_old);
            if (raw_mask(SIG_BLOCK, &set, &old) != 0) wrong("a good set", i, 0);
        }
    }
}

/* Memory that was good and is no more: taken away, forbidden, or with other memory in its place. */
static void pages_that_go(void) {
    enum { PAGES = 100 };
    sigset_t none;
    sigemptyset(&none);
    char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) wrong("mmap", 0, 1);
    for (int i = 0; i < PAGES; i++) {
        char *page = pages + 4096 * i;
        for (int round = 0; round < 3; round++)
            for (int other = 0; other < 3; other++) {
                char *good = pages + 4096 * ((i + other) % PAGES);
                if (other && i + other >= PAGES) continue;
                if (raw_mask(SIG_BLOCK, good, good + 64) != 0) wrong("a good page", i, 0);
            }
        int readable = 0;
        switch (i % 5) {
        case 0: munmap(page, 4096); break;
        case 1: mprotect(page, 4096, PROT_NONE); break;
        case 2: mprotect(page, 4096, PROT_READ), readable = 1; break;
        case 3: mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
        default: mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, pages); break;
        }
        for (int round = 0; round < 2; round++) {
            long with_set = raw_mask(SIG_BLOCK, page, NULL), with_old = raw_mask(SIG_BLOCK, NULL, page);
            if (with_set != (readable ? 0 : -EFAULT)) wrong("a set on a page that went", i, with_set);
            if (with_old != -EFAULT) wrong("an old set on a page that went", i, with_old);
            if (raw_mask(SIG_BLOCK, &none, &none + 0) != 0) wrong("a good set", i, 0);
        }
    }
    munmap(pages, PAGES * 4096);
}

/* The register in which nothing is asked for is the program's own again. */
static void registers_stay(void) {
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    for (int i = 0; i < 64; i++) {
        register long size __asm__("r10") = 8;
        long result, old = 0;
        __asm__ volatile("movl $14, %%eax\n\tsyscall\n\tcmpq $-4095, %%rax"
                         : "=&a"(result), "+d"(old)
                         : "D"((long)(i % 2)), "S"(&some), "r"(size)
                         : "rcx", "r11", "memory", "cc");
        if (result || old) wrong("a register", old, 0);
    }
}

int main(int argc, char **argv) {
    rounds = argc > 1 ? atol(argv[1]) : 1000;
    pointers();
    pages_that_go();
    registers_stay();
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    action.sa_flags |= SA_NODEFER;
    sigaction(SIGPROF, &action, NULL);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    long all = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += compared[i];
    }
    printf("%ld\n", all);
    return 0;
}
