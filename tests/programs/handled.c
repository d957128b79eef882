/* Unwinds its own stack, by GCC's unwinder, in a handler that is run at once, prints how deep it
 * is, and then waits for a line, to be signalled from outside. For musl, whose signal's return
 * unwinders know by its bytes. */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

struct found {
    unsigned long long flags;
    void *start, *end, *map, *eh_frame;
};

struct asked {
    char *pc;
    struct found *found;
};

static int in_object(struct dl_phdr_info *info, size_t size, void *with)
{
    struct asked *asked = with;
    char *header = 0, *start = 0, *end = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        char *at = (char *)info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_GNU_EH_FRAME)
            header = at;
        if (p->p_type == PT_LOAD && asked->pc >= at && asked->pc < at + p->p_memsz)
            start = at, end = at + p->p_memsz;
    }
    if (!header || !start)
        return 0;
    asked->found->start = start;
    asked->found->end = end;
    asked->found->eh_frame = header;
    return 1;
}

/* glibc has it, and GCC's library as it is built for glibc asks for it. */
int _dl_find_object(void *pc, struct found *found)
{
    struct asked asked = {pc, found};
    memset(found, 0, sizeof *found);
    return dl_iterate_phdr(in_object, &asked) ? 0 : -1;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *depth)
{
    return _Unwind_GetIP(context) && ++*(int *)depth > 60 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static volatile int depth;

__attribute__((noinline)) void handler(int signal)
{
    int n = 0;
    (void)signal;
    _Unwind_Backtrace(frame, &n);
    depth = n;
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    char line[16];
    sigaction(SIGUSR1, &action, 0);
    for (int i = 0; i < 20; i++) {
        raise(SIGUSR1);
        printf("%d ", depth);
    }
    printf("\nready %d\n", getpid());
    fflush(stdout);
    return read(0, line, sizeof line) > 0 ? 6 : 1;
}
