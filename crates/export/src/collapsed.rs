//! Writes collapsed stacks: `program;outer;inner;syscall 42`, as flame graph tools read them.

use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, Value};
use std::collections::BTreeMap;
use std::io::Write;
use systoll_present::clean;

/// Writes a line for each stack with a value.
pub(crate) fn write(value: Value, judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    for (stack, sum) in stacks(value, judged) {
        writeln!(out, "{stack} {sum}")?;
    }
    Ok(())
}

/// Returns the stacks with a value, each once, with their sums.
pub(crate) fn stacks(value: Value, judged: &JudgedRecording<'_>) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for told in judged.rows().filter(|told| told.value(value) > 0) {
        for (whole, part) in judged.parts(&told, told.value(value)) {
            let mut stack = name(judged.program(told.row));
            for link in whole.links.iter().rev() {
                stack.push(';');
                stack.push_str(&name(&link.function));
            }
            let sum = sums.entry(stack).or_default();
            *sum = sum.saturating_add(part);
        }
    }
    sums
}

/// Returns a frame's name for a line whose frames are separated by `;`. An empty name would be no
/// frame.
fn name(text: &str) -> String {
    if text.is_empty() { "?".into() } else { clean(text).replace(';', ",") }
}
