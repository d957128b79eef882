//! Tests of tables that GHC puts between its code, and whose bytes look like calls.

use crate::files::built;
use systoll_hooks::plan::{Plan, plan};

/// A text that every program built by GHC contains, from its run-time system.
const SAYS: &str = "Please report this as a GHC bug:  https://www.haskell.org/ghc/reportabug";
/// A table that holds a distance to data. The distance, 0x50f58, has the bytes of `pop %rax` and of a call.
const TABLE: &str = "
    .balign 8, 0x90
    .long 1, 0, 8, refers - 1f
    1: mov %rbx, %rax
    jmp *(%rbx)
    .fill 16, 1, 0x90";
/// Assembler text of a C function that makes a call.
const OF_C: &str = "
    .globl f
    f: .cfi_startproc
    mov $39, %eax
    syscall
    ret
    .cfi_endproc";

/// Plans a program that contains `says`, with `text` behind a function that makes no calls.
fn program(says: &str, text: &str) -> Option<Plan> {
    let dir = tempfile::tempdir().unwrap();
    let source = format!(
        ".globl _start
        _start: .cfi_startproc
        nop
        ret
        .cfi_endproc
        {text}
        .data
        .skip 0xf70
        refers: .quad 0
        .section .rodata
        .ascii \"{says}\"
        .section .note.GNU-stack\n"
    );
    let at = ["-Wl,--section-start=.text=0x401000", "-Wl,--section-start=.data=0x451000"];
    let command = [&["gcc", "-x", "assembler", "-nostdlib", "-static", "-Wl,--build-id=none"][..], &at].concat();
    let elf = std::fs::read(built(dir.path(), "ghc.s", &source, &command)?).unwrap();
    let plan = plan(&elf).unwrap();
    crate::check(&plan, &elf);
    Some(plan)
}

fn sites(says: &str, text: &str) -> Option<Vec<u64>> {
    Some(program(says, text)?.sites.iter().map(|s| s.address).collect())
}

#[test]
fn a_table_is_no_call() {
    let Some(found) = sites("nothing of GHC's", TABLE) else { return };
    assert_eq!(found.len(), 1, "it looks like one: {found:x?}");
    assert_eq!(sites(SAYS, TABLE), Some(vec![]));
}

#[test]
fn a_table_next_to_calls_of_c_is_no_call() {
    let Some(plan) = program(SAYS, &[TABLE, OF_C].concat()) else { return };
    assert_eq!((plan.sites.len(), plan.unplanned.len()), (1, 0));
    assert_eq!(plan.sites[0].number, Some(39));
    assert!(plan.sites[0].entry_span.is_some());
}

#[test]
fn part_of_an_instruction_is_no_call() {
    // Decoded from the table's last byte on, these bytes are mov $1, %eax and a call; they belong to movabs
    // $0x90050f00000001b8, %rax.
    let text = "
        .balign 8, 0x90
        .long 1, 0, 5, 0
        movabs $0x90050f00000001b8, %rax
        jmp *(%rbp)
        .fill 16, 1, 0x90";
    let Some(found) = sites("nothing of GHC's", text) else { return };
    assert_eq!(found.len(), 1, "it looks like one: {found:x?}");
    assert_eq!(sites(SAYS, text), Some(vec![]));
}

#[test]
fn a_call_by_hand_is_one() {
    // A call in assembler code without call frame information, in a program made by GHC.
    let Some(found) = sites(SAYS, &[TABLE, "; mov $39, %eax; syscall; ret"].concat()) else { return };
    assert_eq!(found.len(), 1, "{found:x?}");
}
