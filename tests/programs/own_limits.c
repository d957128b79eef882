/* Bounds itself as HOW says, and prints what it then has and can do. setrlimit(2), mlockall(2), getrlimit(2). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#define MIB (1ul << 20)

static void *thread(void *unused)
{
    getppid();
    return unused;
}

static void told(const char *what, int resource)
{
    struct rlimit r = {1, 1}, again = {1, 1};
    int result = getrlimit(resource, &r);
    syscall(SYS_getrlimit, resource, &again);
    printf("%s %d: %ld %ld, again %ld %ld\n", what, result, (long)r.rlim_cur, (long)r.rlim_max, (long)again.rlim_cur, (long)again.rlim_max);
}

static void has(void)
{
    for (unsigned long mib = 1; mib <= 256; mib *= 4) {
        void *at = mmap(0, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%lu MiB %s\n", mib, at == MAP_FAILED ? strerror(errno) : "mapped");
        if (at != MAP_FAILED)
            munmap(at, mib * MIB);
    }
    void *heap = sbrk(4 * MIB);
    printf("heap %s\n", heap == (void *)-1 ? strerror(errno) : "grown");
    pthread_t t;
    int error = pthread_create(&t, 0, thread, 0);
    printf("thread %s\n", strerror(error));
    if (!error)
        pthread_join(t, 0);
    fflush(stdout);
    printf("child %d\n", system("ulimit -v; ulimit -d; exec 3>&1; echo x | cat; ls -d /proc/self/"));
    fflush(stdout);
}

static void finer(unsigned long step)
{
    unsigned long sum = 0;
    while (mmap(0, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        sum += step;
    printf("%lu in all\n", sum / step);
}

static int bounds(const char *how, int resource)
{
    struct rlimit r = {64 * MIB, 64 * MIB}, old = {0, 0}, end = {RLIM_INFINITY, RLIM_INFINITY};
    int result = 0;
    if (!strcmp(how, "both"))
        result = setrlimit(resource, &r);
    else if (!strcmp(how, "soft")) {
        r.rlim_max = RLIM_INFINITY;
        result = setrlimit(resource, &r);
    } else if (!strcmp(how, "old"))
        result = syscall(SYS_setrlimit, resource, &r);
    else if (!strcmp(how, "number"))
        result = syscall(SYS_prlimit64, getpid(), resource, &r, &old);
    else if (!strcmp(how, "bad"))
        result = syscall(SYS_prlimit64, 0, resource, &r, (void *)8) ? errno : 0;
    else if (!strcmp(how, "nowhere"))
        result = syscall(SYS_prlimit64, 0, resource, (void *)8, &old) ? errno : 0;
    else if (!strcmp(how, "crossed")) {
        r.rlim_max = MIB;
        result = setrlimit(resource, &r) ? errno : 0;
    } else if (!strcmp(how, "raised")) {
        result = setrlimit(resource, &r);
        told("first", resource);
        r.rlim_max += MIB;
        result = result * 100 + (setrlimit(resource, &r) ? errno : 0);
    } else if (!strcmp(how, "back")) {
        r.rlim_max = RLIM_INFINITY;
        result = setrlimit(resource, &r);
        told("first", resource);
        result = result * 100 + (setrlimit(resource, &end) ? errno : 0);
    } else if (!strcmp(how, "tiny")) {
        r.rlim_cur = 4096;
        result = setrlimit(resource, &r);
    } else if (!strcmp(how, "ends"))
        result = setrlimit(resource, &end);
    else
        return 2;
    printf("%s: %d, old %ld %ld\n", how, result, (long)old.rlim_cur, (long)old.rlim_max);
    told(how, resource);
    has();
    return 0;
}

static int locks(int flags)
{
    printf("%d\n", mlockall(flags) ? errno : 0);
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        sscanf(line, "VmLck: %ld", &kb);
    printf("%s\n", kb < 65536 ? "no more than there is" : "too much");
    has();
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";
    setvbuf(stdout, 0, _IOLBF, 4096);
    if (!strcmp(what, "addresses"))
        return bounds(how, RLIMIT_AS);
    if (!strcmp(what, "data"))
        return bounds(how, RLIMIT_DATA);
    if (!strcmp(what, "count")) {
        struct rlimit r = {256 * MIB, 256 * MIB};
        setrlimit(strcmp(how, "data") ? RLIMIT_AS : RLIMIT_DATA, &r);
        finer(MIB / 16);
        return 0;
    }
    if (!strcmp(what, "lock")) {
        int all[] = {MCL_CURRENT, MCL_FUTURE, MCL_CURRENT | MCL_FUTURE, MCL_CURRENT | MCL_ONFAULT, MCL_FUTURE | MCL_ONFAULT};
        return locks(all[atoi(how) % 5]);
    }
    if (!strcmp(what, "locked")) {
        struct rlimit r = {16 * MIB, 16 * MIB};
        setrlimit(RLIMIT_MEMLOCK, &r);
        return locks(MCL_FUTURE);
    }
    struct { const char *name; int resource; unsigned long value; } others[] = {
        {"nofile", RLIMIT_NOFILE, 16}, {"nofile3", RLIMIT_NOFILE, 3}, {"nofile0", RLIMIT_NOFILE, 0}, {"fsize", RLIMIT_FSIZE, 0}, {"stack", RLIMIT_STACK, 65536},
        {"stackall", RLIMIT_STACK, RLIM_INFINITY}, {"core", RLIMIT_CORE, 0}, {"memlock", RLIMIT_MEMLOCK, 0},
        {"sigpending", RLIMIT_SIGPENDING, 0}, {"msgqueue", RLIMIT_MSGQUEUE, 0}, {"nice", RLIMIT_NICE, 0},
        {"rtprio", RLIMIT_RTPRIO, 0}, {"rttime", RLIMIT_RTTIME, 100}, {"rss", RLIMIT_RSS, 4096},
        {"locks", RLIMIT_LOCKS, 0}, {"cpu", RLIMIT_CPU, 100},
    };
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(what, others[i].name)) {
            struct rlimit r = {others[i].value, others[i].value};
            printf("%d\n", setrlimit(others[i].resource, &r) ? errno : 0);
            told(what, others[i].resource);
            has();
            return 0;
        }
    return 2;
}
