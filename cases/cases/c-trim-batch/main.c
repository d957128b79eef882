/* A batch of messages is built, added up and freed all at once. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    unsigned char *batch[40];
    unsigned long sum = 0;
#ifdef CURED
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_TOP_PAD, 16 << 20);
#endif
    for (int round = 0, rounds = argc > 1 ? atoi(argv[1]) : 1; round < rounds; round++) {
        for (int i = 0; i < 40; i++) {
            batch[i] = malloc(100 << 10);
            memset(batch[i], round + i, 3000);
        }
        for (int i = 0; i < 40; i++)
            for (int at = 0; at < 3000; at++) sum += batch[i][at];
        for (int i = 39; i >= 0; i--) free(batch[i]);
    }
    printf("%lu\n", sum);
    return 0;
}
