/* Counts system calls in the kernel, for the processes that systoll watches.
 *
 * Built by ./build.sh; its object, count.o, is kept beside it, so that building systoll takes no compiler for BPF. The
 * maps are made by systoll, which knows their sizes (src/bpf/maps.rs): here they are names. The types and numbers below
 * are of the kernel's user interface (linux/bpf.h), written out so that no header decides what is built.
 *
 * Each thread that is watched has a slot. `slot_of` gives a thread's slot, and 0 to all other threads: it is the filter
 * that every call on the machine passes. Programs at tracepoints run with preemption off, so a slot, whose thread runs
 * them, and a row, whose key holds the processor, have one writer at a time: no counter of these is atomic.
 *
 * A row's calls come from one place: the return addresses from the call up to the user's own function. Where on the
 * stack each of them lies, systoll finds by the program's unwind tables, and leaves it in `rules`: the distance from the
 * stack pointer at an address of code. A place for which a rule is missing has only the addresses so far. From some
 * calls, the programs send what systoll needs to learn a rule and to show what the call was about (`struct sample`).
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

static void *(*const map_lookup)(const void *map, const void *key) = (void *)1;
static long (*const map_update)(const void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const clock_ns)(void) = (void *)5;
static u32 (*const random_number)(void) = (void *)7;
static u32 (*const processor)(void) = (void *)8;
static u64 (*const pid_and_tid)(void) = (void *)14;
static long (*const command_name)(void *to, u32 bytes) = (void *)16;
static u64 (*const current_task)(void) = (void *)35;
static long (*const map_push)(const void *map, const void *value, u64 flags) = (void *)87;
static long (*const map_pop)(const void *map, void *value) = (void *)88;
static long (*const read_user)(void *to, u32 bytes, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 bytes, const void *from) = (void *)113;
static long (*const read_user_string)(void *to, u32 bytes, const void *from) = (void *)114;
static u64 (*const ring_query)(const void *ring, u64 what) = (void *)134;
static long (*const ring_output)(const void *ring, const void *data, u64 bytes, u64 flags) = (void *)130;

#define ANY 0
#define IF_ABSENT 1
#define NO_WAKEUP 1
#define UNREAD_BYTES 0

/* Maps. */
extern char slot_of, slots, free_slots, rows, empty_row, full_rows, errors, totals, events, own_task;
extern char rules, captures, changes, allowance, scratch, samples, mapped;

/* What systoll decides or has found out when it loads the programs: constants to the kernel's verifier. */
const volatile struct {
    u32 pid_offset;   /* of the thread's number in task_struct */
    u32 timed;        /* 1 if calls are timed */
    u32 follows;      /* 1 if children are watched, too */
    u32 processors;   /* numbers of processors are lower */
    u32 samples;      /* 1 if calls are counted by place, and some are sampled */
    u32 execve, execveat, sigreturn, mmap;
    u32 number_at, mode_at;  /* in pt_regs: call number, processor's mode */
    u32 place_at;            /* four words of pt_regs, among which are the next two */
    u32 ip_word, sp_word;
    u32 registers;           /* bytes of pt_regs that are sent */
    u32 argument_at[6];      /* in pt_regs, also after the call */
    u32 mode_mask;    /* bits of it that tell which machine's calls are made */
    u32 mode;         /* those bits of code that makes the machine's own calls */
} settings SECTION(".rodata");

#define MOST_ERRNO 4095
#define NUMBERS 512
#define BUCKETS 40
#define NONE 0xffffffffu
#define TEXT 128

/* Addresses of a place, at most, and flags of a rule: the place ends here; and it does so only because the caller does
 * not lie at a constant distance. */
#define DEEPEST 10
#define LAST 0x80000000u
#define OPEN 0x40000000u
/* Calls of a window. Calls of a row that are sampled in any case while a rule is missing or the place is open. Time from which on a call's
 * wait is reported, ns. */
#define WINDOW 32
#define UNKNOWN 16
/* Calls of a thread that name an object: the first 2^ALL_BITS are all sampled, and later 2^NAMED_BITS of each octave, as
 * long as less than a part of the ring is unread. */
#define ALL_BITS 13
#define NAMED_BITS 10
#define MOST_UNREAD (5u << 20)
#define MOST_UNREAD_OF_STACKS (7u << 20)
#define LONG_NS 1000000
#define PROT_EXEC 4
/* Pieces of memory of a call, and bytes of one. Bytes of stack, at most, and of a page. Numbers of processors whose
 * counts are added up. */
#define PIECES 6
#define PIECE 256
#define STACK 12288
#define PAGE 4096
#define PROCESSORS 128

/* Flags of a slot. */
#define IS_NEW 1       /* the thread comes from a fork, of which it sees the end only */
#define AWAITS_EXEC 2  /* the thread is systoll's own until its execve */
#define EXECUTED 4     /* the thread has a new program, whose machine is not known yet */
#define INTERRUPTED 8  /* a signal has interrupted the call, and the thread may end before it is seen to return */

/* Results of calls that a signal interrupts (linux/errno.h): EINTR, and ERESTARTSYS to ERESTART_RESTARTBLOCK, which the
 * kernel turns into another call or EINTR. */
#define EINTR -4
#define FIRST_RESTARTED -512
#define LAST_RESTARTED -516

struct slot {
    u64 image;       /* of the thread's program */
    u64 call_image;  /* of the program that made the call in work */
    u64 since;       /* entry of the call in work, ns */
    u64 entered;     /* calls entered */
    u32 number;      /* of the call in work, or NONE */
    u32 tid;
    u32 flags;
    u32 generation;  /* makes images of one slot different */
    s64 result;      /* of an interrupted call */
    u64 took;        /* its time, ns; 0 if it was not timed */
    u64 waited;      /* time for which the thread was without a processor in the call in work, ns */
    u64 switched_at; /* time at which it left the processor or got it; the lowest bit is 1 if it has one. 0 before */
    u64 was_waiting; /* `waited` of an interrupted call */
    u64 space;       /* image that made the address space: a fork's child shares the rules of its parent */
    u64 place;       /* of the call in work */
    u64 known_place; /* of the call before, which has a row; this and the next are no more than a short cut */
    u32 known;       /* number of the call before */
    u32 until;       /* calls like that one until the next is sampled */
    u32 window;      /* calls that the thread's window has still to take */
    u32 is_sampled;  /* 1 if the call in work was sent, and its end is to be */
    u32 depth;       /* addresses of the place of the call in work */
    u32 named;       /* calls that ask about an object by its name */
    u32 found;       /* what find_place returned; here for the verifier, as is the next */
    u32 wants;       /* WANTS_STACK, or MUST_HAVE_STACK, of the call in work */
    u64 ran;         /* time for which it had a processor, ns, from the first time that it got one */
};
#define WANTS_STACK 1
#define MUST_HAVE_STACK 2

struct row_key {
    u64 image;
    u64 place;
    u32 number;
    u32 processor;
};

struct row {
    u64 calls, failed, unreturned, timed, bytes, elapsed, longest, shortest, waited;
    u64 histogram[BUCKETS];
    u64 due;  /* number of the call that is sampled next, or a later one */
};

struct error_key {
    u64 image;
    u64 place;
    u32 number;
    u16 errno;
    u16 processor;
};

struct totals {
    u64 entered;      /* calls of threads that have ended */
    u64 live;         /* threads */
    u64 no_slot;      /* threads for which there was no slot */
    u64 no_row;       /* calls counted without their image */
    u64 no_error;     /* errors counted without their errno */
    u64 no_notice;    /* events that found no room */
    u64 foreign;      /* programs of another machine, let go */
    u64 rows;         /* rows made */
    u64 no_sample;    /* samples that found no room */
    u64 refused;      /* windows that were not opened */
};

enum kind { STARTED = 1, TRIES_EXEC, HAS_EXECUTED, RETURNED_FROM_EXEC, ENDED, IS_FOREIGN };

struct event {
    u64 at;
    u64 image;  /* of the thread, after what the event tells */
    u64 from;   /* of the thread before, or of its parent */
    u32 kind;
    u32 tid;
    u32 parent; /* thread that made this one, or its former number */
    u32 is_process;
    u64 ran;    /* of a thread that has ended */
    char text[TEXT];
};
#define WITHOUT_TEXT 48
#define ON_PROCESSOR 1ull

INLINE struct totals *all(void)
{
    u32 zero = 0;
    return map_lookup(&totals, &zero);
}

#define ADD(field, n)                                   \
    do {                                                \
        struct totals *t = all();                       \
        if (t)                                          \
            __sync_fetch_and_add(&t->field, (u64)(n));  \
    } while (0)

INLINE struct slot *slot_at(u32 tid)
{
    u16 *number = map_lookup(&slot_of, &tid);
    if (!number || !*number)
        return 0;
    u32 at = *number;
    return map_lookup(&slots, &at);
}

INLINE void tell(struct event *event, u64 bytes, u64 flags)
{
    if (ring_output(&events, event, bytes, flags))
        ADD(no_notice, 1);
}

/* Returns the number of the highest bit, without a branch: each would double the paths that the verifier follows. */
INLINE u32 log2_of(u64 ns)
{
    ns |= ns >> 1;
    ns |= ns >> 2;
    ns |= ns >> 4;
    ns |= ns >> 8;
    ns |= ns >> 16;
    ns |= ns >> 32;
    /* All bits below are set now: the number of bits is wanted, less one. */
    ns >>= 1;
    ns -= (ns >> 1) & 0x5555555555555555ull;
    ns = (ns & 0x3333333333333333ull) + ((ns >> 2) & 0x3333333333333333ull);
    ns = (ns + (ns >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return (u32)((ns * 0x0101010101010101ull) >> 56);
}

/* Returns the row of a call. If the map is full, returns the row of the call's number alone, and sets the image to 0. */
INLINE struct row *row_of(u64 *image, u64 place, u32 number)
{
    struct row_key key = { *image, place, number, processor() };
    struct row *row = map_lookup(&rows, &key);
    if (row)
        return row;
    u32 zero = 0;
    void *empty = map_lookup(&empty_row, &zero);
    if (empty && map_update(&rows, &key, empty, IF_ABSENT) == 0) {
        ADD(rows, 1);
        row = map_lookup(&rows, &key);
        if (row)
            return row;
    }
    ADD(no_row, 1);
    *image = 0;
    u32 at = key.processor * NUMBERS + (number < NUMBERS ? number : NUMBERS - 1);
    return map_lookup(&full_rows, &at);
}

INLINE void count_error(u64 image, u64 place, u32 number, s64 result)
{
    struct error_key key = { image, place, number, (u16)-result, (u16)processor() };
    u64 *count = map_lookup(&errors, &key);
    if (count) {
        *count += 1;
        return;
    }
    u64 one = 1;
    if (map_update(&errors, &key, &one, IF_ABSENT) == 0)
        return;
    ADD(no_error, 1);
}

INLINE int count(u64 image, u64 place, u32 number, s64 result, u64 ns, u64 waited)
{
    struct row *row = row_of(&image, place, number);
    if (!row)
        return 0;
    row->calls += 1;
    if (ns) {
        row->elapsed += ns;
        row->waited += waited;
        if (ns > row->longest)
            row->longest = ns;
        if (!row->timed || ns < row->shortest)
            row->shortest = ns;
        row->timed += 1;
        u32 bucket = log2_of(ns);
        if (bucket >= BUCKETS)
            bucket = BUCKETS - 1;
        row->histogram[bucket] += 1;
    }
    /* The result of rt_sigreturn is a register of the program that the signal interrupted. */
    if (number == settings.sigreturn)
        return 0;
    if (result < 0 && result >= -MOST_ERRNO) {
        row->failed += 1;
        count_error(image, place, number, result);
    } else if (result > 0) {
        row->bytes += (u64)result;
    }
    return 0;
}

#include "sample.h"

SECTION("sys_enter") int on_enter(u64 *context)
{
    u32 tid = (u32)pid_and_tid();
    struct slot *slot = slot_at(tid);
    if (!slot)
        return 0;
    u32 number = (u32)context[1];
    u32 flags = slot->flags;
    if (flags) {
        if (flags & AWAITS_EXEC) {
            if (number != settings.execve)
                return 0;
        }
        if (flags & INTERRUPTED)
            count(slot->call_image, slot->place, slot->number, slot->result, slot->took, slot->was_waiting);
        slot->flags = 0;
    }
    slot->call_image = slot->image;
    slot->entered += 1;
    slot->number = number;
    slot->place = 0;
    slot->is_sampled = 0;
    if (settings.samples && !(flags & AWAITS_EXEC)) {
        struct capture *capture = capture_of(number);
        begin_call(context, slot, number);
        if (capture && capture->flags & CLOSES)
            change(slot->image, (u32)argument(context, 0));
    }
    if (number == settings.execve) {
        struct event event = { clock_ns(), slot->image, 0, TRIES_EXEC, tid, 0, 0, 0, {} };
        const char *name = 0;
        if (read_kernel(&name, sizeof name, (void *)(context[0] + settings.argument_at[0])) == 0
            && read_user_string(event.text, TEXT, name) > 0)
            tell(&event, sizeof event, NO_WAKEUP);
    }
    slot->waited = 0;
    slot->since = settings.timed ? clock_ns() : 0;
    return 0;
}

/* Lets a program of another machine go: its calls have other numbers. Returns 1 if it was one. */
INLINE int examine_program(u64 *context, struct slot *slot, u32 tid)
{
    struct event event = { clock_ns(), slot->image, slot->call_image, RETURNED_FROM_EXEC, tid, 0, 0, 0, {} };
    u16 mode = 0;
    u64 flags = NO_WAKEUP;
    int is_foreign = 0;
    slot->flags = 0;
    if (read_kernel(&mode, sizeof mode, (void *)(context[0] + settings.mode_at)) == 0
        && (mode & settings.mode_mask) != settings.mode) {
        is_foreign = 1;
        event.kind = IS_FOREIGN;
        flags = 0;
    }
    tell(&event, WITHOUT_TEXT, flags);
    return is_foreign;
}

/* Takes a thread's slot from it. */
INLINE void give_up(struct slot *slot, u32 tid)
{
    u16 none = 0;
    u16 *number = map_lookup(&slot_of, &tid);
    u32 at = number ? *number : 0;
    if (!at)
        return;
    map_update(&slot_of, &tid, &none, ANY);
    ADD(entered, slot->entered);
    ADD(live, -1);
    slot->entered = 0;
    slot->tid = 0;
    slot->number = NONE;
    map_push(&free_slots, &at, ANY);
}

SECTION("sys_exit") int on_exit(u64 *context)
{
    u32 tid = (u32)pid_and_tid();
    struct slot *slot = slot_at(tid);
    if (!slot)
        return 0;
    u32 number = slot->number;
    u64 image = slot->call_image, ns = slot->since ? clock_ns() - slot->since : 0;
    u32 flags = slot->flags;
    if (flags & INTERRUPTED) {
        count(image, slot->place, number, slot->result, slot->took, slot->was_waiting);
        slot->flags = flags & ~INTERRUPTED;
        number = NONE;
    }
    if (number == NONE) {
        if (flags & AWAITS_EXEC)
            return 0;
        if (flags & IS_NEW) {
            slot->flags = 0;
            return 0;
        }
        /* A seccomp filter denied the call before its entry was shown. */
        u64 denied = 0;
        if (read_kernel(&denied, sizeof denied, (void *)(context[0] + settings.number_at)) || (s64)denied < 0)
            return 0;
        number = (u32)denied;
        image = slot->image;
        ns = 0;
        slot->place = 0;
        slot->waited = 0;
        slot->is_sampled = 0;
        slot->entered += 1;
    }
    s64 result = (s64)context[1];
    int interrupted = result == EINTR || (result <= FIRST_RESTARTED && result >= LAST_RESTARTED);
    if (interrupted && number != settings.sigreturn) {
        /* It is counted when the thread goes on: one that was killed never sees the end of its call. */
        slot->number = number;
        slot->result = result;
        slot->took = ns;
        slot->was_waiting = slot->waited;
        slot->flags |= INTERRUPTED;
    } else {
        slot->number = NONE;
        count(image, slot->place, number, result, ns, slot->waited);
        if (slot->flags & EXECUTED && examine_program(context, slot, tid)) {
            ADD(foreign, 1);
            give_up(slot, tid);
            return 0;
        }
    }
    if (settings.samples)
        end_call(context, slot, number, image, result, ns);
    return 0;
}

SECTION("task_newtask") int on_fork(u64 *context)
{
    u32 parent = (u32)pid_and_tid();
    struct slot *slot = slot_at(parent);
    if (!slot)
        return 0;
    u64 clone_thread = 0x10000;
    u32 is_process = !(context[1] & clone_thread);
    if (is_process && !settings.follows)
        return 0;
    u32 tid = 0, at = 0;
    if (read_kernel(&tid, sizeof tid, (void *)(context[0] + settings.pid_offset)) || map_pop(&free_slots, &at)) {
        ADD(no_slot, 1);
        return 0;
    }
    struct slot *child = map_lookup(&slots, &at);
    if (!child)
        return 0;
    child->generation += 1;
    child->image = is_process ? (u64)child->generation << 16 | at : slot->image;
    child->call_image = child->image;
    child->since = 0;
    child->waited = 0;
    child->switched_at = 0;
    child->ran = 0;
    child->entered = 0;
    child->number = NONE;
    child->tid = tid;
    child->flags = IS_NEW;
    child->space = slot->space;
    child->known = NONE;
    child->window = 0;
    child->named = 0;
    child->is_sampled = 0;
    u16 number = at;
    if (map_update(&slot_of, &tid, &number, ANY)) {
        /* The machine's largest thread number was raised meanwhile. */
        ADD(no_slot, 1);
        map_push(&free_slots, &at, ANY);
        return 0;
    }
    ADD(live, 1);
    struct event event = { clock_ns(), child->image, slot->image, STARTED, tid, parent, is_process, 0, {} };
    tell(&event, WITHOUT_TEXT, NO_WAKEUP);
    return 0;
}

/* A thread gives the processor to another one. */
SECTION("sched_switch") int on_switch(u64 *context)
{
    u64 now = 0;
    struct slot *slot = slot_at((u32)pid_and_tid());
    if (slot) {
        now = clock_ns() & ~ON_PROCESSOR;
        if (slot->switched_at & ON_PROCESSOR)
            slot->ran += now - slot->switched_at;
        slot->switched_at = now;
    }
    u32 next = 0;
    if (read_kernel(&next, sizeof next, (void *)(context[2] + settings.pid_offset)))
        return 0;
    slot = slot_at(next);
    if (slot) {
        if (!now)
            now = clock_ns() & ~ON_PROCESSOR;
        if (slot->switched_at && !(slot->switched_at & ON_PROCESSOR))
            slot->waited += now - slot->switched_at;
        slot->switched_at = now | ON_PROCESSOR;
    }
    return 0;
}

SECTION("sched_process_exec") int on_exec(u64 *context)
{
    u32 tid = (u32)pid_and_tid(), former = (u32)context[1];
    struct slot *slot = slot_at(former);
    if (!slot)
        return 0;
    if (former != tid) {
        /* A thread has taken the place of its process's first one, which has ended. */
        u16 *number = map_lookup(&slot_of, &former);
        u16 at = number ? *number : 0, none = 0;
        map_update(&slot_of, &tid, &at, ANY);
        map_update(&slot_of, &former, &none, ANY);
        slot->tid = tid;
    }
    u64 from = slot->image;
    slot->generation += 1;
    u16 *number = map_lookup(&slot_of, &tid);
    slot->image = (u64)slot->generation << 16 | (number ? *number : 0);
    slot->flags = EXECUTED;
    slot->space = slot->image;
    slot->known = NONE;
    slot->window = 0;
    slot->is_sampled = 0;
    struct event event = { clock_ns(), slot->image, from, HAS_EXECUTED, tid, former, 1, 0, {} };
    command_name(event.text, 16);
    tell(&event, sizeof event, 0);
    tell_mapped(slot->space, tid);
    return 0;
}

SECTION("sched_process_exit") int on_end(u64 *context)
{
    u32 tid = (u32)pid_and_tid();
    struct slot *slot = slot_at(tid);
    if (!slot)
        return 0;
    struct event event = { clock_ns(), slot->image, slot->call_image, ENDED, tid, 0, 0, slot->ran, {} };
    if (slot->switched_at & ON_PROCESSOR)
        event.ran += event.at - slot->switched_at;
    if (slot->number != NONE) {
        u64 image = slot->call_image;
        struct row *row = row_of(&image, slot->place, slot->number);
        if (row)
            row->unreturned += 1;
    }
    give_up(slot, tid);
    struct totals *t = all();
    tell(&event, WITHOUT_TEXT, t && !t->live ? 0 : NO_WAKEUP);
    return 0;
}

/* Copies the beginning of the caller's task_struct, in which systoll finds where threads' numbers are. */
SECTION("learn") int on_learn(u64 *context)
{
    u32 zero = 0;
    void *to = map_lookup(&own_task, &zero);
    if (to)
        read_kernel(to, 8192, (void *)current_task());
    return 0;
}

/* The kernel lets only programs that may be used under the GPL call some of its functions; MIT's licence allows that. */
SECTION("license") char terms[] = "Dual MIT/GPL";
