//! CRuby: reads the source lines of a thread's frames, starting from its execution context.

pub(crate) mod layout;

use self::layout as at;
use self::layout::Layout;
use super::interpreter::{Candidate, Interpreter, Look, Runtime, around};
use super::memory::Memory;
use super::thread::Evaluation;
use crate::RawFrame;
use crate::lines::{MAX_NAME, ScriptLine, ScriptLines};
use foldhash::HashMap;
use std::ops::Range;
use std::sync::Arc;
use systoll_binfile::{half, word};
use systoll_model::{FrameClass, Language};

/// Threads looked through, at most.
const MAX_THREADS: usize = 1024;
/// Control frames read of a thread, at most.
const MAX_FRAMES: usize = 1024;
/// Instruction sequences remembered, at most; if there are more, all are forgotten.
const MAX_SEQUENCES: usize = 8192;
/// Bound of a sequence's number of instructions; a larger number is not believed.
const MAX_INSTRUCTIONS: u64 = 1 << 20;
/// Flag of a frame (`VM_FRAME_FLAG_FINISH`): the evaluation in C ends with this frame.
const FINISH: u64 = 0x20;
/// Bits of an object's flags that hold its type.
const TYPE_MASK: u64 = 0x1f;
const STRING: u64 = 5;
const ARRAY: u64 = 7;
/// Flags of an instruction sequence: `T_IMEMO`, with `imemo_iseq` above it.
const SEQUENCE: u64 = 0x1a | 7 << 12;
const SEQUENCE_MASK: u64 = TYPE_MASK | 0xf << 12;
/// Flags of a method's entry: `T_IMEMO`, with `imemo_ment` above it.
const METHOD: u64 = 0x1a | 6 << 12;
const METHOD_MASK: u64 = TYPE_MASK | 0xf << 12;
/// Flag `FL_USER1`: in a string `NOEMBED`, in an array `EMBED`.
const USER1: u64 = 1 << 13;

/// A file that holds CRuby, with the ELF virtual addresses of its exported symbols.
#[derive(Clone, Copy, Debug)]
struct RubyFile {
    /// Address of `ruby_current_vm_ptr`.
    vm: u64,
    /// Address of `rb_vm_exec`, which 3.3 and later do not export.
    evaluate: Option<u64>,
    /// Address of the table of symbols (`ruby_global_symbols`), which has no name.
    symbols: Option<u64>,
    /// Major and minor version.
    version: (u32, u32),
}

/// Returns the CRuby in a file, if it holds one.
pub(crate) fn recognise(file: Candidate<'_>) -> Option<Box<dyn Runtime>> {
    let [vm, evaluate, api] = file.exported(["ruby_current_vm_ptr", "rb_vm_exec", "ruby_api_version"]);
    let api = api?;
    // From 3.3 on the variable has no name, but what `ruby_vm_at_exit` does begins with it.
    let vm = vm.or_else(|| file.first_pointer_read("ruby_vm_at_exit"))?;
    let version = (file.half(api)?, file.half(api.checked_add(4)?)?);
    let symbols = file.first_half_compared("rb_id2str");
    Some(Box::new(RubyFile { vm, evaluate, symbols, version }))
}

impl Runtime for RubyFile {
    fn attach(&self, _: &mut Memory<'_, '_>, bias: u64) -> Result<Option<Box<dyn Interpreter>>, String> {
        match Ruby::new(self.version, bias.wrapping_add(self.vm)) {
            Some(ruby) => Ok(Some(Box::new(Ruby { symbols: self.symbols.map(|at| bias.wrapping_add(at)), ..ruby }))),
            None => Err("this version's frames are not known".to_owned()),
        }
    }

    fn evaluate(&self) -> Option<u64> {
        self.evaluate
    }
}

/// A CRuby in an address space.
#[derive(Debug)]
pub(crate) struct Ruby {
    layout: Layout,
    /// Address of `ruby_current_vm_ptr`.
    vm: u64,
    /// Address of the table of symbols, where the file tells it.
    symbols: Option<u64>,
    /// Instruction sequences that were read, by address.
    sequences: HashMap<u64, Sequence>,
}

/// An instruction sequence as it was when last read.
#[derive(Debug)]
struct Sequence {
    /// First bytes of its body. Another sequence at the same address has different ones.
    header: Vec<u8>,
    encoded: u64,
    size: u64,
    file: Arc<str>,
    function: Arc<str>,
    class: FrameClass,
    /// Lines as frames, by index of the instruction.
    lines: HashMap<u64, Option<RawFrame>>,
}

impl Interpreter for Ruby {
    fn evaluations(&mut self, look: &mut Look<'_, '_, '_>) -> Option<Vec<Evaluation>> {
        let stack = look.stack()?;
        let Look { lines, memory, .. } = look;
        let context = self.context(memory, stack)?;
        let start = memory.pointer(context.wrapping_add(at::STACK))?;
        let size = memory.word(context.wrapping_add(at::STACK_SIZE))?.checked_mul(8)?;
        let end = start.checked_add(size)?;
        let mut frame = memory.pointer(context.wrapping_add(at::FRAME))?;
        let mut evaluations = Vec::new();
        let mut frames = Vec::new();
        let (mut is_in_c, mut called) = (true, None);
        // Newer frames lie at lower addresses, so the next one up is the caller.
        for _ in 0..MAX_FRAMES {
            let next = frame.checked_add(self.layout.frame_size)?;
            if frame < start || next > end {
                break;
            }
            let line = self.line(lines, memory, frame)?;
            if is_in_c {
                // Of the functions in C that call each other, the outermost is what the script asked for.
                called = self.called(lines, memory, frame).filter(|_| line.is_none()).or(called);
                is_in_c = line.is_none();
            }
            if line.is_some() {
                frames.extend(called.take());
            }
            frames.extend(line);
            let environment = memory.pointer(frame.wrapping_add(at::ENVIRONMENT))?;
            if memory.word(environment)? & FINISH != 0 && !frames.is_empty() {
                evaluations.push(Evaluation { frames: std::mem::take(&mut frames), at: None });
            }
            frame = next;
        }
        if !frames.is_empty() {
            evaluations.push(Evaluation { frames, at: None });
        }
        Some(evaluations)
    }
}

impl Ruby {
    /// Returns `None` if the version is not known.
    pub(crate) fn new(version: (u32, u32), vm: u64) -> Option<Self> {
        Some(Self { layout: Layout::of(version)?, vm, symbols: None, sequences: HashMap::default() })
    }

    /// Returns the execution context of the thread or fiber that runs on the native stack `stack`:
    /// the context whose innermost tag lies on it. A tag is a jump buffer.
    fn context(&self, memory: &mut Memory<'_, '_>, stack: Range<u64>) -> Option<u64> {
        let layout = self.layout;
        let vm = memory.pointer(self.vm)?;
        let first = memory.pointer(vm.wrapping_add(layout.main_thread))?;
        let mut thread = first;
        for _ in 0..MAX_THREADS {
            // The list also contains its own head, which is no thread.
            if memory.word(thread.wrapping_add(layout.thread_vm)) == Some(vm) {
                let context = memory.pointer(thread.wrapping_add(layout.context))?;
                let tag = memory.word(context.wrapping_add(at::TAG))?;
                if around(&stack).contains(&tag) {
                    return Some(context);
                }
            }
            thread = memory.pointer(thread)?;
            if thread == first {
                break;
            }
        }
        None
    }

    /// Returns the line that a control frame is at; `Some(None)` for a function in C.
    fn line(&mut self, lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, frame: u64) -> Option<Option<RawFrame>> {
        let pc = memory.word(frame.wrapping_add(at::PC))?;
        let iseq = memory.word(frame.wrapping_add(at::ISEQ))?;
        if pc == 0 || iseq == 0 {
            return Some(None);
        }
        let body = memory.pointer(iseq.wrapping_add(at::BODY))?;
        self.know(memory, iseq, body)?;
        let sequence = self.sequences.get_mut(&iseq)?;
        let next = pc.checked_sub(sequence.encoded)? / 8;
        if next > sequence.size {
            return None;
        }
        // The program counter points behind the instruction being executed.
        let index = next.saturating_sub(1);
        if let Some(frame) = sequence.lines.get(&index) {
            return Some(*frame);
        }
        let info = body.wrapping_add(self.layout.instructions);
        // Frames that stand for the top level while there is no script have no line.
        let frame = match source_line(memory, info, self.layout.entry_size, index).filter(|l| *l > 0) {
            Some(line) => {
                let (function, file) = (Arc::clone(&sequence.function), Arc::clone(&sequence.file));
                let line = ScriptLine { language: Language::Ruby, function, file: Some(file), line: Some(line) };
                Some(lines.frame(line, sequence.class)?)
            }
            None => None,
        };
        sequence.lines.insert(index, frame);
        Some(frame)
    }

    /// Returns the name of the function in C that a control frame executes, as a frame without a line.
    fn called(&self, lines: &mut ScriptLines, memory: &mut Memory<'_, '_>, frame: u64) -> Option<RawFrame> {
        let environment = memory.pointer(frame.wrapping_add(at::ENVIRONMENT))?;
        let method = memory.pointer(environment.checked_sub(at::METHOD)?)?;
        (memory.word(method)? & METHOD_MASK == METHOD).then_some(())?;
        let id = memory.word(method.wrapping_add(at::CALLED))?;
        let name = self.symbol(memory, id)?;
        let plain = !name.is_empty() && !name.chars().any(char::is_control);
        let line = ScriptLine { language: Language::Ruby, function: name.into(), file: None, line: None };
        if plain { lines.frame(line, FrameClass::Runtime) } else { None }
    }

    /// Returns the text of a symbol. Those of operators, which have small numbers, are left out: they make no calls.
    fn symbol(&self, memory: &mut Memory<'_, '_>, id: u64) -> Option<String> {
        /// Bits of an id that tell its kind.
        const KIND_BITS: u32 = 4;
        /// Upper bound of the ids of operators.
        const OPERATORS: u64 = 256;
        /// Symbols in one part of the table, each with two entries, of which the first is its text.
        const UNIT: u64 = 512;
        let table = self.symbols?;
        let serial = (id > OPERATORS).then_some(id >> KIND_BITS)?;
        (serial <= u64::from(memory.half(table)?)).then_some(())?;
        let parts = memory.pointer(table.wrapping_add(at::SYMBOLS))?;
        let part = element(memory, parts, serial / UNIT)?;
        let text = element(memory, part, serial % UNIT * 2)?;
        self.string(memory, text)
    }

    /// Reads the sequence at `iseq` into `sequences`, unless it is there unchanged.
    fn know(&mut self, memory: &mut Memory<'_, '_>, iseq: u64, body: u64) -> Option<()> {
        let size = self.layout.instructions + at::INFO_END;
        if self.sequences.get(&iseq).is_some_and(|s| memory.holds(body, &s.header)) {
            return Some(());
        }
        let header = memory.bytes(body, size, 4096)?;
        if memory.word(iseq)? & SEQUENCE_MASK != SEQUENCE {
            return None;
        }
        let field = |offset: u64| word(&header, offset as usize);
        let file = self.path(memory, field(at::PATH)?)?;
        let function = self.string(memory, field(at::LABEL)?)?;
        let size = half(&header, at::SIZE as usize).map(u64::from).filter(|s| *s < MAX_INSTRUCTIONS)?;
        let encoded = field(at::ENCODED)?;
        if self.sequences.len() >= MAX_SEQUENCES {
            self.sequences.clear();
        }
        let class = class(&file);
        let sequence = Sequence {
            header,
            encoded,
            size,
            file: file.into(),
            function: function.into(),
            class,
            lines: HashMap::default(),
        };
        self.sequences.insert(iseq, sequence);
        Some(())
    }

    /// Reads a path object, which is a string, or an array of the path and the real path.
    fn path(&self, memory: &mut Memory<'_, '_>, object: u64) -> Option<String> {
        let flags = memory.word(object)?;
        if flags & TYPE_MASK != ARRAY {
            return self.string(memory, object);
        }
        let first =
            if flags & USER1 != 0 { object.checked_add(16)? } else { memory.pointer(object.checked_add(32)?)? };
        let string = memory.pointer(first)?;
        self.string(memory, string)
    }

    fn string(&self, memory: &mut Memory<'_, '_>, object: u64) -> Option<String> {
        let flags = memory.word(object)?;
        if flags & TYPE_MASK != STRING {
            return None;
        }
        let apart = flags & USER1 != 0;
        let (length, text) = match (apart, self.layout.long_strings) {
            (true, _) => (memory.word(object.checked_add(16)?)?, memory.pointer(object.checked_add(24)?)?),
            (false, true) => (memory.word(object.checked_add(16)?)?, object.checked_add(24)?),
            (false, false) => (flags >> 14 & 0x1f, object.checked_add(16)?),
        };
        let bytes = memory.bytes(text, length.min(MAX_NAME as u64), MAX_NAME as u64)?;
        Some(super::memory::readable(&bytes))
    }
}

/// Returns the element `index` of an array.
fn element(memory: &mut Memory<'_, '_>, array: u64, index: u64) -> Option<u64> {
    /// Bits of an embedded array's flags that hold its length.
    const EMBEDDED_LENGTH: u64 = 0x7f;
    let flags = memory.word(array)?;
    (flags & TYPE_MASK == ARRAY).then_some(())?;
    let (length, elements) = if flags & USER1 != 0 {
        (flags >> 15 & EMBEDDED_LENGTH, array.checked_add(16)?)
    } else {
        (memory.word(array.checked_add(16)?)?, memory.pointer(array.checked_add(32)?)?)
    };
    (index < length).then_some(())?;
    memory.pointer(elements.wrapping_add(index.checked_mul(8)?))
}

/// Returns the line of instruction `index`. Entries are found by a succinct bit index, in which a
/// bit is set for each instruction that has an entry (`succ_index_lookup` of iseq.c).
fn source_line(memory: &mut Memory<'_, '_>, info: u64, entry_size: u64, index: u64) -> Option<u32> {
    /// Number of first positions whose ranks are stored directly, in 7 bits each, nine to a word.
    const DIRECT: u64 = 54;
    const WORDS: u64 = DIRECT / 9 * 8;
    /// Size of a block: its rank, the ranks of its words in 9 bits each, then 512 bits.
    const BLOCK: u64 = 8 + 8 + 64;
    let entries = memory.pointer(info.wrapping_add(at::ENTRIES))?;
    let count = u64::from(memory.half(info.wrapping_add(at::ENTRY_COUNT))?);
    if count == 0 {
        return None;
    }
    let table = memory.word(info.wrapping_add(at::INDEX))?;
    let rank = if count == 1 {
        1
    } else if table == 0 {
        return None;
    } else if index < DIRECT {
        memory.word(table.wrapping_add(index / 9 * 8))? >> (index % 9 * 7) & 0x7f
    } else {
        let bit = index - DIRECT;
        let block = table.wrapping_add(WORDS).wrapping_add(bit / 512 * BLOCK);
        let (word_index, shift) = (bit % 512 / 64, 63 - bit % 64);
        let ranks = memory.word(block.wrapping_add(8))?;
        let before = if word_index == 0 { 0 } else { ranks >> ((word_index - 1) * 9) & 0x1ff };
        let bits = memory.word(block.wrapping_add(16 + 8 * word_index))? << shift;
        u64::from(memory.half(block)?) + before + u64::from(bits.count_ones())
    };
    let entry = rank.checked_sub(1).filter(|e| *e < count)?;
    memory.half(entries.wrapping_add(entry * entry_size))
}

/// Returns `Runtime` for a file of Ruby's own library, otherwise `User`.
fn class(file: &str) -> FrameClass {
    if file.starts_with("<internal:") || is_bundled(file) { FrameClass::Runtime } else { FrameClass::User }
}

/// Returns true if `path` is an extension module that comes with Ruby.
pub(crate) fn is_bundled_module(path: &str) -> bool {
    path.contains("/ruby/") && is_bundled(path)
}

/// Returns true if a file at `path` comes with Ruby: `…/ruby/3.1.0/…` and rubygems itself, but not
/// installed gems.
pub(crate) fn is_bundled(path: &str) -> bool {
    let Some((_, rest)) = path.split_once("/ruby/") else { return false };
    let first = rest.split('/').next().unwrap_or(rest);
    let versioned = first.starts_with(|c: char| c.is_ascii_digit());
    let of_rubygems = || rest.contains("/rubygems/") || rest.ends_with("/rubygems.rb");
    !rest.contains("gems/") && versioned || (first == "vendor_ruby" || versioned) && of_rubygems()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbols_text_is_found_by_its_number() {
        // The table is at 0x1000, its parts at 0x2000, the second part at 0x3000 with its elements at 0x4000, the text at 0x6000.
        let mut words = vec![0u64; 0x7000 / 8];
        let mut put = |at: usize, value: u64| words[at / 8] = value;
        let serial = 512 + 3;
        put(0x1000, serial);
        put(0x1010, 0x2000);
        put(0x2000, ARRAY | USER1 | 2 << 15);
        put(0x2018, 0x3000);
        put(0x3000, ARRAY);
        put(0x3010, 1024);
        put(0x3020, 0x4000);
        put(0x4000 + 3 * 16, 0x6000);
        put(0x6000, STRING | 6 << 14);
        put(0x6010, u64::from_le_bytes(*b"exist?\0\0"));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut read = |pieces: &[u64], buffer: &mut [u8]| {
            let each = buffer.len() / pieces.len().max(1);
            let mut got = 0;
            for (piece, part) in pieces.iter().zip(buffer.chunks_mut(each.max(1))) {
                let Some(from) = bytes.get(*piece as usize..*piece as usize + part.len()) else { break };
                part.copy_from_slice(from);
                got += part.len();
            }
            got
        };
        let mut memory = Memory::new(&mut read);
        let ruby = Ruby { symbols: Some(0x1000), ..Ruby::new((3, 1), 0).unwrap() };
        assert_eq!(ruby.symbol(&mut memory, serial << 4).as_deref(), Some("exist?"));
        // Numbers above the last one, below it without a text, and those of operators have none.
        for id in [(serial + 1) << 4, (serial - 1) << 4, u64::from(b'+')] {
            assert_eq!(ruby.symbol(&mut memory, id), None, "{id}");
        }
        let unknown = Ruby::new((3, 1), 0).unwrap();
        assert_eq!(unknown.symbol(&mut memory, serial << 4), None);
    }

    #[test]
    fn what_comes_with_ruby_is_told_by_its_path() {
        for ours in [
            "/usr/lib/ruby/3.1.0/set.rb",
            "/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb",
            "/usr/lib/x86_64-linux-gnu/ruby/3.1.0/stringio.so",
            "/opt/rubies/lib/ruby/3.3.0/rubygems/specification.rb",
        ] {
            assert!(is_bundled(ours), "{ours}");
        }
        for theirs in [
            "/home/me/ruby/app.rb",
            "app.rb",
            "/usr/lib/ruby/gems/3.1.0/gems/rake-13.0.6/lib/rake.rb",
            "/var/lib/gems/3.1.0/gems/x/lib/x.rb",
            "/usr/lib/ruby/vendor_ruby/rack.rb",
        ] {
            assert!(!is_bundled(theirs), "{theirs}");
        }
    }
}
