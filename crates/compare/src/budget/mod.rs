//! Reads budgets: limits on a program's calls, as text that a person writes and `check --update`
//! maintains.

mod bound;
mod hold;
mod learn;

pub use bound::Bound;
pub use hold::{Breach, Held, HeldFinding, Measured, Run, Who, hold};
pub use learn::learn;

use crate::select::{SelectError, Selector, calls};
use serde::Deserialize;
use systoll_model::Phase;
use toml::Spanned;

/// Largest length of a budget's text, bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Largest number of limits in a budget.
const MAX_LIMITS: usize = 10_000;

/// Limits on a program's calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budget {
    /// The units of work that a run does.
    pub per: Option<Units>,
    /// The bound of each system call that no limit names; not checked if `None`.
    pub others: Option<Bound>,
    /// Accepted findings, by cause or kind; findings are not checked if `None`.
    pub findings: Option<Vec<String>>,
    /// True if calls must be counted exactly.
    pub exact: bool,
    /// The command's required exit code.
    pub exit: i32,
    /// The limits.
    pub limits: Vec<Limit>,
}

/// The units of work that a run does.
#[derive(Clone, Debug, PartialEq)]
pub enum Units {
    /// This number of units.
    Number(f64),
    /// The number that the command prints in place of `{}` in this text.
    Printed(String),
}

/// A limit on some calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The calls; all calls if it is empty.
    pub selector: Selector,
    /// The line of the source that makes the calls: `config.c:41`.
    pub line: Option<String>,
    /// The bound on the number of the calls.
    pub calls: Option<Bound>,
    /// The bound on the number of failures among them.
    pub failed: Option<Bound>,
    /// The bound on the number of the calls for each unit of work.
    pub rate: Option<Bound>,
    /// The limit's name, in the budget's words.
    pub name: String,
    /// The line of the budget on which the limit starts, from 1.
    pub at_line: usize,
}

/// The reason why a budget can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BudgetError {
    /// The line of the budget's text with the error, from 1.
    pub line: usize,
    /// The error, in words.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBudget {
    per: Option<Spanned<RawUnits>>,
    others: Option<Bound>,
    findings: Option<Vec<String>>,
    exact: Option<bool>,
    exit: Option<i32>,
    #[serde(default)]
    limit: Vec<Spanned<RawLimit>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of units, or a text that CMD prints with {} for their number")]
enum RawUnits {
    Number(f64),
    Printed(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimit {
    syscall: Option<String>,
    api: Option<String>,
    caller: Option<String>,
    library: Option<String>,
    program: Option<String>,
    line: Option<String>,
    phase: Option<String>,
    calls: Option<Bound>,
    failed: Option<Bound>,
    rate: Option<Bound>,
}

impl Budget {
    /// Parses a budget.
    ///
    /// # Errors
    /// The text is no TOML, has an unknown key or name, or contradicts itself. The error has the
    /// line.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        let error = |line, what: &str| BudgetError { line, what: what.to_owned() };
        if text.len() > MAX_TEXT {
            return Err(error(1, "a budget is no longer than 1 MiB"));
        }
        let raw: RawBudget = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |span| line_of(text, span.start));
            error(line, e.message().trim_end())
        })?;
        if raw.limit.len() > MAX_LIMITS {
            return Err(error(1, "a budget has no more than 10,000 limits"));
        }
        let per = raw.per.map(|per| {
            let line = line_of(text, per.span().start);
            units(per.into_inner()).map_err(|what| error(line, &what))
        });
        let per = per.transpose()?;
        let mut limits = Vec::with_capacity(raw.limit.len());
        for raw in raw.limit {
            let line = line_of(text, raw.span().start);
            limits.push(limit(raw.into_inner(), line).map_err(|what| BudgetError { line, what })?);
        }
        Ok(Self {
            per,
            others: raw.others,
            findings: raw.findings,
            exact: raw.exact.unwrap_or(true),
            exit: raw.exit.unwrap_or(0),
            limits,
        })
    }
}

impl Units {
    /// Parses a number, or a text with `{}`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        units(text.parse().map_or_else(|_| RawUnits::Printed(text.to_owned()), RawUnits::Number))
    }

    /// Returns the units of work that a run did. `printed` is its command's output. Returns `None`
    /// if the output does not tell.
    pub fn count(&self, printed: &str) -> Option<f64> {
        let text = match self {
            Self::Number(number) => return Some(*number),
            Self::Printed(text) => text,
        };
        let (before, after) = text.split_once("{}")?;
        // The last match counts: a program may print its progress.
        printed.rmatch_indices(before).find_map(|(at, _)| {
            let number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_');
            let start = at + before.len();
            if before.is_empty() && printed.get(..start)?.ends_with(number) {
                return None;
            }
            let rest = printed.get(start..)?;
            let end = rest.find(|c| !number(c)).unwrap_or(rest.len());
            let (number, rest) = rest.split_at(end);
            let number: f64 = number.replace([',', '_'], "").trim_end_matches('.').parse().ok()?;
            (rest.starts_with(after) && number > 0.0 && number.is_finite()).then_some(number)
        })
    }
}

fn units(raw: RawUnits) -> Result<Units, String> {
    match raw {
        RawUnits::Number(n) if n.is_finite() && n > 0.0 => Ok(Units::Number(n)),
        RawUnits::Number(_) => Err("per: a number of units above 0".into()),
        RawUnits::Printed(text) => match text.split("{}").count() {
            2 if text.len() > 2 => Ok(Units::Printed(text)),
            _ => Err(format!("per: {text:?} is neither a number nor a text with one {{}} for it")),
        },
    }
}

fn limit(raw: RawLimit, at_line: usize) -> Result<Limit, String> {
    let phase = match raw.phase.as_deref() {
        None => None,
        Some("start-up") => Some(Phase::StartUp),
        Some("main") => Some(Phase::Steady),
        Some(other) => return Err(format!("there is no phase {other:?}: start-up or main")),
    };
    if raw.calls.is_none() && raw.failed.is_none() && raw.rate.is_none() {
        return Err("a limit of nothing: it needs calls, failed or rate".into());
    }
    if phase.is_some() && raw.failed.is_some() {
        return Err("failed calls are not told apart by phase".into());
    }
    let others = [&raw.api, &raw.caller, &raw.library, &raw.program, &raw.phase];
    if raw.line.is_some() && (others.iter().any(|o| o.is_some()) || raw.failed.is_some()) {
        return Err("with a line go only syscall, calls and rate".into());
    }
    if let Some(line) = &raw.line
        && line.rsplit_once(':').is_none_or(|(file, n)| file.is_empty() || n.parse::<u32>().is_err())
    {
        return Err(format!("{line:?} is no line: FILE:NUMBER, e.g. config.c:41"));
    }
    let set = raw.syscall.as_deref().map(calls).transpose().map_err(|e: SelectError| e.to_string())?;
    let parts = [&raw.syscall, &raw.api, &raw.caller, &raw.line, &raw.library, &raw.program];
    let mut name = parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" < ");
    if name.is_empty() {
        name = "all calls".into();
    }
    if let Some(phase) = &raw.phase {
        name.push_str(if phase == "start-up" { " at start-up" } else { " from main on" });
    }
    let selector = Selector {
        calls: set,
        api: raw.api,
        caller: raw.caller,
        library: raw.library,
        program: raw.program,
        chain: Vec::new(),
        phase,
    };
    Ok(Limit { selector, line: raw.line, calls: raw.calls, failed: raw.failed, rate: raw.rate, name, at_line })
}

/// Returns the line of the byte `at` of `text`, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "per = 1000\nothers = 0\nfindings = [\"tz-unset\"]\n\n[[limit]]\nsyscall = \"openat\"\n\
                        caller = \"read_config\"\nphase = \"main\"\ncalls = 12\nrate = \"..=3\"\n";

    #[test]
    fn a_budget_is_read() {
        let budget = Budget::parse(TEXT).unwrap();
        assert_eq!((budget.per, budget.exact, budget.exit), (Some(Units::Number(1000.0)), true, 0));
        let limit = &budget.limits[0];
        assert_eq!((limit.name.as_str(), limit.at_line), ("openat < read_config from main on", 5));
        assert_eq!(limit.calls, Some(Bound::exactly(12.0)));
        assert!(Budget::parse("").unwrap().limits.is_empty());
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, word) in [
            ("pre = 1", 1, "unknown field `pre`"),
            ("\n[[limit]]\nsyscal = \"x\"", 3, "unknown field `syscal`"),
            ("\n\n[[limit]]\nsyscall = \"opnat\"\ncalls = 1", 3, "no system call opnat"),
            ("[[limit]]\nsyscall = \"read\"", 1, "a limit of nothing"),
            ("[[limit]]\ncalls = \"many\"", 2, "\"many\" is none: a number"),
            ("[[limit]]\ncalls = -1", 2, "a number"),
            ("[[limit]]\ncalls = 1\nphase = \"end\"", 1, "no phase"),
            ("[[limit]]\ncalls = 1\nline = \"main.c\"", 1, "is no line"),
            ("[[limit]]\nfailed = 1\nphase = \"main\"", 1, "not told apart"),
            ("per = 0", 1, "above 0"),
            ("per = \"served\"", 1, "one {}"),
            ("a = [", 1, ""),
        ] {
            let error = Budget::parse(text).unwrap_err();
            assert!(error.line == line && error.what.contains(word), "{text:?}: {error}");
        }
        assert!(Budget::parse(&"#".repeat(MAX_TEXT + 1)).is_err());
    }

    #[test]
    fn units_are_found_in_the_output() {
        let units = Units::parse("served {} requests").unwrap();
        assert_eq!(units.count("served 5 requests\nserved 1,000 requests in 2 s\n"), Some(1000.0));
        assert_eq!(
            (units.count("served no requests"), units.count("served 0 requests"), units.count("")),
            (None, None, None)
        );
        assert_eq!(Units::parse("n={}").unwrap().count("n=12"), Some(12.0));
        assert_eq!(Units::parse("{} done").unwrap().count("25 done"), Some(25.0));
        assert_eq!(Units::parse("20").unwrap(), Units::Number(20.0));
        assert!(Units::parse("{}").is_err() && Units::parse("-1").is_err() && Units::parse("{} {}").is_err());
    }

    proptest! {
        #[test]
        fn no_budget_does_harm(text in "[a-z\\[\\]=\"0-9.{}\n -]{0,80}", printed in ".{0,40}") {
            let _ = Budget::parse(&text);
            if let Ok(units) = Units::parse(&text) {
                prop_assert!(units.count(&printed).is_none_or(|n| n > 0.0));
            }
        }
    }
}
