/* Follows a file that grows: reads what is there, and asks for the size again when it has read all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000;
    char path[] = "/tmp/growXXXXXX", b[4096] = {1};
    int fd = mkstemp(path);
    unlink(path);
    struct stat st;
    off_t at = 0;
    for (int i = 0; i < n; i++) {
        if (write(fd, b, 700) != 700) return 1;
        if (fstat(fd, &st) || st.st_size == at) return 1;
        at += pread(fd, b, sizeof b, at);
    }
    printf("%ld\n", (long)at);
    return 0;
}
