// Two diseases: localtime without TZ, and a file that is asked for again and again.
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void log_line(int i) {
    time_t now = i;
    if (!localtime(&now)) puts("never");
}
int main(void) {
    struct stat status;
    for (int i = 0; i < 4000; i++) {
        log_line(i);
        if (i % 2) stat("/etc/no-such-file", &status);
        if (i % 4 == 0) getppid();
    }
    usleep(2000);
    return 0;
}
