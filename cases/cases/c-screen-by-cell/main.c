/* Draws screens on a terminal, as emulators' libraries do: a place, a colour, a letter.
   Another process is the terminal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char screen[24 * 80 * 32];
static size_t filled;

static void put(int terminal, const char *text, size_t bytes)
{
#ifdef CURED
    memcpy(screen + filled, text, bytes);
    filled += bytes;
#else
    if (write(terminal, text, bytes) < 0)
        _exit(1);
#endif
}

static void show(int terminal)
{
    for (size_t done = 0; done < filled;) {
        ssize_t n = write(terminal, screen + done, filled - done);
        if (n < 0)
            _exit(1);
        done += n;
    }
    filled = 0;
}

static void draw(int terminal, int n)
{
    char cell[32];
    for (int row = 1; row <= 24; row++)
        for (int column = 1; column <= 80; column++) {
            int bytes = sprintf(cell, "\33[%d;%dH\33[3%dm%c", row, column, (row + n) % 8, 'a' + (row + column + n) % 26);
            put(terminal, cell, bytes);
        }
    show(terminal);
}

int main(int argc, char **argv)
{
    int shows, terminal, screens = argc > 1 ? atoi(argv[1]) : 6;
    if (openpty(&shows, &terminal, NULL, NULL, NULL))
        return 1;
    pid_t pid = fork();
    if (!pid) {
        close(shows);
        for (int n = 0; n < screens; n++)
            draw(terminal, n);
        _exit(0);
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
