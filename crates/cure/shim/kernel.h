/* System calls without a C library. */
#ifndef KERNEL_H
#define KERNEL_H

/* What the kernel returns: a result, or an errno made negative. */
static inline long kernel(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

int *__errno_location(void);

/* The same as a C library's function returns it. */
static inline long told(long result)
{
    if (result > -4096 && result < 0) {
        *__errno_location() = (int)-result;
        return -1;
    }
    return result;
}

#endif
