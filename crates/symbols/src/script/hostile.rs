//! Tests with interpreters whose memory is random: every read ends soon and without a panic.

use super::bash::Bash;
use super::dash::Dash;
use super::fuzzing::{PHPS, look_at, look_at_frames, look_at_v8};
use super::hotspot::HotSpot;
use super::hotspot::layout::Layout as HotSpotLayout;
use super::lua::Lua;
use super::lua::layout::Layout as LuaLayout;
use super::luajit;
use super::memory::{Memory, Room, in_turn};
use super::perl::Perl;
use super::perl::layout::Layout as PerlLayout;
use super::php::Php;
use super::php::layout::Layout as PhpLayout;
use super::python::layout::Layout as PythonLayout;
use super::python::{Python, lines as python_lines};
use super::ruby::Ruby;
use super::thread::Thread;
use super::zsh::Zsh;
use crate::lines::ScriptLines;
use proptest::prelude::*;

/// Address of the memory's first byte.
const BASE: u64 = 0x10_000;

/// Generates a memory of few distinct words, so that pointers lead on, in circles and astray.
fn image() -> impl Strategy<Value = Vec<u64>> {
    let word = prop_oneof![
        6 => (0u64..1024).prop_map(|at| BASE + 8 * at),
        1 => Just(0u64),
        1 => Just(7u64),
        1 => Just(1 << 13 | 5),
        1 => Just(0x1a | 7 << 12),
        1 => Just(0x20u64),
        1 => Just(u64::from_le_bytes(*b"code\0str")),
        1 => Just(u64::MAX - 3),
        1 => any::<u64>(),
    ];
    proptest::collection::vec(word, 1024)
}

/// Generates a heap of V8's with few types: pointers are tagged, and most of them lead to a map.
fn heap(newer: bool) -> impl Strategy<Value = Vec<u64>> {
    let kinds: &[u64] = if newer {
        &[
            254, 220, 2065, 282, 280, 167, 186, 190, 187, 217, 196, 205, 256, 1057, 2110, 2115, 162, 161, 277, 8, 9,
            10, 11, 13, 0, 1, 2,
        ]
    } else {
        &[
            255, 205, 2066, 262, 261, 167, 191, 246, 245, 190, 175, 240, 1057, 2106, 2063, 163, 161, 259, 8, 9, 10, 11,
            13, 0, 1, 2,
        ]
    };
    // Maps are the first objects; each has two words, its own map and its type.
    let maps: Vec<u64> = kinds.iter().flat_map(|kind| [BASE + 1, kind << 32]).collect();
    let of_kinds = kinds.len() as u64;
    let word = prop_oneof![
        5 => (0..of_kinds).prop_map(|kind| BASE + 16 * kind + 1),
        5 => (0u64..1024).prop_map(|at| BASE + 8 * at + 1),
        3 => (0u64..1024).prop_map(|at| BASE + 8 * at),
        3 => (0u64..100).prop_map(|number| number << 32),
        1 => any::<u64>(),
    ];
    let rest = 1024 - maps.len();
    proptest::collection::vec(word, rest).prop_map(move |rest| [maps.clone(), rest].concat())
}

fn reader(image: &[u64]) -> impl FnMut(&[u64], &mut [u8]) -> usize + '_ {
    let bytes: Vec<u8> = image.iter().flat_map(|w| w.to_le_bytes()).collect();
    in_turn(move |address, buffer: &mut [u8]| {
        let start = address.checked_sub(BASE).and_then(|o| usize::try_from(o).ok()).unwrap_or(usize::MAX);
        let Some(rest) = bytes.get(start..) else { return 0 };
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        n
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_python_comes_to_an_end(image in image(), told in 8u32..16, tid in 0i32..9) {
        let mut read = reader(&image);
        let mut memory = Memory::new(&mut read);
        if let Some(layout) = PythonLayout::of(&mut memory, BASE, Some(3 << 24 | told << 16)) {
            let mut python = Python::new(layout, BASE);
            for fs_base in [None, image.get(tid as usize).copied()] {
                look_at(&mut python, &mut ScriptLines::default(), &mut memory, (Thread { tid, fs_base }, 0..0));
            }
        }
    }

    #[test]
    fn any_offsets_a_python_tells_are_bounded(mut image in image(), minor in 12u64..16, free in 0u64..2) {
        image[0] = u64::from_le_bytes(*b"xdebugpy");
        image[1] = 3 << 24 | minor << 16;
        image[2] = free;
        let mut read = reader(&image);
        let mut memory = Memory::new(&mut read);
        if let Some(layout) = PythonLayout::of(&mut memory, BASE, None) {
            prop_assert!(free == 0 && (13..=14).contains(&minor));
            let thread = Thread { tid: 7, fs_base: Some(7) };
            look_at(&mut Python::new(layout, BASE), &mut ScriptLines::default(), &mut memory, (thread, 0..0));
        }
    }

    #[test]
    fn any_ruby_comes_to_an_end(image in image(), minor in 0u32..6, stack in 0u64..1024) {
        let mut read = reader(&image);
        let mut memory = Memory::new(&mut read);
        let version = if minor == 5 { (2, 7) } else { (3, minor) };
        if let Some(mut ruby) = Ruby::new(version, BASE) {
            let thread = Thread { tid: 7, fs_base: None };
            let stack = BASE + 8 * stack..BASE + 8 * 1024;
            look_at(&mut ruby, &mut ScriptLines::default(), &mut memory, (thread, stack));
        }
    }

    #[test]
    fn any_shell_comes_to_an_end(image in image(), at in 0u64..1000) {
        let mut read = reader(&image);
        let thread = Thread { tid: 7, fs_base: None };
        look_at(&mut Zsh::at(BASE + 8 * at), &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, 0..0));
        look_at(&mut Bash::at(BASE + 8 * at), &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, 0..0));
    }

    #[test]
    fn any_dash_comes_to_an_end(image in image(), ips in proptest::collection::vec(0u64..8192, 6), at in 0u64..900) {
        let mut read = reader(&image);
        let frames: Vec<(u64, u64)> = (0..).zip(&ips).map(|(n, ip)| (BASE + ip, BASE + 8 * (at + 8 * n))).collect();
        look_at_frames(&mut Dash::at(BASE), &mut Memory::new(&mut read), &frames);
    }

    #[test]
    fn any_lua_comes_to_an_end(image in image(), minor in 0u32..6, release in 2u32..4, stack in 0u64..1024) {
        let mut read = reader(&image);
        if let Some(layout) = LuaLayout::of(minor, release) {
            let at = (Thread { tid: 7, fs_base: None }, BASE + 8 * stack..BASE + 8 * 1024);
            look_at(&mut Lua::new(layout), &mut ScriptLines::default(), &mut Memory::new(&mut read), at);
        }
        let stack = BASE + 8 * stack..BASE + 8 * 1024;
        luajit::interpreted(&mut ScriptLines::default(), &mut Memory::new(&mut read), &stack);
    }

    #[test]
    fn any_perl_comes_to_an_end(image in image(), version in 27u8..44, stack in 0u64..1024) {
        let mut read = reader(&image);
        if let Some(layout) = PerlLayout::of(version) {
            let mut perl = Perl::new(layout, BASE, BASE + 8);
            let stack = BASE + 8 * stack..BASE + 8 * 1024;
            for fs_base in [None, Some(BASE + 64)] {
                let at = (Thread { tid: 7, fs_base }, stack.clone());
                look_at(&mut perl, &mut ScriptLines::default(), &mut Memory::new(&mut read), at);
            }
        }
    }

    #[test]
    fn any_older_v8_comes_to_an_end(image in heap(false), ips in proptest::collection::vec(0u64..8192, 6), at in 48u64..900) {
        let mut read = reader(&image);
        let frames: Vec<(u64, u64)> = (0..).zip(&ips).map(|(n, ip)| (BASE + ip, BASE + 8 * (at + 8 * n))).collect();
        look_at_v8(&mut Memory::new(&mut read), false, &frames);
    }

    #[test]
    fn any_newer_v8_comes_to_an_end(image in heap(true), ips in proptest::collection::vec(0u64..8192, 6), at in 48u64..900) {
        let mut read = reader(&image);
        let frames: Vec<(u64, u64)> = (0..).zip(&ips).map(|(n, ip)| (BASE + ip, BASE + 8 * (at + 8 * n))).collect();
        look_at_v8(&mut Memory::new(&mut read), true, &frames);
    }

    #[test]
    fn any_hotspot_comes_to_an_end(image in image(), newer: bool, stack in 0u64..1024) {
        let mut read = reader(&image);
        let mut hotspot = HotSpot::new(HotSpotLayout::tried(newer, BASE));
        let at = (Thread { tid: 7, fs_base: None }, BASE + 8 * stack..BASE + 8 * 1024);
        look_at(&mut hotspot, &mut ScriptLines::default(), &mut Memory::new(&mut read), at);
    }

    #[test]
    fn any_php_comes_to_an_end(image in image(), version in 0usize..4, at in 0u64..1000) {
        let mut read = reader(&image);
        if let Some(layout) = PhpLayout::of(PHPS[version]) {
            let mut php = Php::new(layout, BASE + 8 * at - 488);
            let thread = Thread { tid: 7, fs_base: None };
            look_at(&mut php, &mut ScriptLines::default(), &mut Memory::new(&mut read), (thread, 0..0));
        }
    }

    #[test]
    fn what_is_read_ahead_changes_nothing(image in image(), minor in 9u32..15, pages in proptest::collection::vec(8u64..24, 0..8)) {
        let mut read = reader(&image);
        let wanted: Vec<u64> = pages.iter().map(|p| p * 4096).collect();
        let thread = Thread { tid: 7, fs_base: None };
        let mut looks = |wanted: &[u64]| {
            let layout = PythonLayout::of(&mut Memory::new(&mut read), BASE, Some(3 << 24 | minor << 16))?;
            let mut python = Python::new(layout, BASE);
            let mut lines = ScriptLines::default();
            let mut look = |room, wanted: &[u64]| {
                let mut memory = Memory::ahead(&mut read, room, wanted);
                let told = look_at(&mut python, &mut lines, &mut memory, (thread, 0..0));
                (told, memory.end())
            };
            let (first, ended) = look(Room::default(), wanted);
            Some((first, look(ended.room, &ended.needed).0))
        };
        let (one_by_one, at_once) = (looks(&[]), looks(&wanted));
        prop_assert_eq!(one_by_one, at_once);
    }

    #[test]
    fn any_table_of_lines_is_read(table in proptest::collection::vec(any::<u8>(), 0..400), first: u32, offset: u32) {
        for minor in [9, 10, 11, 14] {
            python_lines::line(minor, &table, first, offset);
            python_lines::line(minor, &table, first, offset % 64);
        }
    }
}

/// Checks tables that CPython 3.9.18, 3.10.13, 3.11.7 and 3.13.0 made for `def f(a):\n x = a\n if x:\n  return [\n
/// a,\n   x]\n` against the lines that `dis` prints.
#[test]
fn lines_are_as_dis_has_them() {
    let check = |minor, table: &[u8], first, lines: &[Option<u32>]| {
        for (at, line) in (0..).zip(lines) {
            assert_eq!(python_lines::line(minor, table, first, 2 * at), *line, "3.{minor} at {at}");
        }
        // No line is returned beyond the code, except in the oldest format, which has no end.
        assert!(minor == 9 || python_lines::line(minor, table, first, 2 * lines.len() as u32).is_none());
    };
    // Table of 3.9:
    let table: &[u8] = &[0, 1, 4, 1, 4, 2, 2, 1, 2, 254];
    let lines = [Some(2), Some(2), Some(3), Some(3), Some(5), Some(6), Some(4), Some(4), Some(4), Some(4)];
    check(9, table, 1, &lines);
    // Table of 3.10:
    let table: &[u8] = &[4, 1, 4, 1, 2, 2, 2, 1, 4, 254, 4, 255];
    let lines = [Some(2), Some(2), Some(3), Some(3), Some(5), Some(6), Some(4), Some(4), Some(3), Some(3)];
    check(10, table, 1, &lines);
    // Table of 3.11:
    let table: &[u8] = &[
        128, 0, 216, 5, 6, 128, 17, 216, 4, 5, 240, 0, 3, 2, 6, 224, 3, 4, 216, 3, 4, 240, 5, 2, 10, 6, 240, 0, 2, 3,
        6, 240, 3, 3, 2, 6, 240, 0, 3, 2, 6,
    ];
    let lines = [Some(1), Some(2), Some(2), Some(3), Some(3), Some(5), Some(6), Some(4), Some(4), Some(3), Some(3)];
    check(11, table, 1, &lines);
    // Table of 3.13:
    let table: &[u8] = &[
        128, 0, 216, 5, 6, 128, 17, 222, 4, 5, 224, 3, 4, 216, 3, 4, 240, 5, 2, 10, 6, 240, 0, 2, 3, 6, 240, 3, 0, 5, 6,
    ];
    let lines = [
        Some(1),
        Some(2),
        Some(2),
        Some(3),
        Some(3),
        Some(3),
        Some(3),
        Some(3),
        Some(3),
        Some(3),
        Some(5),
        Some(6),
        Some(4),
        Some(4),
        Some(3),
    ];
    check(13, table, 1, &lines);
}
