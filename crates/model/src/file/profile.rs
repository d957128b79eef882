//! Converts a recording to a pprof profile that other tools understand.
//!
//! The profile has one sample for each whole stack seen of each row. Stacks are exact up to the
//! user's frame and sampled above it; the row's values are split in proportion to the stacks'
//! weights and add up to the row's. The leaf is a function named after the system call, in a
//! mapping `[kernel]`, and the API is the frame above it, because pprof's top and speedscope show
//! frames but not labels.

use super::column::PprofColumn;
use super::intern::Interner;
use super::pprof::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use crate::clean::clean;
use crate::names::{FrameId, ModuleId};

use crate::recording::Recording;
use crate::row::{Row, RowId};
use crate::shown_frames::shares;
use std::collections::{HashMap, HashSet};

/// Name of the mapping whose functions are the system calls.
pub(super) const KERNEL: &str = "[kernel]";

/// Names and units of a sample's values, in order. The last is shown by default.
pub(super) const TYPES: [(&str, &str); 5] =
    [("calls", "count"), ("errors", "count"), ("bytes", "bytes"), ("waited", "nanoseconds"), ("toll", "nanoseconds")];

/// Builds the profile without our message. The values of `more` follow [`TYPES`] in each sample.
pub(super) fn profile(rec: &Recording, more: &[PprofColumn<'_>]) -> Profile {
    let mut b = Builder {
        rec,
        more,
        strings: Interner::with(String::new()),
        functions: HashMap::new(),
        leaves: HashMap::new(),
        frames: HashSet::new(),
        profile: Profile::default(),
    };
    b.types_and_comments();
    b.mappings();
    b.samples();
    b.profile.string_table = b.strings.into_values();
    b.profile
}

struct Builder<'a> {
    rec: &'a Recording,
    more: &'a [PprofColumn<'a>],
    strings: Interner<String>,
    /// Ids of functions, by the indices of name and file.
    functions: HashMap<(i64, i64), u64>,
    /// Locations of system calls and APIs, by mapping and function id.
    leaves: HashMap<(u64, u64), u64>,
    /// Frames that have a location.
    frames: HashSet<FrameId>,
    profile: Profile,
}

impl Builder<'_> {
    /// Adds a text that other tools print as it is. Characters that a terminal would act on are
    /// escaped.
    fn string(&mut self, text: &str) -> i64 {
        let plain = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if plain { self.strings.index(text).into() } else { self.strings.index(&clean(text)).into() }
    }

    fn types_and_comments(&mut self) {
        for (name, unit) in TYPES {
            let value_type = ValueType { r#type: self.string(name), unit: self.string(unit) };
            self.profile.default_sample_type = value_type.r#type;
            self.profile.sample_type.push(value_type);
        }
        for column in self.more {
            let value_type = ValueType { r#type: self.string(column.name), unit: self.string(column.unit) };
            self.profile.sample_type.push(value_type);
        }
        let h = &self.rec.header;
        self.profile.time_nanos = signed(h.started_unix.saturating_mul(1_000_000_000));
        self.profile.duration_nanos = signed(h.wall_ns);
        let (before, after) = (&self.rec.prices.crossing_before, &self.rec.prices.crossing_after);
        let comments = [
            format!("systoll: {}", h.version),
            format!("command: {}", h.command.join(" ")),
            format!("backend: {}", h.backend.name()),
            format!("crossing ns: {} {}", before.min, after.min),
        ];
        for comment in comments {
            let index = self.string(&comment);
            self.profile.comment.push(index);
        }
    }

    /// Adds the mappings: module `i` is mapping `i + 1`, the kernel is the last.
    fn mappings(&mut self) {
        let modules = self.rec.modules.iter().map(|m| (&*m.path, m.build_id.as_deref().unwrap_or("")));
        for (index, (path, build_id)) in modules.chain([(KERNEL, "")]).enumerate() {
            let mapping = Mapping {
                id: index as u64 + 1,
                filename: self.string(path),
                build_id: self.string(build_id),
                // All names are resolved, so tools need not look for the files.
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
                ..Mapping::default()
            };
            self.profile.mapping.push(mapping);
        }
    }

    fn kernel(&self) -> u64 {
        self.rec.modules.len() as u64 + 1
    }

    /// Returns the location of a frame: that of frame `i` is `i + 1`. Those of system calls and APIs come after them all. A
    /// frame that no stack has gets none: a service's part of a box has the frames of all.
    fn frame(&mut self, id: FrameId) -> u64 {
        let location_id = u64::from(id.0) + 1;
        if self.frames.insert(id) {
            let frame = self.rec.frame(id);
            let line = |l: &crate::names::Location| Line {
                function_id: self.function(&l.function, l.file.as_deref().unwrap_or("")),
                line: l.line.unwrap_or(0).into(),
            };
            let location = Location {
                id: location_id,
                mapping_id: frame.module.map_or(0, mapping_id),
                address: frame.address,
                line: frame.locations.iter().map(line).collect(),
            };
            self.profile.location.push(location);
        }
        location_id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (self.string(name), self.string(file));
        let next = self.profile.function.len() as u64 + 1;
        *self.functions.entry(key).or_insert_with(|| {
            let (name, filename) = key;
            self.profile.function.push(Function { id: next, name, system_name: name, filename, start_line: 0 });
            next
        })
    }

    /// Returns a location of `mapping` that is only a function's name.
    fn leaf(&mut self, mapping: u64, name: &str) -> u64 {
        let function_id = self.function(name, "");
        let next = (self.rec.frames.len() + self.leaves.len()) as u64 + 1;
        *self.leaves.entry((mapping, function_id)).or_insert_with(|| {
            let line = vec![Line { function_id, line: 0 }];
            // Tools merge locations with the same mapping and address, so each gets an address of
            // its own.
            self.profile.location.push(Location { id: next, mapping_id: mapping, address: u64::MAX - next, line });
            next
        })
    }

    fn samples(&mut self) {
        for (at, row) in self.rec.rows.iter().enumerate() {
            let c = &row.counts;
            let calls = [c.calls, c.failed(), c.bytes, c.waited_ns.unwrap_or(0), c.toll_ns.unwrap_or(0)];
            let more = self.more.iter().map(|column| column.values.get(at).copied().unwrap_or(0));
            let stacks = self.rec.shown_stacks(RowId(at as u32));
            let weights: Vec<u64> = stacks.iter().map(|stack| stack.weight).collect();
            let parts: Vec<Vec<u64>> = calls.into_iter().chain(more).map(|value| shares(value, &weights)).collect();
            for (nth, stack) in stacks.iter().enumerate() {
                let value: Vec<u64> = parts.iter().filter_map(|of_value| of_value.get(nth).copied()).collect();
                if stacks.len() > 1 && value.iter().all(|part| *part == 0) {
                    continue;
                }
                let value = value.into_iter().map(signed).collect();
                let sample = Sample { location_id: self.chain(row, &stack.frames), value, label: self.labels(row) };
                self.profile.sample.push(sample);
            }
        }
    }

    /// Returns a sample's locations: system call, API, then `frames`.
    fn chain(&mut self, row: &Row, frames: &[FrameId]) -> Vec<u64> {
        let mut chain = vec![self.leaf(self.kernel(), &row.syscall.to_string())];
        if let Some(api) = &row.api {
            chain.push(self.leaf(row.api_module.map_or(0, mapping_id), api));
        }
        chain.extend(frames.iter().map(|f| self.frame(*f)));
        chain
    }

    fn labels(&mut self, row: &Row) -> Vec<Label> {
        let process = self.rec.process(row.process);
        let name = process.name().to_owned();
        let mut labels = vec![
            self.text_label("syscall", &row.syscall.to_string()),
            self.text_label("process", &name),
            Label { key: self.string("pid"), num: process.pid.into(), ..Label::default() },
        ];
        if let Some(api) = &row.api {
            labels.push(self.text_label("api", api));
        }
        labels
    }

    fn text_label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.string(key), str: self.string(text), ..Label::default() }
    }
}

fn mapping_id(module: ModuleId) -> u64 {
    u64::from(module.0) + 1
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
