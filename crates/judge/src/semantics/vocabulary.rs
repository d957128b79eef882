//! The vocabulary of the tables: the places of a call's values, conditions, and acts.

/// The place of a call's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// An argument register.
    Arg(u8),
    /// The bits of an argument register under a mask.
    ArgMask(u8, u64),
    /// The first argument registers; the number says how many.
    Args(u8),
    /// Argument registers, 32 bits of each: the position of the first, and their number.
    Words(u8, u8),
    /// An argument register and the result.
    ArgAndResult(u8),
    /// An argument register, and the bytes that another argument pointed to before the call.
    ArgAndIn(u8, u8),
    /// The bytes that an argument pointed to before the call.
    In(u8),
    /// The bytes that an argument pointed to before the call, if they are an absolute path. A
    /// relative one may mean another file each time.
    InAbsolute(u8),
    /// The bytes that an argument pointed to after the call.
    Out(u8),
    /// The bytes that an argument pointed to after the call, without the bytes from..to, which
    /// change by themselves.
    OutBut(u8, usize, usize),
    /// The first bytes that an argument pointed to after the call, by their number, even if not all
    /// of them were read.
    OutStart(u8, usize),
    /// The string that an argument pointed to after the call, up to its NUL.
    OutStr(u8),
    /// The result.
    Result,
    /// The bits of the result under a mask.
    ResultMask(u64),
    /// The system call's number: different calls ask different questions.
    Call,
    /// A descriptor argument, with its current generation.
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
    /// A constant.
    Const(u64),
    /// A value that is unknown.
    Unread,
}

/// A condition of a line. The first number is the argument's position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    /// The argument's low 32 bits equal this.
    Is(u8, u32),
    /// The argument's low 32 bits equal one of these.
    OneOf(u8, &'static [u32]),
    /// The argument's low 32 bits equal none of these.
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
    /// The argument's low 32 bits are greater than this.
    Above(u8, u32),
    /// The argument points to known bytes that begin with two words of zero, as a time of zero does.
    InZero(u8),
    /// The argument points to known bytes, all of them zero.
    InZeros(u8),
    /// The argument points to a known `struct timespec` of at most one millisecond.
    InShort(u8),
    /// The argument points to two known times, neither of which is "now".
    InTimes(u8),
    /// The argument's low 32 bits are negative.
    Negative(u8),
    /// The argument points to known bytes whose first 32 bits have none of these set.
    InNoBits(u8, u32),
    /// The argument points to known bytes whose first 32 bits have one of these set.
    InAnyBits(u8, u32),
    /// The argument points to bytes whose first 32 bits have one of these set, or are not known.
    MayHaveBits(u8, u32),
    /// The argument points to a known `struct msghdr` that has control data, such as descriptors (SCM_RIGHTS).
    InControl(u8),
    /// The argument points after the call to known bytes, all of them zero.
    OutZero(u8),
    /// The call succeeded and returned 0.
    Zero,
    /// The thread is known to have kept the processor.
    AtOnce,
    /// The descriptor is known to be a pipe or an ordinary file. It moves plain bytes, unlike a
    /// device or a socket of messages.
    OfBytes,
    /// The path is empty and the call is about the descriptor (AT_EMPTY_PATH).
    EmptyPath(u8),
}

/// The way in which a set combines its operand with the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The operand replaces the old value.
    Replace,
    /// The operand's bits are added.
    Add,
    /// The operand's bits are removed.
    Remove,
}

/// The act of a call on state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The call asks for the state; the sources make up the answer.
    Ask(&'static [Source]),
    /// The call sets the state.
    Set {
        /// The new value.
        value: Source,
        /// The place where the call itself tells the old value. [`Source::Unread`]: its success tells that the old
        /// value was another one than the new.
        old: Option<Source>,
        /// The way in which the call combines the new value with the old one.
        how: How,
        /// Bits that the kernel never sets.
        never: u64,
    },
    /// The call does something that may be refused; the refusal is an answer.
    Try,
}

/// Eight kinds of waste, as compilers know them: common subexpression, subsumed question, redundant store, dead
/// store, inverse pair, loop-invariant creation, missed coalescing, missed strength reduction.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eight {
    SameQuestion,
    Contained,
    NoChange,
    DeadStore,
    Undone,
    MadeAgain,
    InPieces,
    DearerRoad,
}

#[cfg(test)]
impl Eight {
    /// All eight, in the order of the cells of the table of shapes.
    pub(super) const ALL: [Self; 8] = [
        Self::SameQuestion,
        Self::Contained,
        Self::NoChange,
        Self::DeadStore,
        Self::Undone,
        Self::MadeAgain,
        Self::InPieces,
        Self::DearerRoad,
    ];
}
