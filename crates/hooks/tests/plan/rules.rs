//! Tests one rule of planning each, on programs of a few instructions.

use crate::elf::{DATA, TEXT, program, with_functions};
use systoll_hooks::plan::{Plan, PlanError, Site, UnpatchableReason, plan};

const MOV_39: &[u8] = &[0xb8, 39, 0, 0, 0];
const SYSCALL: &[u8] = &[0x0f, 0x05];
const RET: &[u8] = &[0xc3];
const NOP4: &[u8] = &[0x0f, 0x1f, 0x40, 0x00];
/// A call instruction that leads to another function.
const CALL: &[u8] = &[0xe8, 0x40, 0, 0, 0];
/// An instruction that can't be moved.
const HLT: &[u8] = &[0xf4];
/// A jump that leads to another function; execution does not continue behind it.
const JMP_AWAY: &[u8] = &[0xe9, 0x40, 0, 0, 0];
const MOV_RCX_R10: &[u8] = &[0x49, 0x89, 0xca];
const TEST_EDI: &[u8] = &[0x85, 0xff];

fn planned(parts: &[&[u8]], data: &[u8]) -> Plan {
    let elf = program(&parts.concat(), data);
    let plan = plan(&elf).unwrap();
    crate::check(&plan, &elf);
    plan
}

fn only(parts: &[&[u8]]) -> (Site, Option<UnpatchableReason>) {
    let mut plan = planned(parts, &[]);
    assert_eq!(plan.sites.len(), 1);
    (plan.sites.remove(0), plan.unplanned.first().map(|u| u.why))
}

fn before(site: &Site) -> Option<(u64, usize)> {
    site.entry_span.as_ref().map(|s| (s.start - TEXT, s.bytes.len()))
}

#[test]
fn a_wrapper_is_hooked_on_both_sides() {
    let (site, why) = only(&[MOV_39, SYSCALL, RET, NOP4]);
    assert_eq!((site.address, site.number, why), (TEXT + 5, Some(39), None));
    assert_eq!(before(&site), Some((0, 5)));
    let after = site.return_span.unwrap();
    assert_eq!((after.start - TEXT, after.instructions, after.padding), (7, 1, 4));
    assert_eq!(after.resume() - TEXT, 8);
    assert_eq!(site.wrap_span, None);
}

#[test]
fn nothing_that_reads_rcx_stays_behind_the_hook() {
    let (site, _) = only(&[MOV_39, MOV_RCX_R10, SYSCALL, JMP_AWAY]);
    assert_eq!(before(&site), Some((0, 8)));
    // If the two come in the other order, only the mov and the instructions before it are displaced.
    let (site, _) = only(&[MOV_RCX_R10, MOV_39, SYSCALL, JMP_AWAY]);
    assert_eq!(before(&site), Some((3, 5)));
}

#[test]
fn a_hook_comes_behind_what_sets_the_arguments() {
    // As glibc's pthread_barrier_wait has it: the operation of the futex is ready right before the call.
    let xor_sil: &[u8] = &[0x40, 0x80, 0xf6, 0x81];
    let (site, _) = only(&[MOV_39, xor_sil, SYSCALL, JMP_AWAY]);
    assert_eq!(before(&site), Some((0, 9)));
}

#[test]
fn an_unknown_number_is_final_at_the_hook() {
    let lea_rdi: &[u8] = &[0x48, 0x8d, 0x7c, 0x24, 0x08];
    let (site, _) = only(&[lea_rdi, &[0x89, 0xd8], SYSCALL, JMP_AWAY]);
    assert_eq!((site.number, before(&site)), (None, Some((0, 7))));
    // A number that is known (xor makes it 0, read) might be set behind the hook, but need not.
    let (site, _) = only(&[lea_rdi, &[0x31, 0xc0], SYSCALL, JMP_AWAY]);
    assert_eq!((site.number, before(&site)), (Some(0), Some((0, 7))));
    // Setting half of a register does not tell the whole register's value.
    let (site, _) = only(&[lea_rdi, &[0xb0, 39], SYSCALL, JMP_AWAY]);
    assert_eq!(site.number, None);
}

#[test]
fn a_number_is_not_believed_beyond_a_join() {
    // A jmp over `mov $40`: two numbers meet at the lea.
    let jump_in: &[u8] = &[0xeb, 5];
    let lea_rdi: &[u8] = &[0x48, 0x8d, 0x7c, 0x24, 0x08];
    let (site, _) = only(&[&[0xb8, 40, 0, 0, 0], jump_in, MOV_39, lea_rdi, SYSCALL, JMP_AWAY]);
    assert_eq!((site.number, before(&site)), (None, Some((12, 5))));
}

#[test]
fn no_jump_leads_past_a_hook() {
    // A jne leads to the call itself.
    let (site, why) = only(&[TEST_EDI, &[0x75, 5], MOV_39, SYSCALL, HLT, RET]);
    assert_eq!((site.entry_span, site.wrap_span, why), (None, None, Some(UnpatchableReason::BranchTarget)));
    // A jne leads between hook and call.
    let xor_edi: &[u8] = &[0x31, 0xff];
    let (site, why) = only(&[TEST_EDI, &[0x75, 5], MOV_39, xor_edi, SYSCALL, HLT, RET]);
    assert_eq!((site.entry_span, site.wrap_span, why), (None, None, Some(UnpatchableReason::BranchTarget)));
    // If there is room behind the call, a window that starts at the jump's target contains the call.
    let (site, why) = only(&[TEST_EDI, &[0x75, 5], MOV_39, SYSCALL, RET, NOP4]);
    assert_eq!((site.entry_span, why), (None, None));
    assert!(site.return_span.is_some() && site.wrap_span.is_some_and(|w| w.start == site.address));
    // A jne to the start of the hook does no harm.
    let (site, _) = only(&[TEST_EDI, &[0x75, 0], MOV_39, SYSCALL, RET, NOP4]);
    assert_eq!(before(&site), Some((4, 5)));
}

#[test]
fn the_inside_of_an_instruction_is_inside() {
    // A jump leads over a lock prefix, as in old C libraries.
    let lock_inc: &[u8] = &[0xf0, 0xff, 0x44, 0x24, 0x08];
    let (site, _) = only(&[TEST_EDI, &[0x75, 1], lock_inc, SYSCALL, RET, NOP4]);
    assert_eq!(site.entry_span, None);
}

#[test]
fn jump_tables_count() {
    let table_at = |target: u64| {
        let lea = DATA - (TEXT + 7);
        let mut code = vec![0x48, 0x8d, 0x15];
        code.extend((lea as u32).to_le_bytes());
        // The code is movslq (%rdx,%rdi,4),%rax; add %rdx,%rax; notrack jmp *%rax.
        code.extend([0x48, 0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0]);
        code.extend([MOV_39, SYSCALL, RET, NOP4].concat());
        let entry = |target: u64| ((TEXT + target).wrapping_sub(DATA) as u32).to_le_bytes();
        let elf = program(&code, &[entry(17), entry(target), [0x7f; 4]].concat());
        let plan = plan(&elf).unwrap();
        crate::check(&plan, &elf);
        plan.sites[0].clone()
    };
    let free = table_at(17);
    assert_eq!((free.address - TEXT, before(&free)), (22, Some((17, 5))));
    assert_eq!(table_at(18).entry_span, None);
    assert_eq!(table_at(22).entry_span, None);
    assert!(free.return_span.is_some() && table_at(25).return_span.is_none());
    assert_eq!((table_at(24).return_is_target, free.return_is_target), (true, false));
}

#[test]
fn numbers_that_are_addresses_count() {
    let beside = |number: &[&[u8]]| {
        let code = [number, &[MOV_39, SYSCALL, RET, NOP4]].concat();
        before(&only(&code).0).map(|(start, len)| (start as usize - number.concat().len(), len))
    };
    let inside = |len: u64| TEXT + len + 1;
    // A mov to edx and a movabs to rdx hold an address inside the instruction before the call.
    let (four, eight) = ((inside(5) as u32).to_le_bytes(), inside(10).to_le_bytes());
    assert_eq!((beside(&[&[0xba], &four]), beside(&[&[0x48, 0xba], &eight])), (None, None));
    // Four of these bytes alone would be such an address, but the movabs holds eight.
    let more = (inside(10) | 0x0302 << 48).to_le_bytes();
    assert_eq!(beside(&[&[0x48, 0xba], &more]), Some((0, 5)));
}

/// Plans a function that jumps through a table of distances from a label. Like one of glibc's `vfprintf`, it contains
/// a call far from the label and closely followed by a jump. `entry` lists entries of the table besides the labels'
/// distances.
fn by_labels(call: &str, entry: &str) -> Option<Plan> {
    let plan = built_by_labels(call, entry)?;
    assert_eq!(plan.sites.len(), 1);
    Some(plan)
}

fn built_by_labels(call: &str, entry: &str) -> Option<Plan> {
    let dir = tempfile::tempdir().unwrap();
    let source = format!(
        ".globl f
        .type f, @function
        f: .cfi_startproc
        lea 2f(%rip), %rdx
        lea 1f(%rip), %rax
        movslq (%rdx,%rdi,4), %rdi
        add %rdi, %rax
        jmp *%rax
        1: ret
        .fill 4000, 1, 0x90
        {call}
        4: syscall
        5: jmp 1b
        6: ret
        .cfi_endproc
        .size f, .-f
        .section .rodata
        .balign 4
        2: .long 1b-1b, 3b-1b, 5b-1b, 6b-1b
        {entry}"
    );
    let flags = ["gcc", "-shared", "-nostdlib", "-Wl,-z,noexecstack"];
    let file = crate::files::built(dir.path(), "labels.S", &source, &flags)?;
    let elf = std::fs::read(file).unwrap();
    let plan = plan(&elf).unwrap();
    crate::check(&plan, &elf);
    Some(plan)
}

/// A file full of calls beside labels: only a limited number of them is examined.
#[test]
fn calls_beside_labels_without_end_are_not_looked_at() {
    let more = |n: usize| "3: mov $202, %eax; syscall; jmp 1b\n".repeat(n) + "mov $202, %eax";
    for (call, expected) in [(more(15), 0), (more(16), 17)] {
        let Some(plan) = built_by_labels(&call, "") else { return };
        assert_eq!(plan.unplanned.len(), expected);
    }
}

#[test]
fn a_call_that_no_distance_from_a_label_leads_to_is_hooked() {
    let Some(plan) = by_labels("3: mov $202, %eax", "") else { return };
    let site = &plan.sites[0];
    assert_eq!((plan.unplanned.len(), site.number, &site.wrap_span), (0, Some(202), &None));
    assert_eq!(site.entry_span.as_ref().map(|s| (s.end(), s.instructions)), Some((site.address, 1)));
    assert_eq!(site.return_span.as_ref().map(|s| s.instructions), Some(1));
    assert!(site.return_is_target);
}

#[test]
fn distances_from_labels_are_unknown() {
    let cases = [
        // The table contains the call's own distance, in four bytes or in two.
        ("3: mov $202, %eax", ".long 4b-1b"),
        ("3: mov $202, %eax", ".short 4b-1b, 0"),
        // Here a label may lie between the instructions before the call.
        ("3: mov $202, %eax; nop", ""),
        ("3: push $202; pop %rax", ""),
        ("3: nop; mov $202, %al", ""),
    ];
    for (call, entry) in cases {
        let Some(plan) = by_labels(call, entry) else { return };
        assert_eq!(plan.unplanned.first().map(|u| u.why), Some(UnpatchableReason::NotSurelyCode), "{call} {entry}");
        let site = &plan.sites[0];
        assert_eq!((&site.entry_span, &site.return_span, &site.wrap_span), (&None, &None, &None));
    }
}

#[test]
fn pointers_in_data_count() {
    let code = [MOV_39, SYSCALL, RET, NOP4];
    let at = |address: u64| planned(&code, &address.to_le_bytes()).sites[0].clone();
    assert!(at(TEXT).entry_span.is_some());
    assert!(at(TEXT + 3).entry_span.is_none());
    assert!(at(TEXT + 8).return_span.is_none());
}

#[test]
fn flags_that_outlive_a_call_are_kept() {
    let je: &[u8] = &[0x74, 0x10];
    let (site, why) = only(&[TEST_EDI, MOV_39, SYSCALL, je, RET, NOP4]);
    assert_eq!((before(&site), site.return_span.is_some(), why), (Some((2, 5)), false, None));
    assert!(site.keeps_flags);
    let (site, _) = only(&[TEST_EDI, MOV_39, SYSCALL, TEST_EDI, je, RET, NOP4]);
    assert!(site.entry_span.is_some() && !site.keeps_flags);
    // If eax may hold anything, there is no place to save the flags in.
    let mov_eax_esi: &[u8] = &[0x89, 0xf0];
    let mov_edi_1: &[u8] = &[0xbf, 1, 0, 0, 0];
    let (site, why) = only(&[TEST_EDI, mov_edi_1, mov_eax_esi, SYSCALL, je, RET, NOP4]);
    assert_eq!((site.entry_span, why), (None, Some(UnpatchableReason::FlagsInUse)));
    // Fork: a new process, too, would need the flags.
    let (site, why) = only(&[TEST_EDI, &[0xb8, 57, 0, 0, 0], SYSCALL, je, RET, NOP4]);
    assert_eq!((site.entry_span, why), (None, Some(UnpatchableReason::FlagsInUse)));
    // exit_group never returns, so nothing needs the flags behind it.
    let (site, _) = only(&[TEST_EDI, &[0xb8, 231, 0, 0, 0], SYSCALL, je, RET, NOP4]);
    assert!(site.entry_span.is_some() && !site.keeps_flags);
}

#[test]
fn calls_and_landing_places_stay() {
    let (site, why) = only(&[MOV_39, CALL, SYSCALL, HLT, RET]);
    assert_eq!((site.entry_span, site.return_span, why), (None, None, Some(UnpatchableReason::Fixed)));
    let endbr: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    let (site, why) = only(&[MOV_39, endbr, SYSCALL, HLT, RET]);
    assert_eq!((site.entry_span, why), (None, Some(UnpatchableReason::Fixed)));
    // jrcxz has only a one-byte distance and can't be moved, however near its target is.
    let jrcxz: &[u8] = &[0xe3, 0x10];
    let (site, _) = only(&[MOV_39, SYSCALL, jrcxz, RET, NOP4]);
    assert_eq!(site.return_span, None);
}

#[test]
fn a_call_behind_is_the_last_to_be_displaced() {
    let mov_rdi_rax: &[u8] = &[0x48, 0x89, 0xc7];
    let (site, _) = only(&[MOV_39, SYSCALL, mov_rdi_rax, CALL, RET]);
    let after = site.return_span.unwrap();
    assert_eq!((after.start - TEXT, after.instructions, after.padding), (7, 2, 0));
    assert_eq!(after.resume(), TEXT + 15, "where the call returns to");
    // This call's return address would lie inside the five bytes of the jump that replaces it.
    let call_rax: &[u8] = &[0xff, 0xd0];
    let (site, _) = only(&[MOV_39, SYSCALL, call_rax, mov_rdi_rax, RET]);
    assert_eq!(site.return_span, None);
}

#[test]
fn calls_are_not_moved_if_there_may_be_a_shadow_stack() {
    let dir = tempfile::tempdir().unwrap();
    let source = "__attribute__((noinline)) static long g(long r) { __asm__ volatile(\"\"); return r + 1; }
        long f(void) {
            long r;
            __asm__ volatile(\"mov $39, %%eax; syscall\" : \"=a\"(r) : : \"rcx\", \"r11\", \"memory\");
            return g(r) * 3;
        }";
    for (protection, movable) in [("-fcf-protection=none", true), ("-fcf-protection=full", false)] {
        let flags = ["gcc", "-O2", "-fPIC", "-shared", "-nostdlib", protection];
        let Some(file) = crate::files::built(dir.path(), "called.c", source, &flags) else { return };
        let elf = std::fs::read(file).unwrap();
        let plan = plan(&elf).unwrap();
        crate::check(&plan, &elf);
        assert_eq!(plan.sites.len(), 1);
        assert_eq!(plan.sites[0].return_span.is_some(), movable, "{protection}: {:?}", plan.sites[0]);
    }
}

#[test]
fn a_call_at_a_function_s_end_returns_to_its_only_caller() {
    let mov_eax_edi: &[u8] = &[0x89, 0xf8];
    let mov_rdi_rsi: &[u8] = &[0x48, 0x89, 0xf7];
    // The caller calls past its own return to the function's body; behind that there is room for a hook.
    let caller: &[u8] = &[0xe8, 6, 0, 0, 0];
    let head = [caller, &[0x48, 0x89, 0xc2, 0x90, 0x90], RET].concat();
    let body = [mov_eax_edi, mov_rdi_rsi, SYSCALL, RET, &[0xf4]].concat();
    let plan = planned(&[&head, &body], &[]);
    let site = &plan.sites[0];
    assert_eq!((site.number, site.return_span.is_none(), before(site)), (None, true, Some((11, 5))));
    assert_eq!(site.returned.as_ref().map(|r| (r.start - TEXT, r.bytes.len())), Some((5, 5)));
    // With another caller the return address is not known.
    let again = [&[0xe8][..], &(-(body.len() as i32) - 5).to_le_bytes(), RET].concat();
    assert_eq!(planned(&[&head, &body, &again], &[]).sites[0].returned, None);
}

#[test]
fn clones_and_unknown_calls_can_be_wrapped() {
    let (site, _) = only(&[&[0xb8, 56, 0, 0, 0], SYSCALL, RET, NOP4]);
    let whole = site.wrap_span.unwrap();
    assert_eq!((whole.start - TEXT, whole.bytes.len(), whole.instructions, whole.padding), (5, 7, 2, 4));
    let (site, _) = only(&[&[0x90, 0x89, 0xf8], MOV_RCX_R10, SYSCALL, JMP_AWAY]);
    assert!(site.number.is_none() && site.wrap_span.is_some());
}

#[test]
fn neighbours_share_nothing() {
    let mov_ebp: &[u8] = &[0x89, 0xc5];
    let plan = planned(&[MOV_39, SYSCALL, mov_ebp, MOV_39, SYSCALL, RET, NOP4], &[]);
    let counted = |s: &Site| s.entry_span.is_some() || s.wrap_span.is_some();
    assert!(plan.sites.iter().all(counted), "both are counted");
    // The second call has no frame information. It is made elsewhere, so that the first has room.
    assert!(plan.sites[0].return_span.is_some() && plan.sites[1].entry_span.is_none());
}

#[test]
fn use_of_gs_is_reported() {
    let mov_gs: &[u8] = &[0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
    let mov_fs: &[u8] = &[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
    let wrgsbase: &[u8] = &[0xf3, 0x48, 0x0f, 0xae, 0xd8];
    let mov_sreg: &[u8] = &[0x8e, 0xe8];
    let prctl = |what: u8| [&[0xbf, what, 0x10, 0, 0], &[0xb8, 158, 0, 0, 0][..]].concat();
    let uses_gs = |code: &[u8]| planned(&[code, SYSCALL, RET, NOP4], &[]).uses_gs.is_some();
    assert!(uses_gs(mov_gs) && uses_gs(wrgsbase) && uses_gs(mov_sreg) && uses_gs(&prctl(1)));
    assert!(!uses_gs(mov_fs) && !uses_gs(MOV_39) && !uses_gs(&prctl(2)));
}

/// Bytes of `mov %gs:0,%rax`.
const MOV_GS: &[u8] = &[0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
/// Bytes of a `jmp` over the nine bytes that follow.
const OVER_9: &[u8] = &[0xeb, 9];

fn with_function(parts: &[&[u8]]) -> Plan {
    let code = parts.concat();
    let elf = with_functions(&code, &[(0, code.len() as u64)]);
    let plan = plan(&elf).unwrap();
    crate::check(&plan, &elf);
    plan
}

#[test]
fn use_of_gs_is_reported_with_its_instruction() {
    let plan = with_function(&[MOV_39, SYSCALL, MOV_GS, RET, NOP4]);
    let evidence = plan.uses_gs.unwrap();
    assert_eq!((evidence.address, evidence.bytes.as_slice()), (TEXT + 7, MOV_GS));
    assert_eq!(evidence.to_string(), "mov (65 48 8b 04 25 00 00 00 00) at 0x401007");
}

#[test]
fn data_in_a_function_does_not_use_gs() {
    let plan = with_function(&[OVER_9, MOV_GS, MOV_39, SYSCALL, RET, NOP4]);
    assert_eq!(plan.uses_gs, None);
    assert_eq!(plan.sites.len(), 1);
    assert!(plan.sites[0].entry_span.is_some());
    // The same holds if a jump leads there.
    let plan = with_function(&[&[0xeb, 0], MOV_GS, MOV_39, SYSCALL, RET, NOP4]);
    assert!(plan.uses_gs.is_some());
    // An instruction that sets the gs base counts wherever it lies in a function.
    let wrgsbase = &[0xf3, 0x48, 0x0f, 0xae, 0xd8, 0x90, 0x90, 0x90, 0x90];
    assert!(with_function(&[OVER_9, wrgsbase, MOV_39, SYSCALL, RET, NOP4]).uses_gs.is_some());
}

#[test]
fn data_in_a_function_is_no_call() {
    // Where code continues lie zeroes and a word that ends like a call.
    let table = &[0, 0, 0, 0, 0, 0x18, 0xc5, 0x0f, 0x05];
    let plan = with_function(&[OVER_9, table, MOV_39, SYSCALL, RET, NOP4]);
    let calls: Vec<u64> = plan.sites.iter().map(|s| s.address - TEXT).collect();
    assert_eq!((calls, plan.unplanned.len()), (vec![16], 0));
    // Bytes that may be a call are reported, but not hooked.
    let call = &[0, 0, 0xb8, 39, 0, 0, 0, 0x0f, 0x05];
    let plan = with_function(&[OVER_9, call, MOV_39, SYSCALL, RET, NOP4]);
    assert_eq!(plan.sites.len(), 2);
    assert_eq!(plan.unplanned.iter().map(|u| u.why).collect::<Vec<_>>(), [UnpatchableReason::NotSurelyCode]);
}

#[test]
fn a_call_hidden_by_data_is_reported() {
    // The table's last bytes, decoded as an instruction, swallow the first bytes of the code behind it.
    let table = &[0, 0, 0, 0, 0, 0, 0, 0x48, 0xb8];
    let plan = with_function(&[OVER_9, table, MOV_39, SYSCALL, RET, NOP4]);
    assert_eq!(plan.sites.iter().map(|s| s.address - TEXT).collect::<Vec<_>>(), [16]);
}

#[test]
fn bytes_of_a_call_are_not_yet_one() {
    // The bytes of a call occur here inside mov $0x50f,%eax.
    let plan = planned(&[&[0xb8, 0x0f, 0x05, 0, 0], RET], &[]);
    assert_eq!((plan.sites.len(), plan.segments.len()), (0, 2));
}

#[test]
fn other_files_are_refused() {
    assert_eq!(plan(b""), Err(PlanError::Malformed));
    assert_eq!(plan(b"#!/bin/sh\n"), Err(PlanError::Malformed));
    let elf = program(MOV_39, &[]);
    let with = |at: usize, byte: u8| {
        let mut elf = elf.clone();
        elf[at] = byte;
        plan(&elf)
    };
    assert_eq!(with(18, 183), Err(PlanError::Foreign), "aarch64");
    assert_eq!(with(4, 1), Err(PlanError::Foreign), "32 bits");
    assert!(plan(&elf).is_ok());
}

#[test]
fn a_constant_among_the_code_is_no_call() {
    // As in a table of OpenSSL, or %esp,%esi, xchg %eax,%edx and an invalid instruction follow the bytes of a call.
    let table: &[u8] =
        &[0x28, 0xaa, 0x3f, 0x07, 0x1f, 0x02, 0x0f, 0x05, 0x09, 0xe6, 0x92, 0xc6, 0xa8, 0x8f, 0x7f, 0x68];
    let (site, why) = only(&[MOV_39, SYSCALL, RET, table]);
    assert_eq!((site.address, why), (TEXT + 5, None));
    // Here the code branches first, so a thread that runs it may never reach the invalid instruction.
    let plan = planned(&[MOV_39, SYSCALL, RET, &[0x0f, 0x05, 0x74, 0x02, 0xc6, 0xa8, 0x8f, 0x7f, 0x68]], &[]);
    assert_eq!(plan.unplanned.first().map(|u| (u.address, u.why)), Some((TEXT + 8, UnpatchableReason::NotSurelyCode)));
}

#[test]
fn calls_by_the_32_bit_gate_are_reported() {
    let interrupt: &[u8] = &[0xcd, 0x80];
    let plan = planned(&[MOV_39, SYSCALL, MOV_39, interrupt, RET], &[]);
    assert_eq!(plan.sites.iter().map(|s| s.address - TEXT).collect::<Vec<_>>(), [5]);
    assert_eq!(
        plan.unplanned.iter().map(|u| (u.address - TEXT, u.why)).collect::<Vec<_>>(),
        [(12, UnpatchableReason::Int80)]
    );
    // In a constant these bytes are no call: mov $0x80cd,%eax.
    let plan = planned(&[MOV_39, SYSCALL, &[0xb8, 0xcd, 0x80, 0, 0], RET], &[]);
    assert!(plan.unplanned.is_empty(), "{plan:?}");
}

/// Plans a program of `filling` bytes of nops and then `parts`. Returns its only site.
fn after_filling(filling: usize, parts: &[&[u8]]) -> Site {
    let nops = vec![0x90; filling];
    only(&[&[&nops[..]], parts].concat()).0
}

#[test]
fn jumps_lie_in_one_page_if_they_can() {
    let lea_rsi: &[u8] = &[0x48, 0x8d, 0xb3, 0xf0, 0x08, 0, 0];
    // The instruction nearest to the call lies across the end of a page, the one before it does not.
    let crossing = 4096 - (TEXT % 4096) as usize - 3;
    let site = after_filling(crossing - 5, &[MOV_39, lea_rsi, SYSCALL, RET, NOP4]);
    let span = site.entry_span.unwrap();
    assert_eq!((span.start + 5, span.jump_crosses_pages()), (TEXT + crossing as u64, false));
    // In the middle of a page, the nearest instruction is taken.
    let site = after_filling(64, &[MOV_39, lea_rsi, SYSCALL, RET, NOP4]);
    assert_eq!(site.entry_span.unwrap().start, TEXT + 64 + 5);
}

#[test]
fn a_call_with_a_return_across_pages_is_made_elsewhere() {
    let pop_rdx: &[u8] = &[0x5a];
    let cmp: &[u8] = &[0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff];
    let behind = 4096 - (TEXT % 4096) as usize - 4;
    // The call is getpid, which never waits.
    let site = after_filling(behind - 7, &[MOV_39, SYSCALL, pop_rdx, cmp, RET, NOP4]);
    assert!(site.entry_span.is_none() && site.return_span.is_none());
    let whole = site.wrap_span.unwrap();
    assert_eq!((whole.start - TEXT, whole.jump_crosses_pages()), (behind as u64 - 7, false));
}
