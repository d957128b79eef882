//! The counts of a block, by name.

use crate::dispatch::{self, Begin, RawContext, RawCounts, ScriptFrame};
use crate::names;
use crate::problem::{Incomplete, Unavailable};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A block's value and its counts.
#[derive(Debug)]
pub struct Block<T> {
    /// The value that the closure returned.
    pub value: T,
    /// Counts of the block's calls, or the reason why they could not be counted.
    pub counts: Result<Counts, Unavailable>,
}

/// Runs `block` and counts the system calls that this thread makes in it.
///
/// ```
/// let block = systoll_test::calls(|| std::fs::read("/proc/self/comm"));
/// assert!(block.value.is_ok());
/// match block.counts {
///     Ok(counts) => assert_eq!(counts.of("openat"), 1),
///     Err(why) => eprintln!("skipped: {why}"),
/// }
/// ```
pub fn calls<T>(block: impl FnOnce() -> T) -> Block<T> {
    let open = match Open::begin() {
        Ok(open) => open,
        Err(why) => return Block { value: block(), counts: Err(why) },
    };
    let value = block();
    Block { value, counts: open.end() }
}

/// A block that is being counted. A panic that leaves it ends it as well. It stays in its thread.
pub(crate) struct Open(PhantomData<*const ()>);

impl Open {
    #[inline(never)]
    pub(crate) fn begin() -> Result<Self, Unavailable> {
        let here = 0u8;
        // The block's frames are further inward than this function's caller.
        let stack_end = &raw const here as u64 + OWN_FRAME;
        dispatch::begin(Begin { stack_end, python: None }).map(|()| Self(PhantomData))
    }

    pub(crate) fn end(self) -> Result<Counts, Unavailable> {
        std::mem::forget(self);
        dispatch::end().map(Counts::new).ok_or(Unavailable::EndedElsewhere)
    }
}

/// Lower bound of the stack that `Open::begin` uses, in bytes; one frame of the caller too many
/// does no harm.
const OWN_FRAME: u64 = 256;

impl Drop for Open {
    fn drop(&mut self) {
        dispatch::end();
    }
}

/// The calls of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    raw: RawCounts,
}

/// Calls from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The system call's name.
    pub call: &'static str,
    /// The number of calls from this place.
    pub calls: u64,
    /// Functions, innermost first, with file and line if they are known.
    pub frames: Vec<String>,
    #[doc(hidden)]
    pub script: Vec<ScriptFrame>,
}

impl Counts {
    pub(crate) fn new(raw: RawCounts) -> Self {
        Self { raw }
    }

    /// Returns the number of calls with this name, such as `openat`; 0 for an unknown name. The
    /// name of an older call also counts the calls that libraries make today in its place: `open`
    /// counts `openat`. [`Counts::by_name`] distinguishes them.
    pub fn of(&self, name: &str) -> u64 {
        names::made_as(name).iter().fold(self.of_call(name), |sum, call| sum + self.of_call(call))
    }

    fn of_call(&self, name: &str) -> u64 {
        let Some(number) = names::number(name) else { return 0 };
        self.raw.numbers.iter().find(|(n, _)| *n == number).map_or(0, |(_, calls)| *calls)
    }

    /// Returns the number of all calls. A signal handler's return (`rt_sigreturn`) does not count:
    /// signals come at any time.
    pub fn total(&self) -> u64 {
        self.raw.numbers.iter().map(|(_, calls)| calls).sum::<u64>() + self.raw.beyond - self.of("rt_sigreturn")
    }

    /// Returns each call that was made, with its number, by name.
    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        let mut named: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (number, calls) in &self.raw.numbers {
            *named.entry(names::name(*number)).or_default() += calls;
        }
        if self.raw.beyond > 0 {
            *named.entry(names::UNKNOWN).or_default() += self.raw.beyond;
        }
        named
    }

    /// Returns the reason why these counts are too low, if they are.
    pub fn incomplete(&self) -> Option<Incomplete> {
        self.raw.incomplete
    }

    /// Returns the number of calls that are counted but whose callers found no room.
    pub fn without_caller(&self) -> u64 {
        self.raw.without_context
    }

    /// Returns the callers, most calls first. Names are looked up now, which takes a while the
    /// first time.
    pub fn callers(&self) -> Vec<Caller> {
        // Contexts are also distinguished by stack depth, which means nothing to a reader.
        let mut merged: BTreeMap<(u32, &[u64], &[ScriptFrame]), RawContext> = BTreeMap::new();
        for context in &self.raw.contexts {
            let key = (context.number, context.addresses.as_slice(), context.script.as_slice());
            merged.entry(key).or_insert_with(|| RawContext { calls: 0, ..context.clone() }).calls += context.calls;
        }
        let mut callers: Vec<_> = merged.into_values().map(caller).collect();
        callers.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| (a.call, &a.frames).cmp(&(b.call, &b.frames))));
        callers
    }
}

fn caller(context: RawContext) -> Caller {
    let mut frames =
        context.addresses.iter().flat_map(|address| frame(*address)).filter(|name| !is_ours(name)).collect::<Vec<_>>();
    // The C library's inlined parts have the names of their functions.
    frames.dedup();
    Caller { call: names::name(context.number), calls: context.calls, frames, script: context.script }
}

/// Returns true for frames of this crate between the block and its caller.
fn is_ours(name: &str) -> bool {
    name.starts_with("systoll_test::counts::calls<")
        || name.starts_with("systoll_test::counts::calls ")
        || name == "systoll_test::counts::calls"
}

/// Folders of sources that were compiled elsewhere: std's and the C library's, whose lines do not
/// help here.
const NOT_HERE: [&str; 3] = ["/rustc", ".", "/usr/src"];

/// Returns the functions at a return address, inlined ones first.
fn frame(address: u64) -> Vec<String> {
    let mut names = Vec::new();
    // The call is before the address it returns to.
    backtrace::resolve((address - 1) as *mut std::ffi::c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        let name = format!("{name:#}");
        let file = symbol.filename().filter(|file| !NOT_HERE.iter().any(|start| file.starts_with(start)));
        names.push(match (file, symbol.lineno()) {
            (Some(file), Some(line)) => format!("{name} ({}:{line})", file.display()),
            _ => name,
        });
    });
    if names.is_empty() {
        names.push(format!("{address:#x}"));
    }
    names
}

impl fmt::Display for Counts {
    /// Writes each call with its callers, for a failing test's output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for caller in self.callers() {
            writeln!(f, "  {} x {}: {}", caller.calls, caller.call, caller.frames.join(" < "))?;
        }
        if let Some(why) = self.incomplete() {
            writeln!(f, "  {why}")?;
        }
        Ok(())
    }
}
