/* A hundred logs are written to by turns, and each is asked for its size before the next line, to begin a new one
   when it is full: another answer each time. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOGS = 100, FULL = 1000 };

int main(int argc, char **argv)
{
    char path[64];
    int fds[LOGS];
    long lines = argc > 1 ? atol(argv[1]) : 4000, turned = 0;
    mkdir("dirs", 0755);
    for (int i = 0; i < LOGS; i++) {
        snprintf(path, sizeof path, "dirs/%d.log", i);
        fds[i] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
        if (fds[i] < 0)
            return 1;
    }
    for (long line = 0; line < lines; line++) {
        struct stat status;
        snprintf(path, sizeof path, "dirs/%ld.log", line % LOGS);
        if (stat(path, &status) != 0)
            return 1;
        if (status.st_size > FULL && ftruncate(fds[line % LOGS], 0) == 0)
            turned++;
        if (dprintf(fds[line % LOGS], "line %ld of a log that many ask about\n", line) < 0)
            return 1;
    }
    printf("%ld lines, %ld turned\n", lines, turned);
    return 0;
}
