//! Selects the frames of a row that people see, without those inside the called API.

use crate::names::{Frame, FrameClass, FrameId, Location};
use crate::recording::Recording;
use crate::row::{ObjectSample, Row, RowId, RowTrunk, WholeStack};

/// A whole stack of a row, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownStack {
    /// The frames that [`Recording::shown_frames`] selects.
    pub frames: Vec<FrameId>,
    /// The stack's weight among all stacks of the row.
    pub weight: u64,
}

/// Splits `value` in proportion to `weights`, into parts that add up to it. If all weights are 0,
/// the first part is all of it.
pub fn shares(value: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|w| u128::from(*w)).sum();
    if all == 0 {
        return weights.iter().enumerate().map(|(at, _)| if at == 0 { value } else { 0 }).collect();
    }
    // Both sides are shifted, so that the product with a u64 fits into 128 bits.
    let shift = (u128::BITS - all.leading_zeros()).saturating_sub(u64::BITS);
    let (mut sum, mut given) = (0u128, 0u64);
    let share = |weight: &u64| {
        sum += u128::from(*weight);
        let up_to = u128::from(value) * (sum >> shift) / (all >> shift);
        let up_to = u64::try_from(up_to).unwrap_or(value).min(value);
        let share = up_to - given;
        given = up_to;
        share
    };
    weights.iter().map(share).collect()
}

impl Recording {
    /// Returns the whole stacks that were seen of a row; none if no two differ.
    pub fn trunks_of(&self, row: RowId) -> &[RowTrunk] {
        let start = self.trunks.partition_point(|t| t.row < row);
        let end = self.trunks.partition_point(|t| t.row <= row);
        self.trunks.get(start..end).unwrap_or_default()
    }

    /// Returns the sampled stacks of a row with all of their frames; none if its other stacks leave none out.
    pub fn whole_stacks_of(&self, row: RowId) -> &[WholeStack] {
        let start = self.whole_stacks.partition_point(|w| w.row < row);
        let end = self.whole_stacks.partition_point(|w| w.row <= row);
        self.whole_stacks.get(start..end).unwrap_or_default()
    }

    /// Returns the samples by object of a row; none if all of its sampled calls came from one line and caller.
    pub fn object_samples_of(&self, row: RowId) -> &[ObjectSample] {
        let start = self.object_samples.partition_point(|s| s.row < row);
        let end = self.object_samples.partition_point(|s| s.row <= row);
        self.object_samples.get(start..end).unwrap_or_default()
    }

    /// Returns the stacks from which a row's calls came, each with its weight: exact up to the
    /// user's frame, sampled above it. Returns a single stack if no two differ. Panics as
    /// [`Recording::row`] does.
    pub fn shown_stacks(&self, id: RowId) -> Vec<ShownStack> {
        let row = self.row(id);
        let trunks = self.trunks_of(id);
        if trunks.is_empty() {
            return vec![ShownStack { frames: self.shown_frames(row), weight: 1 }];
        }
        let told =
            |t: &RowTrunk| ShownStack { frames: self.shown_above(row, &self.stack(t.stack).frames), weight: t.weight };
        trunks.iter().map(told).collect()
    }

    /// Returns the frames from the caller of the row's API outwards, or all frames if there is no
    /// API. Between a script's lines, the interpreter's own functions are left out. Panics as
    /// [`Recording::row`] does.
    pub fn shown_frames(&self, row: &Row) -> Vec<FrameId> {
        self.shown_above(row, &self.stack(row.outer).frames)
    }

    fn shown_above(&self, row: &Row, outer: &[FrameId]) -> Vec<FrameId> {
        let context = &self.stack(row.context).frames;
        let inside = if row.api.is_some() { self.inside_api(context, row.user) } else { 0 };
        let frames: Vec<FrameId> = context.iter().skip(inside).chain(outer).copied().collect();
        // Once a script's lines are shown, the interpreter's functions between them add nothing.
        let script = frames.iter().any(|f| self.frame(*f).language.is_some());
        let shown = |f: &FrameId| {
            let frame = self.frame(*f);
            !script || frame.language.is_some() || frame.class == FrameClass::User
        };
        let mut frames: Vec<FrameId> = frames.into_iter().filter(shown).collect();
        let of_frames: Vec<&Frame> = frames.iter().map(|id| self.frame(*id)).collect();
        let kept = before_thread(&of_frames);
        frames.truncate(kept);
        frames
    }

    /// Returns the number of frames of `context` inside the API: those below the user's frame or,
    /// if the user's frame is not known, those of the C library at the leaf.
    fn inside_api(&self, context: &[FrameId], user: Option<FrameId>) -> usize {
        let at_user = user.and_then(|user| context.iter().position(|f| *f == user));
        let of_libc = |f: &&FrameId| matches!(self.frame(**f).class, FrameClass::Libc | FrameClass::Vdso);
        at_user.unwrap_or_else(|| context.iter().take_while(of_libc).count())
    }
}

/// Prefixes of the names of functions in which a language's library starts a thread or the program:
/// Rust's own backtraces end there, and libstdc++ and libc++ call a thread's function from there.
const BEGINS: [&str; 7] = [
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::sys_common::backtrace::__rust_begin_short_backtrace",
    "__rust_begin_short_backtrace",
    "std::thread::_State_impl<",
    "std::__1::__thread_proxy",
    "void* std::__1::__thread_proxy",
    "std::__future_base::",
];

/// Prefixes of the names of functions that only pass control to the function they were given.
const HANDS_OVER: [&str; 8] = [
    "std::__invoke",
    "void std::__invoke",
    "std::thread::",
    "std::__1::__invoke",
    "std::__1::__thread_execute",
    "void std::__1::__thread_execute",
    "core::ops::function::FnOnce::call_once",
    "std::__future_base::",
];

impl Frame {
    /// Returns the frame's functions, inlined ones first, up to where a language's library starts a
    /// thread.
    pub fn shown_locations(&self) -> &[Location] {
        let begins = |l: &Location| BEGINS.iter().any(|name| l.function.starts_with(name));
        let end = self.locations.iter().position(begins).unwrap_or(self.locations.len());
        self.locations.get(..end).unwrap_or_default()
    }
}

/// Returns how many of these frames, innermost first, lie inside the one in which a language's
/// library starts a thread. The frames outside it are the same in every program. Returns all if no
/// such frame is seen, and at least one.
pub fn before_thread(frames: &[&Frame]) -> usize {
    let cut = frames.iter().position(|frame| frame.shown_locations().len() < frame.locations.len());
    let Some(at) = cut else { return frames.len() };
    let own = |frame: &Frame| !frame.shown_locations().is_empty();
    let mut kept = at + usize::from(frames.get(at).is_some_and(|frame| own(frame)));
    let hands_over = |frame: &&Frame| {
        frame.shown_locations().iter().all(|l| HANDS_OVER.iter().any(|name| l.function.starts_with(name)))
    };
    while kept > 1 && frames.get(kept - 1).is_some_and(hands_over) {
        kept -= 1;
    }
    kept.max(1).min(frames.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(functions: &[&str]) -> Frame {
        let location = |name: &&str| Location { function: (*name).into(), ..Location::default() };
        Frame { locations: functions.iter().map(location).collect(), ..Frame::default() }
    }

    fn told(stack: &[&[&str]]) -> Vec<String> {
        let frames: Vec<Frame> = stack.iter().map(|functions| frame(functions)).collect();
        let frames: Vec<&Frame> = frames.iter().collect();
        let kept = frames.get(..before_thread(&frames)).unwrap_or_default();
        kept.iter().flat_map(|frame| frame.shown_locations()).map(|l| l.function.to_string()).collect()
    }

    #[test]
    fn thread_starts_are_hidden() {
        let rust: &[&[&str]] = &[
            &["app::work"],
            &["app::main::{{closure}}", "std::sys::backtrace::__rust_begin_short_backtrace"],
            &["std::thread::lifecycle::spawn_unchecked::{{closure}}"],
            &["std::sys::thread::unix::Thread::new::thread_start"],
        ];
        assert_eq!(told(rust), ["app::work", "app::main::{{closure}}"]);
        let main: &[&[&str]] = &[
            &["app::main"],
            &["core::ops::function::FnOnce::call_once", "std::sys::backtrace::__rust_begin_short_backtrace"],
            &["std::rt::lang_start"],
            &["main"],
        ];
        assert_eq!(told(main), ["app::main"]);
        let cpp: &[&[&str]] = &[
            &["work(int)"],
            &["Job::operator()() const"],
            &["void std::__invoke_impl<void, Job>(std::__invoke_other, Job&&)"],
            &["std::thread::_Invoker<std::tuple<Job> >::_M_invoke<0ul>"],
            &["std::thread::_State_impl<std::thread::_Invoker<std::tuple<Job> > >::_M_run()"],
            &["execute_native_thread_routine"],
        ];
        assert_eq!(told(cpp), ["work(int)", "Job::operator()() const"]);
        assert_eq!(told(&[&["work"], &["main"]]), ["work", "main"]);
    }

    #[test]
    fn shares_add_up_to_the_whole() {
        for (value, weights, wanted) in [
            (10, &[1, 1, 1][..], vec![3, 3, 4]),
            (1, &[5, 5], vec![0, 1]),
            (7, &[0, 0], vec![7, 0]),
            (0, &[3], vec![0]),
            (u64::MAX, &[u64::MAX, u64::MAX, 0], vec![u64::MAX / 2, u64::MAX / 2 + 1, 0]),
        ] {
            let shares = shares(value, weights);
            assert_eq!(shares, wanted);
            assert_eq!(shares.iter().sum::<u64>(), value);
        }
        assert!(shares(5, &[]).is_empty());
    }
}
