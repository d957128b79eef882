//! Where CRuby keeps what, by version.
//!
//! Offsets are of vm_core.h and iseq.h of 2.7 to 3.4 on x86-64; they are the same in the first
//! and the last patch release of each.

/// Offsets of fields, in bytes. The execution context's stack, its size, the current control
/// frame and the tag are at 0, 8, 16 and 24 in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// `rb_vm_t`: the main thread.
    pub(crate) main_thread: u64,
    /// `rb_thread_t`, whose first field is its place among the others.
    pub(crate) thread_vm: u64,
    pub(crate) context: u64,
    /// Size of `rb_control_frame_t`.
    pub(crate) frame_size: u64,
    /// `rb_iseq_constant_body`: `insns_info`.
    pub(crate) instructions: u64,
    /// Size of `iseq_insn_info_entry`.
    pub(crate) entry_size: u64,
    /// True if a string's length stands in front of the text also where it is embedded.
    pub(crate) long_strings: bool,
}

/// `rb_execution_context_t`.
pub(crate) const STACK: u64 = 0;
pub(crate) const STACK_SIZE: u64 = 8;
pub(crate) const FRAME: u64 = 16;
pub(crate) const TAG: u64 = 24;
/// `rb_control_frame_t`.
pub(crate) const PC: u64 = 0;
pub(crate) const ISEQ: u64 = 16;
pub(crate) const ENVIRONMENT: u64 = 32;
/// `rb_iseq_t`.
pub(crate) const BODY: u64 = 16;
/// `rb_iseq_constant_body`, and `rb_iseq_location_t` in it.
pub(crate) const SIZE: u64 = 4;
pub(crate) const ENCODED: u64 = 8;
pub(crate) const PATH: u64 = 64;
pub(crate) const LABEL: u64 = 64 + 16;
/// `iseq_insn_info` from `insns_info` on.
pub(crate) const ENTRIES: u64 = 0;
pub(crate) const ENTRY_COUNT: u64 = 16;
pub(crate) const INDEX: u64 = 24;
pub(crate) const INFO_END: u64 = 32;

const V27: Layout = Layout {
    main_thread: 192,
    thread_vm: 24,
    context: 32,
    frame_size: 56,
    instructions: 120,
    entry_size: 8,
    long_strings: false,
};
const V30: Layout = Layout { main_thread: 40, thread_vm: 32, context: 40, ..V27 };
const V31: Layout = Layout { frame_size: 64, entry_size: 12, ..V30 };
const V32: Layout = Layout { context: 48, instructions: 112, long_strings: true, ..V31 };
const V33: Layout = Layout { frame_size: 56, ..V32 };

impl Layout {
    /// Returns the layout of a version; `None` if it is not known.
    pub(crate) fn of(version: (u32, u32)) -> Option<Self> {
        match version {
            (2, 7) => Some(V27),
            (3, 0) => Some(V30),
            (3, 1) => Some(V31),
            (3, 2) => Some(V32),
            (3, 3 | 4) => Some(V33),
            _ => None,
        }
    }
}
