/* Lists the sections of object files: their headers in one place, their names in another. The sick twin asks for each
   header and each name by a read of its own. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { SECTIONS = 40, HEADER = 64, NAMES = 8192, NAME = 24 };
static char table[SECTIONS * HEADER], names[SECTIONS * NAME];

static void make(int fd)
{
    for (int n = 0; n < SECTIONS; n++) {
        char header[HEADER] = {n}, name[NAME] = {0};
        snprintf(name, sizeof name, ".section.%d", n);
        pwrite(fd, header, HEADER, n * HEADER);
        pwrite(fd, name, NAME, NAMES + n * NAME);
    }
}

static long list(int fd)
{
    long sum = 0;
#ifdef CURED
    if (pread(fd, table, sizeof table, 0) != sizeof table || pread(fd, names, sizeof names, NAMES) != sizeof names)
        return -1;
#endif
    for (int n = 0; n < SECTIONS; n++) {
        char *header = table + n * HEADER, *name = names + n * NAME;
#ifndef CURED
        if (pread(fd, header, HEADER, n * HEADER) != HEADER || pread(fd, name, NAME, NAMES + n * NAME) != NAME)
            return -1;
#endif
        sum += header[0] + (long)strlen(name);
    }
    return sum;
}

int main(int argc, char **argv)
{
    int files = argc > 1 ? atoi(argv[1]) : 300;
    long sum = 0;
    char path[] = "/tmp/objectXXXXXX";
    int made = mkstemp(path);
    make(made);
    close(made);
    for (int n = 0; n < files; n++) {
        int fd = open(path, O_RDONLY);
        sum += list(fd);
        close(fd);
    }
    unlink(path);
    printf("%ld\n", sum);
    return 0;
}
