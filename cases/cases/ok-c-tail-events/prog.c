/* follows a log that another process writes and answers each line at once */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 30000

static void writer(int go)
{
    int fd = open("follow.log", O_WRONLY | O_APPEND);
    char line[80], c;
    for (int i = 0; i < LINES; i++) {
        if (read(go, &c, 1) != 1) /* until the last line has been dealt with */
            _exit(1);
        int n = snprintf(line, sizeof line, "%d request /page/%d\n", i, i * 37 % 101);
        if (write(fd, line, n) != n)
            _exit(1);
    }
    _exit(0);
}

int main(void)
{
    int go[2], fd = open("follow.log", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    int in = inotify_init1(IN_CLOEXEC);
    if (fd < 0 || in < 0 || pipe(go))
        return 1;
    inotify_add_watch(in, "follow.log", IN_MODIFY);
    pid_t pid = fork();
    if (pid == 0)
        writer(go[0]);
    char ev[4096] __attribute__((aligned(8))), line[256];
    int seen = 0;
    unsigned long pages = 0;
    if (write(go[1], "g", 1) != 1)
        return 1;
    while (seen < LINES) {
        if (read(in, ev, sizeof ev) <= 0)
            return 1;
        ssize_t n = read(fd, line, sizeof line - 1);
        if (n <= 0)
            continue;
        line[n] = 0;
        seen++;
        pages += strtoul(strstr(line, "/page/") + 6, NULL, 10);
        if (seen < LINES && write(go[1], "g", 1) != 1)
            return 1;
    }
    int st;
    waitpid(pid, &st, 0);
    unlink("follow.log");
    printf("lines %d, pages %lu, writer %d\n", seen, pages, WEXITSTATUS(st));
    return 0;
}
