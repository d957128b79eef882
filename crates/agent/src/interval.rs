//! An interval: what its spans have counted, by service, and what they have cost.

use crate::cost::Cost;
use crate::sinks::Sinks;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use systoll_export::{BoxMetrics, JudgedRecording, Labels, SummedRuns};
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::Recording;

/// Services with a table of their own, at most; further ones share one.
const SERVICES: usize = 200;
/// Rows of all tables, at most. They take some 60 MB.
const ROWS: usize = 60_000;
/// The service of all others.
const OTHER: &str = "other";

/// The counts and the cost of an interval so far.
pub(crate) struct Interval {
    pub(crate) began: Instant,
    services: BTreeMap<Arc<str>, SummedRuns>,
    pub(crate) watched: Duration,
    pub(crate) spans: u32,
    pub(crate) cost: Cost,
}

impl Interval {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            services: BTreeMap::new(),
            watched: Duration::ZERO,
            spans: 0,
            cost: Cost::default(),
        }
    }

    /// Adds a span's recording service by service, also to what `sinks` send. Calls are judged if some were sampled.
    pub(crate) fn add(
        &mut self,
        recording: &Recording,
        samples: Option<&Catalogue>,
        host: &str,
        metrics: &mut BoxMetrics,
        sinks: &mut Sinks,
    ) {
        for service in recording.services() {
            let part = recording.of_service(&service);
            let judgement =
                samples.map_or_else(Judgement::default, |catalogue| judge(&part, catalogue, &Options::default()));
            let judged = JudgedRecording::new(&part, &judgement);
            metrics.add(&service, &judged);
            sinks.add(&service, &judged, &part);
            let has_room = self.services.len() < SERVICES || self.services.contains_key(&service);
            let service = if has_room { service } else { OTHER.into() };
            let used: usize = self.services.values().map(SummedRuns::rows).sum();
            let labels = Labels { service: service.to_string(), release: String::new(), host: host.to_owned() };
            self.services.entry(service).or_default().add(&judged, &labels, ROWS.saturating_sub(used));
        }
    }

    /// Returns the number of services.
    pub(crate) fn services(&self) -> usize {
        self.services.len()
    }

    /// Returns the tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &SummedRuns> {
        self.services.values()
    }
}
