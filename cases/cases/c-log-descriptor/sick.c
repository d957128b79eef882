#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 30000
static void send_line(int s, int fd, const char *line, size_t n) {
    char ctl[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec v = { (void *)line, n };
    struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
    if (fd >= 0) {
        m.msg_control = ctl; m.msg_controllen = sizeof ctl;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET; c->cmsg_type = SCM_RIGHTS; c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (sendmsg(s, &m, 0) < 0) { perror("sendmsg"); exit(1); }
}

static void writer(int s) {
    char line[256], ctl[CMSG_SPACE(sizeof(int))];
    int fd = -1; long lines = 0;
    for (;;) {
        struct iovec v = { line, sizeof line };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof ctl };
        ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);
        if (n <= 0) break;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(c), sizeof fd);
        if (write(fd, line, n) != n) _exit(1);
        close(fd);
        lines++;
    }
    _exit(lines == LINES + 0 ? 0 : 2);
}

int main(void) {
    int s[2]; char line[128]; int status; struct stat st;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s)) return 1;
    pid_t pid = fork();
    if (!pid) { close(s[0]); writer(s[1]); }
    close(s[1]);
    int log = open("lines.log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    for (int i = 0; i < LINES; i++) {
        int n = snprintf(line, sizeof line, "%08d request /item/%d answered with %d\n", i, i * 7 % 1013, i % 17 ? 200 : 404);
        send_line(s[0], log, line, n);
    }
    close(s[0]);
    waitpid(pid, &status, 0);
    fstat(log, &st);
    printf("writer %d, %lld bytes\n", WEXITSTATUS(status), (long long)st.st_size);
}
