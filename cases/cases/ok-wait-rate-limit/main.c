// Sends messages at fifty a second to a receiver that may not be flooded.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int n = atoi(argv[1]), out[2];
    (void)argc;
    if (pipe(out)) return 1;
    if (!fork()) {
        close(out[1]);
        char message[16];
        int got = 0;
        while (read(out[0], message, 16) == 16) got++;
        printf("%d messages\n", got);
        return 0;
    }
    close(out[0]);
    struct timespec slot;
    clock_gettime(CLOCK_MONOTONIC, &slot);
    for (int i = 0; i < n; i++) {
        slot.tv_nsec += 20000000;
        if (slot.tv_nsec >= 1000000000) slot.tv_nsec -= 1000000000, slot.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &slot, 0);
        (void)!write(out[1], "sixteen bytes...", 16);
    }
    close(out[1]);
    wait(0);
}
