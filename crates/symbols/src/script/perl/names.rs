//! Names of Perl's subroutines, with their packages.

use super::layout::{
    ALIASED, AUX, BODY, CODE, CODE_FLAGS, CODE_GLOB, CODE_PACKAGE, FLAGS, GLOB, GLOB_NAME, GLOB_PACKAGE, HAS_GP, HASH,
    LAST_BUCKET, LENGTH, Layout, NAME_COUNT, NAMED, SV_TYPE, TEXT, VALUE,
};
use crate::lines::MAX_NAME;
use crate::script::memory::{Memory, readable};

/// Returns the name of a subroutine, as `caller` tells it: `Package::name`.
pub(crate) fn of_sub(memory: &mut Memory<'_, '_>, layout: Layout, code: u64) -> Option<String> {
    let body = body(memory, code, CODE)?;
    let named = memory.half(body.wrapping_add(CODE_FLAGS))? & NAMED != 0;
    let by = memory.pointer(body.wrapping_add(CODE_GLOB))?;
    if named {
        let package = memory.pointer(body.wrapping_add(CODE_PACKAGE))?;
        return Some(format!("{}::{}", of_package(memory, layout, package)?, text(memory, by)?));
    }
    of_glob(memory, layout, by)
}

fn of_glob(memory: &mut Memory<'_, '_>, layout: Layout, glob: u64) -> Option<String> {
    let flags = memory.half(glob.wrapping_add(FLAGS))?;
    let aliased = if flags & HAS_GP == 0 { None } else { memory.pointer(glob.wrapping_add(VALUE)) };
    let original = aliased.and_then(|gp| memory.pointer(gp.wrapping_add(ALIASED))).unwrap_or(glob);
    let body = body(memory, original, GLOB)?;
    let name = memory.pointer(body.wrapping_add(GLOB_NAME))?;
    let package = memory.pointer(body.wrapping_add(GLOB_PACKAGE))?;
    Some(format!("{}::{}", of_package(memory, layout, package)?, text(memory, name)?))
}

/// Returns the name of a package from its hash of symbols.
fn of_package(memory: &mut Memory<'_, '_>, layout: Layout, package: u64) -> Option<String> {
    let body = body(memory, package, HASH)?;
    let aux = if layout.has_aux_in_body {
        body.wrapping_add(AUX)
    } else {
        let last = memory.word(body.wrapping_add(LAST_BUCKET))?;
        memory.pointer(package.wrapping_add(VALUE))?.wrapping_add(last.wrapping_add(1).wrapping_mul(8))
    };
    let name = memory.pointer(aux)?;
    // If there are several names, the first is the package's own; if that was undefined, the count
    // is negative and the second name is taken.
    let name = match memory.half(aux.wrapping_add(NAME_COUNT))? as i32 {
        0 => name,
        1.. => memory.pointer(name)?,
        _ => memory.pointer(name.wrapping_add(8))?,
    };
    text(memory, name)
}

/// Returns the body of a value of type `kind`; `None` if the value has another type.
fn body(memory: &mut Memory<'_, '_>, value: u64, kind: u32) -> Option<u64> {
    (memory.half(value.wrapping_add(FLAGS))? & SV_TYPE == kind).then_some(())?;
    memory.pointer(value.wrapping_add(BODY))
}

/// Returns the text of a hash's key. A key that Perl marks as former UTF-8 and that is not UTF-8
/// now is Latin-1.
fn text(memory: &mut Memory<'_, '_>, key: u64) -> Option<String> {
    /// Flag `HVhek_WASUTF8`, in the byte that follows the text's final zero.
    const WAS_UTF8: u8 = 2;
    let length = u64::from(memory.half(key.wrapping_add(LENGTH))?);
    let start = key.wrapping_add(TEXT);
    let bytes = memory.bytes(start, length, MAX_NAME as u64)?;
    let is_latin = memory.byte(start.wrapping_add(length).wrapping_add(1))? & WAS_UTF8 != 0;
    if is_latin && std::str::from_utf8(&bytes).is_err() {
        return Some(bytes.into_iter().map(char::from).collect());
    }
    Some(readable(&bytes))
}
