/* Calls made where there is hardly a stack, or none: `stacks MODE [confined]`. Prints how many getpgrp calls were made.
 * "confined": under a filter that lets everything be done, after which no observer may make calls of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, SIZE = 16 * PAGE, THREADS = 100, STACKS = 40 };

static volatile int made;

static char *map(size_t size)
{
    char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(2);
    return at;
}

/* One call with this stack pointer. */
static __attribute__((noinline)) void bare(char *top)
{
    long result;
    asm volatile("mov %%rsp,%%r12; mov %1,%%rsp; mov $111,%%eax; syscall; mov %%r12,%%rsp"
                 : "=&a"(result) : "r"(top) : "rcx", "r11", "r12", "memory");
    made += result >= 0;
}

#ifdef __GLIBC__
#define ASK() getpgrp()
#else /* which makes another call */
#define ASK() syscall(SYS_getpgrp)
#endif
static __attribute__((noinline)) void first(void) { ASK(); __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED); }
static __attribute__((noinline)) void second(void) { ASK(); __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED); asm volatile(""); }

/* Calls a function on another stack. */
static __attribute__((noinline)) void on(char *top, void (*f)(void))
{
    asm volatile("mov %%rsp,%%r12; mov %0,%%rsp; call *%1; mov %%r12,%%rsp"
                 : : "r"((char *)((size_t)top & ~15ul)), "r"(f)
                 : "r12", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void odd(void)
{
    char *p = map(2 * PAGE);
    munmap(p + PAGE, PAGE);
    char *tops[] = {p + PAGE - 8, 0, p + PAGE + 64, p + PAGE / 2, (char *)-1l, (char *)-16l, (char *)8, p + PAGE - 3, (char *)1 + (1ul << 63)};
    for (int i = 0; i < 50; i++)
        for (size_t n = 0; n < sizeof tops / sizeof *tops; n++)
            bare(tops[n]);
}

static void *call(void *unused) { first(); return unused; }

static void detached(void)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        if (pthread_create(&t, 0, call, 0) == 0)
            pthread_detach(t);
    }
    while (made < THREADS)
        usleep(1000);
    usleep(50000);
}

/* A thread that unmaps its stack by itself, then calls a last time and ends. */
static int unmaps(void *stack)
{
    asm volatile("mov $11,%%eax; syscall; mov $111,%%eax; syscall; lock incl %2; xor %%edi,%%edi; mov $60,%%eax; syscall"
                 : : "D"(stack), "S"((long)SIZE), "m"(made) : "rax", "rcx", "r11", "memory");
    return 0;
}

/* One whose stack another may have as soon as it says so. */
static volatile int given;
static int gives(void *unused)
{
    (void)unused;
    first();
    asm volatile("movl $1,%0; mov $2000,%%ecx; 1: pause; dec %%ecx; jne 1b; xor %%edi,%%edi; mov $60,%%eax; syscall"
                 : "=m"(given) : : "rax", "rcx", "rdi", "r11", "memory");
    return 0;
}

static void cloned(int (*f)(void *), int frees)
{
    enum { FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };
    for (int i = 0; i < THREADS; i++) {
        char *stack = map(SIZE);
        given = 0;
        if (clone(f, stack + SIZE - 64, FLAGS, stack) < 0)
            exit(2);
        if (frees) {
            while (!given)
                ;
            munmap(stack, SIZE);
        }
        while (made <= i)
            usleep(100);
    }
    usleep(20000);
}

/* Functions that run beside each other, each on a stack between guards, and new ones where old ones were. */
static void roaming(void)
{
    char *stacks[STACKS];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < STACKS; i++) {
            stacks[i] = map(SIZE);
            mprotect(stacks[i], PAGE, PROT_NONE);
        }
        for (int n = 0; n < 400; n++)
            on(stacks[n * 7 % STACKS] + SIZE, n % 2 ? first : second);
        for (int i = 0; i < STACKS; i++)
            munmap(stacks[i], SIZE);
        bare(stacks[round] + SIZE / 2);
    }
}

static void handler(int unused) { (void)unused; first(); }

/* Handlers on stacks that come and go. */
static void handled(void)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGUSR1, &act, 0);
    sigaction(SIGALRM, &act, 0);
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    setitimer(ITIMER_REAL, &often, 0);
    for (int i = 0; i < 200; i++) {
        char *at = map(SIZE);
        stack_t own = {.ss_sp = at, .ss_size = SIZE}, none = {.ss_flags = SS_DISABLE};
        sigaltstack(&own, 0);
        for (int n = 0; n < 20; n++) {
            sigprocmask(SIG_BLOCK, &alarm, 0);
            second();
            sigprocmask(SIG_UNBLOCK, &alarm, 0);
            if (n % 5 == 0)
                raise(SIGUSR1);
        }
        sigprocmask(SIG_BLOCK, &alarm, 0);
        sigaltstack(&none, 0);
        munmap(at, SIZE);
        bare(at + SIZE / 2);
        sigprocmask(SIG_UNBLOCK, &alarm, 0);
        if (i == 199)
            setitimer(ITIMER_REAL, &never, 0);
    }
}

/* A stack is taken away in each way there is, after calls were made on it. */
static void taken(void)
{
    for (int how = 0; how < 8; how++) {
        char *at = map(SIZE), *top = at + SIZE;
        int id = -1;
        if (how == 5) {
            munmap(at, SIZE);
            id = shmget(IPC_PRIVATE, SIZE, 0600);
            if (id < 0 || (at = shmat(id, 0, 0)) == (void *)-1)
                exit(2);
            shmctl(id, IPC_RMID, 0);
            top = at + SIZE;
        }
        if (how == 6) {
            at = (char *)syscall(SYS_brk, 0);
            top = (char *)syscall(SYS_brk, at + SIZE);
        }
        on(top, first);
        on(top, second);
        switch (how) {
        case 0: munmap(at, SIZE); break;
        case 1: mprotect(at, SIZE, PROT_NONE); break;
        case 2: mmap(at, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
        case 3: if (mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, map(SIZE)) == MAP_FAILED) exit(2); break;
        case 4: madvise(at, SIZE, 102); break; /* MADV_GUARD_INSTALL */
        case 5: shmdt(at); break;
        case 6: syscall(SYS_brk, at); break;
        case 7: syscall(SYS_munmap, at, (long)SIZE); break;
        }
        for (int i = 0; i < 10; i++)
            bare(top - 256);
    }
}

/* Children that begin on such stacks. */
static void child(void)
{
    int pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 10; i++)
            first();
        _exit(0);
    }
    waitpid(pid, 0, 0);
    made += 10;
    if ((pid = vfork()) == 0) {
        syscall(SYS_getpgrp);
        _exit(0);
    }
    waitpid(pid, 0, 0);
    made++;
}

static void children(void)
{
    for (int i = 0; i < 20; i++) {
        char *at = map(SIZE);
        on(at + SIZE, child);
        on(at + SIZE, first);
        munmap(at, SIZE);
        child();
    }
}

static void confine(void)
{
    /* linux/filter.h and linux/seccomp.h, which musl's compiler does not find: one that returns SECCOMP_RET_ALLOW. */
    struct { unsigned short code; unsigned char jt, jf; unsigned k; } all = {0x06, 0, 0, 0x7fff0000};
    struct { unsigned short len; void *filter; } program = {1, &all};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
        exit(2);
}

int main(int argc, char **argv)
{
    const char *mode = argv[1];
    if (argc > 2)
        confine();
    if (!strcmp(mode, "odd"))
        odd();
    else if (!strcmp(mode, "detached"))
        detached();
    else if (!strcmp(mode, "unmapped"))
        cloned(unmaps, 0);
    else if (!strcmp(mode, "given"))
        cloned(gives, 1);
    else if (!strcmp(mode, "roaming"))
        roaming();
    else if (!strcmp(mode, "handled"))
        handled();
    else if (!strcmp(mode, "taken"))
        taken();
    else if (!strcmp(mode, "children"))
        children();
    printf("%d\n", made);
    return 0;
}
