#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session { struct session *next; uint32_t id; char key[24]; uint64_t bytes; };
static struct session *table[4096], *spare;
static sigset_t dangerous;
static volatile sig_atomic_t want_stats;
static void on_usr1(int s) { (void)s; want_stats = 1; }

static void enter(void) {}
static void leave(void) {}

static uint32_t hash(const char *k) {
    uint32_t h = 2166136261u;
    for (int round = 0; round < 250; round++)
        for (const char *p = k; *p; p++) h = (h ^ (uint8_t)*p) * 16777619u;
    return h;
}

static struct session *open_session(uint32_t id) {
    struct session *s;
    char key[24];
    snprintf(key, sizeof key, "peer-%u-%u", id % 977, id);
    uint32_t h = hash(key) & 4095;
    enter();
    if ((s = spare)) spare = s->next; else s = malloc(sizeof *s);
    s->id = id; s->bytes = 0; strcpy(s->key, key);
    s->next = table[h]; table[h] = s;
    leave();
    return s;
}

static uint64_t close_session(uint32_t id) {
    char key[24];
    snprintf(key, sizeof key, "peer-%u-%u", id % 977, id);
    uint32_t h = hash(key) & 4095;
    uint64_t bytes = 0;
    enter();
    for (struct session **p = &table[h]; *p; p = &(*p)->next)
        if ((*p)->id == id) { struct session *s = *p; bytes = s->bytes; *p = s->next; s->next = spare; spare = s; break; }
    leave();
    return bytes;
}

int main(void) {
    signal(SIGUSR1, on_usr1);
    sigemptyset(&dangerous); sigaddset(&dangerous, SIGUSR1); sigaddset(&dangerous, SIGTERM);
    uint64_t total = 0;
    for (uint32_t i = 0; i < 60000; i++) {
        open_session(i)->bytes = i * 3ull;
        if (i >= 2000) total += close_session(i - 2000);
    }
    printf("%llu bytes, stats %s\n", (unsigned long long)total, want_stats ? "asked" : "not asked");
}
