//! Recognises programs that serve their own page faults: reading a page of their memory may wait for the program.

use super::emitter::{Emitted, Emitter, asm};
use crate::layout::{IMAGE, image};
use crate::numbers::{IOCTL, USERFAULTFD};
use iced_x86::code_asm::*;

/// Request (USERFAULTFD_IOC_NEW of include/uapi/linux/userfaultfd.h) by which /dev/userfaultfd gives a descriptor.
const NEW: i32 = 0xaa00;

/// Returns true if a call of this number may open a `userfaultfd`.
pub(super) fn opens(number: u32) -> bool {
    matches!(number, USERFAULTFD | IOCTL)
}

/// Notes, before a call of this number, if it opens a `userfaultfd`. Lost: r11, flags.
pub(super) fn before(e: &mut Emitter, number: u32) -> Emitted {
    match number {
        USERFAULTFD => note(e),
        IOCTL => {
            let (new, done) = (e.label(), e.label());
            asm!(e; cmp(esi, NEW); je(new););
            e.here(done)?;
            e.cold(move |e| {
                e.here(new)?;
                note(e)?;
                asm!(e; jmp(done););
                Ok(())
            });
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Does the work of [`before`] for a call whose number is in eax. Lost: r11, flags.
pub(super) fn before_by_number(e: &mut Emitter) -> Emitted {
    let (opens, control, done) = (e.label(), e.label(), e.label());
    asm!(e; cmp(eax, USERFAULTFD as i32); je(opens); cmp(eax, IOCTL as i32); je(control););
    e.here(done)?;
    e.cold(move |e| {
        e.here(control)?;
        asm!(e; cmp(esi, NEW); jne(done););
        e.here(opens)?;
        note(e)?;
        asm!(e; jmp(done););
        Ok(())
    });
    Ok(())
}

fn note(e: &mut Emitter) -> Emitted {
    asm!(e; mov(r11, IMAGE + image::SERVES_FAULTS); mov(dword_ptr(r11), 1););
    Ok(())
}
