//! Functions of Go programs, which have no call frame information: `.gopclntab`.
//!
//! Layout: `pcHeader` and `functab` in Go's src/runtime/symtab.go, since Go 1.20.

/// `go120PCLnTabMagic` of Go's src/internal/abi/symtab.go.
const MAGIC: u32 = 0xffff_fff1;
/// Most functions taken from one program.
const MAX_FUNCTIONS: usize = 1 << 22;

/// Start and end of every function in `table`, a `.gopclntab`, or nothing where it is of a kind
/// not known. `text` is where `.text` starts, for linkers that leave it to the run-time.
pub(super) fn functions(table: &[u8], text: u64) -> Vec<(u64, u64)> {
    read(table, text).unwrap_or_default()
}

fn read(table: &[u8], text: u64) -> Option<Vec<(u64, u64)>> {
    let half = |at: usize| table.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes);
    let word = |at: usize| table.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes);
    if half(0)? != MAGIC || table.get(7) != Some(&8) {
        return None;
    }
    let count = usize::try_from(word(8)?).ok()?.min(MAX_FUNCTIONS);
    let text = word(24).filter(|t| *t != 0).unwrap_or(text);
    let rows = usize::try_from(word(64)?).ok()?;
    let start = |n: usize| half(rows.checked_add(n.checked_mul(8)?)?).and_then(|o| text.checked_add(o.into()));
    let function = |n: usize| Some((start(n)?, start(n + 1)?)).filter(|(start, end)| start <= end);
    Some((0..count).map_while(function).collect())
}
