/* Sets state that several calls set: of a descriptor, a limit, a range of memory, a terminal. Usage:
 * set_states sick|healthy N [descriptor|limit|memory|terminal]. Sick: each, or the one named, to what it is already.
 * Healthy: another call has set it to something else in between, so that each is of use. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int nonblocking(int fd, int on) { return ioctl(fd, FIONBIO, &on); }

static long limit(long soft, int by_other) {
    static struct rlimit now;
    if (now.rlim_max == 0) getrlimit(RLIMIT_NOFILE, &now);
    now.rlim_cur = (rlim_t)soft;
    if (by_other) return syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &now, NULL);
    return syscall(SYS_setrlimit, RLIMIT_NOFILE, &now);
}

static const char *only;

static int wanted(const char *what) { return !only || strcmp(only, what) == 0; }

int main(int argc, char **argv) {
    int healthy = argc > 1 && strcmp(argv[1], "healthy") == 0;
    long n = argc > 2 ? atol(argv[2]) : 20000;
    only = argc > 3 ? argv[3] : NULL;
    int pair[2], tty = posix_openpt(O_RDWR | O_NOCTTY);
    char settings[64] = {0};
    long failed = socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0;
    size_t size = 1 << 22;
    char *range = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    failed += ioctl(tty, TCGETS, settings) != 0;
    for (long i = 0; i < n; i++) {
        if (wanted("descriptor")) {
            failed += nonblocking(pair[0], 1) != 0;
            if (healthy) failed += fcntl(pair[0], F_SETFL, 0) != 0;
        }
        if (wanted("limit")) {
            failed += limit(1000, 0) != 0;
            if (healthy) failed += limit(100 + i % 61, 1) != 0;
        }
        if (wanted("memory")) {
            madvise(range, size, MADV_SEQUENTIAL);
            if (healthy) madvise(range, size / 2, MADV_NORMAL);
        }
        if (wanted("terminal")) {
            /* The flags of the line discipline are the fourth word. */
            settings[12] &= ~010;
            failed += ioctl(tty, TCSETS, settings) != 0;
            settings[12] |= 010;
            if (healthy) failed += ioctl(tty, TCSETSW, settings) != 0;
        }
    }
    return failed != 0;
}
