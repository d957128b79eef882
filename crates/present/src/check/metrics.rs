//! Figures over time, for Bencher and github-action-benchmark.

use super::{BudgetReport, unit};
use crate::text::clean;
use serde_json::{Map, Value, json};

/// Converts the check to Bencher's metric format (BMF): each limit's figure, with the lowest and
/// the highest of the runs.
pub fn bencher_json(checked: &BudgetReport<'_>) -> Value {
    let mut benchmarks = Map::new();
    for m in &checked.held.measured {
        let entry = benchmarks.entry(clean(&m.name)).or_insert_with(|| json!({}));
        if let Some(measures) = entry.as_object_mut() {
            let measure = json!({"value": m.value, "lower_value": m.low, "upper_value": m.high});
            measures.insert(measure_name(m.figure).into(), measure);
        }
    }
    Value::Object(benchmarks)
}

/// Converts the check to the JSON that github-action-benchmark reads as `customSmallerIsBetter`.
pub fn benchmark_json(checked: &BudgetReport<'_>) -> Value {
    let entry = |m: &systoll_compare::Measured| {
        let name = format!("{}: {}", clean(&m.name), m.figure);
        let mut entry = json!({"name": name, "unit": unit(m.figure), "value": m.value});
        if let Some(fields) = entry.as_object_mut().filter(|_| m.low < m.high) {
            fields.insert("range".into(), format!("{} to {}", m.low, m.high).into());
        }
        entry
    };
    checked.held.measured.iter().map(entry).collect()
}

fn measure_name(figure: &str) -> &'static str {
    match figure {
        "failed" => "failed-system-calls",
        "rate" => "system-calls-per-unit",
        _ => "system-calls",
    }
}
