//! Entry points for fuzzing: run the readers of scripts' lines on bytes of the caller's.

use super::bash::Bash;
use super::dash::Dash;
use super::hotspot::HotSpot;
use super::hotspot::layout::Layout as HotSpotLayout;
use super::interpreter::{Interpreter, Look};
use super::lua::Lua;
use super::lua::layout::Layout as LuaLayout;
use super::luajit;
use super::memory::{Memory, in_turn};
use super::perf_map::{Functions, of_hotspot, of_v8};
use super::perl::Perl;
use super::perl::layout::Layout as PerlLayout;
use super::php::Php;
use super::php::layout::Layout as PhpLayout;
use super::python::layout::Layout;
use super::python::{Python, lines as python_lines};
use super::ruby::Ruby;
use super::thread::{Evaluation, Thread};
use super::v8::V8;
use super::v8::layout::Layout as V8Layout;
use super::zsh::Zsh;
use crate::lines::ScriptLines;
use crate::{PlacedFrame, RawFrame};
use std::ops::Range;

/// Address of the memory's first byte.
const BASE: u64 = 0x10_000;
/// Interface numbers of PHP: three that are known, and one that is not.
pub(crate) const PHPS: [u32; 4] = [20_190_902, 20_220_829, 20_250_925, 1];
/// Versions of Ruby: six that are known, and one that is not.
const RUBIES: [(u32, u32); 7] = [(2, 7), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (9, 9)];

/// Reads the lines of a thread whose native stack is `stack`.
pub(crate) fn look_at(
    interpreter: &mut dyn Interpreter,
    lines: &mut ScriptLines,
    memory: &mut Memory<'_, '_>,
    (thread, stack): (Thread, Range<u64>),
) -> Option<Vec<Evaluation>> {
    let frame = RawFrame { module: None, address: 0, is_return: true };
    let placed = [stack.start, stack.end].map(|sp| PlacedFrame { frame, ip: 0, sp, constant: true, pointer: None });
    interpreter.evaluations(&mut Look { thread, placed: &placed, memory, lines })
}

/// Reads the lines of a thread that runs V8's compiled code.
pub(crate) fn look_at_v8(memory: &mut Memory<'_, '_>, newer: bool, frames: &[(u64, u64)]) -> Option<Vec<Evaluation>> {
    look_at_frames(&mut V8::new(V8Layout::tried(newer).into()), memory, frames)
}

/// Reads the lines of a thread whose native frames have these instruction pointers and stack
/// pointers.
pub(crate) fn look_at_frames(
    interpreter: &mut dyn Interpreter,
    memory: &mut Memory<'_, '_>,
    frames: &[(u64, u64)],
) -> Option<Vec<Evaluation>> {
    let frame = |ip| RawFrame { module: None, address: ip, is_return: true };
    let place =
        |(ip, sp): &(u64, u64)| PlacedFrame { frame: frame(*ip), ip: *ip, sp: *sp, constant: true, pointer: None };
    let placed: Vec<PlacedFrame> = frames.iter().map(place).collect();
    let thread = Thread { tid: 7, fs_base: None };
    let lines = &mut ScriptLines::default();
    interpreter.evaluations(&mut Look { thread, placed: &placed, memory, lines })
}

pub(crate) fn use_heap(bytes: &[u8], seed: u64) {
    let mut read = in_turn(|address: u64, buffer: &mut [u8]| {
        let start = address.checked_sub(BASE).and_then(|o| usize::try_from(o).ok()).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        let n = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        n
    });
    let thread = Thread { tid: seed as i32 & 7, fs_base: (seed & 8 != 0).then_some(seed >> 4) };
    let stack = BASE + seed % 4096 * 8..BASE + bytes.len() as u64;
    use_shells_and_runtimes(&mut read, seed, (thread, stack.clone()));
    use_by_versions(&mut read, seed, (thread, stack));
    for minor in 8..16 {
        python_lines::line(minor, bytes, seed as u32, (seed >> 32) as u32 % 4096);
    }
}

/// Looks for the frames of the interpreters whose layout is one of few: V8, dash, HotSpot, zsh, bash, LuaJIT.
fn use_shells_and_runtimes(mut read: &mut dyn FnMut(&[u64], &mut [u8]) -> usize, seed: u64, at: (Thread, Range<u64>)) {
    let (thread, stack) = at;
    for newer in [false, true] {
        let frames: Vec<(u64, u64)> =
            (0..4).map(|n| (BASE + seed.rotate_left(n * 9) % 4096, BASE + u64::from(n) * 64)).collect();
        look_at_v8(&mut Memory::new(&mut read), newer, &frames);
        look_at_frames(&mut Dash::at(BASE), &mut Memory::new(&mut read), &frames);
    }
    for newer in [false, true] {
        let mut hotspot = HotSpot::new(HotSpotLayout::tried(newer, BASE));
        look_at(&mut hotspot, &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, stack.clone()));
    }
    look_at(&mut Zsh::at(BASE), &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, 0..0));
    look_at(&mut Bash::at(BASE), &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, 0..0));
    luajit::interpreted(&mut ScriptLines::default(), &mut Memory::new(&mut read), &stack);
}

/// Looks for the frames of the interpreters whose layout differs by version: Python, Lua, Perl, PHP, Ruby.
fn use_by_versions(mut read: &mut dyn FnMut(&[u64], &mut [u8]) -> usize, seed: u64, at: (Thread, Range<u64>)) {
    let (thread, stack) = at;
    for told in std::iter::once(None).chain((8..16).map(|minor| Some(3 << 24 | minor << 16))) {
        let mut memory = Memory::new(&mut read);
        if let Some(layout) = Layout::of(&mut memory, BASE, told) {
            let mut python = Python::new(layout, BASE);
            look_at(&mut python, &mut ScriptLines::default(), &mut memory, (thread, 0..0));
        }
    }
    for (minor, release) in [(1, 5), (2, 4), (3, 6), (4, 2), (4, 6)] {
        if let Some(layout) = LuaLayout::of(minor, release) {
            let mut lua = Lua::new(layout);
            look_at(&mut lua, &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, stack.clone()));
        }
    }
    for version in 27..44 {
        if let Some(layout) = PerlLayout::of(version) {
            let mut perl = Perl::new(layout, BASE, BASE + 8);
            look_at(&mut perl, &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, stack.clone()));
        }
    }
    for interface in PHPS {
        if let Some(layout) = PhpLayout::of(interface) {
            let mut php = Php::new(layout, BASE.wrapping_add(seed % 4096 * 8).wrapping_sub(488));
            look_at(&mut php, &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, 0..0));
        }
    }
    for version in RUBIES {
        let mut memory = Memory::new(&mut read);
        if let Some(mut ruby) = Ruby::new(version, BASE) {
            look_at(&mut ruby, &mut ScriptLines::default(), &mut memory, (thread, stack.clone()));
        }
    }
}

pub(crate) fn use_perf_map(bytes: &[u8], seed: u64) {
    let mut functions = Functions::default();
    functions.add(bytes);
    for n in 0..64 {
        let address = seed.rotate_left(n) & (u64::MAX >> (n & 63));
        if let Some(name) = functions.name(address) {
            let told = [of_v8(&name), of_hotspot(&name)];
            assert!(told.iter().flatten().all(|c| name.contains(c.function) || c.function.starts_with('(')));
        }
    }
}
