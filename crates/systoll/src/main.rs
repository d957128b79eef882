//! Starts the `systoll` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: systoll_record::OrEnd = systoll_record::OrEnd;

fn main() -> ExitCode {
    systoll::main()
}
