/* Says how its libraries' and its own code is mapped, and where it may run: itself, one that it loads later,
 * and a program that it becomes. With "refuses" it first has the kernel never let anything be code that was
 * not from the beginning. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

/* Permissions, offset and name of what is mapped of files. */
static void say_mapped(void)
{
    char line[4096], rights[8], path[4096];
    unsigned long start, end, offset;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        exit(2);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &start, &end, rights, &offset, path) == 5)
            if (path[0] == '/' && strncmp(path, "/memfd:", 7) && strncmp(path, "/dev/", 5))
                printf("%lx %s %lx %s\n", end - start, rights, offset, path);
    fclose(maps);
}

static void say_processors(void)
{
    char line[4096];
    FILE *status = fopen("/proc/self/status", "r");
    if (!status)
        exit(3);
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "Cpus_allowed", 12))
            fputs(line, stdout);
    fclose(status);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "refuses") && prctl(PR_SET_MDWE, 1, 0, 0, 0))
        return 9;
    say_mapped();
    say_processors();
    /* One that makes system calls: others have nothing written over. */
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    if (!library)
        return 4;
    say_mapped();
    fflush(stdout);
    if (argc > 2)
        return 0;
    for (int i = 0; i < 20; i++) {
        int status;
        if (!fork()) {
            execl("/proc/self/exe", argv[0], "plain", "last", NULL);
            _exit(5);
        }
        if (wait(&status) < 0 || status)
            return 6;
    }
    return 0;
}
