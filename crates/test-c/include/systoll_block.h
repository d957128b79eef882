/* Counts the system calls of a block of code in a test, exactly, with callers: libsystoll_block.so.
 *
 *     char *why = systoll_block_begin(NULL);
 *     load("app.toml");
 *     systoll_block *block = why ? NULL : systoll_block_end();
 *
 * Counted are the calls of the thread that begins the block; other threads and children are not. It needs
 * Linux 5.11 on x86-64 with glibc, and no privileges. Link with -lsystoll_block.
 */
#ifndef SYSTOLL_BLOCK_H
#define SYSTOLL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block that has ended. */
typedef struct systoll_block systoll_block;

/* Begins a block in the calling thread; blocks may lie in each other. NULL where it has begun, else why calls can't be
 * counted here: a text for systoll_block_free_text. `python` is NULL but in the Python plugin. */
char *systoll_block_begin(const void *python);

/* Ends the calling thread's innermost block. NULL where it is in none: in another thread than the block began in,
 * or in a child that was forked in it. Else for systoll_block_free. */
systoll_block *systoll_block_end(void);

/* How often the block made the call of this name. A name stands as well for what C libraries make of it today: `open` for
 * openat. "total" is all calls but returns of signal handlers. UINT64_MAX for a name that no call has. */
uint64_t systoll_block_calls(const systoll_block *block, const char *name);

/* Why the counts are too low, for systoll_block_free_text; NULL where they are exact. */
char *systoll_block_incomplete(const systoll_block *block);

/* Who made the calls, a line each, for systoll_block_free_text: "2 x openat: fopen < load". NULL where memory is short. */
char *systoll_block_text(const systoll_block *block);

/* The counts, and the callers, as JSON, for systoll_block_free_text. */
char *systoll_block_counts(const systoll_block *block);
char *systoll_block_callers(const systoll_block *block);

/* Whether a system call of x86-64 has this name. */
bool systoll_block_is_call(const char *name);

/* Frees a block, or a text of this library; NULL is nothing. */
void systoll_block_free(systoll_block *block);
void systoll_block_free_text(char *text);

#ifdef __cplusplus
}
#endif

#endif
