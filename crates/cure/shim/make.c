/* makecontext, for context.S: the first frame of a context's function, as glibc lays it out.
 * Freestanding: no header of a C library, so that one build serves glibc and musl. */
#include <stdarg.h>
#include <stddef.h>

/* The beginning of ucontext_t on x86-64 Linux. */
struct context {
    unsigned long flags;
    struct context *link;
    struct {
        void *start;
        int flags;
        size_t size;
    } stack;
    long registers[23];
};

/* Places in `registers`, from sys/ucontext.h. */
enum { R8 = 0, R9 = 1, RDI = 8, RSI = 9, RBX = 11, RDX = 12, RCX = 14, RSP = 15, RIP = 16 };

/* The first integer arguments go into registers (System V ABI, 3.2.3). */
static const unsigned char in_register[] = {RDI, RSI, RDX, RCX, R8, R9};
enum { IN_REGISTERS = sizeof in_register };

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void systoll_end(void);
HIDDEN void systoll_make(struct context *made, void (*function)(void), int argc, ...);
HIDDEN void *systoll_next(const char *name);

/* From below: the return address, arguments beyond the sixth, uc_link. A function begins with
 * rsp + 8 divisible by 16. */
void systoll_make(struct context *made, void (*function)(void), int argc, ...)
{
    size_t on_stack = argc > IN_REGISTERS ? (size_t)argc - IN_REGISTERS : 0;
    unsigned long top = (unsigned long)made->stack.start + made->stack.size;
    long *sp = (long *)(((top - (on_stack + 1) * sizeof(long)) & -16ul) - sizeof(long));
    sp[0] = (long)systoll_end;
    sp[on_stack + 1] = (long)made->link;
    made->registers[RIP] = (long)function;
    made->registers[RBX] = (long)&sp[on_stack + 1];
    made->registers[RSP] = (long)sp;
    va_list arguments;
    va_start(arguments, argc);
    for (int i = 0; i < argc; i++) {
        /* Whole words: programs hand pointers over, though the standard says int. */
        long value = va_arg(arguments, long);
        if (i < IN_REGISTERS)
            made->registers[in_register[i]] = value;
        else
            sp[1 + i - IN_REGISTERS] = value;
    }
    va_end(arguments);
}

/* From dlfcn.h; absent where a glibc before 2.34 has not loaded libdl, and that knows no shadow
 * stacks. */
extern __attribute__((weak)) void *dlsym(void *handle, const char *name);
#define RTLD_NEXT ((void *)-1l)

void *systoll_next(const char *name)
{
    return dlsym ? dlsym(RTLD_NEXT, name) : 0;
}
