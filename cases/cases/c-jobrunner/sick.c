/* minijobs: runs a list of jobs, at most WIDTH at a time, and sums what they return */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WIDTH 3
#define JOBS 12

struct slot { pid_t pid; int job; };

static struct slot slot[WIDTH];
static int result[JOBS], running;

static void child(int job)
{
    /* stands for a download: mostly waits */
    struct timespec t = { 0, 60000000L + job % 4 * 15000000L };
    nanosleep(&t, NULL);
    _exit(job * 7 % 23);
}

static void start(int job)
{
    for (int i = 0; i < WIDTH; i++)
        if (!slot[i].pid) {
            slot[i].job = job;
            slot[i].pid = fork();
            if (slot[i].pid == 0)
                child(job);
            running++;
            return;
        }
}

static void finish(int i, int st)
{
    result[slot[i].job] = WEXITSTATUS(st);
    slot[i].pid = 0;
    running--;
}

static void reap(void)
{
    int st;
    int before = running;
    for (;;) {
        for (int i = 0; i < WIDTH; i++)
            if (slot[i].pid && waitpid(slot[i].pid, &st, WNOHANG) > 0)
                finish(i, st);
        if (running < before)
            return;
        usleep(500);
    }
}

int main(void)
{
    for (int j = 0; j < JOBS; j++) {
        if (running == WIDTH)
            reap();
        start(j);
    }
    while (running)
        reap();
    for (int j = 0; j < JOBS; j++)
        printf("job %d: %d\n", j, result[j]);
    return 0;
}
