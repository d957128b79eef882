//! Writes findings, tables and explanations for a terminal or as JSON, by one writer for each of them.
//!
//! Invariants: this crate decides nothing (the judge says which calls are needless, and prove if a change won
//! anything); it reads only the data that it is given (clippy.toml enforces that); and nothing a watched program chose
//! reaches a terminal unescaped.
//!
//! ```
//! use systoll_judge::Judgement;
//! use systoll_model::Recording;
//! use systoll_present::{ReportOptions, Style, report_json, write_report};
//!
//! // `Recording::read` gives a recording, `systoll_judge::judge` the judgement of it.
//! let (recording, judgement) = (Recording::default(), Judgement::default());
//! let mut screen = Vec::new();
//! write_report(&mut screen, &recording, &judgement, &ReportOptions::default(), &Style::default())?;
//! assert!(String::from_utf8_lossy(&screen).contains("no system call was seen"));
//! assert_eq!(report_json(&recording, &judgement, None)["findings"].as_array().unwrap().len(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod access;
mod answered;
mod bisect;
mod call_text;
mod check;
mod comparison;
mod diff;
mod doctor;
mod explain;
mod export;
mod fleet;
mod host_report;
mod json;
mod live;
mod narrowing;
mod report;
mod sentences;
mod servers;
mod spender;
mod strace_table;
mod style;
mod text;
pub mod units;
mod why_not;

pub use bisect::{BisectReport, Hunk, TriedCommit, bisect_json, write_bisect};
pub use call_text::call_text;
pub use check::{
    BudgetReport, bencher_json, benchmark_json, sarif_json, write_check, write_github, write_junit, write_vim,
};
pub use comparison::{write_comparison, write_idle, write_keep, write_to_decide, write_ways};
pub use diff::{DiffOptions, write_diff, write_diff_markdown};
pub use doctor::{DoctorCheck, doctor_json, write_doctor};
pub use explain::{write_causes, write_causes_of, write_explain};
pub use export::{hyperfine_json, hyperfine_markdown};
pub use fleet::{answer_json, write_answer};
pub use host_report::{box_json, write_box};
pub use json::{SCHEMA_VERSION, SideCommand, diff_json, prove_json, report_json};
pub use live::{LiveSubject, live_json, write_live};
pub use narrowing::Narrowing;
pub use report::{Parts, Pieces, ReportOptions, write_finding, write_grouping, write_report, write_requests};
pub use servers::{serve_json, write_servers};
pub use strace_table::{TableColumn, TableOptions, TableSort, write_strace_table};
pub use style::{Role, Style};
pub use text::{clean, shell_words, shorten, wrapped};
pub use why_not::{why_not_json, write_why_not};
