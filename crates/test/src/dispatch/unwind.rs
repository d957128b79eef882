//! Finds the caller of a call: the native stack by its unwind tables, and a Python program's
//! frames.

use super::contexts::{Context, FRAMES, SCRIPT_FRAMES, ScriptFrame, Stack};
use core::ffi::{c_int, c_void};

/// The layout of a CPython thread's frames; offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PythonFrames {
    /// Address of the `PyThreadState`.
    pub thread: u64,
    /// Offset in the `PyThreadState` of the pointer to the current frame. If `second` is an offset:
    /// of the pointer to the struct that has the frame's pointer.
    pub first: u64,
    /// Offset of the frame's pointer in that struct; `u64::MAX` if there is no such struct.
    pub second: u64,
    /// Offset of the code object in a frame.
    pub code: u64,
    /// Offset of the current instruction in a frame.
    pub instruction: u64,
    /// Offset of the caller's frame in a frame.
    pub previous: u64,
}

impl PythonFrames {
    /// Returns the innermost frames.
    ///
    /// # Safety
    /// The offsets are this interpreter's, and the calling thread is the one whose state it is:
    /// only that thread creates and removes these frames, whether it holds the interpreter's lock
    /// or not.
    pub(crate) unsafe fn read(&self) -> [ScriptFrame; SCRIPT_FRAMES] {
        let mut frames = [ScriptFrame::default(); SCRIPT_FRAMES];
        // SAFETY: the caller guarantees it; each pointer is null or points to what its field says.
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
    // These functions are in libgcc, or in std's own unwinder.
    fn _Unwind_Backtrace(trace: extern "C" fn(*mut c_void, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

const GO_ON: c_int = 0;
const STOP: c_int = 5;
/// Largest size of a frame, bytes; a larger distance between two frames means that the stack was
/// misread.
const MAX_FRAME: u64 = 8 << 20;

struct Walk {
    stack: Stack,
    /// Address of the call's instruction, where the program's part of the stack begins.
    ip: u64,
    end: u64,
    previous: u64,
    begun: bool,
}

extern "C" fn on_frame(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `walk` is the argument that `stack_of` passed; `context` is the unwinder's.
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
    // A return address is right below the frame it returns to; a signal's frame has none.
    // SAFETY: the unwinder has just read the frame that ends at `sp`, on a stack that is in use while this runs.
    *place = if at > 0 && unsafe { ((sp - 8) as *const u64).read_volatile() } == ip { sp - 8 } else { 0 };
    walk.stack.length += 1;
    GO_ON
}

/// Returns the stack of the code that a signal interrupted at `ip`, up to `end`.
pub(super) fn stack_of(ip: u64, end: u64) -> Stack {
    let mut walk = Walk { stack: Stack::default(), ip, end, previous: 0, begun: false };
    // SAFETY: `on_frame` gets the types it expects, and `walk` outlives the call.
    unsafe { _Unwind_Backtrace(on_frame, (&raw mut walk).cast()) };
    if walk.stack.length == 0 {
        walk.stack.addresses[0] = ip;
        walk.stack.length = 1;
    }
    walk.stack
}

/// Returns true if a call with the registers of this context also has its stack: each return
/// address is still in its place. The unwind tables determine the rest.
pub(super) fn same_stack(context: &Context) -> bool {
    let stack = &context.stack;
    let further = stack.addresses.iter().zip(&stack.places).take(stack.length.min(FRAMES)).skip(1);
    // SAFETY: each place is the address of a return address above the stack pointer of this thread, whose context this
    // is, so the place is mapped and no other thread writes it.
    further.clone().all(|(_, place)| *place != 0)
        && further.clone().all(|(address, place)| unsafe { (*place as *const u64).read_volatile() } == *address)
}

/// Loads the unwinder's data, outside of a signal handler.
pub(super) fn warm_up() {
    stack_of(0, u64::MAX);
}
