/* A decoder that arms an error escape for every message. sigsetjmp(env, 1) saves the
 * signal mask each time; sigsetjmp(env, 0) (CURED) does not. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef CURED
#define SAVE_MASK 0
#else
#define SAVE_MASK 1
#endif

static sigjmp_buf escape;

static int __attribute__((noinline)) decode_varint(const unsigned char *p, const unsigned char *end)
{
    int value = 0, shift = 0;
    for (;; shift += 7) {
        if (p == end)
            siglongjmp(escape, 1);
        value |= (*p & 0x7f) << shift;
        if (!(*p++ & 0x80))
            return value;
    }
}

static int __attribute__((noinline)) decode_message(const unsigned char *p, const unsigned char *end)
{
    if (sigsetjmp(escape, SAVE_MASK))
        return -1;
    return decode_varint(p, end);
}

int main(int argc, char **argv)
{
    static const unsigned char good[] = {0xac, 0x02}, truncated[] = {0xac};
    long messages = argc > 1 ? atol(argv[1]) : 20000, sum = 0, bad = 0;
    for (long i = 0; i < messages; i++) {
        int value = i % 32 ? decode_message(good, good + 2) : decode_message(truncated, truncated + 1);
        if (value < 0)
            bad++;
        else
            sum += value;
    }
    printf("%ld, %ld malformed\n", sum, bad);
    return 0;
}
