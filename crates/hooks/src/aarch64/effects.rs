//! Decodes what an instruction reads and writes, and where it leads, as far as that shows that registers are free at a place.
//!
//! Invariant: registers that an instruction reads are all among `reads`; those among `writes` it surely writes. What is not
//! decoded reads everything.

/// Bit of the condition flags in a set of registers; bit N is xN.
pub(super) const FLAGS: u32 = 1 << 31;

/// The place where execution goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// A branch by so many bytes; the next instruction as well if it has a condition.
    Branch {
        by: i64,
        conditional: bool,
    },
    Call,
    Return,
    /// An address in a register.
    Unknown,
    /// Nowhere: a trap.
    Nowhere,
}

/// Effects of an instruction on the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effects {
    pub(super) reads: u32,
    pub(super) writes: u32,
    pub(super) flow: Flow,
}

/// Returns the set of one register; 31 is sp or zero.
fn bit(register: u32) -> u32 {
    if register == 31 { 0 } else { 1 << register }
}

/// Returns the register in the field that begins at this bit.
fn field(word: u32, low: u32) -> u32 {
    bit(word >> low & 31)
}

/// Returns the signed number in `bits` bits of a word, from bit `low` on, times four.
fn distance(word: u32, low: u32, bits: u32) -> i64 {
    let left = 32 - low - bits;
    i64::from((word << left) as i32 >> (32 - bits)) * 4
}

/// Returns the distance to a direct branch's target.
pub(super) fn branch(word: u32) -> Option<i64> {
    match word {
        w if w & 0x7c00_0000 == 0x1400_0000 => Some(distance(w, 0, 26)),
        w if w & 0xff00_0000 == 0x5400_0000 || w & 0x7e00_0000 == 0x3400_0000 => Some(distance(w, 5, 19)),
        w if w & 0x7e00_0000 == 0x3600_0000 => Some(distance(w, 5, 14)),
        _ => None,
    }
}

/// Returns the effects of an instruction.
pub(super) fn effects(w: u32) -> Effects {
    let (reads, writes) = match w >> 25 & 15 {
        8 | 9 => immediate(w),
        10 | 11 => return leads(w),
        5 | 13 => register(w),
        7 | 15 => vector(w),
        4 | 6 | 12 | 14 => memory(w),
        _ => (u32::MAX, 0),
    };
    Effects { reads, writes, flow: Flow::Next }
}

/// Data processing with an immediate.
fn immediate(w: u32) -> (u32, u32) {
    let (d, n, m) = (field(w, 0), field(w, 5), field(w, 16));
    let kind = w >> 29 & 3;
    match w >> 23 & 7 {
        0 | 1 => (0, d),
        2 => (n, d | if w >> 29 & 1 == 1 { FLAGS } else { 0 }),
        4 => (n, d | if kind == 3 { FLAGS } else { 0 }),
        // movk and bfm keep a part of what was there.
        5 => (if kind == 3 { d } else { 0 }, d),
        6 => (n | if kind == 1 { d } else { 0 }, d),
        7 => (n | m, d),
        _ => (u32::MAX, 0),
    }
}

/// Data processing with registers.
fn register(w: u32) -> (u32, u32) {
    let (d, n, m) = (field(w, 0), field(w, 5), field(w, 16));
    let sets = if w >> 29 & 1 == 1 { FLAGS } else { 0 };
    match (w >> 28 & 1, w >> 21 & 15) {
        (0, op) if op & 8 == 0 => (n | m, d | if w >> 29 & 3 == 3 { FLAGS } else { 0 }),
        (0, _) => (n | m, d | sets),
        (_, 0) => (n | m | FLAGS, d | sets),
        (_, 2) => (n | m | FLAGS, FLAGS),
        (_, 4) => (n | m | FLAGS, d),
        // With one source it may be a pointer's authentication, which changes what is there.
        (_, 6) => (n | m | d, d),
        (_, op) if op & 8 != 0 => (n | m | field(w, 10), d),
        _ => (u32::MAX, 0),
    }
}

/// Vectors and floating point: some read general registers or flags.
fn vector(w: u32) -> (u32, u32) {
    (field(w, 5) | field(w, 16) | FLAGS, 0)
}

/// Loads and stores.
fn memory(w: u32) -> (u32, u32) {
    let (t, n, t2, m) = (field(w, 0), field(w, 5), field(w, 10), field(w, 16));
    let general = w >> 26 & 1 == 0;
    match w >> 28 & 3 {
        1 if w >> 24 & 1 == 0 && general => (0, if w >> 30 == 3 { 0 } else { t }),
        1 if w >> 24 & 1 == 0 => (0, 0),
        2 if !general => (n, 0),
        2 if w >> 22 & 1 == 1 => (n, t | t2),
        2 => (n | t | t2, 0),
        3 => {
            let indexed = w >> 24 & 1 == 0 && w >> 21 & 1 == 1;
            if indexed && w >> 10 & 3 != 2 {
                // An atomic operation, or a load by an authenticated pointer.
                return (n | t | m, 0);
            }
            let address = n | if indexed { m } else { 0 };
            let (size, kind) = (w >> 30, w >> 22 & 3);
            match (general, kind) {
                (false, _) => (address, 0),
                (true, 0) => (address | t, 0),
                // A prefetch.
                (true, 2) if size == 3 => (address, 0),
                (true, _) => (address, t),
            }
        }
        // Exclusive and ordered ones, and vectors' structs.
        _ => (n | t | t2 | m, 0),
    }
}

/// Branches, calls, and what concerns the system.
fn leads(w: u32) -> Effects {
    let of = |reads, writes, flow| Effects { reads, writes, flow };
    if let Some(by) = branch(w) {
        return match w >> 26 & 31 {
            5 if w >> 31 == 1 => of(0, 0, Flow::Call),
            5 => of(0, 0, Flow::Branch { by, conditional: false }),
            _ if w >> 24 == 0x54 => of(FLAGS, 0, Flow::Branch { by, conditional: true }),
            _ => of(field(w, 0), 0, Flow::Branch { by, conditional: true }),
        };
    }
    match w >> 24 {
        // svc: the kernel reads x0 to x5 and x8, and changes x0.
        0xd4 if w & 0x1f == 1 => of(0x13f, 0, Flow::Next),
        0xd4 => of(0, 0, Flow::Nowhere),
        0xd5 if w >> 12 == 0xd_5032 => {
            // Hints: authentication of pointers uses x16 and x17.
            let uses = matches!(w >> 5 & 0x7f, 8 | 10 | 12 | 14);
            of(if uses { 3 << 16 } else { 0 }, 0, Flow::Next)
        }
        // System registers; the flags are one.
        0xd5 if w >> 21 & 1 == 1 => of(FLAGS, field(w, 0), Flow::Next),
        0xd5 => of(field(w, 0), 0, Flow::Next),
        0xd6 | 0xd7 => match w >> 21 & 3 {
            1 => of(field(w, 5), 0, Flow::Call),
            2 => of(field(w, 5), 0, Flow::Return),
            _ => of(field(w, 5), 0, Flow::Unknown),
        },
        _ => of(u32::MAX, 0, Flow::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_instructions() {
        let x = |n: u32| 1u32 << n;
        // Words as GNU as writes them.
        let known = [
            (0xd280_07e8, 0, x(8)),                     // mov x8, #63
            (0xf280_07e8, x(8), x(8)),                  // movk x8, #63
            (0x9100_4129, x(9), x(9)),                  // add x9, x9, #16
            (0xb13f_fc1f, x(0), FLAGS),                 // cmn x0, #4095
            (0xaa0a_03e9, x(10), x(9)),                 // mov x9, x10
            (0xea0b_0149, x(10) | x(11), x(9) | FLAGS), // ands x9, x10, x11
            (0x9b0b_3149, x(10) | x(11) | x(12), x(9)), // madd x9, x10, x11, x12
            (0x9a8b_0149, x(10) | x(11) | FLAGS, x(9)), // csel x9, x10, x11, eq
            (0xf940_0549, x(10), x(9)),                 // ldr x9, [x10, #8]
            (0xf900_0549, x(10) | x(9), 0),             // str x9, [x10, #8]
            (0xf86b_6949, x(10) | x(11), x(9)),         // ldr x9, [x10, x11]
            (0xa940_2949, x(10), x(9) | x(10)),         // ldp x9, x10, [x10]
            (0xa9bf_7bfd, x(29) | x(30), 0),            // stp x29, x30, [sp, #-16]!
            (0xf829_014b, x(9) | x(10) | x(11), 0),     // ldadd x9, x11, [x10]
            (0x5800_0049, 0, x(9)),                     // ldr x9, .+8
            (0xd53b_d049, FLAGS, x(9)),                 // mrs x9, tpidr_el0
            (0xd503_201f, 0, 0),                        // nop
            (0xd503_211f, x(16) | x(17), 0),            // pacia1716
            (0xf980_0140, x(10), 0),                    // prfm pldl1keep, [x10]
            (0x3dc0_0140, x(10), 0),                    // ldr q0, [x10]
        ];
        for (word, reads, writes) in known {
            assert_eq!(effects(word), Effects { reads, writes, flow: Flow::Next }, "{word:#x}");
        }
        let flows = [
            (0x1400_0004, Flow::Branch { by: 16, conditional: false }),
            (0x17ff_ffff, Flow::Branch { by: -4, conditional: false }),
            (0x5400_0040, Flow::Branch { by: 8, conditional: true }),
            (0xb4ff_ffe9, Flow::Branch { by: -4, conditional: true }),
            (0x3600_0049, Flow::Branch { by: 8, conditional: true }),
            (0x9400_0004, Flow::Call),
            (0xd63f_0120, Flow::Call),
            (0xd65f_03c0, Flow::Return),
            (0xd65f_0bff, Flow::Return),
            (0xd61f_0200, Flow::Unknown),
            (0xd400_0001, Flow::Next),
            (0xd420_0000, Flow::Nowhere),
        ];
        for (word, flow) in flows {
            assert_eq!(effects(word).flow, flow, "{word:#x}");
        }
    }
}
