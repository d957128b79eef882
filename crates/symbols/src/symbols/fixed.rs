//! Where code keeps its stack pointer at one distance from its frame pointer.

use crate::ModuleKey;
use crate::code::extent;
use crate::module::Module;
use foldhash::HashMap;
use std::collections::BTreeMap;

/// What decoding functions has told.
#[derive(Debug, Default)]
pub(super) struct FixedFrames {
    /// By file and address.
    by_address: HashMap<ModuleKey, BTreeMap<u64, bool>>,
    /// The same by file and start of the function, which takes decoding it.
    by_function: HashMap<(ModuleKey, u64), bool>,
}

impl FixedFrames {
    /// Whether the code around `lookup` does. Cached.
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

    /// What is known of a file, by address.
    pub(super) fn known(&self, key: ModuleKey) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        let none = const { &BTreeMap::new() };
        self.by_address.get(&key).unwrap_or(none).iter().map(|(address, fixed)| (*address, *fixed))
    }

    pub(super) fn learn(&mut self, key: ModuleKey, known: impl IntoIterator<Item = (u64, bool)>) {
        self.by_address.entry(key).or_default().extend(known);
    }
}
