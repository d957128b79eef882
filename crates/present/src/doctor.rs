//! The `doctor` screen: what can be watched here, and what would help.

use crate::style::{Line, Role, Style};
use crate::text::{clean, wrap};
use serde_json::{Value, json};
use std::io;
use systoll_model::Host;

/// One thing that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What was tried.
    pub what: String,
    /// Whether it works.
    pub works: bool,
    /// What came of it.
    pub detail: String,
    /// The one command that would help where it does not work.
    pub help: Option<String>,
}

const DETAIL: usize = 25;

/// Writes what was tried, one thing a line.
///
/// # Errors
/// Those of `w`.
pub fn write_doctor(w: &mut dyn io::Write, host: &Host, checked: &[Checked], style: &Style) -> io::Result<()> {
    let place = host.virtualization.as_deref().map_or_else(String::new, |v| format!(", in a VM ({v})"));
    let text = format!(
        "{}, {} CPUs{place}    Linux {}    clock source {}",
        host.cpu, host.cpus, host.kernel, host.clock_source
    );
    for line in wrap(&clean(&text), style.columns().saturating_sub(2)) {
        writeln!(w, "  {line}")?;
    }
    writeln!(w)?;
    for one in checked {
        let (mark, role) = if one.works { ("yes", Role::Good) } else { ("no ", Role::Warn) };
        let head =
            Line::of(Role::Plain, "  ").with(role, mark).with(Role::Strong, format!("  {:<18}", clean(&one.what)));
        let detail = wrap(&clean(&one.detail), style.columns().saturating_sub(DETAIL));
        let mut rest = detail.iter();
        let first = rest.next().map_or("", String::as_str);
        writeln!(w, "{}", head.with(Role::Plain, first).render(style))?;
        for line in rest {
            writeln!(w, "{:DETAIL$}{line}", "")?;
        }
        if let (false, Some(help)) = (one.works, &one.help) {
            let line = Line::of(Role::Plain, " ".repeat(DETAIL)).with(Role::Good, clean(help));
            writeln!(w, "{}", line.render(style))?;
        }
    }
    Ok(())
}

/// The same for scripts.
pub fn doctor_json(host: &Host, checked: &[Checked]) -> Value {
    json!({
        "systoll": {"version": env!("CARGO_PKG_VERSION"), "schema": crate::SCHEMA_VERSION},
        "host": {
            "cpu": host.cpu, "cpus": host.cpus, "kernel": host.kernel,
            "clock_source": host.clock_source, "virtualization": host.virtualization,
        },
        "checked": checked.iter().map(|c| json!({
            "what": c.what, "works": c.works, "detail": c.detail, "help": if c.works { None } else { c.help.as_ref() },
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_comes_with_what_helps() {
        let checked = [
            Checked { what: "watch with ptrace".into(), works: true, detail: "works".into(), help: Some("no".into()) },
            Checked { what: "set-id".into(), works: false, detail: "\x1b[31mno".into(), help: Some("sudo x".into()) },
        ];
        let mut out = Vec::new();
        write_doctor(&mut out, &Host::default(), &checked, &Style::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("yes  watch with ptrace") && text.contains("sudo x"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }
}
