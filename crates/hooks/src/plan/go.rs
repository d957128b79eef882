//! Functions of Go programs, which have no call frame information: `.gopclntab`.
//!
//! Layout: `pcHeader`, `functab` and `moduledata` in Go's src/runtime/symtab.go, since Go 1.20.

use super::image::Image;

/// `go120PCLnTabMagic` of Go's src/internal/abi/symtab.go.
const MAGIC: u32 = 0xffff_fff1;
/// Most functions taken from one program.
const MAX_FUNCTIONS: usize = 1 << 22;
/// Where `moduledata` says between which addresses functions lie (`minpc`, `maxpc`), and what
/// the table's distances count from (`text`).
const LOWEST: u64 = 160;
const HIGHEST: u64 = 168;
const TEXT: u64 = 176;
/// Longest name looked at.
const LONGEST_NAME: usize = 64;

/// Start and end of every function of `image`, or nothing where it has no table, or one of a kind
/// not known.
pub(super) fn functions(image: &Image<'_>) -> Vec<(u64, u64)> {
    let Some(table) = Table::of(image) else { return Vec::new() };
    (0..table.count).map_while(|n| table.function(n)).collect()
}

/// Start and end of the functions of `image` that have one of these names.
pub(super) fn named(image: &Image<'_>, names: &[&str]) -> Vec<(u64, u64)> {
    let Some(table) = Table::of(image) else { return Vec::new() };
    let is_one = |n: &usize| table.name(*n).is_some_and(|name| names.iter().any(|wanted| name == wanted.as_bytes()));
    (0..table.count).filter(is_one).filter_map(|n| table.function(n)).collect()
}

/// A program's table.
struct Table<'a> {
    bytes: &'a [u8],
    /// Functions it has.
    count: usize,
    /// Where its rows lie: of a function's start, and of what else is known of it.
    rows: usize,
    /// Where its names lie.
    names: usize,
    /// What starts count from.
    text: u64,
}

impl<'a> Table<'a> {
    fn of(image: &Image<'a>) -> Option<Self> {
        let (at, bytes) = image.pclntab?;
        let word = |at: usize| bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes);
        let place = |at: usize| usize::try_from(word(at)?).ok();
        if !bytes.starts_with(&MAGIC.to_le_bytes()) || bytes.get(7) != Some(&8) {
            return None;
        }
        let (count, names, rows) = (place(8)?.min(MAX_FUNCTIONS), place(32)?, place(64)?);
        let table = Self { bytes, count, rows, names, text: word(24)? };
        let text = match table.text {
            // The linker leaves it to the run-time, and what C's linker puts before Go's code counts
            // as text as well.
            0 => text(image, at, table.offset(0)?, table.offset(count)?)?,
            text => text,
        };
        Some(Self { text, ..table })
    }

    fn half(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn offset(&self, n: usize) -> Option<u64> {
        self.half(self.rows.checked_add(n.checked_mul(8)?)?).map(u64::from)
    }

    fn function(&self, n: usize) -> Option<(u64, u64)> {
        let start = |n: usize| self.offset(n).and_then(|offset| self.text.checked_add(offset));
        Some((start(n)?, start(n + 1)?)).filter(|(start, end)| start <= end)
    }

    /// `_func` of Go's src/runtime/runtime2.go: where it starts, then where its name lies.
    fn name(&self, n: usize) -> Option<&'a [u8]> {
        let row = self.half(self.rows.checked_add(n.checked_mul(8)?)?.checked_add(4)?)?;
        let told = self.rows.checked_add(row as usize)?.checked_add(4)?;
        let at = self.names.checked_add(self.half(told)? as usize)?;
        self.bytes
            .get(at..)?
            .iter()
            .take(LONGEST_NAME)
            .position(|b| *b == 0)
            .and_then(|len| self.bytes.get(at..at + len))
    }
}

/// Where the text begins, by the module's data: found by its pointer to the table at `table`, and
/// believed if its first and last address are the table's own.
fn text(image: &Image<'_>, table: u64, first: u64, last: u64) -> Option<u64> {
    let relocated = image.relocated();
    let word = |address: u64| match image.word(address)? {
        0 => relocated.binary_search_by_key(&address, |r| r.0).ok().and_then(|n| relocated.get(n)).map(|r| r.1),
        word => Some(word),
    };
    let told = |data: u64| {
        let text = word(data.checked_add(TEXT)?)?;
        let is = |field, offset| word(data.checked_add(field)?).filter(|at| text.checked_add(offset) == Some(*at));
        is(LOWEST, first).and(is(HIGHEST, last)).map(|_| text)
    };
    let by_relocation = relocated.iter().filter(|r| r.1 == table).map(|r| r.0);
    image.words().filter(|w| w.1 == table).map(|w| w.0).chain(by_relocation).find_map(told)
}
