/* getcontext, setcontext, swapcontext and the end of a context's function, as glibc has them for
 * x86-64 but for the signal mask: the mask a thread had at its first context goes into each, and
 * a context that still has it is entered without setting it.
 *
 * Source of outside facts: sys/ucontext.h (places in ucontext_t; shim.rs holds them against the
 * libc crate's), the System V ABI for x86-64 (registers a callee keeps), sigprocmask(2).
 *
 * Exactly as without us, the mask included, a context is entered that somebody else made, and
 * every one from the moment the program has itself changed the mask in one: it relies on masks.
 * Where a thread has a shadow stack (CET), glibc's own functions are taken: they know how to
 * change that as well. */

#define uc_link          8
#define uc_r8           40
#define uc_r9           48
#define uc_r12          72
#define uc_r13          80
#define uc_r14          88
#define uc_r15          96
#define uc_rdi         104
#define uc_rsi         112
#define uc_rbp         120
#define uc_rbx         128
#define uc_rdx         136
#define uc_rcx         152
#define uc_rsp         160
#define uc_rip         168
/* The old signal ABI's mask, which glibc leaves alone: what we put into uc_sigmask. */
#define uc_oldmask     208
/* The address of a page fault, which glibc leaves alone as well: our mark. */
#define uc_cr2         216
#define uc_fpregs      224
#define uc_sigmask     296
#define uc_fpregs_mem  424
#define uc_mxcsr       448

/* No address: the kernel can't have put it there. */
#define MARK 0x7379737470ff6c6c

#define SYS_rt_sigprocmask 14
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#define SIGSET_SIZE 8

        /* The mask this thread had at its first context, and whether that is known. */
        .section .tbss, "awT", @nobits
        .balign 8
        .type   known, @object
        .size   known, 16
known:  .zero   16

        .bss
        /* Whether the program has changed the mask in a context. */
        .type   relied, @object
        .size   relied, 1
relied: .zero   1

        .text

/* What is pushed and popped while the frame's address is told by rsp. */
.macro push_cfa what
        pushq   \what
        .cfi_adjust_cfa_offset 8
.endm

.macro pop_cfa where
        popq    \where
        .cfi_adjust_cfa_offset -8
.endm

/* Goes on in glibc's function where there is a shadow stack, with all arguments as they are. */
.macro elsewhere_with_shadow_stack name
        xorl    %eax, %eax
        rdsspq  %rax
#ifdef AS_IF_SHADOWED
        /* For a test on processors that have no shadow stacks. */
        movl    $1, %eax
#endif
        testq   %rax, %rax
        jnz     .Lshadow_\name
.Lours_\name:
.endm

.macro shadow name
        .cfi_startproc
.Lshadow_\name:
        leaq    .Lname_\name(%rip), %rax
        push_cfa %rdi
        push_cfa %rsi
        push_cfa %rdx
        push_cfa %rcx
        push_cfa %r8
        push_cfa %r9
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movq    %rax, %rdi
        call    systoll_next
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop_cfa %r9
        pop_cfa %r8
        pop_cfa %rcx
        pop_cfa %rdx
        pop_cfa %rsi
        pop_cfa %rdi
        testq   %rax, %rax
        jz      .Lours_\name
        movq    %rax, %r11
        /* No vector registers are handed to a function of any number of arguments. */
        xorl    %eax, %eax
        jmp     *%r11
        .cfi_endproc
        .pushsection .rodata.str1.1, "aMS", @progbits, 1
.Lname_\name:
        .string "\name"
        .popsection
.endm

/* Everything but the mask into the context at \ctx; the caller's frame is as at our first
 * instruction. */
.macro save ctx
        movq    %rbx, uc_rbx(\ctx)
        movq    %rbp, uc_rbp(\ctx)
        movq    %r12, uc_r12(\ctx)
        movq    %r13, uc_r13(\ctx)
        movq    %r14, uc_r14(\ctx)
        movq    %r15, uc_r15(\ctx)
        movq    %rdi, uc_rdi(\ctx)
        movq    %rsi, uc_rsi(\ctx)
        movq    %rdx, uc_rdx(\ctx)
        movq    %rcx, uc_rcx(\ctx)
        movq    %r8, uc_r8(\ctx)
        movq    %r9, uc_r9(\ctx)
        movq    (%rsp), %rcx
        movq    %rcx, uc_rip(\ctx)
        leaq    8(%rsp), %rcx
        movq    %rcx, uc_rsp(\ctx)
        leaq    uc_fpregs_mem(\ctx), %rcx
        movq    %rcx, uc_fpregs(\ctx)
        /* What fnstenv would write, in a quarter of its time: control and status word, and that
         * no x87 register is in use, as the ABI has it in a call. Of the last instruction's
         * address nothing is kept. */
        movq    $0, (%rcx)
        movq    $0xffff, 8(%rcx)
        movq    $0, 16(%rcx)
        fnstcw  (%rcx)
        fnstsw  4(%rcx)
        stmxcsr uc_mxcsr(\ctx)
.endm

/* The thread's first mask into rdx. Leaves rdi and rsi alone, takes rax, rcx, r10, r11. */
.macro first_mask name
        movq    known@gottpoff(%rip), %rcx
        cmpq    $0, %fs:8(%rcx)
        je      .Lask_\name
.Lasked_\name:
        movq    %fs:(%rcx), %rdx
.endm

.macro ask name
.Lask_\name:
        push_cfa %rdi
        push_cfa %rsi
        /* The place of the answer. */
        push_cfa $0
        movl    $SYS_rt_sigprocmask, %eax
        movl    $SIG_BLOCK, %edi
        xorl    %esi, %esi
        movq    %rsp, %rdx
        movl    $SIGSET_SIZE, %r10d
        syscall
        pop_cfa %rdx
        pop_cfa %rsi
        pop_cfa %rdi
        movq    known@gottpoff(%rip), %rcx
        movq    %rdx, %fs:(%rcx)
        movq    $1, %fs:8(%rcx)
        jmp     .Lasked_\name
.endm

/* The mask in rdx, ours, into the context at \ctx. Takes rax. */
.macro put_mask ctx
        movq    %rdx, uc_sigmask(\ctx)
        movq    %rdx, uc_oldmask(\ctx)
        movabsq $MARK, %rax
        movq    %rax, uc_cr2(\ctx)
.endm

/* The context at rdx becomes the running one. */
.macro enter
        movq    uc_fpregs(%rdx), %rcx
        /* fldenv takes longer than all else here, and mostly changes nothing. */
        fnstsw  %ax
        cmpw    %ax, 4(%rcx)
        jne     2f
        fnstcw  -8(%rsp)
        movzwl  -8(%rsp), %eax
        cmpw    %ax, (%rcx)
        je      3f
2:      fldenv  (%rcx)
3:      ldmxcsr uc_mxcsr(%rdx)
        .cfi_def_cfa %rdx, 0
        .cfi_offset %rbx, uc_rbx
        .cfi_offset %rbp, uc_rbp
        .cfi_offset %r12, uc_r12
        .cfi_offset %r13, uc_r13
        .cfi_offset %r14, uc_r14
        .cfi_offset %r15, uc_r15
        .cfi_offset %rsp, uc_rsp
        .cfi_offset %rip, uc_rip
        movq    uc_rsp(%rdx), %rsp
        movq    uc_rbx(%rdx), %rbx
        movq    uc_rbp(%rdx), %rbp
        movq    uc_r12(%rdx), %r12
        movq    uc_r13(%rdx), %r13
        movq    uc_r14(%rdx), %r14
        movq    uc_r15(%rdx), %r15
        pushq   uc_rip(%rdx)
        movq    uc_rdi(%rdx), %rdi
        movq    uc_rsi(%rdx), %rsi
        movq    uc_rcx(%rdx), %rcx
        movq    uc_r8(%rdx), %r8
        movq    uc_r9(%rdx), %r9
        movq    uc_rdx(%rdx), %rdx
        .cfi_endproc
        .cfi_startproc
        xorl    %eax, %eax
        ret
.endm

/* Jumps to \exact where the context at \ctx can't be entered without its mask. Takes rax. */
.macro unless_ours ctx, exact
        movabsq $MARK, %rax
        cmpq    %rax, uc_cr2(\ctx)
        jne     \exact
        movq    uc_oldmask(\ctx), %rax
        cmpq    %rax, uc_sigmask(\ctx)
        jne     .Lchanged_\exact
        cmpb    $0, relied(%rip)
        jne     \exact
.endm

/* int getcontext(ucontext_t *) */
        .globl  getcontext
        .type   getcontext, @function
        .balign 16
getcontext:
        .cfi_startproc
        endbr64
        elsewhere_with_shadow_stack getcontext
        save    %rdi
        cmpb    $0, relied(%rip)
        jne     .Lget_exact
        first_mask getcontext
        put_mask %rdi
        xorl    %eax, %eax
        ret
        ask     getcontext
.Lget_exact:
        leaq    uc_sigmask(%rdi), %rdx
        movl    $SIG_BLOCK, %edi
        xorl    %esi, %esi
        movl    $SIGSET_SIZE, %r10d
        movl    $SYS_rt_sigprocmask, %eax
        syscall
        xorl    %eax, %eax
        ret
        .cfi_endproc
        .size   getcontext, .-getcontext
        shadow  getcontext

/* int setcontext(const ucontext_t *) */
        .globl  setcontext
        .type   setcontext, @function
        .balign 16
setcontext:
        .cfi_startproc
        endbr64
        elsewhere_with_shadow_stack setcontext
        unless_ours %rdi, set_exact
        movq    %rdi, %rdx
.Lset_enter:
        enter
        .cfi_endproc
        .cfi_startproc
.Lchanged_set_exact:
        movb    $1, relied(%rip)
set_exact:
        push_cfa %rdi
        leaq    uc_sigmask(%rdi), %rsi
        movl    $SIG_SETMASK, %edi
        xorl    %edx, %edx
        movl    $SIGSET_SIZE, %r10d
        movl    $SYS_rt_sigprocmask, %eax
        syscall
        pop_cfa %rdx
        jmp     .Lset_enter
        .cfi_endproc
        .size   setcontext, .-setcontext
        shadow  setcontext

/* int swapcontext(ucontext_t *from, const ucontext_t *to) */
        .globl  swapcontext
        .type   swapcontext, @function
        .balign 16
swapcontext:
        .cfi_startproc
        endbr64
        elsewhere_with_shadow_stack swapcontext
        save    %rdi
        unless_ours %rsi, swap_exact
        first_mask swapcontext
        put_mask %rdi
        movq    %rsi, %rdx
.Lswap_enter:
        enter
        .cfi_endproc
        .cfi_startproc
        ask     swapcontext
.Lchanged_swap_exact:
        movb    $1, relied(%rip)
swap_exact:
        push_cfa %rsi
        movabsq $MARK, %rax
        cmpq    %rax, uc_cr2(%rdi)
        jne     1f
        /* What is saved here is no longer the first mask. */
        movq    $0, uc_cr2(%rdi)
1:      leaq    uc_sigmask(%rdi), %rdx
        leaq    uc_sigmask(%rsi), %rsi
        movl    $SIG_SETMASK, %edi
        movl    $SIGSET_SIZE, %r10d
        movl    $SYS_rt_sigprocmask, %eax
        syscall
        pop_cfa %rdx
        jmp     .Lswap_enter
        .cfi_endproc
        .size   swapcontext, .-swapcontext
        shadow  swapcontext

/* void makecontext(ucontext_t *, void (*)(void), int, ...) */
        .globl  makecontext
        .type   makecontext, @function
        .balign 16
makecontext:
        .cfi_startproc
        endbr64
        elsewhere_with_shadow_stack makecontext
        jmp     systoll_make
        .cfi_endproc
        .size   makecontext, .-makecontext
        shadow  makecontext

/* Where a context's function returns to: rbx is the place of its uc_link. The byte before belongs
 * to it, since unwinders look up the byte before a return address. */
        .hidden systoll_end
        .globl  systoll_end
        .type   systoll_end, @function
        .balign 16
        .cfi_startproc
        .cfi_undefined %rip
        nop
systoll_end:
        endbr64
        movq    %rbx, %rsp
        movq    (%rsp), %rdi
        andq    $-16, %rsp
        testq   %rdi, %rdi
        jz      1f
        call    setcontext@plt
        movl    %eax, %edi
1:      call    *exit@GOTPCREL(%rip)
        hlt
        .cfi_endproc
        .size   systoll_end, .-systoll_end

#include "notes.inc"
