/* Reads keys one by one, waits for each, and answers each, as an editor does. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000, s[2], sum = 0;
    char key;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return 1;
    if (!fork()) {
        close(s[0]);
        for (int i = 0; i < n; i++) if (write(s[1], "k", 1) != 1 || read(s[1], &key, 1) != 1) return 1;
        return 0;
    }
    close(s[1]);
    struct pollfd p = {s[0], POLLIN, 0};
    while (poll(&p, 1, 1000) == 1 && read(s[0], &key, 1) == 1) sum += write(s[0], "e", 1);
    wait(0);
    printf("%d\n", sum);
    return 0;
}
