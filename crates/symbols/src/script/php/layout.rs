//! Offsets of PHP's fields, by the number of its engine's interface: zend_globals.h, zend_compile.h and zend_types.h
//! of builds without threads on x86-64.
//!
//! The offsets of 8.2 were read from a running one; those of other versions are taken from the OpenTelemetry
//! profiler.

/// Offsets that differ between versions, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset of `zend_executor_globals.current_execute_data`.
    pub(crate) current: u64,
    /// Offset of `zend_op_array.filename`; the first and the last line follow it.
    pub(crate) file: u64,
}

/// Offset in `zend_execute_data` of the instruction.
pub(crate) const INSTRUCTION: u64 = 0;
/// Offset in `zend_execute_data` of the function.
pub(crate) const FUNCTION: u64 = 24;
/// Offset in `zend_execute_data` of the flags.
pub(crate) const INFO: u64 = 40;
/// Offset in `zend_execute_data` of the caller's `zend_execute_data`.
pub(crate) const CALLER: u64 = 48;
/// Flag of a call (`ZEND_CALL_TOP`): the function that executes scripts was called anew for it.
pub(crate) const TOP: u32 = 1 << 17;
/// Offset in `zend_function` of its name; its type is in the first byte.
pub(crate) const NAME: u64 = 8;
/// Offset in `zend_function` of its class.
pub(crate) const SCOPE: u64 = 16;
/// Type of a function written in C.
pub(crate) const INTERNAL: u8 = 1;
/// Type of a function written in PHP.
pub(crate) const USER: u8 = 2;
/// Type of evaluated code.
pub(crate) const EVALUATED: u8 = 4;
/// Offset of `zend_class_entry.name`.
pub(crate) const CLASS_NAME: u64 = 8;
/// Offset of `zend_op.lineno`.
pub(crate) const LINE: u64 = 24;
/// Offsets from `zend_op_array.filename` to `line_start` and `line_end`, bytes.
pub(crate) const FIRST_LINE: u64 = 8;
pub(crate) const LAST_LINE: u64 = 12;
/// Offset in `zend_string` of its type.
pub(crate) const STRING_TYPE: u64 = 4;
/// Type of a string.
pub(crate) const IS_STRING: u32 = 6;
/// Offset in `zend_string` of its length.
pub(crate) const LENGTH: u64 = 16;
/// Offset in `zend_string` of its text.
pub(crate) const TEXT: u64 = 24;
/// Offset of `zend_array.arData`, whose first value points to the engine's own module.
pub(crate) const VALUES: u64 = 16;
/// Offset of `zend_module_entry.zend_api`.
pub(crate) const INTERFACE: u64 = 4;

/// Known values of `ZEND_MODULE_API_NO`, with their versions' names and layouts.
const KNOWN: &[(u32, &str, Layout)] = &[
    (20_190_902, "7.4", Layout { current: 488, file: 136 }),
    (20_200_930, "8.0", Layout { current: 488, file: 144 }),
    (20_210_902, "8.1", Layout { current: 488, file: 144 }),
    (20_220_829, "8.2", Layout { current: 488, file: 152 }),
    (20_230_831, "8.3", Layout { current: 488, file: 144 }),
    (20_240_924, "8.4", Layout { current: 488, file: 168 }),
    (20_250_925, "8.5", Layout { current: 512, file: 168 }),
];

impl Layout {
    /// Returns the layout of an engine with this interface; `None` if it is not known.
    pub(crate) fn of(interface: u32) -> Option<Self> {
        KNOWN.iter().find(|(number, ..)| *number == interface).map(|(.., layout)| *layout)
    }

    /// Returns the names of the known versions, for a message.
    pub(crate) fn known() -> String {
        KNOWN.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}
