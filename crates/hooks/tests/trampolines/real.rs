//! Plans the C library of this machine, writes its code, and checks the result.

#![expect(clippy::print_stdout, reason = "says what was skipped, and how large things became")]

use crate::counts::{COUNT, TIMED};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};
use std::time::Instant;
use systoll_hooks::assemble::{Blob, Options, Unhooked, assemble};
use systoll_hooks::layout::{IMAGE, NUMBERS, image};
use systoll_hooks::plan::{Plan, plan};

const DELTA: i64 = -(64 << 20);
const FILES: [&str; 2] = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];

/// Returns the plans of the files that exist; prints the names of the missing ones.
fn plans() -> Vec<(&'static str, Plan)> {
    let read = |path: &'static str| match std::fs::read(path) {
        Ok(bytes) => Some((path, plan(&bytes).unwrap())),
        Err(error) => {
            assert!(std::env::var_os("SYSTOLL_TEST_STRICT").is_none(), "{path}: {error}");
            println!("skipped {path}: {error}");
            None
        }
    };
    FILES.into_iter().filter_map(read).collect()
}

#[test]
fn every_planned_site_is_written() {
    for (path, plan) in plans() {
        for options in [COUNT, TIMED, Options { windows: true, elide: true, ..TIMED }] {
            let begun = Instant::now();
            let blob = assemble(&plan, &options, DELTA).unwrap();
            let lost: Vec<_> = blob.refused.iter().filter(|r| r.what != Unhooked::Return).collect();
            println!(
                "{path}: {} of {} sites, {} bytes, {} of call frame information, {:?}; refused {:x?}",
                blob.sites.len(),
                plan.sites.len(),
                blob.code.len(),
                blob.eh_frame(0).len(),
                begun.elapsed(),
                blob.refused
            );
            assert!(lost.len() <= plan.unplanned.len() + 2, "{lost:x?}");
            no_patch_meets_another(&blob);
            jumps_lead_somewhere(&blob);
            assert!(blob.roots(IMAGE + image::ROOTS, NUMBERS).is_ok());
        }
    }
}

fn no_patch_meets_another(blob: &Blob) {
    let mut spans: Vec<_> = blob.patches.iter().map(|p| (p.vaddr, p.vaddr + p.bytes.len() as u64)).collect();
    spans.sort_unstable();
    assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0));
}

/// Checks that every jump of the code leads to an instruction of the code or out of it, and that the code contains no
/// calls.
fn jumps_lead_somewhere(blob: &Blob) {
    let start = 0x4000_0000_0000u64.wrapping_add_signed(blob.delta);
    let instructions: Vec<_> = Decoder::with_ip(64, &blob.code, start, DecoderOptions::NONE).into_iter().collect();
    let starts: std::collections::HashSet<u64> = instructions.iter().map(|i| i.ip()).collect();
    let end = start + blob.code.len() as u64;
    for i in &instructions {
        let calls = matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        assert!(!i.is_invalid() && (!calls || i.code() == Code::Syscall), "{:?} at {:#x}", i.code(), i.ip());
        let target = i.near_branch_target();
        assert!(target == 0 || !(start..end).contains(&target) || starts.contains(&target), "{:#x}", i.ip());
    }
    for patch in &blob.patches {
        let distance = i32::from_le_bytes(patch.bytes[1..5].try_into().unwrap());
        let target = (0x4000_0000_0000 + patch.vaddr + 5).wrapping_add_signed(i64::from(distance));
        assert!(starts.contains(&target), "{:#x}", patch.vaddr);
    }
}

#[test]
fn the_vdso_is_written() {
    // SAFETY: the kernel maps the whole vDSO there: at most two pages of text and one of data.
    let vdso = unsafe {
        let at = libc::getauxval(libc::AT_SYSINFO_EHDR) as *const u8;
        assert!(!at.is_null());
        std::slice::from_raw_parts(at, 0x2000)
    };
    let plan = plan(vdso).unwrap();
    let blob = assemble(&plan, &TIMED, DELTA).unwrap();
    assert_eq!(blob.sites.iter().filter(|s| s.vdso).count(), plan.entries.len());
    assert!(plan.entries.len() >= 4, "{:?}", plan.entries);
    no_patch_meets_another(&blob);
    jumps_lead_somewhere(&blob);
}
