//! Finds the calls of a kind in all windows.

use super::read::ObservedCall;
use super::registry::{Lines, Semantics};
use systoll_model::Recording;

impl Semantics {
    /// Returns the calls in windows whose system call has a property, in the order of the windows.
    pub(crate) fn calls_in_windows<'a>(
        &self,
        recording: &'a Recording,
        has: impl Fn(&Lines) -> bool,
    ) -> impl Iterator<Item = ObservedCall<'a>> {
        let rows: Vec<bool> = recording.rows.iter().map(|row| has(self.lines_of(row.syscall))).collect();
        // Most programs make no such call: their windows need no look.
        let any = rows.contains(&true);
        let windows = recording.windows.iter().filter(move |_| any);
        let calls = windows.flat_map(|window| window.calls.iter().map(move |call| (window, call)));
        let such = calls.filter(move |(_, call)| rows.get(call.row.0 as usize) == Some(&true));
        such.map(|(window, call)| ObservedCall { window, call, syscall: recording.row(call.row).syscall })
    }
}
