//! Offsets of bash's fields: variables.h, hashlib.h, array.h and command.h. They are the same from 4.4 to 5.3 on
//! x86-64, except that an array's first field is gone from 5.2 on.

use crate::script::memory::Memory;

/// Addresses of bash's own variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offsets {
    /// Address of `global_variables`.
    pub(crate) variables: u64,
    /// Address of `line_number`.
    pub(crate) line: u64,
    /// Address of `line_number_for_err_trap`: the line of the last simple command, kept after the command has ended.
    pub(crate) last_line: u64,
    /// Address of `executing`.
    pub(crate) executing: u64,
    /// Address of `running_trap`: the number of a trap's signal plus one, or 0.
    pub(crate) trap: u64,
    /// Address of `command_execution_string`, the commands given with `-c`.
    pub(crate) command: u64,
    /// Address of `shell_function_defs`.
    pub(crate) functions: u64,
    /// Address of `shell_script_filename`, which is null if the shell runs no file.
    pub(crate) script: u64,
    /// Address of `dollar_vars`; the first of these texts is the name by which the shell was called.
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

/// Names of the arrays of the functions being executed, of their files, and of the lines from which they were called,
/// innermost first.
pub(crate) const ARRAYS: [&str; 3] = ["FUNCNAME", "BASH_SOURCE", "BASH_LINENO"];

/// Offset of `FUNCTION_DEF.line`.
pub(crate) const DEFINED_AT: u64 = 4;
/// Offset of `VAR_CONTEXT.table`.
const TABLE: u64 = 32;
/// Offset of `HASH_TABLE.nbuckets`; the array of buckets is before it.
const BUCKETS: u64 = 8;
/// Offset of `BUCKET_CONTENTS.key`; the next entry is before it.
const KEY: u64 = 8;
/// Offset of `BUCKET_CONTENTS.data`.
const DATA: u64 = 16;
/// Offset of `SHELL_VAR.value`; the name is before it.
const VALUE: u64 = 8;
/// Offset of `ARRAY_ELEMENT.value`; the index is before it.
const ELEMENT_VALUE: u64 = 8;
/// Offset of `ARRAY_ELEMENT.next`.
const NEXT: u64 = 16;
/// Entries of a bucket looked through, at most.
const MAX_CHAIN: usize = 64;
/// Buckets of a table, at most; a larger number is not believed.
const MAX_BUCKETS: u32 = 1 << 20;
/// Start values of `hash_string`: since 5.1, and before.
const SEEDS: [u32; 2] = [2_166_136_261, 0];

/// A hash table of bash's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    buckets: u64,
    count: u32,
}

impl Table {
    /// Returns the table to which the pointer at `address` points.
    pub(crate) fn of_pointer(memory: &mut Memory<'_, '_>, address: u64) -> Option<Self> {
        let table = memory.pointer(address)?;
        let count = memory.half(table.wrapping_add(BUCKETS))?;
        let buckets = memory.pointer(table)?;
        (count.is_power_of_two() && count <= MAX_BUCKETS).then_some(Self { buckets, count })
    }

    /// Returns the table of the `VAR_CONTEXT` to which the pointer at `address` points.
    pub(crate) fn of_context(memory: &mut Memory<'_, '_>, address: u64) -> Option<Self> {
        let context = memory.pointer(address)?;
        Self::of_pointer(memory, context.wrapping_add(TABLE))
    }

    /// Returns the value of `key`.
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

/// Returns the hash of a key (`hash_string` of hashlib.c).
fn hash(seed: u32, key: &[u8]) -> u32 {
    key.iter().fold(seed, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(*byte))
}

/// A reader of an array, whose elements are linked in a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    head: u64,
    at: u64,
}

impl Array {
    /// Returns a reader of the array that is the value of a variable, before its first element.
    pub(crate) fn of(memory: &mut Memory<'_, '_>, variables: Table, name: &str) -> Option<Self> {
        let variable = variables.find(memory, name.as_bytes())?;
        let array = memory.pointer(variable.wrapping_add(VALUE))?;
        // The ring's head is the only element with no value and an index of -1. Until 5.1, a type lies before the
        // fields.
        let is_head = |memory: &mut Memory<'_, '_>, at: u64| {
            memory.word(at) == Some(u64::MAX) && memory.word(at.wrapping_add(ELEMENT_VALUE)) == Some(0)
        };
        let heads = [16, 24].map(|at| memory.pointer(array.wrapping_add(at)));
        let head = heads.into_iter().flatten().find(|at| is_head(memory, *at))?;
        Some(Self { head, at: head })
    }

    /// Returns the address of the next element's text; `Some(None)` after the last.
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

    /// Hashes are those that a running bash 5.2.15 keeps in `khash`.
    #[test]
    fn names_hash_as_in_bash() {
        let told = ARRAYS.map(|name| hash(SEEDS[0], name.as_bytes()));
        assert_eq!(told, [0x2c56_946a, 0x929d_46fd, 0x59e6_c8ad]);
    }
}
