//! Java methods: their names, and the lines of their bytecodes.

use super::layout::Layout;
use super::numbers::Numbers;
use crate::script::memory::{Memory, readable};

/// Bytes read of a name, at most.
const MAX_NAME: u64 = 1024;
/// Bytes of a table of lines, at most.
const MAX_TABLE: usize = 1 << 16;

/// Memory of a waiting thread, with HotSpot's layout.
pub(crate) struct Heap<'h, 'r, 'f> {
    pub(crate) memory: &'h mut Memory<'r, 'f>,
    pub(crate) layout: &'h Layout,
}

/// A method as Java's own stack traces name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    /// Name of its class with the package, and its own name.
    pub(crate) name: String,
    /// Source file of its class; `None` if the compiler did not store it.
    pub(crate) file: Option<String>,
}

impl Heap<'_, '_, '_> {
    /// Returns the word at `object` + `offset`.
    pub(crate) fn word(&mut self, object: u64, offset: u64) -> Option<u64> {
        self.memory.word(object.wrapping_add(offset))
    }

    /// Returns the pointer at `object` + `offset`; `None` if it is null.
    pub(crate) fn pointer(&mut self, object: u64, offset: u64) -> Option<u64> {
        self.memory.pointer(object.wrapping_add(offset))
    }

    /// Returns the 4-byte word at `object` + `offset`.
    pub(crate) fn half(&mut self, object: u64, offset: u64) -> Option<u32> {
        self.memory.half(object.wrapping_add(offset))
    }

    fn quarter(&mut self, object: u64, offset: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        self.memory.fill(object.wrapping_add(offset), &mut bytes)?;
        Some(u16::from_le_bytes(bytes))
    }

    /// Returns the text of a `Symbol`.
    fn symbol(&mut self, symbol: u64) -> Option<String> {
        let length = u64::from(self.quarter(symbol, self.layout.method.text_length)?);
        let text = self.memory.bytes(symbol.wrapping_add(self.layout.method.text), length.min(MAX_NAME), MAX_NAME)?;
        Some(readable(&text)).filter(|text| !text.is_empty() && !text.chars().any(char::is_control))
    }

    fn in_pool(&mut self, pool: u64, number: u16) -> Option<String> {
        (number > 0).then_some(())?;
        // The pointer's lowest bit may be a flag.
        let symbol = self.pointer(pool, self.layout.method.entries + 8 * u64::from(number))? & !1;
        self.symbol(symbol)
    }

    /// Returns the names of a method.
    pub(crate) fn method(&mut self, method: u64) -> Option<Method> {
        let at = &self.layout.method;
        let constant = self.pointer(method, at.constant)?;
        let pool = self.pointer(constant, at.pool)?;
        let class = self.pointer(pool, at.holder)?;
        let class_name = self.pointer(class, at.class_name)?;
        let class_name = self.symbol(class_name)?.replace('/', ".");
        let number = self.quarter(constant, at.name)?;
        let name = self.in_pool(pool, number)?;
        let (in_class, source) = at.source;
        let source = self.quarter(if in_class { class } else { pool }, source)?;
        let file = self.in_pool(pool, source);
        // The name of a lambda's class ends with an address, which tells the reader nothing.
        let class_name = class_name.split("+0x").next().unwrap_or_default();
        let class_name = class_name.split(".0x").next().unwrap_or_default();
        Some(Method { name: format!("{class_name}.{name}"), file })
    }

    /// Returns the address of a method's bytecode, and its size in bytes.
    pub(crate) fn bytecode(&mut self, method: u64) -> Option<(u64, u64)> {
        let constant = self.pointer(method, self.layout.method.constant)?;
        let size = self.quarter(constant, self.layout.method.code_size)?;
        Some((constant.wrapping_add(self.layout.method.bytecode), u64::from(size)))
    }

    /// Returns the line of the bytecode at `index` of a method.
    pub(crate) fn line(&mut self, method: u64, index: u32) -> Option<u32> {
        /// Flag `has_linenumber_table`.
        const HAS_LINES: u32 = 1;
        let constant = self.pointer(method, self.layout.method.constant)?;
        (self.half(constant, self.layout.method.flags)? & HAS_LINES != 0).then_some(())?;
        let (start, size) = self.bytecode(method)?;
        (u64::from(index) < size).then_some(())?;
        // The table ends with a zero byte. From Java 20 on, no number contains one; before, one
        // may.
        let table = self.table(start.wrapping_add(size))?;
        Numbers::new(&table, self.layout.major).line(index)
    }

    /// Returns the bytes from `start` on, up to the end of the table of lines or more.
    fn table(&mut self, start: u64) -> Option<Vec<u8>> {
        const PIECE: u64 = 256;
        let mut table = Vec::new();
        while table.len() < MAX_TABLE {
            let at = start.wrapping_add(table.len() as u64);
            let piece = PIECE - at % PIECE;
            let Some(bytes) = self.memory.bytes(at, piece, PIECE) else { break };
            let any_end = bytes.contains(&0);
            table.extend(bytes);
            // The zero ends the table, unless it is part of a number.
            if any_end && (self.layout.major >= 20 || Numbers::new(&table, self.layout.major).line(0).is_some()) {
                break;
            }
        }
        Some(table)
    }
}
