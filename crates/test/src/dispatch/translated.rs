//! Whether this code is run as it is, or translated by valgrind.
//!
//! valgrind hands `prctl` on to the kernel, which then dispatches valgrind's own calls: the process ends.

use core::arch::asm;

/// valgrind's question whether it is there (`VG_USERREQ__RUNNING_ON_VALGRIND`).
const RUNNING_ON_VALGRIND: u64 = 0x1001;

/// Whether valgrind runs this process.
pub(super) fn by_valgrind() -> bool {
    let question = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: rotations by 128 bits in all and an exchange of a register with itself change nothing but
    // flags; valgrind knows them for a question to it, reads `question` and answers in rdx.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") question.as_ptr(),
            inout("rdx") answer,
            out("rdi") _,
            options(nostack),
        );
    }
    answer != 0
}
