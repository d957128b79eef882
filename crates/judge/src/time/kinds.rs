//! The kinds of needless waits, and their words.

use crate::results::finding::Doubt;

/// Declares the kinds, each with what the calls do and the way to avoid the waits, for sentences.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $about:literal, $instead:literal;)*) => {
        /// The kind of a needless wait.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum NeedlessKind {
            $($(#[$doc])* $kind,)*
        }

        impl NeedlessKind {
            /// Returns what the calls do, for a sentence.
            pub(crate) fn about(self) -> &'static str {
                match self { $(Self::$kind => $about,)* }
            }

            /// Returns the way to avoid the waits.
            pub(crate) fn instead(self) -> &'static str {
                match self { $(Self::$kind => $instead,)* }
            }
        }
    };
}

#[rustfmt::skip]
kinds! {
    /// A child has ended, and the thread sleeps before it looks.
    ChildSeenLate: "sleeps before it looks for a child's end again, and the child had ended",
        "wait for the child's end: a shell's wait, waitpid without WNOHANG; with a timeout pidfd_open and poll";
    /// A lock, a file or a process is asked about after each sleep.
    AskedAgain: "sleeps before it asks again, and what it asks for may come meanwhile",
        "wait for it: a call that waits for the lock, inotify for a file, a pipe on which its maker tells it";
    /// An answer has come, and the thread sleeps before it reads.
    AnswerSeenLate: "sleeps before it reads an answer, and the answer was there",
        "read at once: the read waits until the answer is there";
    /// The holder of a lock waits for something else.
    LockHeld: "waits for a lock, and its holder sleeps or waits for something else meanwhile",
        "give the lock back before waiting for anything else";
    /// The other end sent the data earlier: the kernel held them back.
    HeldBack: "waits for data that the other end had sent: the kernel held them back",
        "send a message in one call, or set TCP_NODELAY";
    /// A peer that never answers is asked, and waited for until the time is over.
    Unanswered: "asks a peer that never answers, and waits each time until the time is over",
        "remember that it does not answer, and ask another one first, or both at once";
    /// A corked stream, or a message said to be a part of one, is sent only when the kernel's timer has run out.
    Corked: "waits for data that the other end had sent: its stream was corked, until a timer ran out",
        "take the cork off after a message's last part, or send that without MSG_MORE";
    /// A connection's first message was dropped, and sent again a second later.
    ConnectedLate: "connects, and nobody answers at first: the kernel asks again a second later",
        "if its server is yours: take up connections sooner, or let more of them wait: listen(fd, 128)";
    /// Requests go to one peer one after another, each when the answer before it is there.
    InTurn: "sends a request to the same peer only when the answer before it is there",
        "where a request does not need the answer before it: one request for all of them, or several on their way at once";
    /// Requests go to several peers one after another, each when the answer of the one before it is there.
    PeersInTurn: "sends a request to a peer only when the answer of the peer before it is there",
        "where a request does not need the answer before it: ask all peers, then wait for their answers together";
    /// Children that mostly wait themselves are started one after another, each when the one before it has ended.
    ChildrenInTurn: "starts a child only when it has waited for the one before it, and the children mostly wait",
        "where a child does not need the one before it: start all of them, then wait for all";
    /// Threads that mostly wait themselves are started one after another, each when the one before it has ended.
    ThreadsInTurn: "starts a thread only when it has waited for the one before it, and the threads mostly wait",
        "where a thread does not need the one before it: start all of them, or a few at a time, then wait for all";
    /// Nothing ended the waits but the time that the program set; whether something else could is not known.
    RanOut: "waits until the time that it set itself is over: nothing else ends the wait",
        "if it waits for something: let that end the wait (a condition variable, a pipe, inotify, a call that waits); if it keeps a pace: leave it";
}

impl NeedlessKind {
    /// Returns true if the time in vain of each wait is known.
    pub(crate) fn is_measured(self) -> bool {
        self != Self::AskedAgain
    }

    /// Returns why the waits may not be in vain; `None` if they show themselves that they are.
    pub(crate) fn doubt(self) -> Option<Doubt> {
        match self {
            Self::InTurn | Self::PeersInTurn | Self::ChildrenInTurn | Self::ThreadsInTurn => Some(Doubt::Unsure),
            Self::RanOut => Some(Doubt::Pace),
            _ => None,
        }
    }

    /// Returns true if the waits are sleeps, which a shorter time would cure.
    pub(crate) fn is_sleep(self) -> bool {
        matches!(self, Self::ChildSeenLate | Self::AskedAgain | Self::AnswerSeenLate | Self::RanOut)
    }
}
