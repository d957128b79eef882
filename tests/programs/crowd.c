/* argv: 'threads', 'children' or 'execs', and how many. All threads, or all children, are there at
 * once; execs follow one another. Each makes ten getppid. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t all_there;

static void ten(void)
{
    for (int i = 0; i < 10; i++)
        getppid();
}

static void *thread(void *unused)
{
    pthread_barrier_wait(&all_there);
    ten();
    return 0;
}

static int threads(int n)
{
    pthread_t *ids = calloc(n, sizeof *ids);
    pthread_attr_t small;
    int made = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_there, 0, n);
    while (made < n && pthread_create(&ids[made], &small, thread, 0) == 0)
        made++;
    if (made < n)
        _exit(2);
    for (int i = 0; i < n; i++)
        pthread_join(ids[i], 0);
    printf("%d threads\n", made);
    return 0;
}

static int children(int n)
{
    int gate[2], made = 0, good = 0, status;
    char byte;
    if (pipe(gate))
        return 2;
    for (; made < n; made++) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            close(gate[1]);
            (void)!read(gate[0], &byte, 1);
            ten();
            _exit(made % 100);
        }
    }
    close(gate[1]);
    while (wait(&status) > 0)
        good += WIFEXITED(status);
    printf("%d children, %d good\n", made, good);
    return made != n;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 10;
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "threads"))
        return threads(n);
    if (!strcmp(argv[1], "children"))
        return children(n);
    ten();
    if (n == 0)
        return puts("end of the chain"), 0;
    char rest[16];
    snprintf(rest, sizeof rest, "%d", n - 1);
    execl("/proc/self/exe", argv[0], "execs", rest, (char *)0);
    return 3;
}
