//! Source lines and inlined functions, by DWARF.

use super::scope::Scopes;
use crate::elf::ElfFile;
use crate::module::{Module, debug_file};
use crate::names::demangle;
use addr2line::{Context, LookupResult};
use gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use systoll_model::Location;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The most DWARF read of one file, decompressed; debug builds of the largest programs have more,
/// and go without lines.
const MAX_DWARF: u64 = 1 << 30;
/// Most functions inlined into each other that are listed.
const MAX_INLINED: usize = 64;

/// What was found for some addresses.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Of each address, innermost first; the last location is the function itself. Empty where there
    /// are no lines.
    pub(crate) locations: Vec<Vec<Location>>,
    /// Functions are described in files of their own (`.dwo`), which are not read: lines are known,
    /// inlined functions are not.
    pub(crate) is_split: bool,
    /// Whether the same is found as long as the file and its debug files stay as they are: no other file is missing,
    /// and no server was asked.
    pub(crate) is_lasting: bool,
}

/// What stands at each of `addrs`.
pub(crate) fn look_up(module: &Module, addrs: &[u64]) -> Result<Found, String> {
    let Some(go) = module.go() else { return by_dwarf(module, addrs) };
    // The same with DWARF and without; what is not Go's is C's.
    let mut locations: Vec<_> = addrs.iter().map(|addr| go.look_up(&module.elf, *addr)).collect();
    let (mut is_split, mut is_lasting) = (false, true);
    if locations.iter().any(Vec::is_empty) {
        let others = by_dwarf(module, addrs)?;
        let missing = locations.iter_mut().zip(others.locations).filter(|(own, _)| own.is_empty());
        missing.for_each(|(own, other)| *own = other);
        (is_split, is_lasting) = (others.is_split, others.is_lasting);
    }
    Ok(Found { locations, is_split, is_lasting })
}

fn by_dwarf(module: &Module, addrs: &[u64]) -> Result<Found, String> {
    let (elf, is_own) = match module.debug_file() {
        _ if module.elf.has_lines() => (&module.elf, true),
        Some(debug) if debug.elf.has_lines() => (&debug.elf, true),
        _ => match module.fetched() {
            Some(debug) if debug.elf.has_lines() => (&debug.elf, false),
            _ => {
                let is_lasting = !debug_file::servers_are_named();
                return Ok(Found { locations: vec![Vec::new(); addrs.len()], is_split: false, is_lasting });
            }
        },
    };
    let sections = read(elf)?;
    // Distributions move what several files have in common to a file of its own (dwz).
    let common = debug_file::common_part(elf).map(|c| read(&c)).transpose()?;
    let is_whole = common.is_some() || !debug_file::has_common_part(elf);
    let dwarf = sections.borrow_with_sup(common.as_ref(), |section| EndianSlice::new(section, LittleEndian));
    let context = Context::from_dwarf(dwarf).map_err(|e| e.to_string())?;
    let mut is_split = false;
    let mut scopes = Scopes::new();
    let locations = addrs.iter().map(|addr| at(&context, *addr, &mut scopes, &mut is_split)).collect();
    Ok(Found { locations, is_split, is_lasting: is_own && is_whole && !is_split })
}

fn read(elf: &ElfFile) -> Result<DwarfSections<Vec<u8>>, String> {
    let mut rest = MAX_DWARF;
    DwarfSections::load(|id: SectionId| {
        // Where variables live is not asked for, and is the most there is to decompress.
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
