//! The few instructions that matter for calls, jumps, addresses and the stack (Arm Architecture Reference Manual, C4.1).

/// Number of the stack pointer, or of the register that reads as zero.
pub(crate) const SP: u8 = 31;

/// An instruction at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    at: u64,
    word: u32,
}

/// The way on from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next one.
    Next,
    /// To a function at an address, and then to the next one.
    Call(u64),
    /// To a function whose address is in a register.
    IndirectCall(u8),
    /// To an address.
    Jump(u64),
    /// To the address in a register.
    IndirectJump(u8),
    /// To an address or to the next one.
    Branch(u64),
    /// To the caller.
    Return,
    /// Nowhere: it traps.
    Trap,
}

/// The effect of an instruction on registers, as far as addresses and the stack are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A register gets an address that follows from the instruction's own: `adrp`, `adr`.
    Address { to: u8, value: u64 },
    /// A register gets another one's value plus a constant: `add`, `sub`, and `mov` to or from sp.
    Add { to: u8, from: u8, by: i64 },
    /// Registers are loaded from memory at a base register plus an offset, which is added to the base register before
    /// or after that if `moves` says so. `size` bytes each.
    Load { to: [Option<u8>; 2], base: u8, offset: i64, moves: i64, size: u8 },
    /// Registers are stored; `moves` is added to the base register.
    Store { base: u8, moves: i64 },
    /// Anything else. The register that it writes, if it may be one of the first 31.
    Other { to: Option<u8> },
}

fn signed(word: u32, low: u32, bits: u32) -> i64 {
    i64::from(((word >> low) << (32 - bits)).cast_signed() >> (32 - bits))
}

fn field(word: u32, low: u32, bits: u32) -> u32 {
    word >> low & ((1 << bits) - 1)
}

impl Instruction {
    pub(crate) fn new(at: u64, word: u32) -> Self {
        Self { at, word }
    }

    /// Returns the instruction's address.
    pub(crate) fn ip(&self) -> u64 {
        self.at
    }

    /// Returns true if the instruction is a landing pad, at which functions begin: `bti`, `paciasp` or `pacibsp`.
    pub(crate) fn is_landing_pad(&self) -> bool {
        matches!(self.word, 0xd503_241f | 0xd503_245f | 0xd503_249f | 0xd503_24df | 0xd503_233f | 0xd503_237f)
    }

    /// Returns true if the instruction's register 31 is the stack pointer: an extended addition, or a mask.
    pub(crate) fn writes_sp(&self) -> bool {
        self.word & 0x1fe0_0000 == 0x0b20_0000 || self.word & 0x7f80_0000 == 0x1200_0000
    }

    /// Returns the way on from the instruction.
    pub(crate) fn flow(&self) -> Flow {
        let to = |low, bits| self.at.wrapping_add_signed(4 * signed(self.word, low, bits));
        let register = field(self.word, 5, 5) as u8;
        match self.word {
            word if word >> 26 == 0b00_0101 => Flow::Jump(to(0, 26)),
            word if word >> 26 == 0b10_0101 => Flow::Call(to(0, 26)),
            // b.cond and bc.cond; cbz and cbnz; tbz and tbnz.
            word if word >> 24 == 0x54 || word & 0x7e00_0000 == 0x3400_0000 => Flow::Branch(to(5, 19)),
            word if word & 0x7e00_0000 == 0x3600_0000 => Flow::Branch(to(5, 14)),
            // ret, retaa, retab; br and blr, with their forms that check a signature.
            0xd65f_0bff | 0xd65f_0fff => Flow::Return,
            word if word & 0xffff_fc1f == 0xd65f_0000 => Flow::Return,
            word if word & 0xffff_fc1f == 0xd61f_0000 || word & 0xfeff_f800 == 0xd61f_0800 => {
                Flow::IndirectJump(register)
            }
            word if word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800 => {
                Flow::IndirectCall(register)
            }
            // brk, hlt, udf.
            word if word >> 21 == 0x6a1 || word >> 21 == 0x6a2 || word >> 16 == 0 => Flow::Trap,
            _ => Flow::Next,
        }
    }

    /// Returns the instruction's effect on registers.
    pub(crate) fn effect(&self) -> Effect {
        let word = self.word;
        let (rd, rn, rt2) = (field(word, 0, 5) as u8, field(word, 5, 5) as u8, field(word, 10, 5) as u8);
        let imm12 = i64::from(field(word, 10, 12));
        match word {
            // adr, adrp.
            word if word & 0x1f00_0000 == 0x1000_0000 => {
                let by = signed(word, 5, 19) << 2 | i64::from(field(word, 29, 2));
                let value = if word >> 31 == 1 {
                    (self.at & !0xfff).wrapping_add_signed(by << 12)
                } else {
                    self.at.wrapping_add_signed(by)
                };
                Effect::Address { to: rd, value }
            }
            // add and sub of 64 bits with a constant, without flags.
            word if word & 0xbf80_0000 == 0x9100_0000 => {
                let by = if word & 0x40_0000 != 0 { imm12 << 12 } else { imm12 };
                Effect::Add { to: rd, from: rn, by: if word & 0x4000_0000 != 0 { -by } else { by } }
            }
            // mov between general registers: orr with xzr.
            word if word & 0xffe0_ffe0 == 0xaa00_03e0 => Effect::Add { to: rd, from: field(word, 16, 5) as u8, by: 0 },
            // Pairs of 64-bit general registers: offset, post-indexed, pre-indexed.
            word if word & 0xfe00_0000 == 0xa800_0000 => {
                let by = 8 * signed(word, 15, 7);
                let (offset, moves) = match field(word, 23, 2) {
                    1 => (0, by),
                    3 => (by, by),
                    _ => (by, 0),
                };
                self.memory(word & 0x40_0000 != 0, [Some(rd), Some(rt2)], rn, offset, moves, 8)
            }
            // Pairs of other registers (vectors too): only the base register's move matters.
            word if word & 0x3a00_0000 == 0x2800_0000 => {
                let scale = if word & 0x400_0000 != 0 { 4 << field(word, 30, 2) } else { 4 << field(word, 31, 1) };
                let moves = if matches!(field(word, 23, 2), 1 | 3) { scale * signed(word, 15, 7) } else { 0 };
                let load = word & 0x40_0000 != 0 && word & 0x400_0000 == 0;
                self.memory(load, [Some(rd), Some(rt2)], rn, 0, moves, 4)
            }
            // One register with an unsigned scaled offset.
            word if word & 0x3b00_0000 == 0x3900_0000 => {
                let size = field(word, 30, 2);
                let load = word & 0xc0_0000 != 0 && word & 0x400_0000 == 0;
                self.memory(load, [Some(rd), None], rn, imm12 << size, 0, 1 << size)
            }
            // One register with a small signed offset, which may move the base register.
            word if word & 0x3b20_0000 == 0x3800_0000 => {
                let by = signed(word, 12, 9);
                let (offset, moves) = match field(word, 10, 2) {
                    1 => (0, by),
                    3 => (by, by),
                    _ => (by, 0),
                };
                let load = word & 0xc0_0000 != 0 && word & 0x400_0000 == 0;
                self.memory(load, [Some(rd), None], rn, offset, moves, 1 << field(word, 30, 2))
            }
            // Branches, hints and system instructions write no register of interest.
            word if word & 0x1c00_0000 == 0x1400_0000 => Effect::Other { to: None },
            // Vectors.
            word if word & 0x0e00_0000 == 0x0e00_0000 => Effect::Other { to: None },
            _ => Effect::Other { to: Some(rd) },
        }
    }

    fn memory(&self, load: bool, to: [Option<u8>; 2], base: u8, offset: i64, moves: i64, size: u8) -> Effect {
        if load { Effect::Load { to, base, offset, moves, size } } else { Effect::Store { base, moves } }
    }
}

/// Returns the instructions in `code`, which lies at `start`.
pub(crate) fn instructions(code: &[u8], start: u64) -> impl Iterator<Item = Instruction> {
    let (words, _) = code.as_chunks::<4>();
    (0..).zip(words).map(move |(n, word)| Instruction::new(start.wrapping_add(4 * n), u32::from_le_bytes(*word)))
}

/// The addresses that registers hold, as far as straight code determines them.
#[derive(Default)]
pub(crate) struct Addresses([Option<u64>; 32]);

impl Addresses {
    /// Takes in an instruction. Returns the address from which it loads into a register, if that is known, with the
    /// register and the number of bytes.
    pub(crate) fn take(&mut self, i: &Instruction) -> Option<(u64, u8, u8)> {
        let get = |all: &[Option<u64>; 32], n: u8| all.get(usize::from(n)).copied().flatten().filter(|_| n != SP);
        match i.effect() {
            Effect::Address { to, value } => self.set(to, Some(value)),
            Effect::Add { to, from, by } => {
                let value = get(&self.0, from).map(|from| from.wrapping_add_signed(by));
                self.set(to, value);
            }
            Effect::Load { to: [one, two], base, offset, size, .. } => {
                let from = get(&self.0, base).map(|base| base.wrapping_add_signed(offset));
                one.into_iter().chain(two).for_each(|to| self.set(to, None));
                return one.filter(|_| two.is_none()).zip(from).map(|(to, from)| (from, to, size));
            }
            Effect::Other { to: Some(to) } => self.set(to, None),
            Effect::Store { .. } | Effect::Other { to: None } => {}
        }
        None
    }

    /// Returns the address in a register.
    pub(crate) fn get(&self, register: u8) -> Option<u64> {
        self.0.get(usize::from(register)).copied().flatten()
    }

    /// Sets the address in a register.
    pub(crate) fn set(&mut self, register: u8, value: Option<u64>) {
        if let Some(place) = self.0.get_mut(usize::from(register)).filter(|_| register != SP) {
            *place = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(word: u32) -> Instruction {
        Instruction::new(0x1000, word)
    }

    #[test]
    fn ways_on_are_told() {
        let all = [
            (0x9400_0002, Flow::Call(0x1008)),
            (0x17ff_ffff, Flow::Jump(0xffc)),
            (0x5400_0041, Flow::Branch(0x1008)),
            (0xb400_0040, Flow::Branch(0x1008)),
            (0x3600_0040, Flow::Branch(0x1008)),
            (0xd65f_03c0, Flow::Return),
            (0xd65f_0bff, Flow::Return),
            (0xd61f_0220, Flow::IndirectJump(17)),
            (0xd63f_0060, Flow::IndirectCall(3)),
            (0xd420_0000, Flow::Trap),
            (0xd503_201f, Flow::Next),
            (0xd400_0001, Flow::Next),
        ];
        for (word, flow) in all {
            assert_eq!(at(word).flow(), flow, "{word:#x}");
        }
        assert!(
            at(0xd503_245f).is_landing_pad() && at(0xd503_233f).is_landing_pad() && !at(0xd503_201f).is_landing_pad()
        );
    }

    #[test]
    fn effects_are_told() {
        let all = [
            (0xb000_0010, Effect::Address { to: 16, value: 0x2000 }),
            (0x9101_0210, Effect::Add { to: 16, from: 16, by: 0x40 }),
            (0xd100_83ff, Effect::Add { to: 31, from: 31, by: -32 }),
            (0x9100_03fd, Effect::Add { to: 29, from: 31, by: 0 }),
            (0xaa00_03e5, Effect::Add { to: 5, from: 0, by: 0 }),
            (0xf940_0611, Effect::Load { to: [Some(17), None], base: 16, offset: 8, moves: 0, size: 8 }),
            (0xb940_0420, Effect::Load { to: [Some(0), None], base: 1, offset: 4, moves: 0, size: 4 }),
            // ldp x29, x30, [sp], #32 and stp x29, x30, [sp, #-32]!
            (0xa8c2_7bfd, Effect::Load { to: [Some(29), Some(30)], base: 31, offset: 0, moves: 32, size: 8 }),
            (0xa9be_7bfd, Effect::Store { base: 31, moves: -32 }),
            // ldr x30, [sp], #16 and str x30, [sp, #-16]!
            (0xf841_07fe, Effect::Load { to: [Some(30), None], base: 31, offset: 0, moves: 16, size: 8 }),
            (0xf81f_0ffe, Effect::Store { base: 31, moves: -16 }),
            // stp d8, d9, [sp, #-16]!
            (0x6dbf_27e8, Effect::Store { base: 31, moves: -16 }),
            (0xd280_1168, Effect::Other { to: Some(8) }),
        ];
        for (word, effect) in all {
            assert_eq!(at(word).effect(), effect, "{word:#x}");
        }
    }
}
