//! What `check` found, for people and for the machines that read it: one writer each, over the same words.

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
use systoll_compare::{Bound, Breach, Held, HeldFinding, Measured, Place, Who};

/// What was checked, and where its parts lie.
#[derive(Clone, Copy, Debug)]
pub struct BudgetReport<'a> {
    /// The budget, held.
    pub held: &'a Held,
    /// The budget's file as it was named.
    pub budget: &'a str,
    /// The command.
    pub command: &'a [String],
    /// The folder that paths are told from, with a `/` at its end; other paths stay absolute.
    pub root: &'a str,
}

/// One thing to tell: a limit that is broken, a finding, what else breaks the budget.
struct Message {
    /// What rule it is of: a figure of a limit, or a finding's id.
    rule: String,
    text: String,
    /// Where it is in the source, else in the budget.
    file: String,
    line: u32,
    verdict: Verdict,
}

/// What a message says of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// More than a limit allows.
    Over,
    /// Fewer than a limit allows.
    Under,
    /// A finding that the budget does not know.
    New,
    /// The run can't be held to it.
    Unheld,
    /// A finding that it knows.
    Known,
}

impl Verdict {
    /// Whether it breaks the budget.
    fn breaks(self) -> bool {
        self != Self::Known
    }
}

impl BudgetReport<'_> {
    /// All there is to tell, what breaks the budget first.
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

    /// A place's file, told from the root where it lies there, and line.
    fn place(&self, place: Option<&Place>) -> Option<(String, u32)> {
        let place = place?;
        let file = place.file.as_deref().filter(|f| !f.starts_with('<'))?;
        Some((self.relative(file), place.line?))
    }

    fn relative(&self, path: &str) -> String {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        path.strip_prefix("./").unwrap_or(path).to_owned()
    }
}

/// A figure: whole numbers in groups, others to three digits.
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

/// What a figure counts, after its number.
fn unit(figure: &str) -> &'static str {
    match figure {
        "failed" => "failed calls",
        "rate" => "calls a unit of work",
        _ => "calls",
    }
}

/// A limit that is broken, in one line: old, new, who.
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

fn place_text(place: &Place) -> String {
    let mut text = clean(&place.function);
    if let (Some(file), Some(line)) = (place.file.as_deref(), place.line) {
        text.push_str(&format!(" {}:{line}", clean(file.rsplit('/').next().unwrap_or(file))));
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
