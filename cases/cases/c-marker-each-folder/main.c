/* Goes through folders, lists each, and looks in each for a marker that none has. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int left, seen, skipped;
static void walk(const char *path)
{
    char below[4096];
    DIR *d = opendir(path);
    if (!d || left-- <= 0) {
        if (d) closedir(d);
        return;
    }
#ifndef CURED
    snprintf(below, sizeof below, "%s/.nobackup", path);
    skipped += access(below, F_OK) == 0;
    snprintf(below, sizeof below, "%s/.nosync", path);
    skipped += access(below, F_OK) == 0;
#endif
    for (struct dirent *e; (e = readdir(d));) {
        seen++;
#ifdef CURED
        skipped += strcmp(e->d_name, ".nobackup") == 0 || strcmp(e->d_name, ".nosync") == 0;
#endif
        if (e->d_type != DT_DIR || e->d_name[0] == '.') continue;
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        walk(below);
    }
    closedir(d);
}
int main(int argc, char **argv)
{
    left = argc > 1 ? atoi(argv[1]) : 2000;
    walk("/usr/share");
    printf("%d %d\n", seen, skipped);
    return 0;
}
