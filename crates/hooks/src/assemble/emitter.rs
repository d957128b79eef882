//! An assembler whose labels may share a place, with cold code that follows the hot code.

use crate::layout::{Question, slot};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmMemoryOperand, AsmRegister64, CodeAssembler, CodeLabel, dword_ptr, ptr, qword_ptr, rcx};

/// Writes instructions one after the other; stops at the first one that the assembler refuses.
macro_rules! asm {
    ($e:expr; $($op:ident ($($arg:expr),*);)*) => {{ $($e.a.$op($($arg),*)?;)* }};
}
pub(super) use asm;

/// Result of writing code. An error is a mistake of ours: an operand that can't be encoded.
pub(super) type Emitted<T = ()> = Result<T, IcedError>;

/// Lowest bit of the call's number in a question; the field holds the number plus one.
pub(super) const NUMBER_BIT: u32 = 6;
/// Bound of the call numbers that fit into a question.
const MOST_NUMBERS: u32 = (1 << (16 - NUMBER_BIT)) - 1;

type ColdCode = Box<dyn FnOnce(&mut Emitter) -> Emitted>;

/// The place at which a thread in our code would be without us, for unwinders of its stack. Its stack pointer is
/// right for that place at every instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An address in the file (ELF vaddr).
    Address(u64),
    /// The address in the low 48 bits of rcx, which other code of ours has put there.
    InRcx,
    /// The address in the low 48 bits of [`slot::RESUME`], in the slot at rbp, which also has the program's rbp among
    /// [`slot::REGISTERS`].
    InSlot,
}

/// Code being written.
pub(super) struct Emitter {
    /// The assembler, for single instructions.
    pub(super) a: CodeAssembler,
    /// Address of the hand-shake's code, see [`Emitter::ask`].
    stub: u64,
    /// Number of instructions when a label was last placed.
    placed: Option<usize>,
    cold: Vec<(Origin, ColdCode)>,
    /// Origin of the code from each instruction index on.
    origins: Vec<(usize, Origin)>,
}

impl Emitter {
    /// Creates an empty emitter. `stub` is the address of the hand-shake's code.
    pub(super) fn new(stub: u64) -> Emitted<Self> {
        let a = CodeAssembler::new(64)?;
        Ok(Self { a, stub, placed: None, cold: Vec::new(), origins: Vec::new() })
    }

    /// Creates a label to be placed once.
    pub(super) fn label(&mut self) -> CodeLabel {
        self.a.create_label()
    }

    /// Places `label` here, and returns it with its place.
    pub(super) fn here(&mut self, mut label: CodeLabel) -> Emitted<CodeLabel> {
        if self.placed == Some(self.a.instructions().len()) {
            // The assembler needs an instruction between labels; this one has no bytes.
            self.a.zero_bytes()?;
        }
        self.a.set_label(&mut label)?;
        self.placed = Some(self.a.instructions().len());
        Ok(label)
    }

    /// Calls `write` when the hot code of a site is complete.
    pub(super) fn cold(&mut self, write: impl FnOnce(&mut Self) -> Emitted + 'static) {
        self.cold.push((self.origin(), Box::new(write)));
    }

    /// Sets the origin of the code that follows.
    pub(super) fn stands_for(&mut self, origin: Origin) {
        self.origins.push((self.a.instructions().len(), origin));
    }

    fn origin(&self) -> Origin {
        self.origins.last().map_or(Origin::InRcx, |(_, origin)| *origin)
    }

    /// Returns the origin of the code from each instruction index on, ascending.
    pub(super) fn origins(&self) -> &[(usize, Origin)] {
        &self.origins
    }

    /// Writes all cold code, including further cold code that it adds.
    pub(super) fn flush(&mut self) -> Emitted {
        while !self.cold.is_empty() {
            for (origin, write) in std::mem::take(&mut self.cold) {
                self.stands_for(origin);
                write(self)?;
            }
        }
        Ok(())
    }

    /// Asks the launcher and continues at `resume`, with the answer, or the old value, in r11; rcx and flags are lost,
    /// all else is kept.
    pub(super) fn ask(&mut self, question: Question, resume: CodeLabel) -> Emitted {
        // The question is put above the 48 bits of the address: no other register is free to carry it.
        asm!(self; lea(rcx, ptr(resume)); rol(rcx, 16u32); or(rcx, question as i32); ror(rcx, 16u32););
        self.a.jmp(self.stub)
    }

    /// Asks as [`Emitter::ask`] does, about a call that is about to be made, from cold code at `asking`. `number` is
    /// the call's number, if eax may not hold it yet.
    pub(super) fn ask_at_entry(&mut self, number: Option<u32>, asking: CodeLabel, resume: CodeLabel) {
        let known = number.filter(|n| *n < MOST_NUMBERS).map_or(0, |n| n + 1);
        let bits = known << NUMBER_BIT | u32::from(Question::WindowEntry as u16);
        self.cold(move |e| {
            e.here(asking)?;
            asm!(e; lea(rcx, ptr(resume)); rol(rcx, 16u32); or(rcx, bits as i32); ror(rcx, 16u32););
            e.a.jmp(e.stub)
        });
    }

    /// Asks as [`Emitter::ask`] does, from cold code at `asking`, to which other code jumps.
    pub(super) fn ask_cold(&mut self, question: Question, asking: CodeLabel, resume: CodeLabel) {
        self.cold(move |e| {
            e.here(asking)?;
            e.ask(question, resume)
        });
    }
}

/// Returns the word at `offset` in the thread's slot.
pub(super) fn gs(offset: u64) -> AsmMemoryOperand {
    qword_ptr(offset).gs()
}

/// Returns the 4-byte word at `offset` in the thread's slot.
pub(super) fn gs32(offset: u64) -> AsmMemoryOperand {
    dword_ptr(offset).gs()
}

/// Returns the word at `base` + `offset` in the thread's slot.
pub(super) fn gs_at(base: AsmRegister64, offset: u64) -> AsmMemoryOperand {
    qword_ptr(base + disp(offset)).gs()
}

/// Returns the word at `base` + `offset` in memory.
pub(super) fn at(base: AsmRegister64, offset: u64) -> AsmMemoryOperand {
    qword_ptr(base + disp(offset))
}

/// Converts an offset to a displacement. It is below the size of a slot and thus below 2^31.
pub(super) const fn disp(offset: u64) -> i32 {
    debug_assert!(offset < slot::SIZE);
    offset as i32
}
