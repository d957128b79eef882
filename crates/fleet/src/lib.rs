//! Questions about many recordings, answered by engines that read Parquet: DuckDB on this box, or Spark.
//!
//! The questions are files of SQL (`questions/`), the same for all engines; the engine is a Python package of the
//! user's, started as a process of its own, so that this crate costs a build nothing. Its tables are `fleet` (a line a
//! row of a recording, docs/use/fleet.md), `runs` (a line a run) and `asked` (one line: what was asked for).
//!
//! Invariants: what is asked for reaches SQL as values of `asked` and never as text of a question; what an engine says is
//! bounded and nothing of it is believed but words and figures.
//!
//! ```
//! use systoll_fleet::{Asked, question};
//!
//! let dearest = question("dearest").unwrap();
//! assert_eq!(dearest.about(), "Dearest needless calls over all services");
//! let asked = Asked { service: Some("shop".into()), ..Asked::default() };
//! assert!(!dearest.sql.contains("shop") && asked.core_hour == 0.0);
//! ```
#![forbid(unsafe_code)]

mod answer;
mod engine;
mod question;

pub use answer::{Answer, Cell};
pub use engine::{Ask, Asked, Engine, FleetError, ask};
pub use question::{QUESTIONS, Question, question};
