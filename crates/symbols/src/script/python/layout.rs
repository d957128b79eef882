//! Where CPython keeps what, by version.
//!
//! From 3.13 on `_PyRuntime` begins with a table of these offsets (`_Py_DebugOffsets`,
//! Include/internal/pycore_debug_offsets.h). Before, they are what `offsetof` gives for the
//! headers of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1 on x86-64; fields of a minor version do
//! not move (it would break extensions).

use crate::script::memory::Memory;
use systoll_binfile::word;

/// The links between a thread's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// Frame objects, each run by an evaluation of its own (until 3.10).
    Objects,
    /// Each evaluation has a `_PyCFrame` on the native stack; `is_entry` ends its frames (3.11).
    CFrames {
        /// `_PyCFrame.current_frame`.
        current: u64,
        /// `_PyCFrame.previous`.
        previous: u64,
        /// `_PyInterpreterFrame.is_entry`.
        is_entry: u64,
    },
    /// Each evaluation has an entry frame on the native stack, told by its owner (from 3.12); the
    /// first frame is found through the `_PyCFrame` (3.12) or in the thread (from 3.13).
    Entries {
        /// True if a `_PyCFrame` lies between.
        through_cframe: bool,
    },
}

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Minor version: 11 for 3.11.
    pub(crate) minor: u8,
    pub(crate) chain: Chain,
    /// `_PyRuntimeState`.
    pub(crate) interpreters: u64,
    /// `PyInterpreterState`.
    pub(crate) next_interpreter: u64,
    pub(crate) threads: u64,
    /// `PyThreadState`.
    pub(crate) next_thread: u64,
    pub(crate) thread_id: u64,
    pub(crate) native_id: Option<u64>,
    pub(crate) frame: u64,
    /// `PyFrameObject` or `_PyInterpreterFrame`.
    pub(crate) previous: u64,
    pub(crate) code: u64,
    /// Index (until 3.10) or address of the instruction.
    pub(crate) instruction: u64,
    pub(crate) owner: u64,
    /// `PyCodeObject`.
    pub(crate) file_name: u64,
    pub(crate) name: u64,
    pub(crate) first_line: u64,
    pub(crate) line_table: u64,
    pub(crate) bytecode: u64,
    /// `PyASCIIObject` and `PyCompactUnicodeObject`: where text begins.
    pub(crate) ascii: u64,
    pub(crate) compact: u64,
}

/// `PyObject.ob_type`.
pub(crate) const TYPE: u64 = 8;
/// `PyTypeObject.tp_name`.
pub(crate) const TYPE_NAME: u64 = 24;
/// `PyVarObject.ob_size`, also `PyASCIIObject.length`.
pub(crate) const LENGTH: u64 = 16;
/// `PyBytesObject.ob_sval`.
pub(crate) const BYTES: u64 = 32;
/// `PyASCIIObject.state`.
pub(crate) const STATE: u64 = 32;

const V39: Layout = Layout {
    minor: 9,
    chain: Chain::Objects,
    interpreters: 32,
    next_interpreter: 0,
    threads: 8,
    next_thread: 8,
    thread_id: 176,
    native_id: None,
    frame: 24,
    previous: 24,
    code: 32,
    instruction: 104,
    owner: 0,
    file_name: 104,
    name: 112,
    first_line: 40,
    line_table: 120,
    bytecode: 0,
    ascii: 48,
    compact: 72,
};

const V310: Layout = Layout { minor: 10, instruction: 96, ..V39 };

const V311: Layout = Layout {
    minor: 11,
    chain: Chain::CFrames { current: 8, previous: 16, is_entry: 68 },
    interpreters: 40,
    threads: 16,
    thread_id: 152,
    native_id: Some(160),
    frame: 56,
    previous: 48,
    code: 32,
    instruction: 56,
    owner: 69,
    file_name: 112,
    name: 120,
    first_line: 72,
    line_table: 136,
    bytecode: 184,
    ..V39
};

const V312: Layout = Layout {
    minor: 12,
    chain: Chain::Entries { through_cframe: true },
    threads: 72,
    thread_id: 136,
    native_id: Some(144),
    previous: 8,
    code: 0,
    owner: 70,
    first_line: 68,
    bytecode: 192,
    ascii: 40,
    compact: 56,
    ..V311
};

/// The first bytes of `_Py_DebugOffsets`.
const COOKIE: &[u8] = b"xdebugpy";
/// Larger structs are none.
const MAX_SIZE: u64 = 1 << 24;
/// Where the parts that all versions have at the same place begin.
const RUNTIME: usize = 3;
const INTERPRETER: usize = 6;

impl Layout {
    /// The layout of a CPython whose `_PyRuntime` is at `runtime`; `told` is `PY_VERSION_HEX` as
    /// far as the files tell. `None` for a version that is not known.
    pub(crate) fn of(memory: &mut Memory<'_, '_>, runtime: u64, told: Option<u32>) -> Option<Self> {
        if memory.holds(runtime, COOKIE) {
            return described(&memory.bytes(runtime, 8 * 64, 8 * 64)?);
        }
        let told = told?;
        match (told >> 24, told >> 16 & 0xff) {
            (3, 8 | 9) => Some(V39),
            (3, 10) => Some(V310),
            (3, 11) => Some(V311),
            (3, 12) => Some(V312),
            _ => None,
        }
    }
}

/// Where the parts of `_Py_DebugOffsets` whose place differs begin, as indices of 8-byte words.
struct Parts {
    thread: usize,
    /// Where in that part the thread's ids are told.
    ids: usize,
    frame: usize,
    code: usize,
}

fn described(table: &[u8]) -> Option<Layout> {
    let version = word(table, 8)?;
    let free_threaded = word(table, 16)?;
    let Parts { thread, ids, frame, code } = match (version >> 24, version >> 16 & 0xff) {
        (3, 13) => Parts { thread: 19, ids: 5, frame: 28, code: 34 },
        // More of the interpreter's state, and where the frame's stack ends.
        (3, 14) => Parts { thread: 22, ids: 5, frame: 31, code: 39 },
        // More of a thread's state, and of its exceptions.
        (3, 15) => Parts { thread: 22, ids: 8, frame: 39, code: 47 },
        _ => return None,
    };
    // Threads have bytecode of their own there.
    if free_threaded != 0 {
        return None;
    }
    // Each part begins with its struct's size: no field lies beyond it.
    let at = |part: usize, field: usize| {
        let size = word(table, 8 * part).filter(|s| *s < MAX_SIZE)?;
        word(table, 8 * (part + field)).filter(|offset| *offset < size)
    };
    Some(Layout {
        minor: (version >> 16) as u8,
        chain: Chain::Entries { through_cframe: false },
        interpreters: at(RUNTIME, 2)?,
        next_interpreter: at(INTERPRETER, 2)?,
        threads: at(INTERPRETER, 3)?,
        next_thread: at(thread, 2)?,
        frame: at(thread, 4)?,
        thread_id: at(thread, ids)?,
        native_id: Some(at(thread, ids + 1)?),
        previous: at(frame, 1)?,
        code: at(frame, 2)?,
        instruction: at(frame, 3)?,
        owner: at(frame, 5)?,
        file_name: at(code, 1)?,
        name: at(code, 2)?,
        line_table: at(code, 4)?,
        first_line: at(code, 5)?,
        // Behind the fields, where the struct ends.
        bytecode: word(table, 8 * (code + 9)).filter(|offset| *offset < MAX_SIZE)?,
        ..V312
    })
}
