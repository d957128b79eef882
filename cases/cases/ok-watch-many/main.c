/* Watches many folders, each once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500, in = inotify_init1(0), good = 0;
    char top[] = "/tmp/watchXXXXXX", path[64];
    if (!mkdtemp(top) || chdir(top)) return 1;
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%d", i);
        mkdir(path, 0700);
        good += inotify_add_watch(in, path, IN_CREATE) > 0;
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%d", i);
        rmdir(path);
    }
    rmdir(top);
    printf("%d\n", good);
    return 0;
}
