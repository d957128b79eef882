//! Instructions as words, and code with labels.

/// `svc #0`.
pub(super) const SVC: u32 = 0xd400_0001;
/// `mov x8, #139`, before the `svc` of a signal's return.
pub(super) const MOV_SIGNAL_RETURN: u32 = 0xd280_1168;

/// A register of 64 bits; [`ZERO`] is sp in addresses and additions.
pub(super) type Reg = u32;
pub(super) const ZERO: Reg = 31;

/// System registers, with the bits of `mrs`.
pub(super) const TPIDR_EL0: u32 = 0xd53b_d040;
pub(super) const CNTVCT_EL0: u32 = 0xd53b_e040;
pub(super) const NZCV: u32 = 0xd53b_4200;

/// Conditions.
pub(super) const EQ: u32 = 0;
pub(super) const HS: u32 = 2;
pub(super) const LO: u32 = 3;
pub(super) const HI: u32 = 8;
pub(super) const LS: u32 = 9;

/// A place in code that jumps lead to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label(usize);

/// Code being written for an address.
pub(super) struct Code {
    pub(super) at: u64,
    pub(super) words: Vec<u32>,
    /// Indexes of labels' words.
    labels: Vec<Option<usize>>,
    /// Jumps to labels, by index: their words have no distance yet.
    jumps: Vec<(usize, Label)>,
}

impl Code {
    pub(super) fn new(at: u64) -> Self {
        Self { at, words: Vec::new(), labels: Vec::new(), jumps: Vec::new() }
    }

    /// Returns the address of the next instruction.
    pub(super) fn here(&self) -> u64 {
        self.at + 4 * self.words.len() as u64
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.words.len());
    }

    pub(super) fn word(&mut self, word: u32) {
        self.words.push(word);
    }

    /// Writes a branch (`b`, `cbz` and the like, without a distance) to a label.
    pub(super) fn to(&mut self, word: u32, label: Label) {
        self.jumps.push((self.words.len(), label));
        self.words.push(word);
    }

    /// Writes a branch to an address.
    pub(super) fn b(&mut self, to: u64) {
        let from = self.here();
        self.words.push(b(from, to));
    }

    /// Writes the distances of branches to labels, which have been placed.
    pub(super) fn finish(mut self) -> Vec<u32> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let by = self.labels[label.0].map_or(0, |to| to as i64 - at as i64);
            self.words[at] = with_distance(self.words[at], by * 4);
        }
        self.words
    }

    /// Loads a constant.
    pub(super) fn constant(&mut self, d: Reg, value: u64) {
        self.word(0xd280_0000 | (value as u32 & 0xffff) << 5 | d);
        for part in 1..4 {
            let bits = (value >> (16 * part)) as u32 & 0xffff;
            self.word(0xf280_0000 | part << 21 | bits << 5 | d);
        }
    }
}

/// Returns a direct branch with another distance.
pub(super) fn with_distance(word: u32, by: i64) -> u32 {
    let field = |low: u32, bits: u32| {
        let mask = ((1u32 << bits) - 1) << low;
        word & !mask | ((by >> 2) as u32) << low & mask
    };
    match word {
        w if w & 0x7c00_0000 == 0x1400_0000 => field(0, 26),
        w if w & 0x7e00_0000 == 0x3600_0000 => field(5, 14),
        // adr: the lowest two bits of a distance between instructions are zero.
        _ => field(5, 19),
    }
}

/// Returns the jump from one address to another. They are at most [`REACH`] apart.
pub(super) fn b(from: u64, to: u64) -> u32 {
    with_distance(B, to.wrapping_sub(from) as i64)
}

/// Bytes that a jump reaches, either way.
pub(super) const REACH: u64 = 1 << 27;

pub(super) const B: u32 = 0x1400_0000;

pub(super) const fn b_if(condition: u32) -> u32 {
    0x5400_0000 | condition
}

pub(super) const fn cbz(t: Reg) -> u32 {
    0xb400_0000 | t
}

pub(super) const fn cbnz(t: Reg) -> u32 {
    0xb500_0000 | t
}

/// Branches if a bit below 32 is set.
pub(super) const fn tbnz(t: Reg, number: u32) -> u32 {
    0x3700_0000 | number << 19 | t
}

pub(super) const fn br(n: Reg) -> u32 {
    0xd61f_0000 | n << 5
}

/// Loads the address of a label.
pub(super) const fn adr(d: Reg) -> u32 {
    0x1000_0000 | d
}

pub(super) const fn brk(number: u32) -> u32 {
    0xd420_0000 | number << 5
}

pub(super) const fn mrs(t: Reg, register: u32) -> u32 {
    register | t
}

/// Sets the flags.
pub(super) const fn msr_flags(t: Reg) -> u32 {
    0xd51b_4200 | t
}

/// Loads 8 bytes from an offset, a multiple of 8 below 32,768.
pub(super) const fn ldr(t: Reg, n: Reg, offset: u64) -> u32 {
    0xf940_0000 | (offset as u32 / 8) << 10 | n << 5 | t
}

pub(super) const fn str(t: Reg, n: Reg, offset: u64) -> u32 {
    0xf900_0000 | (offset as u32 / 8) << 10 | n << 5 | t
}

/// Loads 4 bytes from an offset, a multiple of 4 below 16,384.
pub(super) const fn ldr32(t: Reg, n: Reg, offset: u64) -> u32 {
    0xb940_0000 | (offset as u32 / 4) << 10 | n << 5 | t
}

pub(super) const fn str32(t: Reg, n: Reg, offset: u64) -> u32 {
    0xb900_0000 | (offset as u32 / 4) << 10 | n << 5 | t
}

/// Stores a pair at an offset from sp, a multiple of 8 below 512.
pub(super) const fn stp(t: Reg, t2: Reg, offset: u32) -> u32 {
    0xa900_0000 | (offset / 8) << 15 | t2 << 10 | ZERO << 5 | t
}

pub(super) const fn ldp(t: Reg, t2: Reg, offset: u32) -> u32 {
    0xa940_0000 | (offset / 8) << 15 | t2 << 10 | ZERO << 5 | t
}

/// Adds a number below 4,096; 31 is sp.
pub(super) const fn add(d: Reg, n: Reg, number: u32) -> u32 {
    0x9100_0000 | number << 10 | n << 5 | d
}

pub(super) const fn sub(d: Reg, n: Reg, number: u32) -> u32 {
    0xd100_0000 | number << 10 | n << 5 | d
}

/// Adds `m`, shifted to the left.
pub(super) const fn add_shifted(d: Reg, n: Reg, m: Reg, by: u32) -> u32 {
    0x8b00_0000 | m << 16 | by << 10 | n << 5 | d
}

pub(super) const fn sub_register(d: Reg, n: Reg, m: Reg) -> u32 {
    0xcb00_0000 | m << 16 | n << 5 | d
}

pub(super) const fn cmp(n: Reg, m: Reg) -> u32 {
    0xeb00_001f | m << 16 | n << 5
}

pub(super) const fn cmp_number(n: Reg, number: u32) -> u32 {
    0xf100_001f | number << 10 | n << 5
}

/// Compares with a negative number, above -4,096.
pub(super) const fn cmn_number(n: Reg, number: u32) -> u32 {
    0xb100_001f | number << 10 | n << 5
}

pub(super) const fn mov(d: Reg, m: Reg) -> u32 {
    0xaa00_03e0 | m << 16 | d
}

pub(super) const fn mvn(d: Reg, m: Reg) -> u32 {
    0xaa20_03e0 | m << 16 | d
}

pub(super) const fn and(d: Reg, n: Reg, m: Reg) -> u32 {
    0x8a00_0000 | m << 16 | n << 5 | d
}

pub(super) const fn eor(d: Reg, n: Reg, m: Reg) -> u32 {
    0xca00_0000 | m << 16 | n << 5 | d
}

pub(super) const fn mul(d: Reg, n: Reg, m: Reg) -> u32 {
    0x9b00_7c00 | m << 16 | n << 5 | d
}

pub(super) const fn clz(d: Reg, n: Reg) -> u32 {
    0xdac0_1000 | n << 5 | d
}

/// Shifts to the right, without the sign.
pub(super) const fn lsr(d: Reg, n: Reg, by: u32) -> u32 {
    0xd340_fc00 | by << 16 | n << 5 | d
}

/// Sets bit 0.
pub(super) const fn orr_one(d: Reg, n: Reg) -> u32 {
    0xb240_0000 | n << 5 | d
}

/// Keeps the lowest 48 bits: a return address without its authentication code.
pub(super) const fn and_address(d: Reg, n: Reg) -> u32 {
    0x9240_bc00 | n << 5 | d
}

/// Keeps bit 2.
pub(super) const fn and_four(d: Reg, n: Reg) -> u32 {
    0x927e_0000 | n << 5 | d
}

/// Selects `n` under the condition, or else `m`.
pub(super) const fn csel(d: Reg, n: Reg, m: Reg, condition: u32) -> u32 {
    0x9a80_0000 | m << 16 | condition << 12 | n << 5 | d
}

pub(super) const fn movz(d: Reg, number: u32) -> u32 {
    0xd280_0000 | number << 5 | d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_those_that_gnu_as_writes() {
        let known = [
            (b(0x1000, 0x1010), 0x1400_0004),
            (b(0x1000, 0xffc), 0x17ff_ffff),
            (with_distance(b_if(HS), 16), 0x5400_0082),
            (with_distance(b_if(LS), -8), 0x54ff_ffc9),
            (with_distance(cbz(16), 12), 0xb400_0070),
            (with_distance(cbnz(11), -4), 0xb5ff_ffeb),
            (with_distance(tbnz(11, 30), 8), 0x37f0_004b),
            (with_distance(adr(17), 8), 0x1000_0051),
            (br(17), 0xd61f_0220),
            (brk(0x5c5), 0xd420_b8a0),
            (mrs(16, TPIDR_EL0), 0xd53b_d050),
            (mrs(11, CNTVCT_EL0), 0xd53b_e04b),
            (mrs(16, NZCV), 0xd53b_4210),
            (msr_flags(16), 0xd51b_4210),
            (ldr(16, 16, 8), 0xf940_0610),
            (str(ZERO, 16, 0), 0xf900_021f),
            (ldr32(11, 11, 0), 0xb940_016b),
            (str32(12, 11, 640), 0xb902_816c),
            (stp(16, 17, 16), 0xa901_47f0),
            (ldp(9, 10, 32), 0xa942_2be9),
            (add(10, ZERO, 0), 0x9100_03ea),
            (add(ZERO, ZERO, 80), 0x9101_43ff),
            (sub(ZERO, ZERO, 80), 0xd101_43ff),
            (add_shifted(9, 17, 8, 48), 0x8b08_c229),
            (sub_register(11, ZERO, 0), 0xcb00_03eb),
            (cmp(29, 10), 0xeb0a_03bf),
            (cmp_number(11, 4), 0xf100_117f),
            (cmn_number(0, 4095), 0xb13f_fc1f),
            (mov(10, 29), 0xaa1d_03ea),
            (mvn(12, 11), 0xaa2b_03ec),
            (and(12, 12, 0), 0x8a00_018c),
            (eor(9, 9, 11), 0xca0b_0129),
            (mul(9, 9, 12), 0x9b0c_7d29),
            (clz(11, 11), 0xdac0_116b),
            (lsr(10, 9, 56), 0xd378_fd2a),
            (orr_one(11, 11), 0xb240_016b),
            (and_address(11, 30), 0x9240_bfcb),
            (and_four(11, 2), 0x927e_004b),
            (csel(11, ZERO, 11, HI), 0x9a8b_83eb),
            (movz(13, 8), 0xd280_010d),
        ];
        for (nth, (ours, theirs)) in known.into_iter().enumerate() {
            assert_eq!(ours, theirs, "{nth}: {ours:#x}");
        }
    }

    #[test]
    fn constants_and_labels() {
        let mut code = Code::new(0x1000);
        let end = code.label();
        code.constant(30, 0x1234_5678_9abc_def0);
        code.to(cbz(1), end);
        code.b(0x1000);
        code.place(end);
        assert_eq!(code.here(), 0x1018);
        let words = [0xd29b_de1e, 0xf2b3_579e, 0xf2ca_cf1e, 0xf2e2_469e, 0xb400_0041, 0x17ff_fffb];
        assert_eq!(code.finish(), words);
    }
}
