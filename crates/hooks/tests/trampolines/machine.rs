//! Tests that counting changes no register, no byte of the red zone, and no x87 or SSE state.

use crate::counts::{EACH_LONG, TIMED};
use crate::lab::{File, Lab, SHORT, apart, half, image_words, set_limits};
use crate::server::Server;
use iced_x86::code_asm::*;
use std::sync::atomic::Ordering::SeqCst;
use systoll_hooks::assemble::Options;
use systoll_hooks::layout::{IMAGE, Question, image, ring, slot, want, windows};

const GETPPID: u32 = 110;
const XMM: [AsmRegisterXmm; 16] =
    [xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7, xmm8, xmm9, xmm10, xmm11, xmm12, xmm13, xmm14, xmm15];

/// Adds `check()`, which sets all registers that the kernel preserves and makes a call. It returns
/// 1 if one has changed.
fn check(file: &mut File, name: &'static str, wrapped: bool) {
    let saved = [rbx, rbp, r12, r13, r14, r15];
    let watched = [rbx, rbp, r12, r13, r14, r15, rdi, rsi, rdx, r8, r9, r10];
    let red_zone = [8, 16, 64, 120, 128];
    file.function(name);
    let a = &mut file.a;
    let mut bad = a.create_label();
    for register in saved {
        a.push(register).unwrap();
    }
    a.fldpi().unwrap();
    for (i, register) in (1u64..).zip(watched) {
        a.mov(register, i * 0x1111_2222_3333).unwrap();
    }
    for register in XMM {
        a.movq(register, rbx).unwrap();
    }
    for offset in red_zone {
        a.mov(qword_ptr(rsp - offset), offset).unwrap();
    }
    file.site(Some(GETPPID), wrapped, 56);
    let a = &mut file.a;
    // If the stack pointer were wrong, other contents would be found here.
    for offset in red_zone {
        a.cmp(qword_ptr(rsp - offset), offset).unwrap();
        a.jne(bad).unwrap();
    }
    for (i, register) in (1u64..).zip(watched) {
        a.mov(rcx, i * 0x1111_2222_3333).unwrap();
        a.cmp(register, rcx).unwrap();
        a.jne(bad).unwrap();
    }
    for register in XMM {
        a.movq(rcx, register).unwrap();
        a.cmp(rcx, rbx).unwrap();
        a.jne(bad).unwrap();
    }
    a.fldpi().unwrap();
    a.fcomip(st0, st1).unwrap();
    a.jne(bad).unwrap();
    a.xor(eax, eax).unwrap();
    let mut end = a.create_label();
    a.jmp(end).unwrap();
    a.set_label(&mut bad).unwrap();
    a.mov(eax, 1).unwrap();
    a.set_label(&mut end).unwrap();
    a.fstp(st0).unwrap();
    for register in saved.into_iter().rev() {
        a.pop(register).unwrap();
    }
    a.ret().unwrap();
}

#[test]
fn the_machine_is_as_it_was() {
    apart("machine::the_machine_is_as_it_was", || {
        for options in [TIMED, Options { windows: true, ..TIMED }, Options { elide: true, ..TIMED }, EACH_LONG] {
            crate::forked(|| {
                let mut file = File::new();
                check(&mut file, "placed", false);
                check(&mut file, "wrapped", true);
                let lab = Lab::new(file, options);
                lab.enter(0);
                let server = Server::start(&[]);
                for _ in 0..100_000 {
                    assert_eq!(lab.call("placed", &[]) + lab.call("wrapped", &[]), 0);
                }
                let asked = server.stop();
                assert_eq!(asked.count(Question::Context), 2);
                if !options.elide {
                    assert_eq!(lab.total(GETPPID), (200_000, 200_000, 0, 0));
                }
            });
        }
    });
}

#[test]
fn registers_are_unchanged_when_windows_are_written() {
    apart("machine::registers_are_unchanged_when_windows_are_written", || {
        let mut file = File::new();
        check(&mut file, "placed", false);
        check(&mut file, "wrapped", true);
        flags(&mut file);
        let lab = Lab::new(file, Options { windows: true, ..TIMED });
        lab.enter(0);
        half(IMAGE + image::WINDOWS).store(windows::OWN, SeqCst);
        let server = Server::opening(&[], 1);
        for n in 0..20_000 {
            let slot = |offset: u64| &image_words()[(image::SLOTS + offset) as usize / 8];
            if n % 20 == 0 {
                slot(slot::RING_HEADERS + ring::STATE).store(ring::state::FREE, SeqCst);
                slot(slot::WANT).store(want::RING, SeqCst);
            }
            assert_eq!(lab.call("placed", &[]) + lab.call("wrapped", &[]), 0);
            assert_eq!(lab.call("flags", &[0xad7]) as u64, 0xad7, "{n}");
        }
        server.stop();
        assert!(image_words()[(image::SLOTS + slot::RING_CALLS) as usize / 8].load(SeqCst) > 30_000);
    });
}

#[test]
fn registers_are_unchanged_without_a_launcher() {
    apart("machine::registers_are_unchanged_without_a_launcher", || {
        let mut file = File::new();
        check(&mut file, "placed", false);
        let lab = Lab::new(file, TIMED);
        lab.enter(0);
        set_limits(SHORT);
        for _ in 0..1000 {
            assert_eq!(lab.call("placed", &[]), 0);
        }
        assert_eq!(lab.read().losses.unanswered, 1);
    });
}

/// Adds `flags(set)`, which sets the flags, makes a call, and returns the flags behind it.
fn flags(file: &mut File) {
    file.function("flags");
    let a = &mut file.a;
    a.push(rdi).unwrap();
    a.popfq().unwrap();
    file.site_that_keeps_flags(GETPPID, 8);
    let a = &mut file.a;
    a.pushfq().unwrap();
    a.pop(rax).unwrap();
    a.ret().unwrap();
}

#[test]
fn flags_that_outlive_a_call_are_as_they_were() {
    apart("machine::flags_that_outlive_a_call_are_as_they_were", || {
        for options in [TIMED, Options { windows: true, ..TIMED }, Options { elide: true, ..TIMED }, EACH_LONG] {
            crate::forked(|| {
                let mut file = File::new();
                flags(&mut file);
                let lab = Lab::new(file, options);
                lab.enter(0);
                let server = Server::start(&[]);
                // The bits are CF, PF, AF, ZF, SF and OF; 0x202 is the flag of interrupts, which
                // are on, and a bit that is always set.
                let bits = [0, 2, 4, 6, 7, 11];
                for n in 0..64 {
                    let set = bits.iter().enumerate().fold(0x202, |all, (i, bit)| all | ((n >> i) & 1) << bit);
                    assert_eq!(lab.call("flags", &[set]) as u64, set);
                }
                assert_eq!(server.stop().count(Question::Context), 1);
                assert_eq!(lab.total(GETPPID), (64, 0, 0, 0));
            });
        }
    });
}

#[test]
fn a_return_that_needs_flags_is_left_alone() {
    // The instruction behind the call reads the carry flag that was set before the call.
    use systoll_hooks::assemble::{Refused, Unhooked, assemble};
    use systoll_hooks::plan::{Plan, Site, Span};
    let span =
        |start, bytes: &[u8], instructions| Some(Span { start, bytes: bytes.to_vec(), instructions, padding: 0 });
    let site = |tail: &[u8], instructions| Site {
        entry_span: span(0x1000, &[0xb8, 110, 0, 0, 0], 1),
        return_span: span(0x1007, tail, instructions),
        ..Site::new(0x1005, Some(GETPPID))
    };
    let refused = |tail: &[u8], instructions| {
        let plan = Plan { sites: vec![site(tail, instructions)], ..Plan::default() };
        assemble(&plan, &TIMED, -0x10_0000).unwrap().refused
    };
    let expected = [Refused { address: 0x1005, what: Unhooked::Return }];
    // Bytes of adc rdx, 1, its constant extended to 4 bytes.
    assert_eq!(refused(&[0x48, 0x81, 0xd2, 1, 0, 0, 0], 1), expected);
    // Bytes of mov [rdi], r11; ret; nop.
    assert_eq!(refused(&[0x4c, 0x89, 0x1f, 0x66, 0x90], 2), expected);
    // Bytes of mov r11, rax and a call: to push the call's return address needs r11.
    assert_eq!(refused(&[0x49, 0x89, 0xc3, 0xe8, 0, 0, 0, 0], 2), expected);
    // Bytes of call rbx; nop: the return address would lie in our code.
    assert_eq!(refused(&[0xff, 0xd3, 0x0f, 0x1f, 0x00], 2), expected);
    // Bytes of mov rdi, rax and a call.
    assert_eq!(refused(&[0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0], 2), []);
    // Bytes of cmp rax, -4095.
    assert_eq!(refused(&[0x48, 0x3d, 1, 0xf0, 0xff, 0xff], 1), []);
}
