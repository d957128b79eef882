//! Offsets of CPython's fields, by version.
//!
//! From 3.13 on `_PyRuntime` begins with a table of these offsets (`_Py_DebugOffsets`,
//! Include/internal/pycore_debug_offsets.h). Before, they are what `offsetof` gives for the headers
//! of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1 on x86-64; fields do not move within a minor
//! version (it would break extensions).

use crate::script::memory::Memory;
use systoll_binfile::word;

/// The links between a thread's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// Frame objects, each executed by an evaluation of its own (until 3.10).
    Objects,
    /// Frames in evaluations, each of which has a `_PyCFrame` on the native stack and ends with the
    /// frame that has `is_entry` (3.11).
    CFrames {
        /// Offset of `_PyCFrame.current_frame`.
        current: u64,
        /// Offset of `_PyCFrame.previous`.
        previous: u64,
        /// Offset of `_PyInterpreterFrame.is_entry`.
        is_entry: u64,
    },
    /// Frames in evaluations, each of which ends with an entry frame on the native stack, marked by
    /// its owner (from 3.12).
    Entries {
        /// True if the thread points to a `_PyCFrame`, which points to the first frame (3.12);
        /// false if it points to that frame (from 3.13 on).
        through_cframe: bool,
    },
}

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Minor version: 11 for 3.11.
    pub(crate) minor: u8,
    pub(crate) chain: Chain,
    /// Offset of the first interpreter in `_PyRuntimeState`.
    pub(crate) interpreters: u64,
    /// Offset of the next interpreter in `PyInterpreterState`.
    pub(crate) next_interpreter: u64,
    /// Offset of the first thread in `PyInterpreterState`.
    pub(crate) threads: u64,
    /// Offset of the next thread in `PyThreadState`.
    pub(crate) next_thread: u64,
    /// Offset of the thread's `pthread_self` in `PyThreadState`.
    pub(crate) thread_id: u64,
    /// Offset of the thread's kernel id in `PyThreadState`, which there is from 3.11 on.
    pub(crate) native_id: Option<u64>,
    /// Offset of the current frame, or of the `_PyCFrame`, in `PyThreadState`.
    pub(crate) frame: u64,
    /// Offset of the caller's frame in `PyFrameObject` or `_PyInterpreterFrame`.
    pub(crate) previous: u64,
    /// Offset of the code object in a frame.
    pub(crate) code: u64,
    /// Offset of the instruction's index (until 3.10) or address in a frame.
    pub(crate) instruction: u64,
    /// Offset of a frame's owner (from 3.11 on).
    pub(crate) owner: u64,
    /// Offset of the file's name in `PyCodeObject`.
    pub(crate) file_name: u64,
    pub(crate) name: u64,
    pub(crate) first_line: u64,
    pub(crate) line_table: u64,
    pub(crate) bytecode: u64,
    /// Offset of the text in `PyASCIIObject`.
    pub(crate) ascii: u64,
    /// Offset of the text in `PyCompactUnicodeObject`.
    pub(crate) compact: u64,
}

/// Offset of `PyObject.ob_type`.
pub(crate) const TYPE: u64 = 8;
/// Offset of `PyTypeObject.tp_name`.
pub(crate) const TYPE_NAME: u64 = 24;
/// Offset of `PyVarObject.ob_size`, which is also that of `PyASCIIObject.length`.
pub(crate) const LENGTH: u64 = 16;
/// Offset of `PyBytesObject.ob_sval`.
pub(crate) const BYTES: u64 = 32;
/// Offset of `PyASCIIObject.state`.
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

/// First bytes of `_Py_DebugOffsets`.
const COOKIE: &[u8] = b"xdebugpy";
/// Bound of a struct's size, bytes; a larger one is not believed.
const MAX_SIZE: u64 = 1 << 24;
/// Index in `_Py_DebugOffsets` of the part on `_PyRuntimeState`, in 8-byte words; the same in all
/// versions.
const RUNTIME: usize = 3;
/// Index of the part on `PyInterpreterState`, likewise.
const INTERPRETER: usize = 6;

impl Layout {
    /// Returns the layout of the CPython whose `_PyRuntime` is at `runtime`. `told` is
    /// `PY_VERSION_HEX` as far as the files tell it. `None` if the version is not known.
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

/// Indexes of the parts of `_Py_DebugOffsets` that differ between versions, in 8-byte words.
struct Parts {
    thread: usize,
    /// Index, within the thread's part, of the entries on the thread's ids.
    ids: usize,
    frame: usize,
    code: usize,
}

fn described(table: &[u8]) -> Option<Layout> {
    let version = word(table, 8)?;
    let free_threaded = word(table, 16)?;
    let Parts { thread, ids, frame, code } = match (version >> 24, version >> 16 & 0xff) {
        (3, 13) => Parts { thread: 19, ids: 5, frame: 28, code: 34 },
        // In 3.14 the table has more entries before these parts: for the interpreter's state, and
        // for the end of a frame's stack.
        (3, 14) => Parts { thread: 22, ids: 5, frame: 31, code: 39 },
        // In 3.15 the table has more entries for a thread's state and its exceptions.
        (3, 15) => Parts { thread: 22, ids: 8, frame: 39, code: 47 },
        _ => return None,
    };
    // In free-threaded builds, each thread has bytecode of its own.
    if free_threaded != 0 {
        return None;
    }
    // Each part begins with the size of its struct, so a larger offset is not believed.
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
        // The bytecode follows the struct's fields, where the struct ends.
        bytecode: word(table, 8 * (code + 9)).filter(|offset| *offset < MAX_SIZE)?,
        ..V312
    })
}
