/* What sysconf and random numbers must be like whoever stands for libc: lines that are the same
 * each time. answers FORKS */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EACH = 2000, CHILDREN = 300 };

static void processors(void)
{
    for (int name = -1; name < 256; name++) {
        errno = 0;
        long first = sysconf(name);
        int error = errno;
        long second = sysconf(name);
        /* Free memory and the like differ from call to call. */
        int steady = name != _SC_AVPHYS_PAGES;
        if (steady)
            printf("%d: %ld %d %d\n", name, first, error, first == second);
    }
    printf("%d %d\n", get_nprocs() == sysconf(_SC_NPROCESSORS_ONLN), get_nprocs_conf() == sysconf(_SC_NPROCESSORS_CONF));
}

/* Every number drawn by any thread or process: none may come twice. */
static struct { long count, nothing; uint64_t drawn[EACH * 8 + CHILDREN * 64]; } *all;

static void draw(int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            abort();
        all->drawn[__atomic_fetch_add(&all->count, 1, __ATOMIC_SEQ_CST)] = number;
    }
}
static void *worker(void *unused) { draw(EACH); return unused; }

/* A signal comes anywhere, also into the drawing of a number; its handler forks, and both go on. */
static volatile int forked, children;
static volatile pid_t parent;
static void fork_here(int signal)
{
    if (getpid() != parent || children >= CHILDREN)
        return;
    if (fork() == 0)
        forked = 1;
    else
        children++;
}
static void forks(void)
{
    parent = getpid();
    struct sigaction act = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &act, 0);
    struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, 0);
    volatile uint64_t number = 1;
    while (!forked && children < CHILDREN) {
        number = 1;
        getrandom((void *)&number, sizeof number, 0);
    }
    setitimer(ITIMER_REAL, &never, 0);
    if (forked) {
        /* What was being drawn when the fork came may be the parent's as well, but nothing it is not. */
        if (number == 0)
            all->nothing = 1;
        draw(40);
        _exit(0);
    }
    while (wait(0) > 0 || errno == EINTR)
        ;
    printf("forked %d times\n", children);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
static void randoms(void)
{
    all = mmap(0, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    draw(EACH);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], 0, worker, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    if (fork() == 0) {
        draw(EACH);
        _exit(0);
    }
    draw(EACH);
    wait(0);
    forks();
    qsort(all->drawn, all->count, sizeof *all->drawn, by_value);
    int twice = 0;
    for (long i = 1; i < all->count; i++)
        twice += all->drawn[i] == all->drawn[i - 1];
    printf("%ld drawn, %d twice, nothing drawn: %d\n", all->count, twice, all->nothing || all->drawn[0] == 0);
}

static void edges(void)
{
    unsigned char b[400], seen[256] = {0};
    for (int size = 0; size < 400; size += size < 70 ? 1 : 66) {
        int good = 1;
        for (int round = 0; round < 20; round++) {
            memset(b, 0, sizeof b);
            good &= getrandom(b, size, round % 2 ? GRND_NONBLOCK : 0) == size;
            for (int i = size; i < (int)sizeof b; i++)
                good &= b[i] == 0;
            for (int i = 0; i < size; i++)
                seen[b[i]] = 1;
        }
        errno = 0;
        int got = getentropy(b, size);
        printf("%d: %d, %d %d\n", size, good, got, errno);
    }
    int values = 0;
    for (int i = 0; i < 256; i++)
        values += seen[i];
    printf("%d values\n", values);
    errno = 0;
    printf("nowhere: %zd ", getrandom(0, 8, 0));
    printf("%s\n", strerror(errno));
    printf("other flags: %zd ", getrandom(b, 8, 0x100));
    printf("%s\n", strerror(errno));
}

int main(void)
{
    processors();
    edges();
    randoms();
    return 6;
}
