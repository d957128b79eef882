// A loop that leaves itself notes, and wakes itself for each although it is awake.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int bell, notes;

static void later(void) {
    notes++;
#ifndef CURED
    uint64_t one = 1;
    if (write(bell, &one, sizeof one) != sizeof one) exit(1);
#endif
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 1000;
    long done = 0;
    int poll = epoll_create1(EPOLL_CLOEXEC);
    bell = eventfd(0, EFD_NONBLOCK);
    struct epoll_event rung = {.events = EPOLLIN, .data.fd = bell}, came;
    epoll_ctl(poll, EPOLL_CTL_ADD, bell, &rung);
    for (int n = 0; n < times; n++) {
        later();
        if (epoll_wait(poll, &came, 1, 0) == 1) {
            uint64_t count;
            if (read(bell, &count, sizeof count) != sizeof count) return 1;
        }
        for (; notes; notes--) done += n % 7;
    }
    printf("%ld\n", done);
}
