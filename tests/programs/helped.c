// Two callers of the same helpers, each with a file of its own; the exact context of both ends in a helper.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char bytes[4096];

__attribute__((noinline)) int xopen(const char *path, int flags) {
    int fd = open(path, flags, 0644);
    if (fd < 0) abort();
    return fd;
}

__attribute__((noinline)) void xclose(int fd) {
    if (close(fd)) abort();
}

__attribute__((noinline)) void cfg(void) {
    int fd = xopen("cfg.json", O_RDONLY);  // @cfg
    if (read(fd, bytes, sizeof bytes) < 0) abort();
    xclose(fd);
}

__attribute__((noinline)) void log_line(const char *text) {
    int fd = xopen("out.log", O_WRONLY | O_CREAT | O_APPEND);  // @log
    if (write(fd, text, strlen(text)) < 0) abort();
    xclose(fd);
}

int main(int argc, char **argv) {
    int reversed = argc > 2;
    for (int i = 0; i < atoi(argv[1]); i++) {
        if (reversed) log_line("line\n");
        cfg();
        if (!reversed) log_line("line\n");
    }
}
