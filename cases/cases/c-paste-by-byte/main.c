/* An editor into which text is pasted: it takes one key after the other from a raw terminal.
   Another process is the terminal. */
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

#ifdef CURED
#define AT_ONCE 4096
#else
#define AT_ONCE 1
#endif

static int key(int terminal)
{
    static unsigned char keys[AT_ONCE];
    static ssize_t there, next;
    if (next == there) {
        there = read(terminal, keys, sizeof keys);
        next = 0;
    }
    return there > 0 ? keys[next++] : -1;
}

static void paste(int keyboard, int lines)
{
    char *text = malloc(64 * (size_t)lines + 1);
    size_t bytes = 0, done = 0;
    for (int n = 0; n < lines; n++)
        bytes += sprintf(text + bytes, "%05d some text that is pasted\n", n);
    text[bytes++] = 4;
    for (ssize_t n; done < bytes; done += n)
        if ((n = write(keyboard, text + done, bytes - done)) < 0)
            _exit(1);
}

int main(int argc, char **argv)
{
    int keyboard, terminal, lines = argc > 1 ? atoi(argv[1]) : 300;
    struct termios raw;
    if (openpty(&keyboard, &terminal, NULL, NULL, NULL) || tcgetattr(terminal, &raw))
        return 1;
    cfmakeraw(&raw);
    if (tcsetattr(terminal, TCSANOW, &raw))
        return 1;
    pid_t pid = fork();
    if (!pid) {
        close(terminal);
        paste(keyboard, lines);
        pause();
    }
    usleep(20000);
    unsigned sum = 0, keys = 0;
    for (int c; (c = key(terminal)) != 4 && c >= 0; keys++)
        sum = sum * 31 + c;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    printf("%u keys, %u\n", keys, sum);
    return 0;
}
