//! Prints the sites of files and their hooks: `cargo run -r --example plan -- [-v] FILE...`
//!
//! With `-d` it prints only a digest of each plan, for comparing the plans of two builds.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::hash::{DefaultHasher, Hasher};
use std::time::Instant;
use systoll_hooks::plan::{Span, plan};

fn main() -> std::io::Result<()> {
    let (flags, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|arg| arg == "-v" || arg == "-d");
    let (mut verbose, mut digests) = (false, false);
    for flag in flags {
        verbose |= flag == "-v";
        digests |= flag == "-d";
    }
    for file in files {
        let elf = std::fs::read(&file)?;
        let start = Instant::now();
        let plan = plan(&elf);
        let took = start.elapsed().as_secs_f64() * 1e3;
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                println!("{file}: {error}");
                continue;
            }
        };
        if digests {
            let mut digest = DefaultHasher::new();
            digest.write(&plan.to_bytes());
            println!("{:016x} {} {file}", digest.finish(), plan.sites.len());
            continue;
        }
        let before = plan.sites.iter().filter(|s| s.entry_span.is_some()).count();
        let both = plan.sites.iter().filter(|s| s.entry_span.is_some() && s.return_span.is_some()).count();
        let numbers = plan.sites.iter().filter(|s| s.number.is_some()).count();
        let cfa = plan.sites.iter().filter(|s| s.cfa.is_some()).count();
        println!(
            "{file}: {} sites, before {before}, before and after {both}, number {numbers}, cfa {cfa}, entries {}, \
             unplanned {}, gs {}, {took:.1} ms",
            plan.sites.len(),
            plan.entries.len(),
            plan.unplanned.len(),
            plan.uses_gs.as_ref().map(ToString::to_string).unwrap_or_else(|| "no".into())
        );
        let crossing = plan.sites.iter().filter(|s| s.spans().any(Span::jump_crosses_pages)).count();
        if crossing > 0 {
            println!("  {crossing} with a span whose jump lies across two pages");
        }
        if verbose {
            for u in &plan.unplanned {
                println!("  {:#x}: {:?}", u.address, u.why);
            }
            for s in plan.sites.iter().filter(|s| s.return_span.is_none()) {
                println!("  {:#x}: no after (number {:?}, before {})", s.address, s.number, s.entry_span.is_some());
            }
            for s in plan.sites.iter().filter(|s| s.entry_span.is_none()) {
                println!("  {:#x}: no before (number {:?}, whole {})", s.address, s.number, s.wrap_span.is_some());
            }
        }
    }
    Ok(())
}
