//! Counts a command's system calls: `cargo run --example count -- ls /`.

use systoll_record::{Launch, Quiet, backends};

#[expect(clippy::print_stderr, reason = "an example's whole purpose")]
fn main() {
    let launch = Launch { command: std::env::args_os().skip(1).collect(), ..Launch::default() };
    let Some(mut backend) = backends().into_iter().next() else { return };
    match backend.run(&launch, &mut Quiet) {
        Ok(recording) => {
            for total in recording.by_syscall() {
                eprintln!("{:>9} {:>7}  {}", total.counts.calls, total.counts.failed(), total.syscall);
            }
            eprintln!(
                "{:>9}          total, {:?}, exact {}",
                recording.calls(),
                recording.header.exit,
                recording.exact()
            );
            for problem in &recording.problems {
                eprintln!("{problem}");
            }
        }
        Err(e) => eprintln!("{e}"),
    }
}
