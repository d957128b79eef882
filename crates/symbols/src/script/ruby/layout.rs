//! Offsets of CRuby's fields, by version.
//!
//! They are those of vm_core.h and iseq.h of 2.7 to 3.4 on x86-64, and the same in the first and
//! the last patch release of each.

/// Offsets that differ between versions, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset of the main thread in `rb_vm_t`.
    pub(crate) main_thread: u64,
    /// Offset in `rb_thread_t` of the VM; the struct's first field links it to the other threads.
    pub(crate) thread_vm: u64,
    /// Offset in `rb_thread_t` of the execution context.
    pub(crate) context: u64,
    /// Size of `rb_control_frame_t`, bytes.
    pub(crate) frame_size: u64,
    /// Offset of `rb_iseq_constant_body.insns_info`.
    pub(crate) instructions: u64,
    /// Size of `iseq_insn_info_entry`, bytes.
    pub(crate) entry_size: u64,
    /// True if the length of an embedded string also lies before its text.
    pub(crate) long_strings: bool,
}

/// Offset in `rb_execution_context_t` of its stack.
pub(crate) const STACK: u64 = 0;
/// Offset in `rb_execution_context_t` of the stack's size, in words.
pub(crate) const STACK_SIZE: u64 = 8;
/// Offset in `rb_execution_context_t` of the current control frame.
pub(crate) const FRAME: u64 = 16;
/// Offset in `rb_execution_context_t` of the innermost tag.
pub(crate) const TAG: u64 = 24;
/// Offset in `rb_control_frame_t` of the program counter.
pub(crate) const PC: u64 = 0;
/// Offset in `rb_control_frame_t` of the instruction sequence.
pub(crate) const ISEQ: u64 = 16;
/// Offset in `rb_control_frame_t` of the environment.
pub(crate) const ENVIRONMENT: u64 = 32;
/// Distance below a frame's environment of the entry of the method it executes (`VM_ENV_DATA_INDEX_ME_CREF`).
pub(crate) const METHOD: u64 = 16;
/// Offset in `rb_method_entry_t` of the name by which it was called.
pub(crate) const CALLED: u64 = 24;
/// Offset in `rb_symbols_t` of the arrays of texts; the last number that is used is its first field.
pub(crate) const SYMBOLS: u64 = 16;
/// Offset in `rb_iseq_t` of its body.
pub(crate) const BODY: u64 = 16;
/// Offset in `rb_iseq_constant_body` of the number of its instructions.
pub(crate) const SIZE: u64 = 4;
/// Offset in `rb_iseq_constant_body` of its instructions' address.
pub(crate) const ENCODED: u64 = 8;
/// Offset in `rb_iseq_constant_body` of the path (`rb_iseq_location_t`).
pub(crate) const PATH: u64 = 64;
/// Offset in `rb_iseq_constant_body` of the function's name (`rb_iseq_location_t`).
pub(crate) const LABEL: u64 = 64 + 16;
/// Offset in `iseq_insn_info` of its entries.
pub(crate) const ENTRIES: u64 = 0;
/// Offset in `iseq_insn_info` of the number of entries.
pub(crate) const ENTRY_COUNT: u64 = 16;
/// Offset in `iseq_insn_info` of the succinct index.
pub(crate) const INDEX: u64 = 24;
/// Bytes of `iseq_insn_info` that are read.
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
