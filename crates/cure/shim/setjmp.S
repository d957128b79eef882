/* sigsetjmp and the function setjmp without the signal mask: both are _setjmp, which writes into
 * the buffer that no mask was saved, so that siglongjmp restores none. glibc's header makes
 * __sigsetjmp of sigsetjmp; musl exports sigsetjmp itself.
 *
 * A jump, not a call: what is saved is the caller's frame. */

        .text
        .globl  __sigsetjmp
        .type   __sigsetjmp, @function
        .globl  sigsetjmp
        .type   sigsetjmp, @function
        .globl  setjmp
        .type   setjmp, @function
        .balign 16
__sigsetjmp:
sigsetjmp:
setjmp:
        .cfi_startproc
        endbr64
        jmp     *_setjmp@GOTPCREL(%rip)
        .cfi_endproc
        .size   __sigsetjmp, .-__sigsetjmp
        .size   sigsetjmp, .-sigsetjmp
        .size   setjmp, .-setjmp

#include "notes.inc"
