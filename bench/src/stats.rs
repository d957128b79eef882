//! Minima and medians.

/// The fastest and the median of several figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) fastest: f64,
    pub(crate) median: f64,
}

/// Returns the minimum and the median of `values`; `None` if there are none.
pub(crate) fn summary(mut values: Vec<f64>) -> Option<Summary> {
    values.sort_by(f64::total_cmp);
    Some(Summary { fastest: *values.first()?, median: *values.get(values.len() / 2)? })
}

/// Formats `ns` in a unit that fits.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        _ if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}
