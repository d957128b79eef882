//! The functions in which the stack pointer is at a fixed distance from the frame pointer.

use crate::ModuleKey;
use crate::code::extent;
use crate::module::Module;
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Results of decoding functions, true for a fixed distance.
#[derive(Debug, Default)]
pub(super) struct FixedFrames {
    /// Results by file and address of a call.
    by_address: HashMap<ModuleKey, BTreeMap<u64, bool>>,
    /// Results by file and start of the function.
    by_function: HashMap<(ModuleKey, u64), bool>,
}

impl FixedFrames {
    /// Returns true if, in the function around `lookup`, the stack pointer is at a fixed distance
    /// from the frame pointer. The result is cached.
    pub(super) fn at(&mut self, key: ModuleKey, module: Option<&Module>, lookup: u64) -> bool {
        if let Some(known) = self.by_address.get(&key).and_then(|file| file.get(&lookup)) {
            return *known;
        }
        let fixed = module.is_some_and(|module| self.find_out(key, module, lookup));
        self.by_address.entry(key).or_default().insert(lookup, fixed);
        fixed
    }

    fn find_out(&mut self, key: ModuleKey, module: &Module, lookup: u64) -> bool {
        let Some(range) = module.range(lookup) else { return false };
        let decode = || extent::is_fixed(&module.elf, range.clone());
        *self.by_function.entry((key, range.start)).or_insert_with(decode)
    }

    /// Returns all results for a file, by address.
    pub(super) fn known(&self, key: ModuleKey) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        let none = const { &BTreeMap::new() };
        self.by_address.get(&key).unwrap_or(none).iter().map(|(address, fixed)| (*address, *fixed))
    }

    pub(super) fn learn(&mut self, key: ModuleKey, known: impl IntoIterator<Item = (u64, bool)>) {
        self.by_address.entry(key).or_default().extend(known);
    }
}
