/* A store of objects by hash: each is looked for in its folder before it is kept. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2000;
    char dir[] = "/dev/shm/storeXXXXXX", path[100];
    if (!mkdtemp(dir)) return 1;
    int kept = 0;
    for (int i = 0; i < 256; i++) {
        snprintf(path, sizeof path, "%s/%02x", dir, i);
        mkdir(path, 0700);
    }
    for (unsigned i = 0; i < (unsigned)n; i++) {
        unsigned hash = i * 2654435761u;
        snprintf(path, sizeof path, "%s/%02x/%06x", dir, hash >> 24, hash & 0xffffff);
        if (access(path, F_OK) == 0) continue;
        kept++;
    }
    for (int i = 0; i < 256; i++) {
        snprintf(path, sizeof path, "%s/%02x", dir, i);
        rmdir(path);
    }
    rmdir(dir);
    printf("%d\n", kept);
    return 0;
}
