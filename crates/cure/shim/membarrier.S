/* syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, …) by MEMBARRIER_CMD_PRIVATE_EXPEDITED. The
 * process registers when it starts: while it has one thread, that takes the kernel some 4 us, and
 * with several it waits for all processors, 10 ms and more. Where another constructor came first
 * (musl has an order of its own), the first call registers, when the kernel says that nobody has;
 * whatever is refused is asked as it was.
 * Facts: membarrier(2), linux/membarrier.h; ld's -z initfirst has our constructor be the first. */

#define SYS_membarrier 324
#define GLOBAL 1
#define PRIVATE_EXPEDITED 8
#define REGISTER_PRIVATE_EXPEDITED 16
#define EPERM 1

        .text
        .globl  syscall
        .type   syscall, @function
        .balign 16
syscall:
        .cfi_startproc
        endbr64
        cmpq    $SYS_membarrier, %rdi
        jne     .Lpass
        cmpl    $GLOBAL, %esi
        jne     .Lpass
        testl   %edx, %edx
        jne     .Lpass
        movl    $PRIVATE_EXPEDITED, %edi
        xorl    %esi, %esi
        xorl    %edx, %edx
        movl    $SYS_membarrier, %eax
        syscall
        testq   %rax, %rax
        jz      1f
        cmpq    $-EPERM, %rax
        jne     2f
        movl    $REGISTER_PRIVATE_EXPEDITED, %edi
        movl    $SYS_membarrier, %eax
        syscall
        testq   %rax, %rax
        jnz     2f
        movl    $PRIVATE_EXPEDITED, %edi
        movl    $SYS_membarrier, %eax
        syscall
        testq   %rax, %rax
        jnz     2f
1:      xorl    %eax, %eax
        ret
2:      movl    $SYS_membarrier, %edi
        movl    $GLOBAL, %esi
        xorl    %edx, %edx
        jmp     .Lpass
        .cfi_endproc
        .size   syscall, .-syscall

        .type   register_early, @function
        .balign 16
register_early:
        .cfi_startproc
        endbr64
        movl    $REGISTER_PRIVATE_EXPEDITED, %edi
        xorl    %esi, %esi
        xorl    %edx, %edx
        movl    $SYS_membarrier, %eax
        syscall
        ret
        .cfi_endproc
        .size   register_early, .-register_early

        .section .init_array, "aw", @init_array
        .balign 8
        .quad   register_early
        .text

#include "next_syscall.inc"
