//! HotSpot: reads the methods and lines of a thread's Java frames, starting from the last one before other code.
//!
//! A thread that runs other code, as one in a system call does, keeps the position of its last Java frame in an
//! anchor. From there each frame leads to its caller: a frame of the interpreter by its frame pointer, a frame of a
//! compiled method by its size.

pub(crate) mod code;
pub(crate) mod layout;
pub(crate) mod methods;
pub(crate) mod numbers;

use self::code::{Kind, Place};
use self::layout::{AllThreads, Layout, Table};
use self::methods::Heap;
use super::interpreter::{Candidate, Interpreter, Look, Runtime};
use super::memory::Memory;
use super::thread::Evaluation;
use crate::RawFrame;
use crate::lines::{ScriptLine, ScriptLines};
use std::collections::HashMap;
use std::ops::Range;
use systoll_model::{FrameClass, Language};

/// Threads looked through, at most.
const MAX_THREADS: u32 = 4096;
/// Frames of a thread returned, at most.
const MAX_FRAMES: usize = 512;
/// Frames of a thread walked, at most, including those without a method.
const MAX_STEPS: usize = 2048;
/// Prefixes of the packages of Java's library.
const LIBRARY: [&str; 6] = ["java.", "javax.", "jdk.", "sun.", "com.sun.", "org.graalvm."];
/// Prefixes of the packages with the programs that come with Java, such as `javac`, `jshell` and `jar`. For whoever
/// runs one, its lines are the program's own.
const TOOLS: [&str; 4] = ["com.sun.tools.", "sun.tools.", "jdk.tools.", "jdk.jshell."];

/// A file that holds HotSpot, with the ELF virtual addresses of its two tables.
#[derive(Clone, Copy, Debug)]
struct HotSpotFile {
    structs: Table,
    types: Table,
}

/// Returns the HotSpot in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [entries, types] = file.exported(["gHotSpotVMStructs", "gHotSpotVMTypes"]);
    let (entries, types) = (entries?, types?);
    let [stride, type_name, field_name, value, address] = file.exported([
        "gHotSpotVMStructEntryArrayStride",
        "gHotSpotVMStructEntryTypeNameOffset",
        "gHotSpotVMStructEntryFieldNameOffset",
        "gHotSpotVMStructEntryOffsetOffset",
        "gHotSpotVMStructEntryAddressOffset",
    ]);
    let (stride, type_name) = (stride?, type_name?);
    let structs = Table { entries, stride, type_name, field_name: field_name?, value: value?, address: address? };
    let [stride, type_name, value] = file.exported([
        "gHotSpotVMTypeEntryArrayStride",
        "gHotSpotVMTypeEntryTypeNameOffset",
        "gHotSpotVMTypeEntrySizeOffset",
    ]);
    let (stride, type_name) = (stride?, type_name?);
    let types = Table { entries: types, stride, type_name, field_name: 0, value: value?, address: 0 };
    Some(Box::new(HotSpotFile { structs, types }))
}

/// Returns true for the native libraries that come with Java: only Java's own classes call them.
pub(crate) fn is_bundled(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let of_java = ["libjava.so", "libnio.so", "libnet.so", "libextnet.so", "libzip.so", "libjli.so", "libjimage.so"];
    of_java.contains(&file)
}

impl Runtime for HotSpotFile {
    fn attach(&self, memory: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        let placed = |table: Table| {
            let at = |address: u64| if address == 0 { 0 } else { address.wrapping_add(bias) };
            let Table { entries, stride, type_name, field_name, value, address } = table;
            let [entries, stride, type_name] = [entries, stride, type_name].map(at);
            Table { entries, stride, type_name, field_name: at(field_name), value: at(value), address: at(address) }
        };
        match Layout::read(memory, placed(self.structs), placed(self.types)) {
            None => Ok(None),
            Some(layout) => Ok(Some(Box::new(HotSpot::new(layout?)))),
        }
    }

    fn evaluate(&self) -> Option<u64> {
        None
    }

    fn compiles(&self) -> bool {
        true
    }
}

/// A HotSpot in an address space.
#[derive(Debug)]
pub(crate) struct HotSpot {
    layout: Layout,
    /// Address of each thread's `JavaThread`, as last found, by thread id.
    threads: HashMap<i32, u64>,
}

/// A Java frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    sp: u64,
    pc: u64,
    fp: u64,
}

impl Interpreter for HotSpot {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let stack = look.stack()?;
        let layout = self.layout.clone();
        let mut heap = Heap { memory: look.memory, layout: &layout };
        let thread = self.thread(&mut heap, look.thread.tid, stack.start)?;
        let base = heap.word(thread, layout.threads.stack_base)?;
        let mut anchor = thread.wrapping_add(layout.threads.anchor);
        let mut evaluations = Vec::new();
        let mut told = 0;
        let mut from = stack.start;
        while told < MAX_FRAMES {
            let Some(first) = heap.anchored(anchor).filter(|f| (from..base).contains(&f.sp)) else { break };
            let mut frames = Vec::new();
            let outer = heap.walk(first, base, &mut |heap, place| {
                told += 1;
                frames.extend(line(heap, look.lines, place));
                told < MAX_FRAMES
            });
            evaluations.push(Evaluation { frames, at: Some(first.sp) });
            let Some(outer) = outer else { break };
            (anchor, from) = (outer, first.sp + 1);
        }
        Some(evaluations)
    }
}

impl HotSpot {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, threads: HashMap::new() }
    }

    /// Returns the `JavaThread` of the thread whose stack `sp` points into.
    fn thread(&mut self, heap: &mut Heap<'_, '_, '_>, tid: i32, sp: u64) -> Option<u64> {
        if let Some(known) = self.threads.get(&tid).copied().filter(|thread| heap.owns(*thread, sp) == Some(true)) {
            return Some(known);
        }
        let all = heap.all_threads()?;
        let found = all.into_iter().find(|thread| heap.owns(*thread, sp) == Some(true))?;
        if self.threads.len() >= MAX_THREADS as usize {
            self.threads.clear();
        }
        self.threads.insert(tid, found);
        Some(found)
    }
}

impl Heap<'_, '_, '_> {
    /// Returns the objects of all threads, or of the first [`MAX_THREADS`].
    fn all_threads(&mut self) -> Option<Vec<u64>> {
        match self.layout.threads.all {
            AllThreads::List { list, length, threads } => {
                let list = self.memory.pointer(list)?;
                let count = self.half(list, length)?.min(MAX_THREADS);
                let threads = self.pointer(list, threads)?;
                Some((0..count).filter_map(|n| self.pointer(threads, 8 * u64::from(n))).collect())
            }
            AllThreads::Chain { first, next } => {
                let first = self.memory.pointer(first);
                let mut following = |thread: &u64| self.pointer(*thread, next);
                Some(std::iter::successors(first, |thread| following(thread)).take(MAX_THREADS as usize).collect())
            }
        }
    }

    /// Returns true if `sp` points into the thread's stack.
    fn owns(&mut self, thread: u64, sp: u64) -> Option<bool> {
        let base = self.word(thread, self.layout.threads.stack_base)?;
        let size = self.word(thread, self.layout.threads.stack_size)?;
        let stack: Range<u64> = base.checked_sub(size)?..base;
        Some(stack.contains(&sp))
    }

    /// Returns the frame that an anchor tells; `None` if it tells none.
    fn anchored(&mut self, anchor: u64) -> Option<Frame> {
        let at = &self.layout.anchor;
        let sp = self.pointer(anchor, at.sp)?;
        let fp = self.word(anchor, at.fp)?;
        // If the anchor has no program counter, it is the return address below the stack pointer.
        let told = self.word(anchor, at.pc)?;
        let pc = if told == 0 { self.memory.word(sp.checked_sub(8)?)? } else { told };
        Some(Frame { sp, pc, fp })
    }

    /// Walks from `first` to the call into Java, and hands each place that is executed to `take`. Returns the anchor
    /// of the Java frames before that call.
    fn walk(&mut self, first: Frame, base: u64, take: &mut dyn FnMut(&mut Self, Place) -> bool) -> Option<u64> {
        /// Distance below the frame pointer at which the frame that calls into Java keeps its `JavaCallWrapper`
        /// (`entry_frame_call_wrapper_offset`).
        const WRAPPER: u64 = 6 * 8;
        let call_stub_return = self.memory.word(self.layout.call_stub_return)?;
        let mut frame = first;
        for _ in 0..MAX_STEPS {
            if frame.pc == call_stub_return {
                let wrapper = self.memory.pointer(frame.fp.checked_sub(WRAPPER)?)?;
                return Some(wrapper.wrapping_add(self.layout.wrapper_anchor));
            }
            let blob = self.blob(frame.pc)?;
            let next = match blob.kind {
                Kind::Interpreter => {
                    let place = self.interpreted(frame.fp)?;
                    take(self, place).then_some(())?;
                    // The caller's stack pointer is saved in the frame, since the interpreter may have moved the
                    // arguments.
                    Frame {
                        sp: self.memory.word(frame.fp.checked_sub(8)?)?,
                        pc: self.memory.word(frame.fp.checked_add(8)?)?,
                        fp: self.memory.word(frame.fp)?,
                    }
                }
                Kind::Method | Kind::Stub => {
                    let sp = frame.sp.checked_add(8 * u64::from(blob.frame_words?))?;
                    if blob.kind == Kind::Method {
                        let pc = self.before_it_was_given_up(blob, frame.pc, frame.sp).unwrap_or(frame.pc);
                        for place in self.places(blob, pc)? {
                            take(self, place).then_some(())?;
                        }
                    }
                    let [pc, fp] = [8, 16].map(|below| sp.checked_sub(below).and_then(|at| self.memory.word(at)));
                    Frame { sp, pc: pc?, fp: fp? }
                }
            };
            (next.sp > frame.sp && next.sp < base).then_some(())?;
            frame = next;
        }
        None
    }

    /// Returns the method that a frame of the interpreter executes, and its bytecode index, which a native method
    /// does not have.
    fn interpreted(&mut self, fp: u64) -> Option<Place> {
        const METHOD: u64 = 3 * 8;
        // Distances below the frame pointer of the bytecode pointer: since Java 9, when frames also keep their class
        // alive, and before.
        const BYTECODES: [u64; 2] = [8 * 8, 7 * 8];
        let method = self.memory.pointer(fp.checked_sub(METHOD)?)?;
        let (start, size) = self.bytecode(method)?;
        let index = BYTECODES.into_iter().find_map(|below| {
            let at = self.memory.word(fp.checked_sub(below)?)?;
            let index = at.checked_sub(start).filter(|index| *index < size)?;
            u32::try_from(index).ok()
        });
        Some(Place { method, index })
    }
}

fn line(heap: &mut Heap<'_, '_, '_>, lines: &mut ScriptLines, place: Place) -> Option<RawFrame> {
    let method = heap.method(place.method)?;
    // Classes generated for lambdas have no source, and Java's own stack traces leave them out.
    let is_made_up = method.name.contains("$$Lambda") || method.name.contains("LambdaForm$");
    (method.file.is_some() || !is_made_up).then_some(())?;
    let line = place.index.and_then(|index| heap.line(place.method, index));
    let is_library = is_library(&method.name);
    let class = if is_library { FrameClass::Runtime } else { FrameClass::User };
    let file = method.file.map(Into::into);
    lines.frame(ScriptLine { language: Language::Java, function: method.name.into(), file, line }, class)
}

/// Returns true unless a method only carries tasks: runs whatever a thread or a pool is given.
pub(crate) fn tells_task(method: &str) -> bool {
    const CARRIERS: [&str; 5] = [
        "java.lang.Thread.",
        "java.lang.VirtualThread",
        "java.util.concurrent.",
        "jdk.internal.misc.InnocuousThread.",
        "jdk.internal.vm.",
    ];
    !CARRIERS.iter().any(|carrier| method.starts_with(carrier))
}

/// Returns true if a method, named with its class's package, is in Java's library.
fn is_library(method: &str) -> bool {
    let is_in = |packages: &[&str]| packages.iter().any(|package| method.starts_with(package));
    is_in(&LIBRARY) && !is_in(&TOOLS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_come_with_java_are_no_library() {
        for (method, library) in [
            ("java.nio.file.Files.readString", true),
            ("com.sun.net.httpserver.Headers.get", true),
            ("com.sun.tools.javac.main.Main.compile", false),
            ("jdk.jshell.JShell.eval", false),
            ("org.apache.maven.cli.MavenCli.main", false),
        ] {
            assert_eq!(is_library(method), library, "{method}");
        }
    }

    #[test]
    fn a_pools_own_methods_tell_no_task() {
        assert!(tells_task("sun.net.httpserver.ServerImpl$Dispatcher.run"));
        assert!(!tells_task("java.lang.Thread.run"));
        assert!(!tells_task("java.util.concurrent.ThreadPoolExecutor.runWorker"));
    }
}
