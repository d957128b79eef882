// The kernel dispatches the calls of a counting thread to ·onSigsys, which counts them and lets each be
// made by a stub: no code is written, nothing is allocated, no Go runs. See dispatch.go.

//go:build linux && amd64

#include "textflag.h"

// A stub: the program's call, then on to where the program's own instruction would have gone on. The
// kernel overwrites CX and R11 in any call, so R11 is free here. 16 bytes; init() checks that.
#define STUB(at) SYSCALL; MOVQ ·targets+(at)(SB), R11; JMP R11; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC
#define STUB4(at) STUB(at); STUB(at+8); STUB(at+16); STUB(at+24)
#define STUB16(at) STUB4(at); STUB4(at+32); STUB4(at+64); STUB4(at+96)
#define STUB64(at) STUB16(at); STUB16(at+128); STUB16(at+256); STUB16(at+384)
#define STUB256(at) STUB64(at); STUB64(at+512); STUB64(at+1024); STUB64(at+1536)

// From here calls are let through. First, 16 bytes each: what a handler returns to, in the bytes by
// which debuggers know it; a call of the handler's own.
TEXT ·stubs(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x48; BYTE $0xC7; BYTE $0xC0; BYTE $0x0F; BYTE $0x00; BYTE $0x00; BYTE $0x00; BYTE $0x0F; BYTE $0x05
	BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC
	BYTE $0x0F; BYTE $0x05; BYTE $0xC3
	BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC
	BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC; BYTE $0xCC
	STUB256(0)
	STUB256(2048)
	STUB256(4096)
	STUB256(6144)

TEXT ·stubsStart(SB), NOSPLIT, $0-8
	LEAQ ·stubs(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·handlerStart(SB), NOSPLIT, $0-8
	LEAQ ·onSigsys(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·textBounds(SB), NOSPLIT, $0-16
	LEAQ runtime·text(SB), AX
	MOVQ AX, start+0(FP)
	LEAQ runtime·etext(SB), AX
	MOVQ AX, end+8(FP)
	RET

// In a ucontext of the kernel's.
#define UC_R10 56
#define UC_DI 104
#define UC_SI 112
#define UC_BP 120
#define UC_DX 136
#define UC_AX 144
#define UC_SP 160
#define UC_IP 168
#define UC_MASK 296

// In a `log`.
#define LOG_BEYOND 4096
#define LOG_STACKS 4104
#define LOG_INCOMPLETE 4112
#define LOG_FIRST 4120
#define STACK_SIZE 112
#define MAX_STACKS 4096

#define INCOMPLETE_SITES 1
#define INCOMPLETE_ARCH 2
#define INCOMPLETE_WAITS 3

// Called by the kernel with all signals blocked: signal in DI, siginfo in SI, ucontext in DX. All
// registers may be changed: the return from the handler restores them.
TEXT ·onSigsys(SB), NOSPLIT|NOFRAME, $0-0
	CMPL 8(SI), $2 // SYS_USER_DISPATCH
	JNE  foreign
	MOVQ DX, R15
	MOVQ SI, R14
	MOVQ DI, R13

	// Which thread: asked of the kernel, since there is no thread-local storage to trust here.
	LEAQ ·stubs(SB), R12
	ADDQ $16, R12
	MOVL $186, AX // gettid
	CALL R12
	LEAQ ·threads(SB), BX
	MOVL $64, CX

thread:
	CMPQ AX, 0(BX)
	JEQ  mine
	ADDQ $24, BX
	DECL CX
	JNZ  thread
	MOVQ R13, DI
	MOVQ R14, SI
	MOVQ R15, DX

foreign:
	// Not ours: what the program had before. The runtime's own handler always is one.
	MOVQ ·previous(SB), AX
	JMP  AX

mine:
	MOVQ 16(BX), R9 // its log
	MOVL $INCOMPLETE_ARCH, R11
	CMPL 28(R14), $0xC000003E
	JNE  giveUp

	// The stub of the instruction's place: the same for the life of the process.
	MOVQ  UC_IP(R15), SI
	MOVQ  $0x9E3779B97F4A7C15, AX
	IMULQ SI, AX
	SHRQ  $54, AX
	LEAQ  ·targets(SB), R8
	MOVL  $1024, R10

probe:
	MOVQ 0(R8)(AX*8), DI
	CMPQ DI, SI
	JEQ  found
	TESTQ DI, DI
	JNZ  next
	MOVQ AX, CX
	XORL AX, AX
	LOCK
	CMPXCHGQ SI, 0(R8)(CX*8)
	JEQ  claimed
	CMPQ AX, SI
	JEQ  claimed
	MOVQ CX, AX

next:
	INCQ AX
	ANDQ $1023, AX
	DECL R10
	JNZ  probe
	MOVL $INCOMPLETE_SITES, R11
	JMP  giveUp

claimed:
	MOVQ CX, AX

found:
	SHLQ $4, AX
	LEAQ ·stubs(SB), R12
	LEAQ 32(R12)(AX*1), R12 // where the call is made

	MOVL 24(R14), AX // its number

	// Waits with a mask of their own: a handler that runs meanwhile may make calls.
	MOVL $INCOMPLETE_WAITS, R11
	CMPL AX, $130 // rt_sigsuspend
	JNE  counted
	MOVQ UC_DI(R15), CX
	TESTL $0x40000000, 0(CX)
	JNZ  giveUp

counted:
	CMPL AX, $512
	JAE  beyond
	INCQ 0(R9)(AX*8)
	JMP  stack

beyond:
	INCQ LOG_BEYOND(R9)

stack:
	MOVQ LOG_STACKS(R9), CX
	CMPQ CX, $MAX_STACKS
	JAE  answer
	INCQ LOG_STACKS(R9)
	IMULQ $STACK_SIZE, CX
	LEAQ LOG_FIRST(R9)(CX*1), DI
	MOVQ AX, 0(DI)
	MOVQ SI, 8(DI)
	XORL CX, CX
	MOVQ CX, 16(DI)

	// Go's own code keeps frame pointers. Code of C may not, and is not walked.
	CMPQ SI, ·textStart(SB)
	JB   answer
	CMPQ SI, ·textEnd(SB)
	JAE  answer
	MOVQ UC_SP(R15), R8
	MOVQ 0(R8), CX // the leaf's own return address, or a word that is none
	MOVQ CX, 16(DI)
	MOVQ UC_BP(R15), CX
	MOVL $3, R10

frame:
	// Further out on the same stack, or the end.
	CMPQ CX, R8
	JB   walked
	MOVQ CX, R11
	SUBQ R8, R11
	CMPQ R11, $65536
	JA   walked
	TESTQ $7, CX
	JNZ  walked
	MOVQ CX, R8
	MOVQ 8(CX), R11
	MOVQ R11, 0(DI)(R10*8)
	MOVQ 0(CX), CX
	INCL R10
	CMPL R10, $14
	JB   frame
	JMP  answer

walked:
	XORL CX, CX
	MOVQ CX, 0(DI)(R10*8)

answer:
	CMPL AX, $14 // rt_sigprocmask
	JEQ  mask
	CMPL AX, $13 // rt_sigaction
	JEQ  action

native:
	MOVQ R12, UC_IP(R15)
	RET

mask:
	// All as asked, but for SIGSYS: while it is blocked, a dispatched call ends the process.
	MOVQ UC_SI(R15), CX
	TESTQ CX, CX
	JZ   native
	MOVQ 0(CX), CX
	TESTL $0x40000000, CX
	JZ   native
	MOVQ UC_MASK(R15), R8
	MOVQ UC_DI(R15), R10
	CMPL R10, $1 // SIG_UNBLOCK
	JEQ  native
	CMPL R10, $0 // SIG_BLOCK
	JNE  setMask
	ORQ  R8, CX

setMask:
	MOVQ $0xFFFFFFFFBFFBFEFF, R10 // without SIGSYS, SIGKILL and SIGSTOP
	ANDQ R10, CX
	MOVQ CX, UC_MASK(R15)
	MOVQ UC_DX(R15), CX
	TESTQ CX, CX
	JZ   done
	MOVQ R8, 0(CX)

done:
	XORL CX, CX
	MOVQ CX, UC_AX(R15)
	RET

action:
	MOVQ UC_SI(R15), CX
	TESTQ CX, CX
	JZ   native
	CMPQ UC_DI(R15), $31
	JEQ  done // SIGSYS is ours while a block counts
	MOVQ 24(CX), R8
	TESTL $0x40000000, R8
	JZ   native
	MOVQ $~0x40000000, R10
	ANDQ R10, R8
	SUBQ $32, SP
	MOVQ R8, 24(SP)
	MOVQ 0(CX), R8
	MOVQ R8, 0(SP)
	MOVQ 8(CX), R8
	MOVQ R8, 8(SP)
	MOVQ 16(CX), R8
	MOVQ R8, 16(SP)
	MOVQ UC_DI(R15), DI
	MOVQ SP, SI
	MOVQ UC_DX(R15), DX
	MOVQ UC_R10(R15), R10
	LEAQ ·stubs(SB), R12
	ADDQ $16, R12
	CALL R12
	ADDQ $32, SP
	MOVQ AX, UC_AX(R15)
	RET

giveUp:
	// From here on the kernel lets the thread's calls through, this one first.
	MOVQ R11, LOG_INCOMPLETE(R9)
	MOVB $0, 8(BX)
	SUBQ $2, UC_IP(R15)
	RET
