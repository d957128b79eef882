/* Unpacks many small files, and asks about each name four times before it makes it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
static int there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 || lstat(path, &st) == 0;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500;
    char dir[] = "/dev/shm/unpackXXXXXX", path[100];
    if (!mkdtemp(dir)) return 1;
    int made = 0;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/f%d", dir, i);
#ifndef CURED
        if (there(path) || there(path)) continue;
#endif
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0) continue;
        made += write(fd, path, 20) == 20;
        close(fd);
        unlink(path);
    }
    rmdir(dir);
    printf("%d\n", made);
    return 0;
}
