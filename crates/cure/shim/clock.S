/* syscall(SYS_clock_gettime, …) and its elder siblings by the C library's functions, which read
 * the clock through the vDSO and give what the kernel would. Clocks that the vDSO does not serve,
 * and calls without a place for the answer, go on as they are. Facts: clock_gettime(2), vdso(7). */

#define SYS_gettimeofday 96
#define SYS_time 201
#define SYS_clock_gettime 228
/* REALTIME, MONOTONIC, MONOTONIC_RAW, both _COARSE, BOOTTIME, TAI: bits of their ids. */
#define SERVED 0x8f3
#define LAST_SERVED 11

        .text
        .globl  syscall
        .type   syscall, @function
        .balign 16
syscall:
        .cfi_startproc
        endbr64
        cmpq    $SYS_clock_gettime, %rdi
        jne     1f
        cmpl    $LAST_SERVED, %esi
        ja      .Lpass
        movl    $SERVED, %eax
        btl     %esi, %eax
        jnc     .Lpass
        testq   %rdx, %rdx
        jz      .Lpass
        movl    %esi, %edi
        movq    %rdx, %rsi
        jmp     *clock_gettime@GOTPCREL(%rip)
1:      cmpq    $SYS_gettimeofday, %rdi
        jne     2f
        testq   %rsi, %rsi
        jz      .Lpass
        /* The C library's function fills no time zone in, the kernel does. */
        testq   %rdx, %rdx
        jnz     .Lpass
        movq    %rsi, %rdi
        xorl    %esi, %esi
        jmp     *gettimeofday@GOTPCREL(%rip)
2:      cmpq    $SYS_time, %rdi
        jne     .Lpass
        movq    %rsi, %rdi
        jmp     *time@GOTPCREL(%rip)
        .cfi_endproc
        .size   syscall, .-syscall

#include "next_syscall.inc"
