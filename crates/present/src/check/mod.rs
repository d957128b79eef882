//! The results of `check`, for people and for machines: one writer for each format, with the same
//! sentences.

mod annotations;
mod junit;
mod metrics;
mod sarif;
mod screen;

pub use annotations::{write_github, write_vim};
pub use junit::write_junit;
pub use metrics::{bencher_json, benchmark_json};
pub use sarif::sarif_json;
pub use screen::write_check;

use crate::text::{clean, sentence};
use crate::units::{counted, grouped};
use systoll_compare::{Bound, Breach, Held, HeldFinding, Measured, SourcePlace, Who};
use systoll_model::short_file;

/// The results of a check, and the paths to which they refer.
#[derive(Clone, Copy, Debug)]
pub struct BudgetReport<'a> {
    /// The budget's limits with the measured figures.
    pub held: &'a Held,
    /// Path of the budget's file as the user gave it.
    pub budget: &'a str,
    /// The command that was checked.
    pub command: &'a [String],
    /// The folder to which paths are relative, ending with `/`. Paths outside it stay absolute.
    pub root: &'a str,
}

/// A message: a broken limit, a finding, or another breach.
struct Message {
    /// Rule to which the message belongs: a limit's figure, or a finding's id.
    rule: String,
    text: String,
    /// File of the message's place: in the source if it is known, otherwise the budget.
    file: String,
    line: u32,
    verdict: Verdict,
}

/// The relation of a message to the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// A figure is above its limit.
    Over,
    /// A figure is below its limit.
    Under,
    /// The budget does not accept this finding.
    New,
    /// The run can't be compared with the budget.
    Unheld,
    /// The budget accepts this finding.
    Known,
}

impl Verdict {
    /// Returns true if the message breaks the budget.
    fn breaks(self) -> bool {
        self != Self::Known
    }
}

impl BudgetReport<'_> {
    /// Returns all messages, those that break the budget first.
    fn messages(&self) -> Vec<Message> {
        let budget = |line: usize| (self.relative(self.budget), u32::try_from(line.max(1)).unwrap_or(1));
        let mut messages = Vec::new();
        for breach in &self.held.breaches {
            let (file, line) = budget(1);
            let rule = match breach {
                Breach::NotExact(_) => "exact",
                Breach::NoUnits => "units",
            };
            messages.push(Message {
                rule: rule.into(),
                text: breach_text(breach),
                file,
                line,
                verdict: Verdict::Unheld,
            });
        }
        for m in self.held.measured.iter().filter(|m| m.broken) {
            let place = m.who.as_ref().filter(|_| m.value > m.bound.high).and_then(|w| w.place.as_ref());
            let (file, line) = self.place(place).unwrap_or_else(|| budget(m.at_line));
            let verdict = if m.value > m.bound.high { Verdict::Over } else { Verdict::Under };
            messages.push(Message { rule: m.figure.into(), text: measured_text(m), file, line, verdict });
        }
        for f in &self.held.findings {
            let (file, line) = self.place(f.place.as_ref()).unwrap_or_else(|| budget(1));
            let verdict = if f.known { Verdict::Known } else { Verdict::New };
            messages.push(Message { rule: f.id.to_string(), text: finding_text(f), file, line, verdict });
        }
        messages.sort_by_key(|m| !m.verdict.breaks());
        messages
    }

    /// Returns a place's file and line. The file is relative to the root if it lies there.
    fn place(&self, place: Option<&SourcePlace>) -> Option<(String, u32)> {
        let place = place?;
        let file = place.file.as_deref().filter(|f| !f.starts_with('<'))?;
        Some((self.relative(file), place.line?))
    }

    fn relative(&self, path: &str) -> String {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        path.strip_prefix("./").unwrap_or(path).to_owned()
    }
}

/// Writes a figure: whole numbers grouped, others to three decimals.
fn figure(f: f64) -> String {
    if f.fract() == 0.0 && f.abs() < 1e15 { grouped(f as u64) } else { format!("{f:.3}") }
}

fn bound_text(bound: Bound) -> String {
    match (bound.low, bound.high) {
        (low, high) if low == high => figure(low),
        (low, high) if high.is_infinite() => format!("at least {}", figure(low)),
        (low, high) if low <= 0.0 => format!("at most {}", figure(high)),
        (low, high) => format!("{} to {}", figure(low), figure(high)),
    }
}

/// Returns the words for the things that a figure counts, to follow its number.
fn unit(figure: &str) -> &'static str {
    match figure {
        "failed" => "failed calls",
        "rate" => "calls a unit of work",
        _ => "calls",
    }
}

/// Describes a broken limit in one line: old, new, caller.
fn measured_text(m: &Measured) -> String {
    let mut text = format!("{}: {} → {} {}", clean(&m.name), bound_text(m.bound), figure(m.value), unit(m.figure));
    if let Some(who) = m.who.as_ref().filter(|_| m.value > m.bound.high) {
        text.push_str(&format!(", {}", who_text(who)));
    }
    text
}

fn who_text(who: &Who) -> String {
    let call = who.syscall.to_string();
    let api = who.api.as_deref().filter(|api| *api != call).map(clean);
    let mut chain = vec![call.clone()];
    chain.extend(api);
    chain.extend(who.place.as_ref().map(place_text));
    format!("most by {} in {} ({})", chain.join(" < "), clean(&who.program), grouped(who.calls))
}

/// Writes a place in the source: its function, and the file and line if they are known.
pub(crate) fn place_text(place: &SourcePlace) -> String {
    let mut text = clean(&place.function);
    if let (Some(file), Some(line)) = (place.file.as_deref(), place.line) {
        text.push_str(&format!(" {}:{line}", clean(short_file(file))));
    }
    text
}

fn finding_text(f: &HeldFinding) -> String {
    let mut text = format!("{}: {} needless; {}", clean(&f.id), counted(f.needless, "call", "calls"), sentence(&f.why));
    if let Some(stop) = f.stop.first() {
        text.push_str(&format!("; stop it: {}", sentence(stop)));
    }
    text
}

fn breach_text(breach: &Breach) -> String {
    match breach {
        Breach::NotExact(why) => format!("the counts are not exact: {}", sentence(why)),
        Breach::NoUnits => "the command did not say how much work it did: nothing it printed is as `per` has it".into(),
    }
}
