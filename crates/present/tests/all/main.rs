//! Tests of the crate from outside, in one program: linking each file by itself takes longer than all of them run.

mod common;
mod diff;
mod explain;
mod grouping;
mod host_report;
mod json;
mod live;
mod proof;
mod properties;
mod report;
mod sentences;
mod servers;
mod strace_table;
mod wall;
