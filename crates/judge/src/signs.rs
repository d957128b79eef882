//! By what windows show, whether a detector has anything to look for there: most look for what few windows hold.

/// What a step, or one of a window's, shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signs(u32);

macro_rules! signs {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The places of signs in [`Signs`].
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($name,)* }

        impl Signs {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << Place::$name as u32);)*
        }
    };
}

signs! {
    /// Any call at all.
    CALL,
    /// Bytes moved, or an attempt to.
    MOVES,
    /// The same at a place of the file that the call names.
    MOVES_AT,
    /// A path opened.
    OPENS,
    /// One that was open before, to be read.
    OPENS_AGAIN,
    /// State set.
    SETS,
    /// A file's size set.
    SIZES,
    /// Flags of an open file asked for or set.
    STATUS_FLAGS,
    /// The status of an open file asked for.
    FILE_STATUS,
    /// A question whose answer was known.
    KNOWN,
    /// A path asked about, or tried.
    PATH,
    /// The same, and nothing was there.
    MISSING,
    /// State that was there before the window.
    FROM_BEFORE,
    /// A look without waiting that found nothing.
    NOTHING,
    /// Something made that may be unmade.
    MAKES,
    /// Something unmade.
    ENDS,
    /// A call with a cheaper way to the same end, or one that another one makes needless.
    SLOW,
    /// A call that may take or leave a file's lock.
    LOCKS,
    /// A call that may take or leave a lock which lies in the kernel.
    KERNEL_LOCKS,
    /// A call that may sleep until a moment.
    SLEEPS,
    /// A timer set.
    ARMS,
    /// A call that may set what is used later.
    STORES,
    /// An attribute of a file asked for.
    ATTRIBUTE,
    /// A ring entered.
    ENTERS,
    /// A call that may be refused in vain.
    IN_VAIN,
    /// A call that may take a range.
    RANGED,
    /// A call that may wake waiters, or wait for being woken.
    WAKES,
}

impl Signs {
    /// None at all.
    pub(crate) const NONE: Self = Self(0);

    /// These and those.
    pub(crate) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These too, where it holds.
    #[must_use]
    pub(crate) fn with(self, signs: Self, holds: bool) -> Self {
        if holds { self.and(signs) } else { self }
    }

    /// Whether one of those is among them.
    pub(crate) const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }
}
