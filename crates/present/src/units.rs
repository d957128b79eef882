//! Writes figures in human units.
//!
//! Invariant: for no figure is NaN, infinity or a percentage over 100 written.

/// Writes `n` with its digits grouped: `20,033,214`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes `n` with the singular or the plural of a noun.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// Writes `n calls`.
pub(crate) fn calls(n: u64) -> String {
    counted(n, "call", "calls")
}

/// Writes a number of bytes: `4 KiB`, `512 KiB`, `300 bytes`, `12.3 KiB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match UNITS.iter().find(|(shift, _)| n >> shift > 0) {
        None => counted(n, "byte", "bytes"),
        Some((shift, unit)) => format!("{} {unit}", three_figures(n as f64 / (1u64 << shift) as f64)),
    }
}

/// Writes a time given in ns with three figures: `97 ns`, `1.23 µs`, `2.4 ms`, `0.166 s`, `6.15 s`,
/// `12 min 5 s`.
pub fn time(ns: u64) -> String {
    let f = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} µs", three_figures(f / 1e3)),
        999_500..99_950_000 => format!("{} ms", three_figures(f / 1e6)),
        99_950_000..999_500_000 => format!("{:.3} s", f / 1e9),
        999_500_000..9_995_000_000 => format!("{:.2} s", f / 1e9),
        9_995_000_000..99_950_000_000 => format!("{:.1} s", f / 1e9),
        99_950_000_000..599_500_000_000 => format!("{:.0} s", f / 1e9),
        _ => long_time((f / 1e9).round() as u64),
    }
}

/// Writes an interval of times. Both ends have the same unit if they are readable in it: `0.044 s
/// to 0.100 s`, not `43.6 ms to …`.
pub(crate) fn time_span(low: u64, high: u64) -> String {
    const SHORTEST_IN_SECONDS: u64 = 10_000_000;
    let end = time(high);
    match time(low) {
        begin if begin == end => end,
        begin if begin.ends_with(" ms") && end.ends_with(" s") && low >= SHORTEST_IN_SECONDS => {
            format!("{:.3} s to {end}", low as f64 / 1e9)
        }
        begin => format!("{begin} to {end}"),
    }
}

/// Writes three figures without trailing zeros: `2.4`, `16.1`, `439`.
fn three_figures(f: f64) -> String {
    let text = match f {
        f if f < 9.995 => format!("{f:.2}"),
        f if f < 99.95 => format!("{f:.1}"),
        f => return format!("{f:.0}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn long_time(seconds: u64) -> String {
    match seconds / 3600 {
        0 => format!("{} min {} s", seconds / 60, seconds % 60),
        hours => format!("{} h {} min", grouped(hours), seconds % 3600 / 60),
    }
}

/// Writes a time in ns, rounded; `?` if it is negative or no finite number.
pub(crate) fn ns(ns: f64) -> String {
    if ns.is_finite() && ns >= 0.0 { format!("{} ns", grouped(ns.round() as u64)) } else { "? ns".into() }
}

/// Writes a share as a percentage: `32 %`, `1.4 %`, `below 0.1 %`. Returns `None` if the share is
/// no number or exceeds 1.
pub(crate) fn percent(share: f64) -> Option<String> {
    let percent = share * 100.0;
    Some(match percent {
        p if p.is_nan() || p < 0.0 => return None,
        0.0 => "0 %".into(),
        p if p < 0.05 => "below 0.1 %".into(),
        p if p < 9.95 => format!("{p:.1} %"),
        p if p < 100.5 => format!("{p:.0} %"),
        _ => return None,
    })
}

/// Writes `part` as a percentage of `whole`. Returns `None` if the whole is not known.
pub(crate) fn percent_of(part: u64, whole: Option<u64>) -> Option<String> {
    percent(part as f64 / whole.filter(|whole| *whole > 0)? as f64)
}

/// Writes a share of processor time, which is an estimate: `nearly all` if it is close to 100 %.
pub(crate) fn percent_of_cpu(share: f64) -> Option<String> {
    if (0.995..1.005).contains(&share) { Some("nearly all".into()) } else { percent(share) }
}

/// Writes a share of processor time between `low` and `high`: `18 to 24 %`.
pub(crate) fn percent_span(low: f64, high: f64) -> Option<String> {
    let (begin, end) = (percent(low)?, percent(high.min(1.0))?);
    let number = begin.trim_end_matches(" %");
    Some(match number {
        _ if begin == end => end,
        _ if number.starts_with("below") => format!("up to {end}"),
        _ => format!("{number} to {end}"),
    })
}

/// Writes a rate a second: `3.3 M/s`, `14,925/s`, `0.4/s`. Returns `None` if no time passed.
pub(crate) fn rate(n: u64, over_ns: u64) -> Option<String> {
    if over_ns == 0 {
        return None;
    }
    let rate = n as f64 / (over_ns as f64 / 1e9);
    Some(match rate {
        r if r >= 999_500.0 => format!("{:.1} M/s", r / 1e6),
        r if r >= 9.95 => format!("{}/s", grouped(r.round() as u64)),
        r => format!("{r:.1}/s"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_an_interval_have_one_unit() {
        let shown = |low: u64, high: u64| time_span(low, high);
        assert_eq!(shown(43_600_000, 100_000_000), "0.044 s to 0.100 s");
        assert_eq!(shown(33_500_000, 48_700_000), "33.5 ms to 48.7 ms");
        assert_eq!(shown(5_000_000, 100_000_000), "5 ms to 0.100 s");
        assert_eq!(shown(2_400_000, 2_400_000), "2.4 ms");
        assert_eq!(shown(0, 700_000_000_000), "0 ns to 11 min 40 s");
    }

    #[test]
    fn numbers_are_grouped() {
        let all = [0, 12, 123, 1_234, 20_033_214, u64::MAX].map(grouped);
        assert_eq!(all, ["0", "12", "123", "1,234", "20,033,214", "18,446,744,073,709,551,615"]);
        assert_eq!((calls(1), calls(2)), ("1 call".into(), "2 calls".into()));
    }

    #[test]
    fn times_have_human_units() {
        let all = [0, 97, 1_234, 12_500, 439_000, 999_700, 2_400_000, 16_140_000].map(time);
        assert_eq!(all, ["0 ns", "97 ns", "1.23 µs", "12.5 µs", "439 µs", "1 ms", "2.4 ms", "16.1 ms"]);
        assert_eq!([166_000_000, 999_600_000].map(time), ["0.166 s", "1.00 s"]);
        let all = [1_950_000_000, 61_500_000_000, 250_000_000_000, 725_000_000_000, 9_000_000_000_000].map(time);
        assert_eq!(all, ["1.95 s", "61.5 s", "250 s", "12 min 5 s", "2 h 30 min"]);
    }

    #[test]
    fn shares_never_lie() {
        let all = [0.0, 0.0001, 0.014, 0.32, 1.0].map(|s| percent(s).unwrap());
        assert_eq!(all, ["0 %", "below 0.1 %", "1.4 %", "32 %", "100 %"]);
        assert_eq!([f64::NAN, 1.3, -0.1].map(percent), [None, None, None]);
        assert_eq!([percent_of(1, Some(0)), percent_of(1, None), percent_of(3, Some(2))], [None, None, None]);
        let cpu = [0.99, 0.996, 1.0, 1.01].map(percent_of_cpu);
        assert_eq!(cpu, [Some("99 %".into()), Some("nearly all".into()), Some("nearly all".into()), None]);
    }

    #[test]
    fn a_span_from_hardly_anything_has_one_end() {
        let spans =
            [(0.0001, 0.001), (0.0001, 0.0002), (0.02, 0.03), (0.5, 1.2)].map(|(low, high)| percent_span(low, high));
        let told = ["up to 0.1 %", "below 0.1 %", "2.0 to 3.0 %", "50 to 100 %"].map(|text| Some(text.to_owned()));
        assert_eq!(spans, told);
    }

    #[test]
    fn rates() {
        assert_eq!(rate(20_033_214, 6_150_000_000).unwrap(), "3.3 M/s");
        assert_eq!(rate(14_925, 30_000_000_000).unwrap(), "498/s");
        assert_eq!((rate(4, 10_000_000_000).unwrap(), rate(1, 0)), ("0.4/s".into(), None));
    }

    proptest! {
        #[test]
        fn no_figure_is_unreadable(n in any::<u64>(), m in any::<u64>(), f in any::<f64>()) {
            let all = [Some(time(n)), Some(ns(f)), percent(f), percent_of(n, Some(m)), rate(n, m)];
            for text in all.into_iter().flatten() {
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }
}
