//! Finds the bounds of the memory in which a thread's stack lies: see [`systoll_hooks::layout::stack`].

use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::shared::maps::{Maps, line_around, open};
use crate::inproc::monitor::shared::memory::Area;
use crate::sys::read_memory;
use std::ops::Range;
use systoll_binfile::maps::{Line, lines};
use systoll_hooks::layout::{image, slot, stack};

const PAGE: u64 = 4096;

/// Tells a waiting thread, if it has asked, the bounds within which it may read its stack. Memory of files is excluded,
/// because it disappears from all mappings when the file is cut short. All memory is excluded in a program that serves
/// its own page faults.
pub(crate) fn tell(area: &Area, waiter: &Waiter) {
    let base = waiter.slot.offset();
    if area.get(base + slot::STACK_ASKED) == 0 || area.get(image::SERVES_FAULTS) as u32 != 0 {
        return;
    }
    let mapped = own_memory(waiter.tid, waiter.sp);
    let known = if area.get(image::GUARDED) as u32 == 0 { mapped } else { mapped.and_then(|m| read(waiter, &m)) };
    area.set(base + slot::STACK_ANSWER_LOW, known.as_ref().map_or(0, |range| range.start));
    area.set(base + slot::STACK_ANSWER_HIGH, known.map_or(0, |range| range.end.saturating_sub(stack::LAST)));
}

/// Returns the readable part of a mapping, from the stack pointer's page on, up to a limit: it may have guard pages
/// that `maps` does not show.
fn read(waiter: &Waiter, mapped: &Range<u64>) -> Option<Range<u64>> {
    const MOST: u64 = 64 << 10;
    let start = waiter.sp & !(PAGE - 1);
    let mut bytes = vec![0; (mapped.end - start).min(MOST) as usize];
    let end = start + read_memory(waiter.tid, start, &mut bytes) as u64;
    (end > start).then_some(start..end)
}

/// Returns the mapping around `address`, if it is private memory that the thread's process may write.
fn own_memory(tid: i32, address: u64) -> Option<Range<u64>> {
    let own = |line: &Line<'_>| line.writable && !line.shared && line.inode == 0 && line.range.contains(&address);
    let maps = open(tid)?;
    if let Some(line) = line_around(&maps, address) {
        return Line::read(&line).filter(own).map(|line| line.range);
    }
    lines(&Maps::of(tid).text).find(own).map(|line| line.range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_found_and_what_is_no_memory_of_ones_own_is_not() {
        let here = 0u64;
        let (pid, at) = (std::process::id() as i32, std::ptr::from_ref(&here) as u64);
        assert!(own_memory(pid, at).is_some_and(|range| range.contains(&at)));
        let code = a_stack_is_found_and_what_is_no_memory_of_ones_own_is_not as fn() as usize as u64;
        assert_eq!((own_memory(pid, code), own_memory(pid, 8), own_memory(pid, u64::MAX)), (None, None, None));
    }
}
