//! Where bash keeps what: variables.h, hashlib.h, array.h and command.h, the same from 4.4 to 5.3 on x86-64 but for
//! an array's first field, which 5.2 has no more.

use crate::script::memory::Memory;

/// Addresses of bash's own variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offsets {
    /// `global_variables`.
    pub(crate) variables: u64,
    /// `line_number`.
    pub(crate) line: u64,
    /// `line_number_for_err_trap`: the line of the last simple command, also when that has been left.
    pub(crate) last_line: u64,
    /// `executing`.
    pub(crate) executing: u64,
    /// `running_trap`: a signal's number and one, or 0.
    pub(crate) trap: u64,
    /// `command_execution_string`: what stands behind `-c`.
    pub(crate) command: u64,
    /// `shell_function_defs`.
    pub(crate) functions: u64,
    /// `shell_script_filename`: null where the shell runs no file.
    pub(crate) script: u64,
    /// `dollar_vars`, whose first is the name that the shell was called by.
    pub(crate) arguments: u64,
}

impl Offsets {
    /// Returns the addresses in a process that has the file mapped with `bias`.
    pub(crate) fn moved(self, bias: u64) -> Self {
        let moved = |at: u64| at.wrapping_add(bias);
        Self {
            variables: moved(self.variables),
            line: moved(self.line),
            last_line: moved(self.last_line),
            executing: moved(self.executing),
            trap: moved(self.trap),
            command: moved(self.command),
            functions: moved(self.functions),
            script: moved(self.script),
            arguments: moved(self.arguments),
        }
    }
}

/// Functions, their files, and the lines at which they were called, innermost first.
pub(crate) const ARRAYS: [&str; 3] = ["FUNCNAME", "BASH_SOURCE", "BASH_LINENO"];

/// `FUNCTION_DEF.line`.
pub(crate) const DEFINED_AT: u64 = 4;
/// `VAR_CONTEXT.table`.
const TABLE: u64 = 32;
/// `HASH_TABLE.nbuckets`, behind the array of buckets.
const BUCKETS: u64 = 8;
/// `BUCKET_CONTENTS.key` and `.data`, behind the next one.
const KEY: u64 = 8;
const DATA: u64 = 16;
/// `SHELL_VAR.value`, behind the name.
const VALUE: u64 = 8;
/// `ARRAY_ELEMENT.value` and `.next`, behind the index.
const ELEMENT_VALUE: u64 = 8;
const NEXT: u64 = 16;
/// Most entries of one bucket looked at, and most buckets of a table.
const MAX_CHAIN: usize = 64;
const MAX_BUCKETS: u32 = 1 << 20;
/// The start values of `hash_string`: since 5.1, and before.
const SEEDS: [u32; 2] = [2_166_136_261, 0];

/// A table of bash's, by the address of the variable or of the context that points to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    buckets: u64,
    count: u32,
}

impl Table {
    /// The table of a `HASH_TABLE` that the pointer at `address` points to.
    pub(crate) fn of_pointer(memory: &mut Memory<'_, '_>, address: u64) -> Option<Self> {
        let table = memory.pointer(address)?;
        let count = memory.half(table.wrapping_add(BUCKETS))?;
        let buckets = memory.pointer(table)?;
        (count.is_power_of_two() && count <= MAX_BUCKETS).then_some(Self { buckets, count })
    }

    /// The table of a `VAR_CONTEXT` that the pointer at `address` points to.
    pub(crate) fn of_context(memory: &mut Memory<'_, '_>, address: u64) -> Option<Self> {
        let context = memory.pointer(address)?;
        Self::of_pointer(memory, context.wrapping_add(TABLE))
    }

    /// Returns what the table has under `key`.
    pub(crate) fn find(self, memory: &mut Memory<'_, '_>, key: &[u8]) -> Option<u64> {
        SEEDS.iter().find_map(|seed| {
            let bucket = hash(*seed, key) & (self.count - 1);
            let mut entry = memory.word(self.buckets.wrapping_add(u64::from(bucket) * 8))?;
            for _ in 0..MAX_CHAIN {
                if entry == 0 {
                    break;
                }
                let name = memory.pointer(entry.wrapping_add(KEY))?;
                if memory.holds(name, key) && memory.byte(name.wrapping_add(key.len() as u64)) == Some(0) {
                    return memory.pointer(entry.wrapping_add(DATA));
                }
                entry = memory.word(entry)?;
            }
            None
        })
    }
}

/// `hash_string` of hashlib.c.
fn hash(seed: u32, key: &[u8]) -> u32 {
    key.iter().fold(seed, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(*byte))
}

/// The rest of an array to read: its elements hang in a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    head: u64,
    at: u64,
}

impl Array {
    /// The array that is the value of a variable, from its first element on.
    pub(crate) fn of(memory: &mut Memory<'_, '_>, variables: Table, name: &str) -> Option<Self> {
        let variable = variables.find(memory, name.as_bytes())?;
        let array = memory.pointer(variable.wrapping_add(VALUE))?;
        // The ring's head, alone in it, has no value, and an index of its own. Until 5.1 a type stands in front.
        let is_head = |memory: &mut Memory<'_, '_>, at: u64| {
            memory.word(at) == Some(u64::MAX) && memory.word(at.wrapping_add(ELEMENT_VALUE)) == Some(0)
        };
        let heads = [16, 24].map(|at| memory.pointer(array.wrapping_add(at)));
        let head = heads.into_iter().flatten().find(|at| is_head(memory, *at))?;
        Some(Self { head, at: head })
    }

    /// Returns the address of the next element's text; `Some(None)` where there are no more.
    pub(crate) fn next(&mut self, memory: &mut Memory<'_, '_>) -> Option<Option<u64>> {
        self.at = memory.pointer(self.at.wrapping_add(NEXT))?;
        if self.at == self.head {
            return Some(None);
        }
        Some(Some(memory.pointer(self.at.wrapping_add(ELEMENT_VALUE))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `khash` of the entries of a running bash 5.2.15.
    #[test]
    fn names_hash_as_in_bash() {
        let told = ARRAYS.map(|name| hash(SEEDS[0], name.as_bytes()));
        assert_eq!(told, [0x2c56_946a, 0x929d_46fd, 0x59e6_c8ad]);
    }
}
