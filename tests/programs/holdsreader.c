/* Names a file by memory whose page faults this program answers itself, late: who reads that memory
   meanwhile sleeps in the kernel. Says "named", then "went on" once its own call has come back. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd;
static char *page;
static int seconds;

static void *answers(void *unused)
{
    static char content[4096] __attribute__((aligned(4096))) = "/dev/null";
    struct uffd_msg msg;
    struct uffdio_copy copy = {.dst = (uintptr_t)page, .src = (uintptr_t)content, .len = 4096};
    if (read(fd, &msg, sizeof msg) != sizeof msg)
        exit(4);
    sleep(seconds);
    ioctl(fd, UFFDIO_COPY, &copy);
    return NULL;
}

int main(int argc, char **argv)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
    pthread_t thread;
    /* What ends the one who watches is passed on to us. */
    signal(SIGTERM, SIG_IGN);
    seconds = atoi(argv[1]);
    fd = syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
        return 3;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    range.range.start = (uintptr_t)page;
    range.range.len = 4096;
    if (ioctl(fd, UFFDIO_REGISTER, &range) || pthread_create(&thread, NULL, answers, NULL))
        return 3;
    write(1, "named\n", 6);
    if (open(page, O_RDONLY) < 0)
        return 5;
    write(1, "went on\n", 8);
    return 0;
}
