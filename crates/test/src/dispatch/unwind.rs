//! Who made a call: the native stack by its unwind tables, and a Python program's frames.

use super::contexts::{Context, FRAMES, SCRIPT_FRAMES, ScriptFrame, Stack};
use core::ffi::{c_int, c_void};

/// How the frames of a CPython thread hang together; offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PythonFrames {
    /// Address of the `PyThreadState`.
    pub thread: u64,
    /// In the thread: its frame, or what points to it.
    pub first: u64,
    /// In what that points to, where it is no frame: its frame. Else `u64::MAX`.
    pub second: u64,
    /// In a frame: its code object.
    pub code: u64,
    /// In a frame: the instruction it is at.
    pub instruction: u64,
    /// In a frame: the frame that called it.
    pub previous: u64,
}

impl PythonFrames {
    /// The innermost frames.
    ///
    /// # Safety
    /// The offsets are this interpreter's, and the calling thread is the one whose state it is: only
    /// that thread makes and unmakes these frames, whether it holds the interpreter's lock or not.
    pub(crate) unsafe fn read(&self) -> [ScriptFrame; SCRIPT_FRAMES] {
        let mut frames = [ScriptFrame::default(); SCRIPT_FRAMES];
        // SAFETY: the caller's; each pointer is null or leads to what its field says.
        let word = |at: u64| unsafe { (at as *const u64).read_volatile() };
        let mut frame = word(self.thread + self.first);
        if frame != 0 && self.second != u64::MAX {
            frame = word(frame + self.second);
        }
        for place in &mut frames {
            if frame == 0 {
                break;
            }
            *place = ScriptFrame { code: word(frame + self.code), instruction: word(frame + self.instruction) };
            frame = word(frame + self.previous);
        }
        frames
    }
}

unsafe extern "C" {
    // Of libgcc or of the unwinder that std brings along.
    fn _Unwind_Backtrace(trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

const GO_ON: c_int = 0;
const STOP: c_int = 5;
/// A stack that seems larger between two frames has been misread.
const MAX_FRAME: u64 = 8 << 20;

struct Walk {
    stack: Stack,
    /// The call's own instruction, where the program's part of the stack begins.
    ip: u64,
    end: u64,
    previous: u64,
    begun: bool,
}

extern "C" fn on_frame(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `walk` is what `stack_of` passed; `context` is the unwinder's.
    let (walk, ip, sp) =
        unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context) as u64, _Unwind_GetCFA(context) as u64) };
    if !walk.begun {
        walk.begun = ip == walk.ip;
        if !walk.begun {
            return GO_ON;
        }
    }
    let jumps = walk.previous != 0 && (sp < walk.previous || sp - walk.previous > MAX_FRAME);
    if jumps || sp > walk.end || ip == 0 {
        return STOP;
    }
    walk.previous = sp;
    let at = walk.stack.length;
    let (Some(address), Some(place)) = (walk.stack.addresses.get_mut(at), walk.stack.places.get_mut(at)) else {
        return STOP;
    };
    *address = ip;
    // A return address lies right below the frame it returns to; a signal's frame has none.
    // SAFETY: the unwinder has just read it there, or the words around it.
    *place = if at > 0 && unsafe { ((sp - 8) as *const u64).read_volatile() } == ip { sp - 8 } else { 0 };
    walk.stack.length += 1;
    GO_ON
}

/// The stack of the code that a signal interrupted at `ip`, up to `end`.
pub(super) fn stack_of(ip: u64, end: u64) -> Stack {
    let mut walk = Walk { stack: Stack::default(), ip, end, previous: 0, begun: false };
    // SAFETY: `on_frame` gets what it expects, and `walk` outlives it.
    unsafe { _Unwind_Backtrace(on_frame, (&raw mut walk).cast()) };
    if walk.stack.length == 0 {
        walk.stack.addresses[0] = ip;
        walk.stack.length = 1;
    }
    walk.stack
}

/// Whether a call with the registers of this context has its stack too: each return address still
/// stands where it was found. What lies between them follows from them by the unwind tables.
pub(super) fn same_stack(context: &Context) -> bool {
    let stack = &context.stack;
    let further = stack.addresses.iter().zip(&stack.places).take(stack.length.min(FRAMES)).skip(1);
    // SAFETY: the places are of the stack whose innermost end is where this call's is.
    further.clone().all(|(_, place)| *place != 0)
        && further.clone().all(|(address, place)| unsafe { (*place as *const u64).read_volatile() } == *address)
}

/// Loads what the unwinder needs, outside of a signal handler.
pub(super) fn warm_up() {
    stack_of(0, u64::MAX);
}
