/* Makes a system call of one argument without the C library. It is a macro so that the line is its caller's. */
#if defined(__aarch64__)
#define CALL_DIRECTLY(number, argument)                                                                                        \
	({                                                                                                                     \
		register long x8 __asm__("x8") = (number);                                                                     \
		register long x0 __asm__("x0") = (argument);                                                                   \
		__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8) : "memory");                                                    \
		x0;                                                                                                            \
	})
#else
#define CALL_DIRECTLY(number, argument)                                                                                        \
	({                                                                                                                     \
		long result;                                                                                                   \
		__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument) : "rcx", "r11", "memory");              \
		result;                                                                                                        \
	})
#endif
