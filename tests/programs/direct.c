/* syscall(2) with all kinds of numbers and arguments: with libc's function and with others that
 * stand for it the lines must be the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long told(const char *what, long result)
{
    int error = errno;
    printf("%s: %d %s\n", what, result < 0 ? -1 : result > 0, result < 0 ? strerror(error) : "");
    errno = 0;
    return result;
}
static long long ns(struct timespec t) { return t.tv_sec * 1000000000ll + t.tv_nsec; }

/* Clocks are read between two readings by libc, so that a wrong one shows. */
static void clocks(void)
{
    for (int id = -4; id < 20; id++) {
        struct timespec before = {0}, at = {0}, after = {0};
        char what[32];
        int known = clock_gettime(id, &before) == 0;
        long result = syscall(SYS_clock_gettime, id, &at);
        int error = errno;
        clock_gettime(id, &after);
        sprintf(what, "clock %d", id);
        errno = error;
        told(what, result);
        printf("  %d\n", known && ns(before) <= ns(at) && ns(at) <= ns(after));
    }
    told("clock to nowhere", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, 0));
    struct timeval tv = {0};
    struct timezone tz = {-1, -1};
    time_t before = time(0), in = 0;
    told("gettimeofday", syscall(SYS_gettimeofday, &tv, 0));
    told("with a zone", syscall(SYS_gettimeofday, &tv, &tz));
    printf("  %d %d, %d\n", tz.tz_minuteswest, tz.tz_dsttime, tv.tv_sec >= before - 1);
    tz.tz_minuteswest = -1;
    told("a zone only", syscall(SYS_gettimeofday, 0, &tz));
    printf("  %d\n", tz.tz_minuteswest);
    told("time", syscall(SYS_time, &in));
    long out = syscall(SYS_time, 0);
    printf("  %d %d\n", in >= before - 1, out >= in);
}

static void barriers(void)
{
    long known = told("membarrier: what is there", syscall(SYS_membarrier, 0, 0, 0));
    printf("  %d\n", known & 1);
    for (int i = 0; i < 3; i++)
        told("global", syscall(SYS_membarrier, 1, 0, 0));
    told("global, a flag", syscall(SYS_membarrier, 1, 1, 0));
    told("no such command", syscall(SYS_membarrier, 1 << 20, 0, 0));
    fflush(stdout);
    if (fork() == 0) {
        told("in a child", syscall(SYS_membarrier, 1, 0, 0));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}

static void others(void)
{
    told("getpid", syscall(SYS_getpid) == getpid());
    told("close", syscall(SYS_close, -1));
    told("none", syscall(100000));
    told("less than none", syscall(-1));
    told("openat", syscall(SYS_openat, AT_FDCWD, "/nonexistent", O_RDONLY));
    int fd = memfd_create("words", 0);
    if (write(fd, "0123456789", 10) != 10 || ftruncate(fd, 8192) || pwrite(fd, "page", 4, 4096) != 4)
        printf("no memory file\n");
    char *page = (char *)syscall(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
    printf("six arguments: %.4s\n", page);
    told("munmap", syscall(SYS_munmap, page, 4096));
    long child = syscall(SYS_vfork);
    if (child == 0)
        syscall(SYS_exit_group, 9);
    int status = 0;
    waitpid(child, &status, 0);
    printf("vfork: %d\n", WEXITSTATUS(status));
}

/* Before the libraries that stand for libc's function are ready. */
static void __attribute__((constructor)) early(void)
{
    told("early", syscall(SYS_close, -1));
    told("early membarrier", syscall(SYS_membarrier, 1, 0, 0));
}

int main(void)
{
    clocks();
    barriers();
    others();
    return 5;
}
