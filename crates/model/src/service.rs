//! Cuts the recording of a whole box into recordings of its services.

use crate::process::ProcessId;
use crate::recording::Recording;
use crate::row::{Row, RowId};
use crate::wait_span::WaitSpans;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Recording {
    /// Returns the services of the processes whose calls were counted.
    pub fn services(&self) -> BTreeSet<Arc<str>> {
        let of = |row: &Row| self.processes.get(row.process.0 as usize).map(|process| process.service.clone());
        self.rows.iter().filter(|row| row.counts.calls > 0).filter_map(of).collect()
    }

    /// Returns the part of a recording that is about the processes of a service. Its command is the file of the
    /// service's first program, without arguments; its processor time is that of these processes.
    #[must_use]
    pub fn of_service(&self, service: &str) -> Self {
        let mut kept: Vec<Option<ProcessId>> = Vec::new();
        let mut count = 0;
        for process in &self.processes {
            let is_kept = &*process.service == service;
            kept.push(is_kept.then_some(ProcessId(count)));
            count += u32::from(is_kept);
        }
        let process = |id: ProcessId| kept.get(id.0 as usize).copied().flatten();
        let mut numbers: Vec<Option<RowId>> = Vec::new();
        let mut rows: Vec<Row> = Vec::new();
        for row in &self.rows {
            numbers.push(process(row.process).map(|_| RowId(rows.len() as u32)));
            rows.extend(process(row.process).map(|process| Row { process, ..row.clone() }));
        }
        let row = |id: RowId| numbers.get(id.0 as usize).copied().flatten();
        let mut part = Self { rows, windows: Vec::new(), ..self.clone_but_rows() };
        part.processes = (0..)
            .map(ProcessId)
            .zip(&self.processes)
            .filter(|(id, _)| process(*id).is_some())
            .map(|(_, p)| p.clone())
            .collect();
        part.processes.iter_mut().for_each(|p| p.parent = p.parent.and_then(process));
        part.vdso.retain_mut(|v| process(v.process).map(|id| v.process = id).is_some());
        part.threads.retain_mut(|t| process(t.process).map(|id| t.process = id).is_some());
        for window in self.windows.iter().filter(|w| process(w.process).is_some()) {
            let mut window = window.clone();
            window.process = process(window.process).unwrap_or(window.process);
            window.calls.retain_mut(|call| row(call.row).map(|id| call.row = id).is_some());
            if let (Some(id), false) = (row(window.row), window.calls.is_empty()) {
                window.row = id;
                part.windows.push(window);
            }
        }
        part.received.retain_mut(|r| row(r.row).map(|id| r.row = id).is_some());
        part.ledgers.retain_mut(|l| row(l.row).map(|id| l.row = id).is_some());
        part.trunks.retain_mut(|t| row(t.row).map(|id| t.row = id).is_some());
        part.whole_stacks.retain_mut(|s| row(s.row).map(|id| s.row = id).is_some());
        part.object_samples.retain_mut(|s| row(s.row).map(|id| s.row = id).is_some());
        part.longest.retain_mut(|l| row(l.row).map(|id| l.row = id).is_some());
        part.wait_spans.spans.retain_mut(|s| row(s.row).map(|id| s.row = id).is_some());
        part.wait_spans.dropped.retain_mut(|d| row(d.row).map(|id| d.row = id).is_some());
        let cpu = |p: &crate::process::Process| p.cpu_ns.unwrap_or(0);
        let cpu_ns = part.processes.iter().map(cpu).fold(0u64, u64::saturating_add);
        let header = &mut part.header;
        header.command = part.processes.first().map(|p| p.exe.to_string()).into_iter().collect();
        (header.user_ns, header.sys_ns) = (cpu_ns, 0);
        (header.own_cpu_ns, header.own_cpu_least_ns, header.own_cpu_most_ns) =
            (Some(cpu_ns).filter(|ns| *ns > 0), None, None);
        header.threads = part.processes.iter().map(|p| p.threads).fold(0u64, u64::saturating_add);
        part
    }

    /// Returns a copy without rows and windows, which are the largest tables.
    fn clone_but_rows(&self) -> Self {
        Self {
            header: self.header.clone(),
            modules: self.modules.clone(),
            frames: self.frames.clone(),
            stacks: self.stacks.clone(),
            vdso: self.vdso.clone(),
            threads: self.threads.clone(),
            request_kinds: self.request_kinds.clone(),
            received: self.received.clone(),
            ledgers: self.ledgers.clone(),
            trunks: self.trunks.clone(),
            whole_stacks: self.whole_stacks.clone(),
            object_samples: self.object_samples.clone(),
            longest: self.longest.clone(),
            wait_spans: WaitSpans::clone(&self.wait_spans),
            packages: self.packages.clone(),
            prices: self.prices.clone(),
            problems: self.problems.clone(),
            in_place: self.in_place.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::names::Stack;
    use crate::process::Process;
    use crate::sysno::Sysno;
    use crate::window::{Window, WindowCall};

    #[test]
    fn parts_of_a_box_add_up_and_are_recordings() {
        let mut all = Recording { stacks: vec![Stack::default()], ..Recording::default() };
        for (service, exe, parent) in
            [("shop", "/bin/shop", None), ("web", "/bin/web", None), ("shop", "/bin/sh", Some(0))]
        {
            let (service, exe, parent) = (service.into(), exe.into(), parent.map(ProcessId));
            all.processes.push(Process { service, exe, parent, cpu_ns: Some(5), threads: 1, ..Process::default() });
        }
        for (process, calls) in [(1, 10), (0, 1), (2, 2), (1, 20)] {
            let counts = Counts { calls, ..Counts::default() };
            all.rows.push(Row::new(ProcessId(process), Sysno(1), counts));
        }
        let call = |row| WindowCall { row: RowId(row), ..WindowCall::default() };
        let window = |process, row| Window {
            process: ProcessId(process),
            thread: 0,
            row: RowId(row),
            octave: 0,
            calls: vec![call(row)],
        };
        all.windows = vec![window(1, 3), window(2, 2)];
        all.check().unwrap();
        let services: Vec<_> = all.services().into_iter().collect();
        assert_eq!(services, [Arc::from("shop"), Arc::from("web")]);
        let [shop, web] = ["shop", "web"].map(|service| all.of_service(service));
        for part in [&shop, &web] {
            part.check().unwrap();
        }
        assert_eq!((shop.calls(), web.calls()), (3, 30));
        assert_eq!((shop.header.own_cpu_ns, &shop.header.command[..]), (Some(10), &["/bin/shop".to_owned()][..]));
        assert_eq!(
            (shop.processes[1].parent, shop.windows[0].row, shop.windows[0].process),
            (Some(ProcessId(0)), RowId(1), ProcessId(1))
        );
        assert_eq!((web.windows[0].row, web.windows.len()), (RowId(1), 1));
    }
}
