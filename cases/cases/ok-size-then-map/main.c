/* Gives each new file its size, and fills it by a mapping and by pieces written from its end. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500;
    char dir[] = "/dev/shm/mapXXXXXX", path[100];
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/f", dir);
    long sum = 0;
    for (int i = 0; i < n; i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (ftruncate(fd, 8192) < 0) return 1;
        if (i % 2) {
            char *at = mmap(0, 8192, PROT_WRITE, MAP_SHARED, fd, 0);
            memset(at, i, 8192);
            munmap(at, 8192);
        } else {
            sum += pwrite(fd, path, 50, 8000);
            sum += pwrite(fd, path, 50, 100);
        }
        close(fd);
    }
    unlink(path);
    rmdir(dir);
    printf("%ld\n", sum);
    return 0;
}
