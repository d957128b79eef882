//! The agent's loop: rest, watch a span, add it up, keep an interval.

use crate::clock::{DAY_S, Moment, today, unix_time};
use crate::cost::{Cost, in_kernel_ns, own_ns, switches};
use crate::pace::{FIRST, Pace, Plan, SHORTEST};
use crate::serve::serve;
use crate::sinks::{Receivers, Sinks};
use crate::store::{Store, reason, write_whole};
use crate::tables::Tables;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use systoll_export::{BoxMetrics, MetricsFormat, day};
use systoll_judge::Catalogue;
use systoll_model::{BackendKind, Recording};
use systoll_record::{Backend, Closely, Control, HowToWatch, Running, WindowPolicy, backend};

/// Longest sleep between two looks at the time and at signals.
const LOOK: Duration = Duration::from_millis(200);
/// Spans after which what was read of files is forgotten, so that neither memory nor descriptors grow with the programs that
/// a box has ever run.
const REMEMBERED: u32 = 8;
/// Pause after a span that failed.
const PAUSE: Duration = Duration::from_secs(30);
/// Time that watching adds to a call, ns, until it has been measured: three times a plain getppid (docs/evidence/performance.md).
const ADDED_NS: f64 = 400.0;
/// Part of a span's budget that sampling may take.
const FOR_SAMPLES: f64 = 0.2;
/// The file of the counters, which continue from it after a start. node_exporter's textfile collector reads it.
const COUNTERS: &str = "systoll.prom";
/// Bytes of that file that are read, at most: 5,000 series of some 150 bytes are less than a tenth.
const MOST_COUNTERS: u64 = 16 << 20;

/// The settings of the agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// Share of the box's processors that watching may take.
    pub budget: f64,
    /// Folder for tables and counters.
    pub folder: PathBuf,
    /// Time after which tables are written.
    pub interval: Duration,
    /// Days for which tables are kept.
    pub keep_days: u64,
    /// Bytes of tables that are kept, at most.
    pub keep_bytes: u64,
    /// Address at which scrapers are answered.
    pub listen: Option<SocketAddr>,
    /// Receivers to which counters and profiles are sent.
    pub receivers: Receivers,
    /// Name of the box in the folder and for receivers; empty for its own.
    pub host: String,
    /// Seed of the windows' random places.
    pub seed: u64,
}

/// The reason why the agent could not begin.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The folder can't be used.
    #[error("can't keep anything in {}: {why}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// The address can't be listened on.
    #[error("can't listen on {address}: {why}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        why: io::Error,
    },
    /// No thread that sends can be started.
    #[error("can't start to send: {0}")]
    Send(io::Error),
    /// The box can't be watched.
    #[error(transparent)]
    Record(#[from] systoll_record::Error),
}

/// Watches the box until `stop` returns true. Calls `log` with a line about each interval and each trouble.
///
/// # Errors
/// If the agent can't begin. Later on, troubles are logged and watching goes on.
pub fn watch_box(
    options: &Options,
    catalogue: &Catalogue,
    stop: &dyn Fn() -> bool,
    log: &mut dyn FnMut(&str),
) -> Result<(), AgentError> {
    let folder = |why| AgentError::Folder { folder: options.folder.clone(), why };
    let store = Store::open(&options.folder).map_err(folder)?;
    let counters = options.folder.join(COUNTERS);
    // Whoever may write to the folder must not make the agent wait, or fill its memory.
    let kept = systoll_files::head(&counters, MOST_COUNTERS).unwrap_or_default();
    let mut metrics = BoxMetrics::read(&String::from_utf8_lossy(&kept));
    metrics.begin(unix_time());
    let published = Arc::new(Mutex::new(metrics.clone()));
    if let Some(address) = options.listen {
        let at = serve(address, Arc::clone(&published)).map_err(|why| AgentError::Listen { address, why })?;
        log(&format!("metrics: http://{at}/metrics"));
    }
    let mut agent = Agent {
        options,
        catalogue,
        stop,
        log,
        store,
        metrics,
        published,
        sinks: Sinks::start(&options.receivers, &options.host).map_err(AgentError::Send)?,
        pace: Pace::new(options.budget, processors(), options.interval),
        interval: Interval::begin(),
        tables: Tables::of_day(today()),
        added_ns: ADDED_NS,
        troubles: Troubles::default(),
        at: Moment::now(),
        own_ns: 0,
        watched: Duration::ZERO,
        backend: backend(BackendKind::Bpf),
        used: 0,
    };
    agent.run()?;
    agent.end_interval();
    agent.sinks.finish();
    agent.keep_counters();
    Ok(())
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64)
}

/// The time for which an interval has been watched so far, and the cost of that.
struct Interval {
    began: Instant,
    watched: Duration,
    spans: u32,
    cost: Cost,
}

impl Interval {
    fn begin() -> Self {
        Self { began: Instant::now(), watched: Duration::ZERO, spans: 0, cost: Cost::default() }
    }
}

/// The troubles that the log has named: each is named once until it changes or is over.
#[derive(Default)]
struct Troubles {
    watching: Option<String>,
    keeping: Option<String>,
}

struct Agent<'a> {
    options: &'a Options,
    catalogue: &'a Catalogue,
    stop: &'a dyn Fn() -> bool,
    log: &'a mut dyn FnMut(&str),
    store: Store,
    metrics: BoxMetrics,
    /// The counters that scrapers see: those that were written to the file, so that none goes back over a kill.
    published: Arc<Mutex<BoxMetrics>>,
    sinks: Sinks,
    pace: Pace,
    interval: Interval,
    tables: Tables,
    added_ns: f64,
    troubles: Troubles,
    /// The moment up to which costs are accounted for, and the processor time at it.
    at: Moment,
    own_ns: u64,
    /// Time that was watched since the start.
    watched: Duration,
    backend: Box<dyn Backend>,
    /// Spans for which the backend was used.
    used: u32,
}

impl Agent<'_> {
    fn run(&mut self) -> Result<(), AgentError> {
        while !(self.stop)() {
            let ends = self.interval.began + self.options.interval;
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() || today() != self.tables.day {
                self.end_interval();
                continue;
            }
            let rest = self.pace.rest().max(if left < SHORTEST { left } else { Duration::ZERO });
            if !rest.is_zero() {
                std::thread::sleep(rest.min(LOOK).min(left));
                self.account(0);
                continue;
            }
            match self.span(left) {
                Ok(()) => {
                    if self.troubles.watching.take().is_some() {
                        (self.log)("watching again");
                    }
                }
                Err(error) if self.watched.is_zero() => return Err(error.into()),
                Err(error) => {
                    let text = error.to_string();
                    if self.troubles.watching.as_ref() != Some(&text) {
                        (self.log)(&text);
                    }
                    self.troubles.watching = Some(text);
                    self.metrics.trouble("watching");
                    self.pause();
                }
            }
        }
        Ok(())
    }

    fn pause(&mut self) {
        let end = Instant::now() + PAUSE;
        while Instant::now() < end && !(self.stop)() {
            std::thread::sleep(LOOK);
        }
        self.account(0);
    }

    /// Watches a span, and adds what it has counted.
    fn span(&mut self, left: Duration) -> Result<(), systoll_record::Error> {
        let plan = self.pace.plan(left);
        let (began, own_before, switches_before) = (Instant::now(), own_ns(), switches());
        let budget = Duration::from_nanos(plan.most_ns).mul_f64(FOR_SAMPLES);
        let how = HowToWatch {
            closely: if plan.samples { Closely::All } else { Closely::Totals },
            windows: WindowPolicy {
                allowance: budget,
                share: 0.0,
                first_stacks: (budget, 0.0),
                ..WindowPolicy::default()
            },
            seed: self.options.seed,
            ..HowToWatch::default()
        };
        let running = Running { whole_box: true, how, limit: Some(plan.length), ..Running::default() };
        let mut control = SpanControl {
            stop: self.stop,
            plan,
            added_ns: self.added_ns,
            own_before,
            calls: 0,
            own_ns: Cell::new(own_before),
        };
        if self.used >= REMEMBERED {
            (self.backend, self.used) = (backend(BackendKind::Bpf), 0);
        }
        self.used += 1;
        let recording = self.backend.attach(&running, &mut control)?;
        let own_while = control.own_ns.get().saturating_sub(own_before);
        let length = Duration::from_nanos(recording.header.wall_ns).min(began.elapsed());
        self.added_ns = recording.header.observer_ns_per_call;
        let switched = switches().saturating_sub(switches_before);
        let in_kernel = in_kernel_ns(recording.calls(), self.added_ns, switched);
        self.add(&recording, plan.samples, length);
        drop(recording);
        self.account(in_kernel);
        let after_ns = own_ns().saturating_sub(own_before).saturating_sub(own_while);
        self.pace.learn(plan, length, own_while.saturating_add(in_kernel), after_ns);
        self.keep_counters();
        self.sinks.send_counters(&self.metrics, false);
        Ok(())
    }

    fn add(&mut self, recording: &Recording, samples: bool, length: Duration) {
        let catalogue = samples.then_some(self.catalogue);
        self.tables.add(recording, catalogue, &self.options.host, &mut self.metrics, &mut self.sinks);
        self.sinks.end_span();
        self.interval.watched += length;
        self.watched += length;
        self.interval.spans += 1;
        self.metrics.watched(length, samples, recording.header.lost);
    }

    /// Accounts for the time since the last call, and what it has cost: this process's own time, and that in the kernel.
    fn account(&mut self, kernel_ns: u64) {
        let (now, own) = (Moment::now(), own_ns());
        let (elapsed, set) = now.since(self.at);
        let cost = Cost { own_ns: own.saturating_sub(self.own_ns), kernel_ns };
        self.pace.spend(elapsed, cost.all_ns());
        self.interval.cost.add(cost);
        self.metrics.cost(elapsed, cost.own_ns, cost.kernel_ns, self.options.budget, processors());
        if let Some(seconds) = set {
            (self.log)(&format!("the clock was set by {seconds:+.0} s"));
            self.metrics.trouble("clock");
        }
        (self.at, self.own_ns) = (now, own);
    }

    /// Writes the tables with what an interval has added, and begins another interval.
    fn end_interval(&mut self) {
        self.account(0);
        let interval = std::mem::replace(&mut self.interval, Interval::begin());
        let written = self.tables.write(&self.store);
        let today = today();
        let first_day = day(today.saturating_sub(self.options.keep_days).saturating_mul(DAY_S));
        let pruned = self.store.prune(&first_day, self.options.keep_bytes);
        let are_over = (self.stop)() || today != self.tables.day || self.tables.are_over(&self.store);
        if are_over {
            self.tables = Tables::of_day(today);
        }
        if written.failed > 0 {
            self.metrics.trouble("keeping");
        }
        self.keep_counters();
        self.sinks.send_counters(&self.metrics, true);
        let elapsed = interval.began.elapsed();
        let share = |ns: u64| 100.0 * ns as f64 / (processors() * elapsed.as_nanos().max(1) as f64);
        (self.log)(&format!(
            "watched {:.1} of {:.1} s in {} spans; it took {:.3} % of {} processors (itself {:.3} %, in the kernel {:.3} %); \
             {} services; kept {} tables, {} KiB; removed {}, {} KiB are left",
            interval.watched.as_secs_f64(),
            elapsed.as_secs_f64(),
            interval.spans,
            share(interval.cost.all_ns()),
            processors(),
            share(interval.cost.own_ns),
            share(interval.cost.kernel_ns),
            written.files + written.failed,
            written.files,
            written.bytes >> 10,
            pruned.files,
            pruned.left >> 10,
        ));
        if self.watched < SHORTEST {
            (self.log)(&format!(
                "hardly anything was watched: the first span takes {} s and what the budget gives it; --for or --interval can be longer, --budget larger",
                FIRST.as_secs()
            ));
        }
        if let Some(error) = written.failure {
            let outcome = if are_over { "are lost" } else { "can't be kept, and are tried again" };
            (self.log)(&format!("{} tables {outcome}: {error}", written.failed));
        }
    }

    /// Writes the counters, from which they go on after a start, and shows them to scrapers.
    fn keep_counters(&mut self) {
        self.sinks.count_dropped(&mut self.metrics, self.log);
        let mut text = Vec::new();
        let written = self.metrics.write(MetricsFormat::Prometheus, &mut text).map_err(reason);
        let kept = written.and_then(|()| write_whole(&self.options.folder.join(COUNTERS), &text));
        let text =
            kept.err().map(|e| format!("the counters can't be kept, and would go back if the agent ended now: {e}"));
        if text.is_some() {
            self.metrics.trouble("keeping");
        }
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = self.metrics.clone();
        if text != self.troubles.keeping {
            (self.log)(text.as_deref().unwrap_or("the counters are kept again"));
            self.troubles.keeping = text;
        }
    }
}

/// Ends a span when the agent is to end, or when it has cost enough.
struct SpanControl<'a> {
    stop: &'a dyn Fn() -> bool,
    plan: Plan,
    added_ns: f64,
    own_before: u64,
    calls: u64,
    /// Processor time of this process when it was last read.
    own_ns: Cell<u64>,
}

impl Control for SpanControl<'_> {
    fn progress(&mut self, calls: u64, _: usize, _: bool) {
        self.calls = calls;
    }

    fn every(&self) -> Option<Duration> {
        None
    }

    fn snapshot(&mut self, _: Recording) {}

    fn leaves(&self) -> bool {
        self.own_ns.set(own_ns());
        let own = self.own_ns.get().saturating_sub(self.own_before);
        let cost = Cost { own_ns: own, kernel_ns: in_kernel_ns(self.calls, self.added_ns, 0) };
        (self.stop)() || cost.all_ns() > self.plan.most_ns
    }
}
