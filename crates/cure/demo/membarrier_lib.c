/* A tracing library whose constructor registers its probes one by one and waits, after
 * each, until every thread has seen it. MEMBARRIER_CMD_GLOBAL waits until every CPU has
 * been through the scheduler; PRIVATE_EXPEDITED (CURED, Linux 4.14) interrupts only the
 * CPUs that run this process. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

enum { GLOBAL = 1 << 0, PRIVATE_EXPEDITED = 1 << 3, REGISTER_PRIVATE_EXPEDITED = 1 << 4 };
enum { PROBES = 10 };

int registered_probes;

void wait_for_readers(void);
void wait_for_readers(void)
{
#ifdef CURED
    syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0, 0);
#else
    syscall(SYS_membarrier, GLOBAL, 0, 0);
#endif
}

static void __attribute__((noinline)) register_probe(void)
{
    registered_probes++;
    wait_for_readers();
}

static void __attribute__((constructor)) register_all_probes(void)
{
#ifdef CURED
    syscall(SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0);
#endif
    for (int i = 0; i < PROBES; i++)
        register_probe();
}
