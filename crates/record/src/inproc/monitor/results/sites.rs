//! Reports how many sites of calls were hooked, and how.

use crate::inproc::monitor::program::Patched;
use std::collections::HashMap;
use systoll_model::Sites;
use systoll_symbols::ModuleKey;

/// The way in which a file came into a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The file was mapped before the first instruction.
    AtStart,
    /// The program has mapped the file.
    Mapped,
    /// The program has made the file's mapping executable, and may have changed it before.
    MadeExecutable,
}

/// Sites of all files of a run, each file once, and of generated code.
#[derive(Debug, Default)]
pub(crate) struct AllSites {
    files: HashMap<ModuleKey, Sites>,
    generated: u64,
}

impl AllSites {
    /// Notes a hooked file; `left` of its sites could not be hooked, or none could if it is `None`.
    pub(crate) fn note(&mut self, file: &Patched, left: Option<u64>, arrival: Arrival) {
        let calls = file.code.blob.sites.iter().filter(|s| !s.vdso);
        let (timed, counted): (Vec<_>, Vec<_>) = calls.partition(|s| s.results);
        let (timed, counted) = (timed.len() as u64, counted.len() as u64);
        let not_covered = file.code.uncounted as u64;
        let sites = self.files.entry(file.key).or_default();
        let Some(left) = left else {
            *sites = Sites { not_covered: timed + counted + not_covered, ..Sites::default() };
            return;
        };
        // The kind of the sites that could not be hooked is unknown here; nearly all sites are timed ones.
        let left = left.min(timed);
        let on_arrival = if arrival == Arrival::AtStart { sites.on_arrival } else { timed - left + counted };
        *sites = Sites { timed: timed - left, counted, not_covered: not_covered + left, on_arrival };
    }

    /// Notes places in generated code that look like calls.
    pub(crate) fn note_generated(&mut self, calls: u64) {
        self.generated += calls;
    }

    /// Returns the sum over all files.
    pub(crate) fn total(&self) -> Sites {
        let none = Sites { not_covered: self.generated, ..Sites::default() };
        self.files.values().fold(none, |all, s| Sites {
            timed: all.timed + s.timed,
            counted: all.counted + s.counted,
            on_arrival: all.on_arrival + s.on_arrival,
            not_covered: all.not_covered + s.not_covered,
        })
    }
}
