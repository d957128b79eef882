//! Looks symbols up by name as the dynamic loader does, with the index that a file has of its exported symbols.
//!
//! Layout: `DT_GNU_HASH`. No standard describes it; this follows glibc (elf/dl-setup_hash.c, elf/dl-lookup.c).

use super::symbol_table::SymbolTable;
use super::view::View;
use object::elf;
use std::ops::Range;
use std::sync::Arc;

/// The dynamic symbols of a file, with the index by which they are found.
#[derive(Clone, Debug)]
pub(crate) struct Exports {
    table: Arc<SymbolTable>,
    index: Arc<View>,
    buckets: u32,
    /// Index of the first symbol that the hash table covers.
    first: u32,
    /// Offset in the index of the buckets.
    buckets_at: u64,
    /// Offset in the index of the hash chains.
    chains_at: u64,
}

impl Exports {
    /// Returns `None` if the index is invalid.
    pub(super) fn new(table: Arc<SymbolTable>, index: View) -> Option<Self> {
        const HEADER: u64 = 16;
        let [buckets, first, filter] = [index.half(0)?, index.half(4)?, index.half(8)?];
        let buckets_at = u64::from(filter) * 8 + HEADER;
        let chains_at = u64::from(buckets) * 4 + buckets_at;
        (buckets > 0 && chains_at <= index.size()).then(|| Self {
            table,
            index: index.into(),
            buckets,
            first,
            buckets_at,
            chains_at,
        })
    }

    /// Returns the addresses of the symbols defined under this name; a symbol with versions has several.
    pub(crate) fn addresses(&self, name: &[u8]) -> impl Iterator<Item = u64> {
        self.extents(name).map(|extent| extent.start)
    }

    /// Returns the address ranges of the symbols defined under this name.
    pub(crate) fn extents(&self, name: &[u8]) -> impl Iterator<Item = Range<u64>> {
        let hash = elf::gnu_hash(name);
        let bucket = self.buckets_at + u64::from(hash % self.buckets) * 4;
        let start = self.index.half(bucket).filter(|start| *start >= self.first);
        let (mut next, name) = (start, name.to_vec());
        let chain = std::iter::from_fn(move || {
            let at = next?;
            let said = self.index.half(self.chains_at + u64::from(at - self.first) * 4)?;
            next = if said & 1 == 0 { at.checked_add(1) } else { None };
            Some((at, said))
        });
        let alike = chain.filter(move |(_, said)| said | 1 == hash | 1);
        alike.filter_map(move |(at, _)| self.table.extent(at, &name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::ElfFile;
    use crate::names::Names;
    use proptest::prelude::*;

    fn libc() -> ElfFile {
        let pid = std::process::id() as i32;
        let mapped = crate::mapped::maps::executable(pid).unwrap();
        let libc = mapped.iter().find(|m| m.path.contains("/libc.so") || m.path.contains("/libc-")).expect("a libc");
        ElfFile::parse(crate::mapped::open(pid, libc).unwrap()).unwrap()
    }

    /// Looks up every name that a C library exports, and some that it does not export.
    #[test]
    fn the_index_finds_the_same_as_a_linear_search() {
        let elf = libc();
        let exports = elf.exports().expect("an index");
        let names = Names::read(&elf, None, None);
        let mut seen = 0;
        for symbol in names.all() {
            let name = std::str::from_utf8(&symbol.name).unwrap();
            assert_eq!(names.export(name), names.export_without_index(name), "{name}");
            seen += usize::from(exports.addresses(name.as_bytes()).next().is_some());
        }
        assert!(seen > 2000, "{seen}");
        assert!(exports.addresses(b"no_such_function").next().is_none());
        assert!(exports.addresses(b"").next().is_none());
    }

    /// Compares each symbol read by itself, and each lookup by name, with tables that were read as a whole.
    #[test]
    fn symbols_read_alone_equal_those_of_the_whole_table() {
        let (alone, whole) = (libc(), libc());
        let all = whole.dynamic_symbols().unwrap();
        all.strings.whole();
        whole.exports().unwrap().index.whole();
        let mut seen = 0;
        for index in 0..all.symbols().len() as u32 + 2 {
            let name = all.name(index);
            assert_eq!(alone.dynamic_symbols().unwrap().name(index), name, "{index}");
            let Some(name) = name else { continue };
            let found = |elf: &ElfFile| elf.exports().unwrap().addresses(&name).collect::<Vec<_>>();
            assert_eq!(found(&alone), found(&whole), "{index}");
            seen += usize::from(!found(&whole).is_empty());
        }
        assert!(seen > 2000, "{seen}");
        assert!(!alone.dynamic_symbols().unwrap().strings.at_hand(), "all names were read");
    }

    proptest! {
        /// Looks names up in an index with any contents, as an untrusted file may have.
        #[test]
        fn lookups_in_a_damaged_index_end(
            words in prop::collection::vec(prop_oneof![0u32..8, any::<u32>()], 0..40),
            name in prop_oneof!["[a-z]{0,4}", Just("read".to_owned())],
        ) {
            let elf = libc();
            let index = View::of(words.iter().flat_map(|w| w.to_le_bytes()).collect());
            if let Some(exports) = Exports::new(Arc::clone(elf.dynamic_symbols().unwrap()), index) {
                prop_assert!(exports.addresses(name.as_bytes()).count() < 100);
            }
        }
    }
}
