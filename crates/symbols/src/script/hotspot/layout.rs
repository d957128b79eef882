//! Where HotSpot keeps what, as it says itself: `gHotSpotVMStructs` and `gHotSpotVMTypes`, the tables that it exports
//! for debuggers (vmStructs.hpp of OpenJDK).

use crate::script::memory::Memory;
use std::collections::HashMap;

/// Longer names are none of those that are looked for.
const MAX_NAME: usize = 64;
/// Most entries of a table.
const MAX_ENTRIES: u64 = 1 << 14;
/// The longest entry.
const MAX_STRIDE: u64 = 256;
/// The largest object.
const MAX_OFFSET: u64 = 1 << 16;

/// A table's address, and those of the words that tell how its entries are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) entries: u64,
    pub(crate) stride: u64,
    pub(crate) type_name: u64,
    /// Where the entry's field is named; 0 in the table of types.
    pub(crate) field_name: u64,
    /// Its offset, or the type's size.
    pub(crate) value: u64,
    /// Its address, of those that belong to no object.
    pub(crate) address: u64,
}

/// The fields that are asked for, as the tables have them.
#[derive(Debug, Default)]
struct Fields {
    by_name: HashMap<String, u64>,
}

/// Offsets in bytes from an object's start, and addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The number of Java's version.
    pub(crate) major: u32,
    pub(crate) threads: Threads,
    pub(crate) anchor: Anchor,
    pub(crate) method: MethodLayout,
    pub(crate) cache: CacheLayout,
    pub(crate) blob: BlobLayout,
    pub(crate) compiled: CompiledLayout,
    /// Where a call from outside returns to, and what it keeps of the frames before it.
    pub(crate) call_stub_return: u64,
    pub(crate) wrapper_anchor: u64,
}

/// The threads, and a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    pub(crate) all: AllThreads,
    pub(crate) anchor: u64,
    pub(crate) stack_base: u64,
    pub(crate) stack_size: u64,
}

/// Where all threads are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllThreads {
    /// By the address of the pointer to a list, and what that keeps where (from 12 on).
    List { list: u64, length: u64, threads: u64 },
    /// By the address of the pointer to the first, and where each keeps the next.
    Chain { first: u64, next: u64 },
}

/// `JavaFrameAnchor`: the last frame before the code that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) sp: u64,
    pub(crate) pc: u64,
    pub(crate) fp: u64,
}

/// `Method`, `ConstMethod`, `ConstantPool`, `InstanceKlass` and `Symbol`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MethodLayout {
    pub(crate) constant: u64,
    pub(crate) pool: u64,
    pub(crate) code_size: u64,
    pub(crate) flags: u64,
    pub(crate) name: u64,
    /// Size of what stands before a method's bytecode.
    pub(crate) bytecode: u64,
    pub(crate) holder: u64,
    /// Size of what stands before a pool's entries.
    pub(crate) entries: u64,
    /// The source file's number in the pool: whether the class has it rather than the pool, and where.
    pub(crate) source: (bool, u64),
    pub(crate) class_name: u64,
    pub(crate) text_length: u64,
    pub(crate) text: u64,
}

/// `CodeCache` and `CodeHeap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheLayout {
    /// Address of the pointer to the heaps.
    pub(crate) heaps: u64,
    pub(crate) heaps_length: u64,
    pub(crate) heaps_data: u64,
    pub(crate) memory: u64,
    pub(crate) segments: u64,
    pub(crate) segment_shift: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// Size of what stands before a block's contents.
    pub(crate) block: u64,
}

/// `CodeBlob`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobLayout {
    pub(crate) name: u64,
    pub(crate) frame_size: u64,
    /// Where the code begins: whether it is told by an offset rather than an address, and where.
    pub(crate) code: (bool, u64),
}

/// `nmethod`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledLayout {
    pub(crate) method: u64,
    pub(crate) parts: Parts,
    /// Where the program counter was before the method was given up: where its offset in the frame is told, and
    /// whether its handler's place is told by an offset, and where.
    pub(crate) original_pc: u64,
    pub(crate) handler: Option<(bool, u64)>,
    pub(crate) pc_size: u64,
    pub(crate) pc: u64,
    pub(crate) scope: u64,
}

/// Where an `nmethod` has the methods, the scopes and the places that its code is described by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Behind the code: offsets of the metadata, of the places and of what follows, and the address of the scopes
    /// (up to 22).
    Behind { metadata: u64, scopes: u64, places: u64, end: u64 },
    /// In memory of their own (from 23 on), the methods behind the code or in other memory (from 25 on).
    Apart { data: u64, size: u64, scopes: u64, places: u64, methods: Methods },
}

/// Where an `nmethod` of 23 and later keeps its methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// Offset from the end of the code, which the second tells.
    Behind { metadata: u64, code_end: u64 },
    /// Memory, and the size of what comes first there.
    Mutable { data: u64, before: u64 },
}

impl Table {
    /// Reads a table's entries that `wanted` names, as `Type.field`; sizes of types as `Type`. `None` while the tables are
    /// not there yet.
    fn read(&self, memory: &mut Memory<'_, '_>, wanted: &[&str], fields: &mut Fields) -> Option<()> {
        let offset = |memory: &mut Memory<'_, '_>, at: u64| {
            if at == 0 { Some(0) } else { memory.word(at).filter(|offset| *offset < MAX_STRIDE) }
        };
        let stride = memory.word(self.stride).filter(|stride| (8..=MAX_STRIDE).contains(stride))?;
        let [type_name, field_name] = [offset(memory, self.type_name)?, offset(memory, self.field_name)?];
        let [value, address] = [offset(memory, self.value)?, offset(memory, self.address)?];
        let is_types = self.field_name == 0;
        let mut entry = memory.pointer(self.entries)?;
        // Entries of one type follow each other.
        let mut last: (u64, Option<String>) = (0, None);
        for _ in 0..MAX_ENTRIES {
            let at = memory.word(entry.checked_add(type_name)?)?;
            if at == 0 {
                return Some(());
            }
            if last.0 != at {
                let name = String::from_utf8(memory.text(at, MAX_NAME)?).ok();
                let is_wanted = |name: &String| {
                    wanted
                        .iter()
                        .any(|w| w.strip_prefix(name.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.')))
                };
                last = (at, name.filter(is_wanted));
            }
            if let Some(of_type) = &last.1 {
                let name = if is_types {
                    of_type.clone()
                } else {
                    let field = memory.pointer(entry.checked_add(field_name)?)?;
                    format!("{of_type}.{}", String::from_utf8_lossy(&memory.text(field, MAX_NAME)?))
                };
                if wanted.contains(&name.as_str()) {
                    let fixed = if is_types { 0 } else { memory.word(entry.checked_add(address)?)? };
                    let told = if fixed != 0 { fixed } else { memory.word(entry.checked_add(value)?)? };
                    fields.by_name.insert(name, told);
                }
            }
            entry = entry.checked_add(stride)?;
        }
        Some(())
    }
}

impl Fields {
    /// Returns the first of these fields that there is: an offset, or an address.
    fn any(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.by_name.get(*name).copied())
    }

    fn offset(&self, name: &str) -> Option<u64> {
        self.any(&[name]).filter(|offset| *offset < MAX_OFFSET)
    }

    fn first(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.offset(name))
    }

    fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}

const TYPES: &[&str] = &["ConstMethod", "ConstantPool", "HeapBlock", "PcDesc"];
const STRUCTS: &[&str] = &[
    "Abstract_VM_Version._vm_major_version",
    "CodeBlob._code_begin",
    "CodeBlob._code_offset",
    "CodeBlob._data_offset",
    "CodeBlob._frame_size",
    "CodeBlob._mutable_data",
    "CodeBlob._name",
    "CodeBlob._relocation_size",
    "CodeCache._heaps",
    "CodeHeap._log2_segment_size",
    "CodeHeap._memory",
    "CodeHeap._segmap",
    "CompiledMethod._deopt_handler_begin",
    "CompiledMethod._method",
    "CompiledMethod._scopes_data_begin",
    "ConstMethod._code_size",
    "ConstMethod._constants",
    "ConstMethod._flags",
    "ConstMethod._flags._flags",
    "ConstMethod._name_index",
    "ConstantPool._pool_holder",
    "ConstantPool._source_file_name_index",
    "GenericGrowableArray._len",
    "GrowableArray<int>._data",
    "GrowableArrayBase._len",
    "InstanceKlass._source_file_name_index",
    "JavaCallWrapper._anchor",
    "JavaFrameAnchor._last_Java_fp",
    "JavaFrameAnchor._last_Java_pc",
    "JavaFrameAnchor._last_Java_sp",
    "JavaThread._anchor",
    "JavaThread._next",
    "JavaThread._stack_base",
    "JavaThread._stack_size",
    "Klass._name",
    "Method._constMethod",
    "PcDesc._pc_offset",
    "PcDesc._scope_decode_offset",
    "StubRoutines._call_stub_return_address",
    "Symbol._body",
    "Symbol._body[0]",
    "Symbol._length",
    "Symbol._length_and_refcount",
    "Thread._stack_base",
    "Thread._stack_size",
    "ThreadsList._length",
    "ThreadsList._threads",
    "ThreadsSMRSupport._java_thread_list",
    "Threads._thread_list",
    "VirtualSpace._high",
    "VirtualSpace._low_boundary",
    "nmethod._deopt_handler_begin",
    "nmethod._deopt_handler_entry_offset",
    "nmethod._deopt_handler_offset",
    "nmethod._dependencies_offset",
    "nmethod._immutable_data",
    "nmethod._immutable_data_size",
    "nmethod._metadata_offset",
    "nmethod._method",
    "nmethod._orig_pc_offset",
    "nmethod._scopes_data_offset",
    "nmethod._scopes_pcs_offset",
];

impl Layout {
    /// Returns what a HotSpot tells of itself: `None` while it has not begun. Says what is missing where it does not tell
    /// enough.
    pub(crate) fn read(memory: &mut Memory<'_, '_>, structs: Table, types: Table) -> Option<Result<Self, String>> {
        let (mut fields, mut sizes) = (Fields::default(), Fields::default());
        structs.read(memory, STRUCTS, &mut fields)?;
        types.read(memory, TYPES, &mut sizes)?;
        let major = memory.half(fields.any(&["Abstract_VM_Version._vm_major_version"])?).filter(|major| *major > 0)?;
        let layout = Self::of(&fields, &sizes, major);
        Some(layout.ok_or_else(|| format!("of Java {major} it is not known where frames are kept")))
    }

    fn of(f: &Fields, sizes: &Fields, major: u32) -> Option<Self> {
        Some(Self {
            major,
            threads: Threads {
                all: AllThreads::of(f)?,
                anchor: f.offset("JavaThread._anchor")?,
                stack_base: f.first(&["JavaThread._stack_base", "Thread._stack_base"])?,
                stack_size: f.first(&["JavaThread._stack_size", "Thread._stack_size"])?,
            },
            anchor: Anchor {
                sp: f.offset("JavaFrameAnchor._last_Java_sp")?,
                pc: f.offset("JavaFrameAnchor._last_Java_pc")?,
                fp: f.offset("JavaFrameAnchor._last_Java_fp")?,
            },
            method: MethodLayout::of(f, sizes)?,
            cache: CacheLayout {
                heaps: f.any(&["CodeCache._heaps"])?,
                heaps_length: f.first(&["GrowableArrayBase._len", "GenericGrowableArray._len"])?,
                heaps_data: f.offset("GrowableArray<int>._data")?,
                memory: f.offset("CodeHeap._memory")?,
                segments: f.offset("CodeHeap._segmap")?,
                segment_shift: f.offset("CodeHeap._log2_segment_size")?,
                low: f.offset("VirtualSpace._low_boundary")?,
                high: f.offset("VirtualSpace._high")?,
                block: sizes.offset("HeapBlock")?,
            },
            blob: BlobLayout {
                name: f.offset("CodeBlob._name")?,
                frame_size: f.offset("CodeBlob._frame_size")?,
                code: match f.offset("CodeBlob._code_begin") {
                    Some(address) => (false, address),
                    None => (true, f.offset("CodeBlob._code_offset")?),
                },
            },
            compiled: CompiledLayout::of(f, sizes)?,
            call_stub_return: f.any(&["StubRoutines._call_stub_return_address"])?,
            wrapper_anchor: f.offset("JavaCallWrapper._anchor")?,
        })
    }
}

impl AllThreads {
    fn of(f: &Fields) -> Option<Self> {
        match f.any(&["ThreadsSMRSupport._java_thread_list"]) {
            Some(list) => {
                let [length, threads] = ["ThreadsList._length", "ThreadsList._threads"].map(|name| f.offset(name));
                Some(Self::List { list, length: length?, threads: threads? })
            }
            None => Some(Self::Chain { first: f.any(&["Threads._thread_list"])?, next: f.offset("JavaThread._next")? }),
        }
    }
}

impl MethodLayout {
    fn of(f: &Fields, sizes: &Fields) -> Option<Self> {
        let in_pool = f.offset("ConstantPool._source_file_name_index");
        let in_class = || f.offset("InstanceKlass._source_file_name_index");
        // Of the two in one word the length is the upper half (from 12 on).
        let length = f.offset("Symbol._length_and_refcount").map(|word| word + 2);
        Some(Self {
            constant: f.offset("Method._constMethod")?,
            pool: f.offset("ConstMethod._constants")?,
            code_size: f.offset("ConstMethod._code_size")?,
            flags: f.first(&["ConstMethod._flags._flags", "ConstMethod._flags"])?,
            name: f.offset("ConstMethod._name_index")?,
            bytecode: sizes.offset("ConstMethod")?,
            holder: f.offset("ConstantPool._pool_holder")?,
            entries: sizes.offset("ConstantPool")?,
            source: match in_pool {
                Some(at) => (false, at),
                None => (true, in_class()?),
            },
            class_name: f.offset("Klass._name")?,
            text_length: length.or_else(|| f.offset("Symbol._length"))?,
            text: f.first(&["Symbol._body", "Symbol._body[0]"])?,
        })
    }
}

impl CompiledLayout {
    fn of(f: &Fields, sizes: &Fields) -> Option<Self> {
        let places = f.offset("nmethod._scopes_pcs_offset")?;
        let parts = if f.has("nmethod._immutable_data") {
            let methods = match f.offset("CodeBlob._mutable_data") {
                Some(data) => Methods::Mutable { data, before: f.offset("CodeBlob._relocation_size")? },
                None => Methods::Behind {
                    metadata: f.offset("nmethod._metadata_offset")?,
                    code_end: f.offset("CodeBlob._data_offset")?,
                },
            };
            Parts::Apart {
                data: f.offset("nmethod._immutable_data")?,
                size: f.offset("nmethod._immutable_data_size")?,
                scopes: f.offset("nmethod._scopes_data_offset")?,
                places,
                methods,
            }
        } else {
            Parts::Behind {
                metadata: f.offset("nmethod._metadata_offset")?,
                scopes: f.offset("CompiledMethod._scopes_data_begin")?,
                places,
                end: f.offset("nmethod._dependencies_offset")?,
            }
        };
        let by_address = f.first(&["CompiledMethod._deopt_handler_begin", "nmethod._deopt_handler_begin"]);
        let by_offset = f.first(&["nmethod._deopt_handler_entry_offset", "nmethod._deopt_handler_offset"]);
        Some(Self {
            method: f.first(&["CompiledMethod._method", "nmethod._method"])?,
            parts,
            original_pc: f.offset("nmethod._orig_pc_offset")?,
            handler: by_address.map(|at| (false, at)).or(by_offset.map(|at| (true, at))),
            pc_size: sizes.offset("PcDesc")?,
            pc: f.offset("PcDesc._pc_offset")?,
            scope: f.offset("PcDesc._scope_decode_offset")?,
        })
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Layout {
    /// Returns the layout of OpenJDK 17, or of 25 if `newer`, whose own variables lie one behind the other from `own`
    /// on.
    pub(crate) fn tried(newer: bool, own: u64) -> Self {
        let parts = if newer {
            let methods = Methods::Mutable { data: 16, before: 28 };
            Parts::Apart { data: 96, size: 160, scopes: 200, places: 196, methods }
        } else {
            Parts::Behind { metadata: 260, scopes: 120, places: 268, end: 272 }
        };
        Self {
            major: if newer { 25 } else { 17 },
            threads: Threads {
                all: AllThreads::List { list: own, length: 4, threads: 16 },
                anchor: 656,
                stack_base: 592,
                stack_size: 600,
            },
            anchor: Anchor { sp: 0, pc: 8, fp: 16 },
            method: MethodLayout {
                constant: 8,
                pool: 8,
                code_size: 32,
                flags: 28,
                name: 34,
                bytecode: 48,
                holder: 24,
                entries: 72,
                source: (false, 54),
                class_name: 24,
                text_length: 4,
                text: 6,
            },
            cache: CacheLayout {
                heaps: own + 8,
                heaps_length: 0,
                heaps_data: 8,
                memory: 8,
                segments: 120,
                segment_shift: 256,
                low: 0,
                high: 24,
                block: 16,
            },
            blob: BlobLayout { name: 96, frame_size: 28, code: if newer { (true, 36) } else { (false, 32) } },
            compiled: CompiledLayout {
                method: 112,
                parts,
                original_pc: 300,
                handler: Some(if newer { (true, 176) } else { (false, 128) }),
                pc_size: 16,
                pc: 0,
                scope: 4,
            },
            call_stub_return: own + 16,
            wrapper_anchor: 32,
        }
    }
}
