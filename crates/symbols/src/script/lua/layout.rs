//! Where Lua keeps what, by its version: lstate.h and lobject.h of 5.1 to 5.4, as built for x86-64 without changes.

use std::ops::RangeInclusive;

/// Versions of Lua 5 that are known.
pub(crate) const KNOWN: RangeInclusive<u32> = 1..=4;

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// `lua_State`: its innermost call, the end and the beginning of its stack, …
    pub(crate) call: u64,
    pub(crate) stack_last: u64,
    pub(crate) stack: u64,
    /// … where its innermost protected call has its jump buffer, …
    pub(crate) jump: u64,
    /// … its outermost call: the record itself, or in 5.1 a pointer to the first of an array.
    pub(crate) base_call: u64,
    /// In 5.1 only: the instruction of the innermost call, and the distance of calls.
    pub(crate) array: Option<Array>,
    /// `CallInfo`: its function on the stack, the call around it, the instruction it goes on with.
    pub(crate) function: u64,
    pub(crate) previous: u64,
    pub(crate) instruction: u64,
    /// `LClosure.p`.
    pub(crate) prototype: u64,
    /// `Proto`: code, lines, the text it is of, how much code there is, its first line.
    pub(crate) code: u64,
    pub(crate) lines: u64,
    pub(crate) source: u64,
    pub(crate) code_size: u64,
    pub(crate) defined: u64,
    /// In 5.4 only: lines are differences, some of them whole.
    pub(crate) whole_lines: Option<WholeLines>,
}

/// Fields that only 5.1 has: its calls lie in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// `lua_State.savedpc`.
    pub(crate) instruction: u64,
    /// Size of a `CallInfo`.
    pub(crate) size: u64,
}

/// Fields that only 5.4 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WholeLines {
    /// `Proto.abslineinfo` and `Proto.sizeabslineinfo`.
    pub(crate) table: u64,
    pub(crate) count: u64,
}

/// Offset of an object's type.
pub(crate) const KIND: u64 = 8;
/// A value's type, and what of it tells functions written in Lua from others.
pub(crate) const VALUE_KIND: u64 = 8;
pub(crate) const KIND_MASK: u8 = 0x3f;
pub(crate) const FUNCTION: u8 = 6;
pub(crate) const THREAD: u8 = 8;
/// `Closure.isC` of 5.1, where the value's type is the same for both.
pub(crate) const IS_C: u64 = 10;
/// `TString`: its text.
pub(crate) const TEXT: u64 = 24;

impl Layout {
    /// Returns the layout of Lua 5.`minor`.`release`, if it is known.
    pub(crate) fn of(minor: u32, release: u32) -> Option<Self> {
        Some(match minor {
            1 => Self {
                call: 40,
                stack_last: 56,
                stack: 64,
                jump: 168,
                base_call: 80,
                array: Some(Array { instruction: 48, size: 40 }),
                function: 8,
                previous: 0,
                instruction: 24,
                prototype: 32,
                code: 24,
                lines: 40,
                source: 64,
                code_size: 80,
                defined: 96,
                whole_lines: None,
            },
            2 => Self {
                call: 32,
                stack_last: 48,
                stack: 56,
                jump: 112,
                base_call: 128,
                array: None,
                function: 0,
                previous: 16,
                instruction: 56,
                prototype: 24,
                code: 24,
                lines: 40,
                source: 72,
                code_size: 88,
                defined: 104,
                whole_lines: None,
            },
            3 => Self {
                call: 32,
                stack_last: 48,
                stack: 56,
                jump: 88,
                base_call: 96,
                array: None,
                function: 0,
                previous: 16,
                instruction: 40,
                prototype: 24,
                code: 56,
                lines: 72,
                source: 104,
                code_size: 24,
                defined: 40,
                whole_lines: None,
            },
            4 => {
                // `tbclist` came with 5.4.3.
                let shift = if release < 3 { 0 } else { 8 };
                Self {
                    call: 32,
                    stack_last: 40,
                    stack: 48,
                    jump: 80 + shift,
                    base_call: 88 + shift,
                    array: None,
                    function: 0,
                    previous: 16,
                    instruction: 32,
                    prototype: 24,
                    code: 64,
                    lines: 88,
                    source: 112,
                    code_size: 24,
                    defined: 44,
                    whole_lines: Some(WholeLines { table: 96, count: 40 }),
                }
            }
            _ => return None,
        })
    }
}
