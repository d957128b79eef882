//! Rebuilds a recording from a profile that lost our message: `go tool pprof -proto` and others
//! drop fields they don't know. The result has counts, prices and names only.

use super::error::{FileError, damaged};
use super::pprof::{Line, Location as PprofLocation, Profile, Sample};
use super::profile::{KERNEL, TYPES};
use crate::counts::Counts;
use crate::errno::Errno;
use crate::names::{Frame, FrameClass, FrameId, Location, Module, ModuleId, Stack, StackId};
use crate::problem::{Problem, ProblemKind};
use crate::process::{Process, ProcessId};
use crate::recording::{BackendKind, Header, Recording};
use crate::row::Row;
use crate::sysno::Sysno;
use std::collections::HashMap;
use std::sync::Arc;

const GONE: &str = "another tool rewrote the file: errors by name, times of calls, windows, processor time and \
                    what was not exact are gone from it";

pub(super) fn rebuild(p: &Profile) -> Result<Recording, FileError> {
    let strings: Vec<Arc<str>> = p.string_table.iter().map(|s| Arc::from(s.as_str())).collect();
    let mut r = Rebuilder::new(p, strings);
    r.columns()?;
    r.header();
    r.modules()?;
    r.functions();
    r.locations()?;
    for sample in &p.sample {
        r.row(sample)?;
    }
    r.forget_what_nobody_knew();
    r.rec.problems.push(Problem::new(ProblemKind::Stripped, GONE));
    r.rec.check().map_err(FileError::Damaged)?;
    Ok(r.rec)
}

struct Rebuilder<'a> {
    p: &'a Profile,
    strings: Vec<Arc<str>>,
    /// Index of each of [`TYPES`] in a sample's values.
    columns: [Option<usize>; 5],
    modules: HashMap<u64, ModuleId>,
    /// Name and file by function id.
    functions: HashMap<u64, (Arc<str>, Option<Arc<str>>)>,
    frames: HashMap<u64, FrameId>,
    processes: HashMap<(Arc<str>, u32), ProcessId>,
    stacks: HashMap<Stack, StackId>,
    rec: Recording,
}

impl<'a> Rebuilder<'a> {
    fn new(p: &'a Profile, strings: Vec<Arc<str>>) -> Self {
        Self {
            p,
            strings,
            columns: [None; 5],
            modules: HashMap::new(),
            functions: HashMap::new(),
            frames: HashMap::new(),
            processes: HashMap::new(),
            stacks: HashMap::new(),
            rec: Recording::default(),
        }
    }

    /// Returns the string with this index, or an empty one.
    fn string(&self, index: i64) -> Arc<str> {
        usize::try_from(index).ok().and_then(|i| self.strings.get(i)).cloned().unwrap_or_else(|| Arc::from(""))
    }

    fn optional(&self, index: i64) -> Option<Arc<str>> {
        Some(self.string(index)).filter(|s| !s.is_empty())
    }

    fn columns(&mut self) -> Result<(), FileError> {
        let theirs: Vec<_> = self.p.sample_type.iter().map(|t| (self.string(t.r#type), self.string(t.unit))).collect();
        let place = |(name, unit): (&str, &str)| theirs.iter().position(|(n, u)| &**n == name && &**u == unit);
        self.columns = TYPES.map(place);
        if self.columns.iter().any(Option::is_none) {
            let names: Vec<_> = theirs.iter().map(|(n, u)| format!("{n}/{u}")).collect();
            let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
            return Err(FileError::Foreign(format!("its samples count {}", names.escape_debug())));
        }
        Ok(())
    }

    fn header(&mut self) {
        let mut header = Header { toll_estimated: true, ..Header::default() };
        let second = 1_000_000_000;
        header.started_unix = u64::try_from(self.p.time_nanos / second).unwrap_or(0);
        header.wall_ns = u64::try_from(self.p.duration_nanos).unwrap_or(0);
        for comment in &self.p.comment {
            let comment = self.string(*comment);
            match comment.split_once(": ") {
                Some(("systoll", version)) => header.version = version.to_owned(),
                Some(("command", command)) => header.command = vec![command.to_owned()],
                Some(("backend", name)) => header.backend = BackendKind::from_name(name).unwrap_or(header.backend),
                Some(("crossing ns", both)) => {
                    let mut ns = both.split(' ').filter_map(|ns| ns.parse().ok()).filter(|ns: &f64| ns.is_finite());
                    self.rec.prices.crossing_before.min = ns.next().unwrap_or(0.0);
                    self.rec.prices.crossing_after.min = ns.next().unwrap_or(0.0);
                }
                _ => {}
            }
        }
        self.rec.header = header;
    }

    fn modules(&mut self) -> Result<(), FileError> {
        for mapping in &self.p.mapping {
            let path = self.string(mapping.filename);
            if &*path == KERNEL || path.is_empty() {
                continue;
            }
            let id = ModuleId(id_for(&self.rec.modules)?);
            self.rec.modules.push(Module { path, build_id: self.optional(mapping.build_id) });
            self.modules.insert(mapping.id, id);
        }
        Ok(())
    }

    fn functions(&mut self) {
        for f in &self.p.function {
            self.functions.insert(f.id, (self.string(f.name), self.optional(f.filename)));
        }
    }

    fn locations(&mut self) -> Result<(), FileError> {
        for location in &self.p.location {
            let id = FrameId(id_for(&self.rec.frames)?);
            let frame = self.frame(location);
            self.rec.frames.push(frame);
            self.frames.insert(location.id, id);
        }
        Ok(())
    }

    fn frame(&self, location: &PprofLocation) -> Frame {
        let mut locations: Vec<_> = location.line.iter().map(|l| self.place(l)).collect();
        if locations.is_empty() {
            locations.push(Location { function: Arc::from("?"), file: None, line: None });
        }
        // Only our message contains the class; it can't be derived from a name.
        let class = FrameClass::Unknown;
        let module = self.modules.get(&location.mapping_id).copied();
        Frame { module, address: location.address, class, locations, callee: None, language: None }
    }

    fn place(&self, line: &Line) -> Location {
        let (function, file) = self.functions.get(&line.function_id).cloned().unwrap_or((Arc::from("?"), None));
        Location { function, file, line: u32::try_from(line.line).ok().filter(|l| *l > 0) }
    }

    fn row(&mut self, sample: &Sample) -> Result<(), FileError> {
        let mut frames = Vec::with_capacity(sample.location_id.len());
        for id in &sample.location_id {
            frames.push(*self.frames.get(id).ok_or_else(|| damaged("a sample names a location it has not"))?);
        }
        let leaf = frames.first().map(|f| self.rec.frame(*f).function().to_owned()).unwrap_or_default();
        let name = self.label(sample, "syscall").map_or(leaf, |s| s.to_string());
        let syscall = Sysno::from_display(&name)
            .ok_or_else(|| FileError::Foreign(format!("a sample names no system call but {name:?}")))?;
        let api = self.label(sample, "api");
        let skip = if api.is_some() { 2 } else { 1 };
        let api_module = api.as_ref().and(frames.get(1)).and_then(|f| self.rec.frame(*f).module);
        let user = api.as_ref().and(frames.get(skip)).copied();
        let context = self.stack(frames.get(skip..).unwrap_or_default().to_vec())?;
        let outer = self.stack(Vec::new())?;
        let process = self.process(sample)?;
        let counts = self.counts(sample)?;
        self.rec.rows.push(Row { process, syscall, context, outer, api, api_module, user, lines: Vec::new(), counts });
        Ok(())
    }

    fn label(&self, sample: &Sample, key: &str) -> Option<Arc<str>> {
        sample.label.iter().find(|l| &*self.string(l.key) == key).and_then(|l| self.optional(l.str))
    }

    fn stack(&mut self, frames: Vec<FrameId>) -> Result<StackId, FileError> {
        let stack = Stack { frames, complete: false };
        if let Some(id) = self.stacks.get(&stack) {
            return Ok(*id);
        }
        let id = StackId(id_for(&self.rec.stacks)?);
        self.rec.stacks.push(stack.clone());
        self.stacks.insert(stack, id);
        Ok(id)
    }

    fn process(&mut self, sample: &Sample) -> Result<ProcessId, FileError> {
        let name = self.label(sample, "process").unwrap_or_else(|| Arc::from("?"));
        let pid = sample.label.iter().find(|l| &*self.string(l.key) == "pid").map_or(0, |l| l.num);
        let pid = u32::try_from(pid).map_err(|_| damaged("a process id is out of range"))?;
        if let Some(id) = self.processes.get(&(name.clone(), pid)) {
            return Ok(*id);
        }
        let id = ProcessId(id_for(&self.rec.processes)?);
        self.rec.processes.push(Process { pid, exe: name.clone(), instances: 1, ..Process::default() });
        self.processes.insert((name, pid), id);
        Ok(id)
    }

    fn counts(&self, sample: &Sample) -> Result<Counts, FileError> {
        let mut values = [0u64; 5];
        for (value, column) in values.iter_mut().zip(self.columns) {
            let figure = column.and_then(|c| sample.value.get(c)).ok_or_else(|| damaged("a sample lacks a value"))?;
            *value = u64::try_from(*figure)
                .map_err(|_| FileError::Foreign("it has negative counts, as a difference of profiles has".into()))?;
        }
        let [calls, failed, bytes, waited_ns, toll_ns] = values;
        let mut counts =
            Counts { calls, bytes, toll_ns: Some(toll_ns), waited_ns: Some(waited_ns), ..Counts::default() };
        if failed > 0 {
            counts.errors.insert(Errno::UNKNOWN, failed);
        }
        Ok(counts)
    }

    /// Makes figures unknown that are zero in all rows: a profile can't tell zero from unknown.
    fn forget_what_nobody_knew(&mut self) {
        let rows = &mut self.rec.rows;
        if rows.iter().all(|r| r.counts.toll_ns == Some(0)) {
            rows.iter_mut().for_each(|r| r.counts.toll_ns = None);
        }
        if rows.iter().all(|r| r.counts.waited_ns == Some(0)) {
            rows.iter_mut().for_each(|r| r.counts.waited_ns = None);
        }
    }
}

/// Returns the index that the next entry of `table` will have.
fn id_for<T>(table: &[T]) -> Result<u32, FileError> {
    u32::try_from(table.len()).map_err(|_| FileError::TooLarge("more than 2^32 entries".into()))
}
