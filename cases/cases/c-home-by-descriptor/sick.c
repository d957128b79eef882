// The working directory is changed for each file, and set back by a descriptor of the old one.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static long size_of(int home, int folder, int file) {
    char path[64];
    struct stat found;
#ifdef CURED
    snprintf(path, sizeof path, "data/d%d/f%d", folder, file);
    (void)home;
    return stat(path, &found) ? 0 : found.st_size + file;
#else
    snprintf(path, sizeof path, "data/d%d", folder);
    if (chdir(path)) exit(1);
    snprintf(path, sizeof path, "f%d", file);
    long size = stat(path, &found) ? 0 : found.st_size + file;
    if (fchdir(home)) exit(1);
    return size;
#endif
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 1000, home = open(".", O_RDONLY | O_DIRECTORY);
    long sum = 0;
    for (int n = 0; n < times; n++) sum += size_of(home, n % 50, n % 2000);
    printf("%ld\n", sum);
}
