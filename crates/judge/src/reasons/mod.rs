//! The good reasons: why calls that resemble waste are not reported, or are remarked on only. A reason is a line here;
//! a detector that finds its condition to hold asks `Claims::excuse` with it.
//!
//! `systoll explain --why-not` prints them. A test (`reports/tests/reasons.rs`) switches each off and wants its case to
//! fail: a reason that no case needs is deleted. `docs/develop/adding-a-detector.md` says how to add one.

pub(crate) mod plain;

use crate::results::finding::Kind::{self, Blocking, BusyPoll, Failing, NoOp, Repeat, SlowPath, SmallIo, Toggle};

/// What a reason does to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The call is not claimed.
    Silent,
    /// The claim makes a remark at most.
    Weak,
}

/// A reason for which calls that resemble waste may be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The name by which reports and tests refer to it.
    pub id: &'static str,
    /// The kinds of claim that it speaks about.
    pub kinds: &'static [Kind],
    /// What it does.
    pub then: Then,
    /// The reason, as a sentence about the program without its full stop.
    pub because: &'static str,
    /// The case that fails without it: a heading in `cases/text`, or a recording in `reports/recordings`.
    pub case: &'static str,
}

macro_rules! reasons {
    ($($name:ident $id:literal [$($kind:ident),*] $then:ident: $because:literal => $case:literal;)*) => {
        /// The number of a reason in [`REASONS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ReasonId { $(#[doc = $because] $name,)* }

        /// All good reasons.
        pub const REASONS: &[Reason] = &[$(Reason {
            id: $id, kinds: &[$($kind),*], then: Then::$then, because: $because, case: $case,
        },)*];

        impl ReasonId {
            /// All of them, in the order of [`REASONS`].
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

impl ReasonId {
    /// Returns the reason's line.
    pub fn reason(self) -> &'static Reason {
        &REASONS[self as usize]
    }
}

#[rustfmt::skip]
reasons! {
    // Questions.
    LeadsElsewhere "leads-elsewhere" [Repeat] Silent: "the path leads to another file each time" => "A link that leads elsewhere each time";
    AnswerDiffers "answer-differs" [Repeat] Silent: "most times the answer is another one: the program asks for what happens to the file" => "A file that changes between most questions is asked for its news";
    ListingChecked "listing-checked" [Repeat] Silent: "a folder is asked about now and then, to see whether a listing still holds" => "own.pkg-rsync-files-from.sick";
    FollowedFile "followed-file" [Repeat] Silent: "the program follows the file by its descriptor, and asks whether the name still leads to it" => "A name asked about beside the open file";
    CheckedAfterReading "checked-after-reading" [Repeat] Silent: "it asks right before it closes the file whether that changed while it was read" => "A file is asked about once more before it is closed";
    AnotherChangesIt "another-changes-it" [Repeat] Silent: "another process of the run changes the file: the program may wait for that" => "When all is over, it changes nothing";
    BeforeOpening "before-opening" [Repeat] Weak: "the program opens the path right after, for which it may have to ask each time" => "A path asked about and opened at once is a remark at most";
    NameMovesAway "name-moves-away" [Repeat] Weak: "the file is moved away now and then, and only the question notices" => "Whether the log is still there before each line";
    AskedInTime "asked-in-time" [Repeat] Weak: "the questions are so far apart that another process may have moved the file" => "A program that waits between its lines has time to look at the log";
    NameMayAppear "name-may-appear" [Repeat] Silent: "the program waited since the name was missing, so that others may have made it" => "A missing name is asked about four times before it is made";
    // State.
    KeepsSignalsAway "keeps-signals-away" [Toggle] Silent: "signals come all the time, and the mask keeps them away from a piece of work" => "A mask is needed where handlers run";
    KeptFromOthers "kept-from-others" [Toggle] Silent: "several threads wait for the set: none but this one gets what it took out" => "Connections taken out of a set, one after the other";
    WaitsForRoom "waits-for-room" [Toggle] Silent: "room to write is waited for only while something is left to write" => "Interests taken away and given back in turn";
    ActsAsAnother "acts-as-another" [Toggle] Silent: "calls in between depend on whose the process is" => "A process takes another user's ids for each step, and gives them back";
    AroundFork "around-fork" [Toggle] Silent: "the state is set around making a child, which gets it" => "A working folder set and set back around each step";
    HandlerOpensMemory "handler-opens-memory" [Toggle] Silent: "a signal's handler may open the memory that was touched, which is the use of protecting it" => "A handler opens the page that was touched";
    SizeIsMapped "size-is-mapped" [Toggle] Silent: "the program maps the file, which needs the size" => "A file that is mapped needs its size";
    LockIsWanted "lock-is-wanted" [Toggle] Silent: "another process wants the lock" => "A lock left and taken again around each line";
    LetsOthersIn "lets-others-in" [Toggle] Silent: "the program waits between leaving the lock and taking it, so that others get in" => "A lock left and taken again around each line";
    ChangesWhatItRead "changes-what-it-read" [Toggle] Weak: "what is written under the lock is made of what was read under it, and another process may have changed that" => "A counter under a lock is a remark at most";
    LockFileIsWanted "lock-file-is-wanted" [Toggle] Silent: "somebody found the lock file there when it was to be new" => "A lock file is made and removed around each step";
    FileIsShared "file-is-shared" [Toggle] Silent: "another process may have used the file before it was removed" => "A temporary file that only its maker reads";
    // Files.
    ReaderWaits "reader-waits" [SlowPath] Silent: "another process reads the file, and may wait for each version" => "When all is over, it changes nothing";
    ShownBetween "shown-between" [SlowPath] Silent: "the program tells others something, or waits, before it writes the file again" => "A file written anew before anybody could read it";
    LastsLongEnough "lasts-long-enough" [SlowPath, Toggle] Silent: "the value stands for 10 ms or longer, so that another process may see it" => "Names and times that nobody could have seen";
    LockHeld "lock-held" [Failing] Silent: "a file that only one may make stands there: it is a lock, and whoever holds it removes it" => "A lock file that another process holds is tried again";
    OthersAsk "others-ask" [Toggle] Silent: "another process asks for what is set" => "Times at which another process asks now and then";
    FileMayChange "file-may-change" [SmallIo] Silent: "the file may have changed since it was read: the program wrote, waited, took a lock or made a child" => "Pieces are read apart between waits";
    SmallFile "small-file" [Repeat] Silent: "the file is small, and each reading may be for its newest version" => "A small file that is opened very often";
    NewsOfFile "news-of-file" [Repeat] Weak: "the file changes, is asked about first, or is read so rarely that it may have changed" => "own.rb-server-account.sick";
    SharedCounter "shared-counter" [Toggle] Silent: "it is opened, locked, read, written and left: others change the same file" => "A counter that is locked, read and written";
    MovedLog "moved-log" [Toggle] Weak: "the file is moved away now and then, and only opening it anew finds the new one" => "A log that is moved away is opened anew";
    OwesOthers "owes-others" [Blocking] Silent: "the program answers others in between, who may rely on what was stored" => "A flush of what was just flushed";
    SharedSync "shared-sync" [Blocking] Silent: "several threads wait for it together: what they wrote is stored at once" => "One sync for several threads";
    ReplacesFile "replaces-file" [Blocking] Silent: "the bytes are stored before the file gets its name, so that the name never stands for half a file" => "A sync before a file gets its name";
    // Transfers.
    SignalBetween "signal-between" [SmallIo] Silent: "a signal or a ready descriptor came in between, and may be the answer to what was written" => "A signal comes before each write";
    WaitedBetween "waited-between" [SmallIo] Silent: "the program waits or makes a child between the transfers" => "A wait before each byte";
    DataBetween "data-between" [SmallIo] Silent: "data goes the other way in between: each transfer may be an answer, or be answered" => "A wait before each byte";
    UnlockedBetween "unlocked-between" [SmallIo] Silent: "a lock is left in between, so that others may see what was written under it" => "What is written under a lock that others want is not joined";
    StoredBetween "stored-between" [SmallIo] Silent: "what was written is brought to the disk in between" => "A sync before a file gets its name";
    ReadBack "read-back" [SmallIo] Silent: "another descriptor reads the file in between" => "A file is read by another of the program's descriptors";
    MappedFile "mapped-file" [SmallIo] Silent: "the program maps the file that it writes, and may read each piece there" => "Small writes to a file that the program maps";
    ReadOn "read-on" [SmallIo] Silent: "another process reads on from the same pipe, and what is read ahead would be lost to it" => "Bytes of a pipe that another process reads on from";
    WakesThread "wakes-thread" [SmallIo] Silent: "the bytes are always the same: each write wakes a thread" => "own.rs-pipe-each-item.sick";
    TakenWhenItCame "taken-when-it-came" [SmallIo] Weak: "each message may be taken, or counted by a program of this box, when it comes" => "Datagrams are not joined by a buffer";
    LastWords "last-words" [SmallIo] Weak: "the program ended by its own signal, and the file may be the trace of it" => "third.ok-flight-log.healthy";
    OneResultEach "one-result-each" [SmallIo] Weak: "each piece is the result of one input, for which a reader may wait" => "A result for each input goes out when it is known";
    // Waiting.
    ServesSeveral "serves-several" [BusyPoll] Silent: "most of the threads that are woken together find work" => "Threads that are woken together, each for its own";
    GaveProcessorAway "gave-processor-away" [BusyPoll] Silent: "most of the polls gave the processor to another thread" => "own.rs-rendezvous-channel.sick";
    SentByOthers "sent-by-others" [NoOp] Silent: "a signal's handler or a child may have sent the wake" => "A thread that wakes itself";
}

macro_rules! plain {
    ($($name:ident $id:literal: $because:literal;)*) => {
        /// What there is to see of a call that no detector claims and no good reason excuses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Plain { $(#[doc = $because] $name,)* }

        impl Plain {
            /// Returns the name by which reports refer to it.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// Returns what there is to see, as a sentence without its full stop.
            pub fn because(self) -> &'static str {
                match self { $(Self::$name => $because,)* }
            }
        }
    };
}

#[rustfmt::skip]
plain! {
    NoQuestion "no-question": "systoll has no question about this system call";
    Failed "failed": "the call failed, and not as one that is tried in vain again and again";
    OtherAnswer "other-answer": "it got another answer than the time before";
    NotKnown "not-known": "nothing seen before answers it: it was not asked before, or something in between may have changed the answer";
    Unread "unread": "the answer or the value was not recorded";
    KnownButFew "known-but-few": "what it asks or sets was known, and nothing shows that this happens again and again";
    OtherValue "other-value": "it sets another value than the one that was set";
    Succeeds "succeeds": "it does something, and succeeds: only attempts that are known to fail are needless";
    ManyBytes "many-bytes": "it moves more than 512 bytes at once";
    NoBytes "no-bytes": "it moved nothing";
    FewBytes "few-bytes": "it moves few bytes, and nothing shows that one call could have moved several such pieces";
    FoundNothing "found-nothing": "it found nothing, and nothing shows that this happens again and again";
    Waits "waits": "it waits for something that comes";
    OpenedOnce "opened-once": "it opens what was not open before";
    OpenedAgain "opened-again": "it opens the same again, but what it reads or writes there may be new";
    MadeOnce "made-once": "it makes or ends something that was of use in between, or that is made in another way each time";
    Other "other": "systoll has questions about this system call, and none of them found a waste";
}

/// Why a call is not claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It resembles waste, and a good reason holds for it.
    Good(ReasonId),
    /// It does not resemble waste.
    Plain(Plain),
}

impl Why {
    /// Returns the name by which reports refer to it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Good(reason) => reason.reason().id,
            Self::Plain(plain) => plain.id(),
        }
    }

    /// Returns the reason, as a sentence without its full stop.
    pub fn because(self) -> &'static str {
        match self {
            Self::Good(reason) => reason.reason().because,
            Self::Plain(plain) => plain.because(),
        }
    }
}
