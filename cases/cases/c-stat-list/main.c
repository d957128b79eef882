/* A list of 7,000 sources is gone through for each of several targets, and each is asked for its time each time, as
   a build tool without a memory does. CURED: each is asked once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { SOURCES = 7000 };

static long known[SOURCES];

static long changed_at(int source)
{
#ifdef CURED
    if (known[source])
        return known[source];
#endif
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/usr/share/zoneinfo/../source-%d.c", source);
    return known[source] = stat(path, &status) == 0 ? status.st_mtime : -1;
}

int main(int argc, char **argv)
{
    long newest = 0, targets = argc > 1 ? atol(argv[1]) : 5;
    for (long target = 0; target < targets; target++)
        for (int source = 0; source < SOURCES; source++)
            newest += changed_at(source);
    printf("%ld targets: %ld\n", targets, newest / targets);
    return 0;
}
