//! Where the elapsed time of a run went, in words.

use super::Sentences;
use crate::units::{counted, grouped, percent, time};
use systoll_judge::{Searched, Searcher, WallPart, WallTime};
use systoll_model::{Process, RowId};

/// Least share of the elapsed time, 0 to 1, of waiting that a report mentions unasked.
const MUCH: f64 = 0.2;
/// Least time, ns, for which systoll held a run up that its first line mentions: what takes less seems to happen at once (Miller,
/// Response time in man-computer conversational transactions, 1968).
const HELD_UP_NS: u64 = 100_000_000;
/// The same where that mention takes a second line: what takes less does not interrupt a person's thoughts (the same source).
const HELD_UP_LONG_NS: u64 = 1_000_000_000;
/// Least share of the elapsed time, 0 to 1, of a class of waits that has words of its own.
const LEAST: f64 = 0.01;

impl<'a> Sentences<'a> {
    /// Returns where the elapsed time went, if it is known and, unless it is `asked` for, much of it was waited.
    pub(crate) fn wall_time(&self, asked: bool) -> Option<&'a WallTime> {
        let wall = self.judgement.wall_time.as_ref()?;
        let asked = asked || self.rec.header.until.is_some();
        let unasked = || {
            let much = wall.waited_ns() as f64 >= MUCH * wall.wall_ns as f64;
            much && wall.waited_ns() >= super::most::NOTICED_NS && !self.slowed() && !self.others_work(wall)
        };
        (!self.rec.header.backend.is_trace() && (asked || unasked())).then_some(wall)
    }

    /// Returns true if a service was watched for a while whose other processes took most of the processor time, or whose other
    /// threads took much: that its first thread waits says nothing of them.
    fn others_work(&self, wall: &WallTime) -> bool {
        let cpu_ns = |process: &Process| process.cpu_ns.unwrap_or(0);
        let all = self.rec.processes.iter().map(cpu_ns).fold(0, u64::saturating_add);
        let first = self.rec.processes.first().map_or(0, cpu_ns);
        let threads_work = all as f64 >= MUCH * wall.wall_ns as f64 && wall.running_ns < all / 2;
        self.rec.header.attached.is_some() && (first < all / 2 || threads_work)
    }

    /// Writes the part of the elapsed time that is systoll's, as in `, about 5.1 s of it systoll's`; nothing if it is small.
    /// Where space is `scarce`, only a long time is mentioned.
    pub(crate) fn held_up(&self, scarce: bool) -> String {
        let h = &self.rec.header;
        let least = if scarce { HELD_UP_LONG_NS } else { HELD_UP_NS };
        let is_shown = h.watching_ns >= least && h.watching_ns as f64 >= MUCH * h.wall_ns as f64;
        let ns = h.watching_ns.min(h.wall_ns);
        if is_shown { format!(", about {} of it systoll's", time(ns)) } else { String::new() }
    }

    /// Writes how much of the elapsed time each class of waits took: `80 % waiting for time to pass, 15 % for the disk, 5 %
    /// running`. Time that is neither running nor waiting for long is named by the part that is known of it.
    pub(crate) fn wall_classes(&self, wall: &WallTime) -> String {
        let share = |ns: u64| ns as f64 / wall.wall_ns.max(1) as f64;
        let classes = wall.by_class();
        let told = classes.iter().filter(|(_, ns)| share(*ns) >= LEAST).enumerate();
        let mut words: Vec<String> = told
            .filter_map(|(at, (class, ns))| {
                let waiting = if at == 0 { "waiting " } else { "" };
                Some(format!("{} {waiting}{}", percent(share(*ns))?, class.waits_for()))
            })
            .collect();
        words.extend(percent(share(wall.running_ns)).map(|running| format!("{running} running")));
        let (queued, systoll, brief) = (wall.queued_ns, wall.systoll_ns, wall.brief_ns());
        // Older recordings do not say how long programs waited for systoll.
        let rest = match systoll {
            0 => "in short waits, without a processor, or in systoll itself",
            _ => "in short waits, or without a processor",
        };
        let others = [(queued, "ready, without a processor"), (brief, rest)];
        let others = others.into_iter().chain([(systoll, "in systoll itself")]).filter(|(ns, _)| share(*ns) >= LEAST);
        words.extend(others.filter_map(|(ns, what)| Some(format!("{} {what}", percent(share(ns))?))));
        let at_least = if wall.is_complete { "" } else { "at least " };
        format!("{at_least}{}", words.join(", "))
    }

    /// Writes what one row's waits took of the elapsed time.
    pub(crate) fn wall_part(&self, wall: &WallTime, part: &WallPart) -> String {
        let of = percent(part.ns as f64 / wall.wall_ns.max(1) as f64).map_or_else(String::new, |of| format!(", {of}"));
        let waited = match part.calls {
            // Of single waits it is not known by how much systoll prolonged them.
            n if part.corrected => format!("waited about {} in {n} calls, without systoll's part", time(part.ns)),
            n if part.shared => {
                format!("waited about {} in about {n} calls, at most {}", time(part.ns), time(part.longest_ns))
            }
            1 => format!("waited {}", time(part.ns)),
            n => format!("waited {} in {n} calls, at most {}", time(part.ns), time(part.longest_ns)),
        };
        format!("{waited}{of}, {}", part.class.waits_for())
    }

    /// Returns true if a wait of the run's main path is shown as a part of its elapsed time.
    pub(crate) fn tells_wall(&self) -> bool {
        self.wall_time(false).is_some()
    }

    /// Returns the rows whose waits took a part of the elapsed time.
    pub(crate) fn wall_row(&self, part: &WallPart) -> Option<&'a systoll_model::Row> {
        self.rec.rows.get(RowId(part.row.0).0 as usize)
    }

    /// Writes what a program's start searched, opened and read; `None` unless it was watched until it was ready.
    pub(crate) fn start_work(&self) -> Option<String> {
        let work = self.judgement.start_work.as_ref()?;
        let cost = |ns: u64| format!("{}{}{}", self.about(), time(ns), self.share_of_cpu(ns));
        let searched = if work.searched.is_empty() {
            "nothing was looked for in vain".to_owned()
        } else {
            let by = |one: &Searched| format!("{} {}", grouped(one.missing), searcher(one.by));
            let by: Vec<String> = work.searched.iter().map(by).collect();
            let looks = counted(work.missing(), "search", "searches");
            format!("{looks} for a name in vain ({}): {}", by.join(", "), cost(work.search_ns()))
        };
        let opened = counted(work.opened, "file was", "files were");
        Some(format!("{searched}; {opened} opened, and read or mapped: {}", cost(work.read_ns)))
    }
}

/// Returns the code that looked for names, for the middle of a sentence.
fn searcher(by: Searcher) -> String {
    match by {
        Searcher::Loader => "by the loader".into(),
        Searcher::Language(language) => format!("by {}", language.shown()),
        Searcher::Program => "by compiled code".into(),
    }
}
