//! Decodes windows from their columns.

use super::blobs::{MAX_BYTES, take};
use super::error::{FileError, damaged};
use super::intern::Strings;
use super::wire::{self, flag};
use crate::ledger::Before;
use crate::names::StackId;
use crate::process::ProcessId;
use crate::request::RequestKindId;
use crate::row::RowId;
use crate::syscalls::Moment;
use crate::window::{ArgData, Window, WindowCall};
use std::collections::HashMap;

/// Calls in all windows of a file at most. The 500 windows of a long recording hold 16,000.
const MAX_CALLS: usize = 1 << 20;

/// Decodes all windows of a message.
pub(super) fn decode_all(
    windows: &[wire::Window],
    strings: &Strings,
    blobs: &[Vec<u8>],
) -> Result<Vec<Window>, FileError> {
    if windows.iter().fold(0usize, |n, w| n.saturating_add(w.flags.len())) > MAX_CALLS {
        return Err(FileError::TooLarge(format!("more than {MAX_CALLS} calls in windows")));
    }
    let mut room = MAX_BYTES;
    windows.iter().map(|w| Columns::new(w).window(strings, blobs, &mut room)).collect()
}

/// The read position in each column of a window.
struct Columns<'a> {
    window: &'a wire::Window,
    rows: Column<'a, u32>,
    nth: Column<'a, i64>,
    args: Column<'a, i64>,
    results: Column<'a, i64>,
    entry_ns: Column<'a, i64>,
    elapsed_ns: Column<'a, u64>,
    waited_ns: Column<'a, u64>,
    signals: Column<'a, u32>,
    faults: Column<'a, i64>,
    fds: Column<'a, u32>,
    stacks: Column<'a, u32>,
    data: Column<'a, u32>,
    data_keys: Column<'a, u32>,
    data_blobs: Column<'a, u32>,
    requests: Column<'a, u32>,
}

struct Column<'a, T>(std::slice::Iter<'a, T>);

impl<'a, T: Copy> Column<'a, T> {
    fn new(values: &'a [T]) -> Self {
        Self(values.iter())
    }

    fn next(&mut self) -> Result<T, FileError> {
        self.0.next().copied().ok_or_else(|| damaged("a window's column is too short"))
    }

    /// Returns the next value if `flags` say that the call has one.
    fn next_if(&mut self, flags: u32, flag: u32) -> Result<Option<T>, FileError> {
        if flags & flag == 0 { Ok(None) } else { self.next().map(Some) }
    }
}

impl<'a> Columns<'a> {
    fn new(w: &'a wire::Window) -> Self {
        Self {
            window: w,
            rows: Column::new(&w.rows),
            nth: Column::new(&w.nth),
            args: Column::new(&w.args),
            results: Column::new(&w.results),
            entry_ns: Column::new(&w.entry_ns),
            elapsed_ns: Column::new(&w.elapsed_ns),
            waited_ns: Column::new(&w.waited_ns),
            signals: Column::new(&w.signals),
            faults: Column::new(&w.faults),
            fds: Column::new(&w.fds),
            stacks: Column::new(&w.stacks),
            data: Column::new(&w.data),
            data_keys: Column::new(&w.data_keys),
            data_blobs: Column::new(&w.data_blobs),
            requests: Column::new(&w.requests),
        }
    }

    fn window(mut self, strings: &Strings, blobs: &[Vec<u8>], room: &mut usize) -> Result<Window, FileError> {
        let w = self.window;
        let mut last: HashMap<u32, Previous> = HashMap::new();
        let (mut entry_ns, mut faults) = (0u64, 0u64);
        let mut calls = Vec::with_capacity(w.flags.len());
        for &flags in &w.flags {
            let row = self.rows.next()?;
            let previous = last.entry(row).or_default();
            previous.nth = previous.nth.wrapping_add_signed(self.nth.next()?);
            for arg in &mut previous.args {
                *arg = arg.wrapping_add_signed(self.args.next()?);
            }
            if let Some(by) = self.results.next_if(flags, flag::RETURNED)? {
                previous.result = previous.result.wrapping_add(by);
            }
            entry_ns = entry_ns.wrapping_add_signed(self.entry_ns.next()?);
            if let Some(by) = self.faults.next_if(flags, flag::FAULTS)? {
                faults = faults.wrapping_add_signed(by);
            }
            calls.push(WindowCall {
                row: RowId(row),
                nth: previous.nth,
                args: previous.args,
                result: (flags & flag::RETURNED != 0).then_some(previous.result),
                entry_ns,
                elapsed_ns: self.elapsed_ns.next()?,
                waited_ns: self.waited_ns.next_if(flags, flag::WAITED)?,
                faults: (flags & flag::FAULTS != 0).then_some(faults),
                signals_before: self.signals.next_if(flags, flag::SIGNALS)?.unwrap_or(0),
                fd: self.fds.next_if(flags, flag::FD)?.map(|fd| strings.get(fd)).transpose()?,
                stack: self.stacks.next_if(flags, flag::STACK)?.map(StackId),
                data: self.memory(flags, blobs, room)?,
                before: before(flags),
                request: self.requests.next_if(flags, flag::REQUEST)?.map(RequestKindId),
            });
        }
        let octave = u8::try_from(w.octave).map_err(|_| damaged("a window's octave is out of range"))?;
        Ok(Window { process: ProcessId(w.process), thread: w.thread, row: RowId(w.row), octave, calls })
    }

    fn memory(&mut self, flags: u32, blobs: &[Vec<u8>], room: &mut usize) -> Result<Vec<ArgData>, FileError> {
        let pieces = self.data.next_if(flags, flag::DATA)?.unwrap_or(0);
        let mut data = Vec::new();
        for _ in 0..pieces {
            let key = self.data_keys.next()?;
            let blob = self.data_blobs.next()?;
            let bytes = blobs.get(blob as usize).ok_or_else(|| damaged("an argument's bytes are missing"))?;
            take(room, bytes.len())?;
            data.push(ArgData {
                arg: u8::try_from(key >> 2).map_err(|_| damaged("an argument's number is out of range"))?,
                at: if key & 1 == 0 { Moment::Entry } else { Moment::Exit },
                cut: key & 2 != 0,
                bytes: bytes.clone(),
            });
        }
        Ok(data)
    }
}

fn before(flags: u32) -> Before {
    if flags & flag::ASKED_BEFORE != 0 {
        Before::Same
    } else if flags & flag::ASKED_THE_OTHER_WAY != 0 {
        Before::OtherWay
    } else {
        Before::Unknown
    }
}

/// Values of the row's previous call in the window, to which the next call's differences are added.
#[derive(Default)]
struct Previous {
    nth: u64,
    args: [u64; 6],
    result: i64,
}
