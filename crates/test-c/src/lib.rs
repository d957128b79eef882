//! Counts blocks of system calls, for languages that call C: `libsystoll_block.so`.
//!
//! C and C++ include `systoll_block.h` (`include/`); docs/use/in-tests.md has a test.
//!
//! ```
//! // What a plugin does, in C's words.
//! use std::ffi::{CStr, CString};
//! use systoll_block::*;
//! # #[allow(unsafe_code)]
//! # fn main() {
//! // SAFETY: no Python; a block is ended in the thread it began in; texts are freed once.
//! unsafe {
//!     let why = systoll_block_begin(std::ptr::null());
//!     if why.is_null() {
//!         let read = std::fs::read("/proc/self/comm");
//!         let ended = systoll_block_end();
//!         let text = systoll_block_counts(ended);
//!         assert!(CStr::from_ptr(text).to_str().unwrap().contains(r#""openat":1"#));
//!         systoll_block_free_text(text);
//!         systoll_block_free(ended);
//!     } else {
//!         println!("skipped: {}", CString::from_raw(why).to_str().unwrap());
//!     }
//! }
//! # }
//! ```
//!
//! Invariant: no function here panics through C, and each pointer that it gives out has one function
//! that takes it back.

pub mod node;

use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use systoll_test::{Counts, PythonFrames, abi};

/// An ended block.
pub struct Ended(Counts);

/// The counts of a block, as JSON.
#[derive(Serialize)]
struct BlockReport {
    calls: BTreeMap<&'static str, u64>,
    /// Names that also mean other calls, with those calls.
    made_as: BTreeMap<&'static str, &'static [&'static str]>,
    total: u64,
    /// The reason why the counts are too low.
    incomplete: Option<String>,
    /// Number of calls whose callers found no room.
    without_caller: u64,
}

/// A caller, as JSON. Names are looked up when it is requested.
#[derive(Serialize)]
struct ToldCaller {
    call: &'static str,
    calls: u64,
    frames: Vec<String>,
    /// Python's frames: addresses of code object and instruction.
    script: Vec<[u64; 2]>,
}

fn text(told: &impl Serialize) -> *mut c_char {
    serde_json::to_string(told).ok().and_then(|t| CString::new(t).ok()).map_or(std::ptr::null_mut(), CString::into_raw)
}

fn told(counts: &Counts) -> BlockReport {
    BlockReport {
        calls: counts.by_name(),
        made_as: systoll_test::all_made_as().collect(),
        total: counts.total(),
        incomplete: counts.incomplete().map(|why| why.to_string()),
        without_caller: counts.without_caller(),
    }
}

fn callers_json(counts: &Counts) -> *mut c_char {
    let told = counts.callers().into_iter().map(|c| ToldCaller {
        call: c.call,
        calls: c.calls,
        frames: c.frames,
        script: c.script.iter().map(|f| [f.code, f.instruction]).collect(),
    });
    text(&told.collect::<Vec<_>>())
}

/// Begins a block in the calling thread. Returns null if it has begun, else the reason why calls
/// can't be counted: a text for `systoll_block_free_text`.
///
/// # Safety
/// `python` is null, or has the offsets of this process's interpreter and the calling thread's
/// state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_begin(python: *const PythonFrames) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    let python = unsafe { python.as_ref() }.copied();
    match abi::begin(python) {
        Ok(()) => std::ptr::null_mut(),
        Err(why) => CString::new(why.to_string()).map_or(std::ptr::null_mut(), CString::into_raw),
    }
}

/// Ends the calling thread's innermost block. Returns null if it is in none: in another thread than
/// the one that began the block, or in a child forked in it. Else returns a block for
/// `systoll_block_free`.
#[unsafe(no_mangle)]
pub extern "C" fn systoll_block_end() -> *mut Ended {
    abi::end().map_or(std::ptr::null_mut(), |counts| Box::into_raw(Box::new(Ended(counts))))
}

/// Returns the counts of an ended block as JSON, for `systoll_block_free_text`; null for null.
///
/// # Safety
/// `ended` is null or from `systoll_block_end`, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_counts(ended: *const Ended) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    unsafe { ended.as_ref() }.map_or(std::ptr::null_mut(), |ended| text(&told(&ended.0)))
}

/// Returns the callers of an ended block as JSON, for `systoll_block_free_text`; null for null.
///
/// # Safety
/// `ended` is null or from `systoll_block_end`, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_callers(ended: *const Ended) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    unsafe { ended.as_ref() }.map_or(std::ptr::null_mut(), |ended| callers_json(&ended.0))
}

/// Returns how often the block made the call of this name, or the calls that libraries make for it
/// today; `total` for all. Returns the largest number if no call has the name, or if there is no
/// block.
///
/// # Safety
/// `ended` is null or from `systoll_block_end`, and not freed; `name` is a text that ends with a
/// zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_calls(ended: *const Ended, name: *const c_char) -> u64 {
    // SAFETY: the caller guarantees it.
    let (ended, name) = unsafe { (ended.as_ref(), CStr::from_ptr(name)) };
    match (ended, name.to_str()) {
        (Some(ended), Ok("total")) => ended.0.total(),
        (Some(ended), Ok(name)) if systoll_test::number(name).is_some() => ended.0.of(name),
        _ => u64::MAX,
    }
}

fn plain(told: &str) -> *mut c_char {
    CString::new(told).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Returns the reason why the counts of an ended block are too low, for `systoll_block_free_text`;
/// null if they are exact, and for null.
///
/// # Safety
/// `ended` is null or from `systoll_block_end`, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_incomplete(ended: *const Ended) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    let why = unsafe { ended.as_ref() }.and_then(|ended| ended.0.incomplete());
    why.map_or(std::ptr::null_mut(), |why| plain(&why.to_string()))
}

/// Returns the calls of an ended block with their callers, one line each, for
/// `systoll_block_free_text`; null for null.
///
/// # Safety
/// `ended` is null or from `systoll_block_end`, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_text(ended: *const Ended) -> *mut c_char {
    // SAFETY: the caller guarantees it.
    unsafe { ended.as_ref() }.map_or(std::ptr::null_mut(), |ended| plain(&ended.0.to_string()))
}

/// Returns true if a system call of x86-64 has this name.
///
/// # Safety
/// `name` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_is_call(name: *const c_char) -> bool {
    // SAFETY: the caller guarantees it.
    unsafe { CStr::from_ptr(name) }.to_str().is_ok_and(|name| systoll_test::number(name).is_some())
}

/// Frees an ended block; ignores null.
///
/// # Safety
/// `ended` is null or from `systoll_block_end`, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_free(ended: *mut Ended) {
    if !ended.is_null() {
        // SAFETY: made by `systoll_block_end`; the caller guarantees that it is freed once.
        drop(unsafe { Box::from_raw(ended) });
    }
}

/// Frees a text of this library; ignores null.
///
/// # Safety
/// `text` is null or from this library, and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn systoll_block_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: made by `CString::into_raw`; the caller guarantees that it is freed once.
        drop(unsafe { CString::from_raw(text) });
    }
}
