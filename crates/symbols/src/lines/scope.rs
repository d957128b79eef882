//! Full names of C++ functions for which DWARF has only the last part: lambdas, and functions without linkage.

use crate::names::demangle;
use gimli::{
    AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian, UnitOffset, UnitRef, constants as dw,
};
use std::collections::HashMap;

/// Entries of debugging information visited for names in one file, at most.
const MAX_ENTRIES: usize = 2_000_000;
/// Nested scopes of a function, at most.
const MAX_DEPTH: usize = 64;
/// Steps from a function to its declaration, at most.
const MAX_ORIGINS: usize = 8;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// Names found so far in one file, and the number of entries that may still be visited.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// Names by the offset of the unit and the offset in it.
    known: HashMap<(usize, usize), Option<String>>,
    budget: usize,
}

impl Scopes {
    pub(crate) fn new() -> Self {
        Self { known: HashMap::new(), budget: MAX_ENTRIES }
    }

    /// Returns the name of the function described at `offset`, with the names of its scopes; `None` if it is unknown
    /// or too many entries would be visited.
    pub(crate) fn whole_name<'a>(&mut self, unit: UnitRef<'_, Slice<'a>>, offset: UnitOffset) -> Option<String> {
        let target = declaration(unit, offset)?.offset();
        let place = unit.header.offset();
        let key = (place.to_debug_info_offset(&unit.header).map_or(0, |o| o.0), target.0);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let name = self.find(unit, target, MAX_ORIGINS);
        self.known.insert(key, name.clone());
        name
    }

    /// Returns the name of `target` with its scopes. `functions` is the number of functions in which it may be
    /// nested.
    fn find(&mut self, unit: UnitRef<'_, Slice<'_>>, target: UnitOffset, functions: usize) -> Option<String> {
        let mut scopes: Vec<UnitOffset> = Vec::new();
        let mut cursor = unit.entries();
        loop {
            let entry = cursor.next_dfs().ok()??;
            self.budget = self.budget.checked_sub(1)?;
            scopes.truncate(usize::try_from(entry.depth()).ok().filter(|depth| *depth <= MAX_DEPTH)?);
            if entry.offset() == target {
                break;
            }
            scopes.push(entry.offset());
        }
        let mut parts = vec![own_name(unit, &unit.entry(target).ok()?)?];
        for scope in scopes.iter().rev() {
            let entry = unit.entry(*scope).ok()?;
            match entry.tag() {
                dw::DW_TAG_namespace => {
                    parts.push(own_name(unit, &entry).unwrap_or_else(|| "(anonymous namespace)".into()));
                }
                dw::DW_TAG_class_type | dw::DW_TAG_structure_type | dw::DW_TAG_union_type => {
                    let is_lambda = parts.last().is_some_and(|member| member == "operator()");
                    let unnamed = if is_lambda { "{lambda}" } else { "(unnamed)" };
                    parts.push(own_name(unit, &entry).unwrap_or_else(|| unnamed.into()));
                }
                dw::DW_TAG_subprogram => {
                    let declared = declaration(unit, *scope)?;
                    let linked = text(unit, &declared, dw::DW_AT_linkage_name).map(|name| demangle(&name));
                    // Either way, the result is a full name, by the scopes of the declaration, not those of the
                    // definition.
                    let whole = linked.or_else(|| self.find(unit, declared.offset(), functions.checked_sub(1)?));
                    parts.push(whole?);
                    break;
                }
                _ => {}
            }
        }
        parts.reverse();
        Some(parts.join("::"))
    }
}

/// Returns the declaration of the function whose instance or definition is at `offset`.
fn declaration<'a>(unit: UnitRef<'_, Slice<'a>>, mut offset: UnitOffset) -> Option<Entry<'a>> {
    for _ in 0..MAX_ORIGINS {
        let entry = unit.entry(offset).ok()?;
        let origin = [dw::DW_AT_abstract_origin, dw::DW_AT_specification].iter().find_map(|at| entry.attr_value(*at));
        match origin {
            Some(AttributeValue::UnitRef(to)) => offset = to,
            // The scopes of another unit are not visited.
            Some(_) => return None,
            None => return Some(entry),
        }
    }
    None
}

fn own_name<'a>(unit: UnitRef<'_, Slice<'a>>, entry: &Entry<'a>) -> Option<String> {
    text(unit, entry, dw::DW_AT_name)
}

fn text<'a>(unit: UnitRef<'_, Slice<'a>>, entry: &Entry<'a>, at: dw::DwAt) -> Option<String> {
    let text = unit.attr_string(entry.attr_value(at)?).ok()?;
    Some(text.to_string_lossy().into_owned())
}
