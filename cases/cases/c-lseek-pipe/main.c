/* Blocks through a pipe. The sick twin asks for the position before each; the cured one remembers that there is
 * none. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int seekable = -1;
static void note_position(int fd)
{
    if (seekable == 0) return;
    off_t at = lseek(fd, 0, SEEK_CUR);
#ifdef CURED
    seekable = at >= 0;
#else
    (void)at;
#endif
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, p[2];
    long got = 0;
    static char buf[16384];
    if (pipe(p)) return 1;
    for (int i = 0; i < n; i++) {
        if (write(p[1], buf, sizeof buf) != sizeof buf) return 1;
        note_position(p[0]);
        got += read(p[0], buf, sizeof buf);
    }
    printf("%ld\n", got);
    return 0;
}
