//! An assembler with labels that may share a place and cold code that goes behind the hot.

use crate::layout::{Question, slot};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmMemoryOperand, AsmRegister64, CodeAssembler, CodeLabel, dword_ptr, ptr, qword_ptr, rcx};

/// Writes instructions one after the other; stops at the first the assembler refuses.
macro_rules! asm {
    ($e:expr; $($op:ident ($($arg:expr),*);)*) => {{ $($e.a.$op($($arg),*)?;)* }};
}
pub(super) use asm;

/// What writing code comes to. An error is a mistake of ours: an operand that can't be encoded.
pub(super) type Emitted<T = ()> = Result<T, IcedError>;

/// Where in what is asked a call's number begins, plus one, behind the question itself.
pub(super) const NUMBER_BIT: u32 = 6;
/// Numbers there is room for.
const MOST_NUMBERS: u32 = (1 << (16 - NUMBER_BIT)) - 1;

type Cold = Box<dyn FnOnce(&mut Emitter) -> Emitted>;

/// Where a thread that is in our code would be without us, for those who unwind its stack. Its
/// stack pointer is right for that place at every instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// At this address of the file (ELF vaddr).
    Address(u64),
    /// At what the low 48 bits of rcx say: another place in our code.
    InRcx,
    /// At what the low 48 bits of [`slot::RESUME`] say, of the slot at rbp, which also has
    /// the program's rbp, among [`slot::REGISTERS`].
    InSlot,
}

/// Code being written.
pub(super) struct Emitter {
    /// The assembler, for single instructions.
    pub(super) a: CodeAssembler,
    /// Address of the hand-shake, see [`Emitter::ask`].
    stub: u64,
    /// How many instructions there were when a label was last placed.
    placed: Option<usize>,
    cold: Vec<(Origin, Cold)>,
    /// From which instruction on code stands for what.
    origins: Vec<(usize, Origin)>,
}

impl Emitter {
    /// Nothing written yet. `stub`: address of the hand-shake.
    pub(super) fn new(stub: u64) -> Emitted<Self> {
        let a = CodeAssembler::new(64)?;
        Ok(Self { a, stub, placed: None, cold: Vec::new(), origins: Vec::new() })
    }

    /// A label to be placed once.
    pub(super) fn label(&mut self) -> CodeLabel {
        self.a.create_label()
    }

    /// Lets `label` mean what comes next, and gives it back with its place in it.
    pub(super) fn here(&mut self, mut label: CodeLabel) -> Emitted<CodeLabel> {
        if self.placed == Some(self.a.instructions().len()) {
            // The assembler wants an instruction between labels; this one has no bytes.
            self.a.zero_bytes()?;
        }
        self.a.set_label(&mut label)?;
        self.placed = Some(self.a.instructions().len());
        Ok(label)
    }

    /// Has `write` called when the hot code of a site is complete.
    pub(super) fn cold(&mut self, write: impl FnOnce(&mut Self) -> Emitted + 'static) {
        self.cold.push((self.origin(), Box::new(write)));
    }

    /// Lets the code that follows stand for `origin`.
    pub(super) fn stands_for(&mut self, origin: Origin) {
        self.origins.push((self.a.instructions().len(), origin));
    }

    fn origin(&self) -> Origin {
        self.origins.last().map_or(Origin::InRcx, |(_, origin)| *origin)
    }

    /// From which instruction on the code stands for what, by rising index.
    pub(super) fn origins(&self) -> &[(usize, Origin)] {
        &self.origins
    }

    /// Writes all cold code, also what it asks for itself.
    pub(super) fn flush(&mut self) -> Emitted {
        while !self.cold.is_empty() {
            for (origin, write) in std::mem::take(&mut self.cold) {
                self.stands_for(origin);
                write(self)?;
            }
        }
        Ok(())
    }

    /// Asks the launcher and goes on at `resume`, with the answer, or r11 as it was, in r11; rcx
    /// and flags are lost, all else kept.
    pub(super) fn ask(&mut self, question: Question, resume: CodeLabel) -> Emitted {
        // 48 bits of address, then the question: no other register is free to carry it.
        asm!(self; lea(rcx, ptr(resume)); rol(rcx, 16u32); or(rcx, question as i32); ror(rcx, 16u32););
        self.a.jmp(self.stub)
    }

    /// [`Emitter::ask`] about a call that is about to be made, from cold code at `asking`. `number`: of the
    /// call, where it need not be in eax.
    pub(super) fn ask_at_entry(&mut self, number: Option<u32>, asking: CodeLabel, resume: CodeLabel) {
        let known = number.filter(|n| *n < MOST_NUMBERS).map_or(0, |n| n + 1);
        let bits = known << NUMBER_BIT | u32::from(Question::WindowEntry as u16);
        self.cold(move |e| {
            e.here(asking)?;
            asm!(e; lea(rcx, ptr(resume)); rol(rcx, 16u32); or(rcx, bits as i32); ror(rcx, 16u32););
            e.a.jmp(e.stub)
        });
    }

    /// [`Emitter::ask`] from cold code at `asking`, for those who jump there.
    pub(super) fn ask_cold(&mut self, question: Question, asking: CodeLabel, resume: CodeLabel) {
        self.cold(move |e| {
            e.here(asking)?;
            e.ask(question, resume)
        });
    }
}

/// A word of the thread's slot.
pub(super) fn gs(offset: u64) -> AsmMemoryOperand {
    qword_ptr(offset).gs()
}

/// Half a word of the thread's slot.
pub(super) fn gs32(offset: u64) -> AsmMemoryOperand {
    dword_ptr(offset).gs()
}

/// A word of the thread's slot at `base` + `offset`.
pub(super) fn gs_at(base: AsmRegister64, offset: u64) -> AsmMemoryOperand {
    qword_ptr(base + disp(offset)).gs()
}

/// A word at `base` + `offset`.
pub(super) fn at(base: AsmRegister64, offset: u64) -> AsmMemoryOperand {
    qword_ptr(base + disp(offset))
}

/// Offsets are below the size of a slot, which the layout holds below 2^31.
pub(super) const fn disp(offset: u64) -> i32 {
    debug_assert!(offset < slot::SIZE);
    offset as i32
}
