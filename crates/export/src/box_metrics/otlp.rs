//! Makes a request of OTLP metrics from the counters.
//!
//! Names have dots and units stand apart, as OpenTelemetry's conventions want it. Prometheus makes its own names from
//! these (dots to `_`, the unit's name, `_total`), which are the names that it scrapes from the agent: rules and
//! dashboards fit both. A service is an attribute, as it is a label: all series are what one agent says.

use super::{BoxMetrics, Family, MILLION, NS, pairs};
use crate::otlp::proto::{CUMULATIVE, Gauge, Metric, MetricsRequest, Point, ResourceMetrics, ScopeMetrics, Sum};
use crate::otlp::{attribute, resource, scope};
use prost::Message;
use std::time::Duration;

/// The name of the service that counts.
const AGENT: &str = "systoll-agent";

impl BoxMetrics {
    /// Returns the body of a request to `/v1/metrics`. `now` is the time since 1970. If the clock was set back, points are of the time
    /// at which the counters began: none ends before it begins.
    pub fn otlp(&self, host: &str, now: Duration) -> Vec<u8> {
        let families = Family::ALL.iter().filter(|family| self.of_family(**family).next().is_some());
        let began_ns = self.values.get(&(Family::Since, String::new())).copied().unwrap_or(0);
        let metrics = families.map(|family| self.metric(*family, began_ns, super::ns(now).max(began_ns))).collect();
        let scope_metrics = vec![ScopeMetrics { scope: scope(), metrics }];
        let all = ResourceMetrics { resource: resource(AGENT, host), scope_metrics };
        MetricsRequest { resource_metrics: vec![all] }.encode_to_vec()
    }

    fn metric(&self, family: Family, began_ns: u64, now_ns: u64) -> Metric {
        let data_points: Vec<_> = self
            .of_family(family)
            .map(|(labels, value)| Point {
                start_time_unix_nano: if family.counts() { began_ns } else { 0 },
                time_unix_nano: now_ns,
                as_double: (family.parts() != 1).then_some(value as f64 / family.parts() as f64),
                as_int: (family.parts() == 1).then_some(i64::try_from(value).unwrap_or(i64::MAX)),
                attributes: pairs(labels).map(|(name, value)| attribute(name, &unescaped(value))).collect(),
            })
            .collect();
        let (stem, unit) = match (family.parts(), family.name().rsplit_once('_')) {
            (NS, Some((stem, _))) => (stem, "s"),
            (MILLION, Some((stem, "ratio"))) => (stem, "1"),
            _ => (family.name(), ""),
        };
        let metric = Metric {
            name: stem.replacen('_', ".", 2),
            description: family.help().to_owned(),
            unit: unit.to_owned(),
            ..Metric::default()
        };
        if family.counts() {
            let sum = Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true };
            Metric { sum: Some(sum), ..metric }
        } else {
            Metric { gauge: Some(Gauge { data_points }), ..metric }
        }
    }
}

/// Takes the backslashes from a label's value.
fn unescaped(value: &str) -> String {
    value.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judged_recording::JudgedRecording;
    use crate::test_recordings::recording_of;
    use systoll_judge::Judgement;

    #[test]
    fn counters_become_sums_since_they_began() {
        let mut metrics = BoxMetrics::default();
        metrics.begin(Duration::from_secs(7));
        let (recording, judgement) = (recording_of(&[("read", 3)]), Judgement::default());
        metrics.add("a \"b\",syscall=\\", &JudgedRecording::new(&recording, &judgement));
        metrics.cost(Duration::from_millis(1_500), 5, 7, 0.005, 2.0);
        let mut text = Vec::new();
        metrics.write(super::super::MetricsFormat::Prometheus, &mut text).unwrap();
        // A later process goes on with the counters, and with the time at which they began.
        let mut later = BoxMetrics::read(&String::from_utf8(text).unwrap());
        later.begin(Duration::from_secs(9));
        later.cost(Duration::ZERO, 0, 0, 0.005, 2.0);
        let request = MetricsRequest::decode(later.otlp("h1", Duration::from_secs(10)).as_slice()).unwrap();
        let [all] = &request.resource_metrics[..] else { panic!("{request:?}") };
        assert_eq!(all.resource, resource("systoll-agent", "h1"));
        let metric = |name: &str| all.scope_metrics[0].metrics.iter().find(|m| m.name == name).unwrap();
        let calls = metric("systoll.box.calls").sum.as_ref().unwrap();
        assert!(calls.is_monotonic && calls.aggregation_temporality == CUMULATIVE);
        let point = Point {
            start_time_unix_nano: 7_000_000_000,
            time_unix_nano: 10_000_000_000,
            as_int: Some(3),
            as_double: None,
            attributes: vec![attribute("service", "a \"b\",syscall=\\"), attribute("syscall", "read")],
        };
        assert_eq!(calls.data_points, [point]);
        let elapsed = metric("systoll.agent.elapsed");
        assert_eq!((&elapsed.unit[..], elapsed.sum.as_ref().unwrap().data_points[0].as_double), ("s", Some(1.5)));
        let budget = metric("systoll.agent.budget");
        assert_eq!((&budget.unit[..], budget.gauge.as_ref().unwrap().data_points[0].as_double), ("1", Some(0.005)));
        assert!(metric("systoll.agent.processors").unit.is_empty());
        // The clock is set back while it counts, and before the next start.
        let times = |metrics: &BoxMetrics, now: u64| {
            let request = MetricsRequest::decode(metrics.otlp("h1", Duration::from_secs(now)).as_slice()).unwrap();
            let metric = &request.resource_metrics[0].scope_metrics[0].metrics[0];
            let point = &metric.sum.as_ref().unwrap().data_points[0];
            (point.start_time_unix_nano / 1_000_000_000, point.time_unix_nano / 1_000_000_000)
        };
        assert_eq!(times(&later, 3), (7, 7));
        later.begin(Duration::from_secs(3));
        assert_eq!(times(&later, 4), (3, 4));
    }
}
