/* Children with threads of all ages are killed in mid-call: some have only just been cloned,
 * some have lost their first thread, some are being stopped. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *calls(void *unused)
{
    for (;;)
        syscall(SYS_getppid);
    return unused;
}

static void *sleeps(void *unused)
{
    pause();
    return unused;
}

static void child(int number)
{
    pthread_t thread;
    pthread_create(&thread, 0, calls, 0);
    pthread_create(&thread, 0, sleeps, 0);
    pthread_create(&thread, 0, calls, 0);
    if (number % 3 == 0)
        pthread_exit(0);
    calls(0);
}

int main(void)
{
    int killed = 0, status;
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        if (pid == 0)
            child(i);
        usleep(500 * (i % 9));
        if (i % 4 == 1) {
            kill(pid, SIGSTOP);
            usleep(300);
        }
        kill(pid, SIGKILL);
        killed += waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    printf("%d\n", killed);
    return 0;
}
