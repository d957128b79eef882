//! Holds the reports of kept recordings against those that were accepted, so that each change of the judge, of a cause or
//! of a sentence shows what it changes in what people read; scores the cases by their recordings; and runs the text cases.
//!
//! `reports/recordings` has the recordings, `reports/accepted` the report of each, and `reports/scores.txt` the scores.
//! `docs/develop/reports.md` says how to use them.
//!
//! ```
//! use systoll_reports::difference::changes;
//! use systoll_reports::document::Document;
//!
//! let report = |calls| Document::parse(&format!("== finding\ncause \"stat-per-op\"\ncalls {calls}\nrows [1]\n")).unwrap();
//! assert_eq!(changes(&report(9), &report(8))[0].kind, "findings: `calls` falls");
//! ```
#![forbid(unsafe_code)]

pub mod check;
pub mod choose;
pub mod command;
pub mod corpus;
pub mod difference;
pub mod document;
pub mod features;
pub mod reasons;
pub mod render;
pub mod score;
pub mod text;
