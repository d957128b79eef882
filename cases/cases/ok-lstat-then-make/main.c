/* Asks once without following and once with, of names that are missing, and makes other names meanwhile. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000;
    char dir[] = "/dev/shm/okXXXXXX", path[100];
    if (!mkdtemp(dir)) return 1;
    int missing = 0;
    for (int i = 0; i < n; i++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/f%d", dir, i);
        /* A link that leads nowhere is there for lstat alone. */
        missing += stat(path, &st) < 0;
        missing += lstat(path, &st) < 0;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        close(fd);
        unlink(path);
    }
    rmdir(dir);
    printf("%d\n", missing);
    return 0;
}
