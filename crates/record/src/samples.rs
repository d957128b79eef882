//! The sampled calls of a row by the objects that they are about: a file, a socket, a pipe.
//!
//! One row may serve several lines of a script, each with objects of its own. What is said of one object must not come
//! from samples about another, so each sample is kept with its object.

use std::sync::Arc;
use systoll_model::{octaves, shape};
use systoll_symbols::RawFrame;

/// Maximum number of a row's objects with a name of their own. Further ones share the name of their shape.
const MAX_NAMES: usize = 48;
/// Maximum number of a row's objects and shapes. Further ones share the name of their folder.
const MAX_SHAPES: usize = 64;
/// Maximum number of a row's entries of any kind. Further objects count as unknown.
const MAX_OBJECTS: usize = 80;
/// Maximum length of a remembered name, bytes. A program chooses its names, and a longer one counts as unknown.
const MAX_NAME: usize = 1024;
/// Maximum number of different stacks remembered for one object of a row.
const MAX_STACKS: usize = 8;

/// A sampled stack, as [`crate::table::Table::whole_stack`] has taken it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampledStack {
    /// The script's line, if the stack has one.
    pub(crate) line: Option<RawFrame>,
    /// Id of the stack without the interpreter's own frames.
    pub(crate) whole: u32,
    /// Id of the stack with all of its frames.
    pub(crate) full: u32,
}

/// Samples of a row's calls about one object.
#[derive(Clone, Debug, Default)]
struct OfObject {
    /// The object's name, or that of its shape or folder; `None` for calls without a known object.
    name: Option<Arc<str>>,
    seen: ByOctave,
    /// The different stacks, and the samples of each.
    stacks: Vec<(SampledStack, ByOctave)>,
}

/// Number of samples by octave of the row's count, in no order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ByOctave(Vec<(u32, u64)>);

impl ByOctave {
    fn add(&mut self, octave: u32, n: u64) {
        match self.0.iter_mut().find(|(of, _)| *of == octave) {
            Some((_, seen)) => *seen += n,
            None => self.0.push((octave, n)),
        }
    }

    /// Returns the number of all samples.
    fn count(&self) -> u64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// Returns the sum over all samples of what `each` gives for one of an octave.
    fn sum(&self, each: impl Fn(u32) -> f64) -> f64 {
        self.0.iter().map(|(octave, n)| each(*octave) * *n as f64).sum()
    }
}

impl OfObject {
    /// Returns the share, 0 to 1, of the object's calls that the samples of one stack stand for, where a sample in an octave
    /// stands for `each` calls. The calls of an octave are those of its own stacks, or of the nearest octave's that has any:
    /// stacks of a run's first calls tell little of the later ones.
    fn share_of(&self, stack: &ByOctave, each: impl Fn(u32) -> f64) -> f64 {
        let mut of_octave = ByOctave::default();
        let looks = self.stacks.iter().flat_map(|(_, looks)| &looks.0);
        looks.for_each(|(octave, n)| of_octave.add(*octave, *n));
        let (mut share, mut all) = (0.0, 0.0);
        for (octave, n) in &self.seen.0 {
            let weight = each(*octave) * *n as f64;
            all += weight;
            let nearest = of_octave.0.iter().min_by_key(|(of, _)| (of.abs_diff(*octave), *of));
            let own = |of: u32| stack.0.iter().find(|(own, _)| *own == of).map_or(0, |(_, n)| *n);
            share += nearest.map_or(0.0, |(of, looks)| weight * own(*of) as f64 / *looks as f64);
        }
        if all > 0.0 { share / all } else { 0.0 }
    }
}

/// The sampled calls of a row, by object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    objects: Vec<OfObject>,
}

/// One object's samples with one stack, with the number of calls for which they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WeighedSample {
    pub(crate) object: Option<Arc<str>>,
    pub(crate) stack: SampledStack,
    pub(crate) looks: u64,
    pub(crate) weight: u64,
    /// Sum of the squares of the numbers of calls for which each sample stands.
    pub(crate) squares: u64,
}

impl Samples {
    /// Adds a sample of a call about `object` in an octave of the row's count. Without a stack, the call is only known
    /// to be about the object. The first call is left out: what it is about is not asked.
    pub(crate) fn note(&mut self, octave: u32, object: Option<&str>, stack: Option<SampledStack>) {
        if octave == 0 {
            return;
        }
        let at = self.place_of(object);
        let Some(known) = self.objects.get_mut(at) else { return };
        known.seen.add(octave, 1);
        let Some(stack) = stack else { return };
        let alike = |(of, _): &&mut (SampledStack, ByOctave)| (of.line, of.whole) == (stack.line, stack.whole);
        if let Some((_, looks)) = known.stacks.iter_mut().find(alike) {
            looks.add(octave, 1);
        } else if known.stacks.len() < MAX_STACKS {
            known.stacks.push((stack, ByOctave(vec![(octave, 1)])));
        }
    }

    /// Returns the number of samples of an object's calls that have a stack.
    pub(crate) fn looks(&self, object: Option<&str>) -> u64 {
        let find = |name: Option<&str>| self.objects.iter().find(|known| known.name.as_deref() == name);
        find(object).map_or(0, |known| known.stacks.iter().map(|(_, looks)| looks.count()).sum())
    }

    /// Returns true if the row serves several lines of a script.
    pub(crate) fn has_several_lines(&self) -> bool {
        let mut lines = self.objects.iter().flat_map(|known| &known.stacks).filter_map(|(stack, _)| stack.line);
        lines.next().is_some_and(|first| lines.any(|line| line != first))
    }

    /// Returns true if the row's calls came by several stacks.
    pub(crate) fn has_several_callers(&self) -> bool {
        let mut stacks = self.stacks().map(|stack| (stack.line, stack.whole));
        stacks.next().is_some_and(|first| stacks.any(|other| other != first))
    }

    /// Returns the different stacks of each object.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = SampledStack> {
        self.objects.iter().flat_map(|known| &known.stacks).map(|(stack, _)| *stack)
    }

    /// Returns the samples of a row whose `calls` were entered, each with the number of calls for which it stands: each
    /// octave's calls are divided between the samples in it.
    pub(crate) fn weighed(&self, calls: u64) -> Vec<WeighedSample> {
        let seen = self.objects.iter().flat_map(|known| &known.seen.0);
        let in_octave = |octave: u32| seen.clone().filter(|(of, _)| *of == octave).map(|(_, n)| n).sum::<u64>();
        let sizes: Vec<(u32, f64)> = octaves(calls, seen.clone().map(|(octave, _)| *octave))
            .map(|(size, octave)| (octave, size as f64 / in_octave(octave).max(1) as f64))
            .collect();
        let each = |octave: u32| sizes.iter().filter(|(of, _)| *of == octave).map(|(_, size)| size).sum::<f64>();
        let of_object = |known: &OfObject| {
            let (weight, squares) = (known.seen.sum(each), known.seen.sum(|octave| each(octave).powi(2)));
            let name = known.name.clone();
            let of_stack = move |(stack, looks): &(SampledStack, ByOctave)| {
                let share = known.share_of(looks, each);
                let part = |of: f64| (of * share).round() as u64;
                let (weight, squares) = (part(weight), part(squares));
                WeighedSample { object: name.clone(), stack: *stack, looks: looks.count(), weight, squares }
            };
            known.stacks.iter().map(of_stack).collect::<Vec<_>>()
        };
        self.objects.iter().flat_map(of_object).collect()
    }

    /// Returns the index of an object's entry; makes one if there is room.
    fn place_of(&mut self, object: Option<&str>) -> usize {
        let Some(object) = object.filter(|name| name.len() <= MAX_NAME) else {
            return self.entry(None, MAX_OBJECTS + 1);
        };
        let find = |name: &str| self.objects.iter().position(|known| known.name.as_deref() == Some(name));
        if let Some(at) = find(object) {
            return at;
        }
        if self.objects.len() < MAX_NAMES {
            return self.entry(Some(object), MAX_NAMES);
        }
        let shape = shape(object);
        let folder = shape.rsplit_once('/').map(|(folder, _)| format!("{folder}/*"));
        match find(&shape).or_else(|| folder.as_deref().and_then(find)) {
            Some(at) => at,
            None if self.objects.len() < MAX_SHAPES => self.entry(Some(&shape), MAX_SHAPES),
            None => self.entry(folder.as_deref(), MAX_OBJECTS),
        }
    }

    /// Returns the index of the entry with a name; makes it if there are fewer than `most`.
    fn entry(&mut self, name: Option<&str>, most: usize) -> usize {
        if let Some(at) = self.objects.iter().position(|known| known.name.as_deref() == name) {
            return at;
        }
        if self.objects.len() < most {
            self.objects.push(OfObject { name: name.map(Arc::from), ..OfObject::default() });
            return self.objects.len() - 1;
        }
        self.entry(None, MAX_OBJECTS + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(line: u64) -> SampledStack {
        let frame = RawFrame { module: None, address: line, is_return: false };
        SampledStack { line: Some(frame), whole: line as u32, full: line as u32 }
    }

    #[test]
    fn each_object_has_the_lines_of_its_own_samples() {
        let mut samples = Samples::default();
        for octave in 3..8 {
            samples.note(octave, Some("/etc/app.json"), Some(stack(2)));
            samples.note(octave, Some("/var/app.log"), Some(stack(5)));
            samples.note(octave, Some("/var/app.log"), None);
        }
        let all = samples.weighed(255);
        let seen: Vec<_> = all.iter().map(|s| (s.object.as_deref(), s.stack.whole, s.looks, s.weight)).collect();
        assert_eq!(seen, [(Some("/etc/app.json"), 2, 5, 85), (Some("/var/app.log"), 5, 5, 170)]);
        assert!(samples.has_several_lines() && samples.looks(Some("/var/app.log")) == 5);
    }

    #[test]
    fn the_first_calls_of_a_row_count_as_few() {
        // A script makes a file, reads it 1,022 times, and reads another as often.
        let mut samples = Samples::default();
        samples.note(1, Some("/etc/app.json"), Some(stack(1)));
        for octave in 3..11 {
            samples.note(octave, Some("/etc/app.json"), Some(stack(2)));
            samples.note(octave, Some("/etc/other.json"), Some(stack(2)));
            // Of most of the later calls only the object is asked.
            (0..1 << (octave / 2)).for_each(|_| samples.note(octave, Some("/etc/app.json"), None));
        }
        let all = samples.weighed(2047);
        let of_line =
            |line| all.iter().filter(|s| s.stack.whole == line).map(|s| (s.looks, s.weight)).collect::<Vec<_>>();
        assert_eq!(of_line(1).iter().map(|(looks, _)| looks).sum::<u64>(), 1);
        assert!(of_line(1)[0].1 < 10 && of_line(2).iter().map(|(_, weight)| weight).sum::<u64>() > 2_000, "{all:?}");
    }

    #[test]
    fn many_objects_share_the_name_of_their_shape_and_then_of_their_folder() {
        let mut samples = Samples::default();
        for n in 0..10_000 {
            samples.note(4, Some(&format!("/spool/job{n}")), Some(stack(2)));
            samples.note(4, Some(&format!("/cache/{}", "x".repeat(1 + n % 200))), Some(stack(3)));
        }
        assert!(samples.objects.len() <= MAX_OBJECTS + 1);
        let all = samples.weighed(20_000);
        let of = |name: &str| all.iter().filter(|s| s.object.as_deref() == Some(name)).map(|s| s.looks).sum::<u64>();
        assert!(of("/spool/job#") > 9_900 && of("/cache/*") > 1_000, "{} {}", of("/spool/job#"), of("/cache/*"));
        assert!(all.iter().all(|s| s.stack.line
            == stack(if s.object.as_deref().is_some_and(|o| o.contains("cache")) { 3 } else { 2 }).line));
    }
}
