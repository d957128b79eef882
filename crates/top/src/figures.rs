//! Formats figures for each second, as text of few columns.

use systoll_present::units;

/// Returns `n` a second as text: `46,380`, `0.3`; smaller rates are `0`.
pub(crate) fn rate(n: u64, span_ns: u64) -> String {
    let rate = n as f64 / span_ns.max(1) as f64 * 1e9;
    match rate {
        r if r >= 9_999_999.5 => format!("{:.1} M", r / 1e6),
        r if r >= 9.95 => units::grouped(r.round() as u64),
        r if r >= 0.05 => format!("{r:.1}"),
        _ => "0".into(),
    }
}

/// Returns a share as a percentage: `20.6 %`; several threads can have more than 100.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() || p <= 0.0 => "0 %".into(),
        p if p < 0.05 => "0.0 %".into(),
        p if p < 99.95 => format!("{p:.1} %"),
        p if p < 99_999.5 => format!("{p:.0} %"),
        _ => "much".into(),
    }
}

/// Returns `ns` of a stretch as a share of one processor, without the sign of percentages.
pub(crate) fn share(ns: u64, span_ns: u64) -> String {
    percent(ns as f64 / span_ns.max(1) as f64).trim_end_matches(" %").to_owned()
}

/// Returns the mean time of one of `n`, as text; nothing if there was none, or if the time is
/// unknown.
pub(crate) fn each(ns: u64, n: u64) -> String {
    if ns == 0 { String::new() } else { ns.checked_div(n).map_or_else(String::new, units::time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fit_their_columns() {
        let second = 1_000_000_000;
        let all = [0, 1, 9, 46_380, 3_300_000, 12_345_678, u64::MAX / 2_000_000_000].map(|n| rate(n, second));
        assert_eq!(all, ["0", "1.0", "9.0", "46,380", "3,300,000", "12.3 M", "9223.4 M"]);
        assert_eq!(
            (rate(1, 100 * second), rate(3, 10 * second), rate(7, 0)),
            ("0".into(), "0.3".into(), "7000.0 M".into())
        );
    }

    #[test]
    fn shares_of_several_threads_exceed_all() {
        assert_eq!(
            [0.0, 0.0001, 0.206, 1.0, 3.5, f64::NAN, 1e9].map(percent),
            ["0 %", "0.0 %", "20.6 %", "100 %", "350 %", "0 %", "much"]
        );
        assert_eq!((share(1, 2), each(10, 4), each(10, 0)), ("50.0".into(), "2 ns".into(), String::new()));
    }
}
