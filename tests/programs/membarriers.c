/* Ten barriers before main, four after it. */
#include <sys/syscall.h>
#include <unistd.h>

static void barriers(int n)
{
    while (n--)
        syscall(SYS_membarrier, 1, 0, 0);
}

__attribute__((constructor)) static void begin(void) { barriers(10); }
__attribute__((destructor)) static void end(void) { barriers(4); }

int main(void) { return getppid() < 0; }
