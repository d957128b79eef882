//! Finds the first and last addresses of functions, by call frame information.
//!
//! Format: "Exception Frames" in the LSB core specification 5.0; DWARF's `.debug_frame`.

use gimli::{BaseAddresses, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindSection};
use std::collections::HashMap;

/// Entries of a table that are read, at most: the largest browsers have some 600,000.
const MAX_ENTRIES: usize = 2_000_000;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A function, as its entry describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// First address of the function.
    pub start: u64,
    /// Address behind the function's last byte.
    pub end: u64,
    /// True for a signal trampoline. Its entry in glibc begins a byte early, because unwinders look
    /// up the byte before a return address.
    pub is_signal_trampoline: bool,
    /// Offset of the function's entry in the section, bytes.
    pub offset: usize,
    /// Size of the entry, bytes.
    pub entry_size: usize,
    /// Address of the function's language-specific data, if it has any.
    pub lsda: Option<u64>,
}

/// The functions of a table.
#[derive(Clone, Debug, Default)]
pub struct Functions(Vec<Function>);

impl Functions {
    /// Reads the functions of `.eh_frame`, mapped at `at`, in a file whose `.text` starts at
    /// `text`. Stops at the first damaged entry.
    #[must_use]
    pub fn of_eh_frame(at: u64, section: &[u8], text: Option<u64>) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(at).set_text(text.unwrap_or(0));
        Self::of(&EhFrame::new(section, LittleEndian), &bases)
    }

    /// Reads the functions of `.debug_frame`.
    #[must_use]
    pub fn of_debug_frame(section: &[u8]) -> Self {
        Self::of(&DebugFrame::new(section, LittleEndian), &BaseAddresses::default())
    }

    fn of<'a, S>(section: &S, bases: &BaseAddresses) -> Self
    where
        S: UnwindSection<Slice<'a>>,
        S::Offset: gimli::UnwindOffset<usize>,
    {
        let (mut found, mut cies) = (Vec::new(), HashMap::new());
        let mut entries = section.entries(bases);
        while let Ok(Some(entry)) = entries.next() {
            if found.len() >= MAX_ENTRIES {
                break;
            }
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(|section, bases, offset| {
                // Nearly all entries share a few CIEs, so each CIE is parsed once.
                let at = gimli::UnwindOffset::into(offset);
                cies.entry(at).or_insert_with(|| section.cie_from_offset(bases, offset)).clone()
            });
            let Ok(fde) = fde else { continue };
            let Some(end) = fde.initial_address().checked_add(fde.len()).filter(|_| fde.len() > 0) else { continue };
            let lsda = match fde.lsda() {
                Some(gimli::Pointer::Direct(at)) if at != 0 => Some(at),
                _ => None,
            };
            found.push(Function {
                start: fde.initial_address(),
                end,
                is_signal_trampoline: fde.is_signal_trampoline(),
                offset: fde.offset(),
                entry_size: fde.entry_len(),
                lsda,
            });
        }
        found.sort_unstable_by_key(|f| (f.start, f.end, f.offset));
        Self(found)
    }

    /// Returns all functions, by rising start address.
    #[must_use]
    pub fn all(&self) -> &[Function] {
        &self.0
    }

    /// Returns the function that contains `address`.
    #[must_use]
    pub fn around(&self, address: u64) -> Option<&Function> {
        let next = self.0.partition_point(|f| f.start <= address);
        self.0.get(next.checked_sub(1)?).filter(|f| address < f.end)
    }
}
