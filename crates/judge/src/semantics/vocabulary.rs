//! What the tables are written in: where values of a call are found, what must hold of it, what it does.

/// Where a value of a call is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// An argument register.
    Arg(u8),
    /// An argument register's bits under a mask.
    ArgMask(u8, u64),
    /// The first so many argument registers.
    Args(u8),
    /// So many argument registers, from the first one named on, 32 bits of each.
    Words(u8, u8),
    /// An argument register and the result.
    ArgAndResult(u8),
    /// An argument register, and what another argument pointed to before the call.
    ArgAndIn(u8, u8),
    /// What an argument pointed to before the call.
    In(u8),
    /// The same where it is an absolute path; a relative one means something else each time.
    InAbsolute(u8),
    /// What an argument pointed to after the call.
    Out(u8),
    /// The same, less the bytes from..to, which change by themselves.
    OutBut(u8, usize, usize),
    /// The first so many bytes of it, whether or not all of it was read.
    OutStart(u8, usize),
    /// The same as a string, up to its NUL.
    OutStr(u8),
    /// The result.
    Result,
    /// The result's bits under a mask.
    ResultMask(u64),
    /// The system call's number: different calls ask different things.
    Call,
    /// A descriptor argument, in its present generation.
    Fd(u8),
    /// The file that a descriptor argument leads to, by its name, whatever the descriptor.
    File(u8),
    /// A path argument, relative to a descriptor argument where there is one, in its present
    /// generation.
    Path {
        /// The argument that holds the directory's descriptor.
        at: Option<u8>,
        /// The argument that points to the path.
        path: u8,
    },
    /// Nothing: the value is always the same.
    Nothing,
    /// This number.
    Const(u64),
    /// A value that nothing here tells.
    Unread,
}

/// What must hold for a line to apply. The first number is the argument's position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// The argument's low 32 bits are this.
    Is(u8, u32),
    /// The argument's low 32 bits are one of these.
    OneOf(u8, &'static [u32]),
    /// The argument's low 32 bits are none of these.
    NoneOf(u8, &'static [u32]),
    /// The pointer is NULL.
    Null(u8),
    /// The pointer is not NULL.
    NotNull(u8),
    /// One of these bits is set in the argument.
    AnyBits(u8, u32),
    /// All of these bits are set in the argument.
    AllBits(u8, u32),
    /// None of these bits is set in the argument.
    NoBits(u8, u32),
    /// The argument's low 32 bits are more than this.
    Above(u8, u32),
    /// What the argument points to is known and begins with two words of zero: no time at all.
    InZero(u8),
    /// What the argument points to is known, and nothing but zeros.
    InZeros(u8),
    /// What the argument points to is known: a `struct timespec` of a millisecond or less.
    InShort(u8),
    /// What the argument points to is known: two times, neither of which is "now".
    InTimes(u8),
    /// The argument's low 32 bits are negative.
    Negative(u8),
    /// What the argument points to is known and its first 32 bits have none of these set.
    InNoBits(u8, u32),
    /// What the argument points to is known and its first 32 bits have one of these set.
    InAnyBits(u8, u32),
    /// What the argument points to after the call is known and zero.
    OutZero(u8),
    /// It is known that the thread kept the processor.
    AtOnce,
    /// The descriptor is known to be of a pipe or an ordinary file: of bytes, not of messages or of what a device makes of them.
    OfBytes,
    /// The path is empty and the call is about the descriptor (AT_EMPTY_PATH).
    EmptyPath(u8),
}

/// How a set combines with what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The value replaces it.
    Replace,
    /// Bits are added.
    Add,
    /// Bits are taken off.
    Remove,
}

/// What a call does to state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It asks; the sources make up the answer.
    Ask(&'static [Source]),
    /// It sets.
    Set {
        /// The new value.
        value: Source,
        /// Where the call itself tells the old value.
        old: Option<Source>,
        /// How they combine.
        how: How,
        /// Bits the kernel never sets, whatever is asked.
        never: u64,
    },
    /// It does something; that it can't is an answer.
    Try,
}
