/* What programs show on a terminal: a line a write, each as soon as it is known; a dot for each thing done; a share
   that is drawn over the one before. Another process is the terminal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static unsigned work(unsigned sum, int n)
{
    for (int i = 0; i < 4000; i++)
        sum = sum * 31 + (sum >> 7) + n;
    return sum;
}

int main(int argc, char **argv)
{
    int shows, terminal, lines = argc > 1 ? atoi(argv[1]) : 8000;
    if (openpty(&shows, &terminal, NULL, NULL, NULL))
        return 1;
    pid_t pid = fork();
    if (!pid) {
        close(shows);
        dup2(terminal, 1);
        unsigned sum = 1;
        for (int n = 0; n < lines; n++)
            printf("line %d of %d\n", n, lines);
        for (int n = 0; n < lines / 8; n++) {
            sum = work(sum, n);
            printf(".");
            fflush(stdout);
        }
        for (int n = 0; n < lines / 8; n++) {
            sum = work(sum, n);
            printf("\r%d of %d", n, lines / 8);
            fflush(stdout);
        }
        printf("\n%u\n", sum);
        exit(0);
    }
    close(terminal);
    static char seen[65536];
    size_t all = 0;
    for (ssize_t n; (n = read(shows, seen, sizeof seen)) > 0; usleep(1000))
        all += n;
    int status;
    waitpid(pid, &status, 0);
    printf("%zu bytes shown\n", all);
    return status != 0;
}
