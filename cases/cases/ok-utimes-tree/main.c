/* Unpacks files and sets the times of each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500, good = 0;
    char top[] = "/tmp/unpackXXXXXX", path[64];
    if (!mkdtemp(top) || chdir(top)) return 1;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%d", i);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        struct timespec t[2] = {{i, 0}, {i, 0}};
        good += write(fd, path, 9) == 9 && !futimens(fd, t);
        close(fd);
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%d", i);
        unlink(path);
    }
    rmdir(top);
    printf("%d\n", good);
    return 0;
}
