/* Records with a note that is mostly empty. The sick twin writes the note all the same; the cured one looks at
 * its length first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int put(int fd, const char *text, size_t size)
{
#ifdef CURED
    if (size == 0) return 1;
#endif
    return write(fd, text, size) == (ssize_t)size;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10000, p[2];
    long got = 0;
    static char record[16384];
    const char *notes[] = { "", "", "", "" };
    if (pipe(p)) return 1;
    for (int i = 0; i < n; i++) {
        const char *note = notes[i % 4];
        if (write(p[1], record, sizeof record) != sizeof record || !put(p[1], note, strlen(note))) return 1;
        got += read(p[0], record, sizeof record);
    }
    printf("%ld\n", got);
    return 0;
}
