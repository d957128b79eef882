/* invoice numbers: three tills draw numbers without gaps from one file */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TILLS 3
#define EACH 5000

static void lock(int fd, short type)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8 };
    if (fcntl(fd, F_SETLKW, &l)) {
        perror("fcntl");
        _exit(1);
    }
}

static uint64_t next_number(int fd)
{
    uint64_t n = 0;
    lock(fd, F_WRLCK);
    if (pread(fd, &n, sizeof n, 0) != sizeof n)
        n = 0;
    n++;
    if (pwrite(fd, &n, sizeof n, 0) != sizeof n)
        _exit(1);
    lock(fd, F_UNLCK);
    return n;
}

static uint64_t till(int id)
{
    uint64_t sum = 0;
    int fd = open("invoice.seq", O_RDWR); /* each till opens it: locks belong to processes */
    for (int i = 0; i < EACH; i++) {
        sum += next_number(fd);
        if (i % 10 == id) { /* a customer */
            struct timespec t = { 0, 300000 };
            nanosleep(&t, NULL);
        }
    }
    close(fd);
    return sum;
}

int main(void)
{
    int p[2], fd = open("invoice.seq", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || pipe(p))
        return 1;
    for (int t = 0; t < TILLS; t++)
        if (fork() == 0) {
            uint64_t sum = till(t);
            _exit(write(p[1], &sum, sizeof sum) != sizeof sum);
        }
    uint64_t sum = 0, part, last = 0;
    for (int t = 0; t < TILLS; t++)
        if (read(p[0], &part, sizeof part) == sizeof part)
            sum += part;
    while (wait(NULL) > 0)
        ;
    if (pread(fd, &last, sizeof last, 0) != sizeof last)
        return 1;
    unlink("invoice.seq");
    uint64_t n = TILLS * EACH;
    printf("last number %lu, sum %s\n", (unsigned long)last, sum == n * (n + 1) / 2 ? "right" : "wrong");
    return 0;
}
