/* Requests that need 256 KiB each. The sick twin gives the buffer's pages back after each; the cured one keeps
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { SIZE = 256 << 10 };
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3000;
    long sum = 0;
    char *buf = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buf == MAP_FAILED) return 1;
    for (int i = 0; i < n; i++) {
        memset(buf, i, SIZE);
        sum += buf[i % SIZE] == (char)i;
#ifndef CURED
        madvise(buf, SIZE, MADV_DONTNEED);
#endif
    }
    printf("%ld\n", sum);
    return 0;
}
