//! Start-up code: finds `main` from the entry point, also in programs without symbols.

use super::calls::target;
use crate::code::{Callee, GotSlots};
use crate::elf::ElfFile;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};

/// Returns the address of `main`, decoded from the start-up code at the ELF entry point: the last code address that
/// this code puts into rdi, the first argument of `__libc_start_main`, before it calls that function.
pub(crate) fn main_of(elf: &ElfFile, slots: &GotSlots) -> Option<u64> {
    let mut code = [0; 160];
    let got = elf.read_code_into(elf.entry(), &mut code);
    let mut main = None;
    for i in &mut Decoder::with_ip(64, code.get(..got)?, elf.entry(), DecoderOptions::NONE) {
        let to_rdi =
            i.op_count() == 2 && i.op0_kind() == OpKind::Register && i.op0_register().full_register() == Register::RDI;
        match i.mnemonic() {
            Mnemonic::Lea if to_rdi && i.is_ip_rel_memory_operand() => main = Some(i.ip_rel_memory_address()),
            Mnemonic::Mov if to_rdi && i.is_ip_rel_memory_operand() => {
                main = match slots.get(elf, i.ip_rel_memory_address()) {
                    Some(Callee::Local(to)) => Some(to),
                    _ => None,
                };
            }
            Mnemonic::Mov if to_rdi && i.op1_kind() != OpKind::Register && i.op1_kind() != OpKind::Memory => {
                main = Some(i.immediate(1));
            }
            Mnemonic::Call | Mnemonic::Jmp => {
                if let Some(main) = main.filter(|m| elf.is_code(*m)) {
                    return Some(main);
                }
                // In musl's _start, this call goes to the function right behind it, which has the rest of the
                // start-up code.
            }
            Mnemonic::Hlt | Mnemonic::Ret | Mnemonic::INVALID => break,
            _ => {}
        }
    }
    None
}

/// Returns true if the code at `after` passes the result of the call before it to another function, as the C
/// library's `exit(main(argc, argv, environ))` does: it puts the result into edi and makes a direct call. glibc and
/// musl both have this code, shared or static.
pub(crate) fn gives_result_on(elf: &ElfFile, after: u64) -> bool {
    const MOV_EAX_EDI_CALL: [u8; 3] = [0x89, 0xc7, 0xe8];
    let mut code = [0; 3];
    elf.read_code_into(after, &mut code) == 3 && code == MOV_EAX_EDI_CALL
}

/// Returns the address of the function that the start-up code at the entry point calls first: `__libc_start_main`.
pub(crate) fn first_call(elf: &ElfFile, slots: &GotSlots) -> Option<u64> {
    let mut code = [0; 160];
    let got = elf.read_code_into(elf.entry(), &mut code);
    let call = Decoder::with_ip(64, code.get(..got)?, elf.entry(), DecoderOptions::NONE)
        .into_iter()
        .find(|i| matches!(i.flow_control(), FlowControl::Call | FlowControl::IndirectCall))?;
    match target(elf, slots, &call)? {
        Callee::Local(at) => Some(at),
        Callee::Symbol(_) => None,
    }
}
