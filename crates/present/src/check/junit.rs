//! JUnit's XML: each limit and each finding is a test.
//!
//! The crate quick-junit is not used, because it gives `<testsuites>` an attribute that Jenkins'
//! schema (xunit-plugin's junit-10.xsd) refuses, and needs nine crates.

use super::{BudgetReport, breach_text, finding_text, measured_text};
use crate::text::{clean, shell_words};
use std::io::{self, Write};

/// A test in the file: a limit's figure, a finding, or the recording itself.
struct Case {
    name: String,
    class: &'static str,
    /// The reason why the test failed, if it did.
    broken: Option<String>,
}

/// Writes the check as JUnit's XML.
///
/// # Errors
/// The errors of `w`.
pub fn write_junit(w: &mut dyn Write, checked: &BudgetReport<'_>) -> io::Result<()> {
    let cases = cases(checked);
    let broken = cases.iter().filter(|c| c.broken.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{broken}\" errors=\"0\"", cases.len());
    let suite = escaped(&shell_words(checked.command));
    writeln!(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(w, "<testsuites name=\"systoll check\" {counts}>")?;
    writeln!(w, "  <testsuite name=\"{suite}\" {counts} skipped=\"0\">")?;
    for case in &cases {
        let start = format!("    <testcase name=\"{}\" classname=\"systoll.{}\"", escaped(&case.name), case.class);
        match &case.broken {
            None => writeln!(w, "{start}/>")?,
            Some(why) => {
                writeln!(w, "{start}>")?;
                writeln!(w, "      <failure message=\"{}\" type=\"{}\"/>", escaped(why), case.class)?;
                writeln!(w, "    </testcase>")?;
            }
        }
    }
    writeln!(w, "  </testsuite>\n</testsuites>")
}

fn cases(checked: &BudgetReport<'_>) -> Vec<Case> {
    let held = checked.held;
    let limits = held.measured.iter().map(|m| Case {
        name: format!("{}: {}", clean(&m.name), m.figure),
        class: "limit",
        broken: m.broken.then(|| measured_text(m)),
    });
    let findings = held.findings.iter().map(|f| Case {
        name: clean(&f.id),
        class: "finding",
        broken: (!f.known).then(|| finding_text(f)),
    });
    let breaches =
        held.breaches.iter().map(|b| Case { name: "counts".into(), class: "recording", broken: Some(breach_text(b)) });
    limits.chain(findings).chain(breaches).collect()
}

/// Escapes text for an attribute. Characters that XML can't write are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}
