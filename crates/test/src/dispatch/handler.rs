//! The handler of dispatched calls: counts a call and sends it to its stub.

use super::contexts::{Context, Site};
use super::masks::{self, Course};
use super::threads::{ALLOW, BLOCK, Thread};
use super::{signals, stubs, unwind};
use crate::problem::Incomplete;
use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use libc::{greg_t, siginfo_t, ucontext_t};

/// `si_code` of a dispatched call.
const SYS_USER_DISPATCH: c_int = 2;
const AUDIT_ARCH_X86_64: u32 = 0xC000_003E;
/// Size of a `syscall` instruction, bytes.
const SYSCALL: u64 = 2;
/// Offsets in the 128 bytes of `siginfo_t` that the kernel fills for SIGSYS.
const SI_SYSCALL: usize = 24;
const SI_ARCH: usize = 28;

/// Returns the handler's address.
pub(super) fn address() -> u64 {
    on_sigsys as *const () as u64
}

/// Returns the calling thread's id from the kernel, which is right in children too.
pub(super) fn thread_id() -> i32 {
    // SAFETY: gettid takes no arguments and can't fail.
    unsafe { stubs::call(libc::SYS_gettid, [0; 6]) as i32 }
}

extern "C" fn on_sigsys(signal: c_int, info: *mut siginfo_t, context: *mut ucontext_t) {
    // SAFETY: both are the kernel's, valid while the handler runs.
    let (code, program) = unsafe { ((*info).si_code, &mut *context) };
    let thread = if code == SYS_USER_DISPATCH { Thread::of(thread_id()) } else { None };
    let Some(thread) = thread else { return hand_on(signal, info, context) };
    // The unwinder's calls, e.g. waiting for a lock, are not the program's.
    thread.selector.store(ALLOW, SeqCst);
    // SAFETY: SIGSYS fields of the kernel's siginfo, which has 128 bytes.
    let (number, arch) = unsafe {
        let fields = info.cast::<u8>();
        (fields.add(SI_SYSCALL).cast::<u32>().read(), fields.add(SI_ARCH).cast::<u32>().read())
    };
    match on_call(thread, number, arch, program) {
        None => thread.selector.store(BLOCK, SeqCst),
        Some(why) => {
            // SAFETY: the state is this thread's, whose own code can't be using it: the selector was BLOCK.
            unsafe { thread.counting() }.incomplete.get_or_insert(why);
            // Goes back to the instruction itself, which the kernel lets through from now on.
            *register(program, libc::REG_RIP) -= SYSCALL as greg_t;
        }
    }
}

fn register(program: &mut ucontext_t, which: c_int) -> &mut greg_t {
    &mut program.uc_mcontext.gregs[which as usize]
}

/// Counts a call and lets it be made, or returns the reason why counting has to stop.
fn on_call(thread: &Thread, number: u32, arch: u32, program: &mut ucontext_t) -> Option<Incomplete> {
    if arch != AUDIT_ARCH_X86_64 {
        return Some(Incomplete::Call32);
    }
    let [ip, sp, bp] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(|r| *register(program, r) as u64);
    let Some(stub) = stubs::stub(ip) else { return Some(Incomplete::TooManySites) };
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9];
    let arguments = arguments.map(|r| *register(program, r) as u64);
    // The first word of the mask is the kernel's whole mask.
    let mask: *mut u64 = (&raw mut program.uc_sigmask).cast();
    // SAFETY: part of the context, which only the handler uses.
    let course = masks::course(number.into(), arguments, unsafe { &mut *mask });
    if let Course::GiveUp(why) = course {
        return Some(why);
    }
    count(thread, Site { number, ip, sp, bp });
    match course {
        Course::Answered(result) => *register(program, libc::REG_RAX) = result,
        Course::Native | Course::GiveUp(_) => *register(program, libc::REG_RIP) = stub as greg_t,
    }
    None
}

fn count(thread: &Thread, site: Site) {
    // SAFETY: the state is this thread's, whose own code can't be using it: the selector was BLOCK.
    let counting = unsafe { thread.counting() };
    if std::mem::take(&mut counting.probing) {
        return;
    }
    let (python, end) = (counting.python, counting.stack_end);
    let Some(tables) = counting.innermost() else { return };
    tables.count(site.number);
    // SAFETY: `begin` has checked the offsets with a known frame, in this thread.
    let script = python.map(|frames| unsafe { frames.read() }).unwrap_or_default();
    let same = |context: &Context| context.script == script && unwind::same_stack(context);
    tables.at_context(site, 1, same, || Context {
        stack: unwind::stack_of(site.ip, end),
        script,
        ..Context::default()
    });
}

/// Handles a SIGSYS that is not ours as the program's own action says.
fn hand_on(signal: c_int, info: *mut siginfo_t, context: *mut ucontext_t) {
    let action = signals::programs_action();
    if action.handler == libc::SIG_IGN as u64 {
        return;
    }
    if action.handler == libc::SIG_DFL as u64 {
        // The signal comes again after the handler, and then ends the process.
        let _ = signals::action(signal, Some(&signals::Action::default()));
        // SAFETY: a signal to ourselves.
        unsafe {
            let own = stubs::call(libc::SYS_getpid, [0; 6]) as u64;
            stubs::call(libc::SYS_tgkill, [own, thread_id() as u64, signal as u64, 0, 0, 0]);
        }
        return;
    }
    // SAFETY: the program registered this address as a handler; a handler that only takes the
    // signal ignores the other arguments.
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut ucontext_t) =
        unsafe { core::mem::transmute(action.handler) };
    handler(signal, info, context);
}
