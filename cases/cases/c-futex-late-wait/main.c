/* An event count whose waiter never looks before it asks to sleep: the value has always changed already. The
 * cured twin looks. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static atomic_uint count;
static void wait_beyond(unsigned old)
{
#ifdef CURED
    if (atomic_load(&count) != old) return;
#endif
    syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, old, 0, 0, 0);
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000;
    for (int i = 0; i < n; i++) {
        unsigned old = atomic_load(&count);
        atomic_fetch_add(&count, 1);
        wait_beyond(old);
    }
    printf("%u\n", atomic_load(&count));
    return 0;
}
