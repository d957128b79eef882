//! Looks up source lines and inlined functions in DWARF.

use super::scope::Scopes;
use crate::elf::ElfFile;
use crate::module::{Module, debug_file};
use crate::names::demangle;
use addr2line::{Context, LookupResult};
use gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use systoll_model::Location;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Bytes of DWARF read from one file, decompressed, at most. Debug builds of the largest programs have more, and get
/// no lines.
const MAX_DWARF: u64 = 1 << 30;
/// Nested inlined functions listed, at most.
const MAX_INLINED: usize = 64;

/// The lines and functions found at an address.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LineLookup {
    /// Locations, innermost first; the last one is the function that is not inlined. Empty if there are no lines.
    pub(crate) locations: Vec<Location>,
    /// True if functions are described in separate files (`.dwo`), which are not read: lines are known then, inlined
    /// functions are not.
    pub(crate) is_split: bool,
    /// True if the result stays the same while the file and its debug files do not change: no other file is missing,
    /// and no server was asked.
    pub(crate) is_lasting: bool,
}

/// Returns the functions and lines at each of `addrs`.
pub(crate) fn look_up(module: &Module, addrs: &[u64]) -> Result<Vec<LineLookup>, String> {
    let Some(go) = module.go() else { return by_dwarf(module, addrs) };
    // Go's table gives the same result with DWARF and without. Addresses that are not in it belong to C code.
    let by_go =
        |addr: &u64| LineLookup { locations: go.look_up(&module.elf, *addr), is_split: false, is_lasting: true };
    let mut all: Vec<_> = addrs.iter().map(by_go).collect();
    if all.iter().any(|looked| looked.locations.is_empty()) {
        let others = by_dwarf(module, addrs)?;
        let missing = all.iter_mut().zip(others).filter(|(own, _)| own.locations.is_empty());
        missing.for_each(|(own, other)| *own = other);
    }
    Ok(all)
}

fn by_dwarf(module: &Module, addrs: &[u64]) -> Result<Vec<LineLookup>, String> {
    let Some(dwarf) = Dwarf::read(module)? else {
        let nothing = LineLookup { is_lasting: !debug_file::servers_are_named(), ..LineLookup::default() };
        return Ok(vec![nothing; addrs.len()]);
    };
    let mut all = Vec::new();
    dwarf.look_up(|at| all.extend(addrs.iter().map(|addr| at(*addr))))?;
    Ok(all)
}

/// The debug information of a file.
pub(super) struct Dwarf {
    sections: DwarfSections<Vec<u8>>,
    /// The part that several files share, if it was found.
    common: Option<DwarfSections<Vec<u8>>>,
    /// True if the information comes from the file or from a debug file on this machine, and no part is missing.
    is_whole: bool,
}

impl Dwarf {
    /// Reads the debug information of a file. Returns `None` if it has none.
    pub(super) fn read(module: &Module) -> Result<Option<Self>, String> {
        let separate = || module.debug_file().filter(|debug| debug.elf.has_lines());
        let fetched = || module.fetched().filter(|debug| debug.elf.has_lines());
        let (elf, is_own) = if module.elf.has_lines() {
            (&module.elf, true)
        } else if let Some(debug) = separate() {
            (&debug.elf, true)
        } else if let Some(debug) = fetched() {
            (&debug.elf, false)
        } else {
            return Ok(None);
        };
        let sections = read(elf)?;
        // Distributions move the part that several files share to a separate file (dwz).
        let common = debug_file::common_part(elf).map(|c| read(&c)).transpose()?;
        let is_whole = is_own && (common.is_some() || !debug_file::has_common_part(elf));
        Ok(Some(Self { sections, common, is_whole }))
    }

    /// Calls `ask` with a function that looks up one address.
    pub(super) fn look_up(&self, ask: impl FnOnce(&mut dyn FnMut(u64) -> LineLookup)) -> Result<(), String> {
        let common = self.common.as_ref();
        let dwarf = self.sections.borrow_with_sup(common, |section| EndianSlice::new(section, LittleEndian));
        let context = Context::from_dwarf(dwarf).map_err(|e| e.to_string())?;
        let mut scopes = Scopes::new();
        ask(&mut |addr| {
            let mut is_split = false;
            let locations = at(&context, addr, &mut scopes, &mut is_split);
            LineLookup { locations, is_split, is_lasting: self.is_whole && !is_split }
        });
        Ok(())
    }
}

fn read(elf: &ElfFile) -> Result<DwarfSections<Vec<u8>>, String> {
    let mut rest = MAX_DWARF;
    DwarfSections::load(|id: SectionId| {
        // The locations of variables and macros are not needed, and they are the largest part to decompress.
        let wanted = !matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists | SectionId::DebugMacro);
        let Some(section) = elf.section(id.name()).filter(|_| wanted) else { return Ok(Vec::new()) };
        let data = elf.section_data(section).unwrap_or_default();
        rest = rest.checked_sub(data.len() as u64).ok_or("its debug information is too large")?;
        Ok(data)
    })
}

fn at(context: &Context<Slice<'_>>, addr: u64, scopes: &mut Scopes, is_split: &mut bool) -> Vec<Location> {
    let found = context.find_frames(addr);
    *is_split |= matches!(found, LookupResult::Load { .. });
    let found = found.skip_all_loads();
    let mut locations = Vec::new();
    let Ok(mut frames) = found else { return locations };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
        let whole =
            frame.dw_die_offset.filter(|_| name.as_ref().is_some_and(|n| !n.starts_with("_Z"))).and_then(|offset| {
                let is_cpp = frame.function.as_ref().and_then(|f| f.language).is_some_and(is_cpp);
                let unit = context.find_dwarf_and_unit(addr).skip_all_loads().filter(|_| is_cpp)?;
                scopes.whole_name(unit, offset)
            });
        let place = frame.location.as_ref();
        locations.push(Location {
            function: whole.unwrap_or_else(|| name.map_or_else(String::new, |n| demangle(&n))).into(),
            file: place.and_then(|p| p.file).map(Into::into),
            line: place.and_then(|p| p.line).filter(|l| *l > 0),
        });
        if locations.len() == MAX_INLINED {
            break;
        }
    }
    locations
}

fn is_cpp(language: gimli::DwLang) -> bool {
    use gimli::constants as dw;
    const CPP: [gimli::DwLang; 6] = [
        dw::DW_LANG_C_plus_plus,
        dw::DW_LANG_C_plus_plus_03,
        dw::DW_LANG_C_plus_plus_11,
        dw::DW_LANG_C_plus_plus_14,
        dw::DW_LANG_C_plus_plus_17,
        dw::DW_LANG_C_plus_plus_20,
    ];
    CPP.contains(&language)
}
