//! Tests of the crate from outside, in one program: linking each file by itself takes longer than all of them run.

mod common;
mod constants;
mod file;
mod ledger;
mod pprof;
mod table;
