//! The `systoll` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    systoll::main()
}
