/* Appends lines to a file. The sick twin takes a record lock around each, the cured one around all. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void lock(int fd, short type)
{
    struct flock all = { .l_type = type, .l_whence = SEEK_SET };
    if (fcntl(fd, F_SETLKW, &all) != 0)
        perror("fcntl"), exit(1);
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 5000;
    char line[64];
    int fd = open("data/log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (fd < 0)
        perror("data/log"), exit(1);
#ifdef CURED
    lock(fd, F_WRLCK);
#endif
    for (int i = 0; i < n; i++) {
        int length = snprintf(line, sizeof line, "item %d is done\n", i);
#ifndef CURED
        lock(fd, F_WRLCK);
#endif
        if (write(fd, line, length) != length)
            perror("write"), exit(1);
#ifndef CURED
        lock(fd, F_UNLCK);
#endif
    }
#ifdef CURED
    lock(fd, F_UNLCK);
#endif
    printf("%ld\n", (long)lseek(fd, 0, SEEK_END));
    return 0;
}
