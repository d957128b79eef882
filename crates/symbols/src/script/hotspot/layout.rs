//! Offsets of HotSpot's fields, as HotSpot itself tells them: `gHotSpotVMStructs` and `gHotSpotVMTypes`, the tables
//! that it exports for debuggers (vmStructs.hpp of OpenJDK).

use crate::script::memory::Memory;
use std::collections::HashMap;

/// Bytes read of a type's or field's name, at most; every name in [`TYPES`] and [`STRUCTS`] is shorter.
const MAX_NAME: usize = 64;
/// Entries read of a table, at most.
const MAX_ENTRIES: u64 = 1 << 14;
/// Size of a table's entry, at most, bytes; also the bound of an offset within an entry.
const MAX_STRIDE: u64 = 256;
/// Bound of a field's offset, bytes; an offset from here on is not believed.
const MAX_OFFSET: u64 = 1 << 16;

/// Addresses of the exported variables that describe one of the tables: `entries` holds the table's address, the
/// others hold the size of an entry and offsets within it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) entries: u64,
    pub(crate) stride: u64,
    pub(crate) type_name: u64,
    /// Address of the offset of an entry's field name; 0 in the table of types.
    pub(crate) field_name: u64,
    /// Address of the variable with the offset, within an entry, of its value. The value is the field's offset, or in
    /// the table of types the type's size.
    pub(crate) value: u64,
    /// Address of the offset at which an entry of a static field holds that field's address; 0 in the table of types.
    pub(crate) address: u64,
}

/// Values that a table gives for the names asked for: offsets, addresses of static fields, sizes of types.
#[derive(Debug, Default)]
struct Fields {
    by_name: HashMap<String, u64>,
}

/// The layout of HotSpot's data in one version: offsets in bytes from an object's start, and addresses of static
/// fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Major version of Java.
    pub(crate) major: u32,
    pub(crate) threads: Threads,
    pub(crate) anchor: Anchor,
    pub(crate) method: MethodLayout,
    pub(crate) cache: CacheLayout,
    pub(crate) blob: BlobLayout,
    pub(crate) compiled: CompiledLayout,
    /// Address that a call into Java returns to.
    pub(crate) call_stub_return: u64,
    /// Offset of `JavaCallWrapper._anchor`, which holds the anchor of the Java frames before that call.
    pub(crate) wrapper_anchor: u64,
}

/// The way to the threads, and offsets in a thread (`JavaThread`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    pub(crate) all: AllThreads,
    pub(crate) anchor: u64,
    pub(crate) stack_base: u64,
    pub(crate) stack_size: u64,
}

/// The way to all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllThreads {
    /// The address of the pointer to a list, and offsets in the list (from 12 on).
    List { list: u64, length: u64, threads: u64 },
    /// The address of the pointer to the first thread, and the offset of the next one in each.
    Chain { first: u64, next: u64 },
}

/// Offsets of the fields of `JavaFrameAnchor`, which tells the last Java frame before the code that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) sp: u64,
    pub(crate) pc: u64,
    pub(crate) fp: u64,
}

/// Offsets in `Method`, `ConstMethod`, `ConstantPool`, `InstanceKlass` and `Symbol`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MethodLayout {
    pub(crate) constant: u64,
    pub(crate) pool: u64,
    pub(crate) code_size: u64,
    pub(crate) flags: u64,
    pub(crate) name: u64,
    /// Size of `ConstMethod`, bytes; a method's bytecode follows it.
    pub(crate) bytecode: u64,
    pub(crate) holder: u64,
    /// Size of `ConstantPool`, bytes; the pool's entries follow it.
    pub(crate) entries: u64,
    /// Offset of the source file's index in the pool. The flag is true if the class has this field, false if the pool
    /// has it.
    pub(crate) source: (bool, u64),
    pub(crate) class_name: u64,
    pub(crate) text_length: u64,
    pub(crate) text: u64,
}

/// Address of the code heaps, and offsets in `CodeHeap` and in its lists.
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
    /// Size of a block's header (`HeapBlock`), bytes; the block's contents follow it.
    pub(crate) block: u64,
}

/// Offsets of the fields of `CodeBlob`, the header of compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobLayout {
    pub(crate) name: u64,
    pub(crate) frame_size: u64,
    /// Offset of the field that tells where the code begins. The flag is true if that field holds an offset from the
    /// blob, false if it holds an address.
    pub(crate) code: (bool, u64),
}

/// Offsets of the fields of `nmethod`, the header of a compiled method, and of `PcDesc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompiledLayout {
    pub(crate) method: u64,
    pub(crate) parts: Parts,
    /// Offset of the field that tells where a frame keeps its original program counter once the method is
    /// deoptimized.
    pub(crate) original_pc: u64,
    /// Offset of the field that tells where the deoptimization handler is, if HotSpot tells it. The flag is true if
    /// that field holds an offset, false if it holds an address.
    pub(crate) handler: Option<(bool, u64)>,
    pub(crate) pc_size: u64,
    pub(crate) pc: u64,
    pub(crate) scope: u64,
}

/// The places at which an `nmethod` keeps its methods (metadata), its scopes, and the code addresses that have a scope
/// (`PcDesc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// All of them follow the code (up to Java 22). The fields `metadata`, `places` and `end`, the end of the places,
    /// hold offsets; `scopes` holds an address.
    Behind { metadata: u64, scopes: u64, places: u64, end: u64 },
    /// The scopes and places have memory of their own (from Java 23 on); `methods` says where the methods are.
    Apart { data: u64, size: u64, scopes: u64, places: u64, methods: Methods },
}

/// The place at which an `nmethod` of Java 23 or later keeps its methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// Behind the code: `metadata` holds an offset from the end of the code, and `code_end` holds that end's offset.
    Behind { metadata: u64, code_end: u64 },
    /// In other memory (from Java 25 on): `data` holds its address, `before` the size of what precedes the methods
    /// there.
    Mutable { data: u64, before: u64 },
}

impl Table {
    /// Adds the entries that `wanted` names to `fields`: a field is named `Type.field`, a type's size `Type`. Returns
    /// `None` while the tables are not filled yet.
    fn read(&self, memory: &mut Memory<'_, '_>, wanted: &[&str], fields: &mut Fields) -> Option<()> {
        let offset = |memory: &mut Memory<'_, '_>, at: u64| {
            if at == 0 { Some(0) } else { memory.word(at).filter(|offset| *offset < MAX_STRIDE) }
        };
        let stride = memory.word(self.stride).filter(|stride| (8..=MAX_STRIDE).contains(stride))?;
        let [type_name, field_name] = [offset(memory, self.type_name)?, offset(memory, self.field_name)?];
        let [value, address] = [offset(memory, self.value)?, offset(memory, self.address)?];
        let is_types = self.field_name == 0;
        let mut entry = memory.pointer(self.entries)?;
        // Consecutive entries mostly have the same type; its name is read once.
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
    /// Returns the value of the first of `names` that HotSpot tells: an offset, or an address.
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
    /// Reads the layout that HotSpot tells. Returns `None` while HotSpot has not started, and a message if it tells
    /// too little.
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
        // The word holds two half words; the upper one is the length (from Java 12 on).
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
    /// Returns the layout of OpenJDK 17, or of OpenJDK 25 if `newer`; HotSpot's own variables lie one behind the
    /// other from `own` on.
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
