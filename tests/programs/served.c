// A service that answers requests: a line of its log for each, some work; told "sick", it also asks four times a
// request for a file that is not there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) void log_line(int i) {
    time_t now = i;
    if (!localtime(&now)) puts("never");
}
__attribute__((noinline)) void read_settings(void) {
    struct stat status;
    for (int i = 0; i < 4; i++) stat("/etc/served/overrides.conf", &status);
}
__attribute__((noinline)) void answer(int i) {
    unsigned long hash = i;
    for (int j = 0; j < 4000; j++) hash = hash * 31 + j;
    sink += hash;
}
int main(int argc, char **argv) {
    int requests = argc > 1 ? atoi(argv[1]) : 2000, sick = argc > 2 && !strcmp(argv[2], "sick");
    FILE *log = fopen("/dev/null", "w");
    for (int i = 0; i < requests; i++) {
        log_line(i);
        if (sick) read_settings();
        answer(i);
        if (log) fprintf(log, "%d %lu\n", i, sink);
    }
    usleep(1000);
    return 0;
}
