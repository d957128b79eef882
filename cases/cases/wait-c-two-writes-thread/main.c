// A client whose sender thread writes requests and whose main thread waits for the answers.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int n, cured, sock;
static sem_t next;

static void *sender(void *unused) {
    for (int i = 0; i < n; i++) {
        sem_wait(&next);
        char message[12] = "head";
        memcpy(message + 4, "bodybody", 8);
        if (cured) {
            (void)!write(sock, message, 12);
        } else {
            (void)!write(sock, message, 4);
            (void)!write(sock, message + 4, 8);
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    n = atoi(argv[1]), cured = argc > 2;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&at, len) || listen(listener, 1)) return 1;
    getsockname(listener, (void *)&at, &len);
    if (!fork()) {
        int c = accept(listener, 0, 0);
        char all[12];
        while (recv(c, all, 12, MSG_WAITALL) == 12) (void)!write(c, "k", 1);
        _exit(0);
    }
    close(listener);
    sock = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sock, (void *)&at, len)) return 1;
    sem_init(&next, 0, 0);
    pthread_t t;
    pthread_create(&t, 0, sender, 0);
    int got = 0;
    for (int i = 0; i < n; i++) {
        char k;
        sem_post(&next);
        got += recv(sock, &k, 1, 0) == 1;
    }
    pthread_join(t, 0);
    printf("%d answers\n", got);
}
