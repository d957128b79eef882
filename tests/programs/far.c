/* Asks for the status of a list of files, gone through so many times, in so many threads. With a folder: the files
   are there, and made anew before each round; without: none of them is. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int files, rounds;
static const char *folder;

static void change(const char *path, int round)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, round + 1) != 0 || close(fd) != 0) {
        perror(path);
        exit(1);
    }
}

/* What a program does with an answer: some 20 us, in which who looks on keeps up on a busy box too. */
static void use(void)
{
    for (volatile int i = 0; i < 20000; i++)
        ;
}

static void *work(void *unused)
{
    char path[256];
    struct stat status;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < files; i++) {
            snprintf(path, sizeof path, "%s/listed-%d", folder ? folder : "/nowhere", i);
            if (folder)
                change(path, round);
            if ((stat(path, &status) == 0) != (folder != NULL))
                exit(2);
            use();
        }
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    files = atoi(argv[1]);
    rounds = atoi(argv[2]);
    int n = atoi(argv[3]);
    folder = argc > 4 ? argv[4] : NULL;
    if (n == 0)
        work(NULL);
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
