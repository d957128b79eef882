//! Watches a process for some seconds: `attach PID SECONDS`, or takes out what was left in one: `attach --clean PID`.

use std::error::Error;
use std::time::Duration;
use systoll_record::{Launch, Quiet, Running, backend};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, pid] = words.as_slice()
        && flag == "--clean"
    {
        println!("{}", systoll_record::clean(pid.parse()?)?);
        return Ok(());
    }
    let [pids, seconds] = words.as_slice() else { return Err("attach PID,... SECONDS".into()) };
    let pids = pids.split(',').map(str::parse).collect::<Result<Vec<i32>, _>>()?;
    let how = Launch { forward_signals: true, ..Launch::default() };
    let running = Running { pids, how, limit: Some(Duration::from_secs_f64(seconds.parse()?)), calls: None };
    let recording = backend(systoll_model::BackendKind::Inproc).attach(&running, &mut Quiet)?;
    let mut by_call: std::collections::BTreeMap<String, (u64, u64)> = std::collections::BTreeMap::new();
    for row in &recording.rows {
        let sum = by_call.entry(row.syscall.to_string()).or_default();
        sum.0 += row.counts.calls;
        sum.1 += row.counts.errors.values().sum::<u64>();
    }
    for (call, (calls, errors)) in by_call {
        println!("{calls:>10} {errors:>8} {call}");
    }
    println!("{:?}", recording.header.attached);
    println!("user {} sys {} wall {}", recording.header.user_ns, recording.header.sys_ns, recording.header.wall_ns);
    recording.problems.iter().for_each(|problem| println!("{:?}: {}", problem.kind, problem.text));
    Ok(())
}
