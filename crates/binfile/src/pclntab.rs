//! Reads functions, lines, inlined calls and frames of Go programs from `.gopclntab`, which even stripped programs
//! keep.
//!
//! Layout: `pcHeader`, `moduledata`, `functab` and `pcvalue` in Go's src/runtime/symtab.go, `_func` in runtime2.go,
//! `inlinedCall` in symtabinl.go. All of it can be read since Go 1.20, functions and names since 1.18.

use crate::bytes::{half, word};

/// First words of tables, by version: `go118PCLnTabMagic` and `go120PCLnTabMagic` of src/internal/abi/symtab.go.
const MAGIC_118: u32 = 0xffff_fff0;
const MAGIC_120: u32 = 0xffff_fff1;
/// Functions of one program that are read, at most.
const MAX_FUNCTIONS: usize = 1 << 22;
/// Steps that are read of one table of values by address, at most.
const MAX_STEPS: usize = 1 << 16;
/// Bytes of a name or path that are read, at most.
const MAX_TEXT: usize = 4096;

/// Indices of a function's data: `PCDATA_InlTreeIndex` and `FUNCDATA_InlTree` of src/internal/abi/symtab.go.
const INLINE_INDEX: u32 = 2;
const INLINE_TREE: u32 = 3;

/// Flags of a function: `FuncFlagTopFrame` and `FuncFlagSPWrite` of src/internal/abi/symtab.go.
const OUTERMOST: u8 = 1;
const WRITES_RSP: u8 = 2;

/// Indices of words in `moduledata`. Its first word is the address of the table, its second that of the names.
const MODULE_NAMES: u64 = 1;
const MODULE_MINPC: u64 = 20;
const MODULE_MAXPC: u64 = 21;
const MODULE_TEXT: u64 = 22;
const MODULE_GOFUNC: u64 = 40;

/// The table of a Go program, owned or borrowed.
#[derive(Clone, Debug)]
pub struct Pclntab<B> {
    bytes: B,
    /// Address at which the table is mapped.
    at: u64,
    /// Base address of functions' starts, if the linker wrote it.
    told_text: u64,
    count: usize,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    rows: usize,
    is_since_120: bool,
}

/// Values from the description of a program that its run-time has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleData {
    /// Base address of functions' starts.
    pub text: u64,
    /// Address of the run-time's data about functions, from Go 1.20 on.
    pub data: u64,
}

/// A function of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// First address of the function, relative to the base.
    pub start: u32,
    /// Address behind the function's last byte, relative to the base.
    pub end: u32,
    /// Offset of the function's entry in the table.
    entry: usize,
}

/// A call that the compiler has inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// Offset of the called function's name among all names.
    pub name: u32,
    /// Address of the call, relative to the caller's start.
    pub from: u32,
}

/// The frame of a function at some point of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The function has no caller: its stack begins here.
    Outermost,
    /// Number of bytes between the stack pointer and the return address (`runtime.(*unwinder).resolveInternal` in
    /// src/runtime/traceback.go).
    Bytes(u32),
}

impl InlinedCall {
    /// Bytes of an entry in the tree of inlined calls.
    pub const SIZE: u64 = 16;

    /// Parses an entry of the tree of inlined calls.
    #[must_use]
    pub fn read(entry: &[u8]) -> Option<Self> {
        Some(Self { name: half(entry, 4)?, from: half(entry, 8)? })
    }
}

impl<B: AsRef<[u8]>> Pclntab<B> {
    /// Reads the table in `bytes`, which are mapped at `at`; returns `None` if its version is not
    /// known.
    pub fn read(bytes: B, at: u64) -> Option<Self> {
        let table = bytes.as_ref();
        let magic = half(table, 0)?;
        if !matches!(magic, MAGIC_118 | MAGIC_120) || table.get(7) != Some(&8) {
            return None;
        }
        let field = |n: usize| word(table, 8 + 8 * n);
        let place = |n: usize| field(n).and_then(|w| usize::try_from(w).ok());
        let (count, names, rows) = (place(0)?.min(MAX_FUNCTIONS), place(3)?, place(7)?);
        let (units, files, values) = (place(4)?, place(5)?, place(6)?);
        let (told_text, is_since_120) = (field(2)?, magic == MAGIC_120);
        Some(Self { bytes, at, told_text, count, names, units, files, values, rows, is_since_120 })
    }

    /// Returns true if Go 1.20 or later made the table. Then the positions of lines and inlined calls are known, and
    /// descriptions have `data`.
    pub fn is_since_120(&self) -> bool {
        self.is_since_120
    }

    /// Returns the base address of functions' starts: the one that the linker wrote, otherwise that of the run-time's
    /// description. Newer linkers write none, because the section starts at another address if C code precedes Go's.
    pub fn text(&self, module: Option<ModuleData>) -> Option<u64> {
        Some(self.told_text).filter(|text| *text != 0).or(module.map(|m| m.text))
    }

    /// Returns true if the linker wrote the base address of functions' starts.
    pub fn tells_text(&self) -> bool {
        self.told_text != 0
    }

    /// Finds the run-time's description of the program among `candidates`, places that hold the table's own address.
    /// Accepts a place that also has the address of the names, and the table's first and last address. `word` reads the
    /// program as it is mapped and relocated.
    pub fn module_data(
        &self,
        mut candidates: impl Iterator<Item = u64>,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<ModuleData> {
        let names = self.at.checked_add(self.names as u64)?;
        let (first, last) = (self.offset(0)?, self.offset(self.count)?);
        candidates.find_map(|at| {
            let field = |n: u64| word(at.checked_add(8 * n)?);
            let text = field(MODULE_TEXT)?;
            let is = |n: u64, offset: u32| field(n).filter(|at| text.checked_add(offset.into()) == Some(*at));
            (field(MODULE_NAMES)? == names).then_some(())?;
            is(MODULE_MINPC, first).and(is(MODULE_MAXPC, last))?;
            Some(ModuleData { text, data: field(MODULE_GOFUNC).unwrap_or(0) })
        })
    }

    /// Returns all functions, by address, up to the table's end.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        (0..self.count).map_while(|n| self.function(n))
    }

    fn offset(&self, n: usize) -> Option<u32> {
        half(self.bytes.as_ref(), self.rows.checked_add(n.checked_mul(8)?)?)
    }

    fn function(&self, n: usize) -> Option<Function> {
        let (start, end) = (self.offset(n)?, self.offset(n.checked_add(1)?)?);
        let told = half(self.bytes.as_ref(), self.rows.checked_add(n.checked_mul(8)?)?.checked_add(4)?)?;
        let entry = self.rows.checked_add(told as usize)?;
        (start <= end).then_some(Function { start, end, entry })
    }

    /// Returns the function that contains `offset`, an address relative to the base.
    pub fn around(&self, offset: u32) -> Option<Function> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.offset(middle)? <= offset { low = middle + 1 } else { high = middle }
        }
        self.function(low.checked_sub(1)?).filter(|f| offset < f.end)
    }

    /// Returns all names, each with a terminating NUL.
    pub fn names(&self) -> Option<&[u8]> {
        self.bytes.as_ref().get(self.names..)
    }

    /// Returns the offset of a function's name among the names.
    pub fn name_of(&self, function: Function) -> Option<u32> {
        self.field(function, 4)
    }

    /// Returns the name at an offset among the names.
    pub fn name(&self, at: u32) -> Option<&[u8]> {
        self.string(self.names.checked_add(at as usize)?)
    }

    /// Returns the source line of the code `pc` bytes into a function.
    pub fn line(&self, function: Function, pc: u64) -> Option<u32> {
        let line = self.value(self.field(function, 24)?, pc)?;
        u32::try_from(line).ok().filter(|line| *line > 0)
    }

    /// Returns the source file of the code `pc` bytes into a function.
    pub fn file(&self, function: Function, pc: u64) -> Option<&[u8]> {
        let number = u32::try_from(self.value(self.field(function, 20)?, pc)?).ok()?;
        let unit = self.field(function, 32)?.checked_add(number)?;
        let at = half(self.bytes.as_ref(), self.units.checked_add(4 * unit as usize)?)?;
        self.string(self.files.checked_add(at as usize)?)
    }

    /// Returns the index of the inlined call that the code `pc` bytes into a function belongs to.
    pub fn inlined_call(&self, function: Function, pc: u64) -> Option<u32> {
        let known = INLINE_INDEX < self.field(function, 28)?;
        let at = known.then(|| self.field(function, 44 + 4 * INLINE_INDEX as usize)).flatten()?;
        u32::try_from(self.value(at, pc)?).ok()
    }

    /// Returns the offset of a function's inlined calls from [`ModuleData::data`].
    pub fn inlined_calls(&self, function: Function) -> Option<u32> {
        let count = *self.bytes.as_ref().get(function.entry.checked_add(43)?)?;
        let values = self.field(function, 28)?;
        let at = 44usize.checked_add(4 * usize::try_from(values.checked_add(INLINE_TREE)?).ok()?)?;
        (INLINE_TREE < u32::from(count)).then(|| self.field(function, at)).flatten().filter(|o| *o != u32::MAX)
    }

    /// Returns a function's frame at the code `pc` bytes into it. Returns `None` if the function
    /// switches stacks, or if the table does not tell.
    pub fn frame(&self, function: Function, pc: u64) -> Option<Frame> {
        let flags = self.is_since_120.then(|| function.entry.checked_add(41)).flatten()?;
        let flags = *self.bytes.as_ref().get(flags)?;
        if flags & OUTERMOST != 0 {
            return Some(Frame::Outermost);
        }
        let told = if flags & WRITES_RSP == 0 { self.value(self.field(function, 16)?, pc)? } else { return None };
        // The stack moves by whole words, so other values are damage.
        u32::try_from(told).ok().filter(|bytes| bytes.is_multiple_of(8)).map(Frame::Bytes)
    }

    fn field(&self, function: Function, offset: usize) -> Option<u32> {
        half(self.bytes.as_ref(), function.entry.checked_add(offset)?)
    }

    fn string(&self, at: usize) -> Option<&[u8]> {
        let rest = self.bytes.as_ref().get(at..)?;
        let rest = rest.get(..MAX_TEXT).unwrap_or(rest);
        rest.get(..rest.iter().position(|b| *b == 0)?)
    }

    /// Returns the value `pc` bytes into a function, from the table at `at`: pairs of differences,
    /// of the value and of the address.
    fn value(&self, at: u32, pc: u64) -> Option<i32> {
        if at == 0 {
            return None;
        }
        let bytes = self.bytes.as_ref();
        let quantum = u64::from(*bytes.get(6)?).max(1);
        let mut rest = bytes.get(self.values.checked_add(at as usize)?..)?;
        let (mut value, mut end) = (-1i32, 0u64);
        for step in 0..MAX_STEPS {
            let change = varint(&mut rest)?;
            if change == 0 && step > 0 {
                return None;
            }
            // The value is in zigzag encoding: its lowest bit is the sign.
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
