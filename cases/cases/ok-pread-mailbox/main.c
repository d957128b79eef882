/* Works on items, and before each reads how many are allowed: another process changes that. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { LIMIT = 64 };
int main(int argc, char **argv)
{
    uint64_t items = argc > 1 ? strtoull(argv[1], 0, 10) : 6000, limit = 1, sum = 0;
    char path[] = "/tmp/mailboxXXXXXX";
    int fd = mkstemp(path);
    pwrite(fd, &items, 8, LIMIT);
    pid_t writer = fork();
    if (writer == 0) {
        for (uint64_t n = 1; n <= 20; n++) {
            pwrite(fd, &(uint64_t){items + n % 2}, 8, LIMIT);
            usleep(1000);
        }
        _exit(0);
    }
    for (uint64_t n = 0; n < items; n++) {
        if (pread(fd, &limit, 8, LIMIT) != 8 || limit < items)
            return 1;
        for (uint64_t step = 0; step < 400; step++)
            sum = sum * 6364136223846793005u + step;
    }
    waitpid(writer, 0, 0);
    unlink(path);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
