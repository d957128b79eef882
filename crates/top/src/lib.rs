//! The live screen of `systoll top`: what the system calls of running programs cost a second.
//!
//! Recordings so far come in ([`Tally::of`]), the difference of two of them gives what came in between ([`History`]), and a
//! [`State`] (snapshots, and what the user has chosen) is drawn by [`draw`]: the same state gives the same screen. Only
//! [`Screen`] knows the terminal.
//!
//! ```
//! use systoll_model::{Counts, Process, Recording, Row, Stack, StackId, ProcessId, Sysno};
//! use systoll_top::{Choice, Look, State, Tally, text};
//!
//! let mut recording = Recording::default();
//! recording.header.wall_ns = 1_000_000_000;
//! recording.processes.push(Process { exe: "/bin/app".into(), instances: 1, ..Process::default() });
//! recording.stacks.push(Stack::default());
//! let counts = Counts { calls: 46_380, toll_ns: Some(206_000_000), ..Counts::default() };
//! let (process, context, outer) = (ProcessId(0), StackId(0), StackId(0));
//! let syscall = Sysno::from_name("write").unwrap();
//! recording.rows.push(Row { context, outer, ..Row::new(process, syscall, counts) });
//! let mut state = State::new(Choice::default(), Look { is_batch: true, ..Look::default() });
//! state.push(Tally::of(&recording));
//! let screen = text(&state, 80, 10);
//! assert!(screen.contains("20.6   46,380") && screen.contains("write"), "{screen}");
//! ```
#![forbid(unsafe_code)]

mod figures;
mod geometry;
mod history;
mod keyboard;
mod screen;
mod state;
mod table;
mod tally;
mod text;
mod view;

pub use history::{History, Interval, Judged, POINTS, Point};
pub use screen::{Did, Screen, restore_terminal};
pub use state::{Event, Look, Page, State};
pub use table::{Choice, Group, GroupBy, SortBy, TableLine};
pub use tally::{CallerPlace, Figures, ProcessKey, ProcessTally, RowKey, RowTally, Tally};
pub use text::{height, text};
pub use view::{draw, page_height};
