/* Finds the places of calls, and sends some calls whole: a part of count.c. */

struct rule_key {
    u64 space;
    u64 address;
};

/* A thread has mapped code. */
struct mapping {
    u64 space;
    u32 tid;
    u32 unused;
};

/* What may still be sampled: rows up to whose number each place has one of its own, first stacks of such rows, and windows,
 * by the highest bit of the call's number in its row. */
struct allowance {
    u64 rows;
    u64 stacks;
    u32 windows[BUCKETS];
};

/* What is copied of a call's memory: see hooks/src/layout/capture.rs. */
struct capture {
    u8 at_entry[6], at_return[6];
    u8 descriptor;  /* argument that is one, from 1 */
    u8 flags;
    u8 first_at_entry, first_at_return;  /* the first argument whose memory is copied */
};
#define CHANGES_ANY 1
#define NAMES_OBJECT 4
#define OPENS 8
#define CLOSES 16
#define STRING 0xff
#define UNITS 0x3f
#define BOUNDED 0x40

/* A sampled call: its stack, then its entry, then its return. */
enum sampled { ITS_STACK = 1, ITS_ENTRY, ITS_RETURN };
/* Flags of a sample. */
#define IS_UNKNOWN 1   /* a rule is missing */
#define OPENS_WINDOW 2
#define IN_WINDOW 4
#define ENDS_WINDOW 8
#define IS_SAMPLED 16  /* of a return: the call's entry was sent */
#define IS_LONG 32
#define IS_OPEN 64

struct piece {
    u32 argument;
    u32 bytes;
    u8 data[PIECE];
};

struct sample {
    u64 at;   /* time of the entry */
    u64 image, space, place;
    u64 nth;  /* of the call in its row; at its return what `took` is at its entry */
    u32 kind, flags, number, depth;
    u32 tid, process;
    s64 result;
    u64 took;  /* at the entry: number of the call in its thread */
    u64 waited;
    u64 changes;  /* of the descriptor: differs if it may be another file */
    u64 arguments[6];
    u32 pieces;
    u32 size;     /* bytes of the stack; of an entry: number of calls for which it stands among those that name an object */
    union {
        struct piece piece[PIECES];
        struct {
            u64 registers[34];
            u8 stack_bytes[STACK];
        };
    };
};
#define SAMPLE 152

INLINE void tell_mapped(u64 space, u32 tid)
{
    struct mapping mapping = { space, tid, 0 };
    if (settings.samples && ring_output(&mapped, &mapping, sizeof mapping, 0))
        ADD(no_sample, 1);
}

/* Returns a number that changes when a descriptor of a process may have become another file; 0xffffffff stands for all
 * its descriptors. Several descriptors may share one. */
INLINE u32 *changes_of(u64 image, u32 descriptor)
{
    u32 at = (((u32)image * 0x9e3779b1u) ^ (descriptor * 0x85ebca6bu)) >> 16;
    return map_lookup(&changes, &at);
}

INLINE void change(u64 image, u32 descriptor)
{
    u32 *number = changes_of(image, descriptor);
    if (number)
        __sync_fetch_and_add(number, 1);
}

INLINE u64 changes_so_far(u64 image, u32 descriptor)
{
    u32 *own = changes_of(image, descriptor), *all = changes_of(image, NONE);
    return own && all ? (u64)*own + *all : 0;
}

INLINE struct capture *capture_of(u32 number)
{
    return map_lookup(&captures, &number);
}

INLINE u64 argument(u64 *context, u32 which)
{
    u64 word = 0;
    read_kernel(&word, sizeof word, (void *)(context[0] + settings.argument_at[which]));
    return word;
}

/* Keeps the compiler from what it knows of a number, so that a bound that follows stays in the code for the verifier. */
#define FORGET(number) asm volatile("" : "+r"(number))

INLINE u64 sent_argument(struct sample *s, u64 which)
{
    FORGET(which);
    which &= 7;
    return which < 6 ? *(u64 *)((u8 *)s->arguments + 8 * which) : 0;
}

/* Finds the place of a call. Returns IS_UNKNOWN if a rule is missing, IS_OPEN if the place is open. Numbers that differ by the way through the program are
 * left in maps: there the verifier does not know them, and so it need not follow each way to the end. */
INLINE u32 find_place(u64 *context, struct slot *slot)
{
    u64 words[4];
    if (read_kernel(words, sizeof words, (void *)(context[0] + settings.place_at)))
        return 0;
    u64 sp = words[settings.sp_word & 3];
    struct rule_key key = { slot->space, words[settings.ip_word & 3] };
    u64 hash = key.address * 0x9e3779b97f4a7c15ull;
    for (int i = 0; i < DEEPEST; i++) {
        slot->place = hash;
        slot->depth = i + 1;
        u32 *rule = map_lookup(&rules, &key);
        if (!rule)
            return IS_UNKNOWN;
        if (*rule & LAST)
            return *rule & OPEN ? IS_OPEN : 0;
        sp += *rule;
        if (read_user(&key.address, sizeof key.address, (void *)sp))
            return 0;
        sp += 8;
        hash = ((hash ^ hash >> 29) + key.address) * 0x9e3779b97f4a7c15ull;
    }
    return 0;
}

/* Returns the number of a row's calls on all processors. */
INLINE u64 calls_of(struct row_key key)
{
    u64 calls = 0;
    for (u32 i = 0; i < PROCESSORS; i++) {
        if (i >= settings.processors)
            break;
        key.processor = i;
        struct row *row = map_lookup(&rows, &key);
        if (row)
            calls += row->calls;
    }
    return calls;
}

/* Draws the number of the call at which a row is sampled after its `n`th: one in each octave, and from the 32nd on one in
 * each half of an octave. */
INLINE u64 draw_after(u64 n)
{
    u32 octave = log2_of(n | 1);
    u64 size = octave < 5 ? 1ull << octave : 1ull << (octave - 1);
    u64 from = (n & ~(size - 1)) + size;
    if (from >> (octave + 1) && octave >= 4)
        size = from >> 1;
    return from + ((((u64)random_number() << 32) | random_number()) & (size - 1));
}

/* Copies the memory to which a call's arguments point. */
INLINE void copy_memory(struct sample *s, const u8 *how, u32 first, int is_return)
{
    for (u32 i = 0; i < 6; i++) {
        u32 what = how[i];
        u64 from = s->arguments[i], most = PIECE;
        /* Arguments before the first take places that later ones fill. */
        u64 at = i - first;
        FORGET(at);
        at &= 7;
        if (at >= PIECES)
            continue;
        struct piece *piece = &s->piece[at];
        piece->argument = i;
        piece->bytes = 0;
        if (!what || !from)
            continue;
        if (what == STRING) {
            /* A string that was cut gets a zero at its end, which is not the program's. */
            long bytes = read_user_string(piece->data, PIECE, (void *)from);
            piece->bytes = bytes < 0 ? 0 : bytes >= PIECE ? PIECE - 1 : bytes;
        } else {
            most = (what & UNITS) * 8;
            u64 bound = is_return ? (u64)s->result : i < 5 ? s->arguments[i + 1] : 0;
            if (what & BOUNDED && bound < most)
                most = bound;
            if (most > PIECE)
                most = PIECE;
            if (read_user(piece->data, (u32)most, (void *)from)) {
                u64 rest = PAGE - (from & (PAGE - 1));
                if (rest < most)
                    most = rest;
                if (most > PIECE || read_user(piece->data, (u32)most, (void *)from))
                    most = 0;
            }
            piece->bytes = (u32)most;
        }
        s->pieces = at + 1;
    }
}

INLINE void send(struct sample *s, u64 bytes, u64 flags)
{
    if (ring_output(&samples, s, bytes, flags))
        ADD(no_sample, 1);
}

INLINE void send_call(struct sample *s, u64 flags)
{
    u64 pieces = s->pieces;
    if (pieces > PIECES)
        return;
    send(s, SAMPLE + pieces * sizeof(struct piece), flags);
}

/* Sends a thread's registers and the part of its stack in which its callers are. */
INLINE void send_stack(u64 *context, struct sample *s)
{
    u64 sp = 0, at = 0;
    s->kind = ITS_STACK;
    if (read_kernel(s->registers, settings.registers, (void *)context[0])
        || read_kernel(&sp, sizeof sp, (void *)(context[0] + settings.place_at + 8 * settings.sp_word)))
        return;
    u64 first = PAGE - (sp & (PAGE - 1));
    if (first > PAGE || read_user(s->stack_bytes, (u32)first, (void *)sp))
        first = 0;
    at = first;
    for (int i = 0; i < 2 && at; i++) {
        if (at > PAGE * (1 + i) || read_user(s->stack_bytes + at, PAGE, (void *)(sp + at)))
            break;
        at += PAGE;
    }
    s->size = (u32)at;
    u64 bytes = SAMPLE + sizeof s->registers + at;
    if (bytes <= sizeof *s)
        send(s, bytes, s->flags & IS_UNKNOWN ? 0 : NO_WAKEUP);
}

/* Finds the place of a call that begins, and sends the call if it is to be sampled. */
INLINE void begin_call(u64 *context, struct slot *slot, u32 number)
{
    u64 nth = 0;
    slot->found = find_place(context, slot);
    slot->wants = 0;
    u32 flags = slot->found;
    u64 place = slot->place;
    struct row_key key = { slot->image, place, number, processor() };
    if (flags || slot->known != number || slot->known_place != place || !slot->until) {
        struct row *row = map_lookup(&rows, &key);
        slot->known = number;
        slot->known_place = place;
        slot->until = 0;
        if (!row) {
            u32 zero = 0;
            struct allowance *allowed = map_lookup(&allowance, &zero);
            struct totals *t = all();
            if (allowed && t && allowed->stacks && t->rows < allowed->rows) {
                allowed->stacks -= 1;
                slot->wants = MUST_HAVE_STACK;
            } else {
                /* Too many short programs for their places to be learned: the call counts without one. */
                slot->place = 0;
                place = 0;
                key.place = 0;
                slot->found = 0;
            }
        } else {
            u64 next = row->calls + 1;
            if (next >= row->due) {
                row->due = draw_after(next);
                slot->wants = WANTS_STACK;
            }
            u64 left = row->due - next - 1;
            slot->until = left > 0xffffffff ? 0xffffffff : left;
            if (flags && next < UNKNOWN)
                slot->wants = MUST_HAVE_STACK;
        }
    } else {
        slot->until -= 1;
    }
    struct capture *capture = capture_of(number);
    if (!capture)
        return;
    u32 stands_for = 0, wants_stack = slot->wants;
    if (capture->flags & NAMES_OBJECT) {
        slot->named += 1;
        u32 octave = log2_of(slot->named | 1);
        stands_for = octave < ALL_BITS ? 1 : 1u << ((octave - NAMED_BITS) & 31);
        if (random_number() & (stands_for - 1)) {
            stands_for = 0;
        } else if (ring_query(&samples, UNREAD_BYTES) > MOST_UNREAD) {
            stands_for = 0;
            ADD(no_sample, 1);
        }
    }
    if (!wants_stack && !slot->window && !stands_for)
        return;
    if (wants_stack && !slot->window && ring_query(&samples, UNREAD_BYTES) > MOST_UNREAD_OF_STACKS) {
        ADD(no_sample, 1);
        return;
    }
    u64 calls = calls_of(key);
    nth = calls + 1;
    if (!slot->window && wants_stack) {
        u32 zero = 0, octave = log2_of(nth);
        struct allowance *allowed = map_lookup(&allowance, &zero);
        if (octave >= BUCKETS)
            octave = BUCKETS - 1;
        if (allowed && allowed->windows[octave]) {
            allowed->windows[octave] -= 1;
            slot->window = WINDOW;
            slot->found |= OPENS_WINDOW;
        } else {
            ADD(refused, 1);
            /* The stack of a place that is not known yet is sent in any case. */
            if (wants_stack != MUST_HAVE_STACK)
                wants_stack = 0;
            slot->wants = wants_stack;
            if (!wants_stack && !stands_for)
                return;
        }
    }
    u32 own = key.processor;
    struct sample *s = map_lookup(&scratch, &own);
    if (!s)
        return;
    u64 who = pid_and_tid();
    s->at = clock_ns();
    s->image = slot->image;
    s->space = slot->space;
    s->place = place;
    s->nth = nth;
    s->flags = slot->found | (slot->window ? IN_WINDOW : 0);
    s->number = number;
    s->depth = slot->depth;
    s->tid = (u32)who;
    s->process = who >> 32;
    s->result = 0;
    s->waited = 0;
    s->took = slot->entered;
    if (slot->wants)
        send_stack(context, s);
    s->kind = ITS_ENTRY;
    s->size = stands_for;
    for (u32 i = 0; i < 6; i++)
        s->arguments[i] = argument(context, i);
    s->changes = 0;
    u32 descriptor = capture->descriptor;
    if (descriptor)
        s->changes = changes_so_far(slot->image, (u32)sent_argument(s, descriptor - 1));
    s->pieces = 0;
    slot->is_sampled = 1;
    copy_memory(s, capture->at_entry, capture->first_at_entry, 0);
    send_call(s, s->flags & OPENS_WINDOW ? 0 : NO_WAKEUP);
}

/* Notes what a call that ends has done to descriptors, and sends its end if it was sampled or took long. */
INLINE void end_call(u64 *context, struct slot *slot, u32 number, u64 image, s64 result, u64 ns)
{
    struct capture *capture = capture_of(number);
    if (!capture)
        return;
    if (number == settings.mmap && argument(context, 2) & PROT_EXEC)
        tell_mapped(slot->space, (u32)pid_and_tid());
    if (capture->flags & CHANGES_ANY)
        change(image, NONE);
    if (capture->flags & OPENS && result >= 0)
        change(image, (u32)result);
    if (capture->flags & CLOSES)
        change(image, (u32)argument(context, 0));
    u32 flags = slot->is_sampled ? IS_SAMPLED : 0;
    if (ns >= LONG_NS && slot->waited)
        flags |= IS_LONG;
    if (slot->is_sampled && slot->window) {
        slot->window -= 1;
        flags |= slot->window ? IN_WINDOW : IN_WINDOW | ENDS_WINDOW;
    }
    slot->is_sampled = 0;
    if (!flags)
        return;
    u32 own = processor();
    struct sample *s = map_lookup(&scratch, &own);
    if (!s)
        return;
    u64 who = pid_and_tid();
    s->at = slot->since;
    s->image = image;
    s->space = slot->space;
    s->place = slot->place;
    s->nth = slot->entered;
    s->kind = ITS_RETURN;
    s->flags = flags;
    s->number = number;
    s->depth = 0;
    s->tid = (u32)who;
    s->process = who >> 32;
    s->result = result;
    s->took = ns;
    s->waited = slot->waited;
    for (u32 i = 0; i < 6; i++)
        s->arguments[i] = argument(context, i);
    u32 descriptor = capture->descriptor;
    s->changes = 0;
    if (capture->flags & OPENS)
        s->changes = changes_so_far(image, (u32)result);
    else if (descriptor)
        s->changes = changes_so_far(image, (u32)sent_argument(s, descriptor - 1));
    s->pieces = 0;
    /* A call that failed may have written nothing. */
    if (s->flags & IS_SAMPLED && !(s->result < 0 && s->result >= -MOST_ERRNO))
        copy_memory(s, capture->at_return, capture->first_at_return, 1);
    send_call(s, s->flags & ENDS_WINDOW ? 0 : NO_WAKEUP);
}
