//! Offsets of Perl's fields, by version: intrpvar.h, cop.h, cv.h, gv.h and hv.h of builds with threads on x86-64.
//!
//! The offsets of 5.36 are what `offsetof` gives for its headers; those of other versions are taken from the
//! OpenTelemetry profiler.

/// Offsets that differ between versions, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset in `PerlInterpreter` of the current statement (`Icurcop`).
    pub(crate) current_op: u64,
    /// Offset in `PerlInterpreter` of the current stack of contexts.
    pub(crate) stack: u64,
    /// Offset of `PERL_SI.si_type`.
    pub(crate) stack_type: u64,
    /// Size of `PERL_CONTEXT`, bytes.
    pub(crate) context_size: u64,
    /// Offset of a context's subroutine in `PERL_CONTEXT`.
    pub(crate) sub: u64,
    /// True if fields that only some hashes have lie in the hash's body, false if they lie behind its buckets.
    pub(crate) has_aux_in_body: bool,
}

/// Offset in `PERL_SI` of its contexts.
pub(crate) const CONTEXTS: u64 = 8;
/// Offset in `PERL_SI` of the stack around it.
pub(crate) const AROUND: u64 = 16;
/// Offset in `PERL_SI` of the index of the last context.
pub(crate) const LAST: u64 = 32;
/// Type of the outermost stack (`PERLSI_MAIN`).
pub(crate) const MAIN_STACK: u32 = 1;
/// Offset of `PERL_CONTEXT.blk_oldcop`, the caller's statement.
pub(crate) const CALLER: u64 = 16;
/// Offset of `PERL_CONTEXT.blk_sub.retop`, which is the same for an eval.
pub(crate) const RETURN: u64 = 48;
/// Offset of `PerlInterpreter.Iop`.
pub(crate) const OPERATION: u64 = 8;
/// Bits of a context's first byte that hold its type; flags are above them.
pub(crate) const TYPE: u8 = 0xf;
pub(crate) const SUB: u8 = 9;
pub(crate) const FORMAT: u8 = 10;
pub(crate) const EVAL: u8 = 11;
/// Flag of a subroutine that is entered anew for code in a pattern.
pub(crate) const FAKE: u8 = 0x80;
/// Flag of an `eval { … }`.
pub(crate) const BLOCK: u8 = 0x40;
/// Offset of a statement's line (`COP`).
pub(crate) const LINE: u64 = 36;
/// Offset of a statement's file (`COP`).
pub(crate) const FILE: u64 = 48;
/// Offset in `SV` of its body.
pub(crate) const BODY: u64 = 0;
/// Offset in `SV` of its flags.
pub(crate) const FLAGS: u64 = 12;
/// Offset in `SV` of the pointer that is its value.
pub(crate) const VALUE: u64 = 16;
/// Bits of an `SV`'s flags that hold its type.
pub(crate) const SV_TYPE: u32 = 0xff;
pub(crate) const GLOB: u32 = 9;
pub(crate) const HASH: u32 = 12;
pub(crate) const CODE: u32 = 13;
/// Flag of a glob (`SVpgv_GP`): its value is a `GP`.
pub(crate) const HAS_GP: u32 = 0x8000;
/// Offset in `XPVCV` of the subroutine's package.
pub(crate) const CODE_PACKAGE: u64 = 32;
/// Offset in `XPVCV` of the subroutine's glob or name.
pub(crate) const CODE_GLOB: u64 = 56;
/// Offset in `XPVCV` of its flags.
pub(crate) const CODE_FLAGS: u64 = 92;
/// Flag in `XPVCV` (`CVf_NAMED`): the subroutine has a name, not a glob.
pub(crate) const NAMED: u32 = 0x8000;
/// Offset in `XPVGV` of the glob's name.
pub(crate) const GLOB_NAME: u64 = 32;
/// Offset in `XPVGV` of the glob's package.
pub(crate) const GLOB_PACKAGE: u64 = 40;
/// Offset of `GP.gp_egv`, the glob of which this is an alias.
pub(crate) const ALIASED: u64 = 56;
/// Offset in `XPVHV` of the index of the last bucket.
pub(crate) const LAST_BUCKET: u64 = 24;
/// Offset in `XPVHV` of the fields that only some hashes have.
pub(crate) const AUX: u64 = 32;
/// Offset in `struct xpvhv_aux` of the number of names; the name is at its start.
pub(crate) const NAME_COUNT: u64 = 28;
/// Offset in `HEK` of the length.
pub(crate) const LENGTH: u64 = 4;
/// Offset in `HEK` of the text.
pub(crate) const TEXT: u64 = 8;

/// Minor versions of Perl 5 whose layout is known, as 36 for 5.36.
pub(crate) const KNOWN: std::ops::RangeInclusive<u8> = 28..=42;

impl Layout {
    /// Returns the layout of 5.`version`; `None` if it is not known.
    pub(crate) fn of(version: u8) -> Option<Self> {
        if !KNOWN.contains(&version) {
            return None;
        }
        let (current_op, stack) = if version >= 34 { (208, 224) } else { (224, 240) };
        let (stack_type, context_size, sub) = if version >= 32 { (44, 104, 72) } else { (40, 96, 64) };
        Some(Self { current_op, stack, stack_type, context_size, sub, has_aux_in_body: version >= 36 })
    }
}
