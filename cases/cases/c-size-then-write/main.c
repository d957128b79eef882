/* Gives each new file its size, and then writes that much. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500;
    char dir[] = "/dev/shm/sizeXXXXXX", path[100];
    static char text[3000];
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/f", dir);
    long sum = 0;
    for (int i = 0; i < n; i++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
#ifndef CURED
        if (ftruncate(fd, sizeof text) < 0) return 1;
#endif
        sum += write(fd, text, sizeof text);
        close(fd);
    }
    unlink(path);
    rmdir(dir);
    printf("%ld\n", sum);
    return 0;
}
