//! What a thread of Go's scheduler waits for.

use super::space::AddressSpace;
use crate::script::{Memory, ReadMemory, goroutines};
use crate::{ModuleKey, PlacedFrame, RawFrame, Registers, Symbols, Until};
use goroutines::{CHANNELS, IDLE, PARKED, Parked, SLEEP};
use std::sync::Arc;
use systoll_model::FrameClass;

/// A wait because no goroutine can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// The program's line that lets time pass: that of the goroutine which runs `main`, or else the only one at which
    /// goroutines sleep.
    pub line: Option<RawFrame>,
}

/// A goroutine's line, and how it came to wait there.
struct Waiting {
    line: RawFrame,
    is_main: bool,
    sleeps: bool,
}

impl Symbols {
    /// Returns true if a thread with these frames, as just unwound, is idle in Go's scheduler.
    pub fn is_idle(&mut self, placed: &[PlacedFrame]) -> bool {
        let key = placed.first().and_then(|first| first.frame.module).filter(|key| self.is_go(*key));
        let Some((key, module)) = key.and_then(|key| Some((key, self.shared_module(key)?))) else { return false };
        let is_scheduler = |placed: &PlacedFrame| {
            placed.frame.module == Some(key) && module.symbol(placed.frame.lookup()).is_some_and(|f| &*f.name == IDLE)
        };
        placed.iter().any(is_scheduler)
    }
}

impl AddressSpace {
    /// Returns what a thread with these frames, as just unwound, waits for; `None` if it is not idle in Go's scheduler.
    pub fn idle(&mut self, symbols: &mut Symbols, placed: &[PlacedFrame], read: &mut ReadMemory<'_>) -> Option<Idle> {
        if !symbols.is_idle(placed) {
            return None;
        }
        let key = placed.first()?.frame.module?;
        let module = Arc::clone(symbols.shared_module(key)?);
        let bias = self.files().find(|file| file.module == key).map(|file| file.bias);
        let mut memory = Memory::ahead(read, std::mem::take(&mut symbols.scripts.room), &[]);
        let parked = module.goroutines().zip(bias).and_then(|(list, bias)| list.parked(&mut memory, bias));
        let waiting = parked.unwrap_or_default();
        let waiting = waiting.into_iter().filter_map(|one| self.waiting(symbols, key, one, &mut memory));
        let line = line_of(&waiting.collect::<Vec<_>>());
        symbols.scripts.room = memory.end().room;
        Some(Idle { line })
    }

    /// Returns the program's line at which a goroutine sleeps, or waits for a channel.
    fn waiting(
        &mut self,
        symbols: &mut Symbols,
        key: ModuleKey,
        parked: Parked,
        memory: &mut Memory<'_, '_>,
    ) -> Option<Waiting> {
        let name = |symbols: &Symbols, frame: RawFrame| {
            frame.module.filter(|module| *module == key)?;
            Some(symbols.module(key)?.symbol(frame.lookup())?.name)
        };
        // Most goroutines wait for something else, and their stacks are not read.
        let leaf = self.frame(parked.pc, false);
        name(symbols, leaf).filter(|name| &**name == PARKED)?;
        let mut frames = Vec::new();
        let registers = Registers::at(parked.pc, parked.sp, 0);
        self.unwind(symbols, &registers, &mut |at| memory.word(at), Until::UserFrame, &mut frames);
        let line = frames.last().copied().filter(|line| symbols.class(*line) == FrameClass::User)?;
        let called = name(symbols, *frames.get(1)?)?;
        let sleeps = &*called == SLEEP;
        (sleeps || CHANNELS.contains(&&*called)).then_some(Waiting { line, is_main: parked.is_main, sleeps })
    }
}

/// Returns the line at which goroutines let time pass. The one that runs `main` holds the run up; a channel may be one on which
/// another goroutine sends after its sleep.
fn line_of(waiting: &[Waiting]) -> Option<RawFrame> {
    let main = waiting.iter().find(|one| one.is_main);
    if let Some(main) = main.filter(|main| main.sleeps) {
        return Some(main.line);
    }
    let mut sleeping = waiting.iter().filter(|one| one.sleeps).map(|one| one.line);
    let Some(first) = sleeping.next() else { return main.map(|main| main.line) };
    sleeping.all(|line| line == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_mains_or_the_only_one_that_sleeps() {
        let one = |address: u64, is_main: bool, sleeps: bool| {
            let line = RawFrame { module: None, address, is_return: true };
            Waiting { line, is_main, sleeps }
        };
        let line = |all: &[Waiting]| line_of(all).map(|line| line.address);
        assert_eq!(line(&[one(1, true, true), one(2, false, true)]), Some(1));
        assert_eq!(line(&[one(1, true, false), one(2, false, true), one(2, false, true)]), Some(2));
        assert_eq!(line(&[one(1, true, false), one(2, false, true), one(3, false, true)]), None);
        assert_eq!(line(&[one(1, true, false), one(2, false, false)]), Some(1));
        assert_eq!(line(&[one(2, false, false)]), None);
    }
}
