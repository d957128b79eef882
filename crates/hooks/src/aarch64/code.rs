//! Writes the counting code of a file's sites, and the jumps to it.

use super::effects::{branch, effects};
use super::layout::{MULTIPLIER, OWNER, OWNER_DIED, POINTER, entry, slot};
use super::sites::{Declined, Site};
use super::words::*;
use std::ops::Range;

/// Registers of the counting code: the slot, the address to go back to, and the five that a site proves free.
const SLOT: Reg = 16;
const BACK: Reg = 17;
const KEY: Reg = 9;
const A: Reg = 10;
const B_: Reg = 11;
const C: Reg = 12;
const D: Reg = 13;
const FRAME: Reg = 29;
const LINK: Reg = 30;
const NUMBER: Reg = 8;

/// First and last number of a few calls, mmap and mprotect among them (asm-generic/unistd.h), that have a context of their own if
/// they make memory executable.
const MAPPING: Range<u32> = 222..226;

/// Bytes that registers take on the stack where they are kept, with 16 more that may be in use below sp: Go stores its
/// frame pointer there.
const KEPT: u32 = 80;

/// Words that a site's code takes, at most, and the code of all sites.
const MOST_OF_SITE: usize = 64;
const MOST_OF_ALL: usize = 192;

/// Number of tgkill on aarch64, and the signal that a thread sends to itself to ask: one that is ignored unless it is caught,
/// so that a thread whose tracer is killed meanwhile lives on.
const TGKILL: u32 = 131;
const SIGNAL: u32 = libc::SIGURG as u32;
/// Instructions from the one behind the signal to the `brk`, and that too.
const TO_BRK: u64 = 5;

/// The questions of a thread, as numbers in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ask {
    /// The context has no entry: its key is in x9.
    Unknown = 0x5c5,
    /// The slot or the entry wants the thread to ask.
    Wanted = 0x5c6,
}

impl Ask {
    /// Returns the question of the instruction at which a thread has stopped, and the distance to where it goes on.
    #[must_use]
    pub fn of(word: u32) -> Option<(Self, u64)> {
        let all = [Self::Unknown, Self::Wanted].into_iter();
        all.flat_map(|ask| [(ask, mark(ask), 4 * TO_BRK), (ask, brk(ask as u32), 4)])
            .find_map(|(ask, own, by)| (own == word).then_some((ask, by)))
    }
}

/// A jump to be written into a file's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Address in the process.
    pub at: u64,
    /// The jump.
    pub word: u32,
    /// The instruction that it replaces.
    pub was: u32,
}

/// The code of a file's sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The code, for the address that was asked for.
    pub words: Vec<u32>,
    /// Jumps to it.
    pub jumps: Vec<Jump>,
    /// Calls that are made in this code: the address behind the `svc`, and the one in the file.
    pub moved: Vec<(u64, u64)>,
}

/// Returns the bytes that the code of so many sites takes, at most.
#[must_use]
pub fn size(sites: usize) -> u64 {
    4 * (MOST_OF_ALL + sites * MOST_OF_SITE) as u64
}

/// Writes the code of `sites` of `code`, which is mapped at `base`, for the address `at`: at most 120 MB away.
///
/// # Errors
/// If an instruction can't be moved.
pub fn write(code: &[u32], sites: &[Site], base: u64, at: u64) -> Result<Written, Declined> {
    let mut c = Code::new(at);
    let (entry, back) = (c.here(), common(&mut c));
    let mut written = Written::default();
    for site in sites {
        let svc = base + site.at as u64;
        let mut jump = |c: &Code, from: u64| {
            let was = code.get(((from - base) / 4) as usize).copied().unwrap_or_default();
            written.jumps.push(Jump { at: from, word: b(from, c.here()), was });
            was
        };
        let declined = Declined::Room(site.at);
        if site.moved {
            jump(&c, svc);
            count(&mut c, site.keeps, entry);
            c.word(SVC);
            written.moved.push((c.here(), svc + 4));
            count(&mut c, site.keeps, back);
        } else {
            let before = jump(&c, svc - 4);
            displace(&mut c, before, svc - 4).ok_or(declined)?;
            count(&mut c, site.keeps, entry);
            c.b(svc);
            let behind = jump(&c, svc + 4);
            count(&mut c, site.keeps, back);
            displace(&mut c, behind, svc + 4).ok_or(declined)?;
        }
        c.b(svc + if site.moved { 4 } else { 8 });
    }
    written.words = c.finish();
    Ok(written)
}

/// Writes the way of a site's code to that for all sites, and back.
fn count(c: &mut Code, keeps: bool, to: u64) {
    let pairs = [(SLOT, BACK), (KEY, A), (B_, C)];
    if keeps {
        c.word(sub(ZERO, ZERO, KEPT));
        for (n, (one, other)) in (0u32..).zip(pairs) {
            c.word(stp(one, other, 16 * n));
        }
        c.word(mrs(SLOT, NZCV));
        c.word(stp(D, SLOT, 48));
    }
    let returned = c.label();
    c.to(adr(BACK), returned);
    c.b(to);
    c.place(returned);
    if keeps {
        c.word(ldp(D, SLOT, 48));
        c.word(msr_flags(SLOT));
        for (n, (one, other)) in (0u32..).zip(pairs) {
            c.word(ldp(one, other, 16 * n));
        }
        c.word(add(ZERO, ZERO, KEPT));
    }
}

/// Writes an instruction that lies at `at` in the file; returns nothing if it can't be moved.
fn displace(c: &mut Code, word: u32, at: u64) -> Option<()> {
    let (d, next) = (word & 31, at + 4);
    if let Some(by) = branch(word) {
        let to = at.wrapping_add_signed(by);
        if word & 0xfc00_0000 == 0x9400_0000 {
            c.constant(LINK, next);
            far(c, to)?;
        } else if word & 0xfc00_0000 == 0x1400_0000 {
            far(c, to)?;
        } else {
            let taken = c.label();
            c.to(word, taken);
            c.b(next);
            c.place(taken);
            far(c, to)?;
        }
        return Some(());
    }
    match word {
        w if w & 0x1f00_0000 == 0x1000_0000 => {
            let by = i64::from(((w >> 5 & 0x7_ffff) << 2 | w >> 29 & 3) << 11) << 32 >> 43;
            let page = w >> 31 == 1;
            let to = if page { (at & !0xfff).wrapping_add_signed(by << 12) } else { at.wrapping_add_signed(by) };
            c.constant(d, to);
        }
        // A load of a literal, and calls that note where they are.
        w if w & 0x3b00_0000 == 0x1800_0000 || w & 0xfe60_0000 == 0xd620_0000 => return None,
        w if effects(w).reads == u32::MAX => return None,
        w => c.word(w),
    }
    Some(())
}

/// Goes to an address, if it can be reached.
fn far(c: &mut Code, to: u64) -> Option<()> {
    (c.here().abs_diff(to) < REACH).then(|| c.b(to))
}

/// Loads the thread's slot, or goes to `out` if it has none.
fn load_slot(c: &mut Code, out: Label) {
    c.word(mrs(SLOT, TPIDR_EL0));
    c.to(cbz(SLOT), out);
    c.word(ldr(SLOT, SLOT, POINTER));
    c.to(cbz(SLOT), out);
}

/// Writes the code for all sites: first that before a call. Returns the address of that behind a call.
fn common(c: &mut Code) -> u64 {
    let (out, wanted) = (c.label(), c.label());
    load_slot(c, out);
    c.word(ldr(B_, SLOT, slot::WANT));
    c.to(cbnz(B_), wanted);
    hash(c);
    find(c, out, wanted);
    let behind = c.here();
    returned(c);
    behind
}

/// Leaves the context's key in [`KEY`].
fn hash(c: &mut Code) {
    let (other, level, walked) = (c.label(), c.label(), c.label());
    c.word(add_shifted(KEY, BACK, NUMBER, 48));
    c.word(sub(B_, NUMBER, MAPPING.start));
    c.word(cmp_number(B_, MAPPING.end - MAPPING.start));
    c.to(b_if(HI), other);
    // Bit 2 of the third argument: PROT_EXEC.
    c.word(and_four(B_, 2));
    c.word(add_shifted(KEY, KEY, B_, 40));
    c.place(other);
    c.word(ldr(C, SLOT, slot::MULTIPLIER));
    c.word(and_address(B_, LINK));
    mix(c);
    c.word(ldr(D, SLOT, slot::LEVELS));
    // A frame record is read only between sp and the stack's end, and only if sp is on the stack that is known.
    c.word(add(A, ZERO, 0));
    c.word(ldr(B_, SLOT, slot::STACK_LOW));
    c.word(cmp(A, B_));
    c.to(b_if(LO), walked);
    c.word(cmp(FRAME, A));
    c.to(b_if(LO), walked);
    c.word(mov(A, FRAME));
    c.place(level);
    c.to(cbz(D), walked);
    c.word(ldr(B_, SLOT, slot::STACK_HIGH));
    c.word(cmp(A, B_));
    c.to(b_if(HS), walked);
    c.word(ldr(B_, A, 8));
    c.word(and_address(B_, B_));
    mix(c);
    c.word(ldr(B_, A, 0));
    c.word(sub(D, D, 1));
    c.word(cmp(B_, A));
    c.word(mov(A, B_));
    // The next record lies higher.
    c.to(b_if(HI), level);
    c.place(walked);
}

/// Adds the word in [`B_`] to the key.
fn mix(c: &mut Code) {
    c.word(eor(KEY, KEY, B_));
    c.word(mul(KEY, KEY, C));
}

/// Returns the key of a context, as the code computes it: `words` are x30 and the frame records' return addresses.
#[must_use]
pub fn key(asked: &Asked, words: &[u64]) -> u64 {
    let Asked { number, third, back, .. } = *asked;
    let maps = u32::try_from(number).is_ok_and(|number| (MAPPING.start..=MAPPING.end).contains(&number));
    let start = back.wrapping_add(number << 48).wrapping_add(if maps { (third & 4) << 40 } else { 0 });
    words.iter().fold(start, |key, word| (key ^ word & ((1 << 48) - 1)).wrapping_mul(MULTIPLIER))
}

/// Finds the entry of the key, notes it and the clock, and goes back.
fn find(c: &mut Code, out: Label, wanted: Label) {
    let (probe, found) = (c.label(), c.label());
    c.word(lsr(A, KEY, 64 - slot::INDEX_BITS));
    c.word(add_shifted(A, SLOT, A, entry::SHIFT));
    c.word(add(A, A, slot::TABLE as u32));
    c.word(movz(D, slot::PROBES as u32));
    c.place(probe);
    c.word(ldr(B_, A, entry::KEY));
    c.word(cmp(B_, KEY));
    c.to(b_if(EQ), found);
    c.word(add(A, A, entry::SIZE as u32));
    c.word(sub(D, D, 1));
    c.to(cbnz(D), probe);
    ask(c, Ask::Unknown, out);
    c.place(wanted);
    ask(c, Ask::Wanted, out);
    c.place(found);
    c.word(ldr(B_, A, entry::RETURNED));
    c.word(ldr(C, A, entry::ASK_AT));
    c.word(cmp(B_, C));
    c.to(b_if(HS), wanted);
    c.word(str(A, SLOT, slot::PENDING));
    c.word(mrs(B_, CNTVCT_EL0));
    c.word(str(B_, SLOT, slot::START));
    c.place(out);
    c.word(br(BACK));
}

/// Returns the instruction behind the signal of a question, which does nothing.
fn mark(ask: Ask) -> u32 {
    movz(ZERO, ask as u32)
}

/// Asks the tracer, if it lives, and goes back. The tracer sees the signal, even one that is ignored, and has the thread go on
/// behind the `brk`, which is for a thread that blocks the signal. x0, x1, x2 and x8 are in the four scratch registers meanwhile.
fn ask(c: &mut Code, ask: Ask, out: Label) {
    let asked = c.label();
    c.word(ldr(B_, SLOT, slot::HEAD));
    c.word(ldr32(B_, B_, OWNER));
    c.to(tbnz(B_, OWNER_DIED), out);
    let kept = [(A, 0), (B_, 1), (C, 2), (D, NUMBER)];
    for (scratch, register) in kept {
        c.word(mov(scratch, register));
    }
    c.word(ldr(0, SLOT, slot::PID));
    c.word(ldr(1, SLOT, slot::TID));
    c.word(movz(2, SIGNAL));
    c.word(movz(NUMBER, TGKILL));
    c.word(SVC);
    c.word(mark(ask));
    c.word(ldr(0, SLOT, slot::HEAD));
    c.word(ldr32(0, 0, OWNER));
    c.to(tbnz(0, OWNER_DIED), asked);
    c.word(brk(ask as u32));
    c.place(asked);
    for (scratch, register) in kept {
        c.word(mov(register, scratch));
    }
    c.word(br(BACK));
}

/// The registers of a thread that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Number of the call.
    pub number: u64,
    /// Its third argument.
    pub third: u64,
    /// The context's key, if that has no entry.
    pub key: u64,
    /// The address that the code for all sites goes back to.
    pub back: u64,
}

impl Asked {
    /// Returns what the general registers of a thread say that has stopped at a question.
    #[must_use]
    pub fn of(x: &[u64; 31]) -> Self {
        let of = |register: Reg| x.get(register as usize).copied().unwrap_or_default();
        Self { number: of(D), third: of(C), key: of(KEY), back: of(BACK) }
    }
}

/// Adds one to a word of memory. Lost: [`C`].
fn increment(c: &mut Code, base: Reg, offset: u64) {
    c.word(ldr(C, base, offset));
    c.word(add(C, C, 1));
    c.word(str(C, base, offset));
}

/// Stores `value` in a word of the entry in [`A`] that is smaller. Lost: `scratch`.
fn keep_larger(c: &mut Code, value: Reg, scratch: Reg, offset: u64) {
    let is_not = c.label();
    c.word(ldr(scratch, A, offset));
    c.word(cmp(value, scratch));
    c.to(b_if(LS), is_not);
    c.word(str(value, A, offset));
    c.place(is_not);
}

/// Counts a call that has returned, at the entry that was noted before it.
fn returned(c: &mut Code) {
    let [out, failed, done] = std::array::from_fn(|_| c.label());
    load_slot(c, out);
    c.word(ldr(A, SLOT, slot::PENDING));
    c.to(cbz(A), out);
    c.word(mrs(B_, CNTVCT_EL0));
    c.word(ldr(C, SLOT, slot::START));
    c.word(sub_register(B_, B_, C));
    c.word(ldr(C, A, entry::TICKS));
    c.word(add_shifted(C, C, B_, 0));
    c.word(str(C, A, entry::TICKS));
    keep_larger(c, B_, C, entry::LONGEST);
    c.word(mvn(C, B_));
    keep_larger(c, C, D, entry::SHORTEST);
    c.word(orr_one(B_, B_));
    c.word(clz(B_, B_));
    c.word(add_shifted(B_, A, B_, 3));
    increment(c, B_, entry::HISTOGRAM);
    increment(c, A, entry::RETURNED);
    c.word(cmn_number(0, 4095));
    c.to(b_if(HS), failed);
    c.word(ldr(C, A, entry::MOVES));
    c.word(and(C, C, 0));
    c.word(ldr(D, A, entry::BYTES));
    c.word(add_shifted(D, D, C, 0));
    c.word(str(D, A, entry::BYTES));
    c.place(done);
    c.word(str(ZERO, SLOT, slot::PENDING));
    c.place(out);
    c.word(br(BACK));
    c.place(failed);
    c.word(sub_register(B_, ZERO, 0));
    c.word(cmp_number(B_, entry::ERRNOS as u32 - 1));
    c.word(csel(B_, ZERO, B_, HI));
    c.word(add_shifted(B_, A, B_, 2));
    c.word(ldr32(C, B_, entry::ERRORS));
    c.word(add(C, C, 1));
    c.word(str32(C, B_, entry::ERRORS));
    c.to(B, done);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0xffff_8000_0000;
    const AT: u64 = 0xffff_8100_0000;

    #[test]
    fn jumps_and_code_lead_to_one_another() {
        // mov x8, #63; svc; cmn x0, #4095; ret
        let code = [0xd280_07e8, SVC, 0xb13f_fc1f, 0xd65f_03c0];
        let sites = super::super::sites(&code).unwrap();
        let written = write(&code, &sites, BASE, AT).unwrap();
        assert!(written.words.len() as u64 * 4 <= size(1));
        assert_eq!(
            written.jumps.iter().map(|j| (j.at, j.was)).collect::<Vec<_>>(),
            [(BASE, code[0]), (BASE + 8, code[2])]
        );
        let target = |from: u64, word: u32| from.wrapping_add_signed(branch(word).unwrap());
        let word_at = |address: u64| written.words[((address - AT) / 4) as usize];
        let entry = target(BASE, written.jumps[0].word);
        // The displaced instruction, adr x17, b, b.
        assert_eq!(word_at(entry), code[0]);
        assert_eq!(word_at(entry + 4), with_distance(adr(BACK), 8));
        assert_eq!(target(entry + 8, word_at(entry + 8)), AT);
        assert_eq!(target(entry + 12, word_at(entry + 12)), BASE + 4);
        let behind = target(BASE + 8, written.jumps[1].word);
        assert_eq!(behind, entry + 16);
        assert_eq!(word_at(behind + 8), code[2]);
        assert_eq!(target(behind + 12, word_at(behind + 12)), BASE + 12);
        assert_eq!(written.moved, []);
    }

    #[test]
    fn registers_in_use_are_kept_and_calls_moved() {
        let site = |moved| Site { at: 4, moved, keeps: true };
        let code = [0xd280_07e8, SVC, 0xb13f_fc1f, 0xd65f_03c0];
        let written = write(&code, &[site(true)], BASE, AT).unwrap();
        assert_eq!(written.jumps.iter().map(|j| (j.at, j.was)).collect::<Vec<_>>(), [(BASE + 4, SVC)]);
        let (behind, in_file) = written.moved[0];
        assert_eq!((written.words[((behind - AT) / 4) as usize - 1], in_file), (SVC, BASE + 8));
        let many = write(&code, &[site(false)], BASE, AT).unwrap().words.len();
        assert!(many as u64 * 4 <= size(1), "{many}");
        assert_eq!(written.words.iter().filter(|w| **w == sub(ZERO, ZERO, KEPT)).count(), 2);
    }

    #[test]
    fn what_depends_on_its_address_is_rewritten() {
        let displaced = |word| {
            let mut c = Code::new(AT);
            displace(&mut c, word, BASE).map(|()| c.finish())
        };
        let constant = |d, value| {
            let mut c = Code::new(0);
            c.constant(d, value);
            c.finish()
        };
        // bl .+16 sets x30 as it would in the file.
        let mut call = constant(30, BASE + 4);
        call.push(b(AT + 16, BASE + 16));
        assert_eq!(displaced(0x9400_0004), Some(call));
        assert_eq!(displaced(0x1400_0004), Some(vec![b(AT, BASE + 16)]));
        // cbz x9, .-4
        assert_eq!(displaced(0xb4ff_ffe9), Some(vec![0xb400_0049, b(AT + 4, BASE + 4), b(AT + 8, BASE - 4)]));
        // adr x9, .-4; adrp x9, .-4096; adrp x9, .+4096
        assert_eq!(displaced(0x10ff_ffe9), Some(constant(9, BASE - 4)));
        assert_eq!(displaced(0xf0ff_ffe9), Some(constant(9, BASE - 4096)));
        assert_eq!(displaced(0xb000_0009), Some(constant(9, BASE + 4096)));
        // ldr x9, .+8; blr x9
        assert_eq!((displaced(0x5800_0049), displaced(0xd63f_0120)), (None, None));
        assert_eq!(displaced(0xd280_07e8), Some(vec![0xd280_07e8]));
    }

    #[test]
    fn keys_differ_by_each_part() {
        let of = |back, number, third, words: &[u64]| key(&Asked { number, third, key: 0, back }, words);
        let all = [
            of(AT, 226, 0, &[1, 2]),
            of(AT + 4, 226, 0, &[1, 2]),
            of(AT, 227, 0, &[1, 2]),
            of(AT, 226, 4, &[1, 2]),
            of(AT, 226, 0, &[2, 1]),
            of(AT, 226, 0, &[1]),
        ];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        assert_eq!(of(AT, 226, 0, &[1, 2]), of(AT, 226, 3, &[1, 2 | 0x7f << 48]));
        assert_eq!(of(AT, 63, 0, &[1, 2]), of(AT, 63, 4, &[1, 2]));
        assert_eq!(Ask::of(0xd420_b8a0), Some((Ask::Unknown, 4)));
        assert_eq!(Ask::of(mark(Ask::Wanted)), Some((Ask::Wanted, 20)));
        assert_eq!(Ask::of(0xd420_0000), None);
    }
}
