//! Detects valgrind, which translates the code it runs.
//!
//! valgrind passes `prctl` on to the kernel, which would then dispatch valgrind's own calls and end
//! the process.

use core::arch::asm;

/// valgrind's request that asks whether it runs this process (`VG_USERREQ__RUNNING_ON_VALGRIND`).
const RUNNING_ON_VALGRIND: u64 = 0x1001;

/// Returns true if valgrind runs this process.
pub(super) fn by_valgrind() -> bool {
    let question = [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: rotations by 128 bits in total and an exchange of a register with itself only change
    // flags; valgrind recognises them as a request, reads `question` and answers in rdx.
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
