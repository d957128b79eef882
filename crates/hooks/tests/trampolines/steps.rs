//! Tests of a signal handler that makes calls after each single instruction of a call that is written.

use crate::lab::apart;
use crate::ring::{GETPGRP, check, lab, open, word};
use crate::server::Server;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use systoll_hooks::layout::{ring, slot, want};

/// Number of instructions after which the next stepped call is interrupted by calls.
static AT_STEP: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
/// Flag of the processor with which a signal follows each instruction.
const TRAP_FLAG: u64 = 1 << 8;
static GETPGRP_AT: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Calls the hooked getpgrp twice after one of the instructions of a stepped call.
extern "C" fn step(_: i32) {
    if STEPS.fetch_add(1, SeqCst) == AT_STEP.load(SeqCst) {
        HANDLED.fetch_add(1, SeqCst);
        for _ in 0..2 {
            call_with_flag(GETPGRP_AT.load(SeqCst), 0);
        }
    }
}

/// Calls a generated function with a flag of the processor set. All calls come from one place, so that they are
/// counted at one node.
#[inline(never)]
fn call_with_flag(address: u64, flag: u64) -> i64 {
    let result;
    // SAFETY: the function has no arguments and keeps to the C convention; the flags are as before at the end.
    unsafe {
        std::arch::asm!(
            "pushfq", "or qword ptr [rsp], r13", "popfq",
            "call r12",
            "pushfq", "xor qword ptr [rsp], r13", "popfq",
            in("r12") address, in("r13") flag, lateout("rax") result, clobber_abi("C"),
        );
    }
    result
}

#[test]
fn calls_of_the_same_function_after_any_instruction_are_in_order() {
    apart("steps::calls_of_the_same_function_after_any_instruction_are_in_order", || {
        let lab = lab();
        lab.enter(0);
        let getpgrp = lab.address("getpgrp");
        GETPGRP_AT.store(getpgrp, SeqCst);
        let server = Server::opening(&[], 1);
        // SAFETY: the call takes no arguments.
        let results = unsafe { HashMap::from([(GETPGRP, i64::from(libc::getpgrp()))]) };
        // SAFETY: a plain structure; the handler is a function of ours.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = step as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut()), 0);
        }
        let (mut made, mut most) = (0, 0);
        loop {
            word(0, slot::WANT).store(want::RING, SeqCst);
            let handled = HANDLED.load(SeqCst);
            for flag in [0, TRAP_FLAG, 0] {
                STEPS.store(0, SeqCst);
                assert_eq!(call_with_flag(getpgrp, flag), results[&GETPGRP]);
            }
            made += 3 + 2 * (HANDLED.load(SeqCst) - handled);
            word(0, slot::WANT).store(want::NOTHING, SeqCst);
            let calls = open(0);
            assert_eq!(check(&calls, &results, 0), 0, "{} {calls:?}", AT_STEP.load(SeqCst));
            let at = AT_STEP.fetch_add(1, SeqCst);
            assert!(calls.len() >= 3, "{at} {calls:?}");
            word(0, slot::RING_HEADERS + ring::STATE).store(ring::state::FREE, SeqCst);
            if handled == HANDLED.load(SeqCst) {
                break;
            }
            most = at;
        }
        server.stop();
        assert!(most > 200, "{most}");
        assert_eq!(lab.total(GETPGRP), (made, made, 0, 0));
    });
}
