//! The `doctor` screen: what can be watched on this box, and the commands that would help where it
//! can't.

use crate::style::{Line, Role, Style, flow};
use crate::text::{clean, columns, wrap};
use serde_json::{Value, json};
use std::io;
use systoll_model::Host;

/// Columns that a detail needs beside the check's name; the next constant is the indent of a detail
/// below it.
const BESIDE: usize = 28;
const BELOW: usize = 7;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorCheck {
    /// Name of the thing that was checked.
    pub what: String,
    /// True if the thing works.
    pub works: bool,
    /// The result, in words.
    pub detail: String,
    /// The command that would help if the thing does not work.
    pub help: Option<String>,
}

/// Writes the results, one check a line.
///
/// # Errors
/// The errors of `w`.
pub fn write_doctor(w: &mut dyn io::Write, host: &Host, checked: &[DoctorCheck], style: &Style) -> io::Result<()> {
    for line in flow(Line::of(Role::Plain, "  "), place(host), 4, 2, style.columns()) {
        writeln!(w, "{}", line.render(style))?;
    }
    writeln!(w)?;
    let widest = checked.iter().map(|c| columns(&clean(&c.what))).max().unwrap_or(0);
    // This is the width of the mark and the gaps. The help is indented like the detail, which is on
    // a line below if there is no room.
    let beside = widest + 9;
    let is_narrow = beside + BESIDE > style.columns();
    let indent = if is_narrow { BELOW } else { beside };
    for one in checked {
        let (mark, role) = if one.works { ("yes", Role::Good) } else { ("no ", Role::Warn) };
        let mut head =
            Line::of(Role::Plain, "  ").with(role, mark).with(Role::Strong, format!("  {}", clean(&one.what)));
        let detail = wrap(&clean(&one.detail), style.columns().saturating_sub(indent));
        let mut rest = detail.iter();
        if !is_narrow {
            head.pad_to(indent);
            head.push(Role::Plain, rest.next().map_or("", String::as_str));
        }
        writeln!(w, "{}", head.render(style))?;
        for line in rest {
            writeln!(w, "{:indent$}{line}", "")?;
        }
        if let (false, Some(help)) = (one.works, &one.help) {
            let line = Line::of(Role::Plain, " ".repeat(indent)).with(Role::Good, clean(help));
            writeln!(w, "{}", line.render(style))?;
        }
    }
    Ok(())
}

/// Describes the box in the words of `systoll box`.
fn place(host: &Host) -> Vec<Line> {
    let vm = host.virtualization.as_deref().map_or_else(String::new, |v| format!(", in a VM ({v})"));
    let cpus = if host.cpus == 1 { "CPU" } else { "CPUs" };
    let machine = format!("{}, {} {cpus}{vm}", host.cpu, host.cpus);
    [machine, format!("Linux {}", host.kernel), format!("clock source {}", host.clock_source)]
        .map(|text| Line::of(Role::Plain, clean(&text)))
        .to_vec()
}

/// Converts the results to JSON.
pub fn doctor_json(host: &Host, checked: &[DoctorCheck]) -> Value {
    json!({
        "systoll": {"version": env!("CARGO_PKG_VERSION"), "schema": crate::json::SCHEMA_VERSION},
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
    fn failures_come_with_remedies() {
        let checked = [
            DoctorCheck {
                what: "watch with ptrace".into(),
                works: true,
                detail: "works".into(),
                help: Some("no".into()),
            },
            DoctorCheck {
                what: "set-id".into(),
                works: false,
                detail: "\x1b[31mno".into(),
                help: Some("sudo x".into()),
            },
        ];
        let screen = |width| {
            let mut out = Vec::new();
            write_doctor(&mut out, &Host::default(), &checked, &Style { color: false, width, whole_names: false })
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = screen(80);
        assert!(text.contains("yes  watch with ptrace  works\n") && text.contains("sudo x"), "{text}");
        let column = |what: &str| text.lines().find_map(|l| l.find(what));
        assert_eq!((column("works"), column("sudo x")), (Some(26), Some(26)), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        let narrow = screen(40);
        assert!(
            narrow.contains("yes  watch with ptrace\n       works\n") && narrow.contains("\n       sudo x\n"),
            "{narrow}"
        );
    }
}
