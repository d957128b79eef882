//! Functions, lines and inlined calls of Go programs, which keep them even when stripped:
//! `.gopclntab`.
//!
//! Layout: `pcHeader`, `moduledata`, `functab` and `pcvalue` in Go's src/runtime/symtab.go, `_func` in
//! runtime2.go, `inlinedCall` in symtabinl.go; since Go 1.20, names since 1.18.

use super::file::ElfFile;
use super::read::{half, word};
use object::LittleEndian as Le;
use object::elf;
use std::collections::HashMap;
use systoll_model::Location;

/// `go118PCLnTabMagic` and `go120PCLnTabMagic` of src/internal/abi/symtab.go.
const MAGIC_118: u32 = 0xffff_fff0;
const MAGIC_120: u32 = 0xffff_fff1;
/// Most functions taken from one program.
const MAX_FUNCTIONS: usize = 1 << 20;
/// Most steps of one table of values by address.
const MAX_STEPS: usize = 1 << 16;
/// Most functions inlined into each other that are listed.
const MAX_INLINED: usize = 64;
/// Longest name or path.
const MAX_TEXT: usize = 4096;
/// Most relocations looked through.
const MAX_RELOCATIONS: usize = 1 << 20;

/// `PCDATA_InlTreeIndex` and `FUNCDATA_InlTree` of src/internal/abi/symtab.go.
const INLINE_INDEX: u32 = 2;
const INLINE_TREE: u32 = 3;

/// The first words of `moduledata`: the header's address, the table of names', …
const MODULE_NAMES: u64 = 1;
const MODULE_MINPC: u64 = 20;
const MODULE_MAXPC: u64 = 21;
const MODULE_TEXT: u64 = 22;
const MODULE_GOFUNC: u64 = 40;

/// What a program knows of its functions.
#[derive(Debug)]
pub(crate) struct GoTable {
    bytes: Vec<u8>,
    /// Where code offsets count from.
    text: u64,
    /// Where the run-time's data about functions lie; `None` where that can't be told.
    data: Option<u64>,
    count: usize,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    functions: usize,
    has_lines: bool,
}

/// A table of functions.
pub(crate) struct Functions {
    /// NUL-terminated names.
    pub(crate) names: Vec<u8>,
    /// Address, size, and where in `names`.
    pub(crate) functions: Vec<(u64, u64, u32)>,
}

/// One function's entry.
#[derive(Clone, Copy)]
struct Function {
    start: u64,
    at: usize,
}

impl GoTable {
    /// The table of `elf`; `None` where it is no Go program, or an older one.
    pub(crate) fn read(elf: &ElfFile) -> Option<Self> {
        let section = elf.section(".gopclntab").or_else(|| elf.section(".data.rel.ro.gopclntab"))?;
        let bytes = elf.section_data(section)?;
        let text = elf.section(".text").map(|s| s.addr);
        Self::parse(bytes, text, |names| ModuleData::find(elf, section.addr, names))
    }

    /// The table in `bytes`; `section` is where the code's section begins, `find` finds the run-time's
    /// description by where names are in the table.
    fn parse(bytes: Vec<u8>, section: Option<u64>, find: impl FnOnce(u64) -> Option<ModuleData>) -> Option<Self> {
        let magic = half(&bytes, 0)?;
        if !matches!(magic, MAGIC_118 | MAGIC_120) || bytes.get(7) != Some(&8) {
            return None;
        }
        let field = |n: usize| word(&bytes, 8 + 8 * n);
        let at = |n: usize| field(n).and_then(|w| usize::try_from(w).ok());
        let (count, names, functions) = (at(0)?.min(MAX_FUNCTIONS), at(3)?, at(7)?);
        let (units, files, values) = (at(4)?, at(5)?, at(6)?);
        let module = find(names as u64);
        // Newer linkers leave the text's start to the run-time; with C's code before it, it is not that
        // of the section.
        let told = field(2)?;
        let text = match (&module, told) {
            (Some(module), 0) => module.text,
            (None, 0) => section?,
            (_, told) => told,
        };
        let data = module.map(|m| m.data);
        let has_lines = magic == MAGIC_120;
        Some(Self { bytes, text, data, count, names, units, files, values, functions, has_lines })
    }

    /// All functions.
    pub(crate) fn functions(&self) -> Option<Functions> {
        let function = |n: usize| {
            let (start, at) = self.entry(n)?;
            let (end, _) = self.entry(n + 1)?;
            let name = half(&self.bytes, self.functions.checked_add(at)?.checked_add(4)?)?;
            Some((self.text.checked_add(start.into())?, u64::from(end.checked_sub(start)?), name))
        };
        let functions = (0..self.count).map_while(function).collect();
        Some(Functions { names: self.bytes.get(self.names..)?.to_vec(), functions })
    }

    /// Code offset of function `n`, and where its entry is.
    fn entry(&self, n: usize) -> Option<(u32, usize)> {
        let row = self.functions.checked_add(n.checked_mul(8)?)?;
        Some((half(&self.bytes, row)?, half(&self.bytes, row.checked_add(4)?)? as usize))
    }

    fn around(&self, addr: u64) -> Option<Function> {
        let offset = u32::try_from(addr.checked_sub(self.text)?).ok()?;
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.entry(middle)?.0 <= offset { low = middle + 1 } else { high = middle }
        }
        let (start, at) = self.entry(low.checked_sub(1)?)?;
        let (end, _) = self.entry(low)?;
        let at = self.functions.checked_add(at)?;
        (offset < end).then_some(Function { start: self.text.checked_add(start.into())?, at })
    }

    /// What stands at `addr`, innermost first; the last is the function itself. Empty where the table
    /// does not tell.
    pub(crate) fn look_up(&self, elf: &ElfFile, addr: u64) -> Vec<Location> {
        self.locations(elf, addr).unwrap_or_default()
    }

    fn locations(&self, elf: &ElfFile, addr: u64) -> Option<Vec<Location>> {
        let function = self.around(addr).filter(|_| self.has_lines)?;
        let tree =
            self.data.zip(self.function_data(function, INLINE_TREE)).map(|(data, tree)| data.wrapping_add(tree.into()));
        let (mut found, mut pc) = (Vec::new(), addr);
        while found.len() < MAX_INLINED {
            let index = self.function_value(function, INLINE_INDEX, pc).filter(|i| *i >= 0);
            let call = index
                .zip(tree)
                .and_then(|(index, tree)| elf.read_vaddr(tree.checked_add(u64::from(index.cast_unsigned()) * 16)?, 16));
            let (name, next) = match &call {
                Some(call) => (half(call, 4)?, Some(function.start.checked_add(half(call, 8)?.into())?)),
                None => (self.field(function, 4)?, None),
            };
            found.push(self.location(function, pc, name)?);
            match next {
                Some(next) => pc = next,
                None => return Some(found),
            }
        }
        None
    }

    fn location(&self, function: Function, pc: u64, name: u32) -> Option<Location> {
        let name = self.text_at(self.names.checked_add(name as usize)?)?;
        let line = self.value(function, self.field(function, 24)?, pc);
        let file = self.value(function, self.field(function, 20)?, pc).and_then(|number| {
            let unit = self.field(function, 32)?.checked_add(u32::try_from(number).ok()?)?;
            let at = half(&self.bytes, self.units.checked_add(4 * unit as usize)?)?;
            self.text_at(self.files.checked_add(at as usize)?)
        });
        Some(Location {
            function: name.into(),
            file: file.map(Into::into),
            line: line.and_then(|l| u32::try_from(l).ok()).filter(|l| *l > 0),
        })
    }

    fn text_at(&self, at: usize) -> Option<String> {
        let rest = self.bytes.get(at..)?;
        let rest = rest.get(..MAX_TEXT).unwrap_or(rest);
        let end = rest.iter().position(|b| *b == 0)?;
        Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
    }

    fn field(&self, function: Function, offset: usize) -> Option<u32> {
        half(&self.bytes, function.at.checked_add(offset)?)
    }

    /// Offset of one of the function's data, from where such lie.
    fn function_data(&self, function: Function, kind: u32) -> Option<u32> {
        let count = *self.bytes.get(function.at.checked_add(43)?)?;
        let values = self.field(function, 28)?;
        let at = 44usize.checked_add(4 * usize::try_from(values.checked_add(kind)?).ok()?)?;
        (kind < u32::from(count)).then(|| self.field(function, at)).flatten().filter(|o| *o != u32::MAX)
    }

    /// The value at `pc` of one of the function's tables by number.
    fn function_value(&self, function: Function, table: u32, pc: u64) -> Option<i32> {
        let known = table < self.field(function, 28)?;
        let at = known.then(|| self.field(function, 44 + 4 * table as usize)).flatten()?;
        self.value(function, at, pc)
    }

    /// The value at `pc` in the table at `at`: pairs of differences, of the value and of the address.
    fn value(&self, function: Function, at: u32, pc: u64) -> Option<i32> {
        if at == 0 {
            return None;
        }
        let quantum = u64::from(*self.bytes.get(6)?).max(1);
        let mut rest = self.bytes.get(self.values.checked_add(at as usize)?..)?;
        let (mut value, mut end) = (-1i32, function.start);
        for step in 0..MAX_STEPS {
            let change = varint(&mut rest)?;
            if change == 0 && step > 0 {
                return None;
            }
            // Zigzag: the lowest bit is the sign.
            let signed = if change & 1 != 0 { !(change >> 1) } else { change >> 1 };
            value = value.wrapping_add(signed.cast_signed());
            end = end.checked_add(u64::from(varint(&mut rest)?) * quantum)?;
            if pc < end {
                return Some(value);
            }
        }
        None
    }
}

fn varint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Of the run-time's description of the program.
struct ModuleData {
    text: u64,
    data: u64,
}

impl ModuleData {
    /// It begins with the address of the table and that of the names in it, and is found by them.
    fn find(elf: &ElfFile, table: u64, names: u64) -> Option<Self> {
        const HOLDERS: &[&str] = &[".go.module", ".noptrdata", ".data", ".data.rel.ro"];
        let names = table.checked_add(names)?;
        for section in HOLDERS.iter().filter_map(|name| elf.section(name)) {
            let Some(data) = elf.section_data(section) else { continue };
            let at = (0..data.len() / 8).map(|n| 8 * n).find(|at| {
                word(&data, *at) == Some(table) && word(&data, at + 8 * MODULE_NAMES as usize) == Some(names)
            });
            if let Some(at) = at {
                let found = Self::checked(table, |n| word(&data, at.checked_add(8 * n as usize)?));
                if found.is_some() {
                    return found;
                }
            }
        }
        // Where the program is moved, the loader puts the addresses there.
        let moved = moved(elf);
        let starts = moved.iter().filter(|(_, to)| **to == table).map(|(at, _)| *at);
        let mut starts = starts.filter(|at| moved.get(&at.wrapping_add(8 * MODULE_NAMES)) == Some(&names));
        starts.find_map(|at| Self::checked(table, |n| moved.get(&at.wrapping_add(8 * n)).copied()))
    }

    fn checked(table: u64, field: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        let (low, high) = (field(MODULE_MINPC)?, field(MODULE_MAXPC)?);
        let (text, data) = (field(MODULE_TEXT)?, field(MODULE_GOFUNC)?);
        (text <= low && low < high && table != 0 && data != 0).then_some(Self { text, data })
    }
}

/// Where the loader puts addresses of the file's own, and which.
fn moved(elf: &ElfFile) -> HashMap<u64, u64> {
    let mut moved = HashMap::new();
    for section in elf.sections.iter().filter(|s| s.kind == elf::SHT_RELA) {
        let Some(data) = elf.section_data(section) else { continue };
        let Ok((relocations, _)) =
            object::slice_from_bytes::<elf::Rela64<Le>>(&data, data.len() / size_of::<elf::Rela64<Le>>())
        else {
            continue;
        };
        let relative = |r: &&elf::Rela64<Le>| elf::RelocationType(r.r_type(Le, false).0) == elf::R_X86_64_RELATIVE;
        let entry = |r: &elf::Rela64<Le>| (r.r_offset.get(Le), r.r_addend.get(Le).cast_unsigned());
        moved.extend(relocations.iter().take(MAX_RELOCATIONS).filter(relative).map(entry));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::elf_of_code;
    use proptest::prelude::*;

    const TEXT: u64 = 0x1000;

    /// Two functions: `main.outer` of 32 bytes with `main.inlined` inlined into its second half (its call
    /// on line 8, its own line 3), and `main.other` of 16. The inlined call is told of at the code's start.
    fn table() -> Vec<u8> {
        let names = b"\0main.outer\0main.inlined\0main.other\0";
        let files = b"\0/src/main.go\0";
        // Value tables: file 0 throughout; lines 7, then 3; no inlined call, then the first.
        let values = [&[0u8][..], &[2, 48, 0], &[16, 16, 7, 16, 0], &[0, 16, 2, 16, 0]].concat();
        let (file, line, inline) = (1u32, 4u32, 9u32);
        let at = |after: usize, len: usize| (after + len).next_multiple_of(4);
        let (name_at, unit_at) = (72, at(72, names.len()));
        let file_at = at(unit_at, 4);
        let value_at = at(file_at, files.len());
        let function_at = at(value_at, values.len());
        let mut bytes = vec![0; function_at];
        bytes[..4].copy_from_slice(&MAGIC_120.to_le_bytes());
        bytes[6..8].copy_from_slice(&[1, 8]);
        let words = [2, 1, TEXT, name_at as u64, unit_at as u64, file_at as u64, value_at as u64, function_at as u64];
        for (n, word) in words.iter().enumerate() {
            bytes[8 + 8 * n..16 + 8 * n].copy_from_slice(&word.to_le_bytes());
        }
        bytes[name_at..name_at + names.len()].copy_from_slice(names);
        bytes[unit_at] = 1;
        bytes[file_at..file_at + files.len()].copy_from_slice(files);
        bytes[value_at..value_at + values.len()].copy_from_slice(&values);
        // Entries behind the index of three; each of 44 bytes, three values and four data.
        let size = 44 + 4 * (3 + 4);
        for word in [0u32, 20, 32, 20 + size, 48] {
            bytes.extend(word.to_le_bytes());
        }
        for (start, name) in [(0u32, 1u32), (32, 25)] {
            for word in
                [start, name, 0, 0, 0, file, line, 3, 0, 1, 0x0400_0000, 0, 0, inline, u32::MAX, u32::MAX, u32::MAX, 0]
            {
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes
    }

    /// The inlined call: name at 12, made from the function's ninth byte.
    fn elf() -> ElfFile {
        elf_of_code(&[&[0u8; 4][..], &12u32.to_le_bytes(), &8u32.to_le_bytes(), &[0; 4], &[0x90; 48]].concat())
    }

    fn parsed(bytes: Vec<u8>) -> Option<GoTable> {
        GoTable::parse(bytes, None, |_| Some(ModuleData { text: TEXT, data: TEXT }))
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
        assert_eq!(all, [(TEXT, 32, 1), (TEXT + 32, 16, 25)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn damaged_tables_do_no_harm(
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
                }
                table.functions();
            }
        }
    }
}
