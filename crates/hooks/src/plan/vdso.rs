//! Entries of functions that are hooked themselves: those of the vDSO, which rarely make a call, and the one by which
//! unwinders find code.

use super::addresses::Targets;
use super::image::Image;
use super::patch_span::Block;
use super::types::{Entry, Span};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// Instructions decoded; more than any window has.
const ENOUGH: usize = 8;

/// Returns windows at the entries of the vDSO's functions; none unless `image` is the vDSO.
pub(super) fn entries(image: &Image<'_>, targets: &Targets) -> Vec<Entry> {
    let mut entries: Vec<_> = image
        .vdso
        .iter()
        .filter_map(|(function, address)| {
            Some(Entry { function: *function, address: *address, span: entry(image, targets, *address)? })
        })
        .collect();
    entries.sort_unstable_by_key(|e| (e.address, e.function));
    entries.dedup_by_key(|e| e.address);
    entries
}

/// Returns the window at the entry of the function at `address`.
pub(super) fn entry(image: &Image<'_>, targets: &Targets, address: u64) -> Option<Span> {
    let region = image.region(address)?;
    let bytes = region.slice(address, region.end());
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let code: Vec<_> = decoder.iter().skip_while(|i| i.mnemonic() == Mnemonic::Endbr64).take(ENOUGH).collect();
    let block = Block { code: &code, targets, region, can_call: false };
    let (end, padding) = block.extend(0, 0)?;
    let span = block.span(0..end, padding)?;
    targets.inside(span.start, span.end()).is_none().then_some(span)
}
