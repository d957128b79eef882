//! What varies from call to call: names, numbers, bytes.

use super::round::{Numbers, Objects, Variety};
use crate::hash::Set;
use std::collections::BTreeSet;
use systoll_model::{Moment, Sysno, WindowCall};

/// What arguments are called that say how many bytes a call is for.
const SIZES: [&str; 5] = ["count", "len", "length", "nbytes", "new_size"];
/// What the argument is called that says where in a file.
const OFFSET: &str = "offset";
/// Bytes of a pattern.
const LONGEST: usize = 512;
/// What stands for what varies.
const VARIES: &str = "?";

/// Returns what the calls, all of `syscall`, are about.
pub(super) fn objects(calls: &[&WindowCall], syscall: Sysno) -> Option<Objects> {
    let names: Vec<String> = calls.iter().filter_map(|call| call.object(syscall)).collect();
    // Where only some have one, it is no more than chance.
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

/// What all names begin and end with, and `?` between.
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
    // A number that begins alike is another number.
    let (mut prefix, mut suffix) = (
        prefix.trim_end_matches(|c: char| c.is_ascii_digit()),
        suffix.trim_start_matches(|c: char| c.is_ascii_digit()),
    );
    // Both ends of the shortest name may be the same signs.
    let shortest = names.iter().map(|name| name.len()).min().unwrap_or(0);
    if prefix.len() + suffix.len() > shortest {
        let room = shortest - prefix.len();
        let mut start = suffix.len() - room.min(suffix.len());
        while !suffix.is_char_boundary(start) {
            start += 1;
        }
        suffix = suffix.get(start..).unwrap_or("");
    }
    // Of words that share some letters these say nothing.
    if !suffix.starts_with(|c: char| !c.is_alphanumeric()) {
        let whole = suffix.find(|c: char| !c.is_alphanumeric());
        suffix = whole.and_then(|at| suffix.get(at..)).unwrap_or("");
    }
    // A folder and what lies in it.
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

/// Returns the bytes that the calls moved, or were for.
pub(super) fn sizes(calls: &[&WindowCall], syscall: Sysno) -> Option<Numbers> {
    let signature = syscall.signature()?;
    if signature.transfers {
        let moved: Vec<u64> = calls.iter().filter_map(|call| u64::try_from(call.result?).ok()).collect();
        return numbers(&moved, false);
    }
    argument(calls, syscall, |name| SIZES.contains(&name))
}

/// Returns the offsets that the calls name.
pub(super) fn offsets(calls: &[&WindowCall], syscall: Sysno) -> Option<Numbers> {
    // Of a map the offset says little, and where a pointer leads is not it.
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

/// By how much the argument grows from each call to the next of its row, where that is always the same.
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
    // What no file or memory is as large as is no size.
    if sound && high > 1 << 62 {
        return None;
    }
    Some(if low == high { Numbers::Same(low) } else { Numbers::Between(low, high) })
}

/// Returns how the bytes differ that the calls moved, as far as they were looked at.
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

/// Returns what else the calls ask for, where that is always the same.
pub(super) fn option(calls: &[&WindowCall], syscall: Sysno) -> Option<String> {
    // What a map is for, its size and file tell.
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
