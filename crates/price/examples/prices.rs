//! Prints every price systoll can find here, cheapest first: for a look beside docs/reference/prices.md.

use std::io::{self, Write};
use systoll_model::Sysno;

fn main() -> io::Result<()> {
    // A few at a time: on a busy box no more than a few are found at once.
    let some = |first: u32| systoll_price::prices_of((first..first + 8).map(Sysno));
    let mut prices: Vec<_> = (0..512).step_by(8).flat_map(some).collect();
    prices.sort_by(|(_, a), (_, b)| a.ns.total_cmp(&b.ns));
    let mut out = io::stdout().lock();
    writeln!(out, "{:<20} {:>10} {:>10}", "ns a call", "fastest", "95 %")?;
    for (sysno, price) in prices {
        writeln!(out, "{:<20} {:>10.1} {:>10.1}", sysno.to_string(), price.ns, price.high)?;
    }
    Ok(())
}
