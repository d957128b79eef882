//! Where Perl keeps what, by version: intrpvar.h, cop.h, cv.h, gv.h and hv.h of builds with threads on x86-64.
//!
//! The offsets of 5.36 are what `offsetof` gives for its headers; those of other versions are as the OpenTelemetry
//! profiler has it.

/// Offsets of fields, in bytes, where versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// `PerlInterpreter`.
    pub(crate) current_op: u64,
    pub(crate) stack: u64,
    /// `PERL_SI.si_type`.
    pub(crate) stack_type: u64,
    /// Size of `PERL_CONTEXT`, and its subroutine.
    pub(crate) context_size: u64,
    pub(crate) sub: u64,
    /// True if fields that only some hashes have lie in the hash's body and not behind its buckets.
    pub(crate) has_aux_in_body: bool,
}

/// `PERL_SI`: its contexts, the stack around it, the index of the last context.
pub(crate) const CONTEXTS: u64 = 8;
pub(crate) const AROUND: u64 = 16;
pub(crate) const LAST: u64 = 32;
/// `PERLSI_MAIN`: the outermost stack.
pub(crate) const MAIN_STACK: u32 = 1;
/// `PERL_CONTEXT.blk_oldcop`, behind the type in the first byte.
pub(crate) const CALLER: u64 = 16;
/// `PERL_CONTEXT.blk_sub.retop`, the same of an eval's.
pub(crate) const RETURN: u64 = 48;
/// `PerlInterpreter.Iop`.
pub(crate) const OPERATION: u64 = 8;
/// Types of contexts, and flags above them.
pub(crate) const TYPE: u8 = 0xf;
pub(crate) const SUB: u8 = 9;
pub(crate) const FORMAT: u8 = 10;
pub(crate) const EVAL: u8 = 11;
/// Flag of a sub that is entered anew for code in a pattern, and of an `eval { … }`.
pub(crate) const FAKE: u8 = 0x80;
pub(crate) const BLOCK: u8 = 0x40;
/// `COP`.
pub(crate) const LINE: u64 = 36;
pub(crate) const FILE: u64 = 48;
/// `SV`: its body, its flags, what it points to.
pub(crate) const BODY: u64 = 0;
pub(crate) const FLAGS: u64 = 12;
pub(crate) const VALUE: u64 = 16;
/// Types in the flags.
pub(crate) const SV_TYPE: u32 = 0xff;
pub(crate) const GLOB: u32 = 9;
pub(crate) const HASH: u32 = 12;
pub(crate) const CODE: u32 = 13;
/// `SVpgv_GP`.
pub(crate) const HAS_GP: u32 = 0x8000;
/// `XPVCV`: its package, its glob or name, its flags; `CVf_NAMED`.
pub(crate) const CODE_PACKAGE: u64 = 32;
pub(crate) const CODE_GLOB: u64 = 56;
pub(crate) const CODE_FLAGS: u64 = 92;
pub(crate) const NAMED: u32 = 0x8000;
/// `XPVGV`: its name, its package. `GP.gp_egv`: the glob it is an alias of.
pub(crate) const GLOB_NAME: u64 = 32;
pub(crate) const GLOB_PACKAGE: u64 = 40;
pub(crate) const ALIASED: u64 = 56;
/// `XPVHV`: the last bucket, and what only some hashes have.
pub(crate) const LAST_BUCKET: u64 = 24;
pub(crate) const AUX: u64 = 32;
/// `struct xpvhv_aux`: the name, and how many there are.
pub(crate) const NAME_COUNT: u64 = 28;
/// `HEK`: length and text.
pub(crate) const LENGTH: u64 = 4;
pub(crate) const TEXT: u64 = 8;

/// The first and the last version that is known, as 36 for 5.36.
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
