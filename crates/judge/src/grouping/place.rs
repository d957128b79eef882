//! The frame by which a row's calls are named if no line of a script is known.

use systoll_model::{Frame, FrameClass, FrameId, Recording, Row};

/// Functions by which a program, a thread or the run-time of a language starts, and which every stack ends with.
const STARTS: &[&str] = &[
    "_start",
    "_dl_start",
    "_dl_start_user",
    "_dl_sysdep_start",
    "_dlstart",
    "_dlstart_c",
    "__libc_start_main",
    "__libc_start_call_main",
    "clone",
    "clone3",
    "__clone",
    "start_thread",
    "runtime.clone",
    "runtime.goexit",
    "runtime.mcall",
    "runtime.mstart",
    "runtime.mstart0",
    "runtime.mstart1",
    "runtime.systemstack",
];

/// Returns the frame that names the caller of a row: the user's own; if its function has no name, the next function
/// outwards in the same file that has one; if no frame is the user's, the function by which the loader, a new process
/// or a language's run-time began. `None` if none of these is known.
pub(super) fn caller(recording: &Recording, row: &Row) -> Option<FrameId> {
    let Some(user) = row.user else { return began(recording, row) };
    let own = recording.frame(user);
    if has_name(own) {
        return Some(user);
    }
    let is_named = |id: &FrameId| {
        let frame = recording.frame(*id);
        frame.module == own.module && has_name(frame) && !is_main(frame)
    };
    let outwards = || recording.row_frame_ids(row).skip_while(move |id| *id != user);
    Some(outwards().find(is_named).unwrap_or(user))
}

/// Returns the outermost frame that tells which part of the loader, the C library or a run-time made a row's calls.
fn began(recording: &Recording, row: &Row) -> Option<FrameId> {
    let all: Vec<FrameId> = recording.row_frame_ids(row).collect();
    let is_code = |id: &&FrameId| {
        let frame = recording.frame(**id);
        frame.class != FrameClass::Unknown && frame.class != FrameClass::Vdso && has_name(frame)
    };
    let starts = |id: &&FrameId| STARTS.contains(&recording.frame(**id).function());
    let (innermost, outer) = all.split_first()?;
    // A function with the name of the call tells no more than the call.
    let tells_more = |id: &&FrameId| row.syscall.name().is_none_or(|call| call != recording.frame(**id).function());
    let inner = || Some(innermost).filter(is_code).filter(tells_more).filter(|_| outer.iter().any(|id| starts(&id)));
    let outermost = outer.iter().rev().filter(is_code).find(|id| !starts(id));
    outermost.or_else(inner).or_else(|| outer.iter().rev().find(is_code)).copied()
}

/// Returns true unless the name of a frame's function is only its address.
fn has_name(frame: &Frame) -> bool {
    frame.locations.iter().any(|place| !place.function.contains("+0x"))
}

/// Returns true for the function in which a program begins, from which all of its calls come.
fn is_main(frame: &Frame) -> bool {
    let name = frame.function();
    name == "main" || name.ends_with("::main")
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::{Counts, Location, Module, ModuleId, ProcessId, Stack, StackId, Sysno};

    /// Returns the name of the caller of a row with this stack: functions, each with its class and file.
    fn named(stack: &[(&str, FrameClass, u32)], user: Option<usize>) -> Option<String> {
        let modules = (0..3).map(|_| Module::default()).collect();
        let mut recording = Recording { modules, ..Recording::default() };
        for (name, class, module) in stack {
            let location = Location { function: (*name).into(), file: None, line: None };
            recording.frames.push(Frame {
                locations: vec![location],
                class: *class,
                module: Some(ModuleId(*module)),
                ..Frame::default()
            });
        }
        let frames = (0..stack.len() as u32).map(FrameId).collect();
        recording.stacks = vec![Stack { frames, complete: true }, Stack::default()];
        let row = Row {
            process: ProcessId(0),
            syscall: Sysno::named("mmap"),
            context: StackId(0),
            outer: StackId(1),
            api: None,
            api_module: None,
            user: user.map(|at| FrameId(at as u32)),
            lines: vec![],
            counts: Counts::default(),
        };
        caller(&recording, &row).map(|id| recording.frame(id).function().to_owned())
    }

    #[test]
    fn calls_without_a_users_frame_are_named_by_what_began_them() {
        use FrameClass::{Libc, Loader, Runtime, Unknown};
        let loader =
            [("mmap", Loader, 0), ("_dl_map_object", Loader, 0), ("dl_main", Loader, 0), ("_dl_start", Loader, 0)];
        assert_eq!(named(&loader, None).as_deref(), Some("dl_main"));
        let spawned = [("__libc_sigaction", Libc, 0), ("__spawni_child", Libc, 0), ("clone3", Libc, 0)];
        assert_eq!(named(&spawned, None).as_deref(), Some("__spawni_child"));
        assert_eq!(named(&[("__spawni_child", Libc, 0), ("clone3", Libc, 0)], None).as_deref(), Some("__spawni_child"));
        let first = [("mmap", Loader, 0), ("_dl_sysdep_start", Loader, 0), ("_dl_start", Loader, 0)];
        assert_eq!(named(&first, None).as_deref(), Some("_dl_start"));
        let go = [("runtime.usleep", Runtime, 0), ("runtime.sysmon", Runtime, 0), ("runtime.mstart1", Runtime, 0)];
        assert_eq!(named(&go, None).as_deref(), Some("runtime.sysmon"));
        assert_eq!(named(&[("read", Libc, 0), ("ld.so+0x10", Loader, 0), ("x", Unknown, 0)], None), None);
        assert_eq!(named(&[("mmap", Loader, 0)], None), None);
        assert_eq!(named(&[], None), None);
    }

    #[test]
    fn an_unnamed_function_is_named_by_the_next_exported_one_of_its_file() {
        use FrameClass::{Libc, User};
        let stack = [
            ("fstatat", Libc, 0),
            ("php+0x10", User, 1),
            ("lib.so+0x20", User, 2),
            ("zend_register", User, 1),
            ("main", User, 1),
        ];
        assert_eq!(named(&stack, Some(1)).as_deref(), Some("zend_register"));
        assert_eq!(named(&stack, Some(2)).as_deref(), Some("lib.so+0x20"));
        assert_eq!(named(&stack, Some(3)).as_deref(), Some("zend_register"));
        assert_eq!(named(&[("php+0x10", User, 1), ("main", User, 1)], Some(0)).as_deref(), Some("php+0x10"));
    }
}
