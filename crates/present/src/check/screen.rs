//! The check's screen: one line for each breach.

use super::{BudgetReport, Verdict, bound_text, figure, unit};
use crate::style::{Line, Role, Style};
use crate::text::{clean, shell_words};
use crate::units::counted;
use std::io::{self, Write};

/// Writes the breaches of the budget, one line each; if `all` is true, also the limits that hold.
///
/// # Errors
/// The errors of `w`.
pub fn write_check(w: &mut dyn Write, checked: &BudgetReport<'_>, all: bool, style: &Style) -> io::Result<()> {
    let held = checked.held;
    for message in checked.messages().iter().filter(|m| m.verdict.breaks() || all) {
        let (role, label) = match message.verdict {
            Verdict::Over => (Role::Bad, "over  "),
            Verdict::Under => (Role::Bad, "under "),
            Verdict::New => (Role::Bad, "new   "),
            Verdict::Unheld => (Role::Bad, "fails "),
            Verdict::Known => (Role::Faint, "known "),
        };
        let line = Line::of(role, label).with(Role::Plain, message.text.clone());
        writeln!(w, "{}", line.render(style))?;
    }
    for m in held.measured.iter().filter(|m| all && !m.broken) {
        let text = format!("{}: {} {} of {}", clean(&m.name), figure(m.value), unit(m.figure), bound_text(m.bound));
        writeln!(w, "{}", Line::of(Role::Good, "holds ").with(Role::Plain, text).render(style))?;
    }
    let limits = counted(held.measured.len() as u64, "limit", "limits");
    let runs = counted(held.runs as u64, "run", "runs");
    let command = shell_words(checked.command);
    let (role, text) = if held.holds() {
        (Role::Good, format!("{} holds: {limits}, {runs}", clean(checked.budget)))
    } else {
        let unknown = held.findings.iter().filter(|f| !f.known).count();
        let broken = held.broken() + held.breaches.len() + unknown;
        let broken = counted(broken as u64, "breach", "breaches");
        (Role::Bad, format!("{} does not hold: {broken}, {limits}, {runs}", clean(checked.budget)))
    };
    writeln!(w, "{}", Line::of(role, text).with(Role::Faint, format!("  {command}")).render(style))
}
