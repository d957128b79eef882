/* Registers rseq areas of its own, in every way there is, and prints what the kernel says of each: the same
   whoever watches. What the kernel writes there, and that it clears what it is asked to, is looked at too.
   Argument: first (before there are threads), thread, late (after calls), fork, exec, all; then
   usual, for none with a signature that nobody else uses. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNATURE 0x53053053
#define FOREIGN 0x12345678

struct area {
    uint32_t cpu_id_start, cpu_id;
    uint64_t rseq_cs;
    uint32_t flags, rest[3];
} __attribute__((aligned(32)));

static char said[1 << 16];
static int usual;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *who, const char *what, long result)
{
    pthread_mutex_lock(&lock);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s %s %ld\n", who, what, result);
    pthread_mutex_unlock(&lock);
}

/* By number, through the C library. */
static long by_number(const void *area, unsigned len, int flags, uint32_t signature)
{
    return syscall(SYS_rseq, area, len, flags, signature) ? -errno : 0;
}

/* At a place of its own, unless it is built without: what has one is taken to register areas always. */
#ifdef BY_NUMBER
#define in_place by_number
#else
static __attribute__((noinline)) long in_place(const void *area, unsigned len, int flags, uint32_t signature)
{
    register long r10 __asm__("r10") = signature;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_rseq), "D"(area), "S"(len), "d"(flags), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
#endif

static void nap(void)
{
    struct timespec t = {0, 2000000};
    nanosleep(&t, 0);
}

static void try_with(const char *who, long (*rseq)(const void *, unsigned, int, uint32_t), uint32_t signature)
{
    struct area *a = aligned_alloc(32, sizeof *a), *b = aligned_alloc(32, sizeof *b);
    memset(a, 0, sizeof *a);
    memset(b, 0, sizeof *b);
    a->cpu_id = -1;
    say(who, "nothing to take back", rseq(a, 32, 1, signature));
    say(who, "no area", rseq(0, 0, 0, 0));
    say(who, "bad flags", rseq(a, 32, 8, signature));
    say(who, "bad length", rseq(a, 16, 0, signature));
    say(who, "register", rseq(a, 32, 0, signature));
    nap();
    say(who, "processor known", a->cpu_id == (uint32_t)-1 || a->cpu_id > 4096);
    /* Cleared when the processor is given to another: it is a sequence that we are not in. */
    static uint64_t cs[4] __attribute__((aligned(32)));
    static uint32_t guard[4];
    guard[0] = signature;
    cs[1] = (uint64_t)(uintptr_t)guard + 64, cs[2] = 1, cs[3] = (uint64_t)(uintptr_t)(guard + 1);
    a->rseq_cs = (uint64_t)(uintptr_t)cs;
    nap();
    say(who, "cleared", a->rseq_cs != 0);
    say(who, "again", rseq(a, 32, 0, signature));
    say(who, "another", rseq(b, 32, 0, signature));
    say(who, "take back another", rseq(b, 32, 1, signature));
    say(who, "take back", rseq(a, 32, 1, signature));
    say(who, "and again", rseq(a, 32, 1, signature));
    say(who, "register another", rseq(b, 32, 0, signature));
    nap();
    say(who, "take that back", rseq(b, 32, 1, signature));
    free(a);
    free(b);
}

static void *thread(void *name)
{
    try_with(name, by_number, SIGNATURE);
    try_with(name, in_place, SIGNATURE);
    if (!usual)
        try_with(name, by_number, FOREIGN);
    return 0;
}

static void threads(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&t[i], 0, thread, "thread");
        pthread_join(t[i], 0);
    }
}

static struct area own __attribute__((aligned(32)));

/* What is registered when a process forks is so in the child. */
static void forks(void)
{
    say("maker", "register", by_number(&own, 32, 0, SIGNATURE));
    for (int with = 1; with >= 0; with--) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            said[0] = 0;
            say("child", "again", in_place(&own, 32, 0, SIGNATURE));
            say("child", "take back", in_place(&own, 32, 1, SIGNATURE));
            thread("child");
            threads();
            fputs(said, stdout);
            fflush(stdout);
            _exit(7);
        }
        int status;
        waitpid(child, &status, 0);
        say("maker", "child", WEXITSTATUS(status));
        if (with)
            say("maker", "take back", in_place(&own, 32, 1, SIGNATURE));
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "all";
    int all = !strcmp(how, "all");
    usual = argc > 2;
    if (all || !strcmp(how, "first"))
        thread("first");
    if (all || !strcmp(how, "thread"))
        threads();
    if (all || !strcmp(how, "late")) {
        for (int i = 0; i < 100; i++)
            nap(), syscall(SYS_getppid);
        thread("late");
    }
    if (all || !strcmp(how, "fork"))
        forks();
    fputs(said, stdout);
    fflush(stdout);
    if (!strcmp(how, "exec")) {
        say("before", "register", by_number(&own, 32, 0, SIGNATURE));
        execl("/proc/self/exe", argv[0], "first", (char *)0);
    }
    return 0;
}
