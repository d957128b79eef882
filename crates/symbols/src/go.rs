//! Function names of Go programs, which keep them even when stripped: `.gopclntab`.
//!
//! Layout: `pcHeader` and `functab` in Go's src/runtime/symtab.go, since Go 1.20.

use crate::elf::{Image, half, word};

/// `go120PCLnTabMagic` of src/internal/abi/symtab.go.
const MAGIC: u32 = 0xffff_fff1;
/// Most functions taken from one program.
const MAX_FUNCTIONS: usize = 1 << 20;

/// A table of functions.
pub(crate) struct Functions {
    /// NUL-terminated names.
    pub(crate) names: Vec<u8>,
    /// Address, size, and where in `names`.
    pub(crate) functions: Vec<(u64, u64, u32)>,
}

/// The functions of `image`; `None` where it is no Go program, or an older one.
pub(crate) fn functions(image: &Image) -> Option<Functions> {
    let mut table = image.section_data(image.section(".gopclntab")?)?;
    if half(&table, 0)? != MAGIC || table.get(7) != Some(&8) {
        return None;
    }
    let field = |n: usize| word(&table, 8 + 8 * n);
    let at = |n: usize| field(n).and_then(|w| usize::try_from(w).ok());
    let (count, text, names, functab) = (at(0)?.min(MAX_FUNCTIONS), field(2)?, at(3)?, at(7)?);
    // Newer linkers leave the text's start to the run-time.
    let text = if text == 0 { image.section(".text")?.addr } else { text };
    let entry = |n: usize| {
        let row = functab.checked_add(n.checked_mul(8)?)?;
        Some((half(&table, row)?, half(&table, row.checked_add(4)?)? as usize))
    };
    let function = |n: usize| {
        let (start, at) = entry(n)?;
        let (end, _) = entry(n + 1)?;
        let name = half(&table, functab.checked_add(at)?.checked_add(4)?)?;
        Some((text.checked_add(start.into())?, u64::from(end.checked_sub(start)?), name))
    };
    let functions = (0..count).map_while(function).collect();
    if names > table.len() {
        return None;
    }
    Some(Functions { names: table.split_off(names), functions })
}
