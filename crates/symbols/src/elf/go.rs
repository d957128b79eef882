//! Functions, lines, inlined calls and frames of Go programs, from the table that `systoll-binfile` reads.

use super::file::ElfFile;
use crate::code::relocations::RELATIVE;
use object::LittleEndian as Le;
use object::elf;
use std::collections::HashMap;
use systoll_binfile::elf::{Section, relocations};
use systoll_binfile::pclntab::{Frame, Function, InlinedCall, ModuleData, Pclntab};
use systoll_binfile::word;
use systoll_model::Location;

/// Nested inlined functions listed, at most.
const MAX_INLINED: usize = 64;
/// Relocations read of a section, at most.
const MAX_RELOCATIONS: usize = 1 << 20;

/// Go's table of a program's functions.
#[derive(Debug)]
pub(crate) struct GoTable {
    table: Pclntab<Vec<u8>>,
    /// Address from which code offsets count.
    text: u64,
    /// Address of the run-time's data about functions; `None` if it is unknown.
    data: Option<u64>,
}

/// All functions of a program, with their names.
pub(crate) struct GoFunctions {
    /// Names, each ended by a NUL.
    pub(crate) names: Vec<u8>,
    pub(crate) functions: Vec<GoFunction>,
}

/// A function of a Go program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoFunction {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// Offset of the function's name in [`GoFunctions::names`].
    pub(crate) name: u32,
}

impl GoTable {
    /// Returns the table of `elf`; `None` if it is not a Go program, or is older than the table's format.
    pub(crate) fn read(elf: &ElfFile) -> Option<Self> {
        let section = elf.headers.pclntab()?;
        let table = Pclntab::read(elf.section_data(section)?, section.addr)?;
        let module = find_module(elf, section, &table);
        // The section's start is used only if nothing else tells it: with C code before Go's, it would be wrong.
        let text = table.text(module).or_else(|| elf.section(".text").map(|s| s.addr))?;
        Some(Self::new(table, text, module))
    }

    /// Returns true if `elf` has a Go table. Reads only the table's beginning.
    pub(crate) fn is_in(elf: &ElfFile) -> bool {
        const BEGINNING: u64 = 72;
        let table = elf.headers.pclntab().filter(|section| section.is_stored() && !section.is_compressed());
        let beginning = table.and_then(|section| elf.bytes.read(section.offset, BEGINNING.min(section.size)));
        let known = table.zip(beginning).and_then(|(section, beginning)| Pclntab::read(beginning, section.addr));
        match known {
            Some(table) => table.tells_text() || elf.section(".text").is_some() || Self::read(elf).is_some(),
            None => false,
        }
    }

    fn new(table: Pclntab<Vec<u8>>, text: u64, module: Option<ModuleData>) -> Self {
        Self { table, text, data: module.map(|m| m.data).filter(|data| *data != 0) }
    }

    /// Returns all functions in the table.
    pub(crate) fn functions(&self) -> Option<GoFunctions> {
        let function = |f: Function| {
            let (start, size) = (self.text.checked_add(f.start.into())?, u64::from(f.end - f.start));
            Some(GoFunction { start, size, name: self.table.name_of(f)? })
        };
        let functions = self.table.functions().map_while(function).collect();
        Some(GoFunctions { names: self.table.names()?.to_vec(), functions })
    }

    /// Returns the functions at `addr`, innermost first; the last one is not inlined. The list is empty if the table
    /// does not cover the address.
    pub(crate) fn look_up(&self, elf: &ElfFile, addr: u64) -> Vec<Location> {
        self.locations(elf, addr).unwrap_or_default()
    }

    /// Returns the frame of the function around `addr` at that instruction; `None` if the table does not cover the
    /// address.
    pub(crate) fn frame(&self, addr: u64) -> Option<Frame> {
        let offset = u32::try_from(addr.checked_sub(self.text)?).ok()?;
        let function = self.table.around(offset)?;
        self.table.frame(function, (offset - function.start).into())
    }

    fn locations(&self, elf: &ElfFile, addr: u64) -> Option<Vec<Location>> {
        let offset = u32::try_from(addr.checked_sub(self.text)?).ok()?;
        let function = self.table.around(offset).filter(|_| self.table.is_since_120())?;
        let calls = self.data.zip(self.table.inlined_calls(function));
        let calls = calls.map(|(data, calls)| data.wrapping_add(calls.into()));
        let (mut found, mut pc) = (Vec::new(), u64::from(offset - function.start));
        while found.len() < MAX_INLINED {
            let call = self.table.inlined_call(function, pc).zip(calls).and_then(|(index, calls)| {
                let at = calls.checked_add(u64::from(index) * InlinedCall::SIZE)?;
                elf.read_vaddr(at, InlinedCall::SIZE)
            });
            let Some(call) = call else {
                found.push(self.location(function, pc, self.table.name_of(function)?)?);
                return Some(found);
            };
            let call = InlinedCall::read(&call)?;
            found.push(self.location(function, pc, call.name)?);
            pc = call.from.into();
        }
        None
    }

    fn location(&self, function: Function, pc: u64, name: u32) -> Option<Location> {
        let text = |bytes| String::from_utf8_lossy(bytes).into();
        Some(Location {
            function: text(self.table.name(name)?),
            file: self.table.file(function, pc).map(text),
            line: self.table.line(function, pc),
        })
    }
}

/// Finds the run-time's description of the program, which lies in the file's data, or is filled in by the loader if
/// the program is moved.
fn find_module(elf: &ElfFile, table: &Section, pclntab: &Pclntab<Vec<u8>>) -> Option<ModuleData> {
    const HOLDERS: &[&str] = &[".go.module", ".noptrdata", ".data", ".data.rel.ro"];
    let holders = HOLDERS.iter().filter_map(|name| elf.section(name));
    let in_data = { holders }.find_map(|section| {
        let data = elf.section_data(section)?;
        let words = (0..data.len() / 8).map(|n| 8 * n).filter(|at| word(&data, *at) == Some(table.addr));
        let candidates = words.map(|at| section.addr.wrapping_add(at as u64));
        pclntab.module_data(candidates, |at| word(&data, usize::try_from(at.checked_sub(section.addr)?).ok()?))
    });
    in_data.or_else(|| {
        let moved = moved(elf);
        let candidates = moved.iter().filter(|(_, to)| **to == table.addr).map(|(at, _)| *at);
        pclntab.module_data(candidates, |at| moved.get(&at).copied())
    })
}

/// Returns the addresses that the loader writes for relocations within the file, by the place that it writes them to.
fn moved(elf: &ElfFile) -> HashMap<u64, u64> {
    let mut moved = HashMap::new();
    for section in elf.headers.sections.iter().filter(|s| s.kind == elf::SHT_RELA) {
        let Some(data) = elf.section_data(section) else { continue };
        let all = relocations(&data).iter().take(MAX_RELOCATIONS);
        let relative = all.filter(|r| elf::RelocationType(r.r_type(Le, false).0) == RELATIVE);
        moved.extend(relative.map(|r| (r.r_offset.get(Le), r.r_addend.get(Le).cast_unsigned())));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::elf_of_code;
    use proptest::prelude::*;

    const TEXT: u64 = 0x1000;

    /// Returns a table of two functions: `main.outer` of 32 bytes, with `main.inlined` inlined into its second half
    /// (called on line 8, its own line is 3), and `main.other` of 16 bytes. The table records the inlined call at the
    /// start of the code.
    fn table() -> Vec<u8> {
        let names = b"\0main.outer\0main.inlined\0main.other\0";
        let files = b"\0/src/main.go\0";
        // The tables of values say: file 0 throughout; lines 7, then 3; no inlined call, then the first one; stack
        // depth 0 for 4 bytes of code, 56 for 40 bytes, then 0.
        let values =
            [&[0u8][..], &[2, 48, 0], &[16, 16, 7, 16, 0], &[0, 16, 2, 16, 0], &[2, 4, 112, 40, 111, 4, 0]].concat();
        let (file, line, inline, frame) = (1u32, 4u32, 9u32, 14u32);
        let at = |after: usize, len: usize| (after + len).next_multiple_of(4);
        let (name_at, unit_at) = (72, at(72, names.len()));
        let file_at = at(unit_at, 4);
        let value_at = at(file_at, files.len());
        let function_at = at(value_at, values.len());
        let mut bytes = vec![0; function_at];
        bytes[..4].copy_from_slice(&0xffff_fff1_u32.to_le_bytes());
        bytes[6..8].copy_from_slice(&[1, 8]);
        let words = [2, 1, TEXT, name_at as u64, unit_at as u64, file_at as u64, value_at as u64, function_at as u64];
        for (n, word) in words.iter().enumerate() {
            bytes[8 + 8 * n..16 + 8 * n].copy_from_slice(&word.to_le_bytes());
        }
        bytes[name_at..name_at + names.len()].copy_from_slice(names);
        bytes[unit_at] = 1;
        bytes[file_at..file_at + files.len()].copy_from_slice(files);
        bytes[value_at..value_at + values.len()].copy_from_slice(&values);
        // The entries follow the index, which has three elements. Each entry has 44 bytes, three values and four
        // data.
        let size = 44 + 4 * (3 + 4);
        for word in [0u32, 20, 32, 20 + size, 48] {
            bytes.extend(word.to_le_bytes());
        }
        for (start, name) in [(0u32, 1u32), (32, 25)] {
            for word in [
                start,
                name,
                0,
                0,
                frame,
                file,
                line,
                3,
                0,
                1,
                0x0400_0000,
                0,
                0,
                inline,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                0,
            ] {
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes
    }

    /// Returns a file that holds the inlined call: its name is at 12, and it is made from the function's ninth byte.
    fn elf() -> ElfFile {
        elf_of_code(&[&[0u8; 4][..], &12u32.to_le_bytes(), &8u32.to_le_bytes(), &[0; 4], &[0x90; 48]].concat())
    }

    fn parsed(bytes: Vec<u8>) -> Option<GoTable> {
        Some(GoTable::new(Pclntab::read(bytes, 0)?, TEXT, Some(ModuleData { text: TEXT, data: TEXT })))
    }

    #[test]
    fn tells_lines_and_inlined_calls() {
        let (table, elf) = (parsed(table()).unwrap(), elf());
        let seen = |addr| -> Vec<(String, Option<u32>)> {
            table.look_up(&elf, addr).into_iter().map(|l| (l.function.to_string(), l.line)).collect()
        };
        let named = |name: &str, line| (name.to_owned(), Some(line));
        assert_eq!(seen(TEXT + 4), [named("main.outer", 7)]);
        assert_eq!(seen(TEXT + 20), [named("main.inlined", 3), named("main.outer", 7)]);
        assert_eq!(table.look_up(&elf, TEXT)[0].file.as_deref(), Some("/src/main.go"));
        assert_eq!(seen(TEXT + 48), []);
        assert_eq!(seen(0), []);
        let all = table.functions().unwrap().functions;
        let function = |start, size, name| GoFunction { start, size, name };
        assert_eq!(all, [function(TEXT, 32, 1), function(TEXT + 32, 16, 25)]);
    }

    #[test]
    fn tells_what_is_on_the_stack() {
        let frames = |bytes| {
            let table = parsed(bytes).unwrap();
            [0, 4, 31, 32 + 3, 32 + 4, 48].map(|at| table.frame(TEXT + at))
        };
        let (none, some) = (Some(Frame::Bytes(0)), Some(Frame::Bytes(56)));
        assert_eq!(frames(table()), [none, some, some, none, some, None]);
        // The first function's flags say in turn: it is the outermost one; it switches stacks.
        let flags = table().len() - 2 * (44 + 4 * 7) + 41;
        for (flag, first) in [(1, Some(Frame::Outermost)), (2, None), (4, none)] {
            let mut changed = table();
            changed[flags] = flag;
            assert_eq!(frames(changed)[0], first);
        }
        let mut older = table();
        older[0] = 0xf0;
        assert_eq!(frames(older), [None; 6], "descriptions of Go 1.18 have other fields");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn reading_damaged_tables_does_not_panic(
            changes in proptest::collection::vec((0usize..400, prop_oneof![any::<u8>(), Just(0xff), Just(0x80)]), 0..12),
            cut in 0usize..500,
        ) {
            let mut bytes = table();
            for (at, value) in changes {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            bytes.truncate(cut.max(80));
            if let Some(table) = parsed(bytes) {
                for addr in 0..64 {
                    prop_assert!(table.look_up(&elf(), TEXT + addr).len() <= MAX_INLINED);
                    let _ = table.frame(TEXT + addr);
                }
                table.functions();
            }
        }
    }
}
