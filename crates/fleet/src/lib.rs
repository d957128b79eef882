//! Queries over many recordings, answered by engines that read Parquet: DuckDB on this box, or
//! Spark.
//!
//! The questions are files of SQL (`questions/`), the same for all engines. The engine is a Python package of the
//! user's, started in a process of its own, and adds nothing to this crate's build. The tables of a query are `fleet`
//! (one line for each row of a recording, docs/use/fleet.md), `runs` (one line a run) and `asked` (one line: the
//! filters and parameters).
//!
//! Invariants: filters and parameters reach SQL as values of `asked`, never as text of a query. An
//! engine's output is bounded, and only its texts and figures are used.
//!
//! ```
//! use systoll_fleet::{Asked, question};
//!
//! let expensive = question("expensive").unwrap();
//! assert_eq!(expensive.about(), "Most expensive needless calls over all services");
//! let asked = Asked { service: Some("shop".into()), ..Asked::default() };
//! assert!(!expensive.sql.contains("shop") && asked.core_hour == 0.0);
//! ```
#![forbid(unsafe_code)]

mod answer;
mod engine;
mod question;

pub use answer::{Answer, Cell};
pub use engine::{Ask, Asked, Engine, FleetError, ask};
pub use question::{QUESTIONS, Question, question};
