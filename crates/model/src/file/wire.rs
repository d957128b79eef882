//! Our message: a whole recording in the form that the file has.
//!
//! Invariant: fields are added, but never get another number or meaning. A change that an older reader would misread
//! raises [`VERSION`]. docs/reference/recording.md describes the message for others.

mod samples;
mod until;
mod waits;

use prost::Message;
pub(super) use samples::{ObjectSample, RowTrunk, WholeStack};
pub(super) use until::Until;
pub(super) use waits::{DroppedWaits, WaitSpan};

/// Version of the message. A reader refuses higher versions.
pub(super) const VERSION: u32 = 1;

/// Name of the machine in the header of a recording that does not know its machine.
pub(super) const NO_MACHINE: &str = "unknown";

/// The message's version alone, which is read first.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Versioned {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Recording {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    /// Strings to which the other messages refer by index.
    #[prost(string, repeated, tag = "2")]
    pub(super) strings: Vec<String>,
    /// Memory to which arguments pointed; windows refer to it by index.
    #[prost(message, optional, tag = "3")]
    pub(super) blobs: Option<Blobs>,
    #[prost(message, optional, tag = "4")]
    pub(super) header: Option<Header>,
    #[prost(message, repeated, tag = "5")]
    pub(super) processes: Vec<Process>,
    #[prost(message, repeated, tag = "6")]
    pub(super) modules: Vec<Module>,
    #[prost(message, repeated, tag = "7")]
    pub(super) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "8")]
    pub(super) stacks: Vec<Stack>,
    #[prost(message, repeated, tag = "9")]
    pub(super) rows: Vec<Row>,
    #[prost(message, repeated, tag = "10")]
    pub(super) windows: Vec<Window>,
    #[prost(message, repeated, tag = "11")]
    pub(super) longest: Vec<LongCall>,
    #[prost(message, optional, tag = "12")]
    pub(super) prices: Option<Prices>,
    #[prost(message, repeated, tag = "13")]
    pub(super) problems: Vec<Problem>,
    #[prost(message, repeated, tag = "14")]
    pub(super) vdso: Vec<VdsoRow>,
    #[prost(message, repeated, tag = "15")]
    pub(super) threads: Vec<Thread>,
    #[prost(message, repeated, tag = "16")]
    pub(super) in_place: Vec<InPlace>,
    #[prost(message, repeated, tag = "17")]
    pub(super) ledgers: Vec<Ledger>,
    #[prost(message, repeated, tag = "18")]
    pub(super) packages: Vec<Package>,
    #[prost(message, repeated, tag = "19")]
    pub(super) trunks: Vec<RowTrunk>,
    #[prost(message, repeated, tag = "20")]
    pub(super) request_kinds: Vec<RequestKind>,
    #[prost(message, repeated, tag = "21")]
    pub(super) received: Vec<ReceivedCalls>,
    #[prost(message, repeated, tag = "22")]
    pub(super) whole_stacks: Vec<WholeStack>,
    #[prost(message, repeated, tag = "23")]
    pub(super) object_samples: Vec<ObjectSample>,
    #[prost(message, repeated, tag = "24")]
    pub(super) waits: Vec<WaitSpan>,
    #[prost(message, repeated, tag = "25")]
    pub(super) dropped_waits: Vec<DroppedWaits>,
    /// Long calls that nobody read in time; missing if long waits are not kept.
    #[prost(uint64, optional, tag = "26")]
    pub(super) overwritten_waits: Option<u64>,
}

/// Receives that were looked at one by one.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ReceivedCalls {
    #[prost(uint32, tag = "1")]
    pub(super) row: u32,
    /// Index of a kind of requests.
    #[prost(uint32, tag = "2")]
    pub(super) kind: u32,
    #[prost(uint64, tag = "3")]
    pub(super) stands_for: u64,
    #[prost(uint64, tag = "4")]
    pub(super) receives: u64,
}

/// A kind of request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestKind {
    /// The protocol's name.
    #[prost(string, tag = "1")]
    pub(super) protocol: String,
    /// Index of a string.
    #[prost(uint32, tag = "2")]
    pub(super) name: u32,
}

/// Facts about watching programs that ran already.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Attached {
    #[prost(uint64, tag = "1")]
    pub(super) age_ns: u64,
    #[prost(uint64, tag = "2")]
    pub(super) longest_stop_ns: u64,
    #[prost(bool, tag = "3")]
    pub(super) left_running: bool,
}

/// A package to which a script's sources belong.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Package {
    /// Index of the string with the path of the package's sources.
    #[prost(uint32, tag = "1")]
    pub(super) home: u32,
    /// Index of the string with the package's version.
    #[prost(uint32, tag = "2")]
    pub(super) version: u32,
}

/// Counts of one system call whose calls systoll was to answer in place of the kernel, see
/// [`crate::InPlace`].
#[derive(Clone, PartialEq, Message)]
pub(super) struct InPlace {
    #[prost(uint32, tag = "1")]
    pub(super) syscall: u32,
    #[prost(uint64, tag = "2")]
    pub(super) answered: u64,
    #[prost(uint64, tag = "3")]
    pub(super) needed: u64,
    /// Pairs of a reason, as a code, and a number of calls.
    #[prost(uint64, repeated, tag = "4")]
    pub(super) missed: Vec<u64>,
}

/// Pieces of memory, in columns. A piece is `prefix` bytes of the piece `back` places before it,
/// its `middle`, and the last `suffix` bytes of that other piece. If `back` is 0, it is its
/// `middle` alone.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Blobs {
    #[prost(uint32, repeated, tag = "1")]
    pub(super) back: Vec<u32>,
    #[prost(uint32, repeated, tag = "2")]
    pub(super) prefix: Vec<u32>,
    #[prost(uint32, repeated, tag = "3")]
    pub(super) suffix: Vec<u32>,
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub(super) middle: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) command: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) backend: String,
    #[prost(string, tag = "4")]
    pub(super) cpu: String,
    #[prost(uint32, tag = "5")]
    pub(super) cpus: u32,
    #[prost(string, tag = "6")]
    pub(super) kernel: String,
    #[prost(string, tag = "7")]
    pub(super) clock_source: String,
    #[prost(string, optional, tag = "8")]
    pub(super) virtualization: Option<String>,
    #[prost(uint64, tag = "9")]
    pub(super) started_unix: u64,
    #[prost(sint32, optional, tag = "10")]
    pub(super) exit_code: Option<i32>,
    #[prost(sint32, optional, tag = "11")]
    pub(super) exit_signal: Option<i32>,
    #[prost(uint64, tag = "12")]
    pub(super) wall_ns: u64,
    #[prost(uint64, tag = "13")]
    pub(super) user_ns: u64,
    #[prost(uint64, tag = "14")]
    pub(super) sys_ns: u64,
    #[prost(uint64, tag = "15")]
    pub(super) own_cpu_ns: u64,
    #[prost(double, tag = "16")]
    pub(super) observer_ns_per_call: f64,
    #[prost(double, tag = "17")]
    pub(super) observer_wall_ns_per_call: f64,
    #[prost(bool, tag = "18")]
    pub(super) toll_estimated: bool,
    #[prost(uint64, tag = "19")]
    pub(super) lost: u64,
    #[prost(uint64, optional, tag = "20")]
    pub(super) vdso_calls: Option<u64>,
    #[prost(uint64, tag = "21")]
    pub(super) threads: u64,
    #[prost(fixed64, tag = "22")]
    pub(super) seed: u64,
    #[prost(uint64, tag = "23")]
    pub(super) windows_opened: u64,
    #[prost(uint64, tag = "24")]
    pub(super) windows_refused: u64,
    #[prost(message, optional, tag = "25")]
    pub(super) sites: Option<Sites>,
    #[prost(uint64, optional, tag = "26")]
    pub(super) own_cpu_most_ns: Option<u64>,
    #[prost(uint64, optional, tag = "30")]
    pub(super) own_cpu_least_ns: Option<u64>,
    #[prost(string, tag = "27")]
    pub(super) node: String,
    /// The command's TZ, if it was set.
    #[prost(string, optional, tag = "28")]
    pub(super) time_zone: Option<String>,
    /// True if it is known that TZ was not set.
    #[prost(bool, tag = "29")]
    pub(super) no_time_zone: bool,
    #[prost(message, optional, tag = "31")]
    pub(super) attached: Option<Attached>,
    /// Name of the machine, [`NO_MACHINE`], or nothing in files that are older than the field: those are x86-64's.
    #[prost(string, tag = "40")]
    pub(super) machine: String,
    #[prost(uint64, tag = "41")]
    pub(super) page: u64,
    #[prost(message, optional, tag = "42")]
    pub(super) until: Option<Until>,
    #[prost(uint64, tag = "43")]
    pub(super) watching_ns: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Sites {
    #[prost(uint64, tag = "1")]
    pub(super) timed: u64,
    #[prost(uint64, tag = "2")]
    pub(super) counted: u64,
    #[prost(uint64, tag = "3")]
    pub(super) on_arrival: u64,
    #[prost(uint64, tag = "4")]
    pub(super) not_covered: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(uint32, tag = "1")]
    pub(super) pid: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(super) parent: Option<u32>,
    #[prost(uint32, tag = "3")]
    pub(super) exe: u32,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) argv: Vec<u32>,
    #[prost(uint64, tag = "5")]
    pub(super) instances: u64,
    #[prost(uint64, tag = "6")]
    pub(super) threads: u64,
    #[prost(uint64, tag = "7")]
    pub(super) start_ns: u64,
    #[prost(uint64, tag = "8")]
    pub(super) end_ns: u64,
    #[prost(uint64, tag = "9")]
    pub(super) life_ns: u64,
    #[prost(uint64, tag = "10")]
    pub(super) cpu_ns: u64,
    #[prost(uint64, optional, tag = "11")]
    pub(super) main_at_ns: Option<u64>,
    #[prost(uint64, tag = "12")]
    pub(super) startup_cpu_ns: u64,
    #[prost(sint32, optional, tag = "13")]
    pub(super) exit_code: Option<i32>,
    #[prost(sint32, optional, tag = "14")]
    pub(super) exit_signal: Option<i32>,
    #[prost(uint64, optional, tag = "15")]
    pub(super) queued_ns: Option<u64>,
    #[prost(uint32, tag = "16")]
    pub(super) service: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Module {
    #[prost(uint32, tag = "1")]
    pub(super) path: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(super) build_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Frame {
    #[prost(uint32, optional, tag = "1")]
    pub(super) module: Option<u32>,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    #[prost(uint32, tag = "3")]
    pub(super) class: u32,
    #[prost(message, repeated, tag = "4")]
    pub(super) locations: Vec<Location>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) callee: Option<u32>,
    /// Code of the language; 0 for native code.
    #[prost(uint32, tag = "6")]
    pub(super) language: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint32, tag = "1")]
    pub(super) function: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(super) file: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) line: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Stack {
    #[prost(uint32, repeated, tag = "1")]
    pub(super) frames: Vec<u32>,
    #[prost(bool, tag = "2")]
    pub(super) complete: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Row {
    #[prost(uint32, tag = "1")]
    pub(super) process: u32,
    #[prost(uint32, tag = "2")]
    pub(super) syscall: u32,
    #[prost(uint32, tag = "3")]
    pub(super) context: u32,
    #[prost(uint32, tag = "4")]
    pub(super) outer: u32,
    #[prost(uint32, optional, tag = "5")]
    pub(super) api: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) api_module: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    pub(super) user: Option<u32>,
    #[prost(uint64, tag = "8")]
    pub(super) calls: u64,
    #[prost(uint64, tag = "9")]
    pub(super) unreturned: u64,
    /// Pairs of an error number and its number of calls.
    #[prost(uint64, repeated, tag = "10")]
    pub(super) errors: Vec<u64>,
    #[prost(uint64, tag = "11")]
    pub(super) bytes: u64,
    #[prost(uint64, optional, tag = "12")]
    pub(super) toll_ns: Option<u64>,
    #[prost(uint64, optional, tag = "13")]
    pub(super) waited_ns: Option<u64>,
    #[prost(uint64, tag = "14")]
    pub(super) elapsed_ns: u64,
    #[prost(uint64, tag = "15")]
    pub(super) max_ns: u64,
    /// Numbers of calls by power of two of their elapsed ns.
    #[prost(uint64, repeated, tag = "16")]
    pub(super) histogram: Vec<u64>,
    #[prost(uint64, tag = "17")]
    pub(super) startup_calls: u64,
    #[prost(uint64, tag = "18")]
    pub(super) startup_waited_ns: u64,
    #[prost(uint64, tag = "19")]
    pub(super) elided: u64,
    #[prost(message, repeated, tag = "20")]
    pub(super) lines: Vec<RowLine>,
    #[prost(uint64, optional, tag = "21")]
    pub(super) min_ns: Option<u64>,
    /// Number of calls in the histogram that were not timed.
    #[prost(uint64, tag = "22")]
    pub(super) untimed: u64,
    #[prost(uint64, tag = "23")]
    pub(super) elapsed_error_ns: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RowLine {
    #[prost(uint32, tag = "1")]
    pub(super) frame: u32,
    #[prost(uint64, tag = "2")]
    pub(super) looks: u64,
    #[prost(uint64, tag = "3")]
    pub(super) weight: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VdsoRow {
    #[prost(uint32, tag = "1")]
    pub(super) process: u32,
    #[prost(uint32, tag = "2")]
    pub(super) function: u32,
    #[prost(uint32, tag = "3")]
    pub(super) context: u32,
    #[prost(uint32, optional, tag = "4")]
    pub(super) api: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) user: Option<u32>,
    #[prost(uint64, tag = "6")]
    pub(super) calls: u64,
}

/// The calls of a thread, in columns of one length: one entry for each system call.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Thread {
    #[prost(uint32, tag = "1")]
    pub(super) process: u32,
    #[prost(uint32, tag = "2")]
    pub(super) tid: u32,
    #[prost(uint32, tag = "3")]
    pub(super) name: u32,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) syscalls: Vec<u32>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) calls: Vec<u64>,
    #[prost(uint64, repeated, tag = "6")]
    pub(super) failed: Vec<u64>,
    /// Time in ns plus one; 0 if it is not known.
    #[prost(uint64, repeated, tag = "7")]
    pub(super) toll_ns: Vec<u64>,
    /// Time in ns plus one; 0 if it is not known.
    #[prost(uint64, repeated, tag = "8")]
    pub(super) waited_ns: Vec<u64>,
}

/// A window in columns. A column has one entry a call, or one for each call whose flag says so. A
/// difference is taken to the window's previous call of the same row (to zero for the first),
/// wrapping around 2^64: thousands of similar calls cost a byte a register.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Window {
    #[prost(uint32, tag = "1")]
    pub(super) process: u32,
    #[prost(uint32, tag = "2")]
    pub(super) thread: u32,
    #[prost(uint32, tag = "3")]
    pub(super) row: u32,
    #[prost(uint32, tag = "4")]
    pub(super) octave: u32,
    /// Flags of each call; see [`flag`].
    #[prost(uint32, repeated, tag = "5")]
    pub(super) flags: Vec<u32>,
    #[prost(uint32, repeated, tag = "6")]
    pub(super) rows: Vec<u32>,
    /// Numbers of the calls within their rows, as differences to the row's previous call.
    #[prost(sint64, repeated, tag = "7")]
    pub(super) nth: Vec<i64>,
    /// Arguments, as differences to the row's previous call, six a call.
    #[prost(sint64, repeated, tag = "8")]
    pub(super) args: Vec<i64>,
    /// Results, as differences to the row's previous call.
    #[prost(sint64, repeated, tag = "9")]
    pub(super) results: Vec<i64>,
    /// Times of the entries, as differences to the window's previous call of any row.
    #[prost(sint64, repeated, tag = "10")]
    pub(super) entry_ns: Vec<i64>,
    #[prost(uint64, repeated, tag = "11")]
    pub(super) elapsed_ns: Vec<u64>,
    #[prost(uint64, repeated, tag = "12")]
    pub(super) waited_ns: Vec<u64>,
    #[prost(uint32, repeated, tag = "13")]
    pub(super) signals: Vec<u32>,
    /// Names of the files behind descriptors, as indices of strings.
    #[prost(uint32, repeated, tag = "14")]
    pub(super) fds: Vec<u32>,
    #[prost(uint32, repeated, tag = "15")]
    pub(super) stacks: Vec<u32>,
    /// The number of pieces of memory, for each call that has some.
    #[prost(uint32, repeated, tag = "16")]
    pub(super) data: Vec<u32>,
    /// One entry for each piece: the argument's index × 4, plus 1 if it was read at the exit, plus 2 if it is cut.
    #[prost(uint32, repeated, tag = "17")]
    pub(super) data_keys: Vec<u32>,
    /// One entry for each piece: its index in the blobs.
    #[prost(uint32, repeated, tag = "18")]
    pub(super) data_blobs: Vec<u32>,
    /// Page faults, as differences to the window's previous call that has a value.
    #[prost(sint64, repeated, tag = "19")]
    pub(super) faults: Vec<i64>,
    /// Indices of kinds of requests.
    #[prost(uint32, repeated, tag = "20")]
    pub(super) requests: Vec<u32>,
}

/// Flags of a call of a window: the columns that have an entry for it.
pub(super) mod flag {
    pub(in super::super) const RETURNED: u32 = 1;
    pub(in super::super) const WAITED: u32 = 2;
    pub(in super::super) const SIGNALS: u32 = 4;
    pub(in super::super) const FD: u32 = 8;
    pub(in super::super) const STACK: u32 = 16;
    pub(in super::super) const DATA: u32 = 32;
    pub(in super::super) const FAULTS: u32 = 64;
    pub(in super::super) const ASKED_BEFORE: u32 = 128;
    pub(in super::super) const ASKED_THE_OTHER_WAY: u32 = 256;
    pub(in super::super) const REQUEST: u32 = 512;
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LongCall {
    #[prost(uint32, tag = "1")]
    pub(super) row: u32,
    #[prost(uint64, tag = "2")]
    pub(super) ns: u64,
    #[prost(uint64, tag = "3")]
    pub(super) at_ns: u64,
    #[prost(uint32, tag = "4")]
    pub(super) thread: u32,
    #[prost(bool, tag = "5")]
    pub(super) startup: bool,
}

/// Objects of a row's calls. The columns of objects have one length.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Ledger {
    #[prost(uint32, tag = "1")]
    pub(super) row: u32,
    #[prost(uint64, tag = "2")]
    pub(super) looks: u64,
    #[prost(uint64, tag = "3")]
    pub(super) calls: u64,
    #[prost(uint64, tag = "4")]
    pub(super) squares: u64,
    #[prost(uint64, tag = "5")]
    pub(super) repeats: u64,
    #[prost(uint64, tag = "6")]
    pub(super) other_way: u64,
    #[prost(uint64, tag = "7")]
    pub(super) changes: u64,
    #[prost(uint64, tag = "8")]
    pub(super) objects: u64,
    #[prost(uint64, tag = "9")]
    pub(super) once: u64,
    #[prost(uint64, tag = "10")]
    pub(super) twice: u64,
    #[prost(uint32, tag = "11")]
    pub(super) level: u32,
    #[prost(bool, tag = "12")]
    pub(super) relative: bool,
    #[prost(uint32, repeated, tag = "13")]
    pub(super) top_names: Vec<u32>,
    #[prost(uint64, repeated, tag = "14")]
    pub(super) top_looks: Vec<u64>,
    #[prost(uint64, repeated, tag = "15")]
    pub(super) top_calls: Vec<u64>,
    #[prost(uint64, repeated, tag = "16")]
    pub(super) top_same: Vec<u64>,
    /// For each object: the number of its other system calls, then their numbers.
    #[prost(uint32, repeated, tag = "17")]
    pub(super) top_also: Vec<u32>,
}

/// Prices. The columns of calls have one length.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Prices {
    #[prost(message, optional, tag = "1")]
    pub(super) crossing_before: Option<Spread>,
    #[prost(message, optional, tag = "2")]
    pub(super) crossing_after: Option<Spread>,
    #[prost(uint32, repeated, tag = "3")]
    pub(super) syscalls: Vec<u32>,
    #[prost(double, repeated, tag = "4")]
    pub(super) ns: Vec<f64>,
    #[prost(double, repeated, tag = "5")]
    pub(super) low: Vec<f64>,
    #[prost(double, repeated, tag = "6")]
    pub(super) high: Vec<f64>,
    #[prost(uint32, repeated, tag = "7")]
    pub(super) sources: Vec<u32>,
    #[prost(message, optional, tag = "8")]
    pub(super) fault: Option<Spread>,
    #[prost(message, optional, tag = "9")]
    pub(super) switch: Option<Spread>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Spread {
    #[prost(double, tag = "1")]
    pub(super) min: f64,
    #[prost(double, tag = "2")]
    pub(super) median: f64,
    #[prost(double, tag = "3")]
    pub(super) high: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Problem {
    #[prost(string, tag = "1")]
    pub(super) kind: String,
    #[prost(string, tag = "2")]
    pub(super) text: String,
}
