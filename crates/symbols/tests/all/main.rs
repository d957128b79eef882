//! Tests of the crate from outside, in one program: linking each file by itself takes longer than all of them run.

mod apis;
mod common;
mod framehop;
mod names;
mod preload;
mod programs;
mod speed;
mod stacks;
