/* scrub: reads a file's blocks by io_uring and checks their sums */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH 32
#define BLOCK 4096
#define BLOCKS 16384

static int ring, fd, queued;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe *sqes;
static struct io_uring_cqe *cqes;
static unsigned char buf[DEPTH][BLOCK];
static unsigned long sum;

static void setup(void)
{
    struct io_uring_params p = { 0 };
    ring = syscall(SYS_io_uring_setup, DEPTH, &p);
    if (ring < 0) { perror("io_uring_setup"); exit(1); }
    char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof *cqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    sqes = mmap(NULL, p.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    sq_tail = (unsigned *)(sq + p.sq_off.tail), sq_mask = (unsigned *)(sq + p.sq_off.ring_mask), sq_array = (unsigned *)(sq + p.sq_off.array);
    cq_head = (unsigned *)(cq + p.cq_off.head), cq_tail = (unsigned *)(cq + p.cq_off.tail), cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
    cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
}

static void queue(unsigned slot, unsigned block)
{
    unsigned i = *sq_tail & *sq_mask;
    sqes[i] = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = fd, .addr = (unsigned long)buf[slot],
                                     .len = BLOCK, .off = (unsigned long)block * BLOCK, .user_data = slot };
    sq_array[i] = i;
    __atomic_store_n(sq_tail, *sq_tail + 1, __ATOMIC_RELEASE);
    queued++;
}

static void enter(int n)
{
    if (syscall(SYS_io_uring_enter, ring, n, n, IORING_ENTER_GETEVENTS, NULL, 0) != n) { perror("io_uring_enter"); exit(1); }
    for (; *cq_head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE); __atomic_store_n(cq_head, *cq_head + 1, __ATOMIC_RELEASE)) {
        struct io_uring_cqe *c = &cqes[*cq_head & *cq_mask];
        unsigned long h = 0;
        for (int i = 0; i < c->res; i++)
            h = h * 31 + buf[c->user_data][i];
        sum += h;
    }
    queued = 0;
}

int main(void)
{
    fd = open("scrub.img", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    unlink("scrub.img");
    for (int b = 0; b < BLOCKS; b++) {
        memset(buf[0], b * 37, BLOCK);
        if (write(fd, buf[0], BLOCK) != BLOCK) return 1;
    }
    setup();
    for (unsigned b = 0; b < BLOCKS; b++) {
        queue(b % DEPTH, b);
        if (queued == DEPTH)
            enter(DEPTH);
    }
    printf("%d blocks, sum %lx\n", BLOCKS, sum);
    return 0;
}
