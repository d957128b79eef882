//! Facts of a call that a cause may ask for. Each fact is one line of [`with_facts!`].

/// Hands the facts to a macro: a fact's name in causes' files, its weight where two causes match, and `of_row`, true
/// if it is the same for all calls of a row and so known without a window.
macro_rules! with_facts {
    ($make:ident) => {
        $make! {
            /// The call stores one of many versions of a file, each of which takes the place of the one before.
            versions => Versions { weight: 2, of_row: false },
            /// The call is one of a search for one thing in many places.
            search => Search { weight: 2, of_row: false },
            /// The question belongs to a search for a program in one folder after another.
            program => Program { weight: 3, of_row: false },
            /// The call is one of a walk down a path, one component at a time.
            walk => Walk { weight: 3, of_row: false },
            /// The call is part of a loop that sleeps briefly and then looks again.
            sleeps => Sleeps { weight: 2, of_row: false },
            /// The call waited for a moment and nothing came.
            runs_out => RunsOut { weight: 2, of_row: false },
            /// The question comes before each piece that is read of a file.
            per_read => PerRead { weight: 2, of_row: false },
            /// The call polls with timeout zero after a wait whose remaining time was rounded down to zero.
            rounded => Rounded { weight: 3, of_row: false },
            /// The call creates, begins or ends a short-lived thread.
            thread => Thread { weight: 2, of_row: false },
            /// The call before this one found the same name missing.
            missing => Missing { weight: 3, of_row: false },
            /// The program creates the object that it found missing.
            made => Made { weight: 1, of_row: false },
            /// The name was looked for in many folders, and none of them holds it.
            nowhere => Nowhere { weight: 2, of_row: false },
            /// The call belongs to opening a file that was opened before, and goes with it.
            reopened => Reopened { weight: 2, of_row: false },
            /// The call belongs to the opening of a folder whose entries are listed.
            listing => Listing { weight: 1, of_row: false },
            /// The file is opened anew for each part that is read of it.
            parts => Parts { weight: 2, of_row: false },
            /// The call belongs to a connection that is made anew for each request.
            connects => Connects { weight: 2, of_row: false },
            /// The connection stays open and is not used again.
            left => Left { weight: 1, of_row: false },
            /// The call belongs to a connection to a server of this box that is not there.
            nobody_there => NobodyThere { weight: 2, of_row: false },
            /// The size that the call sets is the size that the next writes lead to.
            presized => Presized { weight: 2, of_row: false },
            /// The file asked about has grown by the program's own writes alone.
            own_writes => OwnWrites { weight: 2, of_row: false },
            /// The path asked about is opened next.
            opened_next => OpenedNext { weight: 1, of_row: false },
            /// The call belongs to loading a library that was loaded before and unloaded.
            reloaded => Reloaded { weight: 2, of_row: false },
            /// The call maps or unmaps a file that stays open.
            mapping => Mapping { weight: 2, of_row: false },
            /// The call wakes a thread that has not yet handled the previous wake-up.
            awake => Awake { weight: 2, of_row: false },
            /// The call releases a lock that is taken again right away, or takes it again, or asks anew what it asked
            /// under the lock before.
            relock => Relock { weight: 2, of_row: false },
            /// The call belongs to a socket for datagrams that is made anew for each of them.
            new_socket => NewSocket { weight: 3, of_row: false },
            /// The call blocks SIGPIPE alone, or takes that back.
            pipe_signal => PipeSignal { weight: 2, of_row: false },
            /// The question is about a file that stays open.
            held_open => HeldOpen { weight: 2, of_row: false },
            /// The question asks how much room there is, of which the program's own writes take little.
            room => Room { weight: 2, of_row: false },
            /// The call reads again what an earlier read had brought and a seek has thrown away, or is that seek.
            thrown_away => ThrownAway { weight: 3, of_row: false },
            /// The call reads a range close to the one read before, but not adjacent to it.
            near => Near { weight: 2, of_row: false },
            /// The call asked whether one descriptor is ready, right before a transfer that would have told.
            ready => Ready { weight: 2, of_row: false },
            /// The call moved one piece of the data that a terminal had, or got, at once.
            terminal => Terminal { weight: 2, of_row: false },
            /// The call moved a message of its own, which can't be joined with others.
            message => Message { weight: 1, of_row: false },
            /// The call writes one of several parts of a message, and the reader answers the message.
            in_parts => InParts { weight: 1, of_row: false },
            /// The process that the call makes runs no program of its own.
            copies => Copies { weight: 2, of_row: false },
            /// The call starts a program whose own work costs more than its start.
            works => Works { weight: 1, of_row: false },
            /// The program makes a pipe for each of the processes that it forks.
            piped => Piped { weight: 1, of_row: false },
            /// The program makes a pipe for each two of the processes that it forks.
            pipeline => Pipeline { weight: 1, of_row: false },
            /// The call blocks SIGCHLD alone, or takes that back, in a program that has made children, but not around
            /// their making.
            child_signal => ChildSignal { weight: 2, of_row: false },
            /// The call moves the position in an open file, or moves it back.
            position => Position { weight: 3, of_row: false },
            /// The call's thread was woken together with others.
            herd => Herd { weight: 2, of_row: false },
            /// The call brings a file to the disk whose bytes are there already, and which only got another name since.
            renamed => Renamed { weight: 2, of_row: false },
            /// The call belongs to the opening of a file that is locked and closed, and neither read nor written.
            locked => Locked { weight: 2, of_row: false },
            /// The call belongs to the opening of one of several files that stay open for a while: others that were opened
            /// before are closed to make room.
            rotates => Rotates { weight: 3, of_row: false },
            /// The call is about a pipe that its process has written to itself, or comes with reading that.
            own_pipe => OwnPipe { weight: 2, of_row: false },
            /// The call is about a temporary file that only its maker uses.
            scratch => Scratch { weight: 4, of_row: false },
            /// The call belongs to an epoll descriptor that is made for one job.
            event_loop => EventLoop { weight: 3, of_row: false },
            /// The call makes, marks, closes or removes a file that stands for a lock.
            lock_file => LockFile { weight: 4, of_row: false },
            /// The call waits for, or wakes, all threads that meet at one place.
            meets => Meets { weight: 2, of_row: false },
            /// The call hands over to a thread that waits for descriptors, or takes what was handed over so.
            handed => Handed { weight: 2, of_row: false },
            /// The call brings a file to the disk that its process removes.
            removed => Removed { weight: 2, of_row: false },
            /// The call was made from inside the vDSO.
            vdso => Vdso { weight: 1, of_row: true },
            /// The call was made on an aarch64 machine.
            aarch64 => Aarch64 { weight: 0, of_row: true },
            /// The C library made the call for itself, not by its wrapper of that name.
            inside_libc => InsideLibc { weight: 1, of_row: true },
            /// The caller is unknown: an imported trace without stacks, or a file that lost them.
            unknown_caller => UnknownCaller { weight: 1, of_row: true },
        }
    };
}
pub(crate) use with_facts;

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident => $fact:ident { weight: $weight:literal, of_row: $of_row:literal }),* $(,)?) => {
        /// A property that a call has or lacks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fact {
            $($(#[$doc])* $fact,)*
        }

        impl Fact {
            /// All facts.
            pub const ALL: &[Self] = &[$(Self::$fact),*];

            /// Returns the fact's name in causes' files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$fact => stringify!($name),)*
                }
            }

            /// Returns the fact's weight where several causes match.
            fn weight(self) -> usize {
                match self {
                    $(Self::$fact => $weight,)*
                }
            }

            /// Returns true if the fact is the same for all calls of a row.
            const fn is_of_row(self) -> bool {
                match self {
                    $(Self::$fact => $of_row,)*
                }
            }
        }
    };
}
with_facts!(define);

/// A set of facts that hold for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Facts(u64);

impl Facts {
    /// The facts that are the same for all calls of a row.
    const OF_ROWS: Self = {
        let (mut all, mut at) = (Self(0), 0);
        while at < Fact::ALL.len() {
            all = all.with(Fact::ALL[at], Fact::ALL[at].is_of_row());
            at += 1;
        }
        all
    };

    /// Returns the set with `fact` added if it holds.
    pub(crate) const fn with(self, fact: Fact, holds: bool) -> Self {
        Self(self.0 | (holds as u64) << fact as u64)
    }

    /// Returns the union of two sets.
    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns true if the fact is in the set.
    pub(crate) fn contains(self, fact: Fact) -> bool {
        self.0 >> fact as u64 & 1 == 1
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
    /// Asks for no fact.
    pub(crate) const NONE: Self = Self { hold: Facts(0), lack: Facts(0) };

    /// Returns the set that also asks for `fact`: to hold if `holds` is true, to be absent if it is false, and not at
    /// all if it is `None`.
    pub(crate) const fn ask(self, fact: Fact, holds: Option<bool>) -> Self {
        let hold = self.hold.with(fact, matches!(holds, Some(true)));
        Self { hold, lack: self.lack.with(fact, matches!(holds, Some(false))) }
    }

    /// Returns true if the fact is asked to hold, false if it is asked not to; `None` if it is not asked for.
    pub fn expects(&self, fact: Fact) -> Option<bool> {
        if self.hold.contains(fact) { Some(true) } else { self.lack.contains(fact).then_some(false) }
    }

    /// Returns true if `facts` has the facts that are asked for, and lacks the facts that must be
    /// absent.
    pub(crate) fn allow(&self, facts: Facts) -> bool {
        self.hold.0 & !facts.0 == 0 && self.lack.0 & facts.0 == 0
    }

    /// Returns true if calls of a row with the facts `row` may have the facts that are asked for.
    pub(crate) fn may_allow(&self, row: Facts) -> bool {
        let of_rows = Facts::OF_ROWS.0;
        Self { hold: Facts(self.hold.0 & of_rows), lack: Facts(self.lack.0 & of_rows) }.allow(row)
    }

    /// Returns the set without the facts that must be absent; `None` if there are none.
    pub(crate) fn without_lacking(&self) -> Option<Self> {
        (self.lack != Facts(0)).then_some(Self { lack: Facts(0), ..*self })
    }

    /// Returns the weights of all facts asked for, added up.
    pub(crate) fn weight(&self) -> usize {
        if *self == Self::NONE {
            return 0;
        }
        Fact::ALL.iter().filter(|fact| self.expects(**fact).is_some()).map(|fact| fact.weight()).sum()
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
        // A row tells that its calls are none of the vDSO, but not that its threads are woken together.
        assert!(asked.may_allow(Facts::default()) && !asked.may_allow(Fact::Vdso.into()));
        assert_eq!(
            (asked.expects(Fact::Herd), asked.expects(Fact::Vdso), asked.expects(Fact::Search)),
            (Some(true), Some(false), None)
        );
        assert_eq!((asked.weight(), AskedFacts::default().weight()), (3, 0));
        assert!(AskedFacts::default().allow(Fact::InsideLibc.into()));
    }
}
