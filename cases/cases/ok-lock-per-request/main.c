/* Appends a line for each request that comes through a pipe, under a lock: between two requests others may append. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000, ask[2], answer[2], done = 0;
    char line[64];
    if (pipe(ask) || pipe(answer))
        return 1;
    if (fork() == 0) {
        char byte = 'x';
        close(ask[0]);
        for (int i = 0; i < n; i++)
            if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(ask[1]);
    int fd = open("data/log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    char byte;
    while (read(ask[0], &byte, 1) == 1) {
        int length = snprintf(line, sizeof line, "request %d\n", done++);
        if (flock(fd, LOCK_EX) || write(fd, line, length) != length || flock(fd, LOCK_UN))
            return 1;
        if (write(answer[1], &byte, 1) != 1)
            return 1;
    }
    wait(0);
    printf("%d\n", done);
    return 0;
}
