//! Writes a comparison in the file formats of hyperfine, which other tools read.
//!
//! The fields are those that hyperfine's manual gives for `--export-json` and `--export-markdown`.

use crate::text::clean;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use systoll_model::Exit;
use systoll_prove::{Measured, Side, Usage};

#[derive(Serialize)]
struct Exported {
    results: Vec<Results>,
}

/// Results of a command: times in seconds, memory in bytes.
#[derive(Serialize)]
struct Results {
    command: String,
    mean: f64,
    stddev: f64,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<i32>,
}

/// Converts both sides' runs to the JSON of `hyperfine --export-json`. `names` are the commands.
pub fn hyperfine_json(measured: &Measured, names: (&str, &str)) -> Value {
    let results = vec![results(&measured.a, names.0), results(&measured.b, names.1)];
    serde_json::to_value(Exported { results }).unwrap_or_default()
}

/// Writes both sides as a table in Markdown, with times in the unit that fits the slower.
pub fn hyperfine_markdown(measured: &Measured, names: (&str, &str)) -> String {
    let sides = [results(&measured.a, names.0), results(&measured.b, names.1)];
    let fastest = sides.iter().map(|s| s.mean).fold(f64::INFINITY, f64::min).max(1e-9);
    let (unit, scale) = if sides.iter().any(|s| s.mean >= 1.0) { ("s", 1.0) } else { ("ms", 1e3) };
    let mut table =
        format!("| Command | Mean [{unit}] | Min [{unit}] | Max [{unit}] | Relative |\n|:---|---:|---:|---:|---:|\n");
    for s in &sides {
        let command = clean(&s.command).replace('|', "\\|");
        let [mean, stddev, min, max] = [s.mean, s.stddev, s.min, s.max].map(|t| t * scale);
        // Writing to a String can't fail.
        let _ = writeln!(
            table,
            "| `{command}` | {mean:.3} ± {stddev:.3} | {min:.3} | {max:.3} | {:.2} |",
            s.mean / fastest
        );
    }
    table
}

fn results(side: &Side, command: &str) -> Results {
    let seconds = |of: fn(&Usage) -> u64| side.runs.iter().map(|u| of(u) as f64 / 1e9).collect::<Vec<f64>>();
    let times = seconds(|u| u.wall_ns);
    let mean = mean(&times);
    let squares: f64 = times.iter().map(|t| (t - mean).powi(2)).sum();
    let stddev = (squares / times.len().saturating_sub(1).max(1) as f64).sqrt();
    let code = |u: &Usage| match u.exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    Results {
        command: command.to_owned(),
        mean,
        stddev,
        median: side.wall_ns.median / 1e9,
        user: self::mean(&seconds(|u| u.user_ns)),
        system: self::mean(&seconds(|u| u.sys_ns)),
        min: times.iter().copied().reduce(f64::min).unwrap_or(0.0),
        max: times.iter().copied().reduce(f64::max).unwrap_or(0.0),
        times,
        memory_usage_byte: side.runs.iter().map(|u| u.max_rss).collect(),
        exit_codes: side.runs.iter().map(code).collect(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
