//! Makes a request of profiles: what calls cost by caller, for each service of a box.
//!
//! A profile has one kind of value, so a service has one for each [`Value`]. A stack is that of the other formats: the
//! system call, the public function, and the frames outwards.

use super::proto::{
    Attribute, Dictionary, Function, Line, Link, Location, Mapping, Profile, ProfilesRequest, ResourceProfiles, Sample,
    ScopeProfiles, Stack, ValueType,
};
use super::{resource, scope, text_value};
use crate::judged_recording::{JudgedRecording, Link as Named, Value};
use prost::Message;
use std::collections::HashMap;
use std::hash::Hash;

/// Profiles of services, with the tables that they share.
#[derive(Default)]
pub struct OtlpProfiles {
    strings: Table<String>,
    mappings: Table<Mapping>,
    functions: Table<Function>,
    locations: Table<Location>,
    stacks: Table<Stack>,
    /// Programs, by the index of the name.
    programs: Table<i32>,
    services: Vec<ResourceProfiles>,
}

impl OtlpProfiles {
    /// Adds the profiles of a service.
    pub fn add(&mut self, service: &str, host: &str, judged: &JudgedRecording<'_>) {
        let profiles = Value::ALL.into_iter().map(|value| self.profile(value, judged));
        let profiles = profiles.filter(|profile| !profile.samples.is_empty()).collect();
        let scope_profiles = vec![ScopeProfiles { scope: scope(), profiles }];
        self.services.push(ResourceProfiles { resource: resource(service, host), scope_profiles });
    }

    fn profile(&mut self, value: Value, judged: &JudgedRecording<'_>) -> Profile {
        let unit = if value.is_time() { "nanoseconds" } else { "count" };
        let sample_type =
            Some(ValueType { type_strindex: self.string(value.name()), unit_strindex: self.string(unit) });
        let mut samples = Vec::new();
        for row in judged.rows() {
            let name = self.string(judged.program(row.row));
            let program = self.programs.index(name);
            for (stack, part) in judged.parts(&row, row.value(value)) {
                let location_indices = stack.links.iter().map(|link| self.location(link)).collect();
                samples.push(Sample {
                    stack_index: self.stacks.index(Stack { location_indices }),
                    attribute_indices: vec![program],
                    values: vec![i64::try_from(part).unwrap_or(i64::MAX)],
                });
            }
        }
        let header = &judged.recording.header;
        let time_unix_nano = header.started_unix.saturating_mul(1_000_000_000);
        Profile { sample_type, samples, time_unix_nano, duration_nano: header.wall_ns }
    }

    fn location(&mut self, named: &Named<'_>) -> i32 {
        let name = self.string(&named.function);
        let filename_strindex = named.file.map_or(0, |file| self.string(file));
        let function = Function { name_strindex: name, system_name_strindex: name, filename_strindex };
        let line = Line { function_index: self.functions.index(function), line: named.line.map_or(0, i64::from) };
        let mapping = Mapping { filename_strindex: self.string(named.module) };
        self.locations.index(Location { mapping_index: self.mappings.index(mapping), lines: vec![line] })
    }

    /// Adds a text that other tools print as it is.
    fn string(&mut self, text: &str) -> i32 {
        self.strings.index(systoll_present::clean(text))
    }

    /// Returns the request.
    pub fn finish(mut self) -> Vec<u8> {
        let key_strindex = self.string("process.executable.name");
        let strings = self.strings.all();
        let of_program = |name: i32| Attribute {
            key_strindex,
            value: text_value(strings.get(name as usize).map_or("", String::as_str)),
        };
        let mut attribute_table: Vec<_> = self.programs.all().into_iter().map(of_program).collect();
        if let Some(none) = attribute_table.first_mut() {
            *none = Attribute::default();
        }
        let dictionary = Dictionary {
            mapping_table: self.mappings.all(),
            location_table: self.locations.all(),
            function_table: self.functions.all(),
            link_table: vec![Link::default()],
            string_table: strings,
            attribute_table,
            stack_table: self.stacks.all(),
        };
        ProfilesRequest { resource_profiles: self.services, dictionary: Some(dictionary) }.encode_to_vec()
    }
}

/// Different entries, each with its index. The first is empty.
struct Table<T>(HashMap<T, i32>);

impl<T: Default + Eq + Hash> Default for Table<T> {
    fn default() -> Self {
        Self(HashMap::from([(T::default(), 0)]))
    }
}

impl<T: Clone + Default + Eq + Hash> Table<T> {
    fn index(&mut self, entry: T) -> i32 {
        let next = self.0.len() as i32;
        *self.0.entry(entry).or_insert(next)
    }

    fn all(self) -> Vec<T> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_by_key(|(_, index)| *index);
        all.into_iter().map(|(entry, _)| entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_recordings::recording_of;
    use systoll_judge::Judgement;

    #[test]
    fn profiles_add_up_and_share_their_names() {
        let (recording, judgement) = (recording_of(&[("read", 3), ("write", 1)]), Judgement::default());
        let judged = JudgedRecording::new(&recording, &judgement);
        let mut profiles = OtlpProfiles::default();
        profiles.add("shop", "h1", &judged);
        profiles.add("web", "h1", &judged);
        let request = ProfilesRequest::decode(profiles.finish().as_slice()).unwrap();
        let tables = request.dictionary.unwrap();
        assert_eq!(request.resource_profiles.len(), 2);
        for of_service in &request.resource_profiles {
            let sums = of_service.scope_profiles[0].profiles.iter().map(|profile| {
                let kind = &tables.string_table[profile.sample_type.unwrap().type_strindex as usize];
                (kind.as_str(), profile.samples.iter().map(|sample| sample.values[0]).sum::<i64>())
            });
            assert_eq!(sums.collect::<Vec<_>>(), [("toll", 400), ("calls", 4)]);
        }
        let sample = &request.resource_profiles[1].scope_profiles[0].profiles[0].samples[1];
        let leaf = tables.stack_table[sample.stack_index as usize].location_indices[0];
        let location = &tables.location_table[leaf as usize];
        let function = tables.function_table[location.lines[0].function_index as usize];
        assert_eq!(tables.string_table[function.name_strindex as usize], "write");
        let program = &tables.attribute_table[sample.attribute_indices[0] as usize];
        assert_eq!(program.value, text_value("app"));
        assert_eq!(tables.string_table[program.key_strindex as usize], "process.executable.name");
        assert_eq!((tables.stack_table.len(), tables.attribute_table.len()), (3, 2));
        assert_eq!((&tables.string_table[0][..], &tables.attribute_table[0]), ("", &Attribute::default()));
        assert_eq!(tables.location_table[0], Location::default());
    }
}
