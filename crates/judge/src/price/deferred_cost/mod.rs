//! Costs of calls that arise after they have returned, or while their thread was not running.

mod faults;
mod switches;

use crate::groups::judged_view::JudgedView;
use crate::results::finding::{Estimate, Later};
use systoll_model::{RowId, Spread};

/// Returns what the needless calls of `rows` cost later. `needless` is their number and their share of the rows' calls, each
/// with its bounds; `surely` is true if those are meant that are claimed strongly, not those that may be needless. Returns
/// `None` if windows show no such cost, or faults and switches were not recorded.
pub(crate) fn deferred_cost(
    rows: &[RowId],
    (needless, share): ([f64; 3], [f64; 3]),
    surely: bool,
    shown: JudgedView<'_>,
) -> Option<Later> {
    let prices = &shown.recording.prices;
    // Nothing costs more processor time than the run had: an estimate above it is discarded, an upper bound is cut.
    let most = shown.recording.own_cpu_at_most_ns().unwrap_or(u64::MAX);
    let within = |(count, ns): (Estimate, Estimate)| {
        (ns.estimate <= most).then_some((count, Estimate { high: ns.high.min(most), ..ns }))
    };
    let faults = priced(prices.fault, || faults::faults(rows, share, shown));
    let switches = priced(prices.switch, || switches::switches(rows, needless, surely, shown)).and_then(within);
    if faults.is_none() && switches.is_none() {
        return None;
    }
    let ((faults, of_faults), (switches, of_switches)) = (faults.unwrap_or_default(), switches.unwrap_or_default());
    let ns = Estimate {
        estimate: of_faults.estimate.saturating_add(of_switches.estimate),
        low: of_faults.low.saturating_add(of_switches.low),
        high: of_faults.high.saturating_add(of_switches.high),
    };
    Some(Later { faults, switches, ns, share_of_cpu: None })
}

/// Returns the number of events and their time, ns. The lower bound and the estimate use the lowest price, the upper
/// bound the median.
fn priced(price: Option<Spread>, count: impl FnOnce() -> Option<[f64; 3]>) -> Option<(Estimate, Estimate)> {
    let price = price.filter(|p| p.min.is_finite() && p.min > 0.0 && p.median.is_finite())?;
    let [low, best, high] = count()?;
    let ns = [low * price.min, best * price.min, high * price.median];
    Some((estimate([low, best, high]), estimate(ns)))
}

fn estimate([low, best, high]: [f64; 3]) -> Estimate {
    let estimate = best.round() as u64;
    Estimate { estimate, low: (low.floor() as u64).min(estimate), high: (high.ceil() as u64).max(estimate) }
}
