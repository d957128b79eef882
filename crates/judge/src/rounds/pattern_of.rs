//! Patterns of the properties that vary from call to call: names, numbers, bytes.

use super::round::{Numbers, Objects, Variety};
use crate::collections::hash::Set;
use std::collections::BTreeSet;
use systoll_model::{Moment, Sysno, WindowCall};

/// Names of arguments that give the number of bytes.
const SIZES: [&str; 5] = ["count", "len", "length", "nbytes", "new_size"];
/// The name of arguments that give the position in a file.
const OFFSET: &str = "offset";
/// Longest pattern, bytes.
const LONGEST: usize = 512;
/// The sign for a part that varies.
const VARIES: &str = "?";

/// Returns the pattern of the objects of calls of `syscall`; `None` if fewer than half of them have one.
pub(super) fn objects(calls: &[&WindowCall], syscall: Sysno) -> Option<Objects> {
    let names: Vec<String> = calls.iter().filter_map(|call| call.object(syscall)).collect();
    if names.is_empty() || 2 * names.len() < calls.len() {
        return None;
    }
    let different: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let variety = Variety { looks: names.len() as u64, different: different.len() as u64 };
    let mut pattern = common(&different);
    if pattern.len() > LONGEST {
        let mut end = LONGEST;
        while !pattern.is_char_boundary(end) {
            end -= 1;
        }
        pattern.truncate(end);
        pattern.push_str(VARIES);
    }
    Some(Objects { pattern, variety })
}

/// Returns the common beginning and end of all names, with `?` between them.
fn common(names: &BTreeSet<&str>) -> String {
    let mut all = names.iter().copied();
    let Some(first) = all.next() else { return String::new() };
    if names.len() == 1 {
        return first.to_owned();
    }
    let (mut prefix, mut suffix) = (first, first);
    for name in all {
        let same = prefix.char_indices().zip(name.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
        let end = same.unwrap_or(prefix.len().min(name.len()));
        prefix = prefix.get(..end).unwrap_or("");
        let same: usize =
            suffix.chars().rev().zip(name.chars().rev()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
        suffix = suffix.get(suffix.len() - same..).unwrap_or("");
    }
    // Digits at the cut may belong to different numbers.
    let (mut prefix, mut suffix) = (
        prefix.trim_end_matches(|c: char| c.is_ascii_digit()),
        suffix.trim_start_matches(|c: char| c.is_ascii_digit()),
    );
    // In the shortest name, the common beginning and end may overlap.
    let shortest = names.iter().map(|name| name.len()).min().unwrap_or(0);
    if prefix.len() + suffix.len() > shortest {
        let room = shortest - prefix.len();
        let mut start = suffix.len() - room.min(suffix.len());
        while !suffix.is_char_boundary(start) {
            start += 1;
        }
        suffix = suffix.get(start..).unwrap_or("");
    }
    // Letters that words share at their ends mean nothing.
    if !suffix.starts_with(|c: char| !c.is_alphanumeric()) {
        let whole = suffix.find(|c: char| !c.is_alphanumeric());
        suffix = whole.and_then(|at| suffix.get(at..)).unwrap_or("");
    }
    // One name may be a folder in which all others lie.
    let in_it = names.iter().filter(|name| name.get(prefix.len()..).is_some_and(|rest| rest.starts_with('/'))).count();
    let is_folder = prefix.len() > 1 && suffix.is_empty() && names.contains(prefix) && in_it + 1 == names.len();
    if is_folder {
        return format!("{prefix}/{VARIES}");
    }
    if prefix.ends_with(VARIES) {
        prefix = prefix.trim_end_matches(VARIES);
    }
    format!("{prefix}{VARIES}{suffix}")
}

/// Returns the numbers of bytes that the calls moved or asked for.
pub(super) fn sizes(calls: &[&WindowCall], syscall: Sysno) -> Option<Numbers> {
    let signature = syscall.signature()?;
    if signature.transfers {
        let moved: Vec<u64> = calls.iter().filter_map(|call| u64::try_from(call.result?).ok()).collect();
        return numbers(&moved, false);
    }
    argument(calls, syscall, |name| SIZES.contains(&name))
}

/// Returns the offsets in the calls' arguments.
pub(super) fn offsets(calls: &[&WindowCall], syscall: Sysno) -> Option<Numbers> {
    // The offset of a mapping says little.
    syscall.signature().filter(|s| s.name != "mmap")?;
    argument(calls, syscall, |name| name == OFFSET)
}

fn argument(calls: &[&WindowCall], syscall: Sysno, wanted: impl Fn(&str) -> bool) -> Option<Numbers> {
    let signature = syscall.signature()?;
    let of_number = |kind| matches!(kind, systoll_model::ArgKind::Int);
    let at = signature.args.iter().position(|arg| of_number(arg.kind) && wanted(arg.name))?;
    let value = |call: &&WindowCall| call.args.get(at).copied();
    if let Some(Numbers::Same(same)) = numbers(&calls.iter().filter_map(value).collect::<Vec<_>>(), false) {
        return Some(Numbers::Same(same));
    }
    steps(calls, at).or_else(|| numbers(&calls.iter().filter_map(value).collect::<Vec<_>>(), true))
}

/// Returns the step by which the argument grows from each call to the next of its row, if it is always the same.
fn steps(calls: &[&WindowCall], at: usize) -> Option<Numbers> {
    let of = |call: &WindowCall| call.args.get(at).copied().unwrap_or(0);
    let next = |pair: &[&WindowCall]| match pair {
        [a, b] if a.row == b.row && a.nth.checked_add(1) == Some(b.nth) => Some(of(b).checked_sub(of(a))),
        _ => None,
    };
    let mut steps = calls.windows(2).filter_map(next);
    let first = steps.next()??;
    (first > 0 && steps.all(|step| step == Some(first))).then_some(Numbers::Steps(first))
}

fn numbers(all: &[u64], sound: bool) -> Option<Numbers> {
    let (low, high) = (*all.iter().min()?, *all.iter().max()?);
    // No file or memory is that large: the number is no size.
    if sound && high > 1 << 62 {
        return None;
    }
    Some(if low == high { Numbers::Same(low) } else { Numbers::Between(low, high) })
}

/// Returns how many of the calls' captured bytes differ.
pub(super) fn data(calls: &[&WindowCall], syscall: Sysno) -> Option<Variety> {
    let signature = syscall.signature().filter(|s| s.transfers)?;
    let buffer = signature.args.iter().position(|arg| arg.name == "buf")? as u8;
    let moved = |call: &&&WindowCall| call.result.is_some_and(|result| result > 0);
    let mut different: Set<&[u8]> = Set::default();
    let mut looks = 0;
    for call in calls.iter().filter(moved) {
        let at = |moment| call.arg_data(buffer, moment).filter(|data| !data.bytes.is_empty());
        let Some(data) = at(Moment::Exit).or_else(|| at(Moment::Entry)) else { continue };
        looks += 1;
        different.insert(&data.bytes);
    }
    (looks > 0).then_some(Variety { looks, different: different.len() as u64 })
}

/// Returns the calls' option if all have the same.
pub(super) fn option(calls: &[&WindowCall], syscall: Sysno) -> Option<String> {
    // The size and file of a mapping tell its purpose.
    syscall.name().filter(|name| !["mmap", "mprotect", "rt_sigprocmask"].contains(name))?;
    let mut all = calls.iter().map(|call| call.option(syscall));
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(names: &[&str]) -> String {
        common(&names.iter().copied().collect())
    }

    #[test]
    fn a_pattern_keeps_what_is_constant() {
        for (names, wanted) in [
            (&["/srv/segment0", "/srv/segment1", "/srv/segment13"][..], "/srv/segment?"),
            (&["/srv/12.log", "/srv/17.log"], "/srv/?.log"),
            (&["/a/b", "/a/b"], "/a/b"),
            (&["/a", "/b"], "/?"),
            (&["TCP:[1.2.3.4:80->9.9.9.9:4711]", "TCP:[1.2.3.4:80->9.9.9.9:52]"], "TCP:[1.2.3.4:80->9.9.9.9:?]"),
            (&["/x/aXa", "/x/aa"], "/x/a?"),
            (&["/proc/1/stat", "/proc/22/stat"], "/proc/?/stat"),
            (&["/usr/carpets", "/usr/tapets"], "/usr/?"),
            (&["/usr/include", "/usr/include/a", "/usr/include/b/c"], "/usr/include/?"),
        ] {
            assert_eq!(pattern(names), wanted, "{names:?}");
        }
    }

    proptest! {
        #[test]
        fn any_names_have_a_pattern_that_fits(names in prop::collection::btree_set("[a-c0-1/.é?]{0,8}", 1..6)) {
            let different: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            let pattern = common(&different);
            if different.len() > 1 {
                let fits = |name: &&&str| pattern.match_indices(VARIES).any(|(at, _)| {
                    let (prefix, suffix) = (&pattern[..at], &pattern[at + 1..]);
                    name.len() >= prefix.len() + suffix.len() && name.starts_with(prefix) && name.ends_with(suffix)
                });
                for name in &different {
                    let is_folder = pattern.strip_suffix("/?") == Some(*name);
                    prop_assert!(is_folder || fits(&name), "{pattern} {name}");
                }
            }
        }
    }
}
