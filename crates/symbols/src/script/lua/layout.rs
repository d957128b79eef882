//! Offsets of Lua's fields, by version: lstate.h and lobject.h of 5.1 to 5.4, as built for x86-64 without changes.

use std::ops::RangeInclusive;

/// Minor versions of Lua 5 whose layout is known.
pub(crate) const KNOWN: RangeInclusive<u32> = 1..=4;

/// Offsets of fields, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset in `lua_State` of its innermost call.
    pub(crate) call: u64,
    /// Offset in `lua_State` of the end of its stack.
    pub(crate) stack_last: u64,
    /// Offset in `lua_State` of the start of its stack.
    pub(crate) stack: u64,
    /// Offset in `lua_State` of the jump buffer of its innermost protected call.
    pub(crate) jump: u64,
    /// Offset in `lua_State` of its outermost call: of the record itself, or in 5.1 of a pointer to the first of an
    /// array.
    pub(crate) base_call: u64,
    /// Offsets of an array of calls, which only 5.1 has.
    pub(crate) array: Option<Array>,
    /// Offset in `CallInfo` of its function on the stack.
    pub(crate) function: u64,
    /// Offset in `CallInfo` of the call around it.
    pub(crate) previous: u64,
    /// Offset in `CallInfo` of the instruction with which it continues.
    pub(crate) instruction: u64,
    /// Offset of `LClosure.p`.
    pub(crate) prototype: u64,
    /// Offset in `Proto` of its code.
    pub(crate) code: u64,
    /// Offset in `Proto` of its lines.
    pub(crate) lines: u64,
    /// Offset in `Proto` of the name of its source.
    pub(crate) source: u64,
    /// Offset in `Proto` of the number of its instructions.
    pub(crate) code_size: u64,
    /// Offset in `Proto` of its first line.
    pub(crate) defined: u64,
    /// Offsets of absolute lines, which only 5.4 has: its other lines are differences.
    pub(crate) whole_lines: Option<WholeLines>,
}

/// Offsets of 5.1, whose calls lie in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// Offset of `lua_State.savedpc`, the instruction of the innermost call.
    pub(crate) instruction: u64,
    /// Size of a `CallInfo`, bytes.
    pub(crate) size: u64,
}

/// Offsets of the table of absolute lines in 5.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WholeLines {
    /// Offset of `Proto.abslineinfo`.
    pub(crate) table: u64,
    /// Offset of `Proto.sizeabslineinfo`.
    pub(crate) count: u64,
}

/// Offset of an object's type.
pub(crate) const KIND: u64 = 8;
/// Offset of a value's type.
pub(crate) const VALUE_KIND: u64 = 8;
/// Bits of a type that tell functions written in Lua from others.
pub(crate) const KIND_MASK: u8 = 0x3f;
pub(crate) const FUNCTION: u8 = 6;
pub(crate) const THREAD: u8 = 8;
/// Offset of `Closure.isC` in 5.1, where functions of both kinds have the same type.
pub(crate) const IS_C: u64 = 10;
/// Offset in `TString` of its text.
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
                // The field `tbclist` came with 5.4.3.
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
