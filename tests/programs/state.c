/* What a system call leaves alone: registers, flags, the red zone, x87 and SSE state, errno. Each
 * shape of call is made many times with other values, so that first sights and hits are both met. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int wrong;

static void check(int right, const char *what)
{
    if (!right && wrong++ < 10)
        printf("changed: %s\n", what);
}

/* rbx rdx rsi rdi rbp r8 r9 r10 r12 r13 r14 r15 in and out, and whether what lies below rsp stays. */
struct state {
    uint64_t in[12], out[12], zone_in[16], zone_out[16], rax;
};

#define CALL(name, setup)                                                                             \
    __attribute__((noinline)) static void name(struct state *s)                                       \
    {                                                                                                 \
        __asm__ volatile("push %%rbp\n push %%rbx\n push %%r12\n push %%r13\n push %%r14\n push %%r15\n"       \
            "push %%rdi\n mov %%rdi, %%rax\n"                                                             \
            "mov 0(%%rax),%%rbx\n mov 8(%%rax),%%rdx\n mov 16(%%rax),%%rsi\n mov 24(%%rax),%%rdi\n"               \
            "mov 32(%%rax),%%rbp\n mov 40(%%rax),%%r8\n mov 48(%%rax),%%r9\n mov 56(%%rax),%%r10\n"               \
            "mov 64(%%rax),%%r12\n mov 72(%%rax),%%r13\n mov 80(%%rax),%%r14\n mov 88(%%rax),%%r15\n"             \
            ".set i, 0\n .rept 16\n mov 192+i*8(%%rax),%%rcx\n mov %%rcx,-128+i*8(%%rsp)\n .set i, i+1\n .endr\n" \
            setup "\n syscall\n"                                                                      \
            "mov %%rax,%%r11\n mov (%%rsp),%%rax\n mov %%r11,448(%%rax)\n"                                    \
            "mov %%rbx,96(%%rax)\n mov %%rdx,104(%%rax)\n mov %%rsi,112(%%rax)\n mov %%rdi,120(%%rax)\n"          \
            "mov %%rbp,128(%%rax)\n mov %%r8,136(%%rax)\n mov %%r9,144(%%rax)\n mov %%r10,152(%%rax)\n"           \
            "mov %%r12,160(%%rax)\n mov %%r13,168(%%rax)\n mov %%r14,176(%%rax)\n mov %%r15,184(%%rax)\n"         \
            ".set i, 0\n .rept 16\n mov -128+i*8(%%rsp),%%rcx\n mov %%rcx,320+i*8(%%rax)\n .set i, i+1\n .endr\n" \
            "pop %%rdi\n pop %%r15\n pop %%r14\n pop %%r13\n pop %%r12\n pop %%rbx\n pop %%rbp\n"                   \
            : : "D"(s) : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");              \
    }

CALL(known, "mov $110, %%eax")                      /* getppid, its number just before */
CALL(tight, "mov $55, %%eax\n lea (%%rax,%%rax), %%eax\n nop") /* a number that is computed */
CALL(wide, "mov $110, %%rax\n nopl 0(%%rax)")
CALL(unknown, "mov %%ebx, %%eax\n shr $32, %%rax\n or $0x6e, %%al") /* only known when it runs */

static void registers(void (*call)(struct state *), const char *name, int round)
{
    struct state s;
    for (int i = 0; i < 12; i++)
        s.in[i] = 0x0101010101010101ull * (i + 1) + round * 977u;
    s.in[0] &= 0xffffffff00000000ull;
    for (int i = 0; i < 16; i++)
        s.zone_in[i] = 0xfeedface00000000ull + i * 31 + round;
    call(&s);
    check(!memcmp(s.in, s.out, sizeof s.in), name);
    check(!memcmp(s.zone_in, s.zone_out, sizeof s.zone_in), "red zone");
    check(s.rax == (uint64_t)getppid(), "result");
}

/* Flags set before are those found behind. */
static void flags(uint64_t wanted)
{
    uint64_t found;
    __asm__ volatile("sub $256, %%rsp\n push %1\n popf\n mov $110, %%eax\n syscall\n pushf\n pop %0\n add $256, %%rsp\n"
                     : "=&r"(found) : "r"(wanted) : "rax", "rcx", "r11", "memory", "cc");
    check((found & 0xcd5) == (wanted & 0xcd5), "flags");
}

static void floating(int round)
{
    float in[16][4], out[16][4];
    unsigned control_in = 0x1f80 | (round & 3) << 13, control_out;
    unsigned short word_in = 0x037f ^ (round & 3) << 10, word_out;
    long double top = 1.0L / (round + 3), back;
    for (int i = 0; i < 64; i++)
        in[i / 4][i % 4] = i * 1.5f + round;
    __asm__ volatile("ldmxcsr %[ci]\n fldcw %[wi]\n fldt %[top]\n"
        "movups 0(%[in]),%%xmm0\n movups 16(%[in]),%%xmm1\n movups 96(%[in]),%%xmm6\n movups 112(%[in]),%%xmm7\n"
        "movups 128(%[in]),%%xmm8\n movups 240(%[in]),%%xmm15\n"
        "mov $110, %%eax\n syscall\n"
        "movups %%xmm0,0(%[out])\n movups %%xmm1,16(%[out])\n movups %%xmm6,96(%[out])\n movups %%xmm7,112(%[out])\n"
        "movups %%xmm8,128(%[out])\n movups %%xmm15,240(%[out])\n"
        "fstpt %[back]\n fnstcw %[wo]\n stmxcsr %[co]\n"
        : [back] "=m"(back), [wo] "=m"(word_out), [co] "=m"(control_out)
        : [ci] "m"(control_in), [wi] "m"(word_in), [top] "m"(top), [in] "r"(in), [out] "r"(out)
        : "rax", "rcx", "r11", "memory", "xmm0", "xmm1", "xmm6", "xmm7", "xmm8", "xmm15");
    unsigned plain = 0x1f80;
    unsigned short usual = 0x037f;
    __asm__ volatile("ldmxcsr %0\n fldcw %1" : : "m"(plain), "m"(usual));
    static const int used[] = {0, 1, 6, 7, 8, 15};
    for (int i = 0; i < 6; i++)
        check(!memcmp(in[used[i]], out[used[i]], 16), "SSE register");
    check(control_in == control_out && word_in == word_out && top == back, "x87 or control word");
}

int main(void)
{
    for (int round = 0; round < 3000; round++) {
        registers(known, "register (known)", round);
        registers(tight, "register (tight)", round);
        registers(wide, "register (wide)", round);
        registers(unknown, "register (unknown)", round);
        flags(0x202), flags(0x203), flags(0x646), flags(0x8d7 | 2), flags(0xa02);
        floating(round);
        errno = 7000 + round;
        check(getppid() > 0 && syscall(SYS_getppid) > 0 && errno == 7000 + round, "errno");
        check(close(-1) == -1 && errno == EBADF, "errno of a failure");
    }
    printf("%d changes\n", wrong);
    return wrong != 0;
}
