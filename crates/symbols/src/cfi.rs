//! Call frame information: from an address to its rule, and to the function it belongs to.

use crate::elf::{Image, half};
use crate::rule::{RA, REGISTERS, RSP, Rule, Step};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use std::ops::Range;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
/// What working out a row of call frame information takes; making one anew takes longer than the row.
pub(crate) type Unwinding = UnwindContext<usize>;

/// Most entries of a table that has no index of its own.
const MAX_ENTRIES: usize = 2_000_000;
/// Most operations of one expression.
const MAX_EVALUATION: u32 = 1000;

/// The call frame information of one file.
#[derive(Debug)]
pub(crate) struct Cfi {
    bases: BaseAddresses,
    table: Option<Table>,
    eh_frame_addr: u64,
    eh_frame: Vec<u8>,
    /// Start, end and offset of each entry; for `.eh_frame` only where the header has no table.
    eh_index: Vec<(u64, u64, usize)>,
    debug_frame: Vec<u8>,
    debug_index: Vec<(u64, u64, usize)>,
}

impl Cfi {
    pub(crate) fn read(image: &Image) -> Self {
        let mut bases = BaseAddresses::default();
        let (mut eh_frame, mut eh_frame_addr) = (Vec::new(), 0);
        let header = image.eh_frame_hdr.and_then(|(addr, size)| image.read_vaddr(addr, size));
        if let Some((addr, _)) = image.eh_frame_hdr {
            bases = bases.set_eh_frame_hdr(addr);
        }
        if let Some(section) = image.section(".eh_frame") {
            eh_frame_addr = section.addr;
            eh_frame = image.section_data(section).unwrap_or_default();
        } else if let Some(start) = header.as_deref().and_then(|h| frames_of(h, &bases)) {
            eh_frame_addr = start;
            eh_frame = image.read_to_segment_end(start).unwrap_or_default();
        }
        bases = bases.set_eh_frame(eh_frame_addr);
        let table = header.and_then(|h| Table::new(h, image.eh_frame_hdr?.0));
        if let Some(text) = image.section(".text") {
            bases = bases.set_text(text.addr);
        }
        let debug_frame = image.section(".debug_frame").and_then(|s| image.section_data(s)).unwrap_or_default();
        let mut cfi =
            Self { bases, table, eh_frame_addr, eh_frame, eh_index: Vec::new(), debug_frame, debug_index: Vec::new() };
        if cfi.table.is_none() {
            cfi.eh_index = index(&EhFrame::new(&cfi.eh_frame, LittleEndian), &cfi.bases);
        }
        cfi.debug_index = index(&DebugFrame::new(&cfi.debug_frame, LittleEndian), &cfi.bases);
        cfi
    }

    fn eh_entry(&self, addr: u64) -> Option<FrameDescriptionEntry<Bytes<'_>>> {
        let section = EhFrame::new(&self.eh_frame, LittleEndian);
        let offset = match &self.table {
            Some(table) => usize::try_from(table.lookup(addr)?.checked_sub(self.eh_frame_addr)?).ok()?,
            None => in_index(&self.eh_index, addr)?,
        };
        let entry = section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        entry.contains(addr).then_some(entry)
    }

    fn debug_entry(&self, addr: u64) -> Option<FrameDescriptionEntry<Bytes<'_>>> {
        let section = DebugFrame::new(&self.debug_frame, LittleEndian);
        let offset = in_index(&self.debug_index, addr)?.into();
        let entry = section.fde_from_offset(&self.bases, offset, DebugFrame::cie_from_offset).ok()?;
        entry.contains(addr).then_some(entry)
    }

    /// The range of the function (or part of one) at `addr`.
    pub(crate) fn function(&self, addr: u64) -> Option<Range<u64>> {
        let entry = self.eh_entry(addr).or_else(|| self.debug_entry(addr))?;
        // A signal trampoline's begins one byte early: unwinders look at the byte before a return address.
        let early = u64::from(entry.is_signal_trampoline());
        Some(entry.initial_address().saturating_add(early)..entry.end_address())
    }

    /// The step at `addr`; `None` where no entry covers it.
    pub(crate) fn step(&self, addr: u64, context: &mut Unwinding) -> Option<Step> {
        if let Some(entry) = self.eh_entry(addr) {
            let section = EhFrame::new(&self.eh_frame, LittleEndian);
            let row = entry.unwind_info_for_address(&section, &self.bases, context, addr).ok()?;
            return Some(compile(row));
        }
        let entry = self.debug_entry(addr)?;
        let section = DebugFrame::new(&self.debug_frame, LittleEndian);
        let row = entry.unwind_info_for_address(&section, &self.bases, context, addr).ok()?;
        Some(compile(row))
    }

    /// Steps where the rule is an expression ([`Step::Expression`]). True if there is a caller.
    pub(crate) fn evaluate(
        &self,
        addr: u64,
        regs: &mut [u64; REGISTERS],
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<()> {
        let mut context = UnwindContext::new();
        if let Some(entry) = self.eh_entry(addr) {
            let section = EhFrame::new(&self.eh_frame, LittleEndian);
            let row = entry.unwind_info_for_address(&section, &self.bases, &mut context, addr).ok()?;
            return Evaluator { section: &section, encoding: entry.cie().encoding(), read }.step(row, regs);
        }
        let entry = self.debug_entry(addr)?;
        let section = DebugFrame::new(&self.debug_frame, LittleEndian);
        let row = entry.unwind_info_for_address(&section, &self.bases, &mut context, addr).ok()?;
        Evaluator { section: &section, encoding: entry.cie().encoding(), read }.step(row, regs)
    }
}

/// The binary search table of `.eh_frame_hdr` (Linux Standard Base, "Exception Frames"), in the one
/// encoding that linkers write. Not gimli's: that one overflows on a damaged count.
#[derive(Debug)]
struct Table {
    header: Vec<u8>,
    addr: u64,
    rows: usize,
}

impl Table {
    /// Version 1; a pointer of 4 bytes to `.eh_frame`, a count of 4 bytes, rows of two 4-byte
    /// offsets from the header.
    fn new(header: Vec<u8>, addr: u64) -> Option<Self> {
        const VERSION: u8 = 1;
        const POINTERS: [u8; 2] = [0x1b, 0x3b];
        const COUNT: u8 = 0x03;
        const ROWS: u8 = 0x3b;
        let known = matches!(header.get(..4)?, [VERSION, pointer, COUNT, ROWS] if POINTERS.contains(pointer));
        let rows = (half(&header, 8)? as usize).min(header.len().checked_sub(12)? / 8);
        (known && rows > 0).then_some(Self { header, addr, rows })
    }

    fn field(&self, row: usize, field: usize) -> u64 {
        let offset = half(&self.header, 12 + 8 * row + 4 * field).unwrap_or(0).cast_signed();
        self.addr.wrapping_add_signed(offset.into())
    }

    /// The address of the last entry that starts at or before `addr`.
    fn lookup(&self, addr: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            if self.field(middle, 0) <= addr { low = middle + 1 } else { high = middle }
        }
        Some(self.field(low.checked_sub(1)?, 1))
    }
}

/// Where the header says that `.eh_frame` starts.
fn frames_of(header: &[u8], bases: &BaseAddresses) -> Option<u64> {
    let parsed = EhFrameHdr::new(header, LittleEndian).parse(bases, 8).ok()?;
    parsed.eh_frame_ptr().direct().ok()
}

fn index<'a, S>(section: &S, bases: &BaseAddresses) -> Vec<(u64, u64, usize)>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(S::cie_from_offset)
            && fde.len() > 0
        {
            found.push((fde.initial_address(), fde.end_address(), fde.offset()));
        }
        if found.len() >= MAX_ENTRIES {
            break;
        }
    }
    found.sort_unstable();
    found
}

fn in_index(index: &[(u64, u64, usize)], addr: u64) -> Option<usize> {
    let after = index.partition_point(|(start, _, _)| *start <= addr);
    let (_, end, offset) = index.get(after.checked_sub(1)?)?;
    (addr < *end).then_some(*offset)
}

fn compile(row: &UnwindTableRow<usize>) -> Step {
    match row.register(Register(RA as u16)) {
        // The ABI's mark of the outermost frame.
        None | Some(RegisterRule::Undefined) => return Step::End,
        _ => {}
    }
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return Step::Expression };
    let (Ok(base), Ok(offset)) = (u8::try_from(register.0), i32::try_from(*offset)) else { return Step::Expression };
    let mut rule = Rule::new(base, offset);
    for (register, how) in row.registers() {
        let Ok(number) = u8::try_from(register.0) else { continue };
        let fits = match how {
            RegisterRule::Offset(at) if usize::from(number) < REGISTERS && usize::from(number) != RSP => {
                i32::try_from(*at).is_ok_and(|at| rule.save(number, at))
            }
            RegisterRule::Undefined | RegisterRule::SameValue => true,
            _ if usize::from(number) >= REGISTERS => true,
            _ => false,
        };
        if !fits {
            return Step::Expression;
        }
    }
    Step::Rule(rule)
}

struct Evaluator<'e, S> {
    section: &'e S,
    encoding: gimli::Encoding,
    read: &'e mut dyn FnMut(u64) -> Option<u64>,
}

impl<'a, S: UnwindSection<Bytes<'a>>> Evaluator<'_, S> {
    fn step(&mut self, row: &UnwindTableRow<usize>, regs: &mut [u64; REGISTERS]) -> Option<()> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                regs.get(usize::from(register.0))?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(e) => self.value(*e, regs, None)?,
        };
        let mut next = *regs;
        next[RSP] = cfa;
        for (register, how) in row.registers() {
            let Some(slot) = next.get_mut(usize::from(register.0)) else { continue };
            *slot = match how {
                RegisterRule::Offset(at) => (self.read)(cfa.wrapping_add_signed(*at))?,
                RegisterRule::ValOffset(at) => cfa.wrapping_add_signed(*at),
                RegisterRule::Register(other) => *regs.get(usize::from(other.0))?,
                RegisterRule::Expression(e) => {
                    let at = self.value(*e, regs, Some(cfa))?;
                    (self.read)(at)?
                }
                RegisterRule::ValExpression(e) => self.value(*e, regs, Some(cfa))?,
                RegisterRule::Constant(value) => *value,
                _ => continue,
            };
        }
        if next[RSP] <= regs[RSP] && next[RA] == regs[RA] {
            return None;
        }
        *regs = next;
        Some(())
    }

    /// The value of an expression; a register rule's starts with the CFA on its stack.
    fn value(&mut self, e: UnwindExpression<usize>, regs: &[u64; REGISTERS], start: Option<u64>) -> Option<u64> {
        let mut evaluation = e.get(self.section).ok()?.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_EVALUATION);
        if let Some(start) = start {
            evaluation.set_initial_value(start);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = *regs.get(usize::from(register.0))?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    let value = (self.read)(address)?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            gimli::Location::Address { address } => Some(address),
            _ => None,
        }
    }
}
