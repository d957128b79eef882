//! Signs that a window shows. A detector is given only windows with one of its signs, since most
//! detectors look for something that few windows show.

use crate::collections::bits::bit_set;

bit_set! {
    /// A set of signs that a step or a window shows.
    Signs, SignBit:
    /// Any call.
    CALL,
    /// A call that moves bytes, or tries to.
    MOVES,
    /// A call that moves bytes at a position of the file given by an argument, or tries to.
    MOVES_AT,
    /// A call that opens a path.
    OPENS,
    /// A call that opens a path for reading which was open before.
    OPENS_AGAIN,
    /// A call that sets state.
    SETS,
    /// A call that sets the position in a file.
    SEEKS,
    /// A call that sets a file's size.
    SIZES,
    /// A call that asks for or sets flags of an open file.
    STATUS_FLAGS,
    /// A call that asks for the status of an open file.
    FILE_STATUS,
    /// A question whose answer is known.
    KNOWN,
    /// A call that asks about a path, or tries one.
    PATH,
    /// A call that asks about a path, or tries one, and finds nothing (ENOENT).
    MISSING,
    /// A question about the room of a file system.
    ROOM,
    /// A call about state from before the window.
    FROM_BEFORE,
    /// A poll that finds nothing.
    NOTHING,
    /// A call that makes a thing which can be undone.
    MAKES,
    /// A call that undoes a thing.
    ENDS,
    /// A call with a cheaper way to the same result, or one that another call makes needless.
    SLOW,
    /// A call that may lock or unlock a file.
    LOCKS,
    /// A call that may take or release a lock that the kernel holds.
    KERNEL_LOCKS,
    /// A call that may sleep until a given time.
    SLEEPS,
    /// A call that sets a timer.
    ARMS,
    /// A call that may set a value for later use.
    STORES,
    /// A call that asks a file for an attribute.
    ATTRIBUTE,
    /// A call that enters a ring (io_uring).
    ENTERS,
    /// A call that some type of file always refuses.
    IN_VAIN,
    /// A call that may apply to a range.
    RANGED,
    /// A call that may wake waiters, or wait to be woken.
    WAKES,
    /// A call that watches a path (inotify).
    WATCHES,
}
