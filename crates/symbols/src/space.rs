//! One address space: what is mapped where, and who called whom in it.

use crate::calls::call_before;
use crate::maps::{self, Mapped};
use crate::rule::{RA, RBP, REGISTERS, RSP, Step, step_signal_frame};
use crate::script::Scripts;
use crate::{MAX_FRAMES, ModuleKey, PlacedFrame, RawFrame, Registers, Symbols, Until};
use std::sync::Arc;
use systoll_model::FrameClass;

/// Most words looked through for a return address where nothing is known of the code.
const MAX_SCAN: u64 = 64;
/// How far away a caller's frame can be by a frame pointer.
const MAX_FRAME: u64 = 1 << 20;

/// A memory reader: the 8-byte word at an address, if it is mapped.
type Read<'r> = dyn FnMut(u64) -> Option<u64> + 'r;

/// An executable mapping and the file behind it.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    /// Address in memory less ELF virtual address.
    bias: u64,
    module: Option<ModuleKey>,
}

/// A file mapped executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// First address of the mapping.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Address in memory less ELF virtual address.
    pub bias: u64,
    /// The file.
    pub module: ModuleKey,
}

/// What is mapped executable in one address space. Clone it for a fork.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// As the kernel told it last; shared between forks.
    mapped: Arc<Vec<Mapped>>,
    /// By address.
    mappings: Arc<Vec<Mapping>>,
    pub(crate) scripts: Scripts,
}

impl AddressSpace {
    /// An address space with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rereads `/proc/PID/maps` and loads files not seen before, while they are mapped. Cheap where
    /// nothing changed. If the process is gone, what was known of it stays.
    pub fn update(&mut self, symbols: &mut Symbols, pid: i32) {
        if let Some(mapped) = maps::executable(pid) {
            self.take(symbols, pid, mapped);
        }
    }

    /// [`AddressSpace::update`] by the text of `/proc/PID/maps`, read just now.
    pub fn update_by(&mut self, symbols: &mut Symbols, pid: i32, maps: &[u8]) {
        if let Some(mapped) = maps::executable_in(maps) {
            self.take(symbols, pid, mapped);
        }
    }

    /// Takes in what has just been mapped, by its line of `/proc/PID/maps`, in place of whatever was
    /// there before. `None` if that is no file that could be read; nothing has changed then.
    pub fn add_by(&mut self, symbols: &mut Symbols, pid: i32, line: &[u8]) -> Option<MappedFile> {
        let [new] = <[Mapped; 1]>::try_from(maps::executable_in(line)?).ok()?;
        let apart = |m: &Mapped| m.end <= new.start || new.end <= m.start;
        if !self.mapped.iter().all(|m| apart(m) || new.start <= m.start && m.end <= new.end) {
            return None;
        }
        let mapping = load(symbols, pid, &new);
        let file = MappedFile { start: mapping.start, end: mapping.end, bias: mapping.bias, module: mapping.module? };
        let (mut mapped, mut mappings): (Vec<Mapped>, Vec<Mapping>) =
            self.mapped.iter().cloned().zip(self.mappings.iter().copied()).filter(|(m, _)| apart(m)).unzip();
        let at = mapped.partition_point(|m| m.start < new.start);
        mapped.insert(at, new);
        mappings.insert(at, mapping);
        (self.mapped, self.mappings) = (Arc::new(mapped), Arc::new(mappings));
        Some(file)
    }

    fn take(&mut self, symbols: &mut Symbols, pid: i32, mapped: Vec<Mapped>) {
        if mapped == *self.mapped {
            return;
        }
        // A file that was deleted since is the same file.
        let known = |m: &Mapped| {
            let i = self.mapped.iter().position(|k| k.is_same(m))?;
            self.mappings.get(i).copied()
        };
        let mappings = mapped.iter().map(|m| known(m).unwrap_or_else(|| load(symbols, pid, m))).collect();
        self.mappings = Arc::new(mappings);
        self.mapped = Arc::new(mapped);
    }

    /// Whether `address` lies in an executable mapping, as of the last update.
    pub fn maps_executable(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|m| m.start <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|m| address < m.end)
    }

    #[cfg(any(test, feature = "any-file"))]
    pub(crate) fn map_for_test(&mut self, module: ModuleKey, mapped: &Mapped, bias: u64) {
        let mapping = Mapping { start: mapped.start, end: mapped.end, bias, module: Some(module) };
        self.mappings = Arc::new(vec![mapping]);
    }

    /// Every executable mapping of a file that could be read, by address, as of the last update.
    pub fn files(&self) -> impl Iterator<Item = MappedFile> + '_ {
        let file = |m: &Mapping| Some(MappedFile { start: m.start, end: m.end, bias: m.bias, module: m.module? });
        self.mappings.iter().filter_map(file)
    }

    /// The frame at `address` in memory; a return address where `is_return`.
    pub fn frame(&self, address: u64, is_return: bool) -> RawFrame {
        let less = u64::from(is_return);
        let (module, at) = self.locate(address.wrapping_sub(less));
        RawFrame { module, address: at.wrapping_add(less), is_return }
    }

    /// The file that `address` lies in, and its ELF virtual address there.
    fn locate(&self, address: u64) -> (Option<ModuleKey>, u64) {
        match self.mapping(address) {
            Some(Mapping { module: Some(key), bias, .. }) => (Some(*key), address.wrapping_sub(*bias)),
            _ => (None, address),
        }
    }

    /// Appends the frames of a stopped thread to `out`, leaf first: at a system call, the address
    /// of its `syscall` instruction, then return addresses. `read` reads an 8-byte word of the
    /// thread's memory. True if the stack's root was reached; with [`Until::UserFrame`] that is
    /// the case only where there is no user's frame.
    pub fn unwind(
        &mut self,
        symbols: &mut Symbols,
        regs: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
        until: Until,
        out: &mut Vec<RawFrame>,
    ) -> bool {
        self.walk(symbols, regs, read, until, &mut |placed| out.push(placed.frame))
    }

    /// [`AddressSpace::unwind`], telling also where on the stack each frame was found.
    pub fn unwind_placed(
        &mut self,
        symbols: &mut Symbols,
        regs: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
        until: Until,
        out: &mut Vec<PlacedFrame>,
    ) -> bool {
        self.walk(symbols, regs, read, until, &mut |placed| out.push(placed))
    }

    fn walk(
        &mut self,
        symbols: &mut Symbols,
        regs: &Registers,
        read: &mut Read<'_>,
        until: Until,
        found: &mut dyn FnMut(PlacedFrame),
    ) -> bool {
        let mut regs = regs.in_dwarf_order();
        let (mut is_return, mut constant) = (false, true);
        for _ in 0..MAX_FRAMES {
            let (ip, sp) = (regs[RA], regs[RSP]);
            let (module, at) = self.locate(ip.wrapping_sub(u64::from(is_return)));
            let Some(key) = module else {
                let frame = RawFrame { module: None, address: ip, is_return };
                found(PlacedFrame { frame, ip, sp, constant });
                let go_on = until == Until::Root && self.guess(symbols, &mut regs, read, is_return).is_some();
                if !go_on {
                    return false;
                }
                (is_return, constant) = (true, false);
                continue;
            };
            let known = symbols.at(key, at, is_return);
            let frame = RawFrame { module, address: known.address, is_return };
            found(PlacedFrame { frame, ip, sp, constant });
            if until == Until::UserFrame && known.class == FrameClass::User {
                return false;
            }
            constant = match known.step {
                // Beyond the user's frame nobody asks.
                _ if known.class == FrameClass::User => false,
                Step::Rule(rule) | Step::Ahead(rule) => {
                    usize::from(rule.base) == RSP
                        || usize::from(rule.base) == RBP && symbols.is_fixed(key, known.lookup)
                }
                _ => false,
            };
            let went = match known.step {
                Step::End => return true,
                Step::Rule(rule) => rule.step(&mut regs, read),
                Step::Ahead(rule) => {
                    let start = regs;
                    let sound =
                        rule.step(&mut regs, read).filter(|()| regs[RA] == 0 || self.returns_to(regs[RA], read));
                    constant = constant && sound.is_some();
                    sound.or_else(|| {
                        regs = start;
                        self.guess(symbols, &mut regs, read, is_return)
                    })
                }
                Step::NoReturn => match self.scan(symbols, &mut regs, read, is_return, true) {
                    None => return true,
                    went => went,
                },
                Step::Expression => symbols.evaluate(key, known.lookup, &mut regs, read),
                Step::SignalFrame => step_signal_frame(&mut regs, read),
                Step::Guess => self.guess(symbols, &mut regs, read, is_return),
            };
            if regs[RA] == 0 && went.is_some() {
                return true;
            }
            if went.is_none() || !self.maps_executable(regs[RA]) {
                return false;
            }
            is_return = known.step != Step::SignalFrame;
        }
        false
    }

    /// Whether `address` is behind a call instruction.
    fn returns_to(&self, address: u64, read: &mut Read<'_>) -> bool {
        if !self.maps_executable(address.wrapping_sub(1)) {
            return false;
        }
        let mut bytes = [0; 16];
        for (half, at) in bytes.chunks_exact_mut(8).zip([16, 8]) {
            // The first half may lie before the mapping.
            if let Some(word) = read(address.wrapping_sub(at)) {
                half.copy_from_slice(&word.to_le_bytes());
            }
        }
        call_before(&bytes, address).is_some()
    }

    /// Finds the caller where nothing is known of the code: at the stack pointer in a leaf that
    /// pushed nothing, else by the frame pointer, else the nearest word that is a return address
    /// of a call that may have led here.
    fn guess(
        &self,
        symbols: &Symbols,
        regs: &mut [u64; REGISTERS],
        read: &mut Read<'_>,
        is_return: bool,
    ) -> Option<()> {
        let (sp, bp) = (regs[RSP], regs[RBP]);
        if !is_return && self.accept(regs, sp, bp, read).is_some() {
            return Some(());
        }
        if bp.wrapping_sub(sp) < MAX_FRAME && bp.is_multiple_of(8) {
            let outer = read(bp)?;
            if self.accept(regs, bp.checked_add(8)?, outer, read).is_some() {
                return Some(());
            }
        }
        self.scan(symbols, regs, read, is_return, false)
    }

    /// Looks through the stack for the return address of a call that may have led here, or, where
    /// it has to be `sure`, of one that says so.
    fn scan(
        &self,
        symbols: &Symbols,
        regs: &mut [u64; REGISTERS],
        read: &mut Read<'_>,
        is_return: bool,
        sure: bool,
    ) -> Option<()> {
        let (sp, bp) = (regs[RSP], regs[RBP]);
        let here = self.frame(regs[RA], is_return);
        (0..MAX_SCAN).find_map(|n| {
            let slot = sp.checked_add(8 * n)?;
            let caller = self.frame(read(slot)?, true);
            let led = caller.module.and_then(|_| symbols.leads(caller, here));
            if led.unwrap_or(!sure) { self.accept(regs, slot, bp, read) } else { None }
        })
    }

    /// Takes the word at `slot` for the return address, if it can be one.
    fn accept(&self, regs: &mut [u64; REGISTERS], slot: u64, bp: u64, read: &mut Read<'_>) -> Option<()> {
        let address = read(slot)?;
        if !self.returns_to(address, read) {
            return None;
        }
        (regs[RA], regs[RSP], regs[RBP]) = (address, slot.checked_add(8)?, bp);
        Some(())
    }
}

fn load(symbols: &mut Symbols, pid: i32, mapped: &Mapped) -> Mapping {
    let module = symbols.load(pid, mapped);
    let bias = module.and_then(|key| symbols.bias(key, mapped));
    Mapping { start: mapped.start, end: mapped.end, bias: bias.unwrap_or(0), module: module.filter(|_| bias.is_some()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_over_others_takes_their_place() {
        let pid = std::process::id() as i32;
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let here = what_is_mapped_over_others_takes_their_place as *const () as u64;
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        let holds = |m: &Mapped| m.start <= here && here < m.end;
        let own = maps::executable(pid).unwrap().into_iter().find(holds).unwrap();
        let line = text.lines().find(|l| l.starts_with(&format!("{:x}-", own.start))).unwrap();
        let file = space.add_by(&mut symbols, pid, line.as_bytes()).expect("our own program");
        assert_eq!((file.start, file.end), (own.start, own.end));
        space.update(&mut symbols, pid);
        assert_eq!(space.files().find(|f| f.start == own.start), Some(file));
        let before = space.files().count();
        assert_eq!(space.add_by(&mut symbols, pid, line.as_bytes()), Some(file));
        assert_eq!(space.files().count(), before);
        // Within another, and no file at all.
        let [half, no_file] = [own.start + 4096, own.end].map(|end| format!("{:x}-{end:x} r-xp 0 0:0 0", own.start));
        assert_eq!(space.add_by(&mut symbols, pid, half.as_bytes()), None);
        assert_eq!(space.add_by(&mut symbols, pid, no_file.as_bytes()), None);
        assert_eq!(space.files().count(), before);
    }

    #[test]
    fn a_file_to_be_ignored_is_not_looked_into() {
        let pid = std::process::id() as i32;
        let exe = std::fs::metadata("/proc/self/exe").unwrap();
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        symbols.ignore(&exe);
        space.update(&mut symbols, pid);
        let here = a_file_to_be_ignored_is_not_looked_into as *const () as u64;
        assert!(space.files().all(|f| !(f.start..f.end).contains(&here)));
        assert!(space.files().count() > 0 && space.maps_executable(here));
    }
}
