//! Functions of Go programs, which have no call frame information.

use super::image::Image;
use systoll_binfile::pclntab::{Function, Pclntab};

/// Returns the start and end of every function of `image`; nothing if the file has no table, or one of an unknown
/// kind.
pub(super) fn functions(image: &Image<'_>) -> Vec<(u64, u64)> {
    let Some(table) = Table::of(image) else { return Vec::new() };
    table.pclntab.functions().map_while(|f| table.extent(f)).collect()
}

/// Returns the start and end of the functions of `image` with one of these names.
pub(super) fn named(image: &Image<'_>, names: &[&str]) -> Vec<(u64, u64)> {
    let Some(table) = Table::of(image) else { return Vec::new() };
    let name = |f: Function| table.pclntab.name(table.pclntab.name_of(f)?);
    let is_one = |f: &Function| name(*f).is_some_and(|name| names.iter().any(|wanted| name == wanted.as_bytes()));
    table.pclntab.functions().filter(is_one).filter_map(|f| table.extent(f)).collect()
}

/// A program's table, and the address to which the starts of its functions are relative.
struct Table<'a> {
    pclntab: Pclntab<&'a [u8]>,
    text: u64,
}

impl<'a> Table<'a> {
    fn of(image: &Image<'a>) -> Option<Self> {
        let (at, bytes) = image.pclntab?;
        let pclntab = Pclntab::read(bytes, at).filter(Pclntab::is_since_120)?;
        let module = || {
            let relocated = image.relocated();
            let word = |address: u64| match image.word(address)? {
                0 => relocated.binary_search_by_key(&address, |r| r.0).ok().and_then(|n| relocated.get(n)).map(|r| r.1),
                word => Some(word),
            };
            let by_relocation = relocated.iter().filter(|r| r.1 == at).map(|r| r.0);
            let candidates = image.words().filter(|w| w.1 == at).map(|w| w.0).chain(by_relocation);
            pclntab.module_data(candidates, word)
        };
        let text = pclntab.text(if pclntab.tells_text() { None } else { module() })?;
        Some(Self { pclntab, text })
    }

    fn extent(&self, function: Function) -> Option<(u64, u64)> {
        let address = |offset: u32| self.text.checked_add(offset.into());
        Some((address(function.start)?, address(function.end)?))
    }
}
