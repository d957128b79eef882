//! The same for Node, which loads this library as an addon (Node-API version 1, stable in all of them).
//!
//! Node's functions are looked up when it registers the addon: elsewhere they do not exist.

use crate::{callers_json, counts_json};
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use systoll_test::{Counts, abi};

type Env = *mut c_void;
type Value = *mut c_void;
type Callback = extern "C" fn(Env, *mut c_void) -> Value;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The functions of Node that are used.
struct Api {
    create_function: unsafe extern "C" fn(Env, *const c_char, usize, Callback, *mut c_void, *mut Value) -> i32,
    set_named_property: unsafe extern "C" fn(Env, Value, *const c_char, Value) -> i32,
    create_string: unsafe extern "C" fn(Env, *const c_char, usize, *mut Value) -> i32,
}

static API: OnceLock<Option<Api>> = OnceLock::new();

thread_local! {
    /// What the thread's last block counted: `callers` is asked right after it, if at all.
    static LAST: RefCell<Option<Counts>> = const { RefCell::new(None) };
}

impl Api {
    fn find() -> Option<Self> {
        // SAFETY: names end with a zero; null is the whole process.
        let find = |name: &CStr| Some(unsafe { dlsym(null_mut(), name.as_ptr()) }).filter(|at| !at.is_null());
        let (function, property, string) =
            (find(c"napi_create_function")?, find(c"napi_set_named_property")?, find(c"napi_create_string_utf8")?);
        // SAFETY: Node-API's functions of these names have these types, in all versions.
        Some(unsafe {
            Self {
                create_function: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Env, *const c_char, usize, Callback, *mut c_void, *mut Value) -> i32>(function),
                set_named_property: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Env, Value, *const c_char, Value) -> i32>(property),
                create_string: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Env, *const c_char, usize, *mut Value) -> i32>(string),
            }
        })
    }
}

fn api() -> Option<&'static Api> {
    API.get_or_init(Api::find).as_ref()
}

/// A string of JavaScript's; null, which is `undefined`, for null.
fn string(env: Env, text: *mut c_char) -> Value {
    let mut value = null_mut();
    if let (Some(api), false) = (api(), text.is_null()) {
        // SAFETY: a text of ours, copied by Node.
        unsafe { (api.create_string)(env, text, CStr::from_ptr(text).to_bytes().len(), &raw mut value) };
    }
    // SAFETY: a text of ours, or null.
    unsafe { crate::systoll_block_free_text(text) };
    value
}

/// `begin()`: undefined where a block has begun, else why not.
extern "C" fn begin(env: Env, _info: *mut c_void) -> Value {
    // SAFETY: no Python here.
    let why = unsafe { crate::systoll_block_begin(std::ptr::null()) };
    string(env, why)
}

/// `end()`: the counts as JSON; undefined where no block of this thread has begun.
extern "C" fn end(env: Env, _info: *mut c_void) -> Value {
    let Ok(counts) = abi::end() else { return null_mut() };
    let text = counts_json(&counts);
    LAST.with_borrow_mut(|last| *last = Some(counts));
    string(env, text)
}

/// `callers()`: those of the block that ended last, as JSON.
extern "C" fn callers(env: Env, _info: *mut c_void) -> Value {
    let text = LAST.with_borrow(|last| last.as_ref().map_or(null_mut(), callers_json));
    string(env, text)
}

/// Called by Node when it loads the addon.
#[unsafe(no_mangle)]
pub extern "C" fn napi_register_module_v1(env: *mut c_void, exports: *mut c_void) -> *mut c_void {
    let Some(api) = api() else { return exports };
    for (name, callback) in [(c"begin", begin as Callback), (c"end", end), (c"callers", callers)] {
        let mut function = null_mut();
        // SAFETY: Node's own environment and object; names end with a zero.
        unsafe {
            if (api.create_function)(env, name.as_ptr(), name.to_bytes().len(), callback, null_mut(), &raw mut function) == 0 {
                (api.set_named_property)(env, exports, name.as_ptr(), function);
            }
        }
    }
    exports
}
