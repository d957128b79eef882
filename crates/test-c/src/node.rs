//! The interface for Node, which loads this library as an addon (Node-API version 1, stable in all
//! versions).
//!
//! Node's functions are looked up when it registers the addon: they exist nowhere else.

use crate::callers_json;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;
use systoll_test::{Counts, abi};

type Env = *mut c_void;
type Value = *mut c_void;
type Callback = extern "C" fn(Env, *mut c_void) -> Value;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

type CreateFunction = unsafe extern "C" fn(Env, *const c_char, usize, Callback, *mut c_void, *mut Value) -> i32;
type SetNamedProperty = unsafe extern "C" fn(Env, Value, *const c_char, Value) -> i32;
type CreateString = unsafe extern "C" fn(Env, *const c_char, usize, *mut Value) -> i32;
type Arguments = unsafe extern "C" fn(Env, *mut c_void, *mut usize, *mut Value, *mut Value, *mut *mut c_void) -> i32;
type Number = unsafe extern "C" fn(Env, Value, *mut i64) -> i32;

/// The functions of Node that this addon uses.
struct Api {
    create_function: CreateFunction,
    set_named_property: SetNamedProperty,
    create_string: CreateString,
    arguments: Arguments,
    number: Number,
}

static API: OnceLock<Option<Api>> = OnceLock::new();

/// Ended blocks of a JavaScript thread. Callers' names are looked up when they are requested.
#[derive(Default)]
struct Ended {
    next: i64,
    blocks: BTreeMap<i64, Counts>,
}

thread_local! {
    static ENDED: RefCell<Ended> = RefCell::default();
}

impl Api {
    fn find() -> Option<Self> {
        // SAFETY: names end with a zero; null means the whole process.
        let find = |name: &CStr| Some(unsafe { dlsym(null_mut(), name.as_ptr()) }).filter(|at| !at.is_null());
        // SAFETY: Node-API's functions with these names have these types, in all versions.
        Some(unsafe {
            Self {
                create_function: transmute::<*mut c_void, CreateFunction>(find(c"napi_create_function")?),
                set_named_property: transmute::<*mut c_void, SetNamedProperty>(find(c"napi_set_named_property")?),
                create_string: transmute::<*mut c_void, CreateString>(find(c"napi_create_string_utf8")?),
                arguments: transmute::<*mut c_void, Arguments>(find(c"napi_get_cb_info")?),
                number: transmute::<*mut c_void, Number>(find(c"napi_get_value_int64")?),
            }
        })
    }
}

fn api() -> Option<&'static Api> {
    API.get_or_init(Api::find).as_ref()
}

/// Returns a JavaScript string, or `undefined` for null.
fn string(env: Env, text: *mut c_char) -> Value {
    let mut value = null_mut();
    if let (Some(api), false) = (api(), text.is_null()) {
        // SAFETY: a text of ours; Node copies it.
        unsafe { (api.create_string)(env, text, CStr::from_ptr(text).to_bytes().len(), &raw mut value) };
    }
    // SAFETY: a text of ours, or null.
    unsafe { crate::systoll_block_free_text(text) };
    value
}

/// `begin()`: returns undefined if a block has begun, else the reason why not.
extern "C" fn begin(env: Env, _info: *mut c_void) -> Value {
    // SAFETY: no Python here.
    let why = unsafe { crate::systoll_block_begin(std::ptr::null()) };
    string(env, why)
}

/// `end()`: returns the block's counts as JSON, with the number for `callers`; undefined if this
/// thread has no block.
extern "C" fn end(env: Env, _info: *mut c_void) -> Value {
    let Ok(counts) = abi::end() else { return null_mut() };
    let id = ENDED.with_borrow_mut(|ended| {
        ended.next += 1;
        ended.next
    });
    let text = crate::text(&Numbered { id, counts: crate::told(&counts) });
    ENDED.with_borrow_mut(|ended| ended.blocks.insert(id, counts));
    string(env, text)
}

#[derive(Serialize)]
struct Numbered {
    id: i64,
    counts: crate::BlockReport,
}

/// Returns the number that a function was called with; 0, which no block has, if it was no number.
fn argument(env: Env, info: *mut c_void) -> i64 {
    let (mut argument, mut given, mut number) = (null_mut(), 1, 0);
    if let Some(api) = api() {
        // SAFETY: Node's own functions; there is room for one argument, as `given` says.
        unsafe {
            (api.arguments)(env, info, &raw mut given, &raw mut argument, null_mut(), null_mut());
            (api.number)(env, argument, &raw mut number);
        }
    }
    number
}

/// `callers(id)`: returns the callers of a block's calls as JSON; undefined if the block was
/// forgotten.
extern "C" fn callers(env: Env, info: *mut c_void) -> Value {
    let id = argument(env, info);
    let text = ENDED.with_borrow(|ended| ended.blocks.get(&id).map_or(null_mut(), callers_json));
    string(env, text)
}

/// `forget(id)`: drops a block's callers.
extern "C" fn forget(env: Env, info: *mut c_void) -> Value {
    let id = argument(env, info);
    ENDED.with_borrow_mut(|ended| ended.blocks.remove(&id));
    null_mut()
}

/// `names()`: returns all names of system calls as JSON.
extern "C" fn names(env: Env, _info: *mut c_void) -> Value {
    string(env, crate::text(&systoll_test::names().collect::<Vec<_>>()))
}

/// Registers the addon's functions; Node calls it when it loads the addon.
///
/// # Safety
/// `env` is Node's environment, and `exports` the addon's object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: *mut c_void, exports: *mut c_void) -> *mut c_void {
    let Some(api) = api() else { return exports };
    for (name, callback) in
        [(c"begin", begin as Callback), (c"end", end), (c"callers", callers), (c"forget", forget), (c"names", names)]
    {
        let mut function = null_mut();
        // SAFETY: the caller guarantees it; names end with a zero.
        unsafe {
            if (api.create_function)(env, name.as_ptr(), name.to_bytes().len(), callback, null_mut(), &raw mut function)
                == 0
            {
                (api.set_named_property)(env, exports, name.as_ptr(), function);
            }
        }
    }
    exports
}
