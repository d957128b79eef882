//! The kinds of needless waits, and their words.

/// The kind of a needless wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NeedlessKind {
    /// A child has ended, and the thread sleeps before it looks.
    ChildSeenLate,
    /// A lock, a file or a process is asked about after each sleep.
    AskedAgain,
    /// An answer has come, and the thread sleeps before it reads.
    AnswerSeenLate,
    /// The holder of a lock waits for something else.
    LockHeld,
    /// The other end sent the data earlier: the kernel held them back.
    HeldBack,
    /// A peer that never answers is asked, and waited for until the time is over.
    Unanswered,
    /// A corked stream, or a message said to be a part of one, is sent only when the kernel's timer has run out.
    Corked,
    /// Requests go to one peer one after another, each when the answer before it is there.
    InTurn,
    /// Requests go to several peers one after another, each when the answer of the one before it is there.
    PeersInTurn,
}

impl NeedlessKind {
    /// Returns what the calls do, for a sentence.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::ChildSeenLate => "sleeps before it looks for a child's end again, and the child had ended",
            Self::AskedAgain => "sleeps before it asks again, and what it asks for may come meanwhile",
            Self::AnswerSeenLate => "sleeps before it reads an answer, and the answer was there",
            Self::LockHeld => "waits for a lock, and its holder sleeps or waits for something else meanwhile",
            Self::HeldBack => "waits for data that the other end had sent: the kernel held them back",
            Self::Unanswered => "asks a peer that never answers, and waits each time until the time is over",
            Self::Corked => "waits for data that the other end had sent: its stream was corked, until a timer ran out",
            Self::PeersInTurn => "sends a request to a peer only when the answer of the peer before it is there",
            Self::InTurn => "sends a request to the same peer only when the answer before it is there",
        }
    }

    /// Returns the way to avoid the waits.
    pub(crate) fn instead(self) -> &'static str {
        match self {
            Self::ChildSeenLate => {
                "wait for the child's end: waitpid without WNOHANG; with a timeout pidfd_open and poll"
            }
            Self::AskedAgain => {
                "wait for it: a call that waits for the lock, inotify for a file, a pipe on which its maker tells it"
            }
            Self::AnswerSeenLate => "read at once: the read waits until the answer is there",
            Self::LockHeld => "give the lock back before waiting for anything else",
            Self::HeldBack => "send a message in one call, or set TCP_NODELAY",
            Self::Unanswered => "remember that it does not answer, and ask another one first, or both at once",
            Self::Corked => "take the cork off after a message's last part, or send that without MSG_MORE",
            Self::PeersInTurn => {
                "where a request does not need the answer before it: ask all peers, then wait for their answers together"
            }
            Self::InTurn => {
                "where a request does not need the answer before it: one request for all of them, or several on their way at once"
            }
        }
    }

    /// Returns true if the time in vain of each wait is known.
    pub(crate) fn is_measured(self) -> bool {
        self != Self::AskedAgain
    }

    /// Returns true if the waits themselves show that they are in vain.
    pub(crate) fn is_sure(self) -> bool {
        !matches!(self, Self::InTurn | Self::PeersInTurn)
    }

    /// Returns true if the waits are sleeps, which a shorter time would cure.
    pub(crate) fn is_sleep(self) -> bool {
        matches!(self, Self::ChildSeenLate | Self::AskedAgain | Self::AnswerSeenLate)
    }
}
