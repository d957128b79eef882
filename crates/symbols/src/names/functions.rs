//! Symbol tables: the function around an address, and its public name.

use crate::elf::{ElfFile, Exports, GoFunction, GoTable, Strings, SymbolTable};
use object::LittleEndian as Le;
use object::elf as raw;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use systoll_binfile::elf;

/// A function symbol.
#[derive(Clone, Debug)]
struct Symbol {
    addr: u64,
    size: u64,
    /// Index of the table of strings that holds the name.
    table: u8,
    /// Offset of the name in that table.
    name: u32,
    exported: bool,
    is_static: bool,
}

impl Symbol {
    fn extent(&self) -> Range<u64> {
        self.addr..self.addr.saturating_add(self.size)
    }
}

/// A function symbol and its name.
pub(crate) struct NamedSymbol<'n> {
    pub(crate) addr: u64,
    pub(crate) name: Cow<'n, [u8]>,
    /// True if the source declares the function `static`.
    pub(crate) is_static: bool,
}

/// The functions of a file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tables: Vec<Arc<Strings>>,
    /// Symbols, sorted by address.
    symbols: Vec<Symbol>,
    /// Index of the exported symbols by name, if the file has one.
    exports: Option<Exports>,
    /// Exported symbols, if the file has no index of them, sorted: hash of the name, and index in `symbols`.
    exported: OnceLock<Vec<(u64, u32)>>,
    /// All symbols, sorted: hash of the name, and index in `symbols`.
    hashes: OnceLock<Vec<(u64, u32)>>,
}

/// A function from a symbol table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Name in the table, mangled.
    pub name: Arc<str>,
    /// First address in the file.
    pub start: u64,
    /// Size in bytes; 0 if the table has none.
    pub size: u64,
    /// Start of the next function.
    pub next: Option<u64>,
}

impl Function {
    /// Returns a function of which only the range is known.
    pub(crate) fn nameless(extent: Range<u64>) -> Self {
        Self { start: extent.start, size: extent.end.saturating_sub(extent.start), ..Self::default() }
    }

    /// Returns the function's range of addresses.
    pub(crate) fn extent(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.size)
    }
}

/// Names of one address that are read one by one, at most. If there are more, all strings of the table are read.
const MANY: usize = 64;
/// Symbols before an address that are searched for a large one that contains smaller ones, at most.
const LOOK_BACK: usize = 8;

impl Names {
    /// Reads the symbols in `.dynsym` and `.symtab`, and those of a separate debug file; if all are exported, also
    /// Go's.
    pub(crate) fn read(elf: &ElfFile, debug: Option<&ElfFile>, go: Option<&GoTable>) -> Self {
        let mut names = Self { exports: elf.exports().cloned(), ..Self::default() };
        names.add(elf);
        if let Some(debug) = debug {
            names.add(debug);
        }
        // A stripped Go program that also calls C exports a few functions for C, so exported symbols alone do not
        // suffice.
        if names.symbols.iter().all(|s| s.exported) {
            names.add_go(go);
        }
        names.symbols.sort_unstable_by_key(|s| s.addr);
        names
    }

    fn add(&mut self, elf: &ElfFile) {
        if let Some(table) = elf.dynamic_symbols() {
            // All of the table's names will be searched.
            table.strings.whole();
            self.add_table(elf, table, true);
        }
        if let Some(table) = elf.symbols() {
            self.add_table(elf, &table, false);
        }
    }

    fn add_table(&mut self, file: &ElfFile, symbols: &SymbolTable, exported: bool) -> Option<()> {
        let (strings, symbols) = (Arc::clone(&symbols.strings), symbols.symbols());
        let table = u8::try_from(self.tables.len()).ok()?;
        self.symbols.reserve(symbols.len());
        for s in symbols {
            let is_code = elf::Names::of(s, |addr| file.is_code(addr)) == elf::Names::Code;
            if !is_code || s.st_name.get(Le) == 0 {
                continue;
            }
            self.symbols.push(Symbol {
                addr: s.st_value.get(Le),
                size: s.st_size.get(Le),
                table,
                name: s.st_name.get(Le),
                exported,
                // Linking a static-pie makes hidden functions local; a function declared `static` is not hidden.
                is_static: s.st_bind() == raw::STB_LOCAL && s.st_visibility() == raw::STV_DEFAULT,
            });
        }
        self.tables.push(strings);
        Some(())
    }

    fn add_go(&mut self, go: Option<&GoTable>) -> Option<()> {
        let go = go?.functions()?;
        let table = u8::try_from(self.tables.len()).ok()?;
        self.tables.push(Arc::new(Strings::of(go.names)));
        let symbol = |f: GoFunction| Symbol {
            addr: f.start,
            size: f.size,
            table,
            name: f.name,
            exported: false,
            is_static: false,
        };
        self.symbols.extend(go.functions.into_iter().map(symbol));
        Some(())
    }

    /// Returns the rank of a name among those of one address: first those that other files can link to, then those
    /// without leading underscores (a C library's internal names have some), then short ones. Global binding does not
    /// count: a static-pie has `mktime` as a local symbol and a weak `timelocal` at the same address.
    fn rank<'n>(s: &Symbol, name: &'n [u8]) -> impl Ord + use<'n> {
        let underscores = name.iter().take_while(|b| **b == b'_').count();
        (!s.exported, underscores, name.len(), name)
    }

    /// Returns the best-ranked name of one address, with its symbol.
    fn best(&self, same: Range<usize>) -> Option<(&Symbol, Cow<'_, [u8]>)> {
        // Some linkers merge functions whose code is equal, so that one address has thousands of names.
        if same.len() > MANY {
            self.read_strings();
        }
        let named = self.symbols.get(same)?.iter().filter_map(|s| Some((s, self.bytes(s)?)));
        named.min_by(|(a, of_a), (b, of_b)| Self::rank(a, of_a).cmp(&Self::rank(b, of_b)))
    }

    /// Returns a symbol's name; `None` if it has none.
    fn bytes(&self, s: &Symbol) -> Option<Cow<'_, [u8]>> {
        self.tables.get(usize::from(s.table))?.get(s.name).filter(|name| !name.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    fn at(&self, addr: u64) -> Range<usize> {
        let start = self.symbols.partition_point(|s| s.addr < addr);
        let same = self.symbols.get(start..).unwrap_or(&[]).iter().take_while(|s| s.addr == addr).count();
        start..start + same
    }

    /// Returns the size of the function with these names; 0 if none of them has a size.
    fn size(&self, same: Range<usize>) -> u64 {
        // In assembly, some aliases have no size, but another one may have it.
        self.symbols.get(same).unwrap_or_default().iter().map(|s| s.size).max().unwrap_or(0)
    }

    fn function(&self, same: Range<usize>) -> Option<Function> {
        let size = self.size(same.clone());
        let next = self.symbols.get(same.end).map(|s| s.addr);
        let (symbol, name) = self.best(same)?;
        Some(Function { name: text(&name), start: symbol.addr, size, next })
    }

    /// Returns the function that starts at `addr`, with its best name.
    pub(crate) fn exactly(&self, addr: u64) -> Option<Function> {
        self.function(self.at(addr))
    }

    /// Returns the function that starts at `addr`, with its best name, if other files can link to that name.
    pub(crate) fn exported_at(&self, addr: u64) -> Option<Function> {
        let same = self.at(addr);
        let (best, _) = self.best(same.clone())?;
        best.exported.then(|| self.function(same))?
    }

    /// Returns the function around `addr`. A function without a size may end before `addr`.
    pub(crate) fn around(&self, addr: u64) -> Option<Function> {
        let mut end = self.symbols.partition_point(|s| s.addr <= addr);
        let mut sizeless = None;
        for _ in 0..LOOK_BACK {
            let last = self.symbols.get(end.checked_sub(1)?)?;
            let group = self.at(last.addr);
            let size = self.size(group.clone());
            if addr - last.addr < size
                && let Some(function) = self.function(group.clone())
            {
                return Some(function);
            }
            if size == 0 && sizeless.is_none() && end == self.symbols.partition_point(|s| s.addr <= addr) {
                sizeless = Some(group.clone());
            }
            end = group.start;
            if end == 0 {
                break;
            }
        }
        self.function(sizeless?)
    }

    /// Prepares lookups of exported functions, so that the first one is as fast as others.
    pub(crate) fn make_ready(&self) {
        self.export("");
    }

    /// Returns the range of the function of this name; it is empty if the table has no size for it. The names are
    /// hashed: a search through all of them took seconds in a program of 100,000 functions.
    pub(crate) fn find(&self, name: &str) -> Option<Range<u64>> {
        self.named(
            name,
            self.hashes.get_or_init(|| {
                self.read_strings();
                self.hashed(|_| true)
            }),
        )
    }

    /// Does the same as [`Names::find`] without hashing all names, for callers with few lookups.
    pub(crate) fn scan(&self, name: &str) -> Option<Range<u64>> {
        let is = |s: &&Symbol| {
            let rest = self.tables.get(usize::from(s.table)).and_then(|table| table.whole().get(s.name as usize..));
            let behind = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
            behind.is_some_and(|behind| behind.first() == Some(&0))
        };
        self.symbols.iter().find(is).map(Symbol::extent)
    }

    /// Returns the range of the exported function of this name.
    pub(crate) fn export(&self, name: &str) -> Option<Range<u64>> {
        let Some(exports) = &self.exports else { return self.export_without_index(name) };
        let function = |addr| self.symbols.get(self.at(addr))?.iter().find(|s| s.exported && self.is(s, name));
        exports.addresses(name.as_bytes()).filter_map(function).min_by_key(|s| (s.addr, s.size)).map(Symbol::extent)
    }

    /// Does the same as [`Names::export`] for files without an index of exported symbols.
    pub(crate) fn export_without_index(&self, name: &str) -> Option<Range<u64>> {
        self.named(name, self.exported.get_or_init(|| self.hashed(|s| s.exported)))
    }

    /// Reads all names at once, before all of them are searched.
    fn read_strings(&self) {
        for table in &self.tables {
            table.whole();
        }
    }

    /// Returns true if no name must be read from the file.
    pub(crate) fn at_hand(&self) -> bool {
        self.tables.iter().all(|table| table.at_hand())
    }

    /// Returns the hashes of the names of the symbols that `which` selects, sorted, each with the symbol's index.
    fn hashed(&self, which: impl Fn(&Symbol) -> bool) -> Vec<(u64, u32)> {
        let symbols = (0..).zip(&self.symbols).filter(|(_, s)| which(s));
        let mut all: Vec<(u64, u32)> = symbols.map(|(i, s)| (hash(&self.bytes(s).unwrap_or_default()), i)).collect();
        all.sort_unstable();
        all
    }

    /// Returns the range of the first function of this name among `hashed`.
    fn named(&self, name: &str, hashed: &[(u64, u32)]) -> Option<Range<u64>> {
        let wanted = hash(name.as_bytes());
        let at = hashed.partition_point(|(hash, _)| *hash < wanted);
        let same = hashed.get(at..)?.iter().take_while(|(hash, _)| *hash == wanted);
        let mut symbols = same.filter_map(|(_, i)| self.symbols.get(*i as usize));
        symbols.find(|s| self.is(s, name)).map(Symbol::extent)
    }

    fn is(&self, s: &Symbol, name: &str) -> bool {
        self.bytes(s).as_deref() == Some(name.as_bytes())
    }

    /// Returns true if the function at `addr` also has the name `name`.
    pub(crate) fn is_called(&self, addr: u64, name: &str) -> bool {
        self.symbols.get(self.at(addr)).is_some_and(|s| s.iter().any(|s| self.is(s, name)))
    }

    /// Returns all functions, by address.
    pub(crate) fn all(&self) -> impl Iterator<Item = NamedSymbol<'_>> {
        self.read_strings();
        let named = |s: &Symbol| Some(NamedSymbol { addr: s.addr, name: self.bytes(s)?, is_static: s.is_static });
        self.symbols.iter().filter_map(named)
    }
}

fn text(name: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(name).into()
}

/// Returns the FNV-1a hash (Fowler, Noll, Vo) of a name. Collisions do no harm, because names are compared as well.
fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that installing libc6-dbg does not rename a function that programs can call.
    #[test]
    #[expect(clippy::print_stdout, reason = "a skipped test says so")]
    fn debug_files_do_not_rename_what_is_exported() {
        let pid = std::process::id() as i32;
        let mapped = crate::mapped::maps::executable(pid).unwrap();
        let libc = mapped.iter().find(|m| m.path.contains("/libc.so") || m.path.contains("/libc-")).expect("a libc");
        let elf = ElfFile::parse(crate::mapped::open(pid, libc).unwrap()).unwrap();
        let Some(debug) = crate::module::debug_file::find(&elf, &libc.path) else {
            let strict = std::env::var_os("SYSTOLL_TEST_STRICT").is_some_and(|v| v == "1");
            assert!(!strict, "libc6-dbg is not installed");
            println!("skipped: libc6-dbg is not installed");
            return;
        };
        let (plain, full) = (Names::read(&elf, None, None), Names::read(&elf, Some(&debug.elf), None));
        assert!(full.symbols.len() > plain.symbols.len() + 1000, "the debug file adds nothing");
        let mut seen = 0;
        for symbol in plain.symbols.iter().filter(|s| s.size > 1) {
            let name = |names: &Names, addr| names.around(addr).map(|f| (f.name, f.start));
            let exactly = |names: &Names| names.exactly(symbol.addr).map(|f| f.name);
            assert_eq!(exactly(&plain), exactly(&full));
            for addr in [symbol.addr, symbol.addr + 1, symbol.addr + symbol.size - 1] {
                assert_eq!(name(&plain, addr), name(&full, addr), "{addr:#x}");
            }
            seen += 1;
        }
        assert!(seen > 1000, "{seen}");
        let localtime = full.export("localtime").expect("localtime").start;
        assert_eq!(full.exactly(localtime).map(|f| f.name).as_deref(), Some("localtime"));
        assert!(full.is_called(localtime, "localtime"));
    }
}
