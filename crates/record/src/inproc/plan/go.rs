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

/// Start and end of every function of `image`, or nothing where it has no table, or one of a kind
/// not known.
pub(super) fn functions(image: &Image<'_>) -> Vec<(u64, u64)> {
    read(image).unwrap_or_default()
}

fn read(image: &Image<'_>) -> Option<Vec<(u64, u64)>> {
    let (at, table) = image.pclntab?;
    let half = |at: usize| table.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes);
    let word = |at: usize| table.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes);
    if half(0)? != MAGIC || table.get(7) != Some(&8) {
        return None;
    }
    let count = usize::try_from(word(8)?).ok()?.min(MAX_FUNCTIONS);
    let rows = usize::try_from(word(64)?).ok()?;
    let offset = |n: usize| half(rows.checked_add(n.checked_mul(8)?)?).map(u64::from);
    let text = match word(24)? {
        // The linker leaves it to the run-time, and what C's linker puts before Go's code counts
        // as text as well.
        0 => text(image, at, offset(0)?, offset(count)?)?,
        text => text,
    };
    let start = |n: usize| offset(n).and_then(|offset| text.checked_add(offset));
    let function = |n: usize| Some((start(n)?, start(n + 1)?)).filter(|(start, end)| start <= end);
    Some((0..count).map_while(function).collect())
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
