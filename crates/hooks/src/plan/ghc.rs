//! Recognises bytes in GHC's programs that only look like calls.
//!
//! GHC puts a table before each piece of code, so that bytes of a `syscall` occur by the hundred where there is none.
//! Its code generators never write one: calls belong to C functions, and those have mapped call frame information,
//! which GHC's code has not.

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

/// Text that GHC's run-time system contains (rts/RtsMessages.c).
const SAYS: &[u8] = b"www.haskell.org/ghc/reportabug";
/// Bound of closure kinds: 0 is none, and there are some sixty (rts/include/rts/storage/ClosureTypes.h).
const KINDS: u32 = 64;
/// Alignment of code, bytes.
const ALIGNED: u64 = 8;
/// Bytes before an address in which the table of its code is searched.
const NEAR: u64 = 1 << 16;

/// Returns true if the file contains GHC's run-time system, and call frame information, which tells C functions from
/// GHC's code.
pub(super) fn has_runtime(image: &Image<'_>, cfi: &Cfi<'_>) -> bool {
    let says = memmem::Finder::new(SAYS);
    !cfi.functions.all().is_empty() && image.constants().any(|(_, bytes)| says.find(bytes).is_some())
}

/// Returns true if the file makes no calls, though it contains bytes of calls: it contains GHC's run-time system, and
/// none of those bytes lie in a C function. Examines only those bytes and the functions around them.
pub(super) fn makes_no_calls(image: &Image<'_>, cfi: &Cfi<'_>) -> bool {
    has_runtime(image, cfi) && image.code.iter().all(|region| none_in(image, cfi, region))
}

fn none_in(image: &Image<'_>, cfi: &Cfi<'_>, region: &Region<'_>) -> bool {
    // The bytes of one function follow each other, so each function is decoded once.
    let mut decoded = None;
    calls_in(region.bytes).all(|at| {
        let address = region.start.saturating_add(at as u64);
        let Some(function) = cfi.functions.around(address) else { return is_own(image, cfi, region, address) };
        let (start, end) = (function.start, function.end);
        decoded.replace(start) == Some(start) || !has_call(image, &Extent { start, end, known: true })
    })
}

/// Returns true if the bytes of a call at `address` belong to GHC's code, in a file with its run-time system: no C
/// function is there, and they are part of a table, lie inside another instruction, or follow nothing that could set a
/// call's number.
pub(super) fn is_own(image: &Image<'_>, cfi: &Cfi<'_>, region: &Region<'_>, address: u64) -> bool {
    let own = || {
        !gets_number(region.slice(region.start, address))
            || is_in_table(image, region, address)
            || is_within_instruction(image, region, address)
    };
    cfi.functions.around(address).is_none() && own()
}

/// Returns true if the two bytes at `address` lie in an info table: in its type and SRT offset fields, or in the layout
/// field before them.
fn is_in_table(image: &Image<'_>, region: &Region<'_>, address: u64) -> bool {
    let behind = address.saturating_add(SYSCALL_LEN as u64);
    let first = behind.checked_next_multiple_of(ALIGNED).unwrap_or(behind);
    [first, first.saturating_add(ALIGNED)].into_iter().any(|code| ends_table(image, region, code))
}

/// Returns true if a table ends at `code`, where its code begins. A table ends with the kind of closure and the
/// distance from the code to its static references, or zero, both of 32 bits (rts/include/rts/storage/InfoTables.h).
fn ends_table(image: &Image<'_>, region: &Region<'_>, code: u64) -> bool {
    let last = region.slice(code.saturating_sub(8), code);
    let [Some(kind), Some(distance)] = [last.first_chunk(), last.last_chunk()] else { return false };
    let distance = i32::from_le_bytes(*distance);
    let references = code.saturating_add_signed(distance.into());
    let is_kind = (1..KINDS).contains(&u32::from_le_bytes(*kind));
    let refers = || image.from(references).is_some() && image.region(references).is_none();
    code.is_multiple_of(ALIGNED) && last.len() == 8 && is_kind && (distance == 0 || refers())
}

/// Returns true if the byte at `address` is inside an instruction, when decoding starts at the end of the last table
/// before it.
fn is_within_instruction(image: &Image<'_>, region: &Region<'_>, address: u64) -> bool {
    let back = (region.start.max(address.saturating_sub(NEAR))..=address).rev();
    let Some(code) = { back }.filter(|at| at.is_multiple_of(ALIGNED)).find(|at| ends_table(image, region, *at)) else {
        return false;
    };
    let code = Decoder::with_ip(64, region.slice(code, region.end()), code, DecoderOptions::NONE).into_iter();
    let mut up_to = { code }.take_while(|i| i.ip() < address && is_plausible(i) && !is_doubtful(i));
    up_to.any(|i| i.next_ip() > address)
}
