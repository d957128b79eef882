//! Holds the macro `assert_calls!`.

use crate::counts::{Block, Counts};
use crate::names;
use crate::problem::Unavailable;

/// Runs a block and panics if this thread made more system calls in it than the limits allow, or
/// fewer. Returns the block's value.
///
/// A limit is a call's name or `total`, a comparison, and a number. If calls can't be counted, the
/// block runs, nothing is asserted, and standard error says why; with `SYSTOLL_TEST_STRICT=1` in
/// the environment it panics.
///
/// ```
/// let text = systoll_test::assert_calls!(openat <= 1, total < 20, {
///     std::fs::read_to_string("/proc/self/comm").unwrap()
/// });
/// assert!(!text.is_empty());
/// ```
///
/// A name that no call has does not compile:
///
/// ```compile_fail
/// systoll_test::assert_calls!(opneat <= 1, {});
/// ```
#[macro_export]
macro_rules! assert_calls {
    ($($call:ident $comparison:tt $limit:expr),+ , $block:block) => {{
        $(const _: () = assert!($crate::known(stringify!($call)), concat!(stringify!($call), ": no system call of this name"));)+
        let block = $crate::calls(|| $block);
        if let Some(counts) = $crate::check(&block) {
            $(
                let calls = if stringify!($call) == "total" { counts.total() } else { counts.of(stringify!($call)) };
                let limit: u64 = $limit;
                // A count that is too low does not prove that a limit is kept, but a broken limit
                // stays broken.
                assert!(calls $comparison limit, "{} {} {}, but there were {}:\n{}",
                    stringify!($call), stringify!($comparison), limit, calls, counts);
            )+
            if let Some(why) = counts.incomplete() {
                panic!("the limits can't be checked: {why}");
            }
        }
        block.value
    }};
}

/// Returns true if a limit may have this name.
pub const fn known(call: &str) -> bool {
    same(call, "total") || names::is_name(call)
}

const fn same(a: &str, b: &str) -> bool {
    names::same(a.as_bytes(), b.as_bytes())
}

/// Returns the counts of a block. If it was not counted, prints the reason and returns `None`.
pub fn check<T>(block: &Block<T>) -> Option<&Counts> {
    match &block.counts {
        Ok(counts) => Some(counts),
        Err(why) => {
            skip(*why);
            None
        }
    }
}

#[expect(clippy::print_stderr, reason = "cargo's tests have no other way to say that they were skipped")]
fn skip(why: Unavailable) {
    assert!(std::env::var_os("SYSTOLL_TEST_STRICT").is_none_or(|v| v != "1"), "system calls can't be counted: {why}");
    eprintln!("skipped: system calls are not counted: {why}");
}
