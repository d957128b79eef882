//! Tests of planning: rules on generated programs, GHC's tables, files of this machine, a comparison with another
//! disassembler, and damaged files.

mod elf;
mod files;
mod ghc;
mod hostile;
mod oracle;
mod rules;
mod steps;

use systoll_hooks::plan::{Plan, Span};

/// Checks the invariants that every plan has.
fn check(plan: &Plan, elf: &[u8]) {
    let mut spans: Vec<(u64, &Span)> = Vec::new();
    for site in &plan.sites {
        let own = [site.entry_span.as_ref(), site.return_span.as_ref()].into_iter().flatten();
        let mut hooks: Vec<&Span> = own.collect();
        if let [before, after] = hooks[..] {
            assert!(!before.overlaps(after), "{:#x}", site.address);
        }
        if let Some(before) = &site.entry_span {
            assert!(before.end() <= site.address && before.padding == 0, "{:#x}", site.address);
        }
        if let Some(after) = &site.return_span {
            assert_eq!(after.start, site.address + 2);
        }
        if let Some(whole) = &site.wrap_span {
            assert!(whole.start <= site.address && site.address + 2 <= whole.resume(), "{:#x}", site.address);
            hooks.push(whole);
        }
        if !site.exits.is_empty() {
            assert!(hooks.is_empty() && site.returned.is_none(), "{:#x}", site.address);
            hooks.extend(&site.exits);
        }
        let planned = site.entry_span.is_some() || site.wrap_span.is_some() || !site.exits.is_empty();
        assert_eq!(planned, !plan.unplanned.iter().any(|u| u.address == site.address), "{:#x}", site.address);
        spans.extend(hooks.into_iter().map(|span| (site.address, span)));
    }
    spans.extend(plan.entries.iter().map(|e| (e.address, &e.span)));
    spans.sort_by_key(|(_, span)| span.start);
    for (n, (site, span)) in spans.iter().enumerate() {
        check_span(plan, elf, span);
        for (other, next) in spans[n + 1..].iter().take_while(|(_, next)| next.start < span.end()) {
            assert!(site == other, "{:#x} and {:#x} overlap", span.start, next.start);
        }
    }
}

/// Checks that a span consists of whole instructions of the file, lies in code, and has at least five bytes.
fn check_span(plan: &Plan, elf: &[u8], span: &Span) {
    assert!(span.bytes.len() >= 5, "{:#x}", span.start);
    let holds = |s: &&systoll_hooks::plan::Segment| {
        s.executable && span.start >= s.vaddr && span.end() <= s.vaddr + s.file_size
    };
    let segment = plan.segments.iter().find(holds).expect("a span lies in code");
    let at = (span.start - segment.vaddr + segment.file_offset) as usize;
    assert_eq!(elf[at..at + span.bytes.len()], span.bytes, "{:#x}", span.start);
    let decode = |bytes| iced_x86::Decoder::with_ip(64, bytes, span.start, 0).into_iter().collect::<Vec<_>>();
    let code = decode(span.code());
    assert_eq!(code.len(), span.instructions, "{:#x}", span.start);
    assert!(code.iter().all(|i| !i.is_invalid()), "{:#x}", span.start);
    let padding = decode(&span.bytes[span.code().len()..]);
    let idle = |i: &iced_x86::Instruction| i.mnemonic() == iced_x86::Mnemonic::Nop || i.is_int3();
    assert!(padding.iter().all(idle), "{:#x}", span.start);
}

trait Int3 {
    fn is_int3(&self) -> bool;
}

impl Int3 for iced_x86::Instruction {
    fn is_int3(&self) -> bool {
        self.mnemonic() == iced_x86::Mnemonic::Int3
    }
}
