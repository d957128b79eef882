//! Facts of a call that a cause may ask for. Each fact is one line of [`with_facts!`].

/// Hands the facts to a macro: a fact's name in a cause's file, what it counts for where two causes match,
/// and whether it is the same for all calls of a row, so that it is known without a window.
macro_rules! with_facts {
    ($make:ident) => {
        $make! {
            /// The call is one of many places looked into for one thing.
            search => Search { weight: 2, of_row: false },
            /// The call is one of a walk down a path, a component at a time.
            walk => Walk { weight: 3, of_row: false },
            /// The call is part of a loop that sleeps for a moment and looks again.
            sleeps => Sleeps { weight: 2, of_row: false },
            /// The call waited for a moment and nothing came.
            runs_out => RunsOut { weight: 2, of_row: false },
            /// The question comes before each piece that is read of a file.
            per_read => PerRead { weight: 2, of_row: false },
            /// The look comes where a wait ran out and what was left of its time was rounded down to none.
            rounded => Rounded { weight: 3, of_row: false },
            /// The call makes, begins or ends a thread that hardly lives.
            thread => Thread { weight: 2, of_row: false },
            /// The name asked about was found missing right before.
            missing => Missing { weight: 3, of_row: false },
            /// The program makes what it found missing.
            made => Made { weight: 1, of_row: false },
            /// The name was looked for in many folders, none of which holds it.
            nowhere => Nowhere { weight: 2, of_row: false },
            /// The call belongs to the opening of a file that was opened before, and goes with it.
            reopened => Reopened { weight: 2, of_row: false },
            /// The size set is that which the next writes lead to.
            presized => Presized { weight: 2, of_row: false },
            /// The file asked about has grown by what the program itself wrote to it, and by nothing else.
            own_writes => OwnWrites { weight: 2, of_row: false },
            /// What the call maps or unmaps is a file that stays open.
            mapping => Mapping { weight: 2, of_row: false },
            /// The call wakes who has not yet seen to the wake before.
            awake => Awake { weight: 2, of_row: false },
            /// The call leaves a lock that is taken again right away, or takes it again.
            relock => Relock { weight: 2, of_row: false },
            /// What the call reads lies close to what was read before, though not behind it.
            near => Near { weight: 2, of_row: false },
            /// What the call moved is a piece of what a terminal had or was given at once.
            terminal => Terminal { weight: 2, of_row: false },
            /// What the call moved was a message of its own: it can't be joined with others.
            message => Message { weight: 1, of_row: false },
            /// The call's thread was woken together with others.
            herd => Herd { weight: 2, of_row: false },
            /// The call was made from inside the vDSO.
            vdso => Vdso { weight: 1, of_row: true },
            /// The C library made the call for itself, not by its wrapper of that name.
            inside_libc => InsideLibc { weight: 1, of_row: true },
            /// Nothing tells who made the call: an imported trace without stacks, a file that lost them.
            unknown_caller => UnknownCaller { weight: 1, of_row: true },
        }
    };
}
pub(crate) use with_facts;

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident => $fact:ident { weight: $weight:literal, of_row: $of_row:literal }),* $(,)?) => {
        /// Something that is so of a call, or is not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fact {
            $($(#[$doc])* $fact,)*
        }

        impl Fact {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$fact),*];

            /// Its name in causes' files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$fact => stringify!($name),)*
                }
            }

            /// What it counts for where several causes match.
            fn weight(self) -> usize {
                match self {
                    $(Self::$fact => $weight,)*
                }
            }

            /// Whether it is the same for all calls of a row.
            const fn is_of_row(self) -> bool {
                match self {
                    $(Self::$fact => $of_row,)*
                }
            }
        }
    };
}
with_facts!(define);

/// Facts that hold of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Facts(u32);

impl Facts {
    /// Those that are the same for all calls of a row.
    const OF_ROWS: Self = {
        let (mut all, mut at) = (Self(0), 0);
        while at < Fact::ALL.len() {
            all = all.with(Fact::ALL[at], Fact::ALL[at].is_of_row());
            at += 1;
        }
        all
    };

    /// These, and this one too where it holds.
    pub(crate) const fn with(self, fact: Fact, holds: bool) -> Self {
        Self(self.0 | (holds as u32) << fact as u32)
    }

    /// These and those.
    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether it is among them.
    pub(crate) fn contains(self, fact: Fact) -> bool {
        self.0 >> fact as u32 & 1 == 1
    }
}

impl From<Fact> for Facts {
    fn from(fact: Fact) -> Self {
        Self::default().with(fact, true)
    }
}

/// Facts that a pattern asks for: some must hold, some must not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedFacts {
    hold: Facts,
    lack: Facts,
}

impl AskedFacts {
    /// Asks for nothing.
    pub(crate) const NONE: Self = Self { hold: Facts(0), lack: Facts(0) };

    /// Asks for one more, if at all.
    pub(crate) const fn ask(self, fact: Fact, holds: Option<bool>) -> Self {
        let hold = self.hold.with(fact, matches!(holds, Some(true)));
        Self { hold, lack: self.lack.with(fact, matches!(holds, Some(false))) }
    }

    /// What is asked of a fact: to hold, not to, or nothing.
    pub fn of(&self, fact: Fact) -> Option<bool> {
        if self.hold.contains(fact) { Some(true) } else { self.lack.contains(fact).then_some(false) }
    }

    /// Whether these facts are as asked.
    pub(crate) fn allow(&self, facts: Facts) -> bool {
        self.hold.0 & !facts.0 == 0 && self.lack.0 & facts.0 == 0
    }

    /// Whether calls of a row of which these facts hold can be as asked.
    pub(crate) fn may_allow(&self, row: Facts) -> bool {
        let of_rows = Facts::OF_ROWS.0;
        Self { hold: Facts(self.hold.0 & of_rows), lack: Facts(self.lack.0 & of_rows) }.allow(row)
    }

    /// What all that is asked counts for.
    pub(crate) fn weight(&self) -> usize {
        if *self == Self::NONE {
            return 0;
        }
        Fact::ALL.iter().filter(|fact| self.of(**fact).is_some()).map(|fact| fact.weight()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_as_asked_or_not() {
        let asked = AskedFacts::default().ask(Fact::Herd, Some(true)).ask(Fact::Vdso, Some(false));
        let herd = Facts::from(Fact::Herd);
        assert!(asked.allow(herd) && asked.allow(herd.with(Fact::Search, true)));
        assert!(!asked.allow(Facts::default()) && !asked.allow(herd.with(Fact::Vdso, true)));
        // Of a row it is known that it is no call of the vDSO, not whether its threads are woken together.
        assert!(asked.may_allow(Facts::default()) && !asked.may_allow(Fact::Vdso.into()));
        assert_eq!(
            (asked.of(Fact::Herd), asked.of(Fact::Vdso), asked.of(Fact::Search)),
            (Some(true), Some(false), None)
        );
        assert_eq!((asked.weight(), AskedFacts::default().weight()), (3, 0));
        assert!(AskedFacts::default().allow(Fact::InsideLibc.into()));
    }
}
