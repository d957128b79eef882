//! JUnit's XML: each limit and each finding is a test.

use super::{BudgetReport, breach_text, finding_text, measured_text};
use crate::text::{clean, shell_words};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::{self, Write};

/// Writes the check as JUnit's XML.
///
/// # Errors
/// Where `w` fails.
pub fn write_junit(w: &mut dyn Write, checked: &BudgetReport<'_>) -> io::Result<()> {
    let mut suite = TestSuite::new(shell_words(checked.command));
    let mut add = |name: String, class: &str, broken: Option<String>| {
        let status = match broken {
            None => TestCaseStatus::success(),
            Some(text) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(text).set_type(class.to_owned());
                status
            }
        };
        let mut case = TestCase::new(name, status);
        case.set_classname(format!("systoll.{class}"));
        suite.add_test_case(case);
    };
    let held = checked.held;
    for m in &held.measured {
        add(format!("{}: {}", clean(&m.name), m.figure), "limit", m.broken.then(|| measured_text(m)));
    }
    for f in &held.findings {
        add(clean(&f.id), "finding", (!f.known).then(|| finding_text(f)));
    }
    for breach in &held.breaches {
        add("counts".into(), "recording", Some(breach_text(breach)));
    }
    if held.measured.is_empty() && held.findings.is_empty() && held.breaches.is_empty() {
        add("nothing is held".into(), "limit", None);
    }
    let mut report = Report::new("systoll check");
    report.add_test_suite(suite);
    let text = report.to_string().map_err(io::Error::other)?;
    w.write_all(text.as_bytes())
}
