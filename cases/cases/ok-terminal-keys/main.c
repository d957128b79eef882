/* Keys are typed one after the other: the program waits for each, shows it, and the next is typed then. An arrow
   comes as three bytes. Another process is the terminal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int key(int terminal)
{
    unsigned char c;
    return read(terminal, &c, 1) == 1 ? c : -1;
}

int main(int argc, char **argv)
{
    int keyboard, terminal, keys = argc > 1 ? atoi(argv[1]) : 2500;
    struct termios raw;
    if (openpty(&keyboard, &terminal, NULL, NULL, NULL) || tcgetattr(terminal, &raw))
        return 1;
    cfmakeraw(&raw);
    if (tcsetattr(terminal, TCSANOW, &raw))
        return 1;
    pid_t pid = fork();
    if (!pid) {
        close(keyboard);
        int typed = 0;
        for (int c; (c = key(terminal)) != 4 && c >= 0; typed++) {
            if (c == 27 && key(terminal) == '[')
                c = key(terminal);
            char shown[16];
            int bytes = sprintf(shown, "\33[1m%c", c);
            if (write(terminal, shown, bytes) != bytes)
                _exit(1);
        }
        _exit(typed != keys);
    }
    close(terminal);
    char shown[64];
    for (int n = 0; n < keys; n++) {
        const char *typed = n % 4 == 3 ? "\33[A" : "x";
        if (write(keyboard, typed, strlen(typed)) < 0 || read(keyboard, shown, sizeof shown) <= 0)
            return 1;
    }
    if (write(keyboard, "\4", 1) != 1)
        return 1;
    int status;
    waitpid(pid, &status, 0);
    printf("%d keys\n", keys);
    return status != 0;
}
