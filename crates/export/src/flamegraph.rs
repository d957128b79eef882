//! Draws flame graphs as SVG pictures, by inferno; in red and blue if two recordings are compared.

use crate::collapsed::stacks;
use crate::error::ExportError;
use crate::judged_recording::{JudgedRecording, Value};
use inferno::flamegraph::{Options, from_lines};
use std::collections::BTreeMap;
use std::io::Write;
use systoll_present::clean;

/// Largest length of the command above the picture, characters.
const TITLE: usize = 120;

/// Writes the picture of one recording.
pub(crate) fn write(value: Value, judged: &JudgedRecording<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let lines: Vec<String> = stacks(value, judged).iter().map(|(stack, n)| format!("{stack} {n}")).collect();
    draw(&lines, title(value, judged), value, out)
}

/// Writes the picture of `new`, coloured by the change since `old`: red is more, blue is less.
///
/// # Errors
/// As [`crate::export`].
pub fn compared(
    value: Value,
    old: &JudgedRecording<'_>,
    new: &JudgedRecording<'_>,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut both: BTreeMap<String, OldAndNew> = BTreeMap::new();
    for (stack, n) in stacks(value, old) {
        both.entry(stack).or_default().old = n;
    }
    for (stack, n) in stacks(value, new) {
        both.entry(stack).or_default().new = n;
    }
    let lines: Vec<String> = both.iter().map(|(stack, n)| format!("{stack} {} {}", n.old, n.new)).collect();
    draw(&lines, format!("{}, red: more than before, blue: less", title(value, new)), value, out)
}

#[derive(Default)]
struct OldAndNew {
    old: u64,
    new: u64,
}

fn title(value: Value, judged: &JudgedRecording<'_>) -> String {
    let command: String = clean(&judged.command()).chars().take(TITLE).collect();
    format!("systoll: {} of system calls, {command}", value.name())
}

fn draw(lines: &[String], title: String, value: Value, out: &mut dyn Write) -> Result<(), ExportError> {
    if lines.is_empty() {
        return Err(ExportError::Nothing(value.name()));
    }
    let mut options = Options::default();
    options.title = title;
    options.count_name = if value.is_time() { "ns" } else { "calls" }.into();
    // The same recording makes the same picture.
    options.deterministic = true;
    from_lines(&mut options, lines.iter().map(String::as_str), out)?;
    Ok(())
}
