/* What calls are given lies in memory that an observer must not read as it likes: `unreadable_memory MODE`.
 * served, device: pages that come only when a thread serves them, which none does until a call asks for one; the
 * descriptor is userfaultfd(2)'s or /dev/userfaultfd's. cut: a mapped file that another process cuts short all the time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64 };

static int u;

static void *serve(void *unused)
{
    struct uffd_msg message;
    struct pollfd event = {u, POLLIN, 0};
    static char text[PAGE] __attribute__((aligned(PAGE))) = "/etc/passwd";
    int served = 0;
    while (served < PAGES && poll(&event, 1, -1) == 1 && read(u, &message, sizeof message) == sizeof message) {
        struct uffdio_copy copy = {.dst = message.arg.pagefault.address & ~(PAGE - 1ul), .src = (unsigned long)text, .len = PAGE};
        served += ioctl(u, UFFDIO_COPY, &copy) == 0;
    }
    printf("%d served\n", served);
    return unused;
}

static int served(int device)
{
    int opener = device ? open("/dev/userfaultfd", O_RDWR | O_CLOEXEC) : -1;
    u = device ? ioctl(opener, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK) : syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = {.api = UFFD_API};
    char *at = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register all = {.range = {(unsigned long)at, PAGES * PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (u < 0 || ioctl(u, UFFDIO_API, &api) || ioctl(u, UFFDIO_REGISTER, &all)) {
        puts("can't serve");
        return 0;
    }
    alarm(20);
    int refused = 0, found = 0;
    struct stat s;
    /* Refused before anything is read. */
    for (int i = 0; i < PAGES; i++) {
        refused += write(-1, at + i * PAGE, 8) == -1 && errno == EBADF;
        refused += unlinkat(AT_FDCWD, at + i * PAGE, 1 << 20) == -1 && errno == EINVAL;
        refused += pwrite(-1, at + i * PAGE + 100, 300, 0) == -1 && errno == EBADF;
    }
    struct pollfd event = {u, POLLIN, 0};
    printf("%d refused, %d asked for\n", refused, poll(&event, 1, 0));
    pthread_t server;
    pthread_create(&server, 0, serve, 0);
    for (int i = 0; i < PAGES; i++)
        found += stat(at + i * PAGE, &s) == 0;
    pthread_join(server, 0);
    printf("%d found\n", found);
    return 0;
}

static int cut(void)
{
    char name[] = "/tmp/cut-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    if (ftruncate(fd, PAGE))
        return 2;
    char *at = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    strcpy(at, "/etc/passwd");
    int pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            if (ftruncate(fd, 0) || ftruncate(fd, PAGE))
                _exit(2);
    }
    struct stat s;
    /* Many places, as calls of new ones are looked at most. */
#define PLACE for (int i = 0; i < 4000; i++) stat(at, &s);
#define PLACES PLACE PLACE PLACE PLACE PLACE PLACE PLACE PLACE PLACE PLACE
    PLACES PLACES PLACES
    kill(pid, SIGKILL);
    waitpid(pid, 0, 0);
    puts("not cut");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    return strcmp(argv[1], "cut") ? served(!strcmp(argv[1], "device")) : cut();
}
