//! Steps over instructions of which planning needs only the length.
//!
//! All code of large files is searched for the few instructions that matter, and decoding each in full takes most of
//! the time. The length of an instruction follows from its prefixes, its opcode and the next byte: [`Decoder`] is asked
//! once for each combination, and its answer is kept. If more than that decides, or if anything but a length, a direct
//! branch or a rip-relative address matters, the instruction is decoded ([`Step::Ask`]). The results are therefore the
//! same as those of decoding everything.

use super::effects::{computed_address, direct_target, ends};
use super::gs::{is_doubtful, uses_gs};
use super::image::Region;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes examined of an instruction; more than the longest one has.
const WINDOW: usize = 16;

/// Facts about an instruction that need no decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An instruction that continues with the next one, computes no address, does not use gs, is plausible and is no
    /// system call.
    Plain { len: usize },
    /// An instruction like [`Step::Plain`], after which execution does not continue: a return, or an indirect jump.
    Ends { len: usize },
    /// A branch to this distance from its end: a jump, after which nothing continues, another branch, or a call.
    Branch { len: usize, distance: i32, ends: bool },
    /// An instruction that computes the address at this distance from its end.
    Address { len: usize, distance: i32 },
    /// An instruction that must be decoded.
    Ask,
}

/// Bits of an answer that hold the length from the opcode on.
const LEN: u8 = 0xf;
/// Bit of an answer that says that a displacement follows if the next byte (SIB) names no base.
const MAY_LACK_BASE: u8 = 0x10;
/// Bits of an answer that hold the kind, one of the following.
const KIND: u8 = 0xe0;
const PLAIN: u8 = 0;
const ENDS: u8 = 0x20;
const SHORT_BRANCH: u8 = 0x40;
const SHORT_JUMP: u8 = 0x60;
const NEAR_BRANCH: u8 = 0x80;
const NEAR_JUMP: u8 = 0xa0;
const ADDRESS: u8 = 0xc0;
/// Answer for a place that was not asked for yet.
const UNKNOWN: u8 = 0;
/// Answer for instructions that must be decoded.
const ASK: u8 = 0xff;

/// Opcodes whose length and nature depend only on the table's index, whatever registers a REX prefix selects.
const ONE_BYTE: [bool; 256] = set(&[
    (0x00, 0x05),
    (0x08, 0x0d),
    (0x10, 0x15),
    (0x18, 0x1d),
    (0x20, 0x25),
    (0x28, 0x2d),
    (0x30, 0x35),
    (0x38, 0x3d),
    (0x50, 0x5f),
    (0x63, 0x63),
    (0x68, 0x6b),
    (0x70, 0x81),
    (0x83, 0x8b),
    (0x8d, 0x8d),
    (0x90, 0x99),
    (0xa4, 0xa5),
    (0xa8, 0xab),
    (0xb0, 0xc1),
    (0xc3, 0xc3),
    (0xc6, 0xc7),
    (0xc9, 0xc9),
    (0xcc, 0xcc),
    (0xd0, 0xd3),
    (0xe8, 0xe9),
    (0xeb, 0xeb),
    (0xf6, 0xf7),
    (0xfe, 0xff),
]);
/// Such opcodes among those behind 0x0f.
const TWO_BYTES: [bool; 256] = set(&[
    (0x0b, 0x0b),
    (0x10, 0x17),
    (0x1e, 0x1f),
    (0x28, 0x2f),
    (0x40, 0x4f),
    (0x51, 0x76),
    (0x7e, 0x9f),
    (0xa2, 0xa5),
    (0xab, 0xad),
    (0xaf, 0xb1),
    (0xb3, 0xb3),
    (0xb6, 0xb8),
    (0xba, 0xc2),
    (0xc4, 0xc6),
    (0xc8, 0xfe),
]);

const fn set(ranges: &[(usize, usize)]) -> [bool; 256] {
    let mut all = [false; 256];
    let mut n = 0;
    while n < ranges.len() {
        let mut opcode = ranges[n].0;
        while opcode <= ranges[n].1 {
            all[opcode] = true;
            opcode += 1;
        }
        n += 1;
    }
    all
}

/// Prefixes that change the meaning of an opcode: none, 0x66, 0xf2, 0xf3.
const PREFIXES: [&[u8]; 4] = [&[], &[0x66], &[0xf2], &[0xf3]];

/// Number of places in the table of answers.
const PLACES: usize = 1 << 20;

/// Kinds and lengths of instructions by REX.W, 0x0f, prefix, opcode and the next byte.
pub(super) struct LengthTable {
    answers: Box<[AtomicU8]>,
    is_fixed: bool,
}

// The tables are allocated when a file is first planned, and are not part of the program's data: the kernel silently
// kills a program with more data than it may have (`ulimit -d`), and most runs find every plan in the cache.
static MOVED: LazyLock<LengthTable> = LazyLock::new(|| LengthTable::new(false));
static FIXED: LazyLock<LengthTable> = LazyLock::new(|| LengthTable::new(true));

/// Reads the prefixes with which an instruction's bytes begin. Returns the bytes behind them, the number of prefixes, and
/// their part of the table's place; `None` for prefixes that no usual instruction has together.
#[inline(always)]
fn prefixes(first: u64) -> Option<(u64, usize, usize)> {
    let (mut rest, mut at, mut place) = (first, 0, 0);
    if is_prefix(rest as u8) {
        let mut segment = false;
        while is_prefix(rest as u8) {
            let class = match rest as u8 {
                0x66 => 1 << 16,
                0xf2 => 2 << 16,
                0xf3 => 3 << 16,
                _ => 0,
            };
            segment |= class == 0;
            if at >= 3 || class != 0 && place != 0 && class != place {
                return None;
            }
            place |= class;
            at += 1;
            rest >>= 8;
        }
        if segment && place > 1 << 16 {
            return None;
        }
    }
    Some((rest, at, place))
}

impl LengthTable {
    /// Returns the table for position-independent code, or for fixed code, in which addresses are plain numbers.
    pub(super) fn of(is_fixed: bool) -> &'static Self {
        if is_fixed { &FIXED } else { &MOVED }
    }

    fn new(is_fixed: bool) -> Self {
        Self { answers: (0..PLACES).map(|_| AtomicU8::new(UNKNOWN)).collect(), is_fixed }
    }

    /// Returns the step of the instruction with which `bytes` begin; [`Step::Ask`] if it ends close to the end of
    /// `bytes`.
    #[inline(always)]
    pub(super) fn step(&self, bytes: &[u8]) -> Step {
        let Some(window) = bytes.first_chunk::<WINDOW>() else { return Step::Ask };
        // There are at most three prefixes, REX, 0x0f, the opcode and two bytes behind it. The next step waits for this
        // one's length, so bytes are shifted out of a register instead of being read again, and no branch depends on
        // unpredictable bits.
        let first = window.first_chunk::<8>().map_or(0, |eight| u64::from_le_bytes(*eight));
        let Some((mut rest, mut at, mut place)) = prefixes(first) else { return Step::Ask };
        let rex = u64::from(rest & 0xf0 == 0x40);
        place |= ((rest & (8 * rex)) as usize) << 16;
        rest >>= 8 * rex;
        let escaped = u64::from(rest & 0xff == 0x0f);
        place |= (escaped as usize) << 18;
        rest >>= 8 * escaped;
        at += (rex + escaped) as usize;
        let [opcode, behind, sib, ..] = rest.to_le_bytes();
        place |= usize::from(opcode) << 8 | usize::from(behind);
        let Some(kept) = self.answers.get(place & (PLACES - 1)) else { return Step::Ask };
        let mut answer = kept.load(Ordering::Relaxed);
        if answer == UNKNOWN {
            answer = self.ask(place);
            kept.store(answer, Ordering::Relaxed);
        }
        let len = at + usize::from(answer & LEN);
        if answer & KIND == PLAIN {
            let lacks_base = (answer & MAY_LACK_BASE != 0) & (sib & 7 == 5);
            return Step::Plain { len: len + 4 * usize::from(lacks_base) };
        }
        if answer == ASK {
            return Step::Ask;
        }
        let number = |at: usize| bytes.get(at..)?.first_chunk::<4>().map(|four| i32::from_le_bytes(*four));
        match answer & KIND {
            ENDS => Step::Ends { len },
            // A prefix may make another branch of the instruction.
            kind @ (SHORT_BRANCH | SHORT_JUMP) if at == 0 => {
                Step::Branch { len, distance: i32::from(behind.cast_signed()), ends: kind == SHORT_JUMP }
            }
            kind @ (NEAR_BRANCH | NEAR_JUMP) if is_bare(at, place) => match number(len - 4) {
                Some(distance) => Step::Branch { len, distance, ends: kind == NEAR_JUMP },
                None => Step::Ask,
            },
            ADDRESS => number(len - 4).map_or(Step::Ask, |distance| Step::Address { len, distance }),
            _ => Step::Ask,
        }
    }

    /// Computes the answer for `place`.
    #[cold]
    fn ask(&self, place: usize) -> u8 {
        let [low, opcode, high, ..] = place.to_le_bytes();
        let trusted = if high & 4 == 0 { ONE_BYTE } else { TWO_BYTES };
        if !trusted[usize::from(opcode)] {
            return ASK;
        }
        let mut bytes = PREFIXES[usize::from(high & 3)].to_vec();
        bytes.extend((high & 8 != 0).then_some(0x48));
        bytes.extend((high & 4 != 0).then_some(0x0f));
        let before = bytes.len();
        bytes.extend([opcode, low]);
        // Try a SIB byte that names a base, and one that names none.
        let answers = [0x00, 0x05].map(|sib| {
            let mut bytes = bytes.clone();
            bytes.push(sib);
            bytes.resize(before + WINDOW, 0);
            self.answer(&bytes, before)
        });
        match answers {
            [one, other] if one == other => one,
            // An instruction that computes an address depends on the SIB byte as well.
            [one, other] if one & KIND == PLAIN && other == one + 4 => one | MAY_LACK_BASE,
            _ => ASK,
        }
    }

    fn answer(&self, bytes: &[u8], before: usize) -> u8 {
        let i = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        let Ok(len) = u8::try_from(i.len() - before.min(i.len())) else { return ASK };
        let Some(kind) = kind(&i, self.is_fixed).filter(|_| (1..=LEN).contains(&len)) else { return ASK };
        len | kind
    }
}

/// Returns true if no prefix precedes the opcode of a near branch.
fn is_bare(at: usize, place: usize) -> bool {
    at == place >> 18 & 1
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x66 | 0xf2 | 0xf3 | 0x2e | 0x64)
}

/// Returns the kind of `i`, without its length; `None` if it must be decoded each time.
fn kind(i: &Instruction, is_fixed: bool) -> Option<u8> {
    if is_doubtful(i) || uses_gs(i) || matches!(i.mnemonic(), Mnemonic::Syscall | Mnemonic::Int) {
        return None;
    }
    if direct_target(i).is_some() {
        let is_jump = ends(i);
        return match i.len() {
            2 => Some(if is_jump { SHORT_JUMP } else { SHORT_BRANCH }),
            5 | 6 => Some(if is_jump { NEAR_JUMP } else { NEAR_BRANCH }),
            _ => None,
        };
    }
    if i.flow_control() == FlowControl::Next && computed_address(i, is_fixed).is_some() {
        return i.is_ip_rel_memory_operand().then_some(ADDRESS).filter(|_| i.mnemonic() == Mnemonic::Lea);
    }
    Some(if ends(i) { ENDS } else { PLAIN })
}

/// The instructions of a stretch of code, decoded from its start, one after another.
pub(super) struct Steps<'a> {
    quick: &'static LengthTable,
    decoder: Decoder<'a>,
    start: u64,
    /// Bytes of the stretch, and those behind it in the region.
    bytes: &'a [u8],
    at: usize,
    end: usize,
    asked: Instruction,
}

impl<'a> Steps<'a> {
    /// Returns the instructions of `start..end`, as far as that lies in `region`.
    pub(super) fn of(region: &Region<'a>, (start, end): (u64, u64), is_fixed: bool) -> Self {
        let own = region.slice(start, end);
        Self {
            quick: LengthTable::of(is_fixed),
            decoder: Decoder::with_ip(64, own, start, DecoderOptions::NONE),
            start,
            bytes: region.slice(start, region.end()),
            at: 0,
            end: own.len(),
            asked: Instruction::default(),
        }
    }

    /// Returns the next instruction's address and step; after [`Step::Ask`], [`Steps::asked`] returns the instruction.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(u64, Step)> {
        if self.at >= self.end {
            return None;
        }
        let ip = self.start.wrapping_add(self.at as u64);
        let step = self.quick.step(self.bytes.get(self.at..).unwrap_or_default());
        match step {
            Step::Plain { len } | Step::Ends { len } | Step::Branch { len, .. } | Step::Address { len, .. }
                if self.at + len <= self.end =>
            {
                self.at += len;
                Some((ip, step))
            }
            _ => {
                self.decoder.set_position(self.at).ok()?;
                self.decoder.set_ip(ip);
                self.decoder.decode_out(&mut self.asked);
                self.at = self.decoder.position();
                Some((ip, Step::Ask))
            }
        }
    }

    /// Returns the next step that is not [`Step::Plain`].
    pub(super) fn next_of_note(&mut self) -> Option<(u64, Step)> {
        let mut at = self.at;
        while at < self.end
            && let Some(rest) = self.bytes.get(at..)
            && let Step::Plain { len } = self.quick.step(rest)
            && at + len <= self.end
        {
            at += len;
        }
        self.at = at;
        self.next()
    }

    /// Returns the instruction that had to be decoded.
    pub(super) fn asked(&self) -> &Instruction {
        &self.asked
    }
}

/// Returns the address at `distance` from the end of an instruction of `len` bytes at `ip`.
pub(super) fn led_to(ip: u64, len: usize, distance: i32) -> u64 {
    ip.wrapping_add(len as u64).wrapping_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns true if decoding the first instruction of `bytes` confirms its step.
    fn holds(bytes: &[u8], is_fixed: bool) -> bool {
        const IP: u64 = 0x1000;
        let i = Decoder::with_ip(64, bytes, IP, DecoderOptions::NONE).decode();
        let step = LengthTable::of(is_fixed).step(bytes);
        let dull = !is_doubtful(&i) && !uses_gs(&i) && !matches!(i.mnemonic(), Mnemonic::Syscall | Mnemonic::Int);
        let computed = computed_address(&i, is_fixed).filter(|_| i.flow_control() == FlowControl::Next);
        let (known, leads, computes, stops) = match step {
            Step::Ask => return true,
            Step::Plain { len } => (len, None, None, false),
            Step::Ends { len } => (len, None, None, true),
            Step::Branch { len, distance, ends } => (len, Some(led_to(IP, len, distance)), None, ends),
            Step::Address { len, distance } => (len, None, Some(led_to(IP, len, distance)), false),
        };
        dull && known == i.len() && leads == direct_target(&i) && computes == computed && stops == ends(&i)
    }

    #[test]
    fn steps_equal_those_of_the_full_decoder() {
        // The test tries all opcodes with all following bytes, after all kinds of prefixes.
        let before: [&[u8]; 22] = [
            &[],
            &[0x40],
            &[0x41],
            &[0x42],
            &[0x44],
            &[0x47],
            &[0x48],
            &[0x49],
            &[0x4f],
            &[0x66],
            &[0x66, 0x41],
            &[0x66, 0x48],
            &[0x66, 0x66, 0x2e],
            &[0xf2],
            &[0xf2, 0x4f],
            &[0xf3],
            &[0xf3, 0x45],
            &[0xf3, 0x48],
            &[0x64],
            &[0x64, 0x4c],
            &[0x2e, 0xf3],
            &[0x66, 0xf2],
        ];
        for is_fixed in [false, true] {
            let mut asked = 0;
            for (before, map) in before.iter().flat_map(|b| [(b, &[][..]), (b, &[0x0f][..])]) {
                for place in 0..=u16::MAX {
                    for rest in [[0x25, 0x80, 0x7f], [0x04, 0, 0], [0xff, 0xff, 0xff]] {
                        let bytes = [before, map, &place.to_be_bytes(), &rest, &[0x11; 12]].concat();
                        assert!(holds(&bytes, is_fixed), "{bytes:02x?} {is_fixed}");
                        asked += u64::from(LengthTable::of(is_fixed).step(&bytes) == Step::Ask);
                    }
                }
            }
            assert!(asked < 44 * 3 * 65_536 * 3 / 4, "{asked}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_step_as_they_decode(bytes in prop::collection::vec(any::<u8>(), 1..200), cut in 0usize..32) {
            let region = Region { start: 0x2000, bytes: &bytes };
            let end = region.end() - cut.min(bytes.len()) as u64;
            for is_fixed in [false, true] {
                let mut steps = Steps::of(&region, (region.start, end), is_fixed);
                let mut addresses = Vec::new();
                while let Some((ip, _)) = steps.next() {
                    addresses.push(ip);
                    let rest = region.slice(ip, region.end());
                    prop_assert!(rest.len() < WINDOW || holds(rest, is_fixed));
                }
                let own = region.slice(region.start, end);
                let decoded = Decoder::with_ip(64, own, region.start, DecoderOptions::NONE);
                prop_assert_eq!(addresses, decoded.into_iter().map(|i| i.ip()).collect::<Vec<_>>());
            }
        }
    }
}
