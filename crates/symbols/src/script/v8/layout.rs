//! Offsets of V8's fields, as its build tells them: `v8dbg_…`, the constants that it exports for debuggers
//! (tools/gen-postmortem-metadata.py of V8).
//!
//! The offset of a field that a version does not export is derived from its exported neighbours. Every object's type
//! is checked before the object is read.

use super::positions::Steps;
use crate::script::interpreter::Candidate;
use std::ops::Range;

/// The layout of V8's data in one version: offsets in bytes from an object's start, and numbers of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) frame: FrameLayout,
    pub(crate) types: Types,
    pub(crate) strings: Strings,
    /// Offset of `Map::instance_type`.
    pub(crate) instance_type: u64,
    /// Offset of `JSFunction::shared`.
    pub(crate) shared: u64,
    /// Offset of `SharedFunctionInfo::name_or_scope_info`.
    pub(crate) function_name: u64,
    /// Offset of `SharedFunctionInfo::script`.
    pub(crate) function_script: u64,
    /// Offset of `FixedArrayBase::length`.
    pub(crate) length: u64,
    /// Offset of an array's first element.
    pub(crate) elements: u64,
    /// Offset of the source positions of a `BytecodeArray`.
    pub(crate) bytecode_positions: u64,
    /// Offset of a `BytecodeArray`'s first instruction.
    pub(crate) bytecode: u64,
    pub(crate) script: ScriptLayout,
    pub(crate) scope: ScopeLayout,
    pub(crate) code: CodeLayout,
    pub(crate) inlined: InlinedLayout,
    pub(crate) waits: WaitLayout,
    /// Lengths of bytecodes (`Bytecodes::kBytecodeSizes`): as many bytes for each of the three operand scales.
    pub(crate) bytecode_sizes: Vec<u8>,
    /// The way in which tables of positions are written.
    pub(crate) steps: Steps,
}

/// Offsets of an interpreted frame's words from the frame pointer, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameLayout {
    pub(crate) context: i32,
    pub(crate) function: i32,
    pub(crate) bytecode: i32,
    pub(crate) offset: i32,
    /// Offset of the number of arguments, which all code of JavaScript stores.
    pub(crate) arguments: i32,
}

/// Numbers of object types (`InstanceType`); a pair is the first and the last of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) map: u16,
    pub(crate) contexts: (u16, u16),
    pub(crate) functions: (u16, u16),
    pub(crate) shared: u16,
    pub(crate) scope: u16,
    pub(crate) script: u16,
    pub(crate) bytecode: u16,
    /// Type of code as it lies in memory: `InstructionStream`, or `Code` in versions without it.
    pub(crate) stream: u16,
    pub(crate) code: u16,
    /// Types of byte tables.
    pub(crate) bytes: [u16; 2],
    /// Types of arrays of objects.
    pub(crate) arrays: [u16; 6],
}

/// Bits that tell the kind of a string from its type, and offsets of the fields of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strings {
    pub(crate) first_other: u16,
    pub(crate) representation: u16,
    pub(crate) encoding: u16,
    pub(crate) one_byte: u16,
    pub(crate) cons: u16,
    pub(crate) external: u16,
    pub(crate) sliced: u16,
    pub(crate) thin: u16,
    pub(crate) length: u64,
    pub(crate) chars: u64,
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) parent: u64,
    pub(crate) offset: u64,
    pub(crate) actual: u64,
    /// Offset of `ExternalString::resource`; the address of the text follows it.
    pub(crate) resource: u64,
}

/// Offsets of the fields of `Script`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptLayout {
    pub(crate) source: u64,
    pub(crate) name: u64,
    pub(crate) line_ends: u64,
}

/// Indexes of slots of a `ScopeInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScopeLayout {
    pub(crate) locals: u64,
    pub(crate) first: u64,
}

/// Offsets of the fields of `Code`, and how its flags tell the kind of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeLayout {
    /// Distance from the start of the object that lies in memory to its first instruction.
    pub(crate) header: u64,
    /// Offset of the address of the first instruction; `None` where the instructions follow the fields of `Code`.
    pub(crate) start: Option<u64>,
    pub(crate) size: u64,
    pub(crate) flags: u64,
    pub(crate) positions: u64,
    pub(crate) deoptimization: u64,
    pub(crate) kind_mask: u32,
    pub(crate) kind_shift: u32,
    pub(crate) interpreted: u32,
    pub(crate) baseline: u32,
}

/// Indexes of elements of `DeoptimizationData`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InlinedLayout {
    pub(crate) count: u64,
    pub(crate) functions: u64,
    pub(crate) positions: u64,
}

/// Types and offsets of the objects by which a function that waits is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitLayout {
    /// First type of objects that have properties.
    pub(crate) objects: u16,
    /// Types of generators: plain ones, asynchronous functions, asynchronous generators.
    pub(crate) generators: (u16, u16),
    pub(crate) promise: u16,
    pub(crate) reaction: u16,
    pub(crate) capability: u16,
    pub(crate) request: u16,
    pub(crate) property_array: u16,
    /// Types of functions that are not compiled yet.
    pub(crate) uncompiled: (u16, u16),
    /// Offset of `JSFunction::context`.
    pub(crate) function_context: u64,
    /// Offset of `JSGeneratorObject::function`.
    pub(crate) generator: u64,
    /// Offset of `JSPromise::reactions_or_result`.
    pub(crate) reactions: u64,
    /// Offset of `JSReceiver::properties_or_hash`.
    pub(crate) properties: u64,
    /// Offset of `JSObject::elements`.
    pub(crate) elements: u64,
    /// Offset of `Map::instance_size_in_words`; of the first property in the object, in words: one more.
    pub(crate) size_in_words: u64,
    /// Number of a dictionary's elements before its entries.
    pub(crate) dictionary: u64,
    pub(crate) first_in_words: u64,
}

const WORD: u64 = 8;
/// Offset of a `ScopeInfo`'s first slot.
pub(crate) const SLOTS: u64 = 8;
/// Type number that no object has.
const NONE: u16 = u16::MAX;

/// Constants that a file exports for debuggers.
struct Exported<'e>(Candidate<'e>);

impl Exported<'_> {
    /// Returns the value of the first of `names` that the file exports.
    fn first(&self, names: &[&str]) -> Option<u32> {
        names.iter().find_map(|name| {
            let [at] = self.0.exported([&format!("v8dbg_{name}")]);
            // A constant of value 0 lies in zero-filled memory, which the file does not store.
            Some(self.0.half(at?).unwrap_or(0))
        })
    }

    fn field(&self, names: &[&str]) -> Option<u64> {
        self.first(names).map(u64::from).filter(|offset| *offset < 4096)
    }

    fn number(&self, name: &str) -> Option<u16> {
        u16::try_from(self.first(&[name])?).ok()
    }

    fn type_of(&self, name: &str) -> Option<u16> {
        self.number(&format!("type_{name}"))
    }

    fn frame(&self, name: &str) -> Option<i32> {
        self.first(&[name]).map(u32::cast_signed).filter(|offset| (-256..0).contains(offset))
    }
}

impl Layout {
    /// Returns the layout of the V8 in a file; `None` if the file exports too little.
    pub(crate) fn of(file: Candidate<'_>) -> Option<Self> {
        let e = Exported(file);
        // Without compressed pointers, the address of an object ends with the bits 01, and an integer is the upper
        // half of a word.
        let tags = ["HeapObjectTag", "HeapObjectTagMask", "SmiTag", "SmiTagMask", "SmiShiftSize"];
        (tags.map(|name| e.number(name)) == [Some(1), Some(3), Some(0), Some(1), Some(31)]).then_some(())?;
        let wraps_bytecode = e.first(&["class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_"]).is_some();
        let length = e.field(&["class_FixedArrayBase__length__SMI"])?;
        let before_names = e.field(&["scopeinfo_idx_first_vars"])?;
        Some(Self {
            frame: FrameLayout {
                context: e.frame("off_fp_context")?,
                function: e.frame("off_fp_function")?,
                bytecode: e.frame("off_fp_bytecode_array")?,
                offset: e.frame("off_fp_bytecode_offset")?,
                // It lies behind the function (`StandardFrameConstants::kArgCOffset`), and is not exported.
                arguments: e.frame("off_fp_function")? - 8,
            },
            types: Types::of(&e)?,
            strings: Strings::of(&e)?,
            instance_type: e.field(&["class_Map__instance_type__uint16_t"])?,
            shared: e.field(&["class_JSFunction__shared__SharedFunctionInfo"])?,
            function_name: e.field(&[
                "class_SharedFunctionInfo__name_or_scope_info__Object",
                "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
                "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
            ])?,
            function_script: e.field(&[
                "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
                "class_SharedFunctionInfo__script_or_debug_info__Object",
                "class_SharedFunctionInfo__script__Tagged_HeapObject_",
            ])?,
            length,
            elements: e.field(&["class_FixedArray__data__uintptr_t"])?,
            bytecode_positions: if wraps_bytecode { length + 2 * WORD } else { length + 3 * WORD },
            bytecode: e.field(&["class_BytecodeArray__data__uintptr_t"])?,
            script: ScriptLayout::of(&e)?,
            scope: ScopeLayout { locals: e.field(&["scopeinfo_idx_ncontextlocals"])?, first: before_names },
            code: CodeLayout::of(&e)?,
            inlined: InlinedLayout::of(&e)?,
            waits: WaitLayout::of(&e),
            bytecode_sizes: bytecode_sizes(file),
            steps: steps(file)?,
        })
    }
}

impl Types {
    fn of(e: &Exported<'_>) -> Option<Self> {
        let function = e.type_of("JSFunction__JS_FUNCTION_TYPE")?;
        // If functions have several types, those of classes and of the language's own constructors follow this one.
        let last = e.number("LastJSFunctionType").or(function.checked_add(16))?;
        let code = e.type_of("Code__CODE_TYPE")?;
        let either = |name: &str| e.type_of(name).unwrap_or(NONE);
        Some(Self {
            map: e.type_of("Map__MAP_TYPE")?,
            contexts: (e.number("FirstContextType")?, e.number("LastContextType")?),
            functions: (e.number("FirstJSFunctionType").unwrap_or(function), last),
            shared: e.type_of("SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?,
            scope: e.type_of("ScopeInfo__SCOPE_INFO_TYPE")?,
            script: e.type_of("Script__SCRIPT_TYPE")?,
            bytecode: e.type_of("BytecodeArray__BYTECODE_ARRAY_TYPE")?,
            stream: e.type_of("InstructionStream__INSTRUCTION_STREAM_TYPE").unwrap_or(code),
            code,
            bytes: [e.type_of("ByteArray__BYTE_ARRAY_TYPE")?, either("TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE")],
            arrays: [
                e.type_of("FixedArray__FIXED_ARRAY_TYPE")?,
                either("WeakFixedArray__WEAK_FIXED_ARRAY_TYPE"),
                either("TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE"),
                either("TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY_TYPE"),
                either("ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE"),
                either("ProtectedWeakFixedArray__PROTECTED_WEAK_FIXED_ARRAY_TYPE"),
            ],
        })
    }
}

impl Strings {
    fn of(e: &Exported<'_>) -> Option<Self> {
        Some(Self {
            first_other: e.number("FirstNonstringType")?,
            representation: e.number("StringRepresentationMask")?,
            encoding: e.number("StringEncodingMask")?,
            one_byte: e.number("OneByteStringTag")?,
            cons: e.number("ConsStringTag")?,
            external: e.number("ExternalStringTag")?,
            sliced: e.number("SlicedStringTag")?,
            thin: e.number("ThinStringTag")?,
            length: e.field(&["class_String__length__int32_t"])?,
            chars: e.field(&["class_SeqOneByteString__chars__char"])?,
            first: e.field(&["class_ConsString__first__String"])?,
            second: e.field(&["class_ConsString__second__String"])?,
            parent: e.field(&["class_SlicedString__parent__String"])?,
            offset: e.field(&["class_SlicedString__offset__SMI"])?,
            actual: e.field(&["class_ThinString__actual__String"])?,
            resource: e.field(&["class_ExternalString__resource__Object"])?,
        })
    }
}

impl ScriptLayout {
    fn of(e: &Exported<'_>) -> Option<Self> {
        Some(Self {
            source: e.field(&["class_Script__source__Object"])?,
            name: e.field(&["class_Script__name__Object"])?,
            line_ends: e.field(&["class_Script__line_ends__Object"])?,
        })
    }

    /// Returns the offset of the line of the file at which the script begins (`line_offset`).
    pub(crate) fn first_line(&self) -> u64 {
        self.name + WORD
    }

    /// Returns the offset of the script's number.
    pub(crate) fn id(&self) -> u64 {
        self.line_ends + WORD
    }
}

impl CodeLayout {
    fn of(e: &Exported<'_>) -> Option<Self> {
        let within = e.field(&["class_Code__instruction_start__uintptr_t"]);
        let pointer = e.field(&["class_Code__instruction_start__Address"]);
        let positions = e.field(&["class_Code__source_position_table__ByteArray"]);
        let size = e.field(&["class_Code__instruction_size__int"]);
        let wraps = e.first(&["class_Code__wrapper__Tagged_CodeWrapper_"]).is_some();
        // Instructions follow the fields (V8 10), or begin at the address in a field, which is exported (12, 13) or
        // not (11).
        let positions = match (within, pointer) {
            (Some(_), _) => positions.or(size?.checked_sub(2 * WORD))?,
            (_, Some(start)) => positions.or(start.checked_sub(if wraps { 3 } else { 2 } * WORD))?,
            (None, None) => positions?,
        };
        let start = if within.is_some() { None } else { Some(pointer.unwrap_or(positions + 2 * WORD)) };
        let flags = e.field(&["class_Code__flags__uint32_t"]).or(start.map(|start| start + WORD))?;
        Some(Self {
            header: within.or_else(|| e.field(&["class_InstructionStream__instruction_start__uintptr_t"]))?,
            start,
            // In V8 11.3 the builtin's number and other flags lie between.
            size: size.unwrap_or(flags + WORD),
            flags,
            positions,
            deoptimization: positions.checked_sub(WORD)?,
            kind_mask: e.first(&["CodeKindFieldMask"])?,
            kind_shift: e.first(&["CodeKindFieldShift"])?.min(31),
            interpreted: e.first(&["CodeKindInterpretedFunction"])?,
            baseline: e.first(&["CodeKindBaseline"])?,
        })
    }
}

impl WaitLayout {
    /// Returns the types that a file exports; those that it doesn't export are of no object.
    fn of(e: &Exported<'_>) -> Self {
        let kind = |name: &str| e.type_of(name).unwrap_or(NONE);
        let generator = kind("JSAsyncFunctionObject__JS_ASYNC_FUNCTION_OBJECT_TYPE");
        let uncompiled = [
            "UncompiledDataWithPreparseData__UNCOMPILED_DATA_WITH_PREPARSE_DATA_TYPE",
            "UncompiledDataWithoutPreparseDataWithJob__UNCOMPILED_DATA_WITHOUT_PREPARSE_DATA_WITH_JOB_TYPE",
        ];
        let elements = e.field(&["class_JSObject__elements__Object"]).unwrap_or(2 * WORD);
        Self {
            objects: kind("JSObject__JS_OBJECT_TYPE"),
            generators: (generator, kind("JSAsyncGeneratorObject__JS_ASYNC_GENERATOR_OBJECT_TYPE")),
            promise: kind("JSPromise__JS_PROMISE_TYPE"),
            reaction: kind("PromiseReaction__PROMISE_REACTION_TYPE"),
            capability: kind("PromiseCapability__PROMISE_CAPABILITY_TYPE"),
            request: kind("AsyncGeneratorRequest__ASYNC_GENERATOR_REQUEST_TYPE"),
            property_array: kind("PropertyArray__PROPERTY_ARRAY_TYPE"),
            uncompiled: (kind(uncompiled[0]), kind(uncompiled[1])),
            function_context: e.field(&["class_JSFunction__context__Context"]).unwrap_or(4 * WORD),
            generator: elements + WORD,
            reactions: elements + WORD,
            properties: WORD,
            elements,
            size_in_words: e.field(&["class_Map__instance_size_in_words__char"]).unwrap_or(WORD),
            dictionary: e.field(&["namedictionary_prefix_start_index"]).unwrap_or(3)
                + e.field(&["namedictionaryshape_prefix_size"]).unwrap_or(2),
            first_in_words: 1 + e.field(&["class_Map__instance_size_in_words__char"]).unwrap_or(WORD),
        }
    }

    /// Returns true for the type of an object by which an `await` goes on.
    pub(crate) fn carries(&self, kind: u16) -> bool {
        let (first, last) = self.generators;
        (first..=last).contains(&kind) || [self.promise, self.capability, self.reaction].contains(&kind)
    }
}

impl InlinedLayout {
    fn of(e: &Exported<'_>) -> Option<Self> {
        let own = e.field(&[
            "DeoptimizationDataSharedFunctionInfoIndex",
            "DeoptimizationDataWrappedSharedFunctionInfoIndex",
            "DeoptimizationDataSharedFunctionInfoWrapperIndex",
        ]);
        Some(Self {
            count: e.field(&["DeoptimizationDataInlinedFunctionCountIndex"]).unwrap_or(1),
            functions: e.field(&["DeoptimizationDataLiteralArrayIndex"]).unwrap_or(2),
            positions: e.field(&["DeoptimizationDataInliningPositionsIndex"]).unwrap_or(own.unwrap_or(6) + 1),
        })
    }
}

/// Returns the form of V8's tables of positions, by V8's own version; `None` for a version whose tables are not known.
fn steps(file: Candidate<'_>) -> Option<Steps> {
    let [major] = file.exported(["_ZN2v88internal7Version6major_E"]);
    match file.half(major?)? {
        9..=13 => Some(Steps::Signed),
        14 => Some(Steps::Flagged),
        _ => None,
    }
}

/// Returns the lengths of bytecodes; empty if the file does not name them.
fn bytecode_sizes(file: Candidate<'_>) -> Vec<u8> {
    const MOST: u64 = 3 * 256;
    const NAME: &str = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";
    let is_table = |range: &Range<u64>| {
        let size = range.end.saturating_sub(range.start);
        (1..=MOST).contains(&size) && size.is_multiple_of(3)
    };
    let exported = Some(file.function(NAME)).filter(is_table);
    // From 24 on Node's own builds keep the name to themselves.
    let table = exported.or_else(|| file.own_data(NAME, &is_table));
    table.and_then(|table| file.elf.read_vaddr(table.start, table.end - table.start)).unwrap_or_default()
}

#[cfg(any(test, feature = "fuzzing"))]
impl Layout {
    /// Returns the layout of Node 20, or of Node 24 if `newer`.
    pub(crate) fn tried(newer: bool) -> Self {
        let either = |new: u64, old: u64| if newer { new } else { old };
        let kind = |new: u16, old: u16| if newer { new } else { old };
        Self {
            frame: FrameLayout { context: -8, function: -16, bytecode: -32, offset: -40, arguments: -24 },
            types: Types {
                map: kind(254, 255),
                contexts: if newer { (220, 229) } else { (205, 214) },
                functions: if newer { (2065, 2081) } else { (2066, 2082) },
                shared: kind(282, 262),
                scope: kind(280, 261),
                script: 167,
                bytecode: kind(186, 191),
                stream: kind(190, 246),
                code: kind(187, 245),
                bytes: [kind(217, 190), kind(196, NONE)],
                arrays: [kind(205, 175), kind(256, 240), kind(197, NONE), kind(199, NONE), kind(193, NONE), NONE],
            },
            strings: Strings::tried(),
            instance_type: 12,
            shared: either(32, 24),
            function_name: either(24, 16),
            function_script: either(40, 32),
            length: 8,
            elements: 16,
            bytecode_positions: either(24, 32),
            bytecode: either(64, 54),
            script: ScriptLayout { source: 8, name: 16, line_ends: 56 },
            scope: ScopeLayout { locals: 2, first: either(5, 3) },
            code: CodeLayout {
                header: either(32, 16),
                start: Some(40),
                size: 56,
                flags: either(52, 48),
                positions: either(16, 24),
                deoptimization: either(8, 16),
                kind_mask: 15,
                kind_shift: 0,
                interpreted: if newer { 9 } else { 10 },
                baseline: if newer { 10 } else { 11 },
            },
            inlined: InlinedLayout { count: 1, functions: either(3, 2), positions: either(8, 7) },
            waits: WaitLayout {
                objects: 1057,
                generators: if newer { (2110, 2111) } else { (2106, 2107) },
                promise: kind(2115, 2063),
                reaction: kind(162, 163),
                capability: 161,
                request: kind(146, 148),
                property_array: kind(277, 259),
                uncompiled: if newer { (175, 178) } else { (220, 223) },
                function_context: either(40, 32),
                generator: 24,
                reactions: 24,
                properties: 8,
                elements: 16,
                size_in_words: 8,
                first_in_words: 9,
                dictionary: 6,
            },
            bytecode_sizes: vec![1, 2, 3, 4, 5, 6],
            steps: if newer { Steps::Flagged } else { Steps::Signed },
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Strings {
    fn tried() -> Self {
        Self {
            first_other: 128,
            representation: 7,
            encoding: 8,
            one_byte: 8,
            cons: 1,
            external: 2,
            sliced: 3,
            thin: 5,
            length: 12,
            chars: 16,
            first: 16,
            second: 24,
            parent: 16,
            offset: 24,
            actual: 16,
            resource: 16,
        }
    }
}
