//! Calls that programs of GHC's don't make.
//!
//! GHC puts a table before each piece of code, so that bytes of a `syscall` occur by the hundred where none is. Its code
//! generators never write one: calls are C's, and C's functions have call frame information, as GHC's code has none in
//! what is mapped.

use super::calls::{SYSCALL_LEN, has_call};
use super::cfi::Cfi;
use super::effects::is_plausible;
use super::extents::Extent;
use super::gs::is_doubtful;
use super::image::{Image, Region};
use super::pairs::calls_in;
use super::reachable::gets_number;
use iced_x86::{Decoder, DecoderOptions};
use memchr::memmem;

/// What GHC's run-time system says where it fails (rts/RtsMessages.c).
const SAYS: &[u8] = b"www.haskell.org/ghc/reportabug";
/// Kinds of closures: 0 is none, and there are some sixty (rts/include/rts/storage/ClosureTypes.h).
const KINDS: u32 = 64;
/// Code begins at such addresses.
const ALIGNED: u64 = 8;
/// Bytes before an address in which the table of its code is looked for.
const NEAR: u64 = 1 << 16;

/// Whether the file has GHC's run-time system in it, and what tells C's functions from GHC's code.
pub(super) fn has_runtime(image: &Image<'_>, cfi: &Cfi<'_>) -> bool {
    let says = memmem::Finder::new(SAYS);
    !cfi.functions.all().is_empty() && image.constants().any(|(_, bytes)| says.find(bytes).is_some())
}

/// Whether nothing in the file is a call, though it has bytes of calls: where it has GHC's run-time system and none lies in
/// a function of C's. Looks at those bytes and the functions around them alone.
pub(super) fn makes_no_calls(image: &Image<'_>, cfi: &Cfi<'_>) -> bool {
    has_runtime(image, cfi) && image.code.iter().all(|region| none_in(image, cfi, region))
}

fn none_in(image: &Image<'_>, cfi: &Cfi<'_>, region: &Region<'_>) -> bool {
    // A function's bytes come one after the other, and are decoded together.
    let mut decoded = None;
    calls_in(region.bytes).all(|at| {
        let address = region.start.saturating_add(at as u64);
        let Some(function) = cfi.functions.around(address) else { return is_own(image, cfi, region, address) };
        let (start, end) = (function.start, function.end);
        decoded.replace(start) == Some(start) || !has_call(image, &Extent { start, end, known: true })
    })
}

/// Whether the bytes of a call at `address` are GHC's own, in a file that has its run-time system: no C function is there,
/// and they are of a table, lie in another instruction, or have nothing before them that could be a call's number.
pub(super) fn is_own(image: &Image<'_>, cfi: &Cfi<'_>, region: &Region<'_>, address: u64) -> bool {
    let own = || {
        !gets_number(region.slice(region.start, address))
            || is_in_table(image, region, address)
            || is_within_instruction(image, region, address)
    };
    cfi.functions.around(address).is_none() && own()
}

/// Whether the two bytes at `address` are of a table: of its kind and distance, or of the layout before.
fn is_in_table(image: &Image<'_>, region: &Region<'_>, address: u64) -> bool {
    let behind = address.saturating_add(SYSCALL_LEN as u64);
    let first = behind.checked_next_multiple_of(ALIGNED).unwrap_or(behind);
    [first, first.saturating_add(ALIGNED)].into_iter().any(|code| ends_table(image, region, code))
}

/// Whether a table ends at `code`, where then the code begins that it tells of. It ends with the kind of closure and with
/// the distance from the code to its static references, or nothing, both of 32 bits (rts/include/rts/storage/InfoTables.h).
fn ends_table(image: &Image<'_>, region: &Region<'_>, code: u64) -> bool {
    let last = region.slice(code.saturating_sub(8), code);
    let [Some(kind), Some(distance)] = [last.first_chunk(), last.last_chunk()] else { return false };
    let distance = i32::from_le_bytes(*distance);
    let references = code.saturating_add_signed(distance.into());
    let is_kind = (1..KINDS).contains(&u32::from_le_bytes(*kind));
    let refers = || image.from(references).is_some() && image.region(references).is_none();
    code.is_multiple_of(ALIGNED) && last.len() == 8 && is_kind && (distance == 0 || refers())
}

/// Whether the byte at `address` is an instruction's, but not its first: decoded from where the last table before ends.
fn is_within_instruction(image: &Image<'_>, region: &Region<'_>, address: u64) -> bool {
    let back = (region.start.max(address.saturating_sub(NEAR))..=address).rev();
    let Some(code) = { back }.filter(|at| at.is_multiple_of(ALIGNED)).find(|at| ends_table(image, region, *at)) else {
        return false;
    };
    let code = Decoder::with_ip(64, region.slice(code, region.end()), code, DecoderOptions::NONE).into_iter();
    let mut up_to = { code }.take_while(|i| i.ip() < address && is_plausible(i) && !is_doubtful(i));
    up_to.any(|i| i.next_ip() > address)
}
