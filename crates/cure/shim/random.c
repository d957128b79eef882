/* getrandom, getentropy, arc4random and arc4random_buf: small answers from a block that is drawn
 * from the kernel at once. The block lies in memory that the kernel empties in a forked child
 * (MADV_WIPEONFORK, Linux 4.14), each byte is handed out once and wiped, and a thread that finds
 * the block in use asks the kernel. Facts: getrandom(2), madvise(2), arc4random(3). */
#include "kernel.h"
#include <stddef.h>
#include <stdint.h>

enum { SYS_mmap = 9, SYS_munmap = 11, SYS_madvise = 28, SYS_getrandom = 318 };
enum { READ_WRITE = 1 | 2, PRIVATE_ANONYMOUS = 0x02 | 0x20, WIPE_ON_FORK = 18 };
enum { GRND_NONBLOCK = 1, EIO = 5, EINTR = 4 };
/* The kernel gives as many in one piece, whatever signals come. */
enum { BLOCK = 256, SMALL = 64, ENTROPY_MOST = 256 };

/* EMPTY is what a forked child finds. */
enum { EMPTY = 0, FILLING, FULL };

struct block {
    int taken;
    int state;
    size_t left;
    unsigned char bytes[BLOCK];
};

/* 0: none yet; NONE: there can't be one. */
static struct block *shared;
#define NONE ((struct block *)-1l)

static struct block *block(void)
{
    struct block *found = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    long made = kernel(SYS_mmap, 0, sizeof *found, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
    found = made < 0 && made > -4096 ? NONE : (struct block *)made;
    if (found != NONE && kernel(SYS_madvise, made, sizeof *found, WIPE_ON_FORK, 0, 0, 0) != 0) {
        kernel(SYS_munmap, made, sizeof *found, 0, 0, 0, 0);
        found = NONE;
    }
    struct block *other = 0;
    if (__atomic_compare_exchange_n(&shared, &other, found, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return found;
    if (found != NONE)
        kernel(SYS_munmap, made, sizeof *found, 0, 0, 0, 0);
    return other;
}

/* A signal's handler may fork at any point, so that the rest of a function runs in the child with
 * an empty block: only what still says FULL after the bytes were copied has given them, and what
 * was drawn counts only if it still says FILLING. */
static int filled(struct block *b, unsigned flags)
{
    if (__atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == FULL && b->left)
        return 1;
    __atomic_store_n(&b->state, FILLING, __ATOMIC_SEQ_CST);
    b->left = BLOCK;
    int expected = FILLING;
    return kernel(SYS_getrandom, (long)b->bytes, BLOCK, flags, 0, 0, 0) == BLOCK
        && __atomic_compare_exchange_n(&b->state, &expected, FULL, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Whether all `size` bytes came from the block. */
static int from_block(unsigned char *to, size_t size, unsigned flags)
{
    struct block *b = block();
    if (size > SMALL || b == NONE || __atomic_exchange_n(&b->taken, 1, __ATOMIC_ACQUIRE))
        return 0;
    int good = 1;
    while (good && size) {
        good = filled(b, flags);
        size_t left = b->left, n = size < left ? size : left;
        volatile unsigned char *from = b->bytes;
        for (size_t i = 0; good && i < n; i++) {
            to[i] = from[left - 1 - i];
            from[left - 1 - i] = 0;
        }
        b->left = left - n;
        good = good && __atomic_load_n(&b->state, __ATOMIC_SEQ_CST) == FULL;
        to += n;
        size -= n;
    }
    __atomic_store_n(&b->taken, 0, __ATOMIC_RELEASE);
    return good;
}

long getrandom(void *to, size_t size, unsigned flags)
{
    if (to && !(flags & ~GRND_NONBLOCK) && from_block(to, size, flags))
        return (long)size;
    return told(kernel(SYS_getrandom, (long)to, (long)size, flags, 0, 0, 0));
}

int getentropy(void *to, size_t size)
{
    if (size > ENTROPY_MOST)
        return (int)told(-EIO);
    if (to && from_block(to, size, 0))
        return 0;
    for (size_t done = 0; done < size;) {
        long n = kernel(SYS_getrandom, (long)to + (long)done, (long)(size - done), 0, 0, 0, 0);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return (int)told(n ? n : -EIO);
        done += (size_t)n;
    }
    return 0;
}

void arc4random_buf(void *to, size_t size)
{
    if (size && from_block(to, size, 0))
        return;
    for (size_t done = 0; done < size;) {
        size_t part = size - done < ENTROPY_MOST ? size - done : ENTROPY_MOST;
        long n = kernel(SYS_getrandom, (long)to + (long)done, (long)part, 0, 0, 0, 0);
        if (n > 0)
            done += (size_t)n;
        else if (n != -EINTR)
            /* As glibc: it may not fail. */
            __builtin_trap();
    }
}

uint32_t arc4random(void)
{
    uint32_t number;
    arc4random_buf(&number, sizeof number);
    return number;
}
