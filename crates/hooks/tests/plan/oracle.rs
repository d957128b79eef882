//! Compares plans with the instructions and jumps that objdump finds.

use crate::files::{HELLO_C, built, ld_so, libc, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use systoll_hooks::plan::{Span, plan};

/// objdump's listing of a file.
#[derive(Default)]
struct Listing {
    /// Length of each instruction, by its address.
    instructions: BTreeMap<u64, u64>,
    /// Targets of the file's jumps and calls.
    targets: BTreeSet<u64>,
    syscalls: BTreeSet<u64>,
}

fn listing(path: &Path) -> Option<Listing> {
    let Ok(output) = Command::new("objdump").args(["-d", "-w"]).arg(path).output() else {
        skip("no objdump here");
        return None;
    };
    let mut listing = Listing::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut columns = line.split('\t');
        let (Some(address), Some(bytes), Some(text)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        let Some(address) = address.trim().strip_suffix(':') else { continue };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        listing.instructions.insert(address, bytes.split_whitespace().count() as u64);
        let words: Vec<&str> = text.split_whitespace().collect();
        if words == ["syscall"] {
            listing.syscalls.insert(address);
        }
        let jump = words.iter().position(|w| w.starts_with('j') || w.starts_with("call") || w.starts_with("loop"));
        let target = jump.and_then(|at| words.get(at + 1)).and_then(|w| u64::from_str_radix(w, 16).ok());
        listing.targets.extend(target);
    }
    assert!(listing.instructions.len() > 1000 && listing.targets.len() > 100, "objdump printed something else");
    Some(listing)
}

impl Listing {
    fn agrees(&self, span: &Span, name: &str) {
        let ours: Vec<u64> =
            iced_x86::Decoder::with_ip(64, &span.bytes, span.start, 0).iter().map(|i| i.ip()).collect();
        for ip in ours {
            assert!(self.instructions.contains_key(&ip), "{name}: {ip:#x} is no instruction to objdump");
        }
        let last = self.instructions.range(..span.end()).next_back().unwrap();
        assert_eq!(last.0 + last.1, span.end(), "{name}: {:#x} ends amid an instruction", span.start);
        let inside = self.targets.range(span.start + 1..span.end()).next();
        assert_eq!(inside, None, "{name}: a jump into {:#x}", span.start);
    }
}

/// Compares the plan of `path` with objdump's listing.
fn compare(path: &Path) {
    let Some(listing) = listing(path) else { return };
    let plan = plan(&std::fs::read(path).unwrap()).unwrap();
    let name = path.display().to_string();
    let sites: BTreeSet<u64> = plan.sites.iter().map(|s| s.address).collect();
    assert_eq!(sites, listing.syscalls, "{name}");
    for site in &plan.sites {
        for span in [&site.entry_span, &site.return_span, &site.wrap_span].into_iter().flatten() {
            listing.agrees(span, &name);
        }
        if let Some(before) = &site.entry_span {
            let past = listing.targets.range(before.end()..=site.address).next();
            assert_eq!(past, None, "{name}: a jump past the hook of {:#x}", site.address);
        }
        let entered = listing.targets.contains(&(site.address + 2));
        assert!(!entered || site.return_is_target, "{name}: {:#x}", site.address);
    }
}

#[test]
fn objdump_agrees_on_libraries() {
    for path in [libc(), ld_so(), crate::files::musl()].into_iter().flatten() {
        compare(&path);
    }
}

#[test]
fn objdump_agrees_on_a_static_program() {
    let dir = tempfile::tempdir().unwrap();
    if let Some(program) = built(dir.path(), "static.c", HELLO_C, &["gcc", "-O2", "-static"]) {
        compare(&program);
    }
}
