//! Measures what each part of the in-process backend's code adds to a call.

use anyhow::Result;
use systoll_hooks::assemble::Options;
use systoll_record::inproc::own_share;

/// Measures loops of calls in this process, by turns with counting code of each kind and without
/// any.
pub(crate) fn share() -> Result<()> {
    let count = Options::default();
    let results = Options { results: true, ..count };
    let time = Options { time: true, ..results };
    let waited = Options { waited: true, ..time };
    let windows = Options { windows: true, ..waited };
    println!("\nwhat the counting code adds to a call, in this process");
    println!("  {:<44} {:>8} {:>8}", "", "ns", "x");
    for (what, options) in [
        ("count, by calling context", count),
        ("the same, errors and bytes", results),
        ("the same, time", time),
        ("the same, waiting told from working", waited),
        ("the same, windows: all that run does", windows),
    ] {
        // Take the least of several rounds, because other work slows a busy machine now and then.
        let all: Vec<_> = (0..8).filter_map(|_| own_share(&options)).collect();
        let added = all.iter().map(|s| s.added_ns).fold(f64::INFINITY, f64::min);
        let plain = all.iter().map(|s| s.plain_ns).fold(f64::INFINITY, f64::min);
        if all.is_empty() {
            println!("  {what:<44} not available here");
        } else {
            println!("  {what:<44} {added:>8.1} {:>8.3}", 1.0 + added / plain);
        }
    }
    Ok(())
}
