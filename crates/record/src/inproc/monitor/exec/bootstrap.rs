//! The code that a new program runs before its own first instruction: it maps the shared memory and asks to be patched.
//!
//! The code needs no answer: without an answer, or without the memory, it starts the program unchanged. If it could not
//! map a file, it writes that into the image's file. If it could not open that file either, it tells us by the file's
//! mode, which it can set without a descriptor. Thus a program that ran unwatched can be told apart from one that was
//! killed before it began.

use crate::inproc::monitor::shared::memory::BLOBS;
use std::ops::Range;
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, GLOBAL, IMAGE, Question, global, image};

/// Value of rax by which a new program's question is known; no mapping has this address.
pub(crate) const STARTING: u64 = 1;

const READ: u64 = 1;
const READ_WRITE: u64 = 3;
const READ_EXECUTE: u64 = 5;

/// A range of a file to be mapped at a given address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    at: u64,
    size: u64,
    offset: u64,
    protection: u64,
}

impl Mapping {
    /// Returns a range of the code file, mapped as code.
    pub(crate) const fn code(at: u64, size: u64, offset: u64) -> Self {
        Self { at, size, offset, protection: READ_EXECUTE }
    }

    /// Returns the addresses that the mapping occupies.
    pub(crate) fn range(&self) -> Range<u64> {
        self.at..self.at + self.size
    }

    /// Returns the arguments of the `mmap` call that maps descriptor `fd` there.
    pub(crate) fn arguments(&self, fd: i32) -> [u64; 6] {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        [self.at, self.size, self.protection, flags as u64, fd as u64, self.offset]
    }
}

/// Returns the mappings of a watched process: those of the code file, and that of its image. For code that must lie near
/// its file, `code` has the address, the size in bytes, and the offset in the code file.
pub(crate) fn mappings(code: impl Iterator<Item = (u64, u64, u64)>) -> (Vec<Mapping>, Mapping) {
    let global = Mapping { at: GLOBAL, size: global::SIZE, offset: 0, protection: READ };
    let all = Mapping::code(BLOBS_AT, BLOBS_SIZE, BLOBS);
    let near = code.map(|(at, size, offset)| Mapping::code(at, size, offset));
    let image = Mapping { at: IMAGE, size: image::SIZE, offset: 0, protection: READ_WRITE };
    ([global, all].into_iter().chain(near).collect(), image)
}

/// The way in which a new program gets a file.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The program opens this path with these flags.
    Open(String, libc::c_int),
    /// The program has this descriptor already.
    Descriptor(i32),
}

/// A file, and the ranges of it that are mapped.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    source: Source,
    mappings: Vec<Mapping>,
}

/// Returns the two files that every program maps, with their ranges: of the code file the global area, all code, and
/// `code`, which must lie near the files it belongs to; and the whole image.
pub(crate) fn files(code_file: Source, image_file: Source, code: impl Iterator<Item = (u64, u64, u64)>) -> [Mapped; 2] {
    let (code, image) = mappings(code);
    [Mapped { source: code_file, mappings: code }, Mapped { source: image_file, mappings: vec![image] }]
}

/// Index of a word that tells the code what to do. Only these words differ from program to program.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    /// Address of the list of files, [`FILE`] words each.
    Files,
    /// End address of the list of files.
    FilesEnd,
    /// Address of the hand-shake code.
    Stub,
    /// Address at which the hand-shake returns, with the kind of question in the upper 16 bits.
    Asked,
    /// Processors that the program may run on, as bits; 0 if that stays unchanged.
    Processors,
    /// Address of the program's first instruction.
    Entry,
    /// First of the registers, which are in the order of [`registers`].
    Registers,
}

/// Number of registers that the code changes, or may change.
const REGISTERS: usize = 15;
/// Number of words before the list of files.
const WORDS: usize = Word::Registers as usize + REGISTERS;
/// Words of a file in the list: address of its path, or zero; flags to open it with, or its descriptor; address and
/// number of its mappings.
const FILE: usize = 4;
/// Words of a mapping in the list: address, size, protection, offset.
const MAPPING: usize = 4;

/// The machine code: it opens the files, maps them, asks the launcher, and starts the program. A test assembles it by
/// [`assemble`].
const CODE: &[u8] = &[
    0x48, 0x8d, 0x2d, 0x65, 0x01, 0x00, 0x00, 0x45, 0x31, 0xed, 0x48, 0x8b, 0x5d, 0x00, 0x48, 0x8b, 0x3b, 0x4c, 0x8b,
    0x63, 0x08, 0x48, 0x85, 0xff, 0x74, 0x0f, 0x44, 0x89, 0xe6, 0x31, 0xd2, 0xb8, 0x02, 0x00, 0x00, 0x00, 0x0f, 0x05,
    0x49, 0x89, 0xc4, 0x4d, 0x85, 0xe4, 0x78, 0x61, 0x4c, 0x8b, 0x7b, 0x10, 0x4c, 0x8b, 0x73, 0x18, 0x49, 0x8b, 0x3f,
    0x49, 0x8b, 0x77, 0x08, 0x49, 0x8b, 0x57, 0x10, 0x4d, 0x8b, 0x4f, 0x18, 0x41, 0xba, 0x01, 0x40, 0x10, 0x00, 0x4d,
    0x89, 0xe0, 0xb8, 0x09, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x49, 0x33, 0x07, 0x49, 0x09, 0xc5, 0x49, 0x83, 0xc7, 0x20,
    0x49, 0x83, 0xee, 0x01, 0x75, 0xd1, 0x4d, 0x85, 0xed, 0x74, 0x19, 0x4c, 0x89, 0xe7, 0x48, 0x8d, 0x75, 0x10, 0xba,
    0x08, 0x00, 0x00, 0x00, 0x41, 0xba, 0x68, 0x04, 0x00, 0x00, 0xb8, 0x12, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x4c, 0x89,
    0xe7, 0xb8, 0x03, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0x03, 0x4d, 0x09, 0xe5, 0x48, 0x83, 0xc3, 0x20, 0x48, 0x3b,
    0x5d, 0x08, 0x0f, 0x85, 0x6e, 0xff, 0xff, 0xff, 0x4d, 0x85, 0xed, 0x74, 0x17, 0x48, 0x8b, 0x7b, 0xe0, 0x48, 0x85,
    0xff, 0x74, 0x4d, 0xbe, 0x00, 0x01, 0x00, 0x00, 0xb8, 0x5a, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0x3f, 0x48, 0xbf,
    0x00, 0x80, 0xfe, 0xff, 0xff, 0x4f, 0x00, 0x00, 0x48, 0xbe, 0x00, 0x80, 0x01, 0x40, 0x20, 0x00, 0x00, 0x00, 0xba,
    0x10, 0x00, 0x00, 0x00, 0xb8, 0x1c, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x48, 0xb9, 0x00, 0x00, 0x00, 0x10, 0x00, 0x50,
    0x00, 0x00, 0xf3, 0x48, 0x0f, 0xae, 0xd9, 0xb8, 0x01, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x4d, 0x18, 0x45, 0x31, 0xdb,
    0xff, 0x65, 0x10, 0x90, 0x48, 0x8d, 0x2d, 0x6a, 0x00, 0x00, 0x00, 0x48, 0x83, 0x7d, 0x20, 0x00, 0x74, 0x12, 0x31,
    0xff, 0xbe, 0x08, 0x00, 0x00, 0x00, 0x48, 0x8d, 0x55, 0x20, 0xb8, 0xcb, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x48, 0x8b,
    0x45, 0x30, 0x48, 0x8b, 0x5d, 0x38, 0x48, 0x8b, 0x4d, 0x40, 0x48, 0x8b, 0x55, 0x48, 0x48, 0x8b, 0x75, 0x50, 0x48,
    0x8b, 0x7d, 0x58, 0x4c, 0x8b, 0x45, 0x60, 0x4c, 0x8b, 0x4d, 0x68, 0x4c, 0x8b, 0x55, 0x70, 0x4c, 0x8b, 0x5d, 0x78,
    0x4c, 0x8b, 0xa5, 0x80, 0x00, 0x00, 0x00, 0x4c, 0x8b, 0xad, 0x88, 0x00, 0x00, 0x00, 0x4c, 0x8b, 0xb5, 0x90, 0x00,
    0x00, 0x00, 0x4c, 0x8b, 0xbd, 0x98, 0x00, 0x00, 0x00, 0x48, 0x8b, 0xad, 0xa0, 0x00, 0x00, 0x00, 0xff, 0x25, 0x28,
    0x00, 0x00, 0x00,
];
/// Offset in [`CODE`] at which the hand-shake returns.
const ASKED: u64 = 250;

/// Facts by which a program starts under watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Address of the hand-shake code by which the program asks.
    pub(crate) stub: u64,
    /// Processors that the program may run on, as bits; 0 if that stays unchanged.
    pub(crate) processors: u64,
}

/// Returns the code, and the words behind it, for address `at`. The code maps `files`, asks, and continues with `regs`.
pub(crate) fn code(at: u64, files: &[Mapped], start: Start, regs: &crate::tracee::Regs) -> Vec<u8> {
    let words = at + CODE.len() as u64;
    let files_at = words + 8 * WORDS as u64;
    let files_end = files_at + 8 * (FILE * files.len()) as u64;
    let mappings = files.iter().map(|f| f.mappings.len()).sum::<usize>();
    let (mut maps_at, mut path_at) = (files_end, files_end + 8 * (MAPPING * mappings) as u64);
    let asked = (at + ASKED) | (Question::Mapped as u64) << 48;
    let mut head = [0; WORDS];
    let known = [
        (Word::Files, files_at),
        (Word::FilesEnd, files_end),
        (Word::Stub, start.stub),
        (Word::Asked, asked),
        (Word::Processors, start.processors),
        (Word::Entry, regs.rip),
    ];
    for (i, word) in (Word::Registers as usize..).zip(registers(regs)).chain(known.map(|(w, v)| (w as usize, v))) {
        head[i] = word;
    }
    let (mut words, mut paths) = (Vec::new(), Vec::new());
    for file in files {
        let (path, how) = match &file.source {
            Source::Open(path, flags) => {
                let this = path_at;
                path_at += path.len() as u64 + 1;
                paths.extend(path.as_bytes());
                paths.push(0);
                (this, *flags as u64)
            }
            Source::Descriptor(fd) => (0, *fd as u64),
        };
        words.extend([path, how, maps_at, file.mappings.len() as u64]);
        maps_at += 8 * (MAPPING * file.mappings.len()) as u64;
    }
    words.extend(files.iter().flat_map(|f| &f.mappings).flat_map(|m| [m.at, m.size, m.protection, m.offset]));
    let words = head.into_iter().chain(words).flat_map(u64::to_le_bytes);
    CODE.iter().copied().chain(words).chain(paths).collect()
}

/// Returns the registers as the kernel left them for the program's start; rbp, which points to the words, comes last.
fn registers(regs: &crate::tracee::Regs) -> [u64; REGISTERS] {
    let r = regs;
    [r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rbp]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::monitor::shared::memory::NOT_MAPPED;
    use iced_x86::code_asm::*;
    use iced_x86::{BlockEncoderOptions, IcedError};
    use systoll_hooks::layout::slot_address;

    const OPEN: u32 = 2;
    const CLOSE: u32 = 3;
    const MMAP: u32 = 9;
    const MADVISE: u32 = 28;
    const CHMOD: u32 = 90;
    const PWRITE: u32 = 18;
    const SCHED_SETAFFINITY: u32 = 203;

    /// The labels that several parts of the code refer to.
    struct Labels {
        begin: CodeLabel,
        asked: CodeLabel,
        whole: CodeLabel,
        words: CodeLabel,
        entry: CodeLabel,
    }

    /// Returns the operand for a word of the block at rbp.
    fn word(w: Word) -> AsmMemoryOperand {
        qword_ptr(rbp + 8 * w as i32)
    }

    /// Assembles [`CODE`] from its source. Returns it, and the offset that the hand-shake returns to.
    fn assemble() -> Result<(Vec<u8>, u64), IcedError> {
        let mut a = CodeAssembler::new(64)?;
        let mut label = || a.create_label();
        let mut to = Labels { begin: label(), asked: label(), whole: label(), words: label(), entry: label() };
        a.lea(rbp, ptr(to.words))?;
        map_files(&mut a, &mut to)?;
        shake_hands(&mut a, &mut to)?;
        go_on(&mut a, &mut to)?;
        a.set_label(&mut to.words)?;
        a.dq(&[0; Word::Entry as usize])?;
        a.set_label(&mut to.entry)?;
        a.dq(&[0; WORDS - Word::Entry as usize])?;
        let done = a.assemble_options(0, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)?;
        let end = done.label_ip(&to.words)? as usize;
        Ok((done.inner.code_buffer.get(..end).unwrap_or_default().to_vec(), done.label_ip(&to.asked)?))
    }

    /// Opens and maps the files; goes on if all could be mapped, or else says so to the launcher and begins the program.
    fn map_files(a: &mut CodeAssembler, to: &mut Labels) -> Result<(), IcedError> {
        let (mut file, mut given, mut failed) = (a.create_label(), a.create_label(), a.create_label());
        let (mut done, mut close) = (a.create_label(), a.create_label());
        // r13 collects errors.
        a.xor(r13d, r13d)?;
        a.mov(rbx, word(Word::Files))?;
        a.set_label(&mut file)?;
        a.mov(rdi, qword_ptr(rbx))?;
        a.mov(r12, qword_ptr(rbx + 8))?;
        a.test(rdi, rdi)?;
        a.je(given)?;
        a.mov(esi, r12d)?;
        a.xor(edx, edx)?;
        a.mov(eax, OPEN)?;
        a.syscall()?;
        a.mov(r12, rax)?;
        a.set_label(&mut given)?;
        a.test(r12, r12)?;
        a.js(failed)?;
        map_pieces(a)?;
        a.test(r13, r13)?;
        a.je(close)?;
        // Any word that is not zero serves; the code file is read-only, so only the image can be written.
        a.mov(rdi, r12)?;
        a.lea(rsi, ptr(rbp + 8 * Word::Stub as i32))?;
        a.mov(edx, size_of::<u64>() as u32)?;
        a.mov(r10d, image::NOT_MAPPED as u32)?;
        a.mov(eax, PWRITE)?;
        a.syscall()?;
        a.set_label(&mut close)?;
        a.mov(rdi, r12)?;
        a.mov(eax, CLOSE)?;
        a.syscall()?;
        a.jmp(done)?;
        a.set_label(&mut failed)?;
        a.or(r13, r12)?;
        a.set_label(&mut done)?;
        a.add(rbx, 8 * FILE as i32)?;
        a.cmp(rbx, word(Word::FilesEnd))?;
        a.jne(file)?;
        a.test(r13, r13)?;
        a.je(to.whole)?;
        // The image's file is the last one.
        a.mov(rdi, qword_ptr(rbx - 8 * FILE as i32))?;
        a.test(rdi, rdi)?;
        a.je(to.begin)?;
        a.mov(esi, NOT_MAPPED)?;
        a.mov(eax, CHMOD)?;
        a.syscall()?;
        a.jmp(to.begin)?;
        Ok(())
    }

    /// Maps the pieces of the open file r12.
    fn map_pieces(a: &mut CodeAssembler) -> Result<(), IcedError> {
        let mut next = a.create_label();
        a.mov(r15, qword_ptr(rbx + 16))?;
        a.mov(r14, qword_ptr(rbx + 24))?;
        a.set_label(&mut next)?;
        a.mov(rdi, qword_ptr(r15))?;
        a.mov(rsi, qword_ptr(r15 + 8))?;
        a.mov(rdx, qword_ptr(r15 + 16))?;
        a.mov(r9, qword_ptr(r15 + 24))?;
        a.mov(r10d, (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE) as u32)?;
        a.mov(r8, r12)?;
        a.mov(eax, MMAP)?;
        a.syscall()?;
        // Kernels before 4.17 take NOREPLACE as a hint and may map elsewhere.
        a.xor(rax, qword_ptr(r15))?;
        a.or(r13, rax)?;
        a.add(r15, 8 * MAPPING as i32)?;
        a.sub(r14, 1)?;
        a.jne(next)?;
        Ok(())
    }

    /// Gives the thread its slot and makes the first hand-shake, which returns to `asked`.
    fn shake_hands(a: &mut CodeAssembler, to: &mut Labels) -> Result<(), IcedError> {
        a.set_label(&mut to.whole)?;
        // Exclude the whole range from core dumps; there is nothing between the mappings.
        a.mov(rdi, GLOBAL)?;
        a.mov(rsi, BLOBS_AT + BLOBS_SIZE - GLOBAL)?;
        a.mov(edx, libc::MADV_DONTDUMP as u32)?;
        a.mov(eax, MADVISE)?;
        a.syscall()?;
        a.mov(rcx, slot_address(0))?;
        a.wrgsbase(rcx)?;
        a.mov(eax, STARTING as u32)?;
        a.mov(rcx, word(Word::Asked))?;
        a.xor(r11d, r11d)?;
        a.jmp(word(Word::Stub))?;
        a.set_label(&mut to.asked)?;
        a.nop()?;
        Ok(())
    }

    /// Gives the process its processors back, restores the registers and begins the program.
    fn go_on(a: &mut CodeAssembler, to: &mut Labels) -> Result<(), IcedError> {
        let mut free = a.create_label();
        a.set_label(&mut to.begin)?;
        // Set rbp again: the code may be reached in several ways, and the hand-shake may change it.
        a.lea(rbp, ptr(to.words))?;
        a.cmp(word(Word::Processors), 0)?;
        a.je(free)?;
        a.xor(edi, edi)?;
        a.mov(esi, size_of::<u64>() as u32)?;
        a.lea(rdx, ptr(rbp + 8 * Word::Processors as i32))?;
        a.mov(eax, SCHED_SETAFFINITY)?;
        a.syscall()?;
        a.set_label(&mut free)?;
        let all = [rax, rbx, rcx, rdx, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, rbp];
        assert_eq!(all.len(), REGISTERS);
        for (i, register) in (0..).zip(all) {
            a.mov(register, qword_ptr(rbp + 8 * (Word::Registers as i32 + i)))?;
        }
        a.jmp(qword_ptr(to.entry))?;
        Ok(())
    }

    #[test]
    fn the_code_is_that_of_its_source() {
        let (code, asked) = assemble().unwrap();
        let hex: Vec<_> = code.iter().map(|b| format!("{b:#04x}")).collect();
        assert!(code == CODE && asked == ASKED, "ASKED = {asked}; CODE = [{}]", hex.join(", "));
    }

    #[test]
    fn words_lie_where_the_code_reads_them() {
        // SAFETY: plain numbers, for which zeroes are valid.
        let mut regs: crate::tracee::Regs = unsafe { std::mem::zeroed() };
        (regs.rip, regs.rbp, regs.rax) = (0x77, 0x88, 0x99);
        let mapping = |at, protection| Mapping { at, size: 0x2000, offset: 0x3000, protection };
        let code_file = Mapped { source: Source::Open("/x".into(), 7), mappings: vec![mapping(0x1000, READ_EXECUTE)] };
        let image = Mapped { source: Source::Descriptor(5), mappings: vec![mapping(0x5000, READ_WRITE)] };
        let bytes = code(0x4000, &[code_file, image], Start { stub: 0x55, processors: 3 }, &regs);
        let word = |i: usize| u64::from_le_bytes(bytes[CODE.len() + 8 * i..][..8].try_into().unwrap());
        assert_eq!((word(Word::Stub as usize), word(Word::Entry as usize)), (0x55, 0x77));
        assert_eq!(word(Word::Processors as usize), 3);
        assert_eq!((word(Word::Registers as usize), word(WORDS - 1)), (0x99, 0x88));
        let at = |word: usize| 0x4000 + (CODE.len() + 8 * word) as u64;
        assert_eq!((word(Word::Files as usize), word(Word::FilesEnd as usize)), (at(WORDS), at(WORDS + 8)));
        assert_eq!([1, 2, 3].map(|i| word(WORDS + i)), [7, at(WORDS + 8), 1]);
        assert_eq!([4, 5, 6, 7].map(|i| word(WORDS + i)), [0, 5, at(WORDS + 12), 1]);
        assert_eq!([8, 9, 10, 11].map(|i| word(WORDS + i)), [0x1000, 0x2000, READ_EXECUTE, 0x3000]);
        assert_eq!([12, 13, 14, 15].map(|i| word(WORDS + i)), [0x5000, 0x2000, READ_WRITE, 0x3000]);
        let path = word(WORDS) as usize - 0x4000;
        assert_eq!(&bytes[path..], b"/x\0");
    }
}
