//! Estimates how long a call waited if no line has its elapsed time.
//!
//! A wait that timed out lasted as long as its timeout, which stands among its arguments. For other
//! calls the thread's next line tells: it was written once the call had returned.

use crate::call::{Call, Written};
use crate::lex::{arguments, within};
use crate::literal::number;
use systoll_model::constants::{FUTEX_PRIVATE_FLAG, FUTEX_WAIT};
use systoll_model::{Errno, RowId, Signature, Sysno};

/// A call that may have waited, and whose time the trace does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Untimed {
    /// The row that counted the call.
    pub(crate) row: RowId,
    /// Number of the call in its row, from 1.
    pub(crate) nth: u64,
    /// Time of the call's entry since the trace's beginning, ns.
    pub(crate) entry_ns: u64,
}

/// The degree to which a call is made for waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// The call never waits, as far as the table of system calls tells.
    Nothing,
    /// The call may wait.
    Maybe,
    /// Waiting is the call's purpose.
    Surely,
}

impl WaitsFor {
    /// Returns the degree that the table of system calls gives.
    pub(crate) fn of(signature: Option<&Signature>) -> Self {
        match signature {
            Some(signature) if signature.waits => Self::Surely,
            Some(signature) if !signature.may_block => Self::Nothing,
            _ => Self::Maybe,
        }
    }
}

/// Returns true if the call is a futex call that waits, not one that wakes.
pub(crate) fn is_futex_wait(call: &Call) -> bool {
    call.syscall.0 == FUTEX && memchr::memmem::find(&call.text, b"FUTEX_WAIT").is_some()
}

/// The call `futex`.
const FUTEX: Sysno = Sysno::named("futex");

/// The place and unit of a call's timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// A number of milliseconds, in this argument.
    Milliseconds(usize),
    /// A struct of seconds and nanoseconds, to which this argument points.
    Nanoseconds(usize),
    /// A struct of seconds and microseconds, to which this argument points.
    Microseconds(usize),
}

/// Returns the time that a call waited if it timed out, ns: its timeout. Returns `None` if it did
/// not time out, if its timeout was 0, or if it waited until a point in time.
pub(crate) fn ran_out(call: &Call) -> Option<u64> {
    let timed_out = call.result == Some(-i64::from(Errno::ETIMEDOUT.0));
    if call.written == Written::Registers || call.result != Some(0) && !timed_out {
        return None;
    }
    let limit = match call.syscall.0.name()? {
        "poll" => Limit::Milliseconds(2),
        "epoll_wait" | "epoll_pwait" => Limit::Milliseconds(3),
        "ppoll" => Limit::Nanoseconds(2),
        "select" => Limit::Microseconds(4),
        "pselect6" => Limit::Nanoseconds(4),
        "nanosleep" => Limit::Nanoseconds(0),
        "clock_nanosleep" if number(arguments(&call.text).get(1)) == Some(0) => Limit::Nanoseconds(2),
        "futex" if timed_out && waits_for_a_length(&call.text) => Limit::Nanoseconds(3),
        _ => return None,
    };
    let found = arguments(&call.text);
    let parts = |at: usize, each: u64| {
        let mut parts = within(found.get(at), b'{', b'}')?.split(|b| *b == b',').map(last_number);
        let (seconds, rest) = (parts.next()??, parts.next()??);
        seconds.checked_mul(1_000_000_000)?.checked_add(rest.checked_mul(each)?)
    };
    let ns = match limit {
        Limit::Milliseconds(at) => u64::try_from(number(found.get(at))?).ok()?.checked_mul(1_000_000)?,
        Limit::Nanoseconds(at) => parts(at, 1)?,
        Limit::Microseconds(at) => parts(at, 1_000)?,
    };
    // -1 is no timeout, and one of more than a year counts as none.
    const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
    (1..YEAR_NS).contains(&ns).then_some(ns)
}

/// Returns true if a futex call's time is a length: that of FUTEX_WAIT is, while other operations
/// wait until a point in time.
fn waits_for_a_length(text: &[u8]) -> bool {
    let operation = number(arguments(text).get(1)).and_then(|n| u32::try_from(n).ok());
    operation.is_some_and(|n| n & !FUTEX_PRIVATE_FLAG == FUTEX_WAIT)
}

/// Returns the number in a field such as `tv_sec=5` or `5`.
fn last_number(field: &[u8]) -> Option<u64> {
    let value = field.rsplit(|b| *b == b'=').next()?.trim_ascii();
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Syscall;
    use proptest::prelude::*;

    fn waited(name: &str, text: &str, result: i64) -> Option<u64> {
        let syscall = Syscall(Sysno::from_name(name).unwrap());
        ran_out(&Call { syscall, text: text.into(), result: Some(result), ..Call::default() })
    }

    #[test]
    fn a_wait_that_ran_out_took_its_time() {
        assert_eq!(waited("poll", "[{fd=3, events=POLLIN}], 1, 4981)", 0), Some(4_981_000_000));
        assert_eq!(waited("poll", "[{fd=3, events=POLLIN}], 1, 4981)", 1), None);
        assert_eq!(waited("poll", "[{fd=3, events=POLLIN}], 1, 0)", 0), None);
        assert_eq!(waited("poll", "[{fd=3, events=POLLIN}], 1, -1)", 0), None);
        assert_eq!(waited("epoll_pwait", "5, [], 128, 13, NULL, 0)", 0), Some(13_000_000));
        let limit = "[{fd=3, events=POLLIN}], 1, {tv_sec=1, tv_nsec=951000000}, NULL, 0)";
        assert_eq!(waited("ppoll", limit, 0), Some(1_951_000_000));
        assert_eq!(waited("select", "4, [3], NULL, NULL, {0, 20000})", 0), Some(20_000_000));
        assert_eq!(waited("nanosleep", "{0, 100000}, NULL)", 0), Some(100_000));
        assert_eq!(waited("clock_nanosleep", "CLOCK_REALTIME, TIMER_ABSTIME, {tv_sec=9, tv_nsec=0}, NULL)", 0), None);
        assert_eq!(
            waited("futex", "0x7f, FUTEX_WAIT_PRIVATE, 2, {tv_sec=0, tv_nsec=30000000})", -110),
            Some(30_000_000)
        );
        assert_eq!(waited("futex", "0x7f, FUTEX_WAIT_BITSET_PRIVATE, 2, {8112, 266670458}, ffffffff)", -110), None);
        assert_eq!(waited("nanosleep", "{18446744073709551615, 1}, NULL)", 0), None);
    }

    proptest! {
        #[test]
        fn any_arguments_come_to_an_end(
            name in 0..9usize,
            text in r"[\[{]?[a-z_0-9=, {}()\[\]-]{0,60}\)?",
            result in prop_oneof![Just(0i64), Just(-110), any::<i64>()],
        ) {
            let names =
                ["poll", "ppoll", "select", "pselect6", "epoll_wait", "nanosleep", "clock_nanosleep", "futex", "read"];
            waited(names[name], &text, result);
        }
    }
}
