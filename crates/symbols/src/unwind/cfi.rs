//! Call frame information: the unwind rule for an address, and the function around it.

use super::arch::{LINKS, REGISTERS, RETURN_COLUMN, SP, VENDOR};
use super::expression::Evaluator;
use super::search_table::SearchTable;
use super::small_section::{self, EhSection};
use super::step::{Rule, Step};
use crate::elf::{ElfFile, View};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian, Register,
    RegisterRule, UnwindContext, UnwindSection, UnwindTableRow,
};
use std::borrow::Cow;
use std::ops::Range;
use systoll_binfile::cfi::Functions;

type Slice<'a> = EndianSlice<'a, LittleEndian>;
/// Memory for evaluating a row of call frame information. It is reused, because making it takes longer than the row.
pub(crate) type RowContext = UnwindContext<usize>;

/// The call frame information of one file.
#[derive(Debug)]
pub(crate) struct Cfi {
    bases: BaseAddresses,
    search_table: Option<SearchTable>,
    eh_frame_addr: u64,
    eh_frame: View,
    /// Functions in `.eh_frame`; empty if the header has a search table.
    eh_index: Functions,
    debug_frame: Vec<u8>,
    debug_index: Functions,
}

impl Cfi {
    pub(crate) fn read(elf: &ElfFile) -> Self {
        let mut bases = BaseAddresses::default();
        let (mut eh_frame, mut eh_frame_addr) = (None, 0);
        let piece = elf.headers.eh_frame_hdr;
        let header = piece.and_then(|piece| elf.view_vaddr(piece.vaddr, piece.size));
        if let Some(piece) = piece {
            bases = bases.set_eh_frame_hdr(piece.vaddr);
        }
        if let Some(section) = elf.section(".eh_frame") {
            eh_frame_addr = section.addr;
            eh_frame = elf.section_view(section);
        } else if let Some(start) = header.as_ref().and_then(|h| frames_of(h, &bases)) {
            eh_frame_addr = start;
            eh_frame = elf.view_to_segment_end(start);
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
            eh_frame: eh_frame.unwrap_or_else(|| View::of(Vec::new())),
            eh_index: Functions::default(),
            debug_frame,
            debug_index: Functions::default(),
        };
        if cfi.search_table.is_none() {
            cfi.eh_index = Functions::of_eh_frame(eh_frame_addr, cfi.eh_frame.whole(), text);
        }
        cfi.debug_index = Functions::of_debug_frame(&cfi.debug_frame);
        cfi
    }

    /// Returns the section that has the entry for `addr`: if there is a search table, a small section with only this
    /// entry.
    fn eh_section(&self, addr: u64) -> Option<EhSection<'_>> {
        let offset = match &self.search_table {
            Some(search_table) => search_table.lookup(addr)?.checked_sub(self.eh_frame_addr)?,
            None => self.eh_index.around(addr)?.offset as u64,
        };
        if self.search_table.is_some()
            && let Some(small) = small_section::cut_out(&self.eh_frame, offset, self.eh_frame_addr, &self.bases)
        {
            return Some(small);
        }
        self.whole_section(offset)
    }

    fn whole_section(&self, offset: u64) -> Option<EhSection<'_>> {
        let bytes = Cow::Borrowed(self.eh_frame.whole());
        Some(EhSection { bytes, bases: self.bases.clone(), entry: usize::try_from(offset).ok()? })
    }

    fn debug_section(&self) -> DebugFrame<Slice<'_>> {
        let mut section = DebugFrame::new(&self.debug_frame, LittleEndian);
        section.set_vendor(VENDOR);
        section
    }

    fn debug_entry(&self, addr: u64) -> Option<FrameDescriptionEntry<Slice<'_>>> {
        let section = self.debug_section();
        let offset = self.debug_index.around(addr)?.offset.into();
        let entry = section.fde_from_offset(&self.bases, offset, DebugFrame::cie_from_offset).ok()?;
        entry.contains(addr).then_some(entry)
    }

    /// Returns the range of the function at `addr`, or of the part of it that has an entry of its own.
    pub(crate) fn function(&self, addr: u64) -> Option<Range<u64>> {
        let section = self.eh_section(addr);
        let entry = section.as_ref().and_then(|section| section.entry(addr)).or_else(|| self.debug_entry(addr))?;
        // The entry of a signal trampoline begins one byte early, because unwinders look up the byte before a return
        // address.
        let early = u64::from(entry.is_signal_trampoline());
        Some(entry.initial_address().saturating_add(early)..entry.end_address())
    }

    /// Returns the step at `addr`; `None` if no entry covers it.
    pub(crate) fn step(&self, addr: u64, context: &mut RowContext) -> Option<Step> {
        let eh = self.eh_section(addr);
        if let Some((eh, entry)) = eh.as_ref().and_then(|eh| Some((eh, eh.entry(addr)?))) {
            let section = eh.section();
            let row = entry.unwind_info_for_address(&section, &eh.bases, context, addr).ok()?;
            return Some(compile(row));
        }
        let entry = self.debug_entry(addr)?;
        let section = self.debug_section();
        let row = entry.unwind_info_for_address(&section, &self.bases, context, addr).ok()?;
        Some(compile(row))
    }

    /// Steps to the caller if the rule is an expression ([`Step::Expression`]). Returns `None` if there is no caller.
    pub(crate) fn evaluate(
        &self,
        addr: u64,
        regs: &mut [u64; REGISTERS],
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<()> {
        let mut context = UnwindContext::new();
        let eh = self.eh_section(addr);
        if let Some((eh, entry)) = eh.as_ref().and_then(|eh| Some((eh, eh.entry(addr)?))) {
            let section = eh.section();
            let row = entry.unwind_info_for_address(&section, &eh.bases, &mut context, addr).ok()?;
            return Evaluator { section: &section, encoding: entry.cie().encoding(), read }.step(row, regs);
        }
        let entry = self.debug_entry(addr)?;
        let section = self.debug_section();
        let row = entry.unwind_info_for_address(&section, &self.bases, &mut context, addr).ok()?;
        Evaluator { section: &section, encoding: entry.cie().encoding(), read }.step(row, regs)
    }
}

/// Returns the address of `.eh_frame` according to the header.
fn frames_of(header: &View, bases: &BaseAddresses) -> Option<u64> {
    /// Number of bytes read, more than precede the search table in any encoding.
    const FIRST: u64 = 64;
    let first = header.read(0, header.size().min(FIRST))?;
    let parsed = EhFrameHdr::new(&first, LittleEndian).parse(bases, 8).ok()?;
    parsed.eh_frame_ptr().direct().ok()
}

fn compile(row: &UnwindTableRow<usize>) -> Step {
    match row.register(Register(RETURN_COLUMN as u16)) {
        // By the ABI, an undefined return address marks the outermost frame.
        Some(RegisterRule::Undefined) => return Step::End,
        None if !LINKS => return Step::End,
        _ => {}
    }
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return Step::Expression };
    let (Ok(base), Ok(offset)) = (u8::try_from(register.0), i32::try_from(*offset)) else { return Step::Expression };
    let mut rule = Rule::new(base, offset);
    for (register, how) in row.registers() {
        let Ok(number) = u8::try_from(register.0) else { continue };
        let fits = match how {
            RegisterRule::Offset(at) if usize::from(number) < REGISTERS && usize::from(number) != SP => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapped;
    use gimli::EhFrame;
    use proptest::prelude::*;
    use std::path::Path;

    /// Returns the test program, the files that it has mapped, and some larger files that the machine may have.
    fn files() -> Vec<ElfFile> {
        let mapped = mapped::maps::executable(std::process::id() as i32).unwrap();
        let others = ["/usr/bin/python3", "/usr/bin/node", "/usr/bin/gcc", "/usr/bin/git", "/bin/busybox"];
        let paths = mapped.iter().map(|m| m.path.as_str()).chain(others);
        let open = |path| ElfFile::parse(mapped::open_file(Path::new(path)).ok()?);
        paths.filter_map(open).collect()
    }

    /// Opens the call frame information in such a way that no entry is read by itself.
    fn read_whole(elf: &ElfFile) -> Cfi {
        let mut cfi = Cfi::read(elf);
        let text = elf.section(".text").map(|text| text.addr);
        cfi.eh_index = Functions::of_eh_frame(cfi.eh_frame_addr, cfi.eh_frame.whole(), text);
        cfi.search_table = None;
        cfi
    }

    fn evaluated(cfi: &Cfi, addr: u64) -> Option<[u64; REGISTERS]> {
        let mut regs = [0; REGISTERS];
        for (register, n) in regs.iter_mut().zip(1..) {
            *register = n << 16;
        }
        let mut read = |at: u64| Some(at.wrapping_mul(3));
        cfi.evaluate(addr, &mut regs, &mut read).map(|()| regs)
    }

    #[test]
    fn entries_read_alone_equal_those_of_the_whole_section() {
        let (mut files_seen, mut seen, mut expressions) = (0, 0, 0);
        for elf in files() {
            let (alone, whole) = (Cfi::read(&elf), read_whole(&elf));
            if alone.search_table.is_none() {
                continue;
            }
            files_seen += 1;
            let all = whole.eh_index.all();
            let some = all.len() / 40_000 + 1;
            let mut context = RowContext::new();
            for function in all.iter().step_by(some) {
                let middle = function.start.midpoint(function.end);
                for addr in [function.start, middle, function.end - 1, function.end] {
                    assert_eq!(alone.function(addr), whole.function(addr), "{addr:#x}");
                    let step = whole.step(addr, &mut context);
                    assert_eq!(alone.step(addr, &mut context), step, "{addr:#x}");
                    if matches!(step, Some(Step::Expression)) {
                        expressions += 1;
                        assert_eq!(evaluated(&alone, addr), evaluated(&whole, addr), "{addr:#x}");
                    }
                    seen += 1;
                }
            }
            assert!(alone.eh_frame.at_hand().is_none(), "all of it was read for a few entries");
        }
        assert!(files_seen > 2 && seen > 10_000 && expressions > 2, "{files_seen} {seen} {expressions}");
    }

    fn first_frames() -> (Vec<u8>, u64, BaseAddresses) {
        const SOME: u64 = 4096;
        let mapped = mapped::maps::executable(std::process::id() as i32).unwrap();
        let libc = mapped.iter().find(|m| m.path.contains("/libc.so") || m.path.contains("/libc-")).expect("a libc");
        let cfi = Cfi::read(&ElfFile::parse(mapped::open_file(Path::new(&libc.path)).unwrap()).unwrap());
        (cfi.eh_frame.read(0, SOME).unwrap(), cfi.eh_frame_addr, cfi.bases)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn damaged_entries_read_alone_equal_those_of_the_whole_section(
            changes in prop::collection::vec((0usize..4096, prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(1)]), 0..80),
            cut in prop_oneof![4 => Just(4096usize), 1 => 0usize..4096],
        ) {
            let (mut bytes, eh_frame_addr, bases) = first_frames();
            for (at, value) in changes {
                bytes[at] = value;
            }
            bytes.truncate(cut);
            let cfi = Cfi {
                bases,
                search_table: None,
                eh_frame_addr,
                eh_frame: View::of(bytes),
                eh_index: Functions::default(),
                debug_frame: Vec::new(),
                debug_index: Functions::default(),
            };
            let mut context = RowContext::new();
            for offset in (0..cut as u64 + 8).step_by(4).chain([u64::MAX, u64::MAX - 3]) {
                let small = small_section::cut_out(&cfi.eh_frame, offset, eh_frame_addr, &cfi.bases);
                let Some(small) = small else { continue };
                let whole = cfi.whole_section(offset).unwrap();
                let parse = |section: &EhSection<'_>, context: &mut RowContext| {
                    let frames = section.section();
                    let entry = frames.fde_from_offset(&section.bases, section.entry.into(), EhFrame::cie_from_offset).ok()?;
                    let (start, end) = (entry.initial_address(), entry.end_address());
                    let mut steps = Vec::new();
                    for addr in [start, start.midpoint(end), end.saturating_sub(1)] {
                        let row = entry.unwind_info_for_address(&frames, &section.bases, context, addr);
                        steps.push(row.ok().map(compile));
                    }
                    Some((start, end, entry.is_signal_trampoline(), steps))
                };
                prop_assert_eq!(parse(&small, &mut context), parse(&whole, &mut context), "at {}", offset);
            }
        }
    }
}
