/* A little of everything that behaves alike on any C library: files, failures, pipes, memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    char buffer[256];
    int failures = 0, pipe_fds[2];
    struct stat st;
    long page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 50; i++) {
        failures += stat("/nonexistent/file", &st) < 0;
        failures += open("/", O_WRONLY) < 0;
        failures += close(999) < 0;
        failures += lseek(-1, 0, SEEK_SET) < 0;
        int fd = open("/proc/self/status", O_RDONLY);
        while (read(fd, buffer, sizeof buffer) > 0)
            ;
        close(fd);
        void *p = mmap(0, (size_t)page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(p, (size_t)page);
        getppid();
    }
    if (pipe(pipe_fds) || write(pipe_fds[1], "abc", 3) != 3 || read(pipe_fds[0], buffer, 9) != 3)
        return 1;
    printf("%d failures\n", failures);
    return 0;
}
