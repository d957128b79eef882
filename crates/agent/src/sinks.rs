//! Makes the messages for receivers: counters and profiles as OTLP, profiles as pprof.
//!
//! Profiles are of spans, not of intervals: receivers add them up, and a span's whole stacks are not kept here.

use crate::clock::unix_time;
use crate::push::{Message, Pusher, Receiver};
use nix::sys::utsname::uname;
use std::io;
use std::time::{Duration, Instant};
use systoll_export::{BoxMetrics, Format, JudgedRecording, OtlpProfiles, Value, export};
use systoll_model::Recording;

/// Time between two requests with counters, at least, but at an interval's end: that of OpenTelemetry's SDKs
/// (OTEL_METRIC_EXPORT_INTERVAL).
const COUNTERS: Duration = Duration::from_secs(60);
/// Time for what is left when the agent ends.
const AT_END: Duration = Duration::from_secs(2);
const PROTOBUF: &str = "application/x-protobuf";

/// The receivers.
#[derive(Clone, Debug, Default)]
pub struct Receivers {
    /// Receiver of counters as OTLP.
    pub otlp: Option<Receiver>,
    /// True if it gets profiles as well.
    pub otlp_profiles: bool,
    /// Receiver of pprof, as Pyroscope's `/ingest`.
    pub pprof: Option<Receiver>,
}

/// The queues of the receivers.
pub(crate) struct Sinks {
    /// Name of the box.
    host: String,
    otlp: Option<Pusher>,
    pprof: Option<Pusher>,
    /// The OTLP profiles of a span.
    profiles: Option<OtlpProfiles>,
    /// The moment at which counters were sent.
    sent: Option<Instant>,
    /// The failures that the log has named.
    named: [Option<String>; 2],
}

impl Sinks {
    /// Starts the threads that send. An empty `host` stands for the box's own name.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub(crate) fn start(receivers: &Receivers, host: &str) -> io::Result<Self> {
        let pusher = |receiver: &Option<Receiver>| receiver.clone().map(Pusher::start).transpose();
        let own = || uname().map_or_else(|_| String::new(), |u| u.nodename().to_string_lossy().into_owned());
        Ok(Self {
            host: if host.is_empty() { own() } else { host.to_owned() },
            otlp: pusher(&receivers.otlp)?,
            pprof: pusher(&receivers.pprof)?,
            profiles: receivers.otlp_profiles.then(OtlpProfiles::default),
            sent: None,
            named: [None, None],
        })
    }

    /// Adds a service's part of a span.
    pub(crate) fn add(&mut self, service: &str, judged: &JudgedRecording<'_>, part: &Recording) {
        if let Some(profiles) = &mut self.profiles {
            profiles.add(service, &self.host, judged);
        }
        let Some(pprof) = &self.pprof else { return };
        let mut body = Vec::new();
        if export(Format::Pprof, Value::Toll, judged, &mut body).is_err() {
            pprof.lose("pprof");
        } else {
            let from = part.header.started_unix;
            let until = from.saturating_add(part.header.wall_ns.div_ceil(1_000_000_000));
            let name = format!("{}%7Bhost%3D{}%7D", plain(service), plain(&self.host));
            let target = format!("/ingest?format=pprof&spyName=systoll&from={from}&until={until}&name={name}");
            pprof.push(Message { what: "pprof", target, content_type: "application/octet-stream", body });
        }
    }

    /// Sends the OTLP profiles of a span.
    pub(crate) fn end_span(&mut self) {
        if let (Some(profiles), Some(otlp)) = (&mut self.profiles, &self.otlp) {
            let body = std::mem::take(profiles).finish();
            let target = "/v1development/profiles".into();
            otlp.push(Message { what: "profiles", target, content_type: PROTOBUF, body });
        }
    }

    /// Sends the counters, unless that was done a short time ago and need not be `now`.
    pub(crate) fn send_counters(&mut self, metrics: &BoxMetrics, now: bool) {
        let Some(otlp) = &self.otlp else { return };
        if now || self.sent.is_none_or(|sent| sent.elapsed() >= COUNTERS) {
            self.sent = Some(Instant::now());
            let body = metrics.otlp(&self.host, unix_time());
            otlp.push(Message { what: "metrics", target: "/v1/metrics".into(), content_type: PROTOBUF, body });
        }
    }

    /// Counts what was dropped. Names each failure once until it changes or is over.
    pub(crate) fn count_dropped(&mut self, metrics: &mut BoxMetrics, log: &mut dyn FnMut(&str)) {
        let pushers = [("OTLP", &self.otlp), ("pprof", &self.pprof)];
        for ((name, pusher), named) in pushers.into_iter().zip(&mut self.named) {
            let Some((dropped, failure)) = pusher.as_ref().map(Pusher::outcome) else { continue };
            let is_full = !dropped.is_empty();
            let failure = failure.or_else(|| is_full.then(|| "more waits than there is room for".to_owned()));
            for (what, messages) in dropped {
                metrics.dropped(what, messages);
            }
            if failure != *named {
                match &failure {
                    Some(failure) => {
                        log(&format!("the receiver of {name} does not take messages, which are dropped: {failure}"))
                    }
                    None => log(&format!("the receiver of {name} takes messages again")),
                }
                *named = failure;
            }
        }
    }

    /// Gives receivers a little time for what is left.
    pub(crate) fn finish(&mut self) {
        let end = Instant::now() + AT_END;
        for pusher in [&self.otlp, &self.pprof].into_iter().flatten() {
            pusher.finish(end);
        }
    }
}

/// Returns a name in the letters that Pyroscope takes in an application's name (api/model/labelset/validate.go), with `_` for
/// each other one.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}
