//! Call frame information: from an address to its rule, and to the function it belongs to.

use super::expression::Evaluator;
use super::search_table::SearchTable;
use super::step::{RA, REGISTERS, RSP, Rule, Step};
use crate::elf::ElfFile;
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Register, RegisterRule, UnwindContext, UnwindSection, UnwindTableRow,
};
use std::ops::Range;
use systoll_binfile::cfi::Functions;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
/// What working out a row of call frame information takes; making one anew takes longer than the row.
pub(crate) type RowContext = UnwindContext<usize>;

/// The call frame information of one file.
#[derive(Debug)]
pub(crate) struct Cfi {
    bases: BaseAddresses,
    search_table: Option<SearchTable>,
    eh_frame_addr: u64,
    eh_frame: Vec<u8>,
    /// Only where the header has no search table.
    eh_index: Functions,
    debug_frame: Vec<u8>,
    debug_index: Functions,
}

impl Cfi {
    pub(crate) fn read(elf: &ElfFile) -> Self {
        let mut bases = BaseAddresses::default();
        let (mut eh_frame, mut eh_frame_addr) = (Vec::new(), 0);
        let piece = elf.headers.eh_frame_hdr;
        let header = piece.and_then(|piece| elf.read_vaddr(piece.vaddr, piece.size));
        if let Some(piece) = piece {
            bases = bases.set_eh_frame_hdr(piece.vaddr);
        }
        if let Some(section) = elf.section(".eh_frame") {
            eh_frame_addr = section.addr;
            eh_frame = elf.section_data(section).unwrap_or_default();
        } else if let Some(start) = header.as_deref().and_then(|h| frames_of(h, &bases)) {
            eh_frame_addr = start;
            eh_frame = elf.read_to_segment_end(start).unwrap_or_default();
        }
        bases = bases.set_eh_frame(eh_frame_addr);
        let search_table = header.and_then(|h| SearchTable::new(h, piece?.vaddr));
        let text = elf.section(".text").map(|text| text.addr);
        if let Some(text) = text {
            bases = bases.set_text(text);
        }
        let debug_frame = elf.section(".debug_frame").and_then(|s| elf.section_data(s)).unwrap_or_default();
        let mut cfi = Self {
            bases,
            search_table,
            eh_frame_addr,
            eh_frame,
            eh_index: Functions::default(),
            debug_frame,
            debug_index: Functions::default(),
        };
        if cfi.search_table.is_none() {
            cfi.eh_index = Functions::of_eh_frame(eh_frame_addr, &cfi.eh_frame, text);
        }
        cfi.debug_index = Functions::of_debug_frame(&cfi.debug_frame);
        cfi
    }

    fn eh_entry(&self, addr: u64) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        let section = EhFrame::new(&self.eh_frame, LittleEndian);
        let offset = match &self.search_table {
            Some(search_table) => usize::try_from(search_table.lookup(addr)?.checked_sub(self.eh_frame_addr)?).ok()?,
            None => self.eh_index.around(addr)?.offset,
        };
        let entry = section.fde_from_offset(&self.bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        entry.contains(addr).then_some(entry)
    }

    fn debug_entry(&self, addr: u64) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        let section = DebugFrame::new(&self.debug_frame, LittleEndian);
        let offset = self.debug_index.around(addr)?.offset.into();
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
    pub(crate) fn step(&self, addr: u64, context: &mut RowContext) -> Option<Step> {
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

/// Where the header says that `.eh_frame` starts.
fn frames_of(header: &[u8], bases: &BaseAddresses) -> Option<u64> {
    let parsed = EhFrameHdr::new(header, LittleEndian).parse(bases, 8).ok()?;
    parsed.eh_frame_ptr().direct().ok()
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
